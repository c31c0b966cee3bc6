/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/lease.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy/request.h"
#include "util/text.h"

int lease_new(struct lease **ret)
{
	struct lease *lease = calloc(1, sizeof(*lease));

	if (!lease)
		return -ENOMEM;

	lease->generation = lease->acknowledged = 1;
	lease->deadline_usec = lease->lend.give_up_usec = lease->enforce.due_usec = UINT64_MAX;
	*ret = lease;
	return 0;
}

bool lease_keeps_request(const struct lease *lease)
{
	return lease->token[0] || lease->claim_usec > 0 || lease->lend.never_granted ||
	       (lease->request && lease->request->requeue);
}

void lease_drop_request(struct lease *lease)
{
	if (lease_keeps_request(lease))
		return;
	free(lease->request);
	lease->request = NULL;
}

bool lease_may_wait(const struct lease *lease)
{
	return lease->request->wait_usec > 0 || lease->request->requeue;
}

bool lease_requeues(const struct lease *lease)
{
	return lease->state == STATE_REVOKING && lease->revoked_for && lease->request &&
	       lease->request->requeue && lease->acknowledged == lease->generation;
}

int lease_make_partitions(struct lease *lease, size_t n)
{
	size_t adaptation = lease->adaptable ? sizeof(struct adaptation) : 0;
	struct partition *partitions;

	if (n == 0)
		return 0;
	partitions = calloc(n, sizeof(*partitions) + adaptation);
	if (!partitions)
		return -ENOMEM;
	for (size_t i = 0; lease->adaptable && i < n; i++)
		partitions[i].adaptation = (struct adaptation *)(partitions + n) + i;
	lease->partitions = partitions;
	lease->n_partitions = n;
	return 0;
}

void lease_set_partitions(struct lease *lease, const struct partition *from)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		struct adaptation *adaptation = lease->partitions[i].adaptation;

		lease->partitions[i] = from[i];
		lease->partitions[i].adaptation = adaptation;
		if (adaptation)
			*adaptation = from[i].adaptation
					      ? *from[i].adaptation
					      : (struct adaptation){ .base = from[i].cus };
	}
}

struct lease *lease_free(struct lease *lease)
{
	if (!lease)
		return NULL;

	lease_free(lease->shown);
	free(lease->request);
	free(lease->partitions);
	free(lease);
	return NULL;
}

bool lease_alive(const struct lease *lease)
{
	return lease->n_holders > 0 || lease->n_bound > lease->asker_bound || lease->claim_usec > 0;
}

static unsigned find_bound(const struct lease *lease, pid_t pid)
{
	unsigned i = 0;

	while (i < lease->n_bound && lease->bound[i] != pid)
		i++;
	return i;
}

bool lease_is_bound(const struct lease *lease, pid_t pid)
{
	return find_bound(lease, pid) < lease->n_bound;
}

bool lease_is_delegated(const struct lease *lease, pid_t pid)
{
	unsigned i = find_bound(lease, pid);

	return i < lease->n_bound && (lease->delegated >> i & 1);
}

void lease_unbind(struct lease *lease, pid_t pid)
{
	unsigned i = find_bound(lease, pid), last = lease->n_bound - 1;
	uint64_t bit = lease->delegated >> last & 1;

	lease->bound[i] = lease->bound[last];
	lease->delegated &= ~(UINT64_C(1) << i | UINT64_C(1) << last);
	lease->delegated |= i < last ? bit << i : 0;
	lease->n_bound--;
}

uint64_t lease_gpus(const struct lease *lease)
{
	uint64_t gpus = 0;

	FOR_EACH_PARTITION(p, lease)
		gpus |= UINT64_C(1) << p->gpu;
	return gpus;
}

unsigned lease_drifts(const struct lease *lease)
{
	unsigned kinds = 0;

	FOR_EACH_PARTITION(p, lease)
		for (unsigned kind = 0; kind < DRIFT_KINDS; kind++)
			kinds |= p->drift[kind].lasts ? 1U << kind : 0;
	return kinds;
}

bool lease_was_revoked(const struct lease *lease)
{
	return lease->revoked ||
	       (lease->cause != RESULT_OK && lease->cause != RESULT_TIMED_OUT &&
		lease->cause != RESULT_NEVER_FITS && lease->cause != RESULT_NO_MEMORY);
}

const char *partition_tier(const struct partition *partition)
{
	if (partition->sole)
		return "hardware";
	if (partition->capped && !partition->queues.wide_pid)
		return "capped";
	return partition->queues.verified ? "verified" : "cooperative";
}

const char *lease_uncapped(const struct lease *lease)
{
	return lease->cap.active || !lease->cap.why_not ? "" : lease->cap.why_not;
}

bool lease_is_alone(const struct lease *lease)
{
	bool alone = lease->n_partitions > 0;

	FOR_EACH_PARTITION(p, lease)
		alone &= p->intruders.alone;
	return alone;
}

bool lease_is_verified(const struct lease *lease)
{
	bool verified = lease->n_partitions > 0;

	FOR_EACH_PARTITION(p, lease)
		verified &= p->queues.verified;
	return verified;
}

int lease_next_version(const struct lease *lease, size_t n_partitions, struct lease **ret)
{
	_cleanup_(lease_freep) struct lease *next = NULL;
	int r;

	r = lease_new(&next);
	if (r < 0)
		return r;
	*next = *lease;
	next->partitions = NULL;
	next->n_partitions = 0;
	next->request = NULL;
	next->refusal = (struct refusal){ 0 };
	next->shown = NULL;
	next->touched = 0;
	next->touched_next = NULL;
	memset(next->reason, 0, sizeof(next->reason));
	r = lease_make_partitions(next, n_partitions);
	if (r < 0)
		return r;
	if (lease->n_partitions > 0) /* a waiting lease has none */
		lease_set_partitions(next, lease->partitions);
	/* The next version is saved in place of this one: without the request, a repeated
	 * request with this token could not be compared after a crash. */
	if (lease->request) {
		next->request = request_keep(lease->request);
		if (!next->request)
			return -ENOMEM;
	}
	*ret = TAKE_PTR(next);
	return 0;
}

void lease_set_ending(struct lease *lease, enum result_kind cause, const char *reason)
{
	lease->lend.idle |= lease->state == STATE_INACTIVE || lease->state == STATE_ACTIVATING;
	lease->lend.give_up_usec = UINT64_MAX;
	lease->state = STATE_ENDING;
	lease->cause = cause;
	text_clean(lease->reason, sizeof(lease->reason), reason);
}

void lease_set_refusal(struct lease *lease, const struct refusal *refusal)
{
	char wait[REFUSAL_TEXT], text[REFUSAL_TEXT + 16];

	lease->refusal = *refusal;
	refusal_wait(refusal, wait);
	snprintf(text, sizeof(text), "waits for %s", wait);
	text_clean(lease->reason, sizeof(lease->reason), text);
}

bool lease_same_account(const struct lease *a, const struct lease *b)
{
	return a->owner == b->owner && strcmp(a->tenant, b->tenant) == 0;
}

struct partition *lease_partition_on(const struct lease *lease, unsigned gpu)
{
	FOR_EACH_PARTITION(p, lease)
		if (p->gpu == gpu)
			return p;
	return NULL;
}

void partition_set_mask(struct partition *partition, const struct geometry *geometry,
			const struct cuset *cus)
{
	cuset_add(&partition->occupied, cus);
	partition->cus = *cus;
	partition->count = cuset_count(cus);
	partition->effective = geometry_effective(geometry, cus);
	partition->queues.verified = partition->queues.scanned = false;
}

int lease_wrong_state(const struct lease *lease, struct result *result, const char *hint)
{
	return result_set(result, RESULT_INVALID_STATE, "lease %llu is %s: %s",
			  (unsigned long long)lease->id, state_names[lease->state], hint);
}

bool lease_is_settled(const struct lease *lease, const struct partition *p)
{
	return lease->state == STATE_GRANTED && !p->paused &&
	       lease->generation == lease->acknowledged && !lease->verify.pending &&
	       cuset_equal(&p->cus, &p->occupied);
}
