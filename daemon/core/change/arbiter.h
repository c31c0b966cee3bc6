/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The arbiter decides which part of which GPU belongs to which lease. It is pure: no file, bus,
 * device or clock; the time and every observation are arguments. This header is its face for the
 * daemon and the bus.
 *
 * A change that grants something has two steps, so that nothing is granted before it is saved:
 * arbiter_plan*() decides and returns a proposal while the ledger stays as it is;
 * arbiter_commit() puts the proposal into force and cannot fail. No other change may come between
 * the two.
 *
 * The daemon takes what has to be saved and published from the list of touched leases
 * (ledger_take_touched()) and from gpu->changed.
 */

#include <limits.h>

#include "core/decide/move.h"
#include "core/decide/preempt.h"
#include "core/ledger/ledger.h"
#include "core/ledger/waiting-queue.h"
#include "core/observe/attribution.h"

/* ---- reconcile.c: what follows from the ledger ----------------------------------------- */

/*
 * After every change, and when arbiter_next_deadline() has come, the daemon calls two functions in turn until
 * nothing follows any more:
 *
 * arbiter_lend() puts facts into force, because CUs are claimed or have come back: masks shrink, leases
 * pause, and activating leases are granted. The daemon saves and publishes the leases that it touches.
 *
 * arbiter_next_step() plans the next change that has to be saved before it is in force.
 */
enum step_kind {
	STEP_NONE,
	STEP_REQUEUE, /* a lease waits again: arbiter_plan_requeue() */
	STEP_GRANT,   /* a waiting lease */
	STEP_MOVE,    /* adaptable leases make room for a waiting one */
	STEP_GROW,    /* an adaptable lease gets another mask */
};

/* The caller commits the first n_first leases of *ret in their order. blind: no scan has shown which queues cover
 * CUs, so no lease is granted, and none moves or is revoked for one. STEP_NONE: there is nothing to commit, or no
 * memory; leases that arbiter_make_room() revoked are touched. room_steps: of arbiter_make_room(). */
enum step_kind arbiter_next_step(struct arbiter *arbiter, uint64_t now_usec, bool blind,
				 unsigned *room_steps, struct move_set *ret);

/* The caller could not save a step: arbiter_next_step() plans it again in another turn. */
void arbiter_step_failed(struct arbiter *arbiter, enum step_kind kind);

/* ---- proposal.c ---------------------------------------------------------------------- */

/* Takes a proposal: a new lease, or the next version of the lease with its id. Returns the lease
 * in force. */
struct lease *arbiter_commit(struct arbiter *arbiter, struct lease *proposal);

/* Puts the outcome of arbiter_plan_drain() into force. */
void arbiter_commit_drain(struct arbiter *arbiter, uint64_t drained);

/* Plans and commits at once, for what is saved already. -ENOENT. */
int arbiter_drain(struct arbiter *arbiter, const char *gpu, bool drain);

/* When arbiter_expire(), arbiter_next_enforce_step() or arbiter_plan_growth() has to be called
 * next; UINT64_MAX: never. */
uint64_t arbiter_next_deadline(const struct arbiter *arbiter);

/* ---- adopt.c: leases that an earlier daemon granted and saved -------------------- */

/*
 * Puts a saved lease into force. It has only what was saved: no holders, and nothing observed. lost: the name of a GPU of
 * the lease that is gone or replaced, "" if none; its partition there has the index GPU_ABSENT. Then, and where the
 * GPU can never have this partition, the lease is ending with that reason. -EEXIST, -EINVAL: the
 * lease contradicts a lease in force, or itself; why is a sentence, and the lease still belongs to
 * the caller. -ENOMEM. A lease that was ending is touched as ending again: its holder may not have
 * been notified.
 */
#define GPU_ABSENT UINT_MAX
int arbiter_adopt(struct arbiter *arbiter, struct lease *lease, const char *lost, char *why,
		  size_t size);

/* Call it when all saved leases are adopted. When masks last grew is not saved: this time counts as
 * that of each GPU, so that growth is paced across a restart, too. */
void arbiter_adopted(struct arbiter *arbiter, uint64_t now_usec);

/* ---- hotplug.c ------------------------------------------------------------------- */

/* Replaces the list of GPUs. The leases of a GPU that is gone, or has another kfd_gpu_id, shape
 * or number of slots, end; all other leases stay. A GPU that was drained is still drained when
 * its name comes back. -E2BIG: n is above REQUEST_WANTS, and nothing has changed; or ending
 * leases occupy slots, and the list has to be set again when they have ended. */
int arbiter_set_gpus(struct arbiter *arbiter, const struct gpu_info *gpus, size_t n);

/* ---- observation.c: what processes use of the GPUs ---------------------------------- */

/* Takes one scan: all processes that use GPUs now, ordered by pid. Attributes them to leases,
 * counts unmanaged use, finds oversubscription, and removes ending leases that no process uses
 * any more. -ENOMEM, and nothing has changed. */
int arbiter_observe(struct arbiter *arbiter, const struct observed *rows, size_t n);

/* ---- verify.c: acknowledged masks against those of the hardware's queue descriptors --- */

/* Are there acknowledgements to verify (*ret_urgent: one that was never checked), or queues that
 * no scan of the descriptors has covered? */
bool arbiter_wants_masks(const struct arbiter *arbiter, bool *ret_urgent);

/* Takes one scan: all compute queues of the hardware. A true acknowledgement frees the CUs that
 * left the masks; after a false one they stay occupied and the lease is reported. n 0: there are
 * no queues, or the descriptors cannot be read: every acknowledgement counts as true. Queues of a
 * process that arbiter_observe() has not shown are left out. -ENOMEM, and nothing has changed. */
int arbiter_masks_observed(struct arbiter *arbiter, const struct observed_mask *rows, size_t n);

/* The first partition with a queue that has CUs beyond its mask, or runs although the partition is paused, against
 * an acknowledgement; NULL. */
const struct partition *verify_find(const struct lease *lease);

/* ---- drift.c: leases that use more than they were granted ------------------------ */

/* Judges the observations since the last call, and sets the tier of each partition. What exceeds a
 * grant for drift-grace is drift: it is reported, and the lease is revoked or killed where policy
 * says so. Call it soon after an observation. */
void arbiter_judge_drift(struct arbiter *arbiter, uint64_t now_usec);

/* When another observation of this kind decides whether something is drift; UINT64_MAX: nothing may
 * be. */
uint64_t arbiter_drift_at(const struct arbiter *arbiter, enum fresh fresh);

/* For a lease that ends because of the default on-drift = protect: are its processes not killed now, because
 * none of them covers a CU or shader engine of a realtime lease any more? */
bool drift_is_spared(const struct arbiter *arbiter, const struct lease *lease);

/* Times of drift below drift-grace add up, and are forgotten so many times as slowly. */
#define DRIFT_FORGET_PARTS 10U

/* "3 queues on 0000:03:00.0 (granted: 2), …": how the lease drifts; "": not. */
void arbiter_drift_text(const struct arbiter *arbiter, const struct lease *lease, char *ret,
			size_t size);

/* ---- intruders.c: what others do on the CUs of a lease ----------------------------- */

/* Finds anew who disturbs each lease. */
void intruders_review(struct arbiter *arbiter, uint64_t now_usec);

/* "disturbed on 4 CUs of 0000:03:00.0: pid 7 (python3) without a lease"; "": it is not. */
void intruders_text(const struct arbiter *arbiter, const struct lease *lease, char *ret,
		    size_t size);

/* ---- cap.c: queues beyond the grant that the kernel refuses ------------------------ */

/* What all processes of a lease have, counted when one of them is about to create a queue. */
struct cap_use {
	const struct lease *lease;
	struct budget used[REQUEST_WANTS]; /* by partition: queues of each kind */
	struct budget elsewhere;           /* on GPUs that the lease has no partition of */
	unsigned in_flight;                /* calls that were allowed and may still run */
};

/* Adds the queues of one process on the GPU with this number. */
void cap_add(const struct arbiter *arbiter, struct cap_use *use, uint32_t kfd_gpu_id,
	     const struct budget *used);

/* CAP_LATER: it depends on the outcome of a call in flight. */
enum cap_decision { CAP_ALLOW, CAP_LATER, CAP_REFUSE };
enum cap_decision cap_decide(const struct cap_use *use);

/* Whether a filter stands between the kernel and every process that is bound to the lease, and whether
 * the kernel caps the unit that has all of them. */
void arbiter_set_filtered(struct arbiter *arbiter, struct lease *lease, bool filtered);
void arbiter_set_enforced(struct arbiter *arbiter, struct lease *lease, bool enforced);

/* The partitions of the lease are new: marks them as capped, or not. */
void cap_mark(struct lease *lease);

/* ---- lifecycle.c: what keeps a lease alive, and how it ends ---------------------- */

/* Holders and bound processes keep a lease alive; without any it is ending. Unknown ids do
 * nothing. */
void arbiter_add_holder(struct arbiter *arbiter, uint64_t id);
void arbiter_holder_gone(struct arbiter *arbiter, uint64_t id);

/* The answers to requests that may not wait, and do so for leases that shrink, move or are revoked,
 * were lost with the earlier daemon. Their leases need no holder until then. */
void arbiter_await_claims(struct arbiter *arbiter, uint64_t until_usec);

/* Ends leases that were not claimed. */
void lifecycle_expire_claims(struct arbiter *arbiter, uint64_t now_usec);

/* When the lease is to be revoked because its duration will be over: UINT64_MAX: never. */
uint64_t lifecycle_notice_at(const struct arbiter *arbiter, const struct lease *lease);

/* Revokes leases whose duration is nearly over, with its end as their deadline. */
void lifecycle_expire_durations(struct arbiter *arbiter, uint64_t now_usec);

/* delegated: root binds it. -ENOENT, -ENOSPC. */
int arbiter_bind(struct arbiter *arbiter, uint64_t id, pid_t pid, bool delegated);
void arbiter_bound_gone(struct arbiter *arbiter, uint64_t id, pid_t pid);

/* The process lives, and keeps the lease alive no more. */
void arbiter_unbind(struct arbiter *arbiter, struct lease *lease, pid_t pid);

/* An adaptable lease without bound processes returns what it borrows. */
void lifecycle_review_bound(struct arbiter *arbiter, struct lease *lease);

/* The holder uses the masks of this generation. -ENOENT; -ERANGE: a generation that was never
 * sent. */
int arbiter_acknowledge(struct arbiter *arbiter, uint64_t id, uint64_t generation);

/* Ends a lease; does nothing if it is ending. cause: the error for a program that waits for the
 * lease; RESULT_OK: none. */
void arbiter_end(struct arbiter *arbiter, struct lease *lease, enum result_kind cause,
		 const char *reason);

/* The lease ends when its holder acknowledges a new generation, or at the deadline. A second
 * revocation can only bring the deadline forward. */
int arbiter_revoke(struct arbiter *arbiter, uint64_t id, uint64_t now_usec, uint64_t grace_usec,
		   const char *reason, struct result *result);

/* At the deadline of the lease its processes that use a GPU are killed, whatever policy its tenant has. Without
 * such a lease it does nothing. */
void arbiter_kill_overdue(struct arbiter *arbiter, uint64_t id);

/* The lease, which is not ending, is revoked with this deadline. */
void lifecycle_revoke(struct arbiter *arbiter, struct lease *lease, uint64_t deadline_usec,
		      const char *reason);

/* ---- preemption.c -------------------------------------------------------------------- */

/* Makes room for the waiting leases that were refused since it last did what it can for them. 1: *ret has moves
 * of adaptable leases after which one fits; 0: there are none. Where moves do not help, it revokes leases for
 * waiting leases of higher classes (decide/preempt.h), with activate-grace as their notice. It keeps leases that
 * were revoked for a lease which does not wait any more. Call it when arbiter_plan_next() has returned 0. Without
 * memory it is to be called again. steps: what the searches of this turn may still take, less what they take;
 * one that has begun ends. Where none are left, it is to be called in another turn. */
#define ROOM_STEPS 2000U
int arbiter_make_room(struct arbiter *arbiter, uint64_t now_usec, unsigned *steps,
		      struct move_set *ret);

/* 1: *ret is the next version of a lease that waits again, to be saved and committed: it was revoked for
 * another one and has returned everything; or wait_begins_elsewhere(). 0: none, or no memory. */
int arbiter_plan_requeue(struct arbiter *arbiter, struct lease **ret);

/* Derives from the adopted leases for which lease they are revoked. */
void preemption_adopted(struct arbiter *arbiter);

/* ---- effects.c ----------------------------------------------------------------------- */

/* An adaptable lease that shrinks on one GPU. */
struct shrinking {
	uint64_t lease;
	char gpu[GPU_NAME_MAX];
	unsigned from, to; /* CUs */
};

/* What a planned grant does to other leases, when nothing follows any more. */
struct effects {
	struct shrinking *shrinks; /* owned */
	size_t n_shrinks;
	uint64_t *pauses; /* owned: adaptable leases that are paused while the lease is active */
	size_t n_pauses;
	uint64_t *moves; /* owned: adaptable leases that get other CUs, and no fewer */
	size_t n_moves;
	struct advice revoked;
	uint64_t within_usec; /* until the grant at the latest; UINT64_MAX: no bound */
};

/* Finds moves for a request that does not fit, or that gets less than the whole shader engines that it
 * asks for (proposal, or NULL). result: of preempt_plan(). The first of them are to be saved and committed; then
 * arbiter_plan_moved() replaces the proposal. */
bool arbiter_moves_help(const struct arbiter *arbiter, const struct caller *caller,
			const struct request *request, const struct lease *proposal,
			const struct result *result, uint64_t now_usec, struct move_set *ret);

/* arbiter_plan() when leases have moved for the request. Where it does not fit before their holders have acknowledged
 * that, it waits; until activate-grace is over, no lease is revoked for it. */
int arbiter_plan_moved(const struct arbiter *arbiter, const struct caller *caller,
		       const struct request *request, uint64_t now_usec, struct lease **ret,
		       struct result *result);

/* preempt_plan() when leases have moved for the request if that helps, and what becomes of the others. What leases that
 * wait are granted in between is not in it. effects: all zero before. */
int arbiter_plan_effects(const struct arbiter *arbiter, const struct caller *caller,
			 const struct request *request, uint64_t now_usec, struct lease **ret,
			 struct effects *effects, struct result *result);
void effects_done(struct effects *effects);

/* ---- review.c -------------------------------------------------------------------- */

/* Ends leases that the present policy would not grant: tenant, user, class, priority and quotas. A
 * quota is exceeded by the latest leases of the user, not by the earlier ones. A tenant with groups
 * may match any user: the groups of the process that asked are not stored. Waiting leases are
 * judged when they are to be granted. */
void arbiter_review(struct arbiter *arbiter);

/* ---- wait.c: waiting leases: granted, still waiting, or refused for ever --------- */

/* 1: *ret is the next version of a waiting lease that fits now, to be saved and committed; the
 * next call continues behind it. 0: no lease fits until something becomes free. Leases that
 * neither policy nor any GPU would ever grant end on the way. Without memory it is 0.
 *
 * A lease is examined if something that it could use became free since it was examined last. A round goes
 * through the leases in their order. What becomes free in a round is granted to no lease before those that
 * rank before it have been examined. It is 0, too, when arbiter->round_steps are used up: the round is paused
 * until there are others, and then goes on with the next lease. */
int arbiter_plan_next(struct arbiter *arbiter, struct lease **ret);

/* What arbiter_plan_next() has returned could not be saved: it will be planned again, in another turn. */
void wait_try_again(struct arbiter *arbiter);

/* Is a round paused before its end? Then a waiting lease that was not examined may fit: no request may be
 * granted anything before it. */
static inline bool arbiter_in_round(const struct arbiter *arbiter)
{
	return arbiter->paused && arbiter->round != arbiter->examined;
}

/* Must a request that arrives now wait for the round? Only for leases that rank before it, so that one
 * user's waiting leases do not delay the others' requests. */
bool wait_precedes(const struct arbiter *arbiter, enum lease_class lease_class, uid_t uid);

/* Has a waiting lease been examined since something became free that may help it? */
bool wait_is_examined(const struct arbiter *arbiter, const struct lease *lease);

/* Does a lease that was never granted begin on CUs that another one does not return in time, and would it get others
 * now? Then it is to wait again. It is examined once after each change, in the steps of the round, and waits again
 * once for each lease that is late: it may get the CUs of such a lease again. */
bool wait_begins_elsewhere(struct arbiter *arbiter, struct lease *lease);

/* Finds moves of adaptable leases after which the waiting lease fits. 1; 0: there are none, and never are where
 * fewer CUs are free than it needs; -EAGAIN: leases that have moved for it have not followed yet. */
int wait_plan_moves(struct arbiter *arbiter, struct lease *waiting, uint64_t now_usec,
		    struct move_set *ret);

/* What leases did for the waiting lease was in vain, or others may move now: searches again, if it is time. */
void wait_search_again(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec);

/* Ends waiting and activating leases that were not granted by their deadline. */
void arbiter_expire(struct arbiter *arbiter, uint64_t now_usec);

/* GPUs came or went: which of them could ever take a want of a waiting lease is found when it is examined. */
void wait_gpus_changed(struct arbiter *arbiter);

/* ---- lend.c: adaptable leases borrow CUs that no active lease claims ------------- */

/*
 * Adjusts the masks of adaptable leases to the present claims. Call it after every change.
 * Borrowers of claimed CUs shrink, activating leases whose CUs are free are granted, deadlines of
 * borrowers are set, and the time of the next growth is fixed. New generations are touched.
 */
void arbiter_lend(struct arbiter *arbiter, uint64_t now_usec);

/* The masks of this lease on the GPU change: counts a disturbance for the realtime leases whose
 * queues leave the hardware for it. */
void lend_disturb(struct arbiter *arbiter, const struct lease *by, unsigned gpu);

/* The mask of the lease has changed: it does not grow for activate-min-interval. rt plan counts on
 * that (client/rt/delay.c). */
void lend_rest(const struct arbiter *arbiter, struct lease *lease, uint64_t now_usec);

/* A lease that is revoked already, and whose CUs are needed, gets no more time than any borrower. */
void lend_shorten_grace(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec);

/* Jain's index of the CUs for each unit of weight that the adaptable leases on a GPU have: 1 if all
 * have as many, or there are none; 1/n if one of n has all. */
double lend_fairness(const struct arbiter *arbiter, unsigned gpu);

/* ---- growth.c: free CUs are divided among adaptable leases ----------------------- */

/* Divides the GPUs of a lease, just committed: bases move, and masks are promised, for which leases
 * shrink. */
void growth_join(struct arbiter *arbiter, const struct lease *lease);

/* 1: *ret is the next version of an adaptable lease with a larger mask, to be saved and committed. A round
 * that promises masks begins grow-delay after something became free, and at least activate-min-interval
 * after the last mask grew. 0: none; then leases may have been touched that shrink. Without memory it is
 * 0. */
int arbiter_plan_growth(struct arbiter *arbiter, uint64_t now_usec, struct lease **ret);

/* ---- pause.c: adaptable leases beside an active exclusive lease -------------------- */

/* Pauses or resumes a partition of an adaptable lease; returns whether it has changed, which needs a
 * new generation. */
bool pause_partition(struct partition *p, const struct lease *lease, bool paused);

/* Counts a pause that has begun, and the time of one that has ended. */
void pause_count(struct lease *lease, uint64_t now_usec);

/* Is there a pause that the holder has not acknowledged? */
bool pause_is_due(const struct lease *lease);

/* Reports a pause longer than max-pause, once. */
void pause_report(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec);

/* When pause_report() reports a long pause; UINT64_MAX: never. */
uint64_t pause_report_at(const struct arbiter *arbiter, const struct lease *lease);

/* ---- driver.c: what the driver does to leases ------------------------------------ */

/* The driver took the queues of a process of this lease off a GPU at this time of CLOCK_BOOTTIME, or
 * put them back. */
void arbiter_evicted(struct arbiter *arbiter, uint64_t lease, uint64_t usec);
void arbiter_restored(struct arbiter *arbiter, uint64_t lease, uint64_t usec);

/* The driver resets the GPU: the queues on it are lost, and the leases say so. They stay: a program that
 * is started again under its lease has new queues. Nothing is granted on the GPU until the driver says
 * that the reset has ended; without a word of it after RESET_USEC. */
#define RESET_USEC UINT64_C(60000000)
void arbiter_gpu_reset(struct arbiter *arbiter, unsigned gpu, uint64_t now_usec);
void arbiter_gpu_reset_ended(struct arbiter *arbiter, unsigned gpu);

/* A lease whose processes use no GPU any more has lost nothing that it still has to know of. */
void arbiter_forget_resets(struct arbiter *arbiter);

/* ---- reason.c -------------------------------------------------------------------- */

/* Why the lease is in its state, by the facts of this moment; "": nothing to report. Returns buf. */
const char *arbiter_reason(const struct arbiter *arbiter, const struct lease *lease,
			   char buf[static REQUEST_TEXT]);

/* The lease awaits CUs that `by` has; NULL: that what disturbs it ends. Touches it if its reason changes. */
void reason_awaits(struct arbiter *arbiter, struct lease *lease, const struct lease *by,
		   const struct refusal *disturbed);

/* ---- enforcement.c --------------------------------------------------------------- */

/* Time between the kill of a lease's processes and their absence from the GPU: the driver's
 * default preemption time-out, after which the GPU is reset, and one scan. */
#define ENFORCE_LET_GO_USEC (PREEMPTION_MSEC * UINT64_C(1000) + SCAN_WHILE_ENDING_USEC)

/* The next step against a lease that has not given back CUs by its deadline, up to the last one
 * that policy allows for its tenant; it counts as done, and the daemon carries it out.
 * ENFORCE_STEP_NONE: nothing is due. A revoked lease ends at its deadline, other leases when they
 * are killed. */
enum enforce_step arbiter_next_enforce_step(struct arbiter *arbiter, uint64_t now_usec,
					    struct lease **ret);

/* gpuarb-enforce could not be asked to kill a process of the lease, or has not answered: the kill is due again after a second.
 * Without such a lease, or before its kill was due, it does nothing. */
void arbiter_kill_again(struct arbiter *arbiter, uint64_t id, uint64_t now_usec);

/* Acknowledgements could not be counted for a while: a borrower whose deadline has passed gets time to
 * acknowledge again. */
void arbiter_give_time(struct arbiter *arbiter, uint64_t now_usec);

/* Clears `frozen` of the leases whose unit need not be frozen any more: the daemon thaws it. */
void arbiter_forget_frozen(struct arbiter *arbiter);

/* No process is bound to the lease, and none of it is on a GPU: at its deadline it has given back. */
bool enforce_expires(const struct arbiter *arbiter, const struct lease *lease);

/* When the lease has released its CUs at the latest if it never answers; UINT64_MAX: policy does not
 * allow to kill it, or a process of it on a GPU is not bound to it. */
uint64_t enforce_over_at(const struct arbiter *arbiter, const struct lease *lease,
			 uint64_t now_usec);
