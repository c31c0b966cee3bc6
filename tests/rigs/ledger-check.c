/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Trusts neither the sums of ledger.h nor the code that made the partitions. */

#include "ledger-check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/ledger/waiting-queue.h"

struct check {
	const struct arbiter *arbiter;
	char *buf;
	size_t size;
};

static bool broken(const struct check *check, const char *format, ...) PRINTF_LIKE(2, 3);

static bool broken(const struct check *check, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(check->buf, check->size, format, args);
	va_end(args);
	return false;
}

#define ID(lease) ((unsigned long long)(lease)->id)

static bool check_pair(const struct check *check, const struct lease *a, const struct partition *p,
		       const struct lease *b, const struct partition *q)
{
	const char *shared = p->gpu == q->gpu ? partition_conflict(a->class, p, b->class, q) : NULL;

	if (shared)
		return broken(check, "leases %llu and %llu share %s", ID(a), ID(b), shared);
	if (p->gpu == q->gpu && lease_is_active(a) && lease_is_active(b) &&
	    (a->adaptable || b->adaptable) &&
	    (cuset_overlap(&p->occupied, &q->occupied) ||
	     ((p->alone || q->alone) &&
	      (cuset_engines(&p->occupied) & cuset_engines(&q->occupied)))))
		return broken(check,
			      "leases %llu and %llu have the same CUs or engines: one is "
			      "granted before the other has shrunk",
			      ID(a), ID(b));
	return true;
}

/* May the second partition be as it is while the first one is exclusive and in use? */
static bool check_exclusive(const struct check *check, const struct lease *a,
			    const struct partition *p, const struct lease *b,
			    const struct partition *q)
{
	if (p->gpu != q->gpu || !p->exclusive || !lease_is_active(a) ||
	    (b->adaptable ? q->stopped : !lease_is_active(b)))
		return true;
	return broken(check, "lease %llu is active and exclusive, and lease %llu has not paused",
		      ID(a), ID(b));
}

static bool check_others(const struct check *check, size_t i)
{
	const struct arbiter *arbiter = check->arbiter;
	const struct lease *a = arbiter->leases[i];

	for (size_t j = i + 1; j < arbiter->n_leases; j++) {
		const struct lease *b = arbiter->leases[j];

		for (size_t k = 0; k < a->n_partitions; k++)
			for (size_t l = 0; l < b->n_partitions; l++)
				if (!check_pair(check, a, &a->partitions[k], b,
						&b->partitions[l]) ||
				    !check_exclusive(check, a, &a->partitions[k], b,
						     &b->partitions[l]) ||
				    !check_exclusive(check, b, &b->partitions[l], a,
						     &a->partitions[k]))
					return false;
	}
	return true;
}

static bool check_lease(const struct check *check, size_t i)
{
	const struct lease *lease = check->arbiter->leases[i];
	char why[192];

	if (lease->id >= check->arbiter->next_id ||
	    (i > 0 && lease->id <= check->arbiter->leases[i - 1]->id))
		return broken(check, "lease %llu is out of order", ID(lease));
	for (size_t j = 0; j < lease->n_partitions; j++) {
		const struct partition *p = &lease->partitions[j];
		const struct gpu *gpu;

		if (p->gpu >= check->arbiter->n_gpus)
			return broken(check, "lease %llu: no GPU has its index", ID(lease));
		gpu = &check->arbiter->gpus[p->gpu];
		if (gpu->absent && lease->state != STATE_ENDING)
			return broken(check, "lease %llu is on %s, which is gone", ID(lease),
				      gpu->info.name);
		for (size_t k = 0; k < j; k++)
			if (lease->partitions[k].gpu == p->gpu)
				return broken(check, "lease %llu is on a GPU twice", ID(lease));
		if (p->isolation == ISOLATION_SHARED && lease->class != CLASS_BESTEFFORT)
			return broken(check, "lease %llu shares CUs, and its class may not",
				      ID(lease));
		if ((p->adaptation != NULL) != lease->adaptable)
			return broken(check, "lease %llu is adaptable in part", ID(lease));
		if (p->capped != lease->cap.active)
			return broken(check, "lease %llu is capped in part", ID(lease));
		if (cuset_count(&p->cus) != p->count || p->count == 0 ||
		    geometry_effective(&gpu->info.geometry, &p->cus) != p->effective)
			return broken(check, "lease %llu has not %u CUs, of which %u effective",
				      ID(lease), p->count, p->effective);
		if (gpu_check_partition(gpu, p, why, sizeof(why)) < 0)
			return broken(check, "lease %llu: %s", ID(lease), why);
	}
	return lease->n_partitions == 0 || check_others(check, i);
}

/* ---- budgets and sums -------------------------------------------------------------- */

/* The sums of a GPU, from its leases. */
static void sum_up(const struct arbiter *arbiter, unsigned index, struct gpu *ret)
{
	gpu_init(ret, &arbiter->gpus[index].info, arbiter->gpus[index].reserve_queues);
	for (size_t i = 0; i < arbiter->n_leases; i++)
		for (size_t j = 0; j < arbiter->leases[i]->n_partitions; j++)
			if (arbiter->leases[i]->partitions[j].gpu == index)
				gpu_charge(ret, &arbiter->leases[i]->partitions[j],
					   arbiter->leases[i]->class);
}

static bool check_sums(const struct check *check, const struct gpu *gpu, const struct gpu *sum)
{
	if (!cuset_equal(&gpu->taken, &sum->taken) || !cuset_equal(&gpu->shared, &sum->shared) ||
	    memcmp(&gpu->charged, &sum->charged, sizeof(gpu->charged)) != 0 ||
	    gpu->n_partitions != sum->n_partitions || gpu->n_realtime != sum->n_realtime ||
	    gpu->n_shared != sum->n_shared ||
	    memcmp(gpu->rt_exclusive, sum->rt_exclusive, sizeof(gpu->rt_exclusive)) != 0 ||
	    memcmp(gpu->rt_tolerant, sum->rt_tolerant, sizeof(gpu->rt_tolerant)) != 0 ||
	    memcmp(gpu->alone, sum->alone, sizeof(gpu->alone)) != 0)
		return broken(check, "%s: its sums differ from those of its leases",
			      gpu->info.name);
	return true;
}

/* Only grants: unmanaged use, or a policy that was changed after the grant, may oversubscribe the
 * GPU, and that is reported. */
static bool check_budgets(const struct check *check, const struct gpu *gpu)
{
	const struct budget *c = &gpu->charged;
	bool slots = gpu->n_realtime > 0 || !(check->arbiter->settings->oversubscribe_besteffort ||
					      gpu->observed.oversubscribed);

	if (slots && c->queues > gpu->info.queue_slots)
		return broken(check, "%s: %u queues granted of %u", gpu->info.name, c->queues,
			      gpu->info.queue_slots);
	if (slots && c->processes > gpu->info.process_slots)
		return broken(check, "%s: %u processes granted of %u", gpu->info.name, c->processes,
			      gpu->info.process_slots);
	if (c->sdma_queues > gpu->info.sdma_queues ||
	    c->sdma_xgmi_queues > gpu->info.sdma_xgmi_queues || c->vram > gpu->info.vram_bytes ||
	    c->cooperative > 1)
		return broken(check,
			      "%s: more SDMA queues, VRAM or cooperative queues granted "
			      "than there are",
			      gpu->info.name);
	return true;
}

/* ---- the waiting queue ------------------------------------------------------------- */

static bool check_waiting(const struct check *check)
{
	const struct arbiter *arbiter = check->arbiter;
	size_t waiting = 0;

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];

		waiting += lease->state == STATE_WAITING;
		if (lease->state == STATE_WAITING && (lease->n_partitions > 0 || !lease->request))
			return broken(check,
				      "lease %llu is waiting, and has partitions or no request",
				      ID(lease));
	}
	if (waiting != arbiter->n_waiting)
		return broken(check, "%zu leases are waiting, and %zu are in the queue", waiting,
			      arbiter->n_waiting);
	for (size_t i = 0; i < arbiter->n_waiting; i++) {
		const struct lease *lease = arbiter->waiting[i];
		const struct rank before = lease_rank(arbiter->waiting[i > 0 ? i - 1 : 0]);
		const struct rank rank = lease_rank(lease);

		if (lease->state != STATE_WAITING || ledger_find(arbiter, lease->id) != lease ||
		    (i > 0 && !queue_before(&before, &rank)))
			return broken(check, "lease %llu is at a wrong position in the queue",
				      ID(lease));
		if (lease->wait.passed > LEASE_PASSES_MAX)
			return broken(check, "lease %llu was passed %u times", ID(lease),
				      lease->wait.passed);
	}
	return true;
}

static bool check_barrier(const struct check *check, unsigned index)
{
	const struct gpu *gpu = &check->arbiter->gpus[index];
	const struct lease *first = NULL;

	for (size_t i = 0; i < check->arbiter->n_waiting && !first; i++) {
		const struct lease *lease = check->arbiter->waiting[i];

		if (lease->wait.passed == LEASE_PASSES_MAX && !lease->wait.over_quota &&
		    lease->wait.may_bar && !gpu->barrier.open_usec &&
		    (lease->wait.candidates >> index & 1))
			first = lease;
		if (lease->wait.preempts >> index & 1)
			first = lease;
	}
	if (gpu->barrier.rank.id != (first ? first->id : 0) ||
	    (first && gpu->barrier.rank.class != first->class))
		return broken(check, "%s: barred by lease %llu, which does not bar it",
			      gpu->info.name, (unsigned long long)gpu->barrier.rank.id);
	return true;
}

bool ledger_check(const struct arbiter *arbiter, char *buf, size_t size)
{
	const struct check check = { arbiter, buf, size };

	if (!check_waiting(&check))
		return false;

	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (!check_lease(&check, i))
			return false;
	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu sum;

		sum_up(arbiter, i, &sum);
		if (!check_sums(&check, &arbiter->gpus[i], &sum) ||
		    !check_budgets(&check, &arbiter->gpus[i]) || !check_barrier(&check, i))
			return false;
	}
	return true;
}
