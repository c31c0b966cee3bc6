/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/arbiter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/decide/disturbance.h"
#include "util/text.h"

/*
 * The intruders of each lease: processes with queues on its CUs that no lease of the process grants, and
 * processes that draw, if policy refuses realtime leases beside them.
 */

/* Keeps the intruders with the most CUs, sorted by CUs. */
static void add_intruder(struct intruders *intruders, const struct intruder *intruder)
{
	unsigned at = min_u(intruders->n, INTRUDERS);

	while (at > 0 && intruders->list[at - 1].cus < intruder->cus)
		at--;
	if (at < INTRUDERS) {
		memmove(&intruders->list[at + 1], &intruders->list[at],
			(INTRUDERS - 1 - at) * sizeof(*intruder));
		intruders->list[at] = *intruder;
	}
	intruders->n++;
}

/* Since when the process has been an intruder of the partition. */
static uint64_t since_usec(const struct partition *p, pid_t pid, uint64_t now_usec)
{
	for (unsigned i = 0; i < min_u(p->intruders.n, INTRUDERS); i++)
		if (p->intruders.list[i].pid == pid)
			return p->intruders.list[i].since_usec;
	return now_usec;
}

/* Is the process of this cover an intruder? A new queue of a lease gets its mask a moment after it appears:
 * the process of a lease is one only if the scan before this one showed queues of others there, too. The same
 * holds for a process that no scan has shown, because a program can start a new one every millisecond. */
static bool is_intruder(const struct arbiter *arbiter, const struct partition *p,
			const struct cover *cover)
{
	return (cover->lease == 0 && !cover->unknown) || cover_is_outside(arbiter, cover) ||
	       cuset_overlap(&cover->outside, &p->intruders.covered);
}

static void find_queues(const struct arbiter *arbiter, const struct lease *victim,
			const struct partition *p, uint64_t now_usec, struct intruders *ret)
{
	struct cuset area = p->cus, sum = { 0 };

	if (disturbance_excludes(victim->class, p))
		gpu_add_engines(&arbiter->gpus[p->gpu], &area);
	for (size_t i = 0; i < arbiter->n_covers; i++) {
		const struct cover *cover = &arbiter->covers[i];
		struct cuset there = cover->outside;
		struct intruder intruder = { .who = cover->who, .lease = cover->lease };

		if (cover->gpu != p->gpu || !cuset_overlap(&cover->cus, &area) ||
		    cover_is_own(arbiter, victim, cover->lease, cover->pid, cover->uid))
			continue;
		ret->alone = false;
		cuset_keep(&there, &area);
		if (cuset_empty(&there))
			continue;
		cuset_add(&ret->covered, &there);
		if (!is_intruder(arbiter, p, cover))
			continue;
		cuset_add(&sum, &there);
		intruder.cus = cuset_count(&there);
		intruder.since_usec = since_usec(p, cover->pid, now_usec);
		add_intruder(ret, &intruder);
	}
	ret->cus = cuset_count(&sum);
}

/* Work of the graphics driver runs on all CUs. */
static void find_drawing(const struct arbiter *arbiter, const struct lease *victim,
			 const struct partition *p, uint64_t now_usec, struct intruders *ret)
{
	struct refusal who = { 0 };

	if (!disturbance_draws(arbiter, p->gpu, victim, &who))
		return;
	ret->alone = false;
	for (size_t i = 0; i < who.n_processes && i < REFUSAL_PROCESSES; i++) {
		struct intruder intruder = { .who = who.processes[i].who,
					     .draws = true,
					     .cus = p->count };

		intruder.since_usec = since_usec(p, intruder.pid, now_usec);
		add_intruder(ret, &intruder);
		ret->cus = p->count;
	}
}

/* While gpuarbd cannot read the descriptors of a GPU, no intruder with queues is known. An inactive lease has no
 * intruders, because it lends its CUs. */
static void find_all(const struct arbiter *arbiter, const struct lease *lease,
		     const struct partition *p, uint64_t now_usec, struct intruders *ret)
{
	bool seen = arbiter->verifies &&
		    codec_knows_descriptor(arbiter->gpus[p->gpu].info.gfx_target);

	*ret = (struct intruders){ .alone = seen };
	if (lease->state == STATE_INACTIVE || lease->state == STATE_ENDING) {
		ret->alone = false;
		return;
	}
	if (seen)
		find_queues(arbiter, lease, p, now_usec, ret);
	find_drawing(arbiter, lease, p, now_usec, ret);
}

static bool is_same(const struct intruders *now, const struct intruders *before)
{
	if (now->n != before->n || now->cus != before->cus || now->alone != before->alone)
		return false;
	for (unsigned i = 0; i < min_u(now->n, INTRUDERS); i++)
		if (now->list[i].pid != before->list[i].pid ||
		    now->list[i].cus != before->list[i].cus ||
		    now->list[i].since_usec != before->list[i].since_usec)
			return false;
	return true;
}

void intruders_review(struct arbiter *arbiter, uint64_t now_usec)
{
	FOR_EACH_LEASE(lease, arbiter) {
		bool same = true;

		FOR_EACH_PARTITION(p, lease) {
			struct intruders now;

			find_all(arbiter, lease, p, now_usec, &now);
			same &= is_same(&now, &p->intruders);
			p->intruders = now;
		}
		if (!same)
			ledger_touch(arbiter, lease, TOUCH_REASON | TOUCH_INTRUDERS);
	}
}

void intruders_text(const struct arbiter *arbiter, const struct lease *lease, char *ret,
		    size_t size)
{
	const struct partition *p = lease->partitions, *end = p + lease->n_partitions;
	const struct intruder *first;
	char command[sizeof(first->command)], whose[48] = "without a lease", more[32] = "";

	ret[0] = '\0';
	while (p < end && p->intruders.n == 0)
		p++;
	if (p == end)
		return;
	first = &p->intruders.list[0];
	if (first->lease)
		snprintf(whose, sizeof(whose), "of lease %" PRIu64, first->lease);
	if (p->intruders.n > 1)
		snprintf(more, sizeof(more), ", and %u more", p->intruders.n - 1);
	snprintf(ret, size, "disturbed on %u CUs of %s: pid %d (%s) %s%s", p->intruders.cus,
		 arbiter->gpus[p->gpu].info.name, first->pid,
		 text_clean(command, sizeof(command), first->command), whose, more);
}
