/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * libgpuarb: reserve compute units (CUs), queues and memory of AMD GPUs from gpuarbd.
 *
 *	struct gpuarb *gpuarb = NULL;
 *	struct gpuarb_lease *lease = NULL;
 *	struct gpuarb_want want = GPUARB_WANT_INIT;
 *	int r;
 *
 *	want.cus = 30;
 *	r = gpuarb_open(&gpuarb);
 *	if (r >= 0)
 *		r = gpuarb_reserve(gpuarb, &want, 1, NULL, &lease);
 *	if (r < 0)
 *		fprintf(stderr, "%s\n", gpuarb_last_error(gpuarb));
 *
 * The program holds a lease: the right to a partition of one or more GPUs. It lives as long as its
 * holder, a file descriptor, is open. libgpuarb(3) has complete programs.
 *
 * Errors. Every function that returns int returns a negative errno on failure and does not change
 * its ret arguments (except gpuarb_open(), which sets its own to NULL). The name in parentheses is
 * the D-Bus error (gpuarb_last_error_name()).
 *
 *	-EINVAL      an argument or the request is invalid; the sentence names it (InvalidRequest)
 *	-EBUSY       does not fit now and may fit later              (NoCapacity)
 *	-ENOSPC      does not fit on this machine, even if it were idle (NeverFits)
 *	-EDQUOT      exceeds the quota of the tenant                 (QuotaExceeded)
 *	-EACCES      policy does not allow it                        (NotPermitted)
 *	-ENODEV      no such GPU                                     (NoSuchGpu)
 *	-ENOENT      no such lease, or the lease has ended           (NoSuchLease)
 *	-ESRCH       no such tenant                                  (NoSuchTenant)
 *	-EEXIST      the token belongs to a different request        (TokenConflict)
 *	-EBADFD      the lease is not in a state for this            (InvalidState)
 *	-ERANGE      a budget is too small, or a mask leaves no CU
 *	-EOPNOTSUPP  the daemon or the hardware does not support it  (NotSupported)
 *	-EIO         the daemon could not save the change, so nothing was granted (NotSaved)
 *	-EUSERS      too many leases                                 (TooManyLeases)
 *	-ETIMEDOUT   the time to wait is over                        (TimedOut)
 *	-ESHUTDOWN   the daemon is stopping                          (Shutdown)
 *	-ECONNREFUSED no bus, or no daemon on it: nothing was done
 *	-ECONNRESET  the daemon or the bus went away during the call and did not return in time: the
 *		     call may have been carried out
 *	-EPROTO      invalid data from the daemon: library and daemon are of different versions
 *	-EINTR       a signal handler ran; a request that was not granted leaves nothing behind
 *	-EMFILE      this process cannot open more files
 *	-ENOMEM      out of memory
 *
 * gpuarb-queues.h adds the errors of the driver.
 *
 * Blocking. Functions that call the daemon wait in poll() for its answer. A signal whose handler
 * was installed ends the wait with -EINTR, even with SA_RESTART. The daemon answers at once;
 * without an answer for 25 seconds the call fails with -ETIMEDOUT. After either failure a lease
 * that was granted meanwhile ends, because nobody receives its holder; a release or a resize may
 * have been carried out, and can be repeated. Waiting for room on a GPU is separate from that: a
 * waiting lease reports its grant through its holder, however long it takes (gpuarb_reserve()).
 *
 * Restarts. Leases and holders outlive the daemon and the bus; the program need not do anything. A
 * call waits up to 10 seconds and is sent again when the connection was lost during the call, or
 * when the daemon or the bus is away that this handle has reached before. If that fails, the
 * sentence tells how long it waited. A call that lost the connection three times is not sent again,
 * because it may be the reason why the daemon crashes. Repeating is safe: of two Reserves that were
 * granted, the first has no holder and ends. A daemon that this handle has never reached is not
 * waited for, nor does gpuarb_open() wait for a bus.
 *
 * Threads. Use a handle and the leases made with it in one thread at a time. Different handles can
 * be used in different threads at once. Fork and exec need no preparation: every fd is
 * close-on-exec. A child must not use the handles of its parent; it may close their fds.
 *
 * The library never calls exit or abort and installs no signal handlers. Its only thread is that of
 * gpuarb_lease_start_agent().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpuarb-queues.h" /* masks for the queues of a running program */

#ifdef __cplusplus
extern "C" {
#endif

struct gpuarb;
struct gpuarb_lease;

/* ---- connection ------------------------------------------------------------------ */

/*
 * Connects to the bus at $GPUARB_BUS_ADDRESS, else to the system bus, on a connection of its own.
 * On failure *ret is NULL, and gpuarb_last_error(NULL) has the sentence for the calling thread.
 * -ECONNREFUSED: no bus. If there is a bus without a daemon, the first call fails.
 */
int gpuarb_open(struct gpuarb **ret);

/* Closes the connection and frees the handle. Takes NULL. Its leases remain valid until they are
 * closed; functions that call the daemon for them connect again. */
void gpuarb_close(struct gpuarb *gpuarb);

/* The last failure on this handle as a sentence; that of the daemon if it sent one. Never NULL.
 * Valid until the next call with the handle. */
const char *gpuarb_last_error(const struct gpuarb *gpuarb);

/* The D-Bus error name of the last failure, such as "org.gpuarb.Arbiter1.Error.NoCapacity", or
 * "". */
const char *gpuarb_last_error_name(const struct gpuarb *gpuarb);

/* The reason why one GPU does not fit. The handle owns strings and arrays; they are valid until the
 * next call with it. */
struct gpuarb_refusal {
	const char *gpu; /* PCI address */

	/* "cus", "shader-engines", "shape", "queues", "processes", "sdma", "sdma-xgmi", "vram",
	 * "cooperative", "quota", "policy", "drain", "unmanaged", "oversubscribed", "absent",
	 * "floor", "mask", "unmasked", "exclusive", "graphics", "reset". */
	const char *reason;
	uint64_t asked, free; /* in the unit of the reason: CUs, slots, bytes */
	const char *hint;     /* a sentence: what would fit */
	bool retry;           /* the request may fit later */

	/* In the first refusal of a plan: the leases whose end would make room for the whole
	 * request, as few and as cheap as possible. end_exact: no cheaper choice exists. */
	const uint64_t *end;
	size_t n_end;
	bool end_exact;
};

/* The *ret_n refusals of the last failed reserve or resize, or of the last plan; maybe 0. */
const struct gpuarb_refusal *gpuarb_last_refusals(const struct gpuarb *gpuarb, size_t *ret_n);

/* A process that has queues on a GPU and no lease. */
struct gpuarb_process {
	uint32_t pid, uid; /* uid UINT32_MAX: unknown */
	const char *command;
	uint32_t queues;
};

/*
 * The facts of a refusal, for programs that react to it: which number to change, which lease to
 * end. Facts that do not apply are 0, NULL or "". Later versions add members at the end: read only
 * members that are within size.
 */
struct gpuarb_refusal_facts {
	size_t size; /* bytes of this structure that the library filled in */

	/* What asked, free, total, limit and held count: cus shader-engines queues processes
	 * sdma-queues sdma-xgmi-queues vram (bytes) cooperative leases gpus class priority; "": nothing */
	const char *resource;
	uint64_t total;    /* of the GPU */
	uint64_t reserved; /* queue slots that reserve-queues excludes from leases */

	/* The key of the tenant (max-cus, class, …) or of the want (cus-min, cus-max) whose value
	 * `limit` is. held: what user `uid` holds under the tenant. */
	const char *key;
	uint64_t limit, held;
	const char *tenant;
	uint32_t uid;
	const char *asked_class, *limit_class; /* where class is the key */

	/* Amounts that would pass this check: on the GPU at this moment if the request may fit
	 * later, else on an idle GPU. */
	const uint64_t *fits;
	size_t n_fits;
	const char *fits_resource; /* what they count */

	/* Leases that hold the resource on the GPU, the largest share first; lease_count in
	 * total. */
	const uint64_t *leases;
	size_t n_leases;
	uint32_t lease_count;

	/* Processes without a lease that use the GPU, the most queues first; process_count in
	 * total. */
	const struct gpuarb_process *processes;
	size_t n_processes;
	uint32_t process_count;

	uint64_t behind; /* a waiting lease that is granted first; 0: none */

	/* With "preempt = revoke" of this tenant, leases of lower classes would make room. */
	const char *preempt_tenant;

	/* The search for `end` of the refusal stopped early: other leases may make room. */
	bool end_cut;
};

/* The facts of refusal i of gpuarb_last_refusals(), valid as long as that; NULL: no refusal i. */
const struct gpuarb_refusal_facts *gpuarb_last_refusal_facts(const struct gpuarb *gpuarb, size_t i);

/* ---- requests -------------------------------------------------------------------- */

#define GPUARB_PRIORITY_DEFAULT UINT32_MAX
#define GPUARB_PRIORITY_BY_CLASS (UINT32_MAX - 1) /* since 0.2 */
#define GPUARB_FOREVER UINT64_MAX

/* What is requested of one GPU. Initialise it with GPUARB_WANT_INIT. Members that are 0 or NULL
 * have their defaults. One of cus, cus_percent and shader_engines must be set. */
struct gpuarb_want {
	size_t size; /* set by GPUARB_WANT_INIT */
	/* "any", an index, or a PCI address; several of these with commas: one of them; NULL: "any" */
	const char *gpu;
	uint32_t cus; /* number of compute units */

	/* Number of whole shader engines; with cus: number of shader engines to spread the CUs
	 * over. */
	uint32_t shader_engines;
	uint32_t cus_min; /* accept no fewer CUs; 0: nine tenths of cus */
	uint32_t cus_max; /* best effort: accept up to this many CUs; 0: cus */
	bool exact;       /* refuse instead of granting another number of CUs than cus */

	/* "rectangle": the same number of CUs in each shader engine; "any"; NULL: "rectangle". */
	const char *shape;
	uint32_t queues;      /* hardware queues of all processes; 0: 2 + streams per process */
	uint32_t streams;     /* masked streams per process; each needs a queue */
	uint32_t processes;   /* 0: 1 */
	uint32_t sdma_queues; /* of the SDMA engines for PCIe; 0: none */
	uint64_t vram;        /* bytes to be promised; 0: those of the tenant */
	bool cooperative;     /* cooperative launches, which one lease per GPU can have */
	/* 0 to 15; GPUARB_PRIORITY_DEFAULT: normal; GPUARB_PRIORITY_BY_CLASS: of class realtime the
	 * highest that its tenant allows, else normal */
	uint32_t priority;
	const char *isolation;     /* "shader-engine", "cu", "shared"; NULL: by class */
	uint32_t sdma_xgmi_queues; /* queues of the SDMA engines for XGMI; 0: none */

	/* Since 0.2: instead of cus, cus_min and cus_max, percent of the CUs of each GPU that may be
	 * chosen, rounded down; 0: not. */
	uint32_t cus_percent, cus_min_percent, cus_max_percent;
};

/* All members in their order, because C++ before C++20 has no designated initialisers. */
/* clang-format off */
#define GPUARB_WANT_INIT                                                                 \
	{ sizeof(struct gpuarb_want), NULL, 0, 0, 0, 0, false, NULL, 0, 0, 0, 0, 0, false, \
	  GPUARB_PRIORITY_DEFAULT, NULL, 0, 0, 0, 0 }
/* clang-format on */

/* Options of a request. Initialise it with GPUARB_OPTIONS_INIT. NULL instead of the structure, and
 * members that are 0 or NULL, are the defaults. */
struct gpuarb_options {
	size_t size;             /* set by GPUARB_OPTIONS_INIT */
	const char *lease_class; /* "realtime", "guaranteed", "besteffort"; NULL: the tenant's */
	const char *name;        /* shown to people; NULL: none */
	const char *tenant;      /* NULL: the first tenant that matches the caller */
	/* A repeated request with the same token returns the same lease. So does one for some GPUs of a granted lease that
	 * is not adaptable; gpuarb_lease_environment() is for these GPUs then. */
	const char *token;

	/* How long to wait for room, in microseconds; 0: fail instead of waiting; GPUARB_FOREVER:
	 * no limit. */
	uint64_t wait_usec;
	bool start_inactive; /* realtime: lend the CUs until gpuarb_lease_activate() */

	/* Best effort: the holder applies and acknowledges every change, so the daemon may grant
	 * more or fewer CUs later: at least cus_min; if that is 0, what a fixed lease would get. */
	bool adaptable;

	/* A pidfd: bind this process when the lease is granted; -1: none. The library copies it.
	 * gpuarb_plan() ignores it. */
	int process_fd;

	/* Realtime: "active": while the lease is active, adaptable leases on its GPUs are paused,
	 * and all else there refuses it; NULL: as the tenant. */
	const char *exclusive;

	/* If the lease is revoked for a lease of a higher class, it waits again. While it is
	 * "revoking", release everything and acknowledge; then it is "waiting". */
	bool requeue;

	/* Bind process_fd with the request, instead of by a call after the grant. If the request fails
	 * without an answer of the daemon, as with -EINTR, the process can keep a lease: for a process
	 * that ends then. */
	bool bind_at_once;

	/* How long the lease lasts once it is granted, in microseconds; 0: as the tenant. */
	uint64_t duration_usec;
};

/* clang-format off */
#define GPUARB_OPTIONS_INIT                                                              \
	{ sizeof(struct gpuarb_options), NULL, NULL, NULL, NULL, 0, false, false, -1, NULL, false, \
	  false, 0 }
/* clang-format on */

/*
 * Reserves n partitions (1 to 256) on n different GPUs: all or none. The lease lives while a copy
 * of its holder (gpuarb_lease_fd()) is open in any process, or while a bound process lives. Close
 * *ret with gpuarb_lease_close().
 *
 * If there is no room it waits for up to options->wait_usec. The daemon then decides how the wait
 * ends: -ETIMEDOUT; -ENOSPC, -EACCES or -ENODEV when the request can no longer be granted;
 * -ESHUTDOWN; -ENOENT when somebody released the lease. A signal ends the wait with -EINTR. After
 * every failure nothing is left behind. CUs that other leases borrow count as room: it waits for
 * them even without wait_usec, and fails with -EBUSY if they are not returned.
 *
 * The lease is "granted"; or "inactive", after start_inactive or if the token found a lease that
 * was deactivated. If the token finds a lease that waits, the result is -EBUSY without wait_usec;
 * for a lease that is being revoked it is -EBADFD.
 *
 * options->process_fd is bound by a second call, after the grant. If that fails the lease is given
 * up, and the failure is the one of binding. The daemon is asked to end the lease without waiting
 * for its answer, because the process may have been bound by a call whose answer was lost.
 */
int gpuarb_reserve(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
		   const struct gpuarb_options *options, struct gpuarb_lease **ret);

/*
 * The same without waiting for the grant, for programs with an event loop. The lease may be
 * "waiting", for up to options->wait_usec from now: poll gpuarb_lease_fd() and call
 * gpuarb_lease_dispatch(), or call gpuarb_lease_wait(), as often as necessary. Close the lease to
 * stop waiting. After -EINTR nothing is left behind. A waiting lease has no partitions:
 * gpuarb_lease_partitions() is 0. A lease that is "activating" has them, and borrowers still use
 * some of its CUs.
 *
 * options->process_fd is bound by this function if the lease is granted at once, else by the
 * gpuarb_lease_wait() that finds it granted.
 */
int gpuarb_reserve_start(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
			 const struct gpuarb_options *options, struct gpuarb_lease **ret);

/*
 * Binds this process to a lease of the same user that another program holds, and returns a handle of it:
 * to create queues with its masks. There is no holder: gpuarb_lease_fd() is -1, gpuarb_lease_dispatch()
 * reports nothing, and changes of the lease are not noticed. The lease lives at least as long as this
 * process. -ENOENT: there is no such lease; -EACCES: it is of another user; -EBADFD: it waits or ends.
 */
int gpuarb_lease_join(struct gpuarb *gpuarb, uint64_t id, struct gpuarb_lease **ret);

/* One partition of a plan or a lease, which owns the strings and arrays. */
struct gpuarb_partition {
	const char *gpu;     /* PCI address */
	uint32_t kfd_gpu_id; /* 0: a simulated GPU */
	uint32_t sdma_xgmi_queues;
	const uint32_t *cu_mask; /* in KFD bit order: bit i % 32 of word i / 32 */
	size_t cu_mask_words;
	uint32_t cus, cus_asked;

	/* The number of (XCC, shader engine) pairs in use times the fewest CUs in one of them. The
	 * time of a kernel is about inversely proportional to it. */
	uint32_t effective_cus;
	const uint32_t *shader_engines; /* the numbers of those in use */
	size_t n_shader_engines;
	uint32_t queues, streams, processes, sdma_queues;
	uint64_t vram;     /* bytes */
	uint32_t priority; /* 0 to 15 */
	bool paused;       /* adaptable: the queues on this GPU have to be inactive */
	bool exclusive;    /* realtime: others on this GPU pause while the lease is active */

	/* How strictly it is kept: "cooperative", "verified", "capped", "hardware": gpuarb(7). */
	const char *tier;
	const char *const *gaps; /* what is not isolated; gpuarb(7) has the names */
	size_t n_gaps;

	/* The priorities observed on the queues of the lease, ascending; n 0: unknown. Only
	 * gpuarb_look() fills it. */
	const uint32_t *priorities_seen;
	size_t n_priorities_seen;
};

/* Makes the decision of gpuarb_reserve() without reserving anything. *ret_result is "granted",
 * "waiting" or "refused", valid until the next call with the handle. gpuarb_last_plan() has the
 * partitions as they are once others have made room: an adaptable lease may begin with fewer CUs.
 * gpuarb_last_refusals() has the refusals. */
int gpuarb_plan(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
		const struct gpuarb_options *options, const char **ret_result);

/* Administrators: the same for a user in these groups. */
int gpuarb_plan_as(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
		   const struct gpuarb_options *options, uint32_t uid, const uint32_t *groups,
		   size_t n_groups, const char **ret_result);

/* The *ret_n partitions of the last plan, valid until the next call with the handle. */
const struct gpuarb_partition *gpuarb_last_plan(const struct gpuarb *gpuarb, size_t *ret_n);

/* An adaptable lease that would get a smaller mask on one GPU. */
struct gpuarb_shrink {
	uint64_t lease;
	const char *gpu; /* PCI address */
	uint32_t from_cus, to_cus;
};

/* What the request of the last plan would take from other leases: what they have when nothing changes any more, if
 * holders acknowledge at once, nothing else happens and no lease waits. Later versions add members at the end: read
 * only members that are within size. */
struct gpuarb_effects {
	size_t size; /* bytes of this structure that the library filled in */
	const struct gpuarb_shrink *shrinks;
	size_t n_shrinks;
	const uint64_t *revokes; /* leases that would be revoked, because policy allows it */
	size_t n_revokes;

	/* The grant follows within this time, even if no holder answers; GPUARB_FOREVER: policy does
	 * not allow to kill one of them. */
	uint64_t within_usec;

	/* Adaptable leases that would be paused while the lease is active (exclusive), and those that
	 * would be given other CUs. */
	const uint64_t *pauses, *moves;
	size_t n_pauses, n_moves;
};

/* How long the planned lease would last once it is granted, in microseconds; 0: without limit. */
uint64_t gpuarb_last_plan_duration(const struct gpuarb *gpuarb);

/* Valid until the next call with the handle; NULL: the last plan takes nothing from other leases. */
const struct gpuarb_effects *gpuarb_last_plan_effects(const struct gpuarb *gpuarb);

/* ---- a lease --------------------------------------------------------------------- */

/* Closes this program's holder and frees the lease. The lease ends unless another copy of the
 * holder is open or a bound process lives. Takes NULL. Does not block, except with an agent
 * (gpuarb_lease_start_agent()). */
void gpuarb_lease_close(struct gpuarb_lease *lease);

/* Ends the lease for all its holders and bound processes. Frees it in any case, also on failure. */
int gpuarb_lease_release(struct gpuarb_lease *lease);

/*
 * The following functions return the last known state of the lease. They do not call the daemon;
 * the state changes in gpuarb_lease_dispatch(), gpuarb_lease_wait() and calls that change the
 * lease. Strings are valid until then.
 */
uint64_t gpuarb_lease_id(const struct gpuarb_lease *lease);
/* Counts the changes of the partitions. */
uint64_t gpuarb_lease_generation(const struct gpuarb_lease *lease);
const char *gpuarb_lease_reason(const struct gpuarb_lease *lease); /* for the state; "": none */

/*
 *	"waiting"     there is no room yet; the lease ends at the deadline
 *	"granted"     the CUs of its masks are its own. With a deadline: the masks became smaller;
 *		      apply and acknowledge them before the deadline
 *	"inactive"    realtime: the CUs are reserved and lent meanwhile; work of this lease shares
 *		      them with borrowers
 *	"activating"  borrowers are returning the CUs, at the latest at the deadline
 *	"revoking"    the lease ends at the deadline, or when it is acknowledged
 *	"ending"      the lease has ended
 */
const char *gpuarb_lease_state(const struct gpuarb_lease *lease);

/* In microseconds of CLOCK_BOOTTIME; UINT64_MAX: none. */
uint64_t gpuarb_lease_deadline(const struct gpuarb_lease *lease);

/* How long the lease lasts once it is granted, in microseconds; 0: without limit, or the daemon does not tell.
 * At the end it is revoked. */
uint64_t gpuarb_lease_duration(const struct gpuarb_lease *lease);

/* The number of partitions. They are in the order of the wants. */
size_t gpuarb_lease_partitions(const struct gpuarb_lease *lease);

/* Partition i (from 0) and its members; NULL or 0 if there is no partition i. Pointers are valid
 * until the lease is dispatched, waited for, resized, activated, deactivated or closed. */
const struct gpuarb_partition *gpuarb_lease_partition(const struct gpuarb_lease *lease, size_t i);
const char *gpuarb_lease_gpu(const struct gpuarb_lease *lease, size_t i);
const uint32_t *gpuarb_lease_cu_mask(const struct gpuarb_lease *lease, size_t i, size_t *ret_words);
unsigned gpuarb_lease_cus(const struct gpuarb_lease *lease, size_t i);
unsigned gpuarb_lease_effective_cus(const struct gpuarb_lease *lease, size_t i);
unsigned gpuarb_lease_queues(const struct gpuarb_lease *lease, size_t i);
unsigned gpuarb_lease_streams(const struct gpuarb_lease *lease, size_t i);
unsigned gpuarb_lease_processes(const struct gpuarb_lease *lease, size_t i);
unsigned gpuarb_lease_priority(const struct gpuarb_lease *lease, size_t i);

/* How many CUs of partition i (of a realtime lease: of its shader engines) queues of others cover that no lease grants
 * them. gpuarb_lease_dispatch() returns 1 when it changes: a program can slow down until it is 0 again.
 * gpuarb_lease_alone(): whether no queue of others covers a CU of any partition, as gpuarb_view_alone(). */
unsigned gpuarb_lease_disturbed_cus(const struct gpuarb_lease *lease, size_t i);
bool gpuarb_lease_alone(const struct gpuarb_lease *lease);

/* How often the driver has reset a GPU of the lease: when it grows, the program has lost its queues there, and has to
 * be started again. gpuarb_lease_resetting(): a reset has not ended, so that no program gets queues, or a program that has lost
 * its queues. */
uint64_t gpuarb_lease_resets(const struct gpuarb_lease *lease);
bool gpuarb_lease_resetting(const struct gpuarb_lease *lease);

/* Asks the daemon for the position in the waiting queue, from 1; 0: the lease does not wait. */
int gpuarb_lease_position(struct gpuarb_lease *lease, unsigned *ret);

/*
 * The holder. The lease owns the fd. Poll it for POLLIN, then call gpuarb_lease_dispatch(). It is
 * close-on-exec. To pass the lease on, duplicate the fd, send it by SCM_RIGHTS, or clear the flag:
 * every copy in any process keeps the lease alive until it is closed.
 */
int gpuarb_lease_fd(const struct gpuarb_lease *lease);

/*
 * Waits while the lease is "waiting" or "activating", for up to usec microseconds (GPUARB_FOREVER:
 * no limit), then binds the process of options->process_fd. Returns 0 when the lease is "granted",
 * and at once when it is "inactive": call gpuarb_lease_activate() first to wait for its CUs.
 *
 * The lease is unchanged, and can be waited for again, after -ETIMEDOUT without an error name,
 * after -EINTR, and after a failure to bind. -EBADFD: the lease is "revoking" and still exists. If
 * it has ended: the errors of gpuarb_lease_dispatch().
 */
int gpuarb_lease_wait(struct gpuarb_lease *lease, uint64_t usec);

/*
 * Reads the changes that the daemon has sent through the holder, without calling the daemon or
 * blocking. Calls callback (NULL: none) once for each change of state, deadline, reason or
 * generation; partitions change together with the generation. The callback may use the lease but
 * not close it. Returns the number of changes.
 *
 * After the end of the lease it calls the callback and then returns the reason of the end, with the
 * daemon's sentence: -ETIMEDOUT: the deadline passed while it waited; -ENOSPC, -EACCES, -ENODEV: it
 * waited and can no longer be granted; -ESHUTDOWN; -ENOENT: any other end, such as a release or a
 * revocation. -ECONNRESET: the daemon closed the holder without a reason. -EPROTO: invalid data. A
 * restart of the daemon is not visible here.
 */
typedef void (*gpuarb_lease_changed_t)(struct gpuarb_lease *lease, void *userdata);
int gpuarb_lease_dispatch(struct gpuarb_lease *lease, gpuarb_lease_changed_t callback,
			  void *userdata);

/* Requests other partitions on the same GPUs: one want for each partition, in their order. The
 * masks, and the bases of an adaptable lease, change at once, or when other leases have returned
 * CUs that they borrowed. CUs and queues that the lease gave up remain charged to it until
 * gpuarb_lease_acknowledge(), because only the holder can take them from its queues. An adaptable
 * lease gets new bounds: without cus its limit stays, and without cus_min its base stays, as far as
 * cus allows. */
int gpuarb_lease_resize(struct gpuarb_lease *lease, const struct gpuarb_want *wants, size_t n);

/* Acknowledges the generation: every queue of the holder has the present masks. Acknowledging a
 * lease that is "revoking" ends it. With an agent: see gpuarb_lease_start_agent(). */
int gpuarb_lease_acknowledge(struct gpuarb_lease *lease);

/*
 * Activates a realtime lease: reclaims its CUs from the leases that borrow them. Deactivates it:
 * lends its CUs. Both call the daemon and do not wait for borrowers. After activating the state is
 * "granted", or "activating" until every borrower has returned its CUs: gpuarb_lease_wait() waits
 * for that. After deactivating it is "inactive". Changes that the holder reported before are read
 * by these functions, so gpuarb_lease_dispatch() reports later changes only. The masks do not
 * change: work of an inactive lease disturbs borrowers, and they disturb it.
 *
 * -EBADFD: activate: the lease is not inactive; deactivate: it is inactive already, waits, is being
 * revoked, or is not realtime. If it has ended: the errors of gpuarb_lease_dispatch().
 */
int gpuarb_lease_activate(struct gpuarb_lease *lease);
int gpuarb_lease_deactivate(struct gpuarb_lease *lease);

/* Binds one more process to the lease, by a pidfd. The process must belong to the same user.
 * -EINVAL: not an open fd. The caller keeps the fd. */
int gpuarb_lease_bind(struct gpuarb_lease *lease, int process_fd);

/*
 * Makes the environment in which the runtime of an unmodified ROCm program masks every queue when
 * it is created. *ret is NULL-terminated: "NAME=value" is to be set, "NAME" to be unset. Free it
 * with one free(). It is made for the GPUs that this process sees. Does not call the daemon.
 * GPUARB_EFFECTIVE_CUS has the effective CUs of each partition, separated by commas.
 *
 * GPU_MAX_HW_QUEUES stays if it is set to less than what the queues of the lease allow.
 *
 * -EEXIST: HSA_CU_MASK or ROC_GLOBAL_CU_MASK is set already, or ROCR_VISIBLE_DEVICES hides a GPU of
 * the lease. -ENODEV: this process cannot see a GPU of the lease. -ERANGE: the queues of the lease
 * are too few for HIP. -EBADFD: the lease is not granted, or has no CUs at the moment.
 */
int gpuarb_lease_environment(struct gpuarb_lease *lease, char ***ret);

/*
 * Lets the kernel refuse queues beyond the grant, for this thread and all programs that it starts
 * from now on: installs a seccomp filter, and passes its listener to gpuarbd. Call it just before
 * exec(), in a process that is bound to the lease. Sets no_new_privs: setuid and setgid programs and
 * those with file capabilities then start without additional rights. always false: only if the
 * tenant's policy says "cap = yes". Returns 1: capped, or 0: not asked for by the policy.
 *
 * -EBUSY: a filter with a listener is installed already. -EOPNOTSUPP: the kernel or the daemon
 * cannot do it. -EBADFD: the lease waits or is ending. -EIO: gpuarbd did not answer the first call.
 * After a failure the filter may be installed, and then no queue can be created: do not go on.
 */
int gpuarb_lease_cap(struct gpuarb_lease *lease, bool always);

/* ---- snapshots ------------------------------------------------------------------- */

struct gpuarb_gpu {
	const char *name, *device, *gfx_target;       /* name: PCI address */
	uint32_t kfd_gpu_id;                          /* 0: a simulated GPU */
	uint32_t xccs, shader_engines, shader_arrays; /* engines per XCC, arrays per engine */
	uint32_t cus, cus_free;                       /* cus_free: in no mask of a lease */
	const uint32_t *cus_per_shader_engine;        /* [xccs][shader_engines]; NULL: unknown */
	const uint32_t *cus_per_shader_array; /* [xccs][shader_engines][shader_arrays]; or NULL */
	bool wgp_mode;                        /* CUs are masked in pairs (gfx10 and later) */
	bool harvest_known; /* false: the numbers of CUs per shader engine are a guess */

	/* That the time of a large kernel is a / effective CUs + b was "measured" on this target, is
	 * "derived" from another target of its generation, or is "assumed". */
	const char *law;
	uint32_t queue_slots, queue_slots_free, process_slots, process_slots_free;
	uint32_t pipes, queues_per_pipe, sdma_queues, sdma_xgmi_queues;
	uint64_t vram_bytes, vram_free;
	const char *scheduler;                  /* "hws", "hws-strict", "none", "mes", "unknown" */
	const struct gpuarb_process *unmanaged; /* at most 64 */
	size_t n_unmanaged;
	bool oversubscribed; /* more is in use than the GPU has: it grants nothing then */
	bool draining;       /* an administrator has stopped new grants */
};

/*
 * Which of the n GPUs of a snapshot a ROCm program sees that this process starts, in ret[n], by the variables
 * ROCR_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES and GPU_DEVICE_ORDINAL of this process. Returns 1;
 * or 0: none of them is set, and ret is not touched. With n = 0 it tells no more than that. Does not call the daemon.
 * -ENODEV: they show none.
 */
int gpuarb_visible_gpus(struct gpuarb *gpuarb, const struct gpuarb_gpu *gpus, size_t n, bool *ret);

/* A lease of any user. */
struct gpuarb_lease_info {
	uint64_t id;
	const char *name, *state, *lease_class, *tenant;
	uint32_t owner_uid, owner_pid; /* pid 0: unknown */
	const char *owner_unit;        /* of systemd; "": none */
	bool adaptable;
	uint64_t generation;
	const char *tier; /* the weakest of its partitions */
	const struct gpuarb_partition *partitions;
	size_t n_partitions;
	uint32_t position;  /* in the waiting queue, from 1; 0: it does not wait */
	const char *reason; /* for the state; "": none */
	uint64_t deadline;  /* as gpuarb_lease_deadline() */

	/* Of a realtime lease: how often the mask change of another lease's queue preempted it
	 * while it was active. */
	uint64_t disturbances;
};

/* All GPUs and leases at one moment. Strings and arrays are valid until it is freed. */
struct gpuarb_view;

int gpuarb_look(struct gpuarb *gpuarb, struct gpuarb_view **ret); /* free it with the next */
void gpuarb_view_free(struct gpuarb_view *view);                  /* takes NULL */
const char *gpuarb_view_version(const struct gpuarb_view *view);  /* of the daemon */

/* Whether the kernel limits the queues of units: "enforced"; "unused", no tenant has cap = yes; "", the
 * daemon is too old to say; otherwise the reason why it does not. */
const char *gpuarb_view_queue_budgets(const struct gpuarb_view *view);

/* These return the number of elements of *ret. */
size_t gpuarb_view_tenants(const struct gpuarb_view *view, const char *const **ret);

/* The keys of gpuarbd.conf that were changed, and wait for a restart of gpuarbd. Returns how many. */
size_t gpuarb_view_restart_keys(const struct gpuarb_view *view, const char *const **ret);
size_t gpuarb_view_gpus(const struct gpuarb_view *view, const struct gpuarb_gpu **ret);
size_t gpuarb_view_leases(const struct gpuarb_view *view,
			  const struct gpuarb_lease_info **ret); /* sorted by id */

/* How equally the adaptable leases on GPU i of gpuarb_view_gpus() share it: Jain's index of their
 * CUs for each unit of weight of their tenants. 1 if all have as many, or there are none; 1/n if
 * one of n has all. NAN: there is no GPU i, or the daemon does not tell. */
double gpuarb_view_fairness(const struct gpuarb_view *view, size_t i);

/* Floors of tenants (reserved-cus and others) that add up to more than GPU i of gpuarb_view_gpus() has: a
 * sentence that names the key, the sum and the tenants. "": they fit, there is no GPU i, or the daemon
 * does not tell. */
const char *gpuarb_view_floor_excess(const struct gpuarb_view *view, size_t i);

/* Whether a process draws on GPU i of gpuarb_view_gpus(): its work has no CU mask. "drawn"; "none";
 * "unknown": not observed, or not all processes were; "": there is no GPU i, or the daemon does not
 * tell. */
const char *gpuarb_view_graphics(const struct gpuarb_view *view, size_t i);

/* A process that has a GPU open through the graphics driver (DRM). Later versions add members at the
 * end. */
struct gpuarb_client {
	uint32_t pid, uid; /* uid UINT32_MAX: unknown */
	const char *command;
	uint64_t lease; /* that the process belongs to; 0: none */
	bool draws;     /* it has used the graphics or compute rings of the driver */

	/* The part of the time between the last two observations that engines worked for it, 0 to 1;
	 * and nanoseconds since it opened the GPU. */
	double gfx_share, compute_share, dma_share;
	uint64_t gfx_nsec, compute_nsec, dma_nsec;
	uint64_t vram, gtt; /* resident bytes */
};

/* Client n of GPU i, those that draw first; at most 64. NULL: there is none. */
const struct gpuarb_client *gpuarb_view_client(const struct gpuarb_view *view, size_t i, size_t n);

/* Lets the daemon observe which processes have GPUs open through the graphics driver, before a
 * snapshot: it does so on its own only while leases or processes use GPUs. */
int gpuarb_observe_clients(struct gpuarb *gpuarb);

/* Why lease i of gpuarb_view_leases() still waits: the refusal that the last decision about it
 * was made for. NULL: it does not wait, or the daemon does not tell. */
const struct gpuarb_refusal *gpuarb_view_waits_for(const struct gpuarb_view *view, size_t i,
						   const struct gpuarb_refusal_facts **ret_facts);

/* How long lease i of gpuarb_view_leases() was paused. */
struct gpuarb_pause {
	uint64_t count; /* of all pauses */
	uint64_t usec;  /* in all the pauses that have ended */
	uint64_t since; /* when the present one began, in microseconds of CLOCK_BOOTTIME; 0: none */
};

/* NULL: there is no lease i. */
const struct gpuarb_pause *gpuarb_view_pause(const struct gpuarb_view *view, size_t i);

/* How what is observed of a lease exceeds what it was granted, for longer than drift-grace. */
struct gpuarb_drift {
	size_t size; /* of the structure that the library fills */
	const char
		*kind; /* "mask", "queues", "processes", "sdma-queues", "sdma-xgmi-queues", "vram",
			   * "priority" */
	const char *gpu;            /* PCI address */
	uint64_t granted, observed; /* CUs, a count, bytes or a priority, after the kind */
	uint64_t since; /* when it was first observed, in microseconds of CLOCK_BOOTTIME */
	uint32_t pid;   /* of the queue, for "mask"; 0: unknown */
};

/* The drift of lease i with this number, from 0; NULL: there are no more. */
const struct gpuarb_drift *gpuarb_view_drift(const struct gpuarb_view *view, size_t i,
					     size_t number);

/* A process that disturbs a lease: its queues cover CUs of the lease that no lease grants it, or shader
 * engines of a realtime lease; or it draws where policy minds. */
struct gpuarb_intruder {
	size_t size;         /* of the structure that the library fills */
	const char *gpu;     /* PCI address */
	uint32_t pid, uid;   /* uid UINT32_MAX: unknown */
	const char *command; /* "": unknown */
	uint64_t lease;      /* of the process; 0: none */
	uint64_t since;      /* when it was first observed, in microseconds of CLOCK_BOOTTIME */
	uint32_t cus;        /* that it covers of the lease, or of its shader engines */
	bool draws;          /* with the graphics driver, on all CUs */
};

/* Who disturbs lease i now, from number 0; NULL: there are no more. At most four of each GPU, those with the
 * most CUs. */
const struct gpuarb_intruder *gpuarb_view_intruder(const struct gpuarb_view *view, size_t i,
						   size_t number);

/* Whether no queue of others covers a CU of lease i, and nobody draws where policy minds. false: not,
 * gpuarbd cannot read the masks of queues, the lease is inactive, or the daemon does not tell. */
bool gpuarb_view_alone(const struct gpuarb_view *view, size_t i);

/* The compute queues of one process on a GPU, as their descriptors show them. */
struct gpuarb_cover {
	size_t size;         /* of the structure that the library fills */
	uint32_t pid, uid;   /* uid UINT32_MAX: unknown */
	const char *command; /* "": unknown */
	uint64_t lease;      /* of the process on this GPU; 0: none */
	uint32_t queues;
	uint32_t cus,
		outside_cus; /* CUs that they cover, and those that no lease of it grants it */
	const uint32_t *cu_mask, *outside_mask; /* in KFD bit order */
	size_t cu_mask_words, outside_mask_words;
};

/* The processes with queues on GPU i of gpuarb_view_gpus(), from number 0; NULL: there are no more. */
const struct gpuarb_cover *gpuarb_view_cover(const struct gpuarb_view *view, size_t i,
					     size_t number);

/* When the masks of the queues on GPU i were last read, in microseconds of CLOCK_BOOTTIME. 0: they
 * cannot be, or the daemon does not tell. */
uint64_t gpuarb_view_masks_observed(const struct gpuarb_view *view, size_t i);

/* Why gpuarbd cannot read the masks of queues on GPU i, a sentence. "": it can, it has not tried, there
 * is no GPU i, or the daemon does not tell. */
const char *gpuarb_view_unseen(const struct gpuarb_view *view, size_t i);

/* Who measured the law of GPU i (gpuarb_gpu.law), or the target that it is derived from. "": nobody, there
 * is no GPU i, or the daemon does not tell. */
const char *gpuarb_view_law_source(const struct gpuarb_view *view, size_t i);

/* The part b of the time a / effective CUs + b in percent of the time on the whole GPU i: the median of
 * the kernels that were measured. 0: unknown, as above. */
unsigned gpuarb_view_law_constant(const struct gpuarb_view *view, size_t i);

/* Whether policy lets only requests that name GPU i have it (any = no). false: not, there is no GPU i, or
 * the daemon does not tell. */
bool gpuarb_view_named_only(const struct gpuarb_view *view, size_t i);

/* Whether vram_bytes of GPU i, an APU, is what it may have of the memory of the machine. false: not, there
 * is no GPU i, or the daemon does not tell. */
bool gpuarb_view_system_memory(const struct gpuarb_view *view, size_t i);

/* Whether the memory of GPU i runs short: more than 15/16 of it are in use, until less than 7/8 are, or
 * leases were promised more than others leave free. false: not, there is no GPU i, or the daemon does not
 * tell. */
bool gpuarb_view_vram_pressure(const struct gpuarb_view *view, size_t i);

/* The memory that GPU i uses: partitions of one card with the same value share it. "": there is no GPU i, or the
 * daemon does not tell. */
const char *gpuarb_view_memory(const struct gpuarb_view *view, size_t i);

/* The waiting lease that GPU i is kept for: no lease that ranks behind it is granted anything there. 0: none,
 * there is no GPU i, or the daemon does not tell. */
uint64_t gpuarb_view_barred_for(const struct gpuarb_view *view, size_t i);

/* How much longer a kernel took beside others with own CUs. */
struct gpuarb_slowdown {
	const char *kind; /* what the others used most: "memory", "compute" */
	uint32_t neighbours;
	uint32_t slowdown; /* percent of the time alone */
};

/* What the owner of a GPU measured on it with gpuarbctl calibrate. */
struct gpuarb_calibration {
	size_t size;      /* of the structure that the library fills */
	const char *date; /* "2026-11-23"; "": gpuarbd uses no report */
	const char
		*problem; /* why it does not use the report that is there; "": it does, or none */
	uint32_t preemption_usec; /* that a change of a mask stops the other queues; 0: unknown */
	const struct gpuarb_slowdown *slowdowns;
	size_t n_slowdowns;
};

/* The calibration of GPU i of gpuarb_view_gpus(). NULL: there is no GPU i, or the daemon does not tell. */
const struct gpuarb_calibration *gpuarb_view_calibration(const struct gpuarb_view *view, size_t i);

/* How often and how long the driver had evicted queues of lease i, as far as gpuarbd knows: the driver
 * does not report every eviction. NULL: there is no lease i. */
const struct gpuarb_pause *gpuarb_view_evictions(const struct gpuarb_view *view, size_t i);

/* Two facts of lease i, of which the tier of a partition names one. Verified: gpuarbd has read from the
 * hardware that all queues of the lease keep to its masks. Capped: the kernel refuses queues beyond the
 * grant. */
bool gpuarb_view_verified(const struct gpuarb_view *view, size_t i);
bool gpuarb_view_capped(const struct gpuarb_view *view, size_t i);

/* Why lease i is not capped although it ought to be: "process", "filter", "sdma-queues", "unit", "kernel",
 * "pending", see CAPPED UNITS in gpuarb-caps(7). "": it is capped, or need not be. */
const char *gpuarb_view_uncapped(const struct gpuarb_view *view, size_t i);

/* How often the driver reset a GPU of lease i. */
uint64_t gpuarb_view_resets(const struct gpuarb_view *view, size_t i);

/* Events of one kind: "reset", "reset-ended", "vm-fault", "throttled", "evicted", "restored",
 * "migration", "unknown". */
struct gpuarb_driver_events {
	const char *kind;
	uint64_t count;
};

/* The events that the driver of GPU i reported since gpuarbd was started, a row for each kind that there
 * was. Returns the number of rows. */
size_t gpuarb_view_driver_events(const struct gpuarb_view *view, size_t i,
				 const struct gpuarb_driver_events **ret);

/* How often lease i, which is adaptable, was given other CUs, so that another request fits. */
uint64_t gpuarb_view_moves(const struct gpuarb_view *view, size_t i);

/* The CUs of the base of a partition of lease i, which is adaptable: it never shrinks below. 0: the lease
 * is fixed, it has no such partition, or the daemon does not tell. */
uint32_t gpuarb_view_cus_min(const struct gpuarb_view *view, size_t i, size_t partition);

/* When lease i was granted, or began to wait, in microseconds of CLOCK_BOOTTIME; 0: unknown. */
uint64_t gpuarb_view_since(const struct gpuarb_view *view, size_t i);

/* How long lease i lasts once it is granted, in microseconds; 0: without limit, or the daemon does not tell. */
uint64_t gpuarb_view_duration(const struct gpuarb_view *view, size_t i);

/* How many queues the kernel has refused to lease i, because it had all that were granted. */
uint64_t gpuarb_view_queue_refusals(const struct gpuarb_view *view, size_t i);

/* Where the members pipes and queues_per_pipe of GPU i come from: "observed": of the registers of the
 * GPU, which a call of gpuarb_read_slots() has read; "table": of a table of GPU models. "": there is no
 * GPU i, or the daemon does not tell. */
const char *gpuarb_view_pipes_source(const struct gpuarb_view *view, size_t i);

/* ---- queue slots ----------------------------------------------------------------- */

/* A hardware queue slot (HQD) of KFD. Later versions add members at the end. */
struct gpuarb_queue_slot {
	uint32_t xcc, pipe;
	uint32_t queue;          /* the number of the slot in its pipe */
	bool active;             /* a queue is in it; the members below are 0 or "" if not */
	uint32_t vmid, priority; /* priority 0 to 15 */
	uint32_t doorbell;       /* identifies the queue on its GPU */
	uint32_t pid;            /* 0: unknown */
	uint64_t lease;          /* 0: the process has none */
	const char *command;     /* of the process; "": unknown */
};

/* The queue slots of one GPU at one moment. */
struct gpuarb_slots;

/*
 * Reads the queue slots of a GPU (a name or an index) from its registers. The driver selects each slot
 * in turn for that, and may wake the GPU: not for a loop. gpuarbd reads once in a second at the most,
 * and answers other calls of that second with the same slots. Free *ret with gpuarb_slots_free().
 *
 * -EOPNOTSUPP: a simulated GPU, or gpuarbd cannot read them. -ETIMEDOUT: the driver did not answer.
 */
int gpuarb_read_slots(struct gpuarb *gpuarb, const char *gpu, struct gpuarb_slots **ret);
void gpuarb_slots_free(struct gpuarb_slots *slots); /* takes NULL */

/* Slot i, sorted by XCC, pipe and queue; NULL: there is no slot i. */
const struct gpuarb_queue_slot *gpuarb_slots_get(const struct gpuarb_slots *slots, size_t i);

/* When they were read, in microseconds of CLOCK_BOOTTIME. */
uint64_t gpuarb_slots_usec(const struct gpuarb_slots *slots);

/* Slot i of the SDMA engines, sorted by engine and slot: pipe is the number of the engine, xcc and priority
 * are 0. NULL: there is no slot i, or the daemon does not tell. */
const struct gpuarb_queue_slot *gpuarb_slots_sdma(const struct gpuarb_slots *slots, size_t i);

/* The compute queues on the GPU. *ret_without, unless NULL: those that were in no slot, because they are
 * inactive or there are more queues than slots. */
unsigned gpuarb_slots_queues(const struct gpuarb_slots *slots, unsigned *ret_without);

/* ---- accounting ------------------------------------------------------------------ */

/* What a user held, waited for and was refused as a tenant, in one class. Later versions add members at
 * the end. */
struct gpuarb_usage_row {
	const char *tenant; /* "": the user matches none */
	uint32_t uid;
	const char *lease_class;
	uint64_t leases, held_usec; /* that were granted, and how long they were held */
	uint64_t cu_usec,
		queue_usec; /* CUs, and queues, times the microseconds that they were held */
	uint64_t waits, waited_usec;
	uint64_t refusals;
};

struct gpuarb_usage;

/*
 * Reads what ended after `since` (seconds of CLOCK_REALTIME; 0: all that the daemon has): whole hours of the
 * last day, before that whole days (UTC). A lease that lasts counts up to now. Free *ret with
 * gpuarb_usage_free().
 */
int gpuarb_read_usage(struct gpuarb *gpuarb, uint64_t since, struct gpuarb_usage **ret);
void gpuarb_usage_free(struct gpuarb_usage *usage); /* takes NULL */

/* Row i, sorted by tenant, user and class; NULL: there is no row i. */
const struct gpuarb_usage_row *gpuarb_usage_get(const struct gpuarb_usage *usage, size_t i);

/* When the first of the hours and days begins, in seconds of CLOCK_REALTIME; 0: there is none. */
uint64_t gpuarb_usage_from(const struct gpuarb_usage *usage);

/* Requests that were refused for a reason: that of a gpuarb_refusal. */
struct gpuarb_refused {
	const char *reason;
	uint64_t count;
};

/* What happened to the requests and leases of a tenant. Later versions add members at the end. */
struct gpuarb_counters_row {
	const char *tenant; /* "": the user matches none, or all tenants beyond 256 */
	uint64_t grants;
	uint64_t waits;       /* leases that began to wait */
	uint64_t revocations; /* leases that their holders did not end */
	uint64_t preemptions; /* leases that are revoked for a waiting one */
	uint64_t moves;       /* to other CUs, for another lease */
	uint64_t drifts; /* times that a lease began to use more, or otherwise more, than granted */
	const struct gpuarb_refused *refusals;
	size_t n_refusals;
};

/* How often something took how long. Later versions add members at the end. */
struct gpuarb_duration {
	const char *name; /* "decision", "activation", "wait": gpuarb-exporter(8) */
	const uint64_t *bounds_usec;
	size_t n_bounds;
	const uint64_t
		*counts; /* n_bounds + 1: up to each bound and above the one before it; the rest */
	size_t n_counts;
	uint64_t sum_usec;
};

struct gpuarb_counters;

/* Reads what happened since gpuarbd was started. Free *ret with gpuarb_counters_free(). */
int gpuarb_read_counters(struct gpuarb *gpuarb, struct gpuarb_counters **ret);
void gpuarb_counters_free(struct gpuarb_counters *counters); /* takes NULL */

/* Row i; NULL: there is no row i. */
const struct gpuarb_counters_row *gpuarb_counters_get(const struct gpuarb_counters *counters,
						      size_t i);
const struct gpuarb_duration *gpuarb_counters_duration(const struct gpuarb_counters *counters,
						       size_t i);

/* When gpuarbd was started, and all were 0: in seconds of CLOCK_REALTIME. */
uint64_t gpuarb_counters_since(const struct gpuarb_counters *counters);

/* ---- limits of users ------------------------------------------------------------- */

/* What one user can have, by the keys of gpuarbd.conf(5) with such names. Later versions add members at
 * the end. */
struct gpuarb_limit_values {
	uint32_t calls, time_percent; /* that are served in a second, and of its time */
	uint32_t pending;             /* calls that wait */
	uint64_t unread_bytes;        /* of answers */
	uint32_t leases;
	uint32_t leases_total, holders_total; /* of all users */
	bool unread_known;                    /* the bus tells what is unread */
};

/* What a user has of them. Later versions add members at the end. */
struct gpuarb_limits_row {
	uint32_t uid;
	bool administrator; /* its calls do not wait */
	uint32_t connections;
	uint64_t calls, calls_delayed, calls_refused, time_usec; /* in total */
	uint32_t pending;
	uint64_t pending_bytes, unread_bytes;
	uint32_t unread_fds;
	uint32_t leases, waiting, holders; /* waiting: of the leases */
};

struct gpuarb_limits;

/* Reads both: what the caller has, or as root what each user has who has called since the daemon connected.
 * Free *ret with gpuarb_limits_free(). */
int gpuarb_read_limits(struct gpuarb *gpuarb, struct gpuarb_limits **ret);
void gpuarb_limits_free(struct gpuarb_limits *limits); /* takes NULL */

const struct gpuarb_limit_values *gpuarb_limits_values(const struct gpuarb_limits *limits);

/* Row i, sorted by user; NULL: there is no row i. */
const struct gpuarb_limits_row *gpuarb_limits_get(const struct gpuarb_limits *limits, size_t i);

/* ---- daemon and changes ---------------------------------------------------------- */

/*
 * Asks the bus to start gpuarbd unless it runs, and waits at most usec microseconds until it is on the
 * bus. Calls do the same, but wait for up to 25 seconds. -ETIMEDOUT: it has not started yet; the bus
 * goes on with that. -ECONNREFUSED: it is not installed for the bus, or has ended at once.
 */
int gpuarb_start(struct gpuarb *gpuarb, uint64_t usec);

/*
 * Calls callback for every change. Blocks until usec microseconds are over (0), a signal handler
 * runs (-EINTR), or the callback calls gpuarb_watch_stop() (0, without further callbacks).
 *
 * The first call has the kind "watching": later changes are reported. Then kind is "lease-added",
 * "lease-changed" or "lease-removed", and what the id of the lease in decimal; or "gpu-added",
 * "gpu-changed" or "gpu-removed", and what the name of the GPU. "daemon-gone" and "daemon-back"
 * report that the daemon or the bus went away and returned; it waits for their return for as long
 * as usec allows. Changes between the two are not reported, so take a new snapshot. Changes between
 * two calls of gpuarb_watch() are not reported either. -ECONNREFUSED: there is no daemon at the
 * beginning.
 *
 * The callback may use the handle but not close it. gpuarb_watch_stop() does nothing outside of a
 * callback; it takes NULL.
 */
typedef void (*gpuarb_changed_t)(const char *kind, const char *what, void *userdata);
int gpuarb_watch(struct gpuarb *gpuarb, uint64_t usec, gpuarb_changed_t callback, void *userdata);
void gpuarb_watch_stop(struct gpuarb *gpuarb);

/* The same, and also returns 0 when stop_fd is readable: so another thread can end it, with a pipe or an
 * eventfd. -1: no such fd. */
int gpuarb_watch_until(struct gpuarb *gpuarb, int stop_fd, uint64_t usec, gpuarb_changed_t callback,
		       void *userdata);

/* ---- leases by number, and administration ---------------------------------------- */

/*
 * Whether polkit may ask a person for a password when a call needs an administrator
 * (org.gpuarb.Arbiter1.manage): draining, reloading, revoking, and changes of leases of other
 * users. False by default: such a call fails at once. With true, calls wait for their answers for
 * up to 130 seconds. Root is never asked. Takes NULL.
 */
void gpuarb_set_interactive(struct gpuarb *gpuarb, bool interactive);

/* How long each call of this handle waits for gpuarbd or the bus before -ETIMEDOUT or -ECONNREFUSED:
 * 25 seconds by default. Takes NULL. */
void gpuarb_set_timeout(struct gpuarb *gpuarb, uint64_t usec);

/* As the functions of a lease, for the owner of the lease and administrators. They do not update
 * the state of a struct gpuarb_lease. */
int gpuarb_release(struct gpuarb *gpuarb, uint64_t id);
int gpuarb_activate(struct gpuarb *gpuarb, uint64_t id);
int gpuarb_deactivate(struct gpuarb *gpuarb, uint64_t id);
int gpuarb_resize(struct gpuarb *gpuarb, uint64_t id, const struct gpuarb_want *wants, size_t n);

/*
 * Administrators: revokes a lease of any user. Its holder receives the reason (NULL: none), and has
 * grace_usec microseconds, at most one day, to finish its work; the lease ends earlier when the
 * holder acknowledges. Then the tenant's policy is applied to processes that still use the GPU.
 * Does not wait for the end. A waiting lease ends at once. A second revocation can only shorten the
 * grace.
 *
 * -EINVAL: grace_usec is more than a day. -EBADFD: the second grace would end later than the first.
 */
int gpuarb_revoke(struct gpuarb *gpuarb, uint64_t id, uint64_t grace_usec, const char *reason);

/* The same, and whatever the tenant's policy says, processes that still use a GPU at the end are killed.
 * -EOPNOTSUPP: the daemon is older than 0.2. */
int gpuarb_terminate(struct gpuarb *gpuarb, uint64_t id, uint64_t grace_usec, const char *reason);

/* Administrators: stop new grants on a GPU (a name or an index), or allow them again. Existing
 * leases are not affected. */
int gpuarb_drain(struct gpuarb *gpuarb, const char *gpu, bool drain);

/* Administrators: the daemon reads its configuration again. -EINVAL: the configuration is invalid,
 * and the previous one remains in force. */
int gpuarb_reload(struct gpuarb *gpuarb);

#ifdef __cplusplus
}
#endif
