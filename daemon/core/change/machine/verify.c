/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/arbiter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger/cover.h"

/* The queues of one process on one GPU, and the partitions that they may belong to: first that of the
 * lease that the process is attributed to. */
struct group {
	struct cover *cover;
	struct partition **parts;
	size_t n;
};

static void add_part(struct group *group, const struct lease *lease)
{
	struct partition *p = lease_partition_on(lease, group->cover->gpu);

	if (!p)
		return;
	if (group->n == 0)
		group->cover->lease = lease->id;
	group->parts[group->n++] = p;
}

static void find_parts(const struct arbiter *arbiter, struct group *group)
{
	struct known_process process;
	struct lease *own = NULL;

	if (attribution_of_pid(arbiter, group->cover->pid, &process))
		own = ledger_find(arbiter, process.lease);
	group->n = 0;
	group->cover->lease = 0;
	if (!own)
		return;
	add_part(group, own);
	FOR_EACH_LEASE(other, arbiter)
		if (other != own && attribution_may_use(arbiter, other, &process))
			add_part(group, other);
}

static void add_queue(struct partition *p, const struct observed_mask *row)
{
	p->queues.verified = p->queues.wide_pid == 0;
	p->queues.priorities |= (uint16_t)(1U << row->priority);
	if (p->paused && row->active)
		p->queues.active_pid = row->pid;
}

/* The queue has CUs that none of the partitions occupies. */
static void add_outside(struct group *group, const struct observed_mask *row)
{
	struct cuset outside = row->cus;
	unsigned cus = cuset_count(&row->cus);

	for (size_t i = 0; i < group->n; i++)
		cuset_remove(&outside, &group->parts[i]->occupied);
	cuset_add(&group->cover->outside, &outside);
	if (group->n > 0 && cus > group->parts[0]->queues.beyond_cus) {
		group->parts[0]->queues.beyond_pid = row->pid;
		group->parts[0]->queues.beyond_cus = cus;
	}
}

/* Attributes a queue to the first lease whose mask contains it. A queue within no mask may belong to
 * any lease of the process: then none of them is verified. */
static void compare(struct group *group, const struct observed_mask *row)
{
	bool occupied = false;

	group->cover->queues++;
	cuset_add(&group->cover->cus, &row->cus);
	for (size_t i = 0; i < group->n; i++) {
		if (cuset_within(&row->cus, &group->parts[i]->cus)) {
			add_queue(group->parts[i], row);
			return;
		}
		occupied |= cuset_within(&row->cus, &group->parts[i]->occupied);
	}
	for (size_t i = 0; i < group->n; i++) {
		add_queue(group->parts[i], row);
		group->parts[i]->queues.verified = false;
		group->parts[i]->queues.wide_pid = row->pid;
	}
	if (!occupied)
		add_outside(group, row);
}

/* Before the holder has acknowledged a pause, its queues may run. */
const struct partition *verify_find(const struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease)
		if ((lease->verify.pending && p->queues.wide_pid) ||
		    (p->queues.active_pid && (lease->verify.pending || p->stopped)))
			return p;
	return NULL;
}

static void judge(struct arbiter *arbiter, struct lease *lease)
{
	if (!verify_find(lease)) {
		lease->verify.false_ack = false;
		if (lease->verify.pending)
			ledger_follow(arbiter, lease);
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
		return;
	}
	if (lease->verify.false_ack)
		return;
	lease->verify.false_ack = true;
	ledger_touch(arbiter, lease,
		     TOUCH_CHANGED | (lease->state == STATE_GRANTED ? TOUCH_FALSE_ACK : 0));
}

static bool any_unscanned(const struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease)
		if (p->used.queues > 0 && !p->queues.scanned)
			return true;
	return false;
}

bool arbiter_wants_masks(const struct arbiter *arbiter, bool *ret_urgent)
{
	bool wanted = false;

	*ret_urgent = false;
	FOR_EACH_LEASE(lease, arbiter) {
		wanted |= lease->verify.pending || any_unscanned(lease);
		*ret_urgent |= lease->verify.pending && !lease->verify.false_ack;
	}
	return wanted;
}

static void clear(struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease) {
		p->queues.verified_before = p->queues.verified;
		p->queues.verified = false;
		p->queues.wide_pid = p->queues.active_pid = p->queues.beyond_pid = 0;
		p->queues.beyond_cus = 0;
		p->queues.priorities_before = p->queues.priorities;
		p->queues.priorities = 0;
		p->queues.scanned = true;
	}
}

static bool has_changed(const struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease)
		if (p->queues.verified != p->queues.verified_before ||
		    p->queues.priorities != p->queues.priorities_before)
			return true;
	return false;
}

/* The cover of the row's process on the row's GPU; NULL: no GPU has its id. The rows of a process are
 * adjacent. */
static struct cover *find_cover(struct arbiter *arbiter, const struct observed_mask *row)
{
	struct known_process known = { .pid = row->pid,
				       .uid = (uid_t)-1,
				       .command = "short-lived" };
	struct cover *cover;
	const struct gpu *found = ledger_find_kfd(arbiter, row->kfd_gpu_id);
	unsigned gpu = found ? (unsigned)(found - arbiter->gpus) : 0;
	bool unknown;

	if (!found || found->absent)
		return NULL;
	for (size_t i = arbiter->n_covers; i-- > 0 && arbiter->covers[i].pid == row->pid;)
		if (arbiter->covers[i].gpu == gpu)
			return &arbiter->covers[i];
	unknown = !attribution_of_pid(arbiter, row->pid, &known);
	cover = &arbiter->covers[arbiter->n_covers++];
	*cover = (struct cover){ .gpu = gpu, .who = known.who, .unknown = unknown };
	return cover;
}

static void compare_all(struct arbiter *arbiter, const struct observed_mask *rows, size_t n,
			struct partition **parts)
{
	struct group group = { .parts = parts };

	for (size_t i = 0; i < n; i++) {
		struct cover *cover = find_cover(arbiter, &rows[i]);

		if (!cover)
			continue;
		if (cover != group.cover) {
			group.cover = cover;
			find_parts(arbiter, &group);
		}
		compare(&group, &rows[i]);
	}
}

int arbiter_masks_observed(struct arbiter *arbiter, const struct observed_mask *rows, size_t n)
{
	_cleanup_(freep) struct partition **parts = calloc(arbiter->n_leases + 1, sizeof(*parts));
	struct cover *covers = calloc(n + 1, sizeof(*covers));

	if (!parts || !covers) {
		free(covers);
		return -ENOMEM;
	}
	free(arbiter->covers);
	arbiter->covers = covers;
	arbiter->n_covers = 0;
	arbiter->covers_changed = true;
	arbiter->queues_changed = false;
	arbiter->fresh |= FRESH_MASKS;
	FOR_EACH_LEASE(lease, arbiter)
		clear(lease);
	compare_all(arbiter, rows, n, parts);
	FOR_EACH_LEASE(lease, arbiter) {
		if (has_changed(lease))
			ledger_touch(arbiter, lease, TOUCH_REASON);
		if (lease->verify.pending || (lease->state == STATE_GRANTED &&
					      (lease->verify.false_ack || verify_find(lease))))
			judge(arbiter, lease);
	}
	return 0;
}
