/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ledger-play.h"

#include "check-cond.h"
#include "ledger-check.h"

unsigned play_below(struct play *play, unsigned n)
{
	return (unsigned)rand_r(&play->seed) % n;
}

bool play_chance(struct play *play, unsigned percent)
{
	return play_below(play, 100) < percent;
}

struct play play_new(unsigned seed)
{
	static const char *const names[] = { "0000:03:00.0", "0000:04:00.0", "0000:05:00.0/0",
					     "0000:05:00.0/1" };
	struct play play = { .seed = seed };
	struct gpu_info infos[PLAY_GPUS];
	struct tenant *vr;

	for (unsigned i = 0; i < PLAY_GPUS; i++) {
		infos[i] = play_gpu(names[i], i);
		infos[i].kfd_gpu_id = i + 1;
	}
	play.arbiter = arbiter_of(infos, PLAY_GPUS);
	add_tenant(play.arbiter, "lab", 1, CLASS_GUARANTEED);
	vr = add_tenant(play.arbiter, "vr", 2, CLASS_REALTIME);
	vr->priority = PRIORITY_HIGH;
	vr->alone = play_chance(&play, 30);
	play.arbiter->settings->oversubscribe_besteffort = play_chance(&play, 20);
	return play;
}

void play_drain(const struct play *play)
{
	struct lease *lease;
	unsigned touched;

	while ((lease = ledger_take_touched(play->arbiter, &touched)))
		if (touched & TOUCH_REMOVED)
			lease_free(lease);
}

static void play_request(struct play *play, struct request *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->n_wants = play_chance(play, 30) ? 1 + play_below(play, 3) : 1;
	ret->class = play_chance(play, 70) ? (int)play_below(play, 3) : -1;
	ret->wait_usec = play_chance(play, 40) ? 1000000 : 0;
	for (size_t i = 0; i < ret->n_wants; i++) {
		struct want *want = &ret->wants[i];

		want_init(want);
		if (play_chance(play, 30))
			snprintf(want->gpu, sizeof(want->gpu), "%u", play_below(play, PLAY_GPUS));
		want->cus = 1 + play_below(play, play_chance(play, 20) ? 150 : 30);
		want->any_shape = play_chance(play, 10);
		want->queues = play_chance(play, 50) ? 1 + play_below(play, 8) : 0;
		want->sdma_queues = play_chance(play, 20) ? play_below(play, 6) : 0;
		want->sdma_xgmi_queues = play_chance(play, 20) ? play_below(play, 6) : 0;
		want->vram = play_chance(play, 20) ? (uint64_t)play_below(play, 500) << 24 : 0;
		want->cooperative = play_chance(play, 5);
		want->isolation = play_chance(play, 40) ? (enum isolation)play_below(play, 4)
							: ISOLATION_DEFAULT;
	}
	if (play_chance(play, 20)) {
		ret->adaptable = true;
		ret->class = CLASS_BESTEFFORT;
		ret->wants[0].any_shape = false;
	} else if (play_chance(play, 20)) {
		ret->start_inactive = true;
		ret->class = CLASS_REALTIME;
	}
	if (play_chance(play, 30))
		snprintf(ret->token, sizeof(ret->token), "t%u", play_below(play, 9));
}

static struct lease *play_lease(struct play *play)
{
	size_t n = play->arbiter->n_leases;

	return n ? play->arbiter->leases[play_below(play, (unsigned)n)] : NULL;
}

static void play_reserve(struct play *play)
{
	struct caller caller = caller_of(play_below(play, 4));
	_cleanup_(result_done) struct result result = { 0 };
	struct request request;
	struct lease *lease;

	play_request(play, &request);
	if (ledger_find_token(play->arbiter, caller.uid, request.token))
		return;
	if (arbiter_plan(play->arbiter, &caller, &request, &lease, &result) == 0) {
		lease = arbiter_commit(play->arbiter, lease);
		arbiter_add_holder(play->arbiter, lease->id);
	}
}

static void play_resize(struct play *play, struct lease *lease)
{
	struct caller caller = caller_of(lease->owner);
	_cleanup_(result_done) struct result result = { 0 };
	struct request request;
	struct lease *next;

	play_request(play, &request);
	request.n_wants = 1;
	strcpy(request.wants[0].gpu, "any");
	request.wants[0].isolation = ISOLATION_DEFAULT;
	request.wait_usec = 0;
	if (arbiter_plan_resize(play->arbiter, &caller, lease->id, &request, &next, &result) == 0)
		arbiter_commit(play->arbiter, next);
}

static void play_lend(struct play *play, const struct lease *lease)
{
	struct caller caller = caller_of(lease->owner);
	_cleanup_(result_done) struct result result = { 0 };

	switch (play_below(play, 4)) {
	case 0: set_active(play->arbiter, &caller, lease->id, false, &result); break;
	case 1:
		arbiter_revoke(play->arbiter, lease->id, play->now, 5000000, "play", &result);
		break;
	default: set_active(play->arbiter, &caller, lease->id, true, &result);
	}
}

static void play_observe(struct play *play)
{
	struct observed rows[6];
	unsigned n = play_below(play, 7);

	memset(rows, 0, sizeof(rows));
	for (unsigned i = 0; i < n; i++) {
		rows[i].pid = (pid_t)(1000 + i); /* of the callers of caller_of() too */
		rows[i].start_time = 1;
		rows[i].uid = i;
		rows[i].kfd_gpu_id = 1 + play_below(play, PLAY_GPUS);
		rows[i].queues = play_below(play, 4);
	}
	CHECK(arbiter_observe(play->arbiter, rows, n) == 0);
}

/* What waits and fits now is granted. */
static void play_grant(struct play *play)
{
	struct lease *next;

	while (arbiter_plan_next(play->arbiter, &next) == 1) {
		arbiter_commit(play->arbiter, next);
		check_promises(play->arbiter);
	}
}

/* Who must gives way, who may grows, and whose time is over is told so. */
static void play_settle(struct play *play)
{
	struct lease *lease;

	play->now += 1000000;
	while (arbiter_next_enforce_step(play->arbiter, play->now, &lease))
		;
	arbiter_lend(play->arbiter, play->now);
	while (arbiter_plan_growth(play->arbiter, play->now, &lease) > 0) {
		arbiter_commit(play->arbiter, lease);
		arbiter_lend(play->arbiter, play->now);
		check_promises(play->arbiter);
	}
}

void play_step(struct play *play)
{
	struct lease *lease = play_lease(play);
	unsigned what = play_below(play, 100);

	if (what < 50 || !lease)
		play_reserve(play);
	else if (what < 62)
		play_resize(play, lease);
	else if (what < 72)
		arbiter_holder_gone(play->arbiter, lease->id);
	else if (what < 76)
		arbiter_end(play->arbiter, lease, RESULT_OK, "play");
	else if (what < 80)
		play_lend(play, lease);
	else if (what < 88)
		arbiter_acknowledge(play->arbiter, lease->id, lease->generation);
	else
		play_observe(play);
	if (play_chance(play, 80))
		play_grant(play);
	play_settle(play);
	play_drain(play);
}

void play_end(struct play *play)
{
	while (play->arbiter->n_leases > 0) {
		arbiter_end(play->arbiter, play->arbiter->leases[0], RESULT_OK, "end");
		CHECK(arbiter_observe(play->arbiter, NULL, 0) == 0);
		play_drain(play);
	}
	arbiter_lend(play->arbiter, play->now);
	check_promises(play->arbiter);
	for (size_t i = 0; i < play->arbiter->n_gpus; i++) {
		const struct gpu *gpu = &play->arbiter->gpus[i];

		CHECK(cuset_empty(&gpu->taken) && cuset_empty(&gpu->shared));
		CHECK(gpu_cus_free(gpu) == gpu->cus && gpu->n_partitions == 0);
		CHECK(gpu->charged.queues == 0 && gpu->charged.vram == 0);
	}
	arbiter_free(play->arbiter);
}
