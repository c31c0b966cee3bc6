/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Queues of unmanaged processes on CUs of leases. One journal event when it has lasted for drift-grace,
 * as drift of a lease has (core/change/enforce/drift.c), and one when it ends. With unmanaged = refuse, a process on CUs of a
 * realtime lease is killed then.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger/cover.h"
#include "enforce/enforce.h"
#include "observe/observe.h"
#include "util/grow.h"

struct intrusions {
	struct intrusion *list;
	size_t n;
	uint64_t masks_usec; /* the readings that were reviewed last … */
	size_t n_covers;     /* … and the covers of processes that were left then */
};

int intrusions_start(struct daemon *daemon)
{
	daemon->intrusions = calloc(1, sizeof(*daemon->intrusions));
	return daemon->intrusions ? 0 : -ENOMEM;
}

void intrusions_stop(struct daemon *daemon)
{
	if (daemon->intrusions)
		free(daemon->intrusions->list);
	free(daemon->intrusions);
}

/* On CUs of realtime leases it is another one, with a grace of its own. */
static struct intrusion *find(struct daemon *daemon, const struct cover *cover, bool realtime)
{
	struct intrusion *list = daemon->intrusions->list;

	for (size_t i = 0; i < daemon->intrusions->n; i++)
		if (list[i].pid == cover->pid && list[i].gpu == cover->gpu &&
		    list[i].realtime == realtime)
			return &list[i];
	return NULL;
}

/* Of more processes of one user and its subordinate uids at a time, the rest is not logged. */
#define INTRUSIONS_OF_USER 64U

static struct intrusion *add(struct daemon *daemon, const struct cover *cover, bool realtime)
{
	const struct subuids *subuids = &daemon->arbiter->settings->subuids;
	struct intrusion *intrusion = daemon->intrusions->list;
	uid_t user = subuids_user(subuids, cover->uid);
	unsigned n = 0;

	for (size_t i = 0; i < daemon->intrusions->n; i++)
		n += subuids_user(subuids, intrusion[i].uid) == user;
	if (n >= INTRUSIONS_OF_USER)
		return NULL;
	intrusion = grow(&daemon->intrusions->list, &daemon->intrusions->n, sizeof(*intrusion));
	if (!intrusion)
		return NULL;
	*intrusion = (struct intrusion){ .pid = cover->pid,
					 .uid = cover->uid,
					 .gpu = cover->gpu,
					 .realtime = realtime,
					 .seen_usec = daemon->arbiter->masks_usec,
					 .present = true };
	memcpy(intrusion->command, cover->command, sizeof(intrusion->command));
	return intrusion;
}

static void act(struct daemon *daemon, struct intrusion *intrusion, const struct lease *lease)
{
	intrusion->lease = lease->id;
	intrusion->logged = journal_events_covered(daemon, lease, intrusion);
	if (daemon->arbiter->settings->unmanaged == UNMANAGED_REFUSE &&
	    !daemon->arbiter->settings->exempt.unresolved &&
	    !settings_is_exempt(daemon->arbiter->settings, intrusion->uid) && intrusion->realtime)
		unmanaged_kill_intruder(daemon, intrusion->pid, intrusion->uid, intrusion->gpu);
}

static void take(struct daemon *daemon, const struct cover *cover)
{
	const struct lease *lease = cover->lease ? NULL : cover_over(daemon->arbiter, cover);
	bool realtime = lease && lease->class == CLASS_REALTIME;
	struct intrusion *intrusion = lease ? find(daemon, cover, realtime) : NULL;
	uint64_t grace = daemon->arbiter->settings->drift_grace_usec, elapsed;

	if (lease && !intrusion)
		intrusion = add(daemon, cover, realtime);
	if (!intrusion)
		return;
	elapsed = daemon->arbiter->masks_usec - intrusion->seen_usec;
	intrusion->spent_usec += intrusion->was_present ? elapsed : min_u64(elapsed / 2, grace / 4);
	intrusion->seen_usec = daemon->arbiter->masks_usec;
	intrusion->present = true;
	if (intrusion->lease == 0 && intrusion->spent_usec >= grace)
		act(daemon, intrusion, lease);
}

/* Returns whether it is forgotten: those that have ended at once, because a user has few places. */
static bool fade(struct daemon *daemon, struct intrusion *intrusion)
{
	uint64_t elapsed = daemon->arbiter->masks_usec - intrusion->seen_usec;

	if (intrusion->logged)
		journal_events_uncovered(daemon, intrusion);
	if (intrusion->lease)
		intrusion->spent_usec = daemon->arbiter->settings->drift_grace_usec / 2;
	intrusion->logged = false;
	intrusion->lease = 0;
	intrusion->spent_usec -= min_u64(elapsed / DRIFT_FORGET_PARTS, intrusion->spent_usec);
	intrusion->seen_usec = daemon->arbiter->masks_usec;
	return intrusion->spent_usec == 0 || !known_find(daemon->arbiter, intrusion->pid, 0);
}

bool intrusions_pending(const struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->intrusions->n; i++)
		if (daemon->intrusions->list[i].lease == 0)
			return true;
	return false;
}

/* While the descriptors cannot be read, nothing is known of the queues: no intrusion begins or ends. */
static bool is_due(struct daemon *daemon)
{
	const struct arbiter *arbiter = daemon->arbiter;
	bool due = arbiter->verifies && (arbiter->masks_usec != daemon->intrusions->masks_usec ||
					 arbiter->n_covers != daemon->intrusions->n_covers);

	daemon->intrusions->masks_usec = arbiter->masks_usec;
	daemon->intrusions->n_covers = arbiter->n_covers;
	return due;
}

void intrusions_review(struct daemon *daemon)
{
	size_t left = 0;

	if (!is_due(daemon))
		return;
	for (size_t i = 0; i < daemon->intrusions->n; i++) {
		daemon->intrusions->list[i].was_present = daemon->intrusions->list[i].present;
		daemon->intrusions->list[i].present = false;
	}
	for (size_t i = 0; i < daemon->arbiter->n_covers; i++)
		take(daemon, &daemon->arbiter->covers[i]);
	for (size_t i = 0; i < daemon->intrusions->n; i++) {
		struct intrusion *intrusion = &daemon->intrusions->list[i];

		if (intrusion->present || !fade(daemon, intrusion))
			daemon->intrusions->list[left++] = *intrusion;
	}
	daemon->intrusions->n = left;
}
