/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A second arbiter adopts random ledgers: as they were saved, and with random members corrupted.
 *
 *	ADOPT_SEED=N …      the same run again
 */

#include <errno.h>

#include "adopt-rig.h"
#include "check.h"
#include "ledger-play.h"
#include "seed.h"

static struct play played(unsigned seed)
{
	struct play play = play_new(seed);

	for (unsigned i = 20 + play_below(&play, 150); i > 0; i--)
		play_step(&play);
	check_promises(play.arbiter);
	return play;
}

static void adopt_processes(struct arbiter *new, const struct arbiter *old, uint64_t id)
{
	struct lease_process processes[8];
	size_t n = known_processes(old, id, false, processes, ARRAY_SIZE(processes));

	CHECK(n <= ARRAY_SIZE(processes));
	for (size_t i = 0; i < n; i++)
		CHECK(known_add(new, id, &processes[i]) == 0);
	CHECK(known_processes(new, id, false, NULL, 0) == n);
}

static void check_same_gpu(const struct gpu *a, const struct gpu *b)
{
	CHECK(cuset_equal(&a->taken, &b->taken) && cuset_equal(&a->shared, &b->shared));
	CHECK(memcmp(&a->charged, &b->charged, sizeof(a->charged)) == 0);
	CHECK(a->n_partitions == b->n_partitions && a->n_realtime == b->n_realtime);
	CHECK(a->n_exclusive == b->n_exclusive && a->reserve_queues == b->reserve_queues);
	CHECK(memcmp(a->rt_exclusive, b->rt_exclusive, sizeof(a->rt_exclusive)) == 0);
	CHECK(memcmp(a->rt_tolerant, b->rt_tolerant, sizeof(a->rt_tolerant)) == 0);
	CHECK(memcmp(a->alone, b->alone, sizeof(a->alone)) == 0);
}

static void check_same_adaptation(const struct adaptation *a, const struct adaptation *b,
				  const struct cuset *cus)
{
	CHECK(cuset_equal(&a->base, &b->base) && cuset_equal(&a->before, &b->before));
	CHECK(cuset_equal(&a->moved_from, &b->moved_from));
	/* Not saved: a lease that was never granted is promised the mask that was. */
	CHECK(cuset_within(&b->promised, cus));
}

static void check_same_lease(const struct lease *a, const struct lease *b)
{
	CHECK(a->id == b->id && a->state == b->state && a->class == b->class);
	CHECK(a->generation == b->generation && a->acknowledged == b->acknowledged);
	CHECK(a->owner == b->owner && a->cause == b->cause);
	CHECK(a->lend.never_granted == b->lend.never_granted && a->lend.idle == b->lend.idle &&
	      a->revoked == b->revoked);
	CHECK(a->adaptable == b->adaptable && a->enforce.step == b->enforce.step &&
	      a->verify.pending == b->verify.pending);
	CHECK(a->deadline_usec == b->deadline_usec && a->lend.disturbances == b->lend.disturbances);
	CHECK(strcmp(a->token, b->token) == 0 && strcmp(a->reason, b->reason) == 0);
	CHECK(a->n_partitions == b->n_partitions && !a->request == !b->request);
	for (size_t i = 0; i < a->n_partitions; i++) {
		struct partition p = a->partitions[i], q = b->partitions[i];

		if (a->adaptable)
			check_same_adaptation(p.adaptation, q.adaptation, &p.cus);
		p.used = (struct budget){ 0 };
		p.adaptation = q.adaptation;
		CHECK(memcmp(&p, &q, sizeof(p)) == 0);
	}
}

static void check_same(const struct arbiter *old, const struct arbiter *new)
{
	CHECK(old->n_leases == new->n_leases && old->n_waiting == new->n_waiting);
	CHECK(old->next_id == new->next_id);
	for (size_t i = 0; i < old->n_leases; i++) {
		check_same_lease(old->leases[i], new->leases[i]);
		CHECK(queue_position(old, old->leases[i]) == queue_position(new, new->leases[i]));
	}
	for (size_t i = 0; i < old->n_gpus; i++)
		check_same_gpu(&old->gpus[i], &new->gpus[i]);
}

TEST(random_ledger_is_equal_after_a_restart)
{
	unsigned seed = SEED_OF_RUN("ADOPT_SEED"), leases = 0, waiting = 0, ending = 0;
	char why[256];

	for (unsigned run = 0; run < check_rounds(20, 2000); run++) {
		struct play old = played(seed_nth(seed, run)), new = play_new(seed_nth(seed, run));

		new.arbiter->next_id = old.arbiter->next_id;
		for (size_t i = 0; i < old.arbiter->n_leases; i++) {
			const struct lease *lease = old.arbiter->leases[i];

			if (adopt_saved(new.arbiter, saved(lease), "", why, sizeof(why)) < 0) {
				fprintf(stderr, "lease %zu: %s\n", i, why);
				abort();
			}
			adopt_processes(new.arbiter, old.arbiter, lease->id);
			arbiter_add_holder(new.arbiter, lease->id);
			leases++;
			waiting += lease->state == STATE_WAITING;
			ending += lease->state == STATE_ENDING;
		}
		check_same(old.arbiter, new.arbiter);
		play_drain(&new);
		for (unsigned i = 0; i < 20; i++) {
			play_step(&new);
			check_promises(new.arbiter);
		}
		play_end(&old);
		play_end(&new);
	}
	printf("%u leases, %u of them waiting, %u ending\n", leases, waiting, ending);
	CHECK_REACHED(waiting > 0 && ending > 0);
}

/* ---- corrupted leases -------------------------------------------------------------- */

static void spoil_partition(struct play *play, struct partition *p)
{
	unsigned bit = play_below(play, 32), pair = play_below(play, 16);

	switch (play_below(play, 12)) {
	case 0: p->gpu = play_below(play, PLAY_GPUS); break;
	case 1: p->gpu = GPU_ABSENT; break;
	case 2: p->cus.pair[pair] ^= UINT32_C(1) << bit; break;
	case 3: p->occupied.pair[pair] ^= UINT32_C(1) << bit; break;
	case 4:
		p->cus.pair[pair] ^= UINT32_C(1) << bit;
		p->occupied = p->cus;
		break;
	case 5: p->charged.queues = p->granted.queues = play_below(play, 30); break;
	case 6: p->charged.processes = play_below(play, 2) ? play_below(play, 10) : UINT_MAX; break;
	case 7: p->charged.sdma_queues = play_below(play, 20); break;
	case 8: p->charged.vram = play_below(play, 2) ? UINT64_MAX : UINT64_C(12) << 30; break;
	case 9: p->isolation = (enum isolation)(1 + play_below(play, 3)); break;
	case 10:
		p->any_shape = !p->any_shape;
		p->charged.cooperative = play_below(play, 3);
		break;
	default:
		p->alone = !p->alone;
		p->count = p->effective = play_below(play, 100);
		p->priority = play_below(play, PRIORITY_MAX + 1);
	}
}

static void spoil_request(struct play *play, struct lease *lease)
{
	struct want *want;

	if (!lease->request)
		return;
	want = &lease->request
			->wants[play_below(play, max_u((unsigned)lease->request->n_wants, 1))];
	switch (play_below(play, 5)) {
	case 0:
		free(lease->request);
		lease->request = NULL;
		break;
	case 1: lease->request->n_wants = play_below(play, 2) ? 0 : 1; break;
	case 2: lease->request->class = (int)play_below(play, 5) - 1; break;
	case 3: snprintf(want->gpu, sizeof(want->gpu), "%u", play_below(play, 70)); break;
	default:
		want->cus = play_below(play, 2) ? UINT_MAX : 0;
		want->queues = play_below(play, 2) ? UINT_MAX : 0;
	}
}

static void spoil(struct play *play, struct lease *lease)
{
	unsigned what = play_below(play, 24);

	if (what < 12 && lease->n_partitions > 0)
		spoil_partition(
			play, &lease->partitions[play_below(play, (unsigned)lease->n_partitions)]);
	else if (what < 16)
		spoil_request(play, lease);
	else if (what == 16)
		lease->id = 1 + play_below(play, 40);
	else if (what == 17)
		lease->state = (enum lease_state)play_below(play, 6);
	else if (what == 18)
		lease->class = (enum lease_class)play_below(play, 3);
	else if (what == 19)
		lease->acknowledged = 1 + play_below(play, (unsigned)lease->generation);
	else if (what == 20)
		snprintf(lease->token, sizeof(lease->token), "t%u", play_below(play, 9));
	else if (what == 21)
		memset(lease->token, 'x', sizeof(lease->token) - 1);
	else if (what == 22)
		lease->wait.passed = play_below(play, 2) ? UINT_MAX : LEASE_PASSES_MAX;
	else if (lease->n_partitions > 0)
		lease->n_partitions--;
}

static const char *lost_of(struct play *play, const struct lease *lease)
{
	bool lost = play_chance(play, 20);

	for (size_t i = 0; i < lease->n_partitions; i++)
		lost |= lease->partitions[i].gpu == GPU_ABSENT;
	return lost ? "gone" : "";
}

/* By values that the reader of files lets through. */
TEST(invariants_hold_after_adopting_corrupted_leases)
{
	unsigned seed = SEED_OF_RUN("ADOPT_SEED"), count[4] = { 0 };
	char why[256];

	for (unsigned run = 0; run < check_rounds(100, 5000); run++) {
		struct play old = played(seed_nth(seed, run)), new = play_new(seed_nth(seed, run));

		for (size_t i = 0; i < old.arbiter->n_leases; i++) {
			struct lease *lease = saved(old.arbiter->leases[i]);
			uint64_t id;
			int r;

			for (unsigned j = play_below(&old, 4); j > 0; j--)
				spoil(&old, lease);
			id = lease->id;
			r = adopt_saved(new.arbiter, lease, lost_of(&old, lease), why, sizeof(why));
			CHECK(r == 0 || r == -EEXIST || r == -EINVAL);
			count[r == -EEXIST ? 1 : r == -EINVAL ? 2 : 0]++;
			if (r == 0 && play_chance(&new, 80))
				arbiter_add_holder(new.arbiter, id);
		}
		play_drain(&new);
		for (unsigned i = 0; i < 20; i++) {
			play_step(&new);
			check_promises(new.arbiter);
		}
		play_end(&old);
		play_end(&new);
	}
	printf("%u adopted, %u contradicted others, %u themselves\n", count[0], count[1], count[2]);
	CHECK_REACHED(count[0] > 0 && count[1] > 0 && count[2] > 0);
}
