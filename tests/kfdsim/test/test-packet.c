/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/test/packet-rig.h"

#include <errno.h>

#include "check.h"

/* What does not depend on the kind of packet: turns, time, and queues of other kinds. */

#define SLOTS 1024U

static void start(struct rig *rig)
{
	rig_start(rig, SIM_COMPUTE, SLOTS * 64);
}

static uint64_t taken(struct rig *rig)
{
	return rig_read64(rig, RIG_READ);
}

FIXTURE(struct rig, rig, start(rig), rig_stop(rig));

TEST_WITH(one_turn_runs_256_packets, struct rig *rig)
{
	for (unsigned i = 0; i < 300; i++)
		rig_packet(rig, 3, 0);
	rig_ring(rig, 299);
	CHECK(rig_work(rig) && taken(rig) == 256 && rig->next_ns == rig->now_ns);
	CHECK(rig_work(rig) && taken(rig) == 300 && rig->next_ns > rig->now_ns);
	CHECK(!rig_work(rig));
}

TEST_WITH(idle_queue_is_polled_less_and_less_often, struct rig *rig)
{
	rig_packet(rig, 3, 0);
	rig_ring(rig, 0);
	CHECK(rig_work(rig) && rig->next_ns == rig->now_ns + 20000);
	rig->now_ns += 400000;
	CHECK(!rig_work(rig) && rig->next_ns == rig->now_ns + 50000);
	rig->now_ns += 1000000000;
	CHECK(!rig_work(rig) && rig->next_ns == rig->now_ns + 1000000);
}

static void start_timed(struct rig *rig)
{
	start(rig);
	rig->gpu->timing = (struct timing *)(void *)rig;
	memcpy(rig_dispatch(rig, 1000, 256, rig_signal(rig, 0, 1, false)) + 16, &(uint32_t){ 3 },
	       4);
	rig_dispatch(rig, 1, 1, 0);
	rig_ring(rig, 1);
}

TEST(dispatch_times_are_those_of_the_model)
{
	static struct rig rig;

	start_timed(&rig);
	rig.sim.block_ns[256] = 5000;
	rig.model_now = rig.now_ns - 700; /* it is behind */
	CHECK(rig_work(&rig) && rig.kernel.block_ns == 5000);
	sim_queue_ended(&rig.queue, rig.now_ns - 200);
	CHECK(rig_read64(&rig, RIG_SIGNALS + 32) == rig.now_ns - 700);
	CHECK(rig_read64(&rig, RIG_SIGNALS + 40) == rig.now_ns - 200);
	CHECK(rig.queue.model_ns.last == 500 && rig.queue.model_ns.most == 500);

	rig.model_now = rig.now_ns;
	CHECK(rig_work(&rig) && rig.timed == 2 && rig.kernel.block_ns == 0);
	sim_queue_ended(&rig.queue, rig.now_ns + 300);
	CHECK(rig.queue.model_ns.last == 300 && rig.queue.model_ns.most == 500);
	CHECK(rig.queue.model_ns.all == 800);
	rig_stop(&rig);
}

TEST(a_dispatch_that_takes_time_retires_when_it_has_ended)
{
	static struct rig rig;

	start_timed(&rig);
	CHECK(rig_work(&rig) && rig.timed == 1 && rig.timed_key == 77);
	CHECK(rig.kernel.blocks == 12 && rig.kernel.threads == 256);
	CHECK(rig.queue.dispatched && taken(&rig) == 0 && rig.next_ns == UINT64_MAX);
	CHECK(!rig_work(&rig) && rig.timed == 1);

	sim_queue_ended(&rig.queue, rig.now_ns + 300);
	CHECK(taken(&rig) == 1 && rig_value(&rig, 0) == 0 && rig.queue.dispatches == 1);
	CHECK(rig_read64(&rig, RIG_SIGNALS + 40) == rig.now_ns + 300);
	sim_queue_ended(&rig.queue, rig.now_ns + 301);
	CHECK(taken(&rig) == 1);
	rig.now_ns += 300;
	CHECK(rig_work(&rig) && rig.timed == 2 && rig.kernel.blocks == 1);
	rig_stop(&rig);
}

TEST(dispatch_is_repeated_when_the_model_is_full)
{
	static struct rig rig;

	start_timed(&rig);
	rig.timing_answer = -ENOENT;
	CHECK(!rig_work(&rig) && rig.timed == 1 && !rig.queue.dispatched);
	CHECK(rig.next_ns > rig.now_ns && rig.next_ns != UINT64_MAX);
	rig.timing_answer = -EBUSY;
	CHECK(!rig_work(&rig) && rig.timed == 2 && !rig.queue.stopped);
	rig.timing_answer = -ENOMEM;
	CHECK(rig_work(&rig) && rig.timed == 3 && rig.queue.stopped);
	CHECK(strstr(rig.queue.note, "errno 12"));
	rig_stop(&rig);
}

TEST(dispatch_of_an_ended_process_does_not_retire)
{
	static struct rig rig;

	start_timed(&rig);
	CHECK(rig_work(&rig) && rig.queue.dispatched);
	rig.process.dead = true;
	sim_queue_ended(&rig.queue, rig.now_ns);
	CHECK(taken(&rig) == 0);
	rig_stop(&rig);
}

TEST(a_ring_that_went_away_under_a_dispatch_stops_the_queue)
{
	static struct rig rig;

	start_timed(&rig);
	CHECK(rig_work(&rig) && rig.queue.dispatched);
	rig.queue.ring_base = 0;
	sim_queue_ended(&rig.queue, rig.now_ns);
	CHECK(rig.queue.stopped && taken(&rig) == 0);
	rig_stop(&rig);
}

TEST(work_group_count_saturates)
{
	static struct rig rig;
	uint32_t most[3] = { UINT32_MAX, UINT32_MAX, UINT32_MAX };

	start_timed(&rig);
	memcpy((uint8_t *)rig_at(&rig, RIG_RING) + 12, most, sizeof(most));
	CHECK(rig_work(&rig) && rig.kernel.blocks == UINT32_MAX);
	rig_stop(&rig);
}
