/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Trusts neither the sums of ledger.h nor the code that made the partitions: what a mask may be, and
 * which leases may stand beside each other, is written anew over plain bits. */

#include "ledger-check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger/waiting-queue.h"
#include "core/policy/request.h"
#include "plain-mask.h"

struct check {
	const struct arbiter *arbiter;
	const struct plain_gpu *gpus;
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

/* Do its queues run, or may they? */
static bool is_active(const struct lease *lease)
{
	if (lease->state == STATE_GRANTED)
		return true;
	if (lease->state == STATE_ENDING && !lease->adaptable)
		return false;
	return (lease->state == STATE_REVOKING || lease->state == STATE_ENDING) &&
	       !lease->lend.idle;
}

/* ---- partitions ---------------------------------------------------------------------- */

static bool check_base(const struct check *check, const struct lease *lease,
		       const struct partition *p, const struct cuset *set)
{
	const struct plain_gpu *gpu = &check->gpus[p->gpu];
	struct plain_mask base;
	const char *wrong;

	plain_mask_init(&base, set);
	wrong = plain_mask_wrong(gpu, &base);
	if (wrong)
		return broken(check, "lease %llu: its base has %s", ID(lease), wrong);
	if (!plain_mask_is_rectangle(gpu, &base) && base.n < gpu->all.n)
		return broken(check, "lease %llu: its base is no rectangle", ID(lease));
	return true;
}

static bool check_adaptation(const struct check *check, const struct lease *lease,
			     const struct partition *p)
{
	const struct plain_gpu *gpu = &check->gpus[p->gpu];
	struct plain_mask before;
	const char *wrong;

	if (!check_base(check, lease, p, &p->adaptation->base) ||
	    (!cuset_empty(&p->resize) && !check_base(check, lease, p, &p->resize)))
		return false;
	if (!cuset_within(&p->adaptation->base, &p->cus))
		return broken(check, "lease %llu: its base is not within its mask", ID(lease));
	plain_mask_init(&before, &p->adaptation->before);
	wrong = before.n > 0 ? plain_mask_wrong(gpu, &before) : NULL;
	return !wrong || broken(check, "lease %llu: its mask before has %s", ID(lease), wrong);
}

static bool check_mask(const struct check *check, const struct lease *lease,
		       const struct partition *p)
{
	const struct plain_gpu *gpu = &check->gpus[p->gpu];
	struct plain_mask cus, occupied;
	const char *wrong;

	plain_mask_init(&cus, &p->cus);
	plain_mask_init(&occupied, &p->occupied);
	wrong = plain_mask_wrong(gpu, &cus);
	if (!wrong)
		wrong = plain_mask_wrong(gpu, &occupied);
	if (wrong)
		return broken(check, "lease %llu: its mask has %s", ID(lease), wrong);
	if (!plain_mask_within(&cus, &occupied))
		return broken(check, "lease %llu: its mask is not within what it occupies",
			      ID(lease));
	if (cus.n != p->count || plain_mask_effective(gpu, &cus) != p->effective)
		return broken(check, "lease %llu has %u CUs, %u effective, and not %u, %u",
			      ID(lease), cus.n, plain_mask_effective(gpu, &cus), p->count,
			      p->effective);
	if (!plain_mask_is_rectangle(gpu, &cus) && !p->any_shape && cus.n < gpu->all.n)
		return broken(check, "lease %llu: its mask is no rectangle", ID(lease));
	return !p->adaptation || check_adaptation(check, lease, p);
}

static bool check_partition(const struct check *check, const struct lease *lease, size_t index)
{
	const struct partition *p = &lease->partitions[index];

	if (p->gpu >= check->arbiter->n_gpus)
		return broken(check, "lease %llu: no GPU has its index", ID(lease));
	if (check->arbiter->gpus[p->gpu].absent && lease->state != STATE_ENDING)
		return broken(check, "lease %llu is on %s, which is gone", ID(lease),
			      check->arbiter->gpus[p->gpu].info.name);
	for (size_t i = 0; i < index; i++)
		if (lease->partitions[i].gpu == p->gpu)
			return broken(check, "lease %llu is on a GPU twice", ID(lease));
	if (p->isolation == ISOLATION_SHARED && lease->class != CLASS_BESTEFFORT)
		return broken(check, "lease %llu shares CUs, and its class may not", ID(lease));
	if ((p->adaptation != NULL) != lease->adaptable)
		return broken(check, "lease %llu is adaptable in part", ID(lease));
	if (p->capped != lease->cap.active)
		return broken(check, "lease %llu is capped in part", ID(lease));
	return check_mask(check, lease, p);
}

static bool check_lease(const struct check *check, size_t i)
{
	const struct lease *lease = check->arbiter->leases[i];

	if (lease->id >= check->arbiter->next_id ||
	    (i > 0 && lease->id <= check->arbiter->leases[i - 1]->id))
		return broken(check, "lease %llu is out of order", ID(lease));
	for (size_t j = 0; j < lease->n_partitions; j++)
		if (!check_partition(check, lease, j))
			return false;
	return true;
}

/* ---- leases beside each other -------------------------------------------------------- */

/* How many partitions have a CU, and the first two leases. */
struct owners {
	unsigned n, shared, adaptable;
	const struct lease *first, *last;
};

/* The same for a shader engine: on any XCC. */
struct closers {
	struct owners any;
	unsigned realtime, whole, alone; /* whole: realtime ones that share it with no other one */
};

/* Who has what of a GPU: all leases by what they claim, active ones by what they occupy. */
struct paint {
	struct owners claimed[PLAIN_PAIRS][PLAIN_CUS], used[PLAIN_PAIRS][PLAIN_CUS];
	struct closers claimed_engine[8], used_engine[8];
};

static void add_owner(struct owners *owners, const struct lease *lease, const struct partition *p)
{
	owners->n++;
	owners->shared += p->isolation == ISOLATION_SHARED;
	owners->adaptable += lease->adaptable;
	owners->first = owners->first ? owners->first : lease;
	owners->last = lease;
}

static void paint_mask(struct owners owners[PLAIN_PAIRS][PLAIN_CUS], struct closers engines[8],
		       const struct lease *lease, const struct partition *p,
		       const struct cuset *set)
{
	struct plain_mask mask;
	bool uses[8] = { false };

	plain_mask_init(&mask, set);
	for (unsigned pair = 0; pair < PLAIN_PAIRS; pair++)
		for (unsigned cu = 0; set->pair[pair] && cu < PLAIN_CUS; cu++)
			if (mask.has[pair][cu]) {
				add_owner(&owners[pair][cu], lease, p);
				uses[pair % 8] = true;
			}
	for (unsigned e = 0; e < 8; e++) {
		bool realtime = uses[e] && lease->class == CLASS_REALTIME;

		if (uses[e])
			add_owner(&engines[e].any, lease, p);
		engines[e].alone += uses[e] && p->alone;
		engines[e].realtime += realtime;
		engines[e].whole += realtime && p->isolation == ISOLATION_SHADER_ENGINE;
	}
}

/* An adaptable lease that is resized claims the base to be, too. */
static struct cuset claim_of(const struct partition *p)
{
	struct cuset claim = p->adaptation ? p->adaptation->base : p->occupied;

	cuset_add(&claim, &p->resize);
	return claim;
}

static void paint_gpu(const struct check *check, unsigned gpu, struct paint *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < check->arbiter->n_leases; i++) {
		const struct lease *lease = check->arbiter->leases[i];

		for (size_t j = 0; j < lease->n_partitions; j++) {
			const struct partition *p = &lease->partitions[j];
			const struct cuset claim = claim_of(p);

			if (p->gpu != gpu)
				continue;
			paint_mask(ret->claimed, ret->claimed_engine, lease, p, &claim);
			if (is_active(lease))
				paint_mask(ret->used, ret->used_engine, lease, p, &p->occupied);
		}
	}
}

static bool share(const struct check *check, const struct owners *owners, const char *what)
{
	return broken(check, "leases %llu and %llu %s", ID(owners->first), ID(owners->last), what);
}

static bool check_cus(const struct check *check, unsigned index, const struct paint *paint)
{
	const struct plain_mask *all = &check->gpus[index].all;

	for (unsigned pair = 0; pair < PLAIN_PAIRS; pair++)
		for (unsigned cu = 0; all->in[pair] > 0 && cu < PLAIN_CUS; cu++) {
			const struct owners *claimed = &paint->claimed[pair][cu];
			const struct owners *used = &paint->used[pair][cu];

			if (claimed->n > 1 && claimed->shared < claimed->n)
				return share(check, claimed, "share CUs");
			if (used->n > 1 && used->adaptable > 0)
				return share(check, used,
					     "have the same CUs: one is granted before the other "
					     "has shrunk");
		}
	return true;
}

static bool check_engines(const struct check *check, const struct paint *paint)
{
	for (unsigned e = 0; e < 8; e++) {
		const struct closers *claimed = &paint->claimed_engine[e];
		const struct closers *used = &paint->used_engine[e];

		if ((claimed->realtime > 1 && claimed->whole > 0) ||
		    (claimed->any.n > 1 && claimed->alone > 0))
			return share(check, &claimed->any, "share a shader engine");
		if (used->any.n > 1 && used->alone > 0 && used->any.adaptable > 0)
			return share(check, &used->any,
				     "have the same engine: one is granted before the other has "
				     "shrunk");
	}
	return true;
}

/* Are they on one GPU, or on partitions of one card with the same memory? */
static bool share_memory(const struct check *check, const struct partition *p,
			 const struct partition *q)
{
	const struct gpu_info *a = &check->arbiter->gpus[p->gpu].info,
			      *b = &check->arbiter->gpus[q->gpu].info;
	size_t n = strcspn(a->name, "/");

	return p->gpu == q->gpu ||
	       (a->name[n] && a->memory == b->memory && strncmp(a->name, b->name, n + 1) == 0);
}

/* May the second partition be as it is while the first one is exclusive and in use? */
static bool check_exclusive(const struct check *check, const struct lease *a,
			    const struct partition *p, const struct lease *b,
			    const struct partition *q)
{
	if (a == b || !share_memory(check, p, q) || !p->exclusive || !is_active(a) ||
	    (b->adaptable ? q->stopped : !is_active(b)))
		return true;
	return broken(check, "lease %llu is active and exclusive, and lease %llu has not paused",
		      ID(a), ID(b));
}

static bool check_pauses(const struct check *check, const struct lease *a,
			 const struct partition *p)
{
	for (size_t i = 0; p->exclusive && i < check->arbiter->n_leases; i++) {
		const struct lease *b = check->arbiter->leases[i];

		for (size_t j = 0; j < b->n_partitions; j++)
			if (!check_exclusive(check, a, p, b, &b->partitions[j]))
				return false;
	}
	return true;
}

/* ---- budgets and sums -------------------------------------------------------------- */

/* The sums of a GPU but for CUs and engines, from its leases. */
static bool check_counts(const struct check *check, unsigned index)
{
	const struct gpu *gpu = &check->arbiter->gpus[index];
	struct budget sum = { 0 };
	unsigned n = 0, realtime = 0, exclusive = 0;

	for (size_t i = 0; i < check->arbiter->n_leases; i++) {
		const struct lease *lease = check->arbiter->leases[i];

		for (size_t j = 0; j < lease->n_partitions; j++) {
			const struct partition *p = &lease->partitions[j];

			if (p->gpu != index)
				continue;
			n++;
			realtime += lease->class == CLASS_REALTIME;
			exclusive += p->exclusive;
			for (unsigned r = 0; r < BUDGETS; r++)
				sum.of[r] += p->charged.of[r];
		}
	}
	return (memcmp(&gpu->charged, &sum, sizeof(sum)) == 0 && gpu->n_partitions == n &&
		gpu->n_realtime == realtime && gpu->n_exclusive == exclusive) ||
	       broken(check, "%s: its sums differ from those of its leases", gpu->info.name);
}

static bool check_sets(const struct check *check, unsigned index, const struct paint *paint)
{
	const struct gpu *gpu = &check->arbiter->gpus[index];
	const struct plain_mask *all = &check->gpus[index].all;
	struct plain_mask taken, shared;
	bool equal;

	plain_mask_init(&taken, &gpu->taken);
	plain_mask_init(&shared, &gpu->shared);
	equal = plain_mask_within(&taken, all) && plain_mask_within(&shared, all);
	for (unsigned pair = 0; pair < PLAIN_PAIRS; pair++)
		for (unsigned cu = 0; all->in[pair] > 0 && cu < PLAIN_CUS; cu++) {
			const struct owners *owners = &paint->claimed[pair][cu];

			equal &= taken.has[pair][cu] == (owners->n > owners->shared) &&
				 shared.has[pair][cu] == (owners->shared > 0);
		}
	for (unsigned e = 0; e < 8; e++) {
		const struct closers *c = &paint->claimed_engine[e];

		equal &= gpu->rt_exclusive[e] == c->whole && gpu->alone[e] == c->alone &&
			 gpu->rt_tolerant[e] == c->realtime - c->whole;
	}
	return equal || broken(check, "%s: its CUs or engines differ from those of its leases",
			       gpu->info.name);
}

/* Only grants: unmanaged use, or a policy that was changed after the grant, may oversubscribe the
 * GPU, and that is reported. */
static bool check_budgets(const struct check *check, const struct gpu *gpu)
{
	const struct budget *c = &gpu->charged;
	bool slots = gpu->n_realtime > 0 || !(check->arbiter->settings->oversubscribe_besteffort ||
					      gpu->observed.oversubscribed);

	if (slots && c->queues > gpu->info.queue_slots)
		return broken(check, "%s: %" PRIu64 " queues granted of %u", gpu->info.name,
			      c->queues, gpu->info.queue_slots);
	if (slots && c->processes > gpu->info.process_slots)
		return broken(check, "%s: %" PRIu64 " processes granted of %u", gpu->info.name,
			      c->processes, gpu->info.process_slots);
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

/* May it bar the GPU, if another lease does not? */
static bool may_bar(const struct lease *lease, const struct gpu *gpu, unsigned index)
{
	return lease->wait.passed == LEASE_PASSES_MAX && !lease->wait.over_quota &&
	       lease->wait.may_bar && !gpu->barrier.open_usec &&
	       (lease->wait.candidates >> index & 1);
}

/* No waiting lease bars more GPUs than it has wants, beside those where leases are revoked for it. One with a
 * single want bars one, if any is left. */
static bool check_barred(const struct check *check, const struct lease *lease)
{
	size_t barred = 0, left = 0;

	for (unsigned i = 0; i < check->arbiter->n_gpus; i++) {
		const struct gpu *gpu = &check->arbiter->gpus[i];
		bool revokes = lease->wait.preempts >> i & 1;

		if (gpu->barrier.rank.id == lease->id && !revokes && !may_bar(lease, gpu, i))
			return broken(check, "%s: barred by lease %llu, which does not bar it",
				      gpu->info.name, ID(lease));
		if (gpu->barrier.rank.id == 0 && revokes)
			return broken(check, "%s: lease %llu does not bar it", gpu->info.name,
				      ID(lease));
		barred += gpu->barrier.rank.id == lease->id && !revokes;
		left += gpu->barrier.rank.id == 0 && may_bar(lease, gpu, i);
	}
	if (barred > lease->request->n_wants ||
	    (lease->request->n_wants == 1 && barred == 0 && left > 0 && !lease->wait.preempts))
		return broken(check, "lease %llu bars %zu GPUs", ID(lease), barred);
	return true;
}

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
		if (!check_barred(check, lease))
			return false;
	}
	return true;
}

static bool check_barrier(const struct check *check, unsigned index)
{
	const struct rank *rank = &check->arbiter->gpus[index].barrier.rank;
	const struct lease *lease = rank->id ? ledger_find(check->arbiter, rank->id) : NULL;

	if (rank->id && (!lease || lease->state != STATE_WAITING || lease->class != rank->class))
		return broken(check, "%s: barred by lease %llu, which does not wait",
			      check->arbiter->gpus[index].info.name, (unsigned long long)rank->id);
	return true;
}

static bool check_gpu(const struct check *check, unsigned index)
{
	struct paint paint;

	paint_gpu(check, index, &paint);
	return check_cus(check, index, &paint) && check_engines(check, &paint) &&
	       check_sets(check, index, &paint) && check_counts(check, index) &&
	       check_budgets(check, &check->arbiter->gpus[index]) && check_barrier(check, index);
}

bool ledger_check(const struct arbiter *arbiter, char *buf, size_t size)
{
	_cleanup_(freep) struct plain_gpu *gpus = calloc(arbiter->n_gpus + 1, sizeof(*gpus));
	const struct check check = { arbiter, gpus, buf, size };

	for (unsigned i = 0; i < arbiter->n_gpus; i++)
		plain_gpu_init(&gpus[i], &arbiter->gpus[i].info.geometry);
	if (!check_waiting(&check))
		return false;
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (!check_lease(&check, i))
			return false;
	for (unsigned i = 0; i < arbiter->n_gpus; i++)
		if (!check_gpu(&check, i))
			return false;
	for (size_t i = 0; i < arbiter->n_leases; i++)
		for (size_t j = 0; j < arbiter->leases[i]->n_partitions; j++)
			if (!check_pauses(&check, arbiter->leases[i],
					  &arbiter->leases[i]->partitions[j]))
				return false;
	return true;
}

void check_promises(const struct arbiter *arbiter)
{
	char why[256];

	if (ledger_check(arbiter, why, sizeof(why)))
		return;
	fprintf(stderr, "%s\n", why);
	abort();
}
