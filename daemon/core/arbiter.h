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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/gpu.h"
#include "core/lease.h"
#include "core/observe.h"
#include "core/request.h"
#include "core/settings.h"
#include "core/verdict.h"

struct arbiter {
	struct gpu *gpus; /* ordered by name; index = object on the bus */
	size_t n_gpus;
	struct settings *settings; /* never NULL */

	struct lease **leases; /* ordered by id */
	size_t n_leases, room;
	uint64_t next_id;
	struct lease *touched;

	/* Processes already attributed, ordered by pid: a child keeps its lease when its
	 * parent dies, a dead process while the kernel still tears its queues down. */
	struct known_process *known;
	size_t n_known;
};

/* Takes settings. first_id: the first lease id to hand out. */
int arbiter_new(struct settings *settings, const struct gpu_info *gpus, size_t n_gpus,
		uint64_t first_id, struct arbiter **ret);
struct arbiter *arbiter_free(struct arbiter *arbiter);
DEFINE_CLEANUP(struct arbiter *, arbiter_free)

/* Puts other settings into force for what is asked from now on; takes them. */
void arbiter_set_settings(struct arbiter *arbiter, struct settings *settings);

/* Decides; changes nothing. On 0 the proposal is the caller's, with the id it would get.
 * Otherwise a negative errno, and in verdict why not. */
int arbiter_plan(const struct arbiter *arbiter, const struct caller *caller,
		 const struct request *request, struct lease **ret, struct verdict *verdict);

/* The same for other wants of a lease that is there: one want for each of its GPUs, what
 * it has counting as free. CUs that leave its mask stay charged to it until the new
 * generation is acknowledged. */
int arbiter_plan_resize(const struct arbiter *arbiter, const struct caller *caller,
			uint64_t id, const struct request *request, struct lease **ret,
			struct verdict *verdict);

/* Takes a proposal: a new lease, or the next version of the one with its id. Returns the
 * lease in force. */
struct lease *arbiter_commit(struct arbiter *arbiter, struct lease *proposal);

struct lease *arbiter_find(const struct arbiter *arbiter, uint64_t id); /* NULL */

/* The lease that this uid holds under this token: NULL if none lives. */
struct lease *arbiter_find_token(const struct arbiter *arbiter, uid_t uid, const char *token);

/* Finds a lease that the caller may act on: its owner's uid or an administrator. */
int arbiter_own(const struct arbiter *arbiter, const struct caller *caller, uint64_t id,
		struct lease **ret, struct verdict *verdict);

/* Holders and bound processes: what keeps a lease alive. When the last has gone the lease
 * is ending; with no user left on the hardware it is removed at the next
 * arbiter_observe(). Unknown ids do nothing. */
void arbiter_add_holder(struct arbiter *arbiter, uint64_t id);
void arbiter_holder_gone(struct arbiter *arbiter, uint64_t id);
int arbiter_bind(struct arbiter *arbiter, uint64_t id, pid_t pid); /* -ENOSPC */
void arbiter_bound_gone(struct arbiter *arbiter, uint64_t id, pid_t pid);

/* Ends it whoever holds it. */
void arbiter_end(struct arbiter *arbiter, uint64_t id, const char *reason);

/* The holder follows this generation: what it gave up is free. -ERANGE for one that was
 * never told. */
int arbiter_acknowledge(struct arbiter *arbiter, uint64_t id, uint64_t generation);

/* -ENOENT. */
int arbiter_drain(struct arbiter *arbiter, const char *gpu, bool drain);

/* Index of a GPU by name or decimal index; -ENOENT. */
int arbiter_gpu(const struct arbiter *arbiter, const char *gpu);

/* All processes that use GPUs now, ordered by pid: settles whose they are, counts what is
 * unmanaged, finds oversubscription, and removes the ending leases that nobody
 * uses any more. -ENOMEM, and then nothing changed. */
int arbiter_observe(struct arbiter *arbiter, const struct observed *rows, size_t n);

/* Takes the next touched lease off the list; one that was removed is the caller's. NULL:
 * no more. */
struct lease *arbiter_take_touched(struct arbiter *arbiter, unsigned *ret_touched);

/* What is not isolated for this partition, as words of the bus contract; NULL-terminated
 * strings that live for ever. */
size_t arbiter_gaps(const struct arbiter *arbiter, const struct partition *partition,
		    const char *ret[static 6]);

/* The promises, checked from scratch against the leases: true, or false and which is
 * broken. For tests, after every operation. */
bool arbiter_check(const struct arbiter *arbiter, char *buf, size_t size);
