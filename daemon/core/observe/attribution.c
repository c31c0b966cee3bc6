/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/observe/attribution.h"

#include <string.h>

#include "core/ledger/cover.h"
#include "core/ledger/lease.h"

/* How a process belongs to a lease. */
enum tie { TIE_NONE, TIE_ASKED, TIE_BOUND, TIE_DELEGATED };

static bool is_user_of(const struct arbiter *arbiter, const struct lease *lease,
		       const struct observed *row)
{
	return !row->mixed && settings_same_user(arbiter->settings, row->uid, lease->owner);
}

/* Root bound the process, whose user then does not matter, or an ancestor of the same user. */
static bool is_delegated(const struct arbiter *arbiter, const struct lease *lease,
			 const struct observed *row, size_t up)
{
	if (up == 0)
		return lease_is_delegated(lease, row->pid);
	return lease_is_delegated(lease, row->ancestors[up - 1]) && !row->mixed && row->uid != 0 &&
	       settings_same_user(arbiter->settings, row->uid, row->ancestor_uids[up - 1]);
}

/* By the process itself (up = 0) or by its ancestor of that generation. The user of a dead process is
 * unknown: its own pid counts where it is bound, and where nothing but the end of the lease follows. */
static enum tie tie_at(const struct arbiter *arbiter, const struct lease *lease,
		       const struct observed *row, size_t up)
{
	pid_t pid = up == 0 ? row->pid : row->ancestors[up - 1];
	bool bound = lease_is_bound(lease, pid), asked = pid > 0 && lease->pid == pid;
	bool dead = up == 0 && row->start_time == 0, user;

	/* What a process uses was not granted by a lease that waits. */
	if ((!bound && !asked) || lease->state == STATE_WAITING)
		return TIE_NONE;
	if (bound && is_delegated(arbiter, lease, row, up))
		return TIE_DELEGATED;
	user = is_user_of(arbiter, lease, row);
	if (bound && (user || dead))
		return TIE_BOUND;
	return asked && (user || (dead && lease->state == STATE_ENDING)) ? TIE_ASKED : TIE_NONE;
}

/* The lease that the process or its nearest ancestor has asked for or is bound to. */
static const struct lease *find_tied(const struct arbiter *arbiter, const struct observed *row)
{
	for (size_t up = 0; up <= row->n_ancestors; up++)
		FOR_EACH_LEASE(lease, arbiter)
			if (tie_at(arbiter, lease, row, up))
				return lease;
	return NULL;
}

/* The strongest tie: an ancestor may be bound to the lease that the process asked for. */
static enum tie tie_of(const struct arbiter *arbiter, const struct lease *lease,
		       const struct observed *row)
{
	enum tie strongest = TIE_NONE;

	for (size_t up = 0; up <= row->n_ancestors; up++) {
		enum tie tie = tie_at(arbiter, lease, row, up);

		strongest = tie > strongest ? tie : strongest;
	}
	return strongest;
}

/* The only lease of this user in this systemd unit; NULL if there are none or several. */
static const struct lease *find_in_unit(const struct arbiter *arbiter, const struct observed *row)
{
	const struct lease *found = NULL;

	if (!row->unit[0])
		return NULL;
	FOR_EACH_LEASE(lease, arbiter) {
		if (lease->state == STATE_WAITING || strcmp(lease->unit, row->unit) != 0 ||
		    !is_user_of(arbiter, lease, row))
			continue;
		if (found)
			return NULL;
		found = lease;
	}
	return found;
}

/* Does a process that was attributed to the lease still count for it? A dead one does until the kernel
 * has destroyed its queues. One whose user has changed is judged anew. */
static bool keeps(const struct arbiter *arbiter, const struct lease *lease,
		  const struct known_process *known, const struct observed *row)
{
	if (row->start_time == 0 || is_user_of(arbiter, lease, row))
		return true;
	return known->delegated && !row->mixed && row->uid == known->uid;
}

struct known_process attribution_of(const struct arbiter *arbiter, const struct observed *row)
{
	const struct known_process *known = known_find(arbiter, row->pid, row->start_time);
	const struct lease *lease = known && known->lease ? ledger_find(arbiter, known->lease)
							  : NULL;
	struct known_process ret = { .who = row->who, .start_time = row->start_time };
	enum tie tie;

	if (lease && !keeps(arbiter, lease, known, row))
		lease = NULL;
	if (lease) {
		ret.own = known->own && known->start_time != KNOWN_UNSEEN;
		ret.delegated = known->delegated;
	} else {
		lease = find_tied(arbiter, row);
	}
	if (!lease)
		lease = find_in_unit(arbiter, row);
	if (!lease)
		return ret;
	tie = tie_of(arbiter, lease, row);
	ret.lease = lease->id;
	ret.own |= tie >= TIE_BOUND;
	ret.delegated |= tie == TIE_DELEGATED;
	return ret;
}

bool attribution_of_pid(const struct arbiter *arbiter, pid_t pid, struct known_process *ret)
{
	const struct known_process *known = known_with_lease(arbiter, pid)
						    ?: known_find(arbiter, pid, 0);

	if (known) {
		*ret = *known;
		return true;
	}
	FOR_EACH_LEASE(lease, arbiter)
		if (lease_is_bound(lease, pid)) {
			*ret = (struct known_process){ .pid = pid,
						       .lease = lease->id,
						       .uid = (uid_t)-1 };
			return true;
		}
	return false;
}

bool attribution_is_bound(const struct arbiter *arbiter, const struct lease *lease,
			  const struct observed *row)
{
	return tie_of(arbiter, lease, row) >= TIE_BOUND;
}

bool attribution_may_use(const struct arbiter *arbiter, const struct lease *lease,
			 const struct known_process *process)
{
	return lease->state != STATE_WAITING &&
	       cover_is_own(arbiter, lease, 0, process->pid, process->uid);
}
