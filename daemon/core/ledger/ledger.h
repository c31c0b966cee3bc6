/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The ledger: all GPUs, all leases, and what each lease is charged on each GPU. Functions of
 * this floor keep the sums consistent; they decide nothing.
 *
 * Every change of a lease that the daemon has to save or publish puts the lease on the list of
 * touched leases; every change of a GPU that the bus shows sets gpu->changed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/ledger/gpu.h"
#include "core/policy/result.h"
#include "core/policy/settings.h"

struct caller;
struct cover;
struct known_process;
struct request;

/* Kinds of observations. */
enum fresh { FRESH_USE = 1 << 0, FRESH_MASKS = 1 << 1 };

struct arbiter {
	/* The index is the number of the GPU's object on the bus. Ordered by name at the start;
	 * a GPU that is added later takes the slot that a GPU of its name had, or the next one.
	 * There is memory for REQUEST_WANTS. */
	struct gpu *gpus;
	size_t n_gpus;
	struct settings *settings; /* never NULL */

	struct lease **leases; /* ordered by id */
	size_t n_leases, room; /* room: capacity of `leases` and of `waiting` */
	uint64_t next_id;
	struct lease *touched; /* list of leases that the daemon has to save or publish */

	/* The waiting leases in the order of grants: higher classes first, then by id. */
	struct lease **waiting;
	size_t n_waiting;
	uint64_t changes;              /* counts the changes that may help a waiting lease */
	uint64_t freed[REQUEST_WANTS]; /* by GPU: the number of the last one there */
	uint64_t freed_all;            /* the number of the last one that may help all of them */
	uint64_t round, examined; /* numbers at the beginning of this round, and of the last one
				   * that ended: change/admit/wait.c */
	size_t next_examined;     /* position in `waiting` where arbiter_plan_next() goes on */
	uint64_t round_steps;     /* that it may take: decide/admit.h */
	bool paused; /* they were used up in this round, or this one waits for others */

	size_t next_searched; /* position in `waiting` where arbiter_make_room() goes on */

	uint64_t times_late; /* how often a lease has begun to be late: lease->lend.late */
	bool lending;        /* there were adaptable leases at the last arbiter_lend() */
	bool verifies;       /* queue descriptors can be read: an acknowledgement is checked */
	char unseen[256];    /* a sentence: why they cannot; "": they can, or none was tried */

	struct known_process *known; /* known.h */
	size_t n_known;

	struct cover *covers; /* cover.h */
	size_t n_covers;
	bool covers_changed; /* since cover_sum_up() */
	unsigned
		fresh; /* bits of enum fresh: observations that change/enforce/drift.c has not judged */
	bool queues_changed; /* since the last scan of descriptors */
	uint64_t masks_usec; /* when that scan was judged; 0: there was none */
};

/* Loops over the leases in the order of ids, and over the GPUs: `it` is a pointer to one. The body adds neither. */
#define FOR_EACH_LEASE(it, arbiter)                           \
	for (struct lease **it##_at = (arbiter)->leases, *it; \
	     it##_at < (arbiter)->leases + (arbiter)->n_leases && (it = *it##_at); it##_at++)
#define FOR_EACH_GPU(it, arbiter) \
	for (struct gpu *it = (arbiter)->gpus; it < (arbiter)->gpus + (arbiter)->n_gpus; it++)

/* Takes settings. first_id: the first lease id to hand out. */
int arbiter_new(struct settings *settings, const struct gpu_info *gpus, size_t n_gpus,
		uint64_t first_id, struct arbiter **ret);
struct arbiter *arbiter_free(struct arbiter *arbiter);
DEFINE_CLEANUP(struct arbiter *, arbiter_free)

/* Replaces the settings for all later decisions; takes the new ones. */
void arbiter_set_settings(struct arbiter *arbiter, struct settings *settings);

/* ---- find -------------------------------------------------------------------------- */

/* Index of a GPU that is present, by name or decimal index; -ENOENT. */
int ledger_find_gpu(const struct arbiter *arbiter, const char *gpu);

/* The GPU that has this id: one that is present rather than an absent one that had it. NULL. */
struct gpu *ledger_find_kfd(const struct arbiter *arbiter, uint32_t kfd_gpu_id);

/* The absent GPU that has this name or index; NULL. */
const struct gpu *ledger_find_absent(const struct arbiter *arbiter, const char *gpu);

/* The present GPUs that a want names (struct want, gpu), as bits. -ENOENT: one of them, `missing`, was never
 * there, or all are absent. */
int ledger_wanted(const struct arbiter *arbiter, const char *gpus, uint64_t *ret,
		  char missing[static GPU_NAME_MAX]);

/* Replaces GPU indexes in a request by names: a waiting or repeated request means the GPU that
 * it meant when it was made. */
void ledger_name_gpus(const struct arbiter *arbiter, struct request *request);

/* The GPUs that share the memory of this one, and itself, as bits. */
uint64_t ledger_sharing(const struct arbiter *arbiter, unsigned gpu);

struct lease *ledger_find(const struct arbiter *arbiter, uint64_t id); /* NULL */

/* The lease that this uid holds under this token; NULL if there is none, or it is ending. */
struct lease *ledger_find_token(const struct arbiter *arbiter, uid_t uid, const char *token);

/* The lease of a Reserve of this caller that an earlier daemon did not answer; NULL. */
struct lease *ledger_find_unanswered(const struct arbiter *arbiter, const struct caller *caller,
				     const struct request *request);

/* Another lease that the process is bound to and that shares a GPU with this lease (a waiting one: a
 * GPU that it could get), where one of the two is adaptable; NULL. The agent of an adaptable lease
 * gives every queue of the process on the GPU one mask. */
const struct lease *ledger_find_rival(const struct arbiter *arbiter, const struct lease *lease,
				      pid_t pid);

/* The lease, if the caller may act on it: its owner or an administrator. */
int ledger_find_owned(const struct arbiter *arbiter, const struct caller *caller, uint64_t id,
		      struct lease **ret, struct result *result);

/* ---- change ------------------------------------------------------------------------ */

/* Inserts a lease by its id and charges it; there must be room. Raises next_id above its id. */
void ledger_insert(struct arbiter *arbiter, struct lease *lease);

/* Removes a lease; it stays on the list of touched leases until the daemon takes it. */
void ledger_remove(struct arbiter *arbiter, struct lease *lease);

void ledger_charge(struct arbiter *arbiter, const struct lease *lease);

/* Does not discharge CUs of shared partitions: call ledger_recount_shared() once the lease is
 * removed or has other partitions. */
void ledger_discharge(struct arbiter *arbiter, const struct lease *lease);
void ledger_recount_shared(struct arbiter *arbiter, const struct lease *gone);

/* The holder uses the granted masks: CUs and budgets that left them are discharged. */
void ledger_follow(struct arbiter *arbiter, struct lease *lease);

/* Clients see the lease as its file has it, with what was observed since. Takes saved. */
void ledger_show(const struct arbiter *arbiter, struct lease *lease, struct lease *saved);

/* A copy to try changes on, with an own list of the same leases: leave leases out and put them back,
 * and nothing else. There is room for one more. -ENOMEM. */
int ledger_copy(const struct arbiter *arbiter, struct arbiter *ret);
void ledger_copy_done(struct arbiter *copy);
void ledger_leave_out(struct arbiter *copy, const struct lease *lease);
void ledger_put_back(struct arbiter *copy, struct lease *lease);

/* Leaves out the leases of all other users, what the last scan observed, draining, resets and
 * barriers. */
void ledger_leave_user(struct arbiter *copy, uid_t uid);

/* The first half of ledger_leave_out(), for several leases: ledger_recount_shared() of each has to
 * follow. */
void ledger_take_out(struct arbiter *copy, const struct lease *lease);

/* A view to walk through the leases of one GPU at a time: a copy that shares everything with the ledger. */
struct ledger_view {
	struct arbiter there;
	struct lease *
		*leases; /* owned, by GPU; NULL, without memory: all count as leases of each GPU */
	size_t first[REQUEST_WANTS + 1];
};

/* Valid until a lease is inserted or removed. */
void ledger_view(const struct arbiter *arbiter, struct ledger_view *ret);
const struct arbiter *ledger_on(struct ledger_view *view, unsigned gpu);

/* Where all leases are that share a GPU, or its memory, with this one. */
const struct arbiter *ledger_beside(struct ledger_view *view, const struct arbiter *arbiter,
				    const struct lease *lease);

/* ---- snapshot.c: the ledger of one moment, to be read while the ledger itself changes --- */

/* Copies GPUs, leases, waiting leases and covers, not known processes. The settings are those of the ledger. -ENOMEM. */
int snapshot_new(const struct arbiter *arbiter, struct arbiter **ret);
struct arbiter *snapshot_free(struct arbiter *snapshot);
DEFINE_CLEANUP(struct arbiter *, snapshot_free)

/* ---- notice ------------------------------------------------------------------------ */

/* touch: bits of enum touch. */
void ledger_touch(struct arbiter *arbiter, struct lease *lease, unsigned touch);

/* Leases that are revoked for this lease have changed: if it waits, its reason names them. */
void ledger_touch_waiting(struct arbiter *arbiter, uint64_t id);

/* Takes the next touched lease off the list; NULL: the list is empty. A removed lease belongs
 * to the caller. */
struct lease *ledger_take_touched(struct arbiter *arbiter, unsigned *ret_touched);

/* Something became free on these GPUs (bits): arbiter_plan_next() examines the waiting leases
 * that could use them. UINT64_MAX: all waiting leases. */
void ledger_examine_again(struct arbiter *arbiter, uint64_t gpus);

/* Adaptable leases may borrow free CUs of these GPUs (bits) after grow-delay. */
void ledger_grow(struct arbiter *arbiter, uint64_t gpus);

/* Both. */
void ledger_wake(struct arbiter *arbiter, uint64_t gpus);
