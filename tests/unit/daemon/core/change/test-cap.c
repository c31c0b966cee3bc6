/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which calls may create a queue, from the queues that exist and the calls in flight. */

#include "core/change/arbiter.h"

#include "check.h"

#define A 0x1000U
#define B 0x1101U
#define OTHER 0x2000U

/* A lease with partitions on A and B. */
struct stage {
	struct gpu gpus[3];
	struct arbiter arbiter;
	struct partition partitions[2];
	struct lease lease;
	struct cap_use use;
};

static void start(struct stage *stage, unsigned on_a, unsigned on_b)
{
	memset(stage, 0, sizeof(*stage));
	stage->gpus[0].info.kfd_gpu_id = OTHER;
	stage->gpus[1].info.kfd_gpu_id = A;
	stage->gpus[2].info.kfd_gpu_id = B;
	stage->arbiter.gpus = stage->gpus;
	stage->arbiter.n_gpus = 3;
	stage->partitions[0] = (struct partition){ .gpu = 1, .granted.queues = on_a };
	stage->partitions[1] = (struct partition){ .gpu = 2, .granted.queues = on_b };
	stage->lease = (struct lease){ .state = STATE_GRANTED,
				       .partitions = stage->partitions,
				       .n_partitions = on_b > 0 ? 2 : 1 };
	stage->use.lease = &stage->lease;
}

static void add(struct stage *stage, uint32_t gpu, unsigned queues, unsigned sdma)
{
	const struct budget used = { .queues = queues, .sdma_queues = sdma };

	cap_add(&stage->arbiter, &stage->use, gpu, &used);
}

FIXTURE(struct stage, s, start(s, 4, 0), );

TEST_WITH(queues_up_to_the_grant_are_allowed, struct stage *s)
{
	for (unsigned i = 0; i < 4; i++) {
		CHECK(cap_decide(&s->use) == CAP_ALLOW);
		add(s, A, 1, 0);
	}
	CHECK(cap_decide(&s->use) == CAP_REFUSE);
}

TEST_WITH(calls_in_flight_count_as_queues_until_their_outcome_is_known, struct stage *s)
{
	add(s, A, 2, 0);
	s->use.in_flight = 1;
	CHECK(cap_decide(&s->use) == CAP_ALLOW);
	s->use.in_flight = 2;
	CHECK(cap_decide(&s->use) == CAP_LATER);
	s->use.in_flight = 1;
	add(s, A, 2, 0); /* the other one was created, and one that was not in flight */
	CHECK(cap_decide(&s->use) == CAP_REFUSE);
}

TEST(compute_queues_never_exceed_the_sum_of_several_gpus)
{
	struct stage s;

	start(&s, 2, 2);
	add(&s, A, 2, 0);
	CHECK(cap_decide(&s.use) == CAP_ALLOW); /* for B */
	s.use.in_flight = 1;
	CHECK(cap_decide(&s.use) == CAP_LATER); /* that one may be on A */
	s.use.in_flight = 0;
	add(&s, A, 1, 0);
	CHECK(cap_decide(&s.use) == CAP_REFUSE); /* it was */
}

TEST_WITH(a_queue_on_another_gpu_stops_all_others, struct stage *s)
{
	add(s, OTHER, 0, 5);
	CHECK(cap_decide(&s->use) == CAP_ALLOW); /* SDMA queues that were not asked for */
	add(s, OTHER, 1, 0);
	CHECK(cap_decide(&s->use) == CAP_REFUSE);
}

TEST_WITH(sdma_queues_exceed_their_grant_by_one_at_most, struct stage *s)
{
	s->partitions[0].granted.sdma_queues = 2;
	add(s, A, 1, 2);
	CHECK(cap_decide(&s->use) == CAP_ALLOW); /* it can be a compute queue */
	s->use.in_flight = 1;
	CHECK(cap_decide(&s->use) == CAP_LATER);
	s->use.in_flight = 0;
	add(s, A, 0, 1);
	CHECK(cap_decide(&s->use) == CAP_REFUSE);
}

TEST_WITH(a_lease_without_a_grant_has_no_queue, struct stage *s)
{
	s->lease.state = STATE_ENDING;
	CHECK(cap_decide(&s->use) == CAP_REFUSE);
	s->lease.state = STATE_REVOKING; /* it keeps its partitions until the end */
	CHECK(cap_decide(&s->use) == CAP_ALLOW);
	s->lease.state = STATE_WAITING;
	s->lease.n_partitions = 0;
	CHECK(cap_decide(&s->use) == CAP_REFUSE);
}
