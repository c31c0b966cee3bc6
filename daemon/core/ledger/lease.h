/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A lease: the right to partitions of one or more GPUs. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/base.h"
#include "core/mask/cuset.h"
#include "core/mask/geometry.h"
#include "core/policy/budget.h"
#include "core/policy/class.h"
#include "core/policy/result.h"

struct request;

/* Bound processes of one lease, and its holder pairs. */
#define LEASE_BOUND_MAX 64U

/* How many later requests may be granted on a GPU that a waiting lease could use. Then the lease
 * bars the GPU: waiting-queue.h. */
#define LEASE_PASSES_MAX 16U

/* The count is saved at every multiple of this; a restart assumes that the passes since then were
 * as many as possible. A power of two. */
#define LEASE_PASSES_SAVED 4U

/* One kind of drift of a partition. */
struct drift {
	uint64_t since_usec; /* every observation since then showed it; 0: the last one did not */
	uint64_t seen_usec;  /* the last observation */
	uint64_t spent_usec; /* of earlier times, less what has passed since */
	uint64_t granted, observed; /* CUs, a count, bytes or a priority, after its kind */
	pid_t pid;                  /* of a queue that shows it; 0: unknown */
	bool lasts;                 /* it has lasted for drift-grace, all in all */
};

/* What a partition of an adaptable lease has in addition. */
struct adaptation {
	struct cuset base;       /* at least cus-min CUs, which it never loses and which the GPU is
			    * charged; the rest of cus is borrowed */
	struct cuset before;     /* cus before it first shrank; empty: nothing to restore */
	struct cuset moved_from; /* base before its last move; empty: none */
	struct cuset promised;   /* the mask that it gets when other adaptable leases have returned
				* CUs for it, as it began below its share; empty: none. Not saved */
	struct cuset promised_base; /* its base then, partly on CUs that it gets; empty: the base
				     * stays. Not saved */
	struct cuset yields; /* CUs that it returns because other leases of its user are to get as
				* many and their quota leaves no more. Not saved */
};

/* A process that disturbs a lease, the victim: change/machine/intruders.c. */
struct intruder {
	NAMED_PROCESS;
	uint64_t lease; /* of the process; 0: none */
	uint64_t since_usec;
	unsigned
		cus; /* that it covers of the victim; of a realtime victim: of its shader engines */
	bool draws;  /* with the graphics driver, on all CUs */
};
#define INTRUDERS 4U

struct intruders {
	struct intruder list[INTRUDERS]; /* the ones with the most CUs, sorted by CUs */
	unsigned n;                      /* all intruders, which may be more than INTRUDERS */
	unsigned cus;                    /* that all intruders cover together */
	struct cuset covered; /* by queues of other processes at the last scan, new queues too */
	bool alone; /* the descriptors were read, and no queue of another process covers a CU */
};

/* The part of a lease on one GPU. */
struct partition {
	unsigned gpu;          /* index in arbiter->gpus */
	struct cuset cus;      /* granted: the CUs of the mask */
	struct cuset occupied; /* cus, and the CUs that left the mask in a generation that is not
				* acknowledged yet */
	struct cuset resize;   /* the mask, or the base of an adaptable lease, that it gets when
				* borrowers have returned its CUs; empty: none */
	unsigned count;        /* CUs in cus */
	unsigned effective;    /* effective CUs (E) in cus */
	unsigned asked;        /* CUs asked for: the aim, or cus-max where it was given */

	struct budget granted;
	struct budget charged; /* at least granted; more until acknowledged */
	struct budget used;    /* by the processes of the lease at the last scan */
	uint64_t vram_before;  /* used.vram at the scan before */
	unsigned streams;
	unsigned priority;
	enum isolation isolation; /* never ISOLATION_DEFAULT */
	bool alone;               /* no other lease in its shader engines */
	bool any_shape;           /* shape=any was asked: E may be less than count */
	bool exclusive;           /* while the lease is active, adaptable leases on the GPU pause */

	/* In the memory of the partitions of its lease; NULL: the lease is not adaptable, or the
	 * partition is of no lease yet. Copy partitions with lease_set_partitions(). */
	struct adaptation *adaptation;

	bool paused;  /* adaptable: its queues have to be inactive: change/share/pause.c */
	bool stopped; /* paused, and the holder has acknowledged it */

	bool capped; /* the kernel refuses queues beyond the grant: change/enforce/cap.c */
	bool sole; /* nothing else uses the compute partition of the card: change/enforce/drift.c */

	/* Its queues, as the hardware's descriptors show them: change/machine/verify.c. */
	struct {
		bool scanned;  /* no queue came or changed since the last scan of descriptors */
		bool verified; /* there are queues, and none has a CU beyond cus */
		bool verified_before;
		pid_t wide_pid;       /* a process with a queue that has one; 0: none */
		pid_t beyond_pid;     /* a process with a queue on a CU beyond occupied */
		unsigned beyond_cus;  /* CUs of that queue */
		pid_t active_pid;     /* paused: a process with an active queue; 0: none */
		uint64_t used_before; /* used.queues at the scan before the last */
		uint16_t priorities, priorities_before; /* of the queues, as bits */
	} queues;

	struct drift drift[DRIFT_KINDS]; /* change/enforce/drift.c */
	struct intruders intruders;
};

/* A process of a lease. */
struct lease_process {
	pid_t pid;
	uint64_t start_time;
	bool delegated; /* it counts because root bound it or an ancestor, while it has this uid; else
			 * because of its user, and uid is 0 */
	uid_t uid;
};
#define LEASE_PROCESSES_MAX 1024U

/* What the accounting knows of a lease since `usec`: usage.c. 0: nothing. */
struct lease_account {
	uint64_t usec;
	uint64_t cus, queues;
	enum { USE_NONE, USE_WAITS, USE_HOLDS } use;
	enum lease_state state;
	uint64_t since_usec; /* of the state */
};

struct lease {
	uint64_t id;           /* never reused */
	uint64_t generation;   /* counts the changes of the partitions, from 1 */
	uint64_t acknowledged; /* the last generation that the holder uses */
	enum lease_state state;
	enum lease_class class;
	bool adaptable;
	char name[REQUEST_TEXT];
	char tenant[REQUEST_TEXT];
	char token[REQUEST_TEXT];
	char unit[REQUEST_TEXT];
	uid_t owner;
	pid_t pid; /* the process that asked, a hint; 0: unknown */

	/* When it was granted; waiting: when it began to wait. CLOCK_BOOTTIME; 0: not saved by an
	 * older daemon. */
	uint64_t since_usec;

	uint64_t duration_usec; /* from then on, when it is granted; 0: no limit */

	struct partition *partitions; /* from lease_make_partitions() */
	size_t n_partitions;          /* 0: waiting */

	/* waiting: the request to be granted. With a token: the request that a repeated one must
	 * equal. Otherwise NULL. Made by request_keep(). */
	struct request *request;

	/* Why it ends, or what the last decision about it found in its way: change/reason.c. */
	char reason[REQUEST_TEXT];
	enum result_kind cause; /* ending: the error for a program that waits for the lease */
	bool revoked;           /* ending: not by its holder, nor for lack of holders */
	bool resized;           /* since the holder last acknowledged everything */

	/* When it has to be granted (waiting), have given back (revoking, or a borrower), or be
	 * granted at the latest (activating). UINT64_MAX: no deadline. */
	uint64_t deadline_usec;

	struct refusal refusal; /* waiting: that of the last decision; all zero before the first */

	/* waiting: ledger/waiting-queue.c, change/admit/wait.c */
	struct {
		uint64_t
			candidates; /* GPUs that could ever take one of its wants (bits); 0: it was not examined */
		uint64_t examined; /* arbiter->changes when the lease was last examined */
		uint64_t turn;     /* ranks it among the waiting leases of its class */
		unsigned
			passed; /* how often a candidate was granted to later ones of other users */
		bool over_quota; /* only its user's quota stops it: it bars no GPU */
		bool may_bar; /* passed often enough, and it would fit without other users' leases */
		uint64_t steps; /* of examining it, that its user was not charged yet */
		uint64_t
			searched; /* `examined` when arbiter_make_room() last did what it can for it */
		uint64_t preempts; /* GPUs where leases are revoked for it (bits): it bars them */
		uint64_t
			moves_usec; /* until then none is revoked for it, as leases move; 0: none */
		uint64_t search_usec; /* then leases are searched again that make room; 0: not */
	} wait;

	uint64_t revoked_for; /* the waiting lease that it is revoked for; 0: none */
	bool returned;        /* revoking: acknowledged, and no process of it used a GPU since */

	/* lending and borrowing: change/share/lend.c */
	struct {
		bool never_granted;    /* activating for the first time */
		bool idle;             /* revoking, ending: it was not active, so it has no CU to
					* give back and its borrowers keep theirs */
		bool late;             /* it has not returned CUs within activate-grace, nor since:
					* others do without them where they can. Not saved */
		uint64_t late_seen;    /* arbiter->times_late when it last began to wait again.
					* Not saved */
		bool unbound;          /* no process is bound to it that could be made to give
					* back: it borrows nothing, and does not move */
		uint64_t give_up_usec; /* never_granted: it ends if it is not granted by then */
		uint64_t rests_usec;   /* its mask has just changed, and does not grow before */
		uint64_t disturbances; /* mask changes of other leases that took its queues off
					* the GPU */
		uint64_t moves;        /* to other CUs, for requests: decide/move.c */
		uint64_t moved_usec;   /* the last of them */
	} lend;

	/* adaptable: time in which a partition was paused: change/share/pause.c */
	struct {
		uint64_t count, usec; /* of all pauses; usec: of those that have ended */
		uint64_t since_usec;  /* of the present one; 0: none */
		bool long_reported;   /* it was reported that this is longer than max-pause */
	} pause;

	/* Resets of its GPUs: change/machine/driver.c. */
	struct {
		uint64_t count;
		bool pending;     /* the program that lost its queues has not ended yet */
		size_t partition; /* the index of the one whose GPU was reset last */
	} reset;

	/* Times in which the driver had taken queues of it off a GPU: change/machine/driver.c. The present one
	 * is not saved: no event tells another daemon that it lasts. */
	struct {
		uint64_t count, usec; /* usec: of those that have ended */
		uint64_t since_usec;  /* of the present one; 0: none */
		unsigned now;         /* processes, on GPUs, whose queues are off at present */
	} evicted;

	/* does not give back in time: change/enforce/enforcement.c */
	struct {
		enum enforce_step step; /* the last one that was taken */
		uint64_t due_usec;      /* of the next one; UINT64_MAX: none */
		bool repeats;           /* it is a kill that failed, which was logged; not saved */
		bool frozen;            /* its unit is */
		bool kill;              /* policy kills for drift: the last step is kill */
		bool terminate;         /* an administrator does, so no process is spared */
	} enforce;

	/* acknowledgements: change/machine/verify.c */
	struct {
		bool pending;   /* acknowledged, and the queues have not been compared yet */
		bool false_ack; /* a queue was observed with CUs that left the mask */
	} verify;

	/* change/enforce/cap.c */
	struct {
		bool active;       /* by one of the next two */
		bool filtered;     /* every bound process is under a filter of gpuarbd */
		bool enforced;     /* the kernel caps the unit that has every bound process */
		uint64_t refusals; /* queues that were refused */
		uint64_t cgroup;   /* id of the cgroup of that unit; 0: none is to be capped */
		uint64_t limit;    /* of queues in it */
		bool counted;      /* the next member is known */
		uint64_t refused;  /* queues that the kernel has refused in the cgroup */
		/* Why it has no cgroup although policy wants it capped, or NULL: cap/unit-caps.c. */
		const char *why_not;
	} cap;

	/* The last scan: change/machine/observation.c. */
	struct {
		unsigned processes; /* of this lease, on GPUs */
	} observed;

	/* Its Reserve was not answered when an earlier daemon ended: until then the lease needs no
	 * holder, and the same request of the same process finds it. 0: not. */
	uint64_t claim_usec;
	bool abandoned; /* its caller has not learned of it: it ends in the next turn of the loop */

	/* Holders and bound processes keep the lease alive. */
	unsigned n_holders;
	pid_t bound[LEASE_BOUND_MAX];
	unsigned n_bound;
	bool asker_bound;   /* pid is bound by default: it does not keep the lease alive */
	uint64_t delegated; /* those that root bound although they are of another user (bits) */

	struct lease_account account;
	bool unsignalled; /* set by the daemon: InterfacesAdded follows */

	uint64_t serial; /* counts the saves of all leases; 0: saved by an older daemon */
	struct lease
		*shown; /* owned: what its file has, while a change is not saved; NULL: it is */

	/* The arbiter's list of touched leases. */
	unsigned touched; /* bits of enum touch: what happened since the daemon took it off */
	struct lease *touched_next;
};

/* Loops over the partitions of a lease: `it` is a pointer to one. */
#define FOR_EACH_PARTITION(it, lease)                    \
	for (struct partition *it = (lease)->partitions; \
	     it && it < (lease)->partitions + (lease)->n_partitions; it++)

/* What happened to a touched lease, and what the daemon does for it. */
enum touch {
	TOUCH_ADDED = 1 << 0,      /* new and saved: publish it on the bus */
	TOUCH_CHANGED = 1 << 1,    /* save it, publish it on the bus and to its holders */
	TOUCH_ENDING = 1 << 2,     /* the same, and scan the hardware */
	TOUCH_REMOVED = 1 << 3,    /* remove its file, its holders and its object */
	TOUCH_REASON = 1 << 4,     /* a reason or an observed value: publish it on the bus */
	TOUCH_SAVE = 1 << 5,       /* members that are not published: save it */
	TOUCH_DRIFT = 1 << 6,      /* drift began or ended: log it */
	TOUCH_FALSE_ACK = 1 << 11, /* an acknowledgement was false: log it */
	TOUCH_ACTIVE = 1 << 7,     /* activating before, granted now: log it */
	TOUCH_COMMITTED = 1 << 8,  /* its next version was saved: publish it as changed */
	TOUCH_PREEMPT = 1 << 9,    /* revoked for another lease, kept after all, or waiting for
				   * leases that are revoked for it: log it */
	TOUCH_INTRUDERS = 1 << 12, /* its intruders changed: send a record to its holders */
	TOUCH_PAUSED = 1 << 10,    /* it is paused for longer than max-pause: log it */
};

/* Does it need its request: for a repeated request, or to wait again? */
bool lease_keeps_request(const struct lease *lease);
void lease_drop_request(struct lease *lease); /* unless it needs it */

/* Does the waiting lease wait for more than leases that make room for it? */
bool lease_may_wait(const struct lease *lease);

/* Has the holder returned everything of a lease that will wait again? The hardware may still have
 * its queues. */
bool lease_requeues(const struct lease *lease);

/* When its duration is over; UINT64_MAX: it has none, or waits. */
static inline uint64_t lease_end_usec(const struct lease *lease)
{
	return lease->duration_usec > 0 && lease->n_partitions > 0
		       ? lease->since_usec + lease->duration_usec
		       : UINT64_MAX;
}

/* Was it resized, and borrowers have not returned CUs yet? */
static inline bool lease_is_resized(const struct lease *lease)
{
	bool resized = false;

	for (size_t i = 0; i < lease->n_partitions; i++)
		resized |= !cuset_empty(&lease->partitions[i].resize);
	return resized;
}

/* Will it get them? One that is revoked does not. */
static inline bool lease_awaits_resize(const struct lease *lease)
{
	return lease->state == STATE_GRANTED && lease_is_resized(lease);
}

/* Are CUs reclaimed for it? */
static inline bool lease_awaits_cus(const struct lease *lease)
{
	return lease->state == STATE_ACTIVATING || lease_awaits_resize(lease);
}

/* Does its deadline say when it gets the CUs that it awaits? That of a granted adaptable lease says when this has to have
 * returned CUs. */
static inline bool lease_deadline_awaits(const struct lease *lease)
{
	return lease->state == STATE_ACTIVATING ||
	       (!lease->adaptable && lease_awaits_resize(lease));
}

/* The CUs that the ledger is charged: no other lease can be granted them. */
static inline struct cuset partition_claim(const struct partition *partition)
{
	struct cuset claim = partition->adaptation ? partition->adaptation->base
						   : partition->occupied;

	cuset_add(&claim, &partition->resize);
	return claim;
}

static inline bool partition_is_promised(const struct partition *partition)
{
	return partition->adaptation && !cuset_empty(&partition->adaptation->promised);
}

/* May it have CUs beyond what it is charged, of which some may still be to be given back? */
static inline bool lease_borrows(const struct lease *lease)
{
	return lease->adaptable && lease->n_partitions > 0;
}

/* Does it get a share of the CUs that are lent? Not if it does not return CUs in time, or nothing can make it. */
static inline bool lease_shares(const struct lease *lease)
{
	return lease_borrows(lease) && !lease->lend.unbound && !lease->lend.late &&
	       (lease->state == STATE_GRANTED ||
		(lease->state == STATE_ACTIVATING && lease->lend.never_granted));
}

/* Can CUs be promised to it? */
static inline bool lease_joins(const struct lease *lease)
{
	return lease_shares(lease) && !lease_is_resized(lease);
}

int lease_new(struct lease **ret);
struct lease *lease_free(struct lease *lease);
DEFINE_CLEANUP(struct lease *, lease_free)

/* Gives a lease that has no partitions n of them, all zero; with an adaptation each if the lease is
 * adaptable. -ENOMEM. */
int lease_make_partitions(struct lease *lease, size_t n);

/* Copies as many partitions as the lease has, with their adaptations. from: those of a lease, or what
 * gang_assign() has placed: then all CUs are the base. */
void lease_set_partitions(struct lease *lease, const struct partition *from);

bool lease_alive(
	const struct lease *lease); /* has a holder or a bound process, or needs none yet */
bool lease_is_bound(const struct lease *lease, pid_t pid);

/* Did root bind the process although it is of another user, as the process of a container? */
bool lease_is_delegated(const struct lease *lease, pid_t pid);
void lease_unbind(struct lease *lease, pid_t pid);

/* Have they the same user and tenant: one account? */
bool lease_same_account(const struct lease *a, const struct lease *b);

uint64_t lease_gpus(const struct lease *lease); /* the GPUs of its partitions, as bits */

/* The partition on the GPU with this index; NULL. */
struct partition *lease_partition_on(const struct lease *lease, unsigned gpu);

/* A copy of the lease, its partitions and its request, without reason and refusal. A waiting lease gets room for n_partitions; other leases keep
 * their number. -ENOMEM. */
int lease_next_version(const struct lease *lease, size_t n_partitions, struct lease **ret);

/* "lease 3 is waiting: HINT". Returns the errno of InvalidState. */
int lease_wrong_state(const struct lease *lease, struct result *result, const char *hint);

/* The kinds of drift that last on any of its GPUs, as bits. */
unsigned lease_drifts(const struct lease *lease);

/* For a lease that ends: by policy, by the daemon or with a GPU; not by its holder, by its deadline or
 * for lack of room. */
bool lease_was_revoked(const struct lease *lease);

/* The state ending, with its cause and reason; changes no other lease and no GPU. */
void lease_set_ending(struct lease *lease, enum result_kind cause, const char *reason);

/* What clients may see of the lease: nothing that is not saved. */
static inline const struct lease *lease_shown(const struct lease *lease)
{
	return lease->shown ? lease->shown : lease;
}

/* Keeps the refusal of the last decision about a waiting lease, and what it waits for by that. */
void lease_set_refusal(struct lease *lease, const struct refusal *refusal);

/* Does no queue of others cover its CUs, on any of its GPUs? Not if descriptors cannot be read. */
bool lease_is_alone(const struct lease *lease);

/* Why the kernel does not refuse queues beyond the grant although it ought to; "": it does, or need not. */
const char *lease_uncapped(const struct lease *lease);

/* "hardware", "capped", "verified" or "cooperative": gpuarb(7). */
const char *partition_tier(const struct partition *partition);

/* Do all queues of the lease have its masks, and is there one on each of its GPUs? */
bool lease_is_verified(const struct lease *lease);

/* Changes the mask of a partition. CUs that leave the mask stay occupied. */
void partition_set_mask(struct partition *partition, const struct geometry *geometry,
			const struct cuset *cus);

/* Has the holder acknowledged everything, and is the lease neither activating, paused nor ending? */
bool lease_is_settled(const struct lease *lease, const struct partition *p);
