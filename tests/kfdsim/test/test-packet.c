/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/test/packet-rig.h"

#include <errno.h>

#include "check.h"

/* What does not depend on the kind of packet: turns, time, and queues of other kinds. */

#define SLOTS 1024U
#define SLOW 500000U

static struct rig rig;

static void start(void)
{
	rig_start(&rig, SIM_COMPUTE, SLOTS * 64);
}

static uint64_t taken(void)
{
	return rig_read64(&rig, RIG_READ);
}

TEST(one_turn_runs_256_packets)
{
	start();
	for (unsigned i = 0; i < 300; i++)
		rig_packet(&rig, 3, 0);
	rig_ring(&rig, 299);
	CHECK(rig_work(&rig) && taken() == 256 && rig.next_ns == rig.now_ns);
	CHECK(rig_work(&rig) && taken() == 300 && rig.next_ns > rig.now_ns);
	CHECK(!rig_work(&rig));
	rig_stop(&rig);
}

TEST(idle_queue_is_polled_less_and_less_often)
{
	start();
	rig_packet(&rig, 3, 0);
	rig_ring(&rig, 0);
	CHECK(rig_work(&rig) && rig.next_ns == rig.now_ns + 20000);
	rig.now_ns += 400000;
	CHECK(!rig_work(&rig) && rig.next_ns == rig.now_ns + 50000);
	rig.now_ns += 1000000000;
	CHECK(!rig_work(&rig) && rig.next_ns == rig.now_ns + 1000000);
	rig_stop(&rig);
}

TEST(slow_fault_delays_each_packet)
{
	uint64_t signal;

	start();
	rig.gpu->slow_ns = SLOW;
	signal = rig_signal(&rig, 0, 2, false);
	rig_dispatch(&rig, 1, 1, signal);
	rig_packet(&rig, 3, signal);
	rig_ring(&rig, 1);
	CHECK(!rig_work(&rig) && taken() == 0 && rig.next_ns == rig.now_ns + SLOW);
	rig.now_ns += SLOW - 1;
	CHECK(!rig_work(&rig) && taken() == 0);
	rig.now_ns += 1;
	CHECK(rig_work(&rig) && taken() == 1 && rig_value(&rig, 0) == 1);
	CHECK(rig_read64(&rig, signal + 40) - rig_read64(&rig, signal + 32) == SLOW);
	rig.now_ns += SLOW;
	CHECK(rig_work(&rig) && taken() == 2 && rig_value(&rig, 0) == 0);
	rig_stop(&rig);
}

static void start_timed(void)
{
	start();
	rig.gpu->timing = (struct timing *)(void *)&rig;
	memcpy(rig_dispatch(&rig, 1000, 256, rig_signal(&rig, 0, 1, false)) + 16, &(uint32_t){ 3 },
	       4);
	rig_dispatch(&rig, 1, 1, 0);
	rig_ring(&rig, 1);
}

TEST(dispatch_times_are_those_of_the_model)
{
	start_timed();
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
	start_timed();
	CHECK(rig_work(&rig) && rig.timed == 1 && rig.timed_key == 77);
	CHECK(rig.kernel.blocks == 12 && rig.kernel.threads == 256);
	CHECK(rig.queue.dispatched && taken() == 0 && rig.next_ns == UINT64_MAX);
	CHECK(!rig_work(&rig) && rig.timed == 1);

	sim_queue_ended(&rig.queue, rig.now_ns + 300);
	CHECK(taken() == 1 && rig_value(&rig, 0) == 0 && rig.queue.dispatches == 1);
	CHECK(rig_read64(&rig, RIG_SIGNALS + 40) == rig.now_ns + 300);
	sim_queue_ended(&rig.queue, rig.now_ns + 301);
	CHECK(taken() == 1);
	rig.now_ns += 300;
	CHECK(rig_work(&rig) && rig.timed == 2 && rig.kernel.blocks == 1);
	rig_stop(&rig);
}

TEST(dispatch_is_repeated_when_the_model_is_full)
{
	start_timed();
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
	start_timed();
	CHECK(rig_work(&rig) && rig.queue.dispatched);
	rig.process.dead = true;
	sim_queue_ended(&rig.queue, rig.now_ns);
	CHECK(taken() == 0);
	rig_stop(&rig);
}

TEST(a_ring_that_went_away_under_a_dispatch_stops_the_queue)
{
	start_timed();
	CHECK(rig_work(&rig) && rig.queue.dispatched);
	rig.queue.ring_base = 0;
	sim_queue_ended(&rig.queue, rig.now_ns);
	CHECK(rig.queue.stopped && taken() == 0);
	rig_stop(&rig);
}

TEST(work_group_count_saturates)
{
	uint32_t most[3] = { UINT32_MAX, UINT32_MAX, UINT32_MAX };

	start_timed();
	memcpy((uint8_t *)rig_at(&rig, RIG_RING) + 12, most, sizeof(most));
	CHECK(rig_work(&rig) && rig.kernel.blocks == UINT32_MAX);
	rig_stop(&rig);
}

static void start_pm4(void)
{
	start();
	rig.queue.aql = false;
	rig.queue.ring_size = 4096;
	rig.queue.active_ns = rig.now_ns;
}

TEST(pm4_packet_is_skipped_and_recorded_in_the_queue)
{
	start_pm4();
	CHECK(!rig_work(&rig));
	rig_ring(&rig, 1000);
	CHECK(rig_work(&rig) && (uint32_t)taken() == 1000 && rig.queue.packets == 1);
	CHECK(!rig.queue.stopped && strstr(rig.queue.note, "skipped"));
	CHECK(!rig_work(&rig));
	rig.gpu->slow_ns = SLOW;
	rig_ring(&rig, 1030);
	CHECK(!rig_work(&rig) && rig.next_ns == rig.now_ns + SLOW);
	rig.now_ns += SLOW;
	CHECK(rig_work(&rig) && (uint32_t)taken() == 1030 - 1024);
	rig_stop(&rig);
}

TEST(invalid_pm4_pointers_stop_the_queue)
{
	start_pm4();
	rig_ring(&rig, 1025);
	CHECK(rig_work(&rig) && rig.queue.stopped && taken() == 0);
	rig_stop(&rig);
	start_pm4();
	rig_ring(&rig, 8);
	CHECK(rig_work(&rig));
	rig_ring(&rig, 7);
	CHECK(rig_work(&rig) && rig.queue.stopped);
	rig_stop(&rig);
	start_pm4();
	rig.queue.read_pointer = 0;
	rig_ring(&rig, 8);
	CHECK(rig_work(&rig) && rig.queue.stopped);
	rig_stop(&rig);
}

TEST(queues_of_the_kernel_are_not_for_clients)
{
	start();
	rig.queue.type = SIM_HIQ;
	CHECK(rig_work(&rig) && rig.queue.stopped);
	rig_stop(&rig);
}
