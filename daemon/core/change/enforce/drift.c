/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/arbiter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/ledger/cover.h"

#define FROM_MASKS (1U << DRIFT_MASK | 1U << DRIFT_PRIORITY) /* kinds that descriptors show */
#define FROM_USE (((1U << DRIFT_KINDS) - 1) & ~FROM_MASKS)

static unsigned kinds_of(unsigned fresh)
{
	return (fresh & FRESH_USE ? FROM_USE : 0) | (fresh & FRESH_MASKS ? FROM_MASKS : 0);
}

/* ---- one partition ----------------------------------------------------------------- */

static unsigned highest_priority(const struct partition *p)
{
	unsigned most = 0;

	for (unsigned priority = 0; priority <= PRIORITY_MAX; priority++)
		if (p->queues.priorities & 1U << priority)
			most = priority;
	return most;
}

static_assert((int)DRIFT_QUEUES == (int)RESOURCE_QUEUES && (int)DRIFT_VRAM == (int)RESOURCE_VRAM,
	      "kinds of drift are indexes of a budget");

/* What is observed of this kind. Returns whether it exceeds the grant. ROCr creates queues of normal priority
 * on its own. */
static bool find(const struct partition *p, enum drift_kind kind, struct drift *ret)
{
	switch (kind) {
	case DRIFT_MASK:
		*ret = (struct drift){ .granted = p->count,
				       .observed = p->queues.beyond_cus,
				       .pid = p->queues.beyond_pid };
		return ret->pid != 0;
	case DRIFT_PRIORITY:
		*ret = (struct drift){ .granted = p->priority, .observed = highest_priority(p) };
		return priority_class((unsigned)ret->observed) >
		       priority_class(max_u((unsigned)ret->granted, PRIORITY_NORMAL));
	default: /* the number of a resource */
		*ret = (struct drift){ .granted = p->charged.of[kind],
				       .observed = p->used.of[kind] };
		return budget_counts(&p->charged, (enum resource)kind) &&
		       ret->observed > ret->granted;
	}
}

/* Between two observations a queue may have lost its mask and taken it again: times below the grace add up. A new queue
 * gets its mask at once, so an observation rarely meets one without. */
static void end_spell(const struct drift *before, uint64_t now_usec, uint64_t grace_usec,
		      struct drift *ret)
{
	uint64_t elapsed = now_usec - before->seen_usec, spent = before->spent_usec;

	if (before->lasts)
		spent = grace_usec / 2;
	else if (before->since_usec)
		spent = min_u64(spent + before->seen_usec - before->since_usec +
					min_u64(elapsed / 2, grace_usec / 4),
				grace_usec);
	else
		spent -= min_u64(elapsed / DRIFT_FORGET_PARTS, spent);
	*ret = (struct drift){ .spent_usec = spent };
}

/* Takes a new observation of one kind. Returns whether the bus shows it differently. */
static bool take(struct drift *drift, const struct partition *p, enum drift_kind kind,
		 uint64_t now_usec, uint64_t grace_usec)
{
	struct drift now = { 0 };
	bool changed;

	if (find(p, kind, &now)) {
		now.since_usec = drift->since_usec ? drift->since_usec : now_usec;
		now.spent_usec = drift->spent_usec;
		now.lasts = drift->lasts ||
			    now_usec - now.since_usec + now.spent_usec >= grace_usec;
	} else {
		end_spell(drift, now_usec, grace_usec, &now);
	}
	now.seen_usec = now_usec;
	changed = (now.lasts || drift->lasts) &&
		  (now.lasts != drift->lasts || now.granted != drift->granted ||
		   now.observed != drift->observed || now.pid != drift->pid);
	*drift = now;
	return changed;
}

/* ---- one lease --------------------------------------------------------------------- */

static bool take_all(struct lease *lease, unsigned kinds, uint64_t now_usec, uint64_t grace_usec)
{
	bool changed = false;

	FOR_EACH_PARTITION(p, lease)
		for (unsigned kind = 0; kind < DRIFT_KINDS; kind++)
			if (kinds & 1U << kind)
				changed |= take(&p->drift[kind], p, kind, now_usec, grace_usec);
	return changed;
}

static void put_drift(const struct arbiter *arbiter, const struct partition *p,
		      enum drift_kind kind, char *ret, size_t size)
{
	static const char *const units[DRIFT_KINDS] = {
		[DRIFT_QUEUES] = "queues",
		[DRIFT_PROCESSES] = "processes",
		[DRIFT_SDMA_QUEUES] = "SDMA queues",
		[DRIFT_SDMA_XGMI_QUEUES] = "SDMA queues for XGMI",
		[DRIFT_VRAM] = "bytes of VRAM",
	};
	const struct drift *drift = &p->drift[kind];
	const char *gpu = arbiter->gpus[p->gpu].info.name;

	if (kind == DRIFT_MASK)
		snprintf(ret, size,
			 "a queue of pid %d with %" PRIu64 " CUs on %s, outside the mask "
			 "(granted: %" PRIu64 ")",
			 drift->pid, drift->observed, gpu, drift->granted);
	else if (kind == DRIFT_PRIORITY)
		snprintf(ret, size, "queues of priority %" PRIu64 " on %s (granted: %" PRIu64 ")",
			 drift->observed, gpu, drift->granted);
	else
		snprintf(ret, size, "%" PRIu64 " %s on %s (granted: %" PRIu64 ")", drift->observed,
			 units[kind], gpu, drift->granted);
}

void arbiter_drift_text(const struct arbiter *arbiter, const struct lease *lease, char *ret,
			size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	FOR_EACH_PARTITION(p, lease)
		for (unsigned kind = 0; kind < DRIFT_KINDS; kind++) {
			char text[192];

			if (!p->drift[kind].lasts || n >= size)
				continue;
			put_drift(arbiter, p, kind, text, sizeof(text));
			n += (size_t)snprintf(ret + n, size - n, "%s%s", n > 0 ? ", " : "", text);
		}
}

/* ---- policy ------------------------------------------------------------------------ */

/* Do queues of the lease have CUs or shader engines of another, active realtime lease? */
static bool disturbs_realtime(const struct arbiter *arbiter, const struct lease *lease)
{
	for (size_t i = 0; i < arbiter->n_covers; i++) {
		const struct cover *cover = &arbiter->covers[i];

		if (cover->lease != lease->id || !cover_is_outside(arbiter, cover))
			continue;
		FOR_EACH_LEASE(other, arbiter)
			if (other->class == CLASS_REALTIME && cover_disturbs(cover, other))
				return true;
	}
	return false;
}

/* on-drift of the tenant of a lease. */
static enum on_drift policy(const struct arbiter *arbiter, const struct lease *lease)
{
	const struct tenant *tenant = tenant_named(arbiter->settings, lease->tenant);

	return tenant ? tenant->on_drift : ON_DRIFT_PROTECT;
}

bool drift_is_spared(const struct arbiter *arbiter, const struct lease *lease)
{
	return policy(arbiter, lease) == ON_DRIFT_PROTECT && !disturbs_realtime(arbiter, lease);
}

/* Revokes a lease that drifts, where policy says so. It stays revoked if the drift ends. */
static void act(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec)
{
	enum on_drift what = policy(arbiter, lease);
	char text[REQUEST_TEXT], reason[2 * REQUEST_TEXT];

	if (what == ON_DRIFT_REPORT || lease->state == STATE_REVOKING ||
	    drift_is_spared(arbiter, lease))
		return;
	arbiter_drift_text(arbiter, lease, text, sizeof(text));
	snprintf(reason, sizeof(reason), "uses more than it was granted: %s", text);
	lease->revoked_for = 0;
	lifecycle_revoke(arbiter, lease, now_usec + arbiter->settings->activate_grace_usec, reason);
	lease->enforce.kill = what != ON_DRIFT_REVOKE;
	ledger_touch(arbiter, lease, TOUCH_PREEMPT);
}

/* ---- all leases -------------------------------------------------------------------- */

static void judge(struct arbiter *arbiter, struct lease *lease, unsigned kinds, uint64_t now_usec)
{
	unsigned before = lease_drifts(lease), now;
	bool changed = take_all(lease, kinds, now_usec, arbiter->settings->drift_grace_usec);

	now = lease_drifts(lease);
	if (changed)
		ledger_touch(arbiter, lease, now == before ? TOUCH_REASON : TOUCH_CHANGED);
	if ((now & ~before) || (before && !now))
		ledger_touch(arbiter, lease, TOUCH_DRIFT);
}

/* Is this the only lease on a compute partition of a card, which has XCCs of its own, and does nothing
 * else use it, or another partition with the same memory? */
static bool is_sole(const struct arbiter *arbiter, unsigned gpu)
{
	uint64_t gpus = ledger_sharing(arbiter, gpu);
	size_t n = 0;

	for (size_t i = 0; i < arbiter->n_gpus; i++)
		if (gpus >> i & 1)
			n += arbiter->gpus[i].n_partitions + arbiter->gpus[i].observed.n_processes;
	return strchr(arbiter->gpus[gpu].info.name, '/') && n == 1;
}

static void set_tiers(struct arbiter *arbiter)
{
	FOR_EACH_LEASE(lease, arbiter)
		FOR_EACH_PARTITION(p, lease) {
			bool sole = is_sole(arbiter, p->gpu);

			if (p->sole != sole)
				ledger_touch(arbiter, lease, TOUCH_REASON);
			p->sole = sole;
		}
}

void arbiter_judge_drift(struct arbiter *arbiter, uint64_t now_usec)
{
	unsigned kinds = kinds_of(arbiter->fresh);

	if (arbiter->fresh & FRESH_MASKS)
		arbiter->masks_usec = now_usec;
	arbiter->fresh = 0;
	set_tiers(arbiter);
	for (size_t i = 0; kinds && i < arbiter->n_leases; i++)
		if (arbiter->leases[i]->state != STATE_ENDING)
			judge(arbiter, arbiter->leases[i], kinds, now_usec);
	if (!kinds)
		return;
	intruders_review(arbiter, now_usec);
	for (size_t i = arbiter->n_leases; i-- > 0;)
		if (arbiter->leases[i]->state != STATE_ENDING && lease_drifts(arbiter->leases[i]))
			act(arbiter, arbiter->leases[i], now_usec);
}

/* When it is to be observed again at the latest; UINT64_MAX: it is none. */
static uint64_t drift_at(const struct drift *drift, uint64_t grace_usec)
{
	if (drift->lasts || (drift->since_usec == 0 && drift->spent_usec == 0))
		return UINT64_MAX;
	return drift->since_usec ? drift->since_usec + grace_usec - drift->spent_usec
				 : drift->seen_usec + grace_usec / 2;
}

uint64_t arbiter_drift_at(const struct arbiter *arbiter, enum fresh fresh)
{
	unsigned kinds = kinds_of(fresh);
	uint64_t next = UINT64_MAX;

	FOR_EACH_LEASE(lease, arbiter)
		for (size_t j = 0; j < lease->n_partitions && lease->state != STATE_ENDING; j++)
			for (unsigned kind = 0; kind < DRIFT_KINDS; kind++) {
				const struct drift *drift = &lease->partitions[j].drift[kind];
				uint64_t at = drift_at(drift, arbiter->settings->drift_grace_usec);

				if ((kinds & 1U << kind) && at < next)
					next = at;
			}
	return next;
}
