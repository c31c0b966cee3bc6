/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger/lease.h"
#include "core/ledger/ledger.h"

/* The first entry with this pid, or where it would be: entries are ordered by pid. */
static size_t position(const struct arbiter *arbiter, pid_t pid)
{
	return COUNT_BEFORE(arbiter->n_known, i, arbiter->known[i].pid < pid);
}

const struct known_process *known_find(const struct arbiter *arbiter, pid_t pid,
				       uint64_t start_time)
{
	for (size_t i = position(arbiter, pid);
	     i < arbiter->n_known && arbiter->known[i].pid == pid; i++) {
		const struct known_process *known = &arbiter->known[i];

		if (known->start_time == start_time || start_time == 0 ||
		    known->start_time == KNOWN_UNSEEN)
			return known;
	}
	return NULL;
}

const struct known_process *known_with_lease(const struct arbiter *arbiter, pid_t pid)
{
	for (size_t i = position(arbiter, pid);
	     i < arbiter->n_known && arbiter->known[i].pid == pid; i++)
		if (arbiter->known[i].lease)
			return &arbiter->known[i];
	return NULL;
}

uint64_t known_lease(const struct arbiter *arbiter, pid_t pid)
{
	const struct known_process *known = known_with_lease(arbiter, pid);

	return known ? known->lease : 0;
}

/* Inserts an entry before index `at`. */
static int insert(struct arbiter *arbiter, size_t at, const struct known_process *known)
{
	struct known_process *more;

	more = reallocarray(arbiter->known, arbiter->n_known + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	arbiter->known = more;
	memmove(&more[at + 1], &more[at], (arbiter->n_known - at) * sizeof(*more));
	more[at] = *known;
	arbiter->n_known++;
	return 0;
}

int known_add(struct arbiter *arbiter, uint64_t id, const struct lease_process *process)
{
	const struct known_process known = { .pid = process->pid,
					     .start_time = process->start_time,
					     .lease = id,
					     .delegated = process->delegated,
					     .uid = process->delegated ? process->uid : (uid_t)-1 };
	size_t at = position(arbiter, known.pid);

	for (; at < arbiter->n_known && arbiter->known[at].pid == known.pid; at++)
		if (arbiter->known[at].start_time == known.start_time &&
		    arbiter->known[at].lease == id)
			return 0;
	return insert(arbiter, at, &known);
}

void known_bound_died(struct arbiter *arbiter, const struct lease *lease, pid_t pid)
{
	const struct known_process known = { .pid = pid,
					     .start_time = KNOWN_UNSEEN,
					     .lease = lease->id,
					     .own = true,
					     .delegated = lease_is_delegated(lease, pid),
					     .uid = (uid_t)-1 };

	size_t at = position(arbiter, pid);

	if (at == arbiter->n_known || arbiter->known[at].pid != pid)
		insert(arbiter, at, &known);
	else if (!ledger_find(arbiter, arbiter->known[at].lease) &&
		 (known.delegated ||
		  settings_same_user(arbiter->settings, arbiter->known[at].uid, lease->owner)))
		arbiter->known[at].lease = lease->id;
}

size_t known_processes(const struct arbiter *arbiter, uint64_t id, bool own,
		       struct lease_process *ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < arbiter->n_known; i++) {
		const struct known_process *known = &arbiter->known[i];

		if (known->lease != id)
			continue;
		if (own &&
		    (!known->own || known->start_time == 0 || known->start_time == KNOWN_UNSEEN))
			continue;
		/* A process on several GPUs has an entry for each. */
		if (i > 0 && known[-1].pid == known->pid &&
		    known[-1].start_time == known->start_time)
			continue;
		if (n < max)
			ret[n] = (struct lease_process){ known->pid, known->start_time,
							 known->delegated,
							 known->delegated ? known->uid : 0 };
		n++;
	}
	return n;
}
