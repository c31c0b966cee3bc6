/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What wakes a waiting lease, and the reason that it has then. */

#include "check.h"
#include "wait-rig.h"

/* Whether the lease waits, and its reason names this. */
static bool says(struct scene *s, const struct lease *lease, const char *named)
{
	if (lease->state == STATE_WAITING && strstr(reason_of(s->arbiter, lease), named))
		return true;
	fprintf(stderr, "%s: %s\n", state_names[lease->state], reason_of(s->arbiter, lease));
	return false;
}

/* The cause with which a waiting lease ended; it is removed from the ledger. */
static bool ended(struct scene *s, uint64_t id, enum result_kind cause, const char *reason)
{
	struct lease gone = { 0 };
	unsigned touched = touched_of(s, id, &gone);

	if (!ledger_find(s->arbiter, id) && gone.cause == cause && strstr(gone.reason, reason) &&
	    (touched & (TOUCH_ENDING | TOUCH_REMOVED)) == (TOUCH_ENDING | TOUCH_REMOVED))
		return true;
	fprintf(stderr, "touched %u, cause %d: %s\n", touched, gone.cause, gone.reason);
	return false;
}

/* ---- hardware ---------------------------------------------------------------------- */

TEST(lease_is_examined_only_when_a_gpu_that_it_could_use_has_changed)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *small, *first, *second;
	uint64_t before;

	CHECK(grant_on(&s, LAB, "0", 60) && grant_on(&s, LAB, "1", 52));
	small = grant_on(&s, VR, "1", 8);
	first = wait_for(&s, ANY, "0", 40);
	second = wait_for(&s, OTHER, "1", 40);
	CHECK(grant_waiting(&s, NULL) == 0 && first->wait.steps == 0 && second->wait.steps == 0);
	release(s.arbiter, small->id);
	CHECK(!wait_is_examined(s.arbiter, second) && wait_is_examined(s.arbiter, first));
	CHECK(grant_waiting(&s, NULL) == 0 && first->wait.steps == 0 && second->wait.steps > 0);
	before = second->wait.steps;
	CHECK(grant_waiting(&s, NULL) == 0 && second->wait.steps == before);
}

FIXTURE(struct scene, s, *s = scene_of(1), scene_done(s));

TEST_WITH(undrain_wakes_a_waiting_lease, struct scene *s)
{
	struct lease *lease;

	CHECK(arbiter_drain(s->arbiter, "0", true) == 0);
	lease = wait_for(s, ANY, "any", 20);
	CHECK(says(s, lease, "drained"));
	CHECK(grant_waiting(s, NULL) == 0);
	CHECK(arbiter_drain(s->arbiter, "0", false) == 0 && grant_waiting(s, NULL) == 1);
}

TEST(fewer_queues_of_a_process_wake_a_waiting_lease)
{
	static const struct {
		enum unmanaged unmanaged;
		bool leased;        /* of 2 queues */
		const char *reason; /* of the lease that waits for 8 */
		unsigned queues[4]; /* at each scan; the lease is granted after the last one */
	} table[] = {
		/* Fewer unmanaged queues, and not more than there are slots. */
		{ UNMANAGED_COUNT, false, "processes", { 20, 18, 25, 16 } },
		/* They are not subtracted, but still oversubscribe. */
		{ UNMANAGED_IGNORE, false, "oversubscribed", { 30, 24 } },
		{ UNMANAGED_COUNT, true, "8 queue", { 20, 2 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_(scene_done) struct scene s = scene_of(1);
		struct observed row = { .pid = 9, .start_time = 1, .kfd_gpu_id = 1 };
		struct lease *own = table[i].leased ? grant(&s, ANY, 20) : NULL;

		s.arbiter->gpus[0].info.kfd_gpu_id = 1;
		s.arbiter->settings->unmanaged = table[i].unmanaged;
		row.uid = own ? own->owner : 0;
		CHECK(!own || arbiter_bind(s.arbiter, own->id, 9, false) == 0);
		for (size_t j = 0; j < 4 && table[i].queues[j]; j++) {
			bool last = j == 3 || !table[i].queues[j + 1];

			row.queues = table[i].queues[j];
			CHECK(arbiter_observe(s.arbiter, &row, 1) == 0);
			if (j == 0)
				CHECK(says(&s, ask(&s, LAB, request_of("cus=20 queues=8")),
					   table[i].reason));
			CHECK(grant_waiting(&s, NULL) == last);
		}
	}
}

/* What the user uses less, another one uses more: no memory of the GPU becomes free. */
TEST_WITH(memory_that_a_user_frees_wakes_its_lease_that_waits_for_max_vram, struct scene *s)
{
	const uint64_t gib = UINT64_C(1) << 30;
	struct observed rows[2] = {
		{ .pid = 8, .start_time = 1, .kfd_gpu_id = 1, .queues = 1, .vram = 3 * gib },
		{ .pid = 9, .start_time = 1, .kfd_gpu_id = 1, .queues = 1, .vram = gib },
	};
	struct lease *own = grant(s, LAB, 8), *other = grant(s, ANY, 8), *waiting;
	struct tenant *lab = &s->arbiter->settings->tenants[1];

	CHECK(strcmp(lab->name, own->tenant) == 0);
	lab->max_vram = (struct limit){ LIMIT_COUNT, 4 * gib };
	lab->default_vram = 2 * gib;
	rows[0].uid = own->owner;
	rows[1].uid = other->owner;
	s->arbiter->gpus[0].info.kfd_gpu_id = 1;
	CHECK(arbiter_bind(s->arbiter, own->id, 8, false) == 0);
	CHECK(arbiter_bind(s->arbiter, other->id, 9, false) == 0);
	CHECK(arbiter_observe(s->arbiter, rows, 2) == 0);
	waiting = ask(s, LAB, request_of("cus=8"));
	CHECK(waiting && waiting->state == STATE_WAITING && waiting->wait.over_quota);
	CHECK(waiting->refusal.by_default);
	CHECK(grant_waiting(s, NULL) == 0);
	rows[0].vram -= gib - 1;
	rows[1].vram += gib - 1;
	CHECK(arbiter_observe(s->arbiter, rows, 2) == 0 && grant_waiting(s, NULL) == 0);
	rows[0].vram -= 1;
	rows[1].vram += 1;
	CHECK(arbiter_observe(s->arbiter, rows, 2) == 0 && grant_waiting(s, NULL) == 1);
}

TEST_WITH(acknowledged_resize_wakes_a_waiting_lease, struct scene *s)
{
	struct lease *lease = grant(s, ANY, 60);

	wait_for(s, ANY, "any", 30);
	CHECK(grant_waiting(s, NULL) == 0);
	CHECK(resize_as(s, lease, "cus=20") == 0);
	CHECK(grant_waiting(s, NULL) == 0);
	CHECK(arbiter_acknowledge(s->arbiter, lease->id, 2) == 0 && grant_waiting(s, NULL) == 1);
}

TEST_WITH(new_gpu_wakes_a_waiting_lease, struct scene *s)
{
	struct gpu_info gpus[] = { s->arbiter->gpus[0].info, radeon_vii("0000:04:00.0") };
	struct lease *lease;

	CHECK(grant(s, ANY, 60));
	lease = wait_for(s, ANY, "any", 20);
	CHECK(lease->wait.candidates == 1 && grant_waiting(s, NULL) == 0);
	CHECK(arbiter_set_gpus(s->arbiter, gpus, 2) == 0 && grant_waiting(s, NULL) == 1);
	CHECK(lease->partitions[0].gpu == 1);
}

TEST(missing_gpu_ends_only_leases_that_wait_for_it_alone)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct gpu_info one = s.arbiter->gpus[0].info;
	uint64_t named, by_index, gang;
	struct lease *any;

	CHECK(grant(&s, VR, 60) && grant(&s, VR, 60));
	named = wait_for(&s, ANY, "0000:04:00.0", 20)->id;
	by_index = wait_for(&s, ANY, "1", 20)->id;
	any = wait_for(&s, ANY, "any", 20);
	gang = ask(&s, ANY, request_of("cus=20 | cus=20"))->id;
	CHECK(any->wait.candidates == 3);
	CHECK(arbiter_set_gpus(s.arbiter, &one, 1) == 0);
	CHECK(grant_waiting(&s, NULL) == 0 && s.arbiter->n_waiting == 1);
	CHECK(any->state == STATE_WAITING && any->wait.candidates == 1);
	CHECK(!ask(&s, ANY, request_of("cus=20 | cus=20")) &&
	      refused(&s, RESULT_NEVER_FITS, REASON_ABSENT));
	CHECK(!ask(&s, ANY, request_of("cus=20 gpu=1 | cus=20")) &&
	      s.result.kind == RESULT_NO_SUCH_GPU);
	CHECK(strstr(s.result.sentence, "0000:04:00.0"));
	for (unsigned i = 0; i < 3; i++) {
		struct lease gone = { 0 }, *lease;
		unsigned touched;

		do
			CHECK((lease = ledger_take_touched(s.arbiter, &touched)));
		while (!(touched & TOUCH_REMOVED));
		gone = *lease;
		lease_free(lease);
		CHECK(gone.id == named || gone.id == by_index || gone.id == gang);
		CHECK(gone.cause == (gone.id == gang ? RESULT_NEVER_FITS : RESULT_NO_SUCH_GPU));
		CHECK(gone.id == gang || strstr(gone.reason, "0000:04:00.0"));
	}
}

/* ---- policy ------------------------------------------------------------------------ */

TEST_WITH(smaller_reserve_wakes_a_waiting_lease, struct scene *s)
{
	struct settings *settings = NULL;
	struct lease *first;

	s->arbiter->gpus[0].reserve_queues = 10;
	first = ask(s, ANY, request_of("cus=20 queues=10"));
	CHECK(first->state == STATE_GRANTED);
	ask(s, ANY, request_of("cus=20 queues=10"));
	CHECK(grant_waiting(s, NULL) == 0);
	CHECK(settings_new(&settings) == 0);
	arbiter_set_settings(s->arbiter, settings);
	CHECK(grant_waiting(s, NULL) == 1);
}

TEST(larger_reserve_removes_the_barrier_of_a_lease_that_cannot_fit)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct settings *settings = NULL;
	struct lease *lease;

	CHECK(grant_on(&s, VR, "0", 32) && grant_on(&s, VR, "1", 30));
	lease = ask(&s, OTHER, request_of("cus=60 queues=20"));
	for (unsigned i = 0; i < LEASE_PASSES_MAX; i++) {
		release(s.arbiter, grant_on(&s, ANY, "0", 4)->id);
		CHECK(grant_waiting(&s, NULL) == 0);
	}
	CHECK(!grant_on(&s, ANY, "1", 4));
	CHECK(settings_new(&settings) == 0);
	settings->gpus = calloc(1, sizeof(*settings->gpus));
	settings->gpus[0] = (struct gpu_settings){ "0000:04:00.0", 10, false };
	settings->n_gpus = 1;
	arbiter_set_settings(s.arbiter, settings);
	CHECK(grant_waiting(&s, NULL) == 0 && lease->wait.candidates == 1);
	CHECK(!grant_on(&s, ANY, "0", 4) && grant_on(&s, ANY, "1", 4));
}

TEST_WITH(changed_policy_ends_a_waiting_lease_that_it_forbids, struct scene *s)
{
	struct settings *settings = NULL;
	struct lease *all = grant(s, ANY, 60);
	uint64_t lab_id = wait_for(s, LAB, "any", 20)->id, vr_id = wait_for(s, VR, "any", 10)->id;
	uint64_t any_id = wait_for(s, ANY, "any", 10)->id;
	struct tenant *vr;

	CHECK(settings_new(&settings) == 0);
	arbiter_set_settings(s->arbiter, settings);
	vr = add_tenant(s->arbiter, "vr", VR, CLASS_GUARANTEED);
	release(s->arbiter, all->id);
	forget_touched(s);
	CHECK(grant_waiting(s, NULL) == 1);
	CHECK(ledger_find(s->arbiter, any_id)->state == STATE_GRANTED);
	CHECK(!ledger_find(s->arbiter, lab_id) && !ledger_find(s->arbiter, vr_id));
	CHECK(vr->users.n == 1);
}

TEST(lease_ended_by_policy_has_a_reason)
{
	static const char *const reasons[] = {
		"policy has no tenant lab any more", "tenant lab is not for uid 2 any more",
		"class guaranteed asked, tenant lab allows besteffort",
		"max-cus of tenant lab is 10"
	};

	for (unsigned i = 0; i < 4; i++) {
		_cleanup_(scene_done) struct scene s = scene_of(1);
		struct settings *settings = NULL;
		enum result_kind cause = i < 3 ? RESULT_NOT_PERMITTED : RESULT_QUOTA_EXCEEDED;
		uint64_t id;

		CHECK(grant(&s, ANY, 60));
		id = wait_for(&s, LAB, "any", 20)->id;
		CHECK(settings_new(&settings) == 0);
		arbiter_set_settings(s.arbiter, settings);
		if (i > 0)
			add_tenant(s.arbiter, "lab", i == 1 ? ANY : LAB,
				   i == 2 ? CLASS_BESTEFFORT : CLASS_GUARANTEED);
		if (i == 3)
			s.arbiter->settings->tenants[0].max_cus = (struct limit){ LIMIT_COUNT, 10 };
		CHECK(grant_waiting(&s, NULL) == 0 && ended(&s, id, cause, reasons[i]));
	}
}

/* The floor keeps two engines of an empty GPU, and nothing once a realtime lease has a few CUs of both. */
TEST(gpu_whose_floor_is_held_by_then_is_granted_to_a_waiting_lease)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *lease;

	tenant_of(&s, "lab")->class = CLASS_REALTIME;
	tenant_of(&s, "lab")->reserved_engines = 2;
	tenant_of(&s, "lab")->reserved_gpu = strdup("0000:04:00.0");
	CHECK(grant_on(&s, ANY, "0", 60));
	lease = wait_for(&s, OTHER, "any", 40);
	CHECK(lease->wait.candidates == 1 && says(&s, lease, "40 CUs on 0000:03:00.0"));
	CHECK(ask(&s, LAB, request_of("cus=8 gpu=1 shader-engines=2"))->state == STATE_GRANTED);
	CHECK(grant_waiting(&s, NULL) == 1 && lease->partitions[0].gpu == 1);
}

TEST_WITH(freed_quota_wakes_a_waiting_lease, struct scene *s)
{
	struct lease *all = grant(s, ANY, 30), *own, *lease;

	tenant_of(s, "lab")->max_cus = (struct limit){ LIMIT_COUNT, 40 };
	lease = wait_for(s, LAB, "any", 40);
	own = grant(s, LAB, 10);
	CHECK(own && lease->wait.passed == 0);
	release(s->arbiter, all->id);
	forget_touched(s);
	CHECK(grant_waiting(s, NULL) == 0 && lease->wait.over_quota);
	CHECK(says(s, lease, "max-cus"));
	CHECK(touched_of(s, lease->id, NULL) == TOUCH_REASON);
	/* No pass: its quota stops it. */
	CHECK(grant(s, ANY, 10) && lease->wait.passed == 0);
	CHECK(grant(s, LAB, 10));
	release(s->arbiter, own->id + 2);
	CHECK(grant_waiting(s, NULL) == 0);
	release(s->arbiter, own->id);
	CHECK(grant_waiting(s, NULL) == 1 && !lease->wait.over_quota);
}

TEST(freed_quota_on_another_gpu_wakes_a_waiting_lease)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *all = grant_on(&s, ANY, "1", 60), *own, *lease;

	tenant_of(&s, "lab")->max_gpus = (struct limit){ LIMIT_COUNT, 1 };
	lease = wait_for(&s, LAB, "1", 20);
	own = grant_on(&s, LAB, "0", 10);
	release(s.arbiter, all->id);
	CHECK(own && grant_waiting(&s, NULL) == 0 && lease->wait.over_quota);
	CHECK(says(&s, lease, "max-gpus"));
	release(s.arbiter, own->id);
	CHECK(grant_waiting(&s, NULL) == 1 && lease->partitions[0].gpu == 1);
}

/* A drain, like a GPU that is full, must not hide it: the lease would wait in vain. */
TEST(request_for_more_gpus_than_max_gpus_does_not_wait_for_a_drain)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);

	tenant_of(&s, "lab")->max_gpus = (struct limit){ LIMIT_COUNT, 1 };
	CHECK(arbiter_drain(s.arbiter, "1", true) == 0);
	CHECK(!ask(&s, LAB, request_of("cus=10 | cus=10")));
	CHECK(refused(&s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA));
	CHECK(s.result.refusals[0].resource == RESOURCE_GPUS);
}

TEST_WITH(waiting_lease_is_touched_only_when_its_reason_changes, struct scene *s)
{
	struct lease *first = grant(s, VR, 10), *second = grant(s, ANY, 10), *lease, *like;

	CHECK(grant(s, ANY, 30));
	lease = wait_for(s, ANY, "any", 60);
	like = wait_for(s, ANY, "any", 60);
	forget_touched(s);
	release(s->arbiter, first->id);
	CHECK(grant_waiting(s, NULL) == 0 && touched_of(s, lease->id, NULL) == 0);
	CHECK(arbiter_drain(s->arbiter, "0", true) == 0);
	release(s->arbiter, second->id);
	CHECK(grant_waiting(s, NULL) == 0 && lease->touched == TOUCH_REASON);
	CHECK(says(s, lease, "drained"));
	CHECK(says(s, like, reason_of(s->arbiter, lease)) && like->touched == TOUCH_REASON);
}

/* ---- gangs ------------------------------------------------------------------------- */

static struct request gang_of(const char *first, const char *second, unsigned cus)
{
	return request_of("cus=%u gpu=%s | cus=%u gpu=%s", cus, first, cus, second);
}

TEST(a_gang_holds_nothing_while_it_waits)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *busy = grant_on(&s, ANY, "1", 30), *other;
	struct lease *gang = ask(&s, OTHER, gang_of("0", "1", 40));

	CHECK(gang->state == STATE_WAITING && gang->wait.candidates == 3);
	CHECK(says(&s, gang, "40 CUs on 0000:04:00.0"));
	other = grant_on(&s, ANY, "0", 60);
	CHECK(other && gang->wait.passed == 1);
	release(s.arbiter, busy->id);
	CHECK(grant_waiting(&s, NULL) == 0 && gpu_cus_free(&s.arbiter->gpus[1]) == 60);
	release(s.arbiter, other->id);
	CHECK(grant_waiting(&s, NULL) == 1 && gang->n_partitions == 2);
	CHECK(gang->partitions[0].gpu == 0 && gang->partitions[1].gpu == 1);
}

TEST(gangs_that_name_the_same_gpus_in_opposite_order_follow_each_other)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *busy[] = { grant_on(&s, ANY, "0", 30), grant_on(&s, ANY, "1", 30) };
	uint64_t ids[4], waiting[4];

	for (unsigned i = 0; i < 4; i++)
		waiting[i] =
			ask(&s, ANY, i % 2 ? gang_of("1", "0", 40) : gang_of("0", "1", 40))->id;
	CHECK(s.arbiter->n_waiting == 4);
	release(s.arbiter, busy[0]->id);
	CHECK(grant_waiting(&s, NULL) == 0);
	release(s.arbiter, busy[1]->id);
	for (unsigned i = 0; i < 4; i++) {
		CHECK(grant_waiting(&s, ids) == 1 && ids[0] == waiting[i]);
		release(s.arbiter, ids[0]);
	}
	CHECK(s.arbiter->n_leases == 0);
}

TEST(a_gang_of_any_gpus_takes_those_that_are_free)
{
	_cleanup_(scene_done) struct scene s = scene_of(3);
	struct lease *busy[] = { grant_on(&s, ANY, "0", 60), grant_on(&s, ANY, "1", 60),
				 grant_on(&s, ANY, "2", 60) };
	struct lease *gang = ask(&s, ANY, gang_of("any", "any", 20));

	CHECK(gang->wait.candidates == 7);
	CHECK(says(&s, gang, "20 CUs on 0000:03:00.0; other GPUs"));
	release(s.arbiter, busy[2]->id);
	CHECK(grant_waiting(&s, NULL) == 0);
	release(s.arbiter, busy[0]->id);
	CHECK(grant_waiting(&s, NULL) == 1 && lease_gpus(gang) == 5);
}

/* ---- what a lease waits for -------------------------------------------------------- */

/* GPUs of which each has two leases, of 30 CUs each: ret[2 * GPU] and the next. */
static struct scene full_gpus(size_t n, struct lease *ret[])
{
	struct scene s = scene_of(n);

	for (size_t i = 0; i < 2 * n; i++) {
		char gpu[] = { (char)('0' + i / 2), '\0' };

		ret[i] = grant_on(&s, LAB, gpu, 30);
		CHECK(ret[i]);
	}
	return s;
}

static struct lease *wait_for_all(struct scene *s, size_t n_gpus, unsigned cus)
{
	struct request request = request_for(cus);
	struct lease *lease;

	request.n_wants = n_gpus;
	for (size_t i = 1; i < n_gpus; i++)
		request.wants[i] = request.wants[0];
	lease = ask(s, ANY, request);
	CHECK(lease && lease->state == STATE_WAITING);
	return lease;
}

/* Whether the lease waits for this GPU, and its reason names it. */
static bool refused_by(struct scene *s, const struct lease *lease, const char *gpu)
{
	return strcmp(lease->refusal.gpu, gpu) == 0 && strstr(reason_of(s->arbiter, lease), gpu);
}

TEST_WITH(lease_that_may_oversubscribe_waits_for_the_end_of_a_realtime_lease, struct scene *s)
{
	struct lease *realtime = grant_on(s, VR, "0", 15), *lease;
	struct request request = request_for(15);

	CHECK(realtime && realtime->class == CLASS_REALTIME);
	s->arbiter->settings->oversubscribe_besteffort = true;
	request.wants[0].queues = s->arbiter->gpus[0].info.queue_slots + 1;
	lease = ask(s, ANY, request);
	CHECK(lease && lease->class == CLASS_BESTEFFORT && lease->state == STATE_WAITING);
	release(s->arbiter, realtime->id);
	CHECK(grant_waiting(s, NULL) == 1 && lease->state == STATE_GRANTED);
	check_promises(s->arbiter);
}

TEST(reason_names_a_gpu_that_still_refuses)
{
	struct lease *held[6], *gang;
	_cleanup_(scene_done) struct scene s = full_gpus(3, held);

	gang = wait_for_all(&s, 3, 60);
	ledger_wake(s.arbiter, 7);
	CHECK(grant_waiting(&s, NULL) == 0);
	CHECK(refused_by(&s, gang, "0000:03:00.0") && gang->refusal.others);
	release(s.arbiter, held[0]->id);
	CHECK(grant_waiting(&s, NULL) == 0);
	CHECK(gang->refusal.n_leases == 1 && gang->refusal.leases[0] == held[1]->id);
	CHECK(gang->refusal.free == 30);
	release(s.arbiter, held[1]->id);
	CHECK(grant_waiting(&s, NULL) == 0);
	CHECK(refused_by(&s, gang, "0000:04:00.0") && gang->refusal.others);
	CHECK(gang->refusal.n_leases == 2);
	check_promises(s.arbiter);
}

/* A gang that lacks CUs on the first GPU as before takes few steps when something is freed on another one. */
TEST(lease_that_lacks_cus_as_before_is_not_examined_in_full)
{
	struct lease *held[6], *gang;
	_cleanup_(scene_done) struct scene s = full_gpus(3, held);
	uint64_t full, quick;

	gang = wait_for_all(&s, 3, 60);
	ledger_wake(s.arbiter, 7);
	s.arbiter->round_steps = 1000;
	CHECK(grant_waiting(&s, NULL) == 0 && refused_by(&s, gang, "0000:03:00.0"));
	full = 1000 - s.arbiter->round_steps;
	for (size_t i = 2; i < 6; i++) {
		gang->wait.searched = gang->wait.examined;
		release(s.arbiter, held[i]->id);
		s.arbiter->round_steps = 1000;
		CHECK(grant_waiting(&s, NULL) == 0 && refused_by(&s, gang, "0000:03:00.0"));
		quick = 1000 - s.arbiter->round_steps;
		CHECK(quick > 0 && quick < full / 2);
		CHECK(gang->wait.searched < gang->wait.examined); /* leases may be revoked for it */
	}
	release(s.arbiter, held[0]->id);
	CHECK(grant_waiting(&s, NULL) == 0);
	release(s.arbiter, held[1]->id);
	CHECK(grant_waiting(&s, NULL) == 1 && gang->state == STATE_GRANTED);
	check_promises(s.arbiter);
}

/* A round takes as many steps for a hundred leases as for one. */
TEST_WITH(equal_waiting_leases_are_examined_once, struct scene *s)
{
	struct lease *held = grant_on(s, LAB, "0", 4);
	uint64_t one, all;

	CHECK(grant_on(s, LAB, "0", 30));
	wait_for(s, ANY, "any", 60);
	release(s->arbiter, held->id);
	s->arbiter->round_steps = 1000;
	CHECK(grant_waiting(s, NULL) == 0);
	one = 1000 - s->arbiter->round_steps;
	held = grant_on(s, VR, "0", 4);
	CHECK(held);
	for (unsigned i = 0; i < 99; i++)
		wait_for(s, ANY, "any", 60);
	release(s->arbiter, held->id);
	s->arbiter->round_steps = 1000;
	CHECK(grant_waiting(s, NULL) == 0);
	all = 1000 - s->arbiter->round_steps;
	CHECK(one > 0 && all < 2 * one + 10);
}
