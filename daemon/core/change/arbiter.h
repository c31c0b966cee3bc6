/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The arbiter: which part of which GPU is whose. Pure: no file, bus, device or clock; the
 * time and every observation are arguments.
 *
 * A change has two steps, so that nothing is granted before it is saved: arbiter_plan()
 * and arbiter_plan_resize() decide and hand out a proposal while the ledger stays as it
 * is; arbiter_commit() puts the proposal into force and cannot fail. No other change may
 * come between the two.
 *
 * What a change means outside (whom to tell, what to forget) is kept on a list of touched
 * leases and in gpu->changed until the daemon takes it.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/ledger/gpu.h"
#include "core/ledger/lease.h"
#include "core/mask/observed-mask.h"
#include "core/change/observe.h"
#include "core/policy/request.h"
#include "core/policy/settings.h"
#include "core/policy/result.h"

struct arbiter {
	/* Index = object on the bus. Ordered by name at the start; what comes later takes the
	 * place that a GPU of its name had, or the next. There is room for REQUEST_WANTS. */
	struct gpu *gpus;
	size_t n_gpus;
	struct settings *settings; /* never NULL */

	struct lease **leases; /* ordered by id */
	size_t n_leases, room;
	uint64_t next_id;
	struct lease *touched;

	/* Those of them that wait, as they are to be granted: higher classes first, then by
	 * id. It has the room of leases. */
	struct lease **waiting;
	size_t n_waiting;
	uint64_t woken;   /* GPUs where something became free since they were looked through */
	size_t next_look; /* of them, by arbiter_plan_next() */

	bool lending;  /* there were adaptable leases when it was last looked */
	bool verifies; /* what the hardware has can be seen: an acknowledgement has to be true */

	/* Processes already attributed, ordered by pid: a child keeps its lease when its
	 * parent dies, a dead process while the kernel still tears its queues down. */
	struct known_process *known;
	size_t n_known;
};

#define LEASE_PROCESSES_MAX 1024U
struct lease_process {
	pid_t pid;
	uint64_t start_time;
};

/* Takes settings. first_id: the first lease id to hand out. */
int arbiter_new(struct settings *settings, const struct gpu_info *gpus, size_t n_gpus,
		uint64_t first_id, struct arbiter **ret);
struct arbiter *arbiter_free(struct arbiter *arbiter);
DEFINE_CLEANUP(struct arbiter *, arbiter_free)

/* Puts other settings into force for what is asked from now on; takes them. */
void arbiter_set_settings(struct arbiter *arbiter, struct settings *settings);

/* Decides; changes nothing. On 0 the proposal is the caller's, with the id it would get.
 * Otherwise a negative errno, and in verdict why not. What has no room now and may wait
 * (request->wait_usec > 0) is a proposal in STATE_WAITING, without partitions and deadline
 * (for ever): the caller sets that, and verdict says what it waits for. */
int arbiter_plan(const struct arbiter *arbiter, const struct caller *caller,
		 const struct request *request, struct lease **ret, struct result *result);

/* The same for other wants of a lease that is there: one want for each of its GPUs, what
 * it has counting as free. CUs that leave its mask stay charged to it until the new
 * generation is acknowledged. */
int arbiter_plan_resize(const struct arbiter *arbiter, const struct caller *caller, uint64_t id,
			const struct request *request, struct lease **ret, struct result *result);

/* Takes a proposal: a new lease, or the next version of the one with its id. Returns the
 * lease in force. */
struct lease *arbiter_commit(struct arbiter *arbiter, struct lease *proposal);

/* ---- waiting: queue.c, wait.c ------------------------------------------------------- */

/* 1: *ret is the next version of a waiting lease that fits now, to be saved and committed;
 * the next call goes on behind it. 0: none is left, until something becomes free. Leases
 * that no policy and no GPU would ever grant end on the way. Without memory it is 0. */
int arbiter_plan_next(struct arbiter *arbiter, struct lease **ret);

/* Ends those whose deadline has passed. */
void arbiter_expire(struct arbiter *arbiter, uint64_t now_usec);

uint64_t arbiter_next_deadline(const struct arbiter *arbiter); /* UINT64_MAX: none */

/* From 1; 0: it does not wait. */
unsigned queue_position(const struct arbiter *arbiter, const struct lease *lease);

/* ---- lending: lend.c, grow.c, activate.c -------------------------------------------- */

/*
 * Adaptable leases borrow what others do not use: lend.h. This brings their masks in line with
 * what is claimed, after every change: who must give way does, who waited for that is granted,
 * and it is settled when masks may grow again. New generations are touched.
 */
void arbiter_lend(struct arbiter *arbiter, uint64_t now_usec);

/* 1: *ret is the next version of an adaptable lease that may have more, to be saved and
 * committed; each is asked once in a round, which begins grow-delay after something became
 * free and activate-min-interval after the last. 0: none. Without memory it is 0. */
int arbiter_plan_growth(struct arbiter *arbiter, uint64_t now_usec, struct lease **ret);

/* It could not be saved: all of that again, after grow-delay. */
void arbiter_grow_later(struct arbiter *arbiter);

/* An inactive lease is to be active: it is granted by arbiter_lend() when nobody has CUs of it
 * any more; and the reverse, from then on they are lent. -EBUSY: not in this state. */
int arbiter_activate(struct arbiter *arbiter, const struct caller *caller, uint64_t id,
		     struct result *result);
int arbiter_deactivate(struct arbiter *arbiter, const struct caller *caller, uint64_t id,
		       struct result *result);

/* It is to end when its holder acknowledges this generation, or at the deadline. A second time
 * may only be sooner. */
#define REVOKE_GRACE_MAX_USEC (UINT64_C(24) * 3600 * 1000000)
int arbiter_revoke(struct arbiter *arbiter, uint64_t id, uint64_t now_usec, uint64_t grace_usec,
		   const char *reason, struct result *result);

/* ---- who does not follow: enforce.c, descriptors.c --------------------------------------- */

/* The next thing to do to a lease whose deadline has passed, which counts as done from then
 * on; RUNG_NONE: nothing is due. A revoked lease ends at its deadline, others when they are
 * killed. */
enum enforce_step arbiter_next_enforce_step(struct arbiter *arbiter, uint64_t now_usec,
					    struct lease **ret);

/* One whose unit was frozen and need not be any more; NULL: none. */
struct lease *arbiter_next_thaw(struct arbiter *arbiter);

/* Processes that are the lease's for sure, by who started them: those that may be killed. */
size_t arbiter_own_processes(const struct arbiter *arbiter, uint64_t id, struct lease_process *ret,
			     size_t max);

/* Is there an acknowledgement that has to be seen to be true (*ret_urgent: for the first time), or
 * are there queues that nobody has looked at? */
bool arbiter_wants_masks(const struct arbiter *arbiter, bool *ret_urgent);

/* All compute queues that the hardware has. What was acknowledged and is true is followed; what is
 * not stays occupied, and is told. */
void arbiter_masks_observed(struct arbiter *arbiter, const struct observed_mask *rows, size_t n);

/* They cannot be seen: acknowledgements are believed, as if verifies had been false. */
void arbiter_masks_unreadable(struct arbiter *arbiter);

/* ---- starting anew: recover.c --------------------------------------------------------- */

/*
 * Puts a lease into force that an earlier daemon granted, with nothing that keeps it alive
 * yet. lost: a GPU of it that is gone or another by now, "" if none; its partition there has
 * the index GPU_ABSENT. Then, and where the GPU could never have this partition, the lease
 * is ending, and says so. -EEXIST, -EINVAL: it contradicts a lease in force, or itself; why
 * has a sentence, and lease is still the caller's. -ENOMEM. One that was ending already is
 * touched as such again: its holder may not have been told.
 */
#define GPU_ABSENT UINT_MAX
int arbiter_adopt(struct arbiter *arbiter, struct lease *lease, const char *lost, char *why,
		  size_t size);

/* All of them are in force. */
void arbiter_adopted(struct arbiter *arbiter);

/* The processes whose use of the hardware was seen to be this lease's: what has to be known
 * of an ending lease to see when the hardware has let go. */
size_t arbiter_processes(const struct arbiter *arbiter, uint64_t id, struct lease_process *ret,
			 size_t max); /* how many there are */
int arbiter_adopt_process(struct arbiter *arbiter, uint64_t id,
			  const struct lease_process *process); /* -ENOMEM */

/* ---- what changes under leases ------------------------------------------------------ */

/* GPUs as they are now. One that is gone, or has another kfd_gpu_id, shape or slots, ends
 * its leases; everything else is left as it is. A name that was drained still is when it comes
 * back. -E2BIG: more than REQUEST_WANTS, and nothing has changed; or places are taken until
 * leases have ended, and GPUs that have none are to be listed once more then. */
int arbiter_set_gpus(struct arbiter *arbiter, const struct gpu_info *gpus, size_t n);

/* Ends leases that the policy of now would not grant: no such tenant, a user who is not its
 * (groups cannot be judged here: who may match by one is kept), class, priority, and what is
 * beyond a quota, the latest first. Waiting ones are judged when they are to be granted. */
void arbiter_review(struct arbiter *arbiter);

struct lease *ledger_find(const struct arbiter *arbiter, uint64_t id); /* NULL */

/* The lease that this uid holds under this token: NULL if none lives. */
struct lease *ledger_find_token(const struct arbiter *arbiter, uid_t uid, const char *token);

/* Finds a lease that the caller may act on: its owner's uid or an administrator. */
int ledger_find_owned(const struct arbiter *arbiter, const struct caller *caller, uint64_t id,
		      struct lease **ret, struct result *result);

/* Holders and bound processes: what keeps a lease alive. When the last has gone the lease
 * is ending; with no user left on the hardware it is removed at the next
 * arbiter_observe(). Unknown ids do nothing. */
void arbiter_add_holder(struct arbiter *arbiter, uint64_t id);
void arbiter_holder_gone(struct arbiter *arbiter, uint64_t id);
int arbiter_bind(struct arbiter *arbiter, uint64_t id, pid_t pid); /* -ENOSPC */
void arbiter_bound_gone(struct arbiter *arbiter, uint64_t id, pid_t pid);

/* Ends it whoever holds it. cause: what this is to a program that waited; VERDICT_OK: an end
 * like any other. A lease that waits has nothing to let go and is removed at once. */
void arbiter_end(struct arbiter *arbiter, uint64_t id, enum result_kind cause, const char *reason);

/* The holder follows this generation: what it gave up is free. -ERANGE for one that was
 * never told. */
int arbiter_acknowledge(struct arbiter *arbiter, uint64_t id, uint64_t generation);

/* -ENOENT. */
int arbiter_drain(struct arbiter *arbiter, const char *gpu, bool drain);

/* Index of a GPU by name or decimal index; -ENOENT. */
int ledger_find_gpu(const struct arbiter *arbiter, const char *gpu);

/* Indexes of GPUs become their names: what waits, or is repeated, means the GPU that it meant
 * when it was asked. */
void arbiter_name_gpus(const struct arbiter *arbiter, struct request *request);

/* All processes that use GPUs now, ordered by pid: settles whose they are, counts what is
 * unmanaged, finds oversubscription, and removes the ending leases that nobody
 * uses any more. -ENOMEM, and then nothing changed. */
int arbiter_observe(struct arbiter *arbiter, const struct observed *rows, size_t n);

/* "3 queues on 0000:03:00.0 (granted: 2), …": what its processes have beyond its budgets. "" if
 * nothing. */
void arbiter_excess(const struct arbiter *arbiter, const struct lease *lease, char *ret,
		    size_t size);

/* Takes the next touched lease off the list; one that was removed is the caller's. NULL:
 * no more. */
struct lease *ledger_take_touched(struct arbiter *arbiter, unsigned *ret_touched);

/* What is not isolated for this partition, as words of the bus contract; NULL-terminated
 * strings that live for ever. */
size_t arbiter_gaps(const struct arbiter *arbiter, const struct partition *partition,
		    const char *ret[static 6]);

/* The promises, checked from scratch against the leases: true, or false and which is
 * broken. For tests, after every operation. */
bool ledger_check(const struct arbiter *arbiter, char *buf, size_t size);
