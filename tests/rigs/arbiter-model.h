/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Random operations on an arbiter, each checked: test-arbiter-model.c runs them. */

#include "ledger-rig.h"

#define MODEL_QUEUES 48U

/* A queue of the last scan of descriptors that is not within what one lease of its process occupies. */
struct model_queue {
	pid_t pid;
	unsigned gpu;
	uint64_t lease; /* with a partition there; 0: none */
	struct cuset outside;
};

/* The masks of a lease since its holder acknowledged one: its queues may have them. */
struct model_had {
	uint64_t lease, acknowledged;
	struct {
		unsigned gpu;
		struct cuset cus;
	} on[4]; /* its partitions; that of a GPU that goes ends */
};
#define MODEL_MAX_WAIT 200U /* the longest max-wait, in steps */

struct model {
	struct arbiter *arbiter;
	unsigned first_seed; /* of the run */
	unsigned seed;
	const uint8_t *input, *input_end; /* decides instead of the seed, then zeros; NULL: none */
	uint64_t last_id;
	uint64_t now; /* in steps of the run: deadlines are some of them ahead */
	bool oversubscribe;
	void (*unsettled)(
		struct model *model); /* in model_settle(), when something may follow; or NULL */
	struct gpu_info infos[4];
	/* What was reached, over all runs. */
	unsigned granted[3], gangs, resized, refused[REASONS];
	unsigned waited, waited_gangs, granted_later, timed_out, cancelled, never, barred;
	unsigned borrowed, activated, revoked, grown, untrue, forced[ENFORCE_STEP_KILL + 1],
		settled, preempted, kept, requeued, promised, observed, drifted, moved, steps,
		restarts;

	struct model_queue queues[MODEL_QUEUES];
	size_t n_queues;
	struct model_had had[64]; /* by id modulo their number */
};

unsigned model_below(struct model *model, unsigned n);
bool model_chance(struct model *model, unsigned percent);

/* Prints the operation, too: that of the last model_step(). */
void model_fail(const char *what) __attribute__((noreturn));

/* The promises, or the end. */
void model_check(const struct model *model);

/* Takes what was touched, as the daemon does. */
void model_carry_out(struct model *model);

/* Another policy, as after a reload; also the first. */
void model_set_policy(struct model *model);

/* One operation, and all that becomes of it. */
void model_step(struct model *model);

void model_random_request(struct model *model, struct request *request);

/* Reserves; if it is granted or waits, the lease has a holder. */
void model_reserve(struct model *model, const struct caller *caller, const struct request *request);

/* Ends all leases: every GPU is as at the start. */
void model_end(struct model *model);

/* ---- restarts: arbiter-model-restart.c ---- */

/* Another arbiter takes over what was saved. */
void model_restart(struct model *model);

/* ---- waiting: arbiter-model-wait.c ---- */

/* Before and after a waiting lease is granted. */
void model_check_waited(struct model *model, const struct lease *lease, const struct lease *next);
void model_check_granted(struct model *model, const struct lease *lease);

/* None of those that wait could be granted. */
void model_check_waiting(struct model *model);

/* Counts what ended while it waited. */
void model_count_ended(struct model *model, const struct lease *lease);

void model_expire(struct model *model);

/* What was granted against what was asked, want by want. */
void model_check_grant(const struct model *model, const struct request *request,
		       const struct lease *lease);

/* ---- observed queues: arbiter-model-drift.c ---- */

void model_set_drift(struct model *model, struct settings *settings);

/* Queues of processes with and without leases, with any CUs. Returns how many. */
size_t model_add_processes(struct model *model, struct observed_mask *rows, size_t max);

/* Keeps what a scan of descriptors showed. */
void model_keep_rows(struct model *model, const struct observed_mask *rows, size_t n);

/* A scan of processes: the queues of those that are gone are gone. */
void model_forget_gone(struct model *model);

/* No CU that the new partitions of a lease have is covered by a queue outside of its lease. */
void model_check_observed(struct model *model, const struct lease *lease);

/* ---- lending: arbiter-model-lend.c ---- */

void model_set_lending(struct model *model, struct settings *settings);
void model_random_lending(struct model *model, struct request *request);

/* A scan of descriptors, if they can be read. */
void model_see_masks(struct model *model);

/* One operation of those that concern lending. */
void model_lend_one(struct model *model);

/* What a daemon does after each operation, until nothing is left to do. */
void model_settle(struct model *model);

void model_check_progress(struct model *model);
