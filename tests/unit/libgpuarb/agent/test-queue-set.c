/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The masks of the queues of one process, with a driver of the test. */

#include <errno.h>

#include "check.h"
#include "lack.h"
#include "libgpuarb/agent/queue-set.h"

#define QUEUES 16U
#define VII 1001U    /* a GPU of one XCC */
#define MI300X 1002U /* of two, here */
#define OTHER 1003U  /* outside of the lease */

struct fake {
	struct mask has[QUEUES]; /* words 0: never masked */
	unsigned calls;
	uint32_t refuse; /* the queue to refuse; QUEUES: none */
	int error;
	bool half; /* what it refuses has an effect, as where SDMA queues of the same turn fail */
	unsigned turns; /* calls of set_turn() */
	bool paused[QUEUES];
	uint32_t priority[QUEUES];
};

static int set_mask(void *userdata, int fd, uint32_t queue, const struct mask *mask)
{
	struct fake *driver = userdata;

	CHECK(fd == 42 && queue < QUEUES && mask->words > 0 && mask->words <= MASK_WORDS);
	driver->calls++;
	if (queue == driver->refuse)
		return driver->error;
	driver->has[queue] = *mask;
	return 0;
}

static int set_turn(void *userdata, int fd, uint32_t queue, bool paused, uint32_t priority)
{
	struct fake *driver = userdata;

	CHECK(fd == 42 && queue < QUEUES);
	if (queue == driver->refuse && !driver->half)
		return driver->error;
	driver->turns++;
	driver->paused[queue] = paused;
	driver->priority[queue] = priority;
	return queue == driver->refuse ? driver->error : 0;
}

static struct agent_grant grant_of(uint64_t generation, uint32_t first, uint32_t second)
{
	return (struct agent_grant){
		.version = AGENT_VERSION, .n_partitions = 2, .lease = 12, .generation = generation,
		.partitions = {
			{ .kfd_gpu_id = VII, .xccs = 1, .n_words = 2, .cu_mask = { first },
			  .n_environment = 1, .environment = { 0xffff } },
			{ .kfd_gpu_id = MI300X, .xccs = 2, .n_words = 1, .cu_mask = { second } },
		},
	};
}

/* A process with a grant and, on the first GPU, queue 0. */
struct stage {
	struct fake driver;
	struct driver calls;
	struct queue_set queue_set;
};

static void stage_set(struct stage *stage)
{
	struct agent_grant grant = grant_of(1, 0xffff, 0xff);

	*stage = (struct stage){ .driver.refuse = QUEUES };
	stage->calls = (struct driver){ &stage->driver, NULL, set_mask, set_turn, NULL };
	stage->queue_set.driver = &stage->calls;
	CHECK(queue_set_follow(&stage->queue_set, 42, &grant) == 0 && stage->driver.calls == 0);
	CHECK(queue_set_add(&stage->queue_set, 42, 0, VII) == 0);
}

static int follow(struct stage *stage, uint64_t generation, uint32_t first, uint32_t second)
{
	struct agent_grant grant = grant_of(generation, first, second);

	return queue_set_follow(&stage->queue_set, 42, &grant);
}

static int ask(struct stage *stage, uint32_t queue, uint32_t word)
{
	struct mask own = { .word = { word }, .words = 1 };

	return queue_set_mask(&stage->queue_set, 42, queue, &own);
}

static bool has(const struct stage *stage, uint32_t queue, uint32_t word)
{
	struct mask mask = { .word = { word }, .words = 1 };

	return stage->driver.has[queue].words > 0 && mask_same(&stage->driver.has[queue], &mask);
}

FIXTURE(struct stage, stage, stage_set(stage), queue_set_clear(&stage->queue_set));

TEST_WITH(a_queue_gets_the_granted_mask_at_once_and_after_each_change, struct stage *stage)
{
	CHECK(has(stage, 0, 0xffff) && stage->driver.has[0].words == 2);
	CHECK(queue_set_add(&stage->queue_set, 42, 1, MI300X) == 0 && has(stage, 1, 0xff));
	CHECK(queue_set_add(&stage->queue_set, 42, 2, OTHER) == 0 &&
	      stage->driver.has[2].words == 0);

	CHECK(follow(stage, 2, 0xff, 0xf) == 0 && has(stage, 0, 0xff) && has(stage, 1, 0xf));
	CHECK(follow(stage, 3, 0xffffff, 0xff) == 0 && has(stage, 0, 0xffffff));
	CHECK(queue_set_add(&stage->queue_set, 42, 3, VII) == 0 && has(stage, 3, 0xffffff));
	CHECK(stage->driver.has[2].words == 0);
}

TEST_WITH(an_unchanged_mask_is_not_set_again, struct stage *stage)
{
	unsigned calls;

	CHECK(queue_set_add(&stage->queue_set, 42, 1, MI300X) == 0);
	calls = stage->driver.calls;
	CHECK(follow(stage, 2, 0xffff, 0xf) == 0 && stage->driver.calls == calls + 1);
	CHECK(follow(stage, 3, 0xffff, 0xf) == 0 && stage->driver.calls == calls + 1);
	CHECK(ask(stage, 0, 0xffff) == 0 && stage->driver.calls == calls + 1);
}

TEST_WITH(an_own_mask_is_narrowed_and_never_widened, struct stage *stage)
{
	CHECK(ask(stage, 0, 0xff00ff) == 0 && has(stage, 0, 0xff));
	CHECK(follow(stage, 2, 0xf, 0xff) == 0 && has(stage, 0, 0xf));
	CHECK(follow(stage, 3, 0xffffffff, 0xff) == 0 && has(stage, 0, 0xff00ff));
	CHECK(ask(stage, 0, 0x1) == 0 && has(stage, 0, 0x1));
	CHECK(ask(stage, 7, 0x1) == -ENOENT);
}

TEST_WITH(the_mask_of_the_environment_is_no_own_mask, struct stage *stage)
{
	CHECK(ask(stage, 0, 0xf) == 0 && has(stage, 0, 0xf));
	CHECK(ask(stage, 0, 0xffff) == 0 && has(stage, 0, 0xffff));
	CHECK(follow(stage, 2, 0xffffff, 0xff) == 0 && has(stage, 0, 0xffffff));

	/* The environment has no mask for the second GPU. */
	CHECK(queue_set_add(&stage->queue_set, 42, 1, MI300X) == 0 && ask(stage, 1, 0xff) == 0);
	CHECK(follow(stage, 3, 0xffffff, 0xffff) == 0 && has(stage, 1, 0xff));
}

TEST_WITH(a_disjoint_own_mask_is_replaced_until_it_overlaps_again, struct stage *stage)
{
	CHECK(ask(stage, 0, 0xff0000) == 0 && has(stage, 0, 0xffff));
	CHECK(follow(stage, 2, 0xf0ffff, 0xff) == 0 && has(stage, 0, 0xf00000));

	/* Bits 0, 2, … belong to the first XCC: work would hang on an XCC without a bit. */
	CHECK(queue_set_add(&stage->queue_set, 42, 1, MI300X) == 0);
	CHECK(ask(stage, 1, 0x5) == 0 && has(stage, 1, 0xff));
	CHECK(ask(stage, 1, 0x7) == 0 && has(stage, 1, 0x7));
}

TEST_WITH(a_queue_whose_mask_is_refused_is_not_added, struct stage *stage)
{
	stage->driver.refuse = 1;
	stage->driver.error = -EBUSY;
	CHECK(queue_set_add(&stage->queue_set, 42, 1, VII) == -EBUSY && stage->queue_set.n == 1);
	CHECK(follow(stage, 2, 0xff, 0xf) == 0);
}

TEST_WITH(a_refused_own_mask_is_forgotten, struct stage *stage)
{
	stage->driver.refuse = 0;
	stage->driver.error = -EINVAL;
	CHECK(ask(stage, 0, 0xf) == -EINVAL && has(stage, 0, 0xffff));
	stage->driver.refuse = QUEUES;
	CHECK(follow(stage, 2, 0xff, 0xf) == 0 && has(stage, 0, 0xff));
}

TEST_WITH(a_refused_queue_does_not_stop_the_others_and_is_set_again, struct stage *stage)
{
	struct agent_grant grant;

	for (uint32_t id = 1; id < 4; id++)
		CHECK(queue_set_add(&stage->queue_set, 42, id, VII) == 0);
	stage->driver.refuse = 1;
	stage->driver.error = -EACCES;
	CHECK(follow(stage, 2, 0xff, 0xf) == -EACCES);
	CHECK(has(stage, 0, 0xff) && has(stage, 2, 0xff) && has(stage, 3, 0xff));
	CHECK(has(stage, 1, 0xffff));

	queue_set_remove(&stage->queue_set, 1);
	grant = stage->queue_set.grant;
	CHECK(queue_set_follow(&stage->queue_set, 42, &grant) == 0 && stage->queue_set.n == 3);
}

TEST_WITH(a_queue_that_the_driver_does_not_know_is_removed, struct stage *stage)
{
	CHECK(queue_set_add(&stage->queue_set, 42, 1, VII) == 0 && ask(stage, 1, 0xf) == 0);
	CHECK(queue_set_add(&stage->queue_set, 42, 2, VII) == 0);
	stage->driver.refuse = 1;
	stage->driver.error = -EFAULT;
	CHECK(follow(stage, 2, 0x3, 0xf) == 0 && stage->queue_set.n == 2);
	CHECK(has(stage, 0, 0x3) && has(stage, 2, 0x3));

	/* KFD reuses the id: the new queue has no mask of the old one. */
	stage->driver.refuse = QUEUES;
	CHECK(ask(stage, 2, 0x1) == 0 && queue_set_add(&stage->queue_set, 42, 2, VII) == 0);
	CHECK(stage->queue_set.n == 2 && has(stage, 2, 0x3));
}

TEST_WITH(queues_are_paused_and_get_the_priority_of_the_grant, struct stage *stage)
{
	struct agent_grant grant = grant_of(2, 0xffff, 0xff);

	CHECK(queue_set_add(&stage->queue_set, 42, 1, MI300X) == 0);
	grant.partitions[0].paused = 1;
	grant.partitions[0].priority = grant.partitions[1].priority = 9;
	CHECK(queue_set_follow(&stage->queue_set, 42, &grant) == 0);
	CHECK(stage->driver.paused[0] && !stage->driver.paused[1]);
	CHECK(stage->driver.priority[0] == 9 && stage->driver.priority[1] == 9);
	CHECK(queue_set_add(&stage->queue_set, 42, 2, VII) == 0); /* it starts paused */
	CHECK(stage->driver.paused[2] && has(stage, 2, 0xffff));
	queue_set_remove(&stage->queue_set, 2);

	/* One that cannot be resumed: the others are. */
	CHECK(queue_set_add(&stage->queue_set, 42, 3, VII) == 0 && stage->driver.paused[3]);
	grant.generation = 3;
	grant.partitions[0].paused = 0;
	stage->driver.refuse = 0;
	stage->driver.error = -EBUSY;
	CHECK(queue_set_follow(&stage->queue_set, 42, &grant) == -EBUSY);
	CHECK(stage->driver.paused[0] && !stage->driver.paused[3]);
	stage->driver.refuse = QUEUES;
	stage->driver.turns = 0;
	CHECK(queue_set_follow(&stage->queue_set, 42, &grant) == 0);
	CHECK(!stage->driver.paused[0] && stage->driver.turns == 1);
}

TEST_WITH(queue_that_was_resumed_in_part_is_paused_again, struct stage *stage)
{
	struct agent_grant grant = grant_of(2, 0xffff, 0xff);

	grant.partitions[0].paused = 1;
	CHECK(queue_set_follow(&stage->queue_set, 42, &grant) == 0 && stage->driver.paused[0]);
	grant.generation = 3;
	grant.partitions[0].paused = 0;
	stage->driver.refuse = 0;
	stage->driver.error = -EBUSY;
	stage->driver.half = true;
	CHECK(queue_set_follow(&stage->queue_set, 42, &grant) == -EBUSY &&
	      !stage->driver.paused[0]);
	stage->driver.refuse = QUEUES;
	grant.generation = 4;
	grant.partitions[0].paused = 1;
	CHECK(queue_set_follow(&stage->queue_set, 42, &grant) == 0 && stage->driver.paused[0]);
}

TEST(an_invalid_grant_is_rejected)
{
	struct agent_grant grant = grant_of(1, 0xff, 0xff);
	size_t size = agent_grant_size(&grant);

	CHECK(agent_grant_valid(&grant, size));
	CHECK(!agent_grant_valid(&grant, size - 1) && !agent_grant_valid(&grant, size + 1));
	CHECK(!agent_grant_valid(&grant, 3));
	grant.version++;
	CHECK(!agent_grant_valid(&grant, size));
	grant = grant_of(0, 0xff, 0xff);
	CHECK(!agent_grant_valid(&grant, size));
	grant = grant_of(1, 0xff, 0xff);
	grant.n_partitions = AGENT_PARTITIONS + 1;
	CHECK(!agent_grant_valid(&grant, agent_grant_size(&grant)));
	grant = grant_of(1, 0xff, 0xff);
	grant.partitions[1].n_words = MASK_WORDS + 1;
	CHECK(!agent_grant_valid(&grant, size));
	grant.partitions[1].n_words = 0;
	CHECK(!agent_grant_valid(&grant, size));
	grant = grant_of(1, 0xff, 0xff);
	grant.partitions[0].n_environment = MASK_WORDS + 1;
	CHECK(!agent_grant_valid(&grant, size));
}

static int add_queue(long allocations)
{
	struct stage stage;
	int r;

	stage_set(&stage);
	lack_left = allocations;
	r = queue_set_add(&stage.queue_set, 42, 1, MI300X);
	CHECK(r == 0 ? has(&stage, 1, 0xff) : stage.driver.has[1].words == 0);
	CHECK(has(&stage, 0, 0xffff));
	queue_set_clear(&stage.queue_set);
	return r;
}

TEST(a_queue_that_cannot_be_remembered_gets_no_mask)
{
	CHECK(lack_each("queue_set_add", add_queue) == 1);
}
