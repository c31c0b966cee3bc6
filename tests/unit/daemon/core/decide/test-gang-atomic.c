/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A gang over several GPUs, each of which refuses in turn: afterwards every GPU is as it was,
 * and the refusal names those that refused. */

#include "check.h"
#include "wait-rig.h"

#define GPUS 4U

enum failure { FULL, DRAINED, OVERSUBSCRIBED, CLOSED, QUOTA, ABSENT, FAILURES };

static void show(struct scene *s, unsigned strangers_on, unsigned queues)
{
	struct observed row = {
		.pid = 9, .start_time = 1, .kfd_gpu_id = strangers_on + 1, .queues = queues
	};

	CHECK(arbiter_observe(s->arbiter, &row, queues > 0) == 0);
}

static void close_gpu(struct scene *s, const char *gpu)
{
	CHECK(grant_on(s, VR, gpu, 15) && wait_for(s, LAB, gpu, 60));
	for (unsigned i = 0; i < LEASE_PASSES_MAX; i++) {
		struct lease *lease = grant_on(s, ANY, gpu, 4);

		release(s->arbiter, lease->id);
		CHECK(grant_waiting(s, NULL) == 0);
	}
}

static void remove_gpu(struct scene *s, unsigned gpu)
{
	struct gpu_info left[GPUS];
	size_t n = 0;

	for (unsigned i = 0; i < GPUS; i++)
		if (i != gpu)
			left[n++] = s->arbiter->gpus[i].info;
	CHECK(arbiter_set_gpus(s->arbiter, left, n) == 0);
}

static void inject(struct scene *s, enum failure failure, unsigned gpu)
{
	char name[12];

	snprintf(name, sizeof(name), "%u", gpu);
	switch (failure) {
	case FULL: CHECK(grant_on(s, ANY, name, 60)); break;
	case DRAINED: CHECK(arbiter_drain(s->arbiter, name, true) == 0); break;
	case OVERSUBSCRIBED: show(s, gpu, 30); break;
	case CLOSED: close_gpu(s, name); break;
	case QUOTA: CHECK(grant_on(s, LAB, name, 30)); break;
	case ABSENT: remove_gpu(s, gpu); break;
	case FAILURES: abort();
	}
	forget_touched(s);
}

static struct scene scene_of_gpus(void)
{
	struct scene s = scene_of(GPUS);

	s.arbiter->settings->tenants[1].max_cus = (struct limit){ LIMIT_COUNT, 60 };
	for (unsigned i = 0; i < GPUS; i++)
		s.arbiter->gpus[i].info.kfd_gpu_id = i + 1;
	return s;
}

static struct request gang_of(unsigned n)
{
	struct request request = request_for(40);

	request.n_wants = n;
	for (unsigned i = 0; i < n; i++) {
		request.wants[i] = request.wants[0];
		snprintf(request.wants[i].gpu, sizeof(request.wants[i].gpu), "%u", i);
	}
	return request;
}

static bool names(const struct result *result, const char *gpu, bool retry)
{
	for (size_t i = 0; i < result->n_refusals; i++)
		if (strcmp(result->refusals[i].gpu, gpu) == 0)
			return result->refusals[i].retry == retry &&
			       !refusal_lacks(&result->refusals[i]);
	return false;
}

/* Refused, and nothing of it is left. */
static void refuse_all(struct scene *s, const struct request *gang)
{
	struct gpu before[GPUS];
	uint64_t next_id = s->arbiter->next_id;
	size_t n = s->arbiter->n_leases;

	memcpy(before, s->arbiter->gpus, sizeof(before));
	CHECK(!reserve(s->arbiter, LAB, gang, &s->result));
	CHECK(memcmp(before, s->arbiter->gpus, sizeof(before)) == 0);
	CHECK(s->arbiter->next_id == next_id && s->arbiter->n_leases == n && !s->arbiter->touched);
	check_promises(s->arbiter);
}

TEST(one_gpu_that_refuses_leaves_all_as_they_were)
{
	static const enum result_kind kinds[FAILURES] = {
		[FULL] = RESULT_NO_CAPACITY,           [DRAINED] = RESULT_NO_CAPACITY,
		[OVERSUBSCRIBED] = RESULT_NO_CAPACITY, [CLOSED] = RESULT_NO_CAPACITY,
		[QUOTA] = RESULT_QUOTA_EXCEEDED,       [ABSENT] = RESULT_NO_SUCH_GPU,
	};

	for (unsigned failure = 0; failure < FAILURES; failure++) {
		for (unsigned gpu = 0; gpu < GPUS; gpu++) {
			_cleanup_(scene_done) struct scene s = scene_of_gpus();
			struct request gang = gang_of(GPUS);
			const char *name = s.arbiter->gpus[gpu].info.name;

			inject(&s, (enum failure)failure, gpu);
			refuse_all(&s, &gang);
			CHECK(s.result.kind == kinds[failure] && strstr(s.result.sentence, name));
			if (failure == ABSENT)
				CHECK(s.result.n_refusals == 0);
			else
				CHECK(s.result.n_refusals == 1 &&
				      names(&s.result, name, failure != QUOTA));
		}
	}
}

TEST(every_gpu_that_refuses_is_named)
{
	for (unsigned refuse = 1; refuse < 1U << GPUS; refuse++) {
		_cleanup_(scene_done) struct scene s = scene_of_gpus();
		struct request gang = gang_of(GPUS);

		for (unsigned i = 0; i < GPUS; i++)
			if (refuse >> i & 1)
				inject(&s, i % 2 ? DRAINED : FULL, i);
		refuse_all(&s, &gang);
		CHECK(s.result.kind == RESULT_NO_CAPACITY);
		CHECK(s.result.n_refusals == (unsigned)__builtin_popcount(refuse));
		for (unsigned i = 0; i < GPUS; i++)
			CHECK(names(&s.result, s.arbiter->gpus[i].info.name, true) ==
			      (refuse >> i & 1));
	}
}

TEST(refusal_of_a_gpu_is_the_deciding_one)
{
	_cleanup_(scene_done) struct scene s = scene_of_gpus();
	struct request gang = gang_of(2);

	/* One of the wants could be had on no GPU of its kind but the second, which is full. */
	inject(&s, FULL, 0);
	inject(&s, FULL, 1);
	inject(&s, FULL, 2);
	inject(&s, FULL, 3);
	strcpy(gang.wants[0].gpu, "any");
	strcpy(gang.wants[1].gpu, "any");
	s.arbiter->gpus[0].info.vram_bytes = s.arbiter->gpus[2].info.vram_bytes = 1;
	s.arbiter->gpus[3].info.vram_bytes = 1;
	gang.wants[0].vram = UINT64_C(1) << 30;
	refuse_all(&s, &gang);
	CHECK(s.result.kind == RESULT_NO_CAPACITY && s.result.n_refusals == GPUS);
	for (unsigned i = 0; i < GPUS; i++)
		CHECK(names(&s.result, s.arbiter->gpus[i].info.name, true));

	gang.wants[1].vram = gang.wants[0].vram; /* two of them, and one such GPU */
	refuse_all(&s, &gang);
	CHECK(s.result.kind == RESULT_NEVER_FITS && s.result.n_refusals == GPUS);
	for (unsigned i = 0; i < GPUS; i++)
		CHECK(names(&s.result, s.arbiter->gpus[i].info.name, i == 1));
}

TEST(a_gang_that_waits_is_granted_when_the_last_gpu_gives_in)
{
	for (unsigned failure = 0; failure < OVERSUBSCRIBED + 1; failure++) {
		_cleanup_(scene_done) struct scene s = scene_of_gpus();
		struct request gang = gang_of(GPUS);
		struct gpu before[GPUS];
		struct lease *lease;

		for (unsigned i = 0; i < GPUS; i++)
			inject(&s, i < 3 ? FULL : (enum failure)failure, i);
		lease = ask(&s, LAB, gang);
		CHECK(lease->state == STATE_WAITING && lease->wait.candidates == 15);
		for (unsigned i = 0; i < 3; i++) {
			arbiter_holder_gone(s.arbiter, s.arbiter->leases[0]->id);
			show(&s, 3, failure == OVERSUBSCRIBED ? 30 : 0);
			forget_touched(&s);
			memcpy(before, s.arbiter->gpus, sizeof(before));
			CHECK(grant_waiting(&s, NULL) == 0);
			CHECK(memcmp(before, s.arbiter->gpus, sizeof(before)) == 0);
		}
		if (failure == FULL)
			arbiter_holder_gone(s.arbiter, s.arbiter->leases[0]->id);
		CHECK(arbiter_drain(s.arbiter, "3", false) == 0);
		show(&s, 3, 0);
		CHECK(grant_waiting(&s, NULL) == 1 && lease->n_partitions == GPUS);
	}
}
