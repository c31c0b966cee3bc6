/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * libgpuarb: ask gpuarbd for a part of a GPU, and keep it.
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
 * Errors. Every function that returns int returns a negative errno on failure and leaves
 * its ret arguments as they were (gpuarb_open() alone makes its own NULL):
 *
 *	-EINVAL      invalid request; the sentence names the key
 *	-EBUSY       does not fit now; trying again may help        (NoCapacity)
 *	-ENOSPC      can never fit on this machine                  (NeverFits)
 *	-EDQUOT      above the tenant's quota                       (QuotaExceeded)
 *	-EACCES      policy does not allow it                       (NotPermitted)
 *	-ENODEV      no such GPU
 *	-ENOENT      no such lease; a lease that is gone
 *	-ESRCH       no such tenant
 *	-EEXIST      the token stands for another request           (TokenConflict)
 *	-EBADFD      not in this state                              (InvalidState)
 *	-ERANGE      a budget or a mask leaves nothing to work with
 *	-EOPNOTSUPP  the daemon or this hardware cannot do it
 *	-EIO         the daemon could not save it: nothing granted  (NotSaved)
 *	-EUSERS      too many leases
 *	-ETIMEDOUT   waited too long                                (TimedOut)
 *	-ESHUTDOWN   the daemon is going down
 *	-ECONNREFUSED no bus, or no daemon on it: nothing was done
 *	-ECONNRESET  the daemon or the bus went away in the middle and did not come back in
 *		     time: what was asked may have been done
 *	-EPROTO      the daemon answered what this library does not understand
 *	-EINTR       a signal came; nothing is left behind
 *	-EMFILE      no room for a file descriptor
 *	-ENOMEM
 *
 * and in gpuarb-queues.h those of the driver.
 *
 * Blocking: functions that ask the daemon wait for its answer in poll(); a signal whose
 * handler was installed ends the wait with -EINTR, whatever SA_RESTART says. The daemon
 * answers at once; one that says nothing for 25 seconds is given up with -ETIMEDOUT. Either
 * way a lease that was granted meanwhile ends, as nobody receives it; a release or a resize
 * may have been carried out and can be asked for again. Waiting for a GPU is no call that
 * hangs: it is for the holder to tell, for as long as it takes (gpuarb_reserve()).
 *
 * Restarts: leases and their holders outlive the daemon and the bus; nothing need be done
 * about them. A call that finds the daemon or the bus away where they have been before on
 * this handle, or is cut off by their going, waits until they are back and is sent again:
 * for up to 10 seconds; the failure then says how long. One that was cut off three times is
 * given up, as it may be what the daemon dies of. To repeat a call does no harm: of two
 * Reserves that were granted the first had no holder, and is gone. A daemon that was never
 * seen on this handle is not waited for, nor is a bus by gpuarb_open().
 *
 * Threads: a handle, and the leases made with it, belong to one thread at a time. Several
 * handles may be used at once. Before fork and exec nothing need be done: every fd is
 * close-on-exec, and a child must not use its parent's handles (their fds it may close).
 *
 * The library never calls exit or abort, installs no signal handler, and starts no thread but
 * that of gpuarb_lease_start_agent().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpuarb-queues.h" /* queues that are there already; libraries on top of this one */

#ifdef __cplusplus
extern "C" {
#endif

struct gpuarb;
struct gpuarb_lease;

/* ---- connection ------------------------------------------------------------------ */

/*
 * Connects to $GPUARB_BUS_ADDRESS, else to the system bus, on a connection of its own. On
 * failure *ret is NULL: gpuarb_last_error(NULL) then has the sentence for this thread.
 * -ECONNREFUSED: there is no bus. A bus without a daemon is found by the first call.
 */
int gpuarb_open(struct gpuarb **ret);

/* Closes it. Leases stay what they are: their holders are theirs, and what is asked with
 * them makes a connection anew. Takes NULL. */
void gpuarb_close(struct gpuarb *gpuarb);

/* The last failure on this handle as a sentence, the daemon's own where it gave one.
 * Never NULL; valid until the next call with the handle. */
const char *gpuarb_last_error(const struct gpuarb *gpuarb);

/* The D-Bus error name behind it ("org.gpuarb.Arbiter1.Error.NoCapacity"), "" if none. */
const char *gpuarb_last_error_name(const struct gpuarb *gpuarb);

/* One GPU that refused, and why. Strings are owned by the handle, valid until the next
 * call with it. */
struct gpuarb_refusal {
	const char *gpu;      /* "0000:03:00.0" */
	const char *reason;   /* cus shader-engines shape queues processes sdma vram
			     * cooperative quota policy drain unmanaged oversubscribed
			     * absent */
	uint64_t asked, free; /* in the reason's unit: CUs, slots, bytes */
	const char *hint;     /* what would fit, a sentence */
	bool retry;           /* trying again may help */

	/* Of a plan, in the first refusal: leases whose end would make room for all of it, the
	 * fewest and cheapest; end_exact: nothing cheaper would do. */
	const uint64_t *end;
	size_t n_end;
	bool end_exact;
};

/* Refusals of the last failed reserve or resize, or of the last plan. *ret_n may be 0. */
const struct gpuarb_refusal *gpuarb_last_refusals(const struct gpuarb *gpuarb, size_t *ret_n);

/* ---- asking ---------------------------------------------------------------------- */

#define GPUARB_PRIORITY_DEFAULT UINT32_MAX
#define GPUARB_FOREVER UINT64_MAX

/* What is asked of one GPU. Start from GPUARB_WANT_INIT; zero and NULL are defaults. */
struct gpuarb_want {
	size_t size;             /* set by GPUARB_WANT_INIT */
	const char *gpu;         /* "any", an index, or a PCI address; NULL: any */
	uint32_t cus;            /* compute units aimed at; or … */
	uint32_t shader_engines; /* … whole engines; with both: spread over so many */
	uint32_t cus_min;        /* take no less; 0: nine tenths of cus */
	uint32_t cus_max;        /* best effort: take up to so many; 0: cus */
	bool exact;              /* just that number of CUs or a refusal */
	const char *shape;       /* "rectangle", "any"; NULL: rectangle */
	uint32_t queues;         /* hardware queues in all; 0: 2 + streams for each process */
	uint32_t streams;        /* masked streams per process, a queue each */
	uint32_t processes;      /* 0: 1 */
	uint32_t sdma_queues;
	uint64_t vram;         /* bytes; 0: not counted */
	bool cooperative;      /* cooperative launches: one tenant per GPU */
	uint32_t priority;     /* 0..15; GPUARB_PRIORITY_DEFAULT: normal */
	const char *isolation; /* "shader-engine", "cu", "shared"; NULL: by class */
};

/* Each member in its order: C++ before C++20 has no designators. */
/* clang-format off */
#define GPUARB_WANT_INIT                                                                 \
	{ sizeof(struct gpuarb_want), NULL, 0, 0, 0, 0, false, NULL, 0, 0, 0, 0, 0, false, \
	  GPUARB_PRIORITY_DEFAULT, NULL }
/* clang-format on */

/* How it is asked. NULL in place of it, or zero and NULL in it, are defaults. */
struct gpuarb_options {
	size_t size;             /* set by GPUARB_OPTIONS_INIT */
	const char *lease_class; /* "realtime" "guaranteed" "besteffort"; NULL: the tenant's */
	const char *name;        /* for people; NULL: none */
	const char *tenant;      /* NULL: the first that matches */
	const char *token;       /* repeating a request with it gives the same lease */
	uint64_t wait_usec;      /* 0: refuse rather than wait; GPUARB_FOREVER */
	bool start_inactive;     /* realtime: its CUs are lent until gpuarb_lease_activate() */
	bool adaptable; /* best effort: the holder follows and acknowledges each change, and
			      * so may have more, and less, than what it was granted at first */
	int process_fd; /* a pidfd of a process to bind the lease to once it is granted;
			      * -1: none. gpuarb_plan() takes no notice of it */
};

/* clang-format off */
#define GPUARB_OPTIONS_INIT                                                              \
	{ sizeof(struct gpuarb_options), NULL, NULL, NULL, NULL, 0, false, false, -1 }
/* clang-format on */

/*
 * Reserves n parts on n GPUs, all or nothing. The lease lives while its holder
 * (gpuarb_lease_fd) or a copy of it is open anywhere, or a process bound to it lives.
 *
 * Waits for up to options->wait_usec where there is no room now. Then it is the daemon who
 * says why nothing came of it: -ETIMEDOUT; -ENOSPC, -EACCES, -ENODEV when it can not be
 * granted any more; -ESHUTDOWN; -ENOENT when somebody released it. A signal ends the wait
 * with -EINTR. Whatever the failure, nothing is left behind. CUs that others borrow are room; that
 * they give them back is waited for without wait_usec, too, and -EBUSY if they do not.
 *
 * The lease is "granted", or "inactive" where that was asked for, or where a token found one that
 * was deactivated since. A token may also find a lease that waits (-EBUSY without wait_usec) or
 * is being revoked (-EBADFD).
 *
 * options->process_fd is bound by a second call when the lease is granted, active or not. Where
 * that fails
 * the lease is given up, and this is the failure. (The daemon is asked to end it, without
 * waiting for its answer: the process may have been bound by a call whose answer was lost.)
 */
int gpuarb_reserve(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
		   const struct gpuarb_options *options, struct gpuarb_lease **ret);

/*
 * The first of its two steps: asks, and does not wait. The lease may be "waiting", for as
 * long as options->wait_usec says from now on: poll gpuarb_lease_fd() and dispatch, or
 * gpuarb_lease_wait(), as often as it takes; close it to give up the place. A signal leaves
 * nothing behind. A lease that waits has no partitions: gpuarb_lease_partitions() is 0. One that
 * is "activating" has them, and others still have CUs in them.
 *
 * options->process_fd is bound here if the lease is granted at once, else by the
 * gpuarb_lease_wait() that finds it granted.
 */
int gpuarb_reserve_start(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
			 const struct gpuarb_options *options, struct gpuarb_lease **ret);

/* One partition as a plan or a lease has it. Strings and masks are owned by what it came
 * from. */
struct gpuarb_partition {
	const char *gpu;
	uint32_t kfd_gpu_id;     /* 0: a simulated GPU */
	const uint32_t *cu_mask; /* KFD bit order, bit i % 32 of word i / 32 */
	size_t cu_mask_words;
	uint32_t cus, cus_asked, effective_cus;
	const uint32_t *shader_engines;
	size_t n_shader_engines;
	uint32_t queues, streams, processes, sdma_queues;
	uint64_t vram;
	uint32_t priority;
	const char *tier;        /* cooperative verified capped hardware */
	const char *const *gaps; /* what is not isolated */
	size_t n_gaps;

	/* Those that its queues were last seen to have, ascending; n 0: not known. Of a lease of
	 * anybody's only (gpuarb_look()): a holder is not told. */
	const uint32_t *priorities_seen;
	size_t n_priorities_seen;
};

/* The same decision with nothing changed: *ret_verdict is "granted", "waiting" or
 * "refused"; the parts by gpuarb_last_plan(), the refusals by gpuarb_last_refusals(). */
int gpuarb_plan(struct gpuarb *gpuarb, const struct gpuarb_want *wants, size_t n,
		const struct gpuarb_options *options, const char **ret_verdict);
const struct gpuarb_partition *gpuarb_last_plan(const struct gpuarb *gpuarb, size_t *ret_n);

/* ---- a lease --------------------------------------------------------------------- */

/*
 * Gives up this handle's holder and frees it. The lease ends unless another holder or a
 * bound process is left. Takes NULL. Never blocks.
 */
void gpuarb_lease_close(struct gpuarb_lease *lease);

/* Ends the lease, whoever else holds it, and frees the handle also on failure. */
int gpuarb_lease_release(struct gpuarb_lease *lease);

uint64_t gpuarb_lease_id(const struct gpuarb_lease *lease);
uint64_t gpuarb_lease_generation(const struct gpuarb_lease *lease); /* counts changes */
const char *gpuarb_lease_reason(const struct gpuarb_lease *lease);  /* "" or why it is so */

/*
 * What became of it, as far as it was told:
 *
 *	"waiting"     there is no room yet; the deadline is when it gives up
 *	"granted"     its CUs are its own; with a deadline, those that left its mask are to be
 *		      given back by then
 *	"inactive"    they are kept for it, and lent meanwhile: what it runs now runs beside others
 *	"activating"  others are giving them back, by the deadline
 *	"revoking"    it is taken away, at the deadline or when it is acknowledged; until then it
 *		      has what it had
 *	"ending"      it is gone
 */
const char *gpuarb_lease_state(const struct gpuarb_lease *lease);
uint64_t gpuarb_lease_deadline(const struct gpuarb_lease *lease); /* CLOCK_BOOTTIME usec */

/* Partitions in the order of the wants. i < gpuarb_lease_partitions(); else NULL or 0.
 * What they point to is valid until the lease is waited for, dispatched, resized or closed. */
size_t gpuarb_lease_partitions(const struct gpuarb_lease *lease);
const struct gpuarb_partition *gpuarb_lease_partition(const struct gpuarb_lease *lease, size_t i);
const char *gpuarb_lease_gpu(const struct gpuarb_lease *lease, size_t i);
const uint32_t *gpuarb_lease_cu_mask(const struct gpuarb_lease *lease, size_t i, size_t *ret_words);
unsigned gpuarb_lease_cus(const struct gpuarb_lease *lease, size_t i);
unsigned gpuarb_lease_effective_cus(const struct gpuarb_lease *lease, size_t i);
unsigned gpuarb_lease_queues(const struct gpuarb_lease *lease, size_t i);
unsigned gpuarb_lease_streams(const struct gpuarb_lease *lease, size_t i);
unsigned gpuarb_lease_processes(const struct gpuarb_lease *lease, size_t i);
unsigned gpuarb_lease_priority(const struct gpuarb_lease *lease, size_t i);

/* Its place among those that wait, from 1; 0: it does not wait. Asks the daemon. */
int gpuarb_lease_position(struct gpuarb_lease *lease, unsigned *ret);

/*
 * The holder: poll it for POLLIN and call gpuarb_lease_dispatch(). Owned by the handle. It
 * is close-on-exec; dup it, pass it by SCM_RIGHTS or clear the flag to hand the lease on.
 * Every copy, wherever, keeps the lease alive until it is closed.
 */
int gpuarb_lease_fd(const struct gpuarb_lease *lease);

/*
 * Waits while the lease is "waiting" or "activating"; then binds the process that it was
 * reserved for. usec: at most so long, GPUARB_FOREVER. 0: it is "granted"; or "inactive", at once:
 * nobody is activating it, and that is asked for by gpuarb_lease_activate(). After -ETIMEDOUT
 * without an error name, after -EINTR, and where the process could not be bound, the lease is
 * what it was and can be waited for again. -EBADFD: it is "revoking", nothing to begin with; it is
 * still there. When it has ended: as gpuarb_lease_dispatch().
 */
int gpuarb_lease_wait(struct gpuarb_lease *lease, uint64_t usec);

/*
 * Takes in what came by the holder, all that there is to know, without asking or blocking;
 * calls back once for each change. The callback may use the lease but not close it. Returns
 * how many there were; when the lease is gone (after the callback) what that is to its
 * holder, with the daemon's reason as the sentence: -ENOENT for an end like any other,
 * -ETIMEDOUT when its deadline passed while it waited, -ENOSPC, -EACCES, -ENODEV, -ESHUTDOWN;
 * -ECONNRESET when the daemon closed the holder without a word, or -EPROTO for what is no
 * record. A daemon that restarts is not seen here.
 *
 * A change is one of the state, the deadline, the reason, or the generation, and with that of the
 * partitions. A revocation is a change as others are; the end that follows is -ENOENT.
 */
typedef void (*gpuarb_lease_changed_t)(struct gpuarb_lease *lease, void *userdata);
int gpuarb_lease_dispatch(struct gpuarb_lease *lease, gpuarb_lease_changed_t callback,
			  void *userdata);

/* Asks for other parts of the same GPUs, a want for each partition in their order. The
 * mask changes at once; CUs and queues that were given up stay charged to the lease until
 * gpuarb_lease_acknowledge(), since only the holder can take them out of its queues. */
int gpuarb_lease_resize(struct gpuarb_lease *lease, const struct gpuarb_want *wants, size_t n);

/* Says that every queue of the holder follows the present generation; of a lease that is
 * "revoking", that it may be taken now. */
int gpuarb_lease_acknowledge(struct gpuarb_lease *lease);

/*
 * Has the CUs of a realtime lease back from those who borrow them, and lends them. Both ask the
 * daemon and do not wait for others: the state says what came of it. After the first it is
 * "activating" until every borrower has given way, which gpuarb_lease_wait() waits for, or
 * "granted" already; after the second "inactive". What was told by the holder before is taken in:
 * gpuarb_lease_dispatch() tells what comes next. The masks stay what they are: a program that
 * computes while it is inactive disturbs who borrows, and is disturbed.
 *
 * -EBADFD: it is not inactive, or has nothing to lend: it is inactive already, waits, is being
 * revoked, or is not realtime. -ENOENT and others as of gpuarb_lease_dispatch(): it has ended.
 */
int gpuarb_lease_activate(struct gpuarb_lease *lease);
int gpuarb_lease_deactivate(struct gpuarb_lease *lease);

/* Binds the lease to one more process, by a pidfd of the same user. */
int gpuarb_lease_bind(struct gpuarb_lease *lease, int process_fd);

/*
 * What an unmodified ROCm program needs in its environment so that all its queues are
 * masked from the first on: "NAME=value" to set and "NAME" to take out, NULL-terminated,
 * one allocation for free(). Made for the GPUs as this process sees them.
 *
 * -EEXIST: a mask is in the environment already (HSA_CU_MASK, ROC_GLOBAL_CU_MASK), or
 * ROCR_VISIBLE_DEVICES hides a GPU of the lease. -ENODEV: this process cannot see a GPU of
 * the lease. -ERANGE: the queue budget leaves HIP no queue. -EBADFD: the lease is not
 * granted, or has no CUs now.
 */
int gpuarb_lease_environment(struct gpuarb_lease *lease, char ***ret);

/* ---- looking --------------------------------------------------------------------- */

struct gpuarb_process {
	uint32_t pid, uid; /* uid UINT32_MAX: unknown */
	const char *command;
	uint32_t queues;
};

struct gpuarb_gpu {
	const char *name, *device, *gfx_target;
	uint32_t kfd_gpu_id;
	uint32_t xccs, shader_engines, shader_arrays, cus, cus_free;
	const uint32_t *cus_per_shader_engine; /* xccs x shader_engines */
	const uint32_t *cus_per_shader_array;  /* xccs x shader_engines x shader_arrays */
	bool wgp_mode, harvest_known;
	const char *law; /* measured, assumed */
	uint32_t queue_slots, queue_slots_free, process_slots, process_slots_free;
	uint32_t pipes, queues_per_pipe, sdma_queues;
	uint64_t vram_bytes, vram_free;
	const char *scheduler;
	const struct gpuarb_process *unmanaged; /* processes that hold no lease */
	size_t n_unmanaged;
	bool oversubscribed, draining;
};

/* A lease of anybody's. */
struct gpuarb_lease_info {
	uint64_t id;
	const char *name, *state, *lease_class, *tenant;
	uint32_t owner_uid, owner_pid; /* pid 0: unknown */
	const char *owner_unit;
	bool adaptable;
	uint64_t generation;
	const char *tier;
	const struct gpuarb_partition *partitions;
	size_t n_partitions;
	uint32_t position;
	const char *reason;
	uint64_t deadline, disturbances;
};

/* A picture of everything at one moment. */
struct gpuarb_view;

int gpuarb_look(struct gpuarb *gpuarb, struct gpuarb_view **ret);
void gpuarb_view_free(struct gpuarb_view *view);                 /* takes NULL */
const char *gpuarb_view_version(const struct gpuarb_view *view); /* the daemon's */
size_t gpuarb_view_tenants(const struct gpuarb_view *view, const char *const **ret);
size_t gpuarb_view_gpus(const struct gpuarb_view *view, const struct gpuarb_gpu **ret);
size_t gpuarb_view_leases(const struct gpuarb_view *view,
			  const struct gpuarb_lease_info **ret); /* by id */

/*
 * Watching: first one call "watching": what changes from here on is told. Then one for each
 * thing that changed. kind: "lease-added", "lease-changed", "lease-removed",
 * "gpu-added", "gpu-changed", "gpu-removed"; what: the lease's id in decimal, or the GPU's
 * name. Blocks until usec have passed (0) or a signal comes (-EINTR). A daemon that goes and
 * comes is "daemon-gone" and "daemon-back", and so is a bus, which is waited for however long
 * it takes: what changed between the two is not told, so look again. A daemon that is not
 * there to begin with is -ECONNREFUSED. What changes between two calls is not told. The
 * callback may use the handle but not close it, and ends it by gpuarb_watch_stop(): then it
 * returns 0, and nothing more is told. Outside of a callback that does nothing; takes NULL.
 */
typedef void (*gpuarb_changed_t)(const char *kind, const char *what, void *userdata);
int gpuarb_watch(struct gpuarb *gpuarb, uint64_t usec, gpuarb_changed_t callback, void *userdata);
void gpuarb_watch_stop(struct gpuarb *gpuarb);

/* ---- acting on leases by number, and administering ------------------------------- */

/*
 * Whether a person may be asked for a password by polkit where a call needs an administrator
 * (org.gpuarb.Arbiter1.manage): draining, reloading, and what is done to leases of others.
 * False at first: such a call is then refused at once. With it, calls wait for up to 130
 * seconds. Root is never asked. Takes NULL.
 */
void gpuarb_set_interactive(struct gpuarb *gpuarb, bool interactive);

int gpuarb_release(struct gpuarb *gpuarb, uint64_t id);
int gpuarb_activate(struct gpuarb *gpuarb, uint64_t id); /* as gpuarb_lease_activate() */
int gpuarb_deactivate(struct gpuarb *gpuarb, uint64_t id);

/*
 * Administrators: takes a lease away, whosever it is. Its holder is told the reason (NULL: none)
 * and has grace_usec to finish, less if it acknowledges; then the lease ends, and what its
 * tenant's policy allows is done to processes that go on. Does not wait for that. A lease that
 * waits ends at once. A second revocation may bring the deadline forward: else -EBADFD. -EINVAL: a
 * grace of more than a day.
 */
int gpuarb_revoke(struct gpuarb *gpuarb, uint64_t id, uint64_t grace_usec, const char *reason);
int gpuarb_resize(struct gpuarb *gpuarb, uint64_t id, const struct gpuarb_want *wants, size_t n);
int gpuarb_drain(struct gpuarb *gpuarb, const char *gpu, bool drain);
int gpuarb_reload(struct gpuarb *gpuarb);

#ifdef __cplusplus
}
#endif
