/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "core/ledger/lease.h"
#include "core/policy/request.h"
#include "util/number.h"

/* Makes sure that one more lease can be inserted, so that a commit cannot fail. -ENOMEM. */
static int reserve(struct arbiter *arbiter)
{
	struct lease **more;
	size_t room = arbiter->room ? arbiter->room * 2 : 16;

	if (arbiter->n_leases < arbiter->room)
		return 0;
	more = reallocarray(arbiter->waiting, room, sizeof(*more));
	if (!more)
		return -ENOMEM;
	arbiter->waiting = more;
	more = reallocarray(arbiter->leases, room, sizeof(*more));
	if (!more)
		return -ENOMEM;
	arbiter->leases = more;
	arbiter->room = room;
	return 0;
}

int arbiter_new(struct settings *settings, const struct gpu_info *gpus, size_t n_gpus,
		uint64_t first_id, struct arbiter **ret)
{
	_cleanup_(arbiter_freep) struct arbiter *arbiter = calloc(1, sizeof(*arbiter));

	if (!arbiter)
		return -ENOMEM;
	if (n_gpus > REQUEST_WANTS)
		return -E2BIG;

	arbiter->gpus = calloc(REQUEST_WANTS, sizeof(*arbiter->gpus));
	if (!arbiter->gpus)
		return -ENOMEM;
	arbiter->n_gpus = n_gpus;
	for (size_t i = 0; i < n_gpus; i++)
		gpu_init(&arbiter->gpus[i], &gpus[i], 0);

	if (reserve(arbiter) < 0)
		return -ENOMEM;
	arbiter->next_id = first_id;
	arbiter->round_steps = UINT64_MAX;
	arbiter->changes = 1; /* 0: before every examination */
	arbiter_set_settings(arbiter, settings);
	*ret = TAKE_PTR(arbiter);
	return 0;
}

struct arbiter *arbiter_free(struct arbiter *arbiter)
{
	if (!arbiter)
		return NULL;

	/* Removed leases that were not taken are on the list of touched leases only. */
	while (arbiter->touched) {
		struct lease *lease = arbiter->touched;

		arbiter->touched = lease->touched_next;
		if (lease->touched & TOUCH_REMOVED)
			lease_free(lease);
	}
	FOR_EACH_LEASE(lease, arbiter)
		lease_free(lease);
	free(arbiter->leases);
	free(arbiter->waiting);
	free(arbiter->known);
	free(arbiter->covers);
	FOR_EACH_GPU(gpu, arbiter)
		free(gpu->graphics.clients);
	free(arbiter->gpus);
	settings_free(arbiter->settings);
	free(arbiter);
	return NULL;
}

void arbiter_set_settings(struct arbiter *arbiter, struct settings *settings)
{
	settings_free(arbiter->settings);
	arbiter->settings = settings;

	FOR_EACH_GPU(gpu, arbiter) {
		gpu->reserve_queues = settings_reserve_queues(settings, &gpu->info);
		gpu->named_only = !settings_gpu_any(settings, gpu->info.name);
		gpu->changed = true;
	}
	ledger_wake(arbiter, UINT64_MAX);
}

/* ---- find -------------------------------------------------------------------------- */

/* Decimal digits and nothing else, no leading zero; -1 otherwise. */
static long decimal(const char *text)
{
	uint64_t value;

	return (text[0] == '0' && text[1]) || number_parse(text, 0, 99999, &value) < 0
		       ? -1
		       : (long)value;
}

/* Index of a GPU by name or decimal index. An absent GPU and a present one may have one name. */
static int find_slot(const struct arbiter *arbiter, const char *gpu, bool absent)
{
	long index = decimal(gpu);

	for (size_t i = 0; i < arbiter->n_gpus; i++)
		if (arbiter->gpus[i].absent == absent &&
		    (index >= 0 ? (size_t)index == i
				: strcmp(gpu, arbiter->gpus[i].info.name) == 0))
			return (int)i;
	return -ENOENT;
}

int ledger_find_gpu(const struct arbiter *arbiter, const char *gpu)
{
	return find_slot(arbiter, gpu, false);
}

struct gpu *ledger_find_kfd(const struct arbiter *arbiter, uint32_t kfd_gpu_id)
{
	struct gpu *found = NULL;

	for (size_t i = 0; i < arbiter->n_gpus && kfd_gpu_id; i++) {
		struct gpu *gpu = &arbiter->gpus[i];

		if (gpu->info.kfd_gpu_id == kfd_gpu_id && (!found || found->absent))
			found = gpu;
	}
	return found;
}

const struct gpu *ledger_find_absent(const struct arbiter *arbiter, const char *gpu)
{
	int slot = find_slot(arbiter, gpu, true);

	return slot < 0 ? NULL : &arbiter->gpus[slot];
}

static uint64_t any_gpus(const struct arbiter *arbiter)
{
	uint64_t gpus = 0;

	for (size_t i = 0; i < arbiter->n_gpus; i++)
		if (!arbiter->gpus[i].absent && !arbiter->gpus[i].named_only)
			gpus |= UINT64_C(1) << i;
	return gpus;
}

int ledger_wanted(const struct arbiter *arbiter, const char *gpus, uint64_t *ret,
		  char missing[static GPU_NAME_MAX])
{
	bool any = strcmp(gpus, "any") == 0;
	uint64_t wanted = any ? any_gpus(arbiter) : 0;
	const char *list = any ? NULL : gpus;

	while (want_next_gpu(&list, missing)) {
		int index = ledger_find_gpu(arbiter, missing);

		if (index >= 0)
			wanted |= UINT64_C(1) << index;
		else if (!ledger_find_absent(arbiter, missing) || (!list && wanted == 0))
			return -ENOENT;
	}
	*ret = wanted;
	return 0;
}

/* A list that would become too long stays as it is. */
static void name_gpus(const struct arbiter *arbiter, char gpus[static WANT_GPUS])
{
	char named[WANT_GPUS], name[GPU_NAME_MAX];
	const char *list = gpus;
	size_t n = 0;

	while (n < sizeof(named) && want_next_gpu(&list, name)) {
		int index = decimal(name) >= 0 ? ledger_find_gpu(arbiter, name) : -ENOENT;

		n += (size_t)snprintf(named + n, sizeof(named) - n, "%s%s",
				      index >= 0 ? arbiter->gpus[index].info.name : name,
				      list ? "," : "");
	}
	if (n < sizeof(named))
		memcpy(gpus, named, n + 1);
}

void ledger_name_gpus(const struct arbiter *arbiter, struct request *request)
{
	for (size_t i = 0; i < request->n_wants; i++)
		name_gpus(arbiter, request->wants[i].gpu);
}

/* Where the lease with this id stands, or would. */
static size_t position(const struct arbiter *arbiter, uint64_t id)
{
	return COUNT_BEFORE(arbiter->n_leases, i, arbiter->leases[i]->id < id);
}

uint64_t ledger_sharing(const struct arbiter *arbiter, unsigned gpu)
{
	const struct gpu_info *info = &arbiter->gpus[gpu].info;
	uint64_t gpus = UINT64_C(1) << gpu;

	for (size_t i = 0; strchr(info->name, '/') && i < arbiter->n_gpus; i++)
		if (!arbiter->gpus[i].absent && gpu_info_share_memory(&arbiter->gpus[i].info, info))
			gpus |= UINT64_C(1) << i;
	return gpus;
}

struct lease *ledger_find(const struct arbiter *arbiter, uint64_t id)
{
	size_t at = position(arbiter, id);

	if (at == arbiter->n_leases || arbiter->leases[at]->id != id)
		return NULL;
	return arbiter->leases[at];
}

struct lease *ledger_find_token(const struct arbiter *arbiter, uid_t uid, const char *token)
{
	if (!token[0])
		return NULL;
	FOR_EACH_LEASE(lease, arbiter)
		if (lease->owner == uid && lease->state != STATE_ENDING &&
		    strcmp(lease->token, token) == 0)
			return lease;
	return NULL;
}

struct lease *ledger_find_unanswered(const struct arbiter *arbiter, const struct caller *caller,
				     const struct request *request)
{
	FOR_EACH_LEASE(lease, arbiter)
		if (lease->claim_usec > 0 && lease->state != STATE_ENDING &&
		    lease->owner == caller->uid && lease->pid == caller->pid && lease->request &&
		    request->wait_usec == 0 && request_equal(lease->request, request))
			return lease;
	return NULL;
}

static uint64_t possible_gpus(const struct lease *lease)
{
	return lease->state == STATE_WAITING ? lease->wait.candidates : lease_gpus(lease);
}

const struct lease *ledger_find_rival(const struct arbiter *arbiter, const struct lease *lease,
				      pid_t pid)
{
	FOR_EACH_LEASE(other, arbiter)
		if (other->id != lease->id && other->state != STATE_ENDING &&
		    (other->adaptable || lease->adaptable) && lease_is_bound(other, pid) &&
		    !(other->asker_bound && other->pid == pid) &&
		    possible_gpus(other) & possible_gpus(lease))
			return other;
	return NULL;
}

int ledger_find_owned(const struct arbiter *arbiter, const struct caller *caller, uint64_t id,
		      struct lease **ret, struct result *result)
{
	struct lease *lease = ledger_find(arbiter, id);

	if (!lease)
		return result_set(result, RESULT_NO_SUCH_LEASE, "there is no lease %llu",
				  (unsigned long long)id);
	if (lease->owner != caller->uid && !caller->administrator)
		return result_set(result, RESULT_NOT_PERMITTED,
				  "lease %llu belongs to uid %u, not to uid %u",
				  (unsigned long long)id, lease->owner, caller->uid);
	*ret = lease;
	return 0;
}

/* ---- notice ------------------------------------------------------------------------ */

void ledger_touch(struct arbiter *arbiter, struct lease *lease, unsigned touch)
{
	if (!lease->touched) {
		lease->touched_next = arbiter->touched;
		arbiter->touched = lease;
	}
	lease->touched |= touch;
}

void ledger_touch_waiting(struct arbiter *arbiter, uint64_t id)
{
	struct lease *lease = ledger_find(arbiter, id);

	if (lease && lease->state == STATE_WAITING)
		ledger_touch(arbiter, lease, TOUCH_REASON);
}

struct lease *ledger_take_touched(struct arbiter *arbiter, unsigned *ret_touched)
{
	struct lease *lease = arbiter->touched;

	if (!lease)
		return NULL;
	arbiter->touched = lease->touched_next;
	*ret_touched = lease->touched;
	lease->touched = 0;
	lease->touched_next = NULL;
	return lease;
}

/* An exclusive lease needs all GPUs that share a memory. */
static uint64_t add_sharing(const struct arbiter *arbiter, uint64_t gpus)
{
	uint64_t all = gpus;

	if (!settings_allow_exclusive(arbiter->settings))
		return gpus;
	for (unsigned i = 0; i < arbiter->n_gpus; i++)
		if (gpus >> i & 1)
			all |= ledger_sharing(arbiter, i);
	return all;
}

void ledger_examine_again(struct arbiter *arbiter, uint64_t gpus)
{
	if (!gpus)
		return;
	arbiter->changes++;
	if (gpus == UINT64_MAX)
		arbiter->freed_all = arbiter->changes;
	FOR_EACH_BIT(gpu, add_sharing(arbiter, gpus))
		arbiter->freed[gpu] = arbiter->changes;
}

void ledger_grow(struct arbiter *arbiter, uint64_t gpus)
{
	FOR_EACH_GPU(gpu, arbiter)
		if (gpus >> (gpu - arbiter->gpus) & 1 && gpu->lend.grow_usec == 0)
			gpu->lend.grow_usec = UINT64_MAX;
}

void ledger_wake(struct arbiter *arbiter, uint64_t gpus)
{
	ledger_examine_again(arbiter, gpus);
	ledger_grow(arbiter, gpus);
}

/* ---- change ------------------------------------------------------------------------ */

static void recount_shared(struct arbiter *arbiter, unsigned gpu)
{
	memset(&arbiter->gpus[gpu].shared, 0, sizeof(arbiter->gpus[gpu].shared));
	FOR_EACH_LEASE(lease, arbiter) {
		const struct partition *p = lease_partition_on(lease, gpu);
		struct cuset claim;

		if (!p || p->isolation != ISOLATION_SHARED)
			continue;
		claim = partition_claim(p);
		cuset_add(&arbiter->gpus[gpu].shared, &claim);
	}
}

void ledger_charge(struct arbiter *arbiter, const struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease)
		gpu_charge(&arbiter->gpus[p->gpu], p, lease->class);
}

void ledger_discharge(struct arbiter *arbiter, const struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease)
		gpu_discharge(&arbiter->gpus[p->gpu], p, lease->class);
}

void ledger_recount_shared(struct arbiter *arbiter, const struct lease *gone)
{
	FOR_EACH_PARTITION(p, gone)
		if (p->isolation == ISOLATION_SHARED)
			recount_shared(arbiter, p->gpu);
}

void ledger_put_back(struct arbiter *arbiter, struct lease *lease)
{
	size_t at = position(arbiter, lease->id);

	memmove(&arbiter->leases[at + 1], &arbiter->leases[at],
		(arbiter->n_leases - at) * sizeof(*arbiter->leases));
	arbiter->leases[at] = lease;
	arbiter->n_leases++;
	ledger_charge(arbiter, lease);
}

void ledger_insert(struct arbiter *arbiter, struct lease *lease)
{
	ledger_put_back(arbiter, lease);
	if (arbiter->next_id <= lease->id)
		arbiter->next_id = lease->id + 1;
	reserve(arbiter); /* if it fails, the next request is refused for lack of memory */
}

void ledger_take_out(struct arbiter *arbiter, const struct lease *lease)
{
	size_t at = position(arbiter, lease->id);

	ledger_discharge(arbiter, lease);
	arbiter->n_leases--;
	memmove(&arbiter->leases[at], &arbiter->leases[at + 1],
		(arbiter->n_leases - at) * sizeof(*arbiter->leases));
}

void ledger_leave_out(struct arbiter *arbiter, const struct lease *lease)
{
	ledger_take_out(arbiter, lease);
	ledger_recount_shared(arbiter, lease);
}

void ledger_leave_user(struct arbiter *copy, uid_t uid)
{
	size_t n = 0;

	copy->n_waiting = 0; /* they are the leases of the original */
	FOR_EACH_LEASE(lease, copy)
		if (lease->owner == uid)
			copy->leases[n++] = lease;
		else
			ledger_discharge(copy, lease);
	copy->n_leases = n;
	copy->n_covers = 0;
	for (unsigned i = 0; i < copy->n_gpus; i++) {
		struct gpu *gpu = &copy->gpus[i];

		recount_shared(copy, i);
		memset(&gpu->observed, 0, sizeof(gpu->observed));
		memset(&gpu->outside, 0, sizeof(gpu->outside));
		gpu->graphics = (struct gpu_graphics){ .state = GRAPHICS_NONE };
		memset(&gpu->barrier, 0, sizeof(gpu->barrier));
		gpu->draining = false;
		gpu->reset_until_usec = 0;
	}
}

void ledger_remove(struct arbiter *arbiter, struct lease *lease)
{
	ledger_leave_out(arbiter, lease);
	ledger_wake(arbiter, lease_gpus(lease));
	ledger_touch(arbiter, lease, TOUCH_REMOVED);
	ledger_touch_waiting(arbiter, lease->revoked_for);
}

int ledger_copy(const struct arbiter *arbiter, struct arbiter *ret)
{
	struct arbiter copy = *arbiter;

	copy.gpus = calloc(arbiter->n_gpus, sizeof(*copy.gpus));
	copy.leases = calloc(arbiter->n_leases + 1, sizeof(*copy.leases));
	copy.room = SIZE_MAX; /* it does not grow */
	if (!copy.gpus || !copy.leases) {
		ledger_copy_done(&copy);
		return -ENOMEM;
	}
	memcpy(copy.gpus, arbiter->gpus, arbiter->n_gpus * sizeof(*copy.gpus));
	memcpy(copy.leases, arbiter->leases, arbiter->n_leases * sizeof(*copy.leases));
	*ret = copy;
	return 0;
}

void ledger_copy_done(struct arbiter *copy)
{
	free(copy->gpus);
	free(copy->leases);
}

void ledger_view(const struct arbiter *arbiter, struct ledger_view *ret)
{
	size_t *first = ret->first, next[REQUEST_WANTS];

	ret->there = *arbiter;
	memset(first, 0, sizeof(ret->first));
	FOR_EACH_LEASE(lease, arbiter)
		FOR_EACH_PARTITION(p, lease)
			first[p->gpu + 1]++;
	for (size_t g = 0; g < REQUEST_WANTS; g++) {
		next[g] = first[g];
		first[g + 1] += first[g];
	}
	ret->leases = calloc(first[REQUEST_WANTS] + 1, sizeof(*ret->leases));
	if (!ret->leases)
		return;
	FOR_EACH_LEASE(lease, arbiter)
		FOR_EACH_PARTITION(p, lease)
			ret->leases[next[p->gpu]++] = lease;
}

const struct arbiter *ledger_on(struct ledger_view *view, unsigned gpu)
{
	if (view->leases) {
		view->there.leases = view->leases + view->first[gpu];
		view->there.n_leases = view->first[gpu + 1] - view->first[gpu];
	}
	return &view->there;
}

const struct arbiter *ledger_beside(struct ledger_view *view, const struct arbiter *arbiter,
				    const struct lease *lease)
{
	unsigned gpu = lease->n_partitions == 1 ? lease->partitions[0].gpu : 0;

	return lease->n_partitions == 1 && ledger_sharing(arbiter, gpu) == UINT64_C(1) << gpu
		       ? ledger_on(view, gpu)
		       : arbiter;
}

void ledger_follow(struct arbiter *arbiter, struct lease *lease)
{
	lease->verify.pending = lease->verify.false_ack = lease->lend.late = false;
	ledger_discharge(arbiter, lease);
	FOR_EACH_PARTITION(p, lease) {
		p->occupied = p->cus;
		p->charged = p->granted;
		p->stopped = p->paused;
	}
	ledger_recount_shared(arbiter, lease);
	ledger_charge(arbiter, lease);
	ledger_wake(arbiter, lease_gpus(lease));
}

void ledger_show(const struct arbiter *arbiter, struct lease *lease, struct lease *saved)
{
	FOR_EACH_PARTITION(p, saved) {
		const struct partition *now = lease_partition_on(lease, p->gpu);

		if (!now) { /* its GPU is gone */
			lease_free(saved);
			return;
		}
		p->count = cuset_count(&p->cus);
		p->effective = geometry_effective(&arbiter->gpus[p->gpu].info.geometry, &p->cus);
		p->used = now->used;
		p->queues = now->queues;
		p->capped = now->capped;
		p->sole = now->sole;
		p->intruders = now->intruders;
		memcpy(p->drift, now->drift, sizeof(p->drift));
	}
	saved->observed = lease->observed;
	saved->evicted = lease->evicted;
	saved->cap = lease->cap;
	saved->verify.false_ack = lease->verify.false_ack;
	lease->shown = saved;
}
