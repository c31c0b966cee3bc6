/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Processes whose lease is known: arbiter->known, ordered by pid and replaced by every scan. A child keeps its lease
 * when its parent dies; a dead process keeps its lease until the kernel has destroyed its queues.
 * The entries are saved with the lease, because a restarted daemon could not find them out anew.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/policy/refusal.h"

struct arbiter;
struct lease;
struct lease_process;

struct known_process {
	NAMED_PROCESS;
	uint64_t start_time; /* 0: the process was dead when first observed; KNOWN_UNSEEN */
	uint64_t lease;      /* 0: none */
	bool own;            /* the process or an ancestor is bound to the lease */
	bool delegated;      /* it counts because root bound it or an ancestor, not by its user */
};

/* start_time of a bound process that died before the first scan observed it. */
#define KNOWN_UNSEEN UINT64_MAX

/* The entry of a process; NULL. start_time 0: the process is dead, only the pid is compared. */
const struct known_process *known_find(const struct arbiter *arbiter, pid_t pid,
				       uint64_t start_time);

/* The first entry of a process with this pid that has a lease; NULL. */
const struct known_process *known_with_lease(const struct arbiter *arbiter, pid_t pid);

/* The lease of a process with this pid; 0. */
uint64_t known_lease(const struct arbiter *arbiter, pid_t pid);

/* Adds a process of a saved lease. The next scan compares its user with that of the lease, as it does
 * with a new process, unless it was delegated. -ENOMEM. */
int known_add(struct arbiter *arbiter, uint64_t id, const struct lease_process *process);

/* A bound process died. Its queues outlive it, and the next scan has to attribute them. Without
 * memory they count as unmanaged. */
void known_bound_died(struct arbiter *arbiter, const struct lease *lease, pid_t pid);

/* Processes of a lease; own: only those that are bound to it or descend from a bound process, because
 * only these may be killed. Returns how many there are. */
size_t known_processes(const struct arbiter *arbiter, uint64_t id, bool own,
		       struct lease_process *ret, size_t max);
