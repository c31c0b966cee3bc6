/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/test/packet-rig.h"

#include <errno.h>

#include "check.h"

#define SLOTS 16U

static void start(struct rig *rig)
{
	rig_start(rig, SIM_COMPUTE, SLOTS * 64);
}

static void put64(uint8_t *packet, unsigned at, uint64_t value)
{
	memcpy(packet + at, &value, sizeof(value));
}

static bool noted(struct rig *rig, const char *text)
{
	return rig->queue.stopped && strstr(rig->queue.note, text) != NULL;
}

/* Retired or not, by what the client can see. */
static uint64_t taken(struct rig *rig)
{
	return rig_read64(rig, RIG_READ);
}

FIXTURE(struct rig, rig, start(rig), rig_stop(rig));

TEST_WITH(nothing_happens_before_the_doorbell_is_rung, struct rig *rig)
{
	rig_dispatch(rig, 64, 64, 0);
	CHECK(!rig_work(rig) && taken(rig) == 0);
	rig_ring(rig, 0);
	CHECK(rig_work(rig) && taken(rig) == 1);
}

TEST_WITH(a_dispatch_retires_and_tells_its_signal, struct rig *rig)
{
	uint8_t *packet;
	uint64_t signal;

	signal = rig_signal(rig, 0, 1, true);
	packet = rig_dispatch(rig, 1000, 256, signal);
	put64(packet, 32, 0xabcdef00);
	rig_ring(rig, 0);
	CHECK(rig_work(rig));

	CHECK(taken(rig) == 1 && rig->queue.packets == 1 && rig->queue.dispatches == 1);
	CHECK(packet[0] == 1);
	CHECK(rig_value(rig, 0) == 0);
	CHECK(rig_read64(rig, signal + 32) == rig->now_ns);
	CHECK(rig_read64(rig, signal + 40) == rig->now_ns);
	CHECK(rig_read64(rig, RIG_MAILBOXES) == 1);
	CHECK(rig->n_raised == 1 && rig->raised[0] == 1);
	CHECK(rig->queue.last.grid[0] == 1000 && rig->queue.last.group[0] == 256);
	CHECK(rig->queue.last.kernel_object == 0xabcdef00);
}

TEST_WITH(a_barrier_waits_for_all_five_signals, struct rig *rig)
{
	uint8_t *packet;

	packet = rig_packet(rig, 3, rig_signal(rig, 7, 1, false));
	for (unsigned i = 0; i < 5; i++)
		put64(packet, 8 + 8 * i, rig_signal(rig, i, 1, false));
	rig_ring(rig, 0);
	for (unsigned i = 0; i < 5; i++) {
		CHECK(!rig_work(rig) && taken(rig) == 0);
		rig_signal(rig, i, 0, false);
	}
	CHECK(rig_work(rig) && taken(rig) == 1 && rig_value(rig, 7) == 0);
}

TEST_WITH(an_or_barrier_waits_for_one_of_its_signals, struct rig *rig)
{
	uint8_t *packet;

	packet = rig_packet(rig, 5, 0);
	put64(packet, 8 + 8, rig_signal(rig, 1, 1, false));
	put64(packet, 8 + 32, rig_signal(rig, 4, -1, false));
	rig_ring(rig, 0);
	CHECK(!rig_work(rig) && taken(rig) == 0);
	rig_signal(rig, 4, 0, false);
	CHECK(rig_work(rig) && taken(rig) == 1);
	rig_packet(rig, 5, 0);
	rig_ring(rig, 1);
	CHECK(rig_work(rig) && taken(rig) == 2);
}

static bool compares(struct rig *rig, uint32_t condition, uint64_t value, uint64_t mask,
		     uint64_t against)
{
	uint8_t *packet;
	bool open;

	start(rig);
	packet = rig_packet(rig, 0, 0);
	packet[2] = 2;
	put64(packet, 8, rig_signal(rig, 0, (int64_t)value, false));
	put64(packet, 16, against);
	put64(packet, 24, mask);
	memcpy(packet + 32, &condition, sizeof(condition));
	rig_ring(rig, 0);
	rig_work(rig);
	CHECK(rig->queue.stopped == (condition > 3));
	open = taken(rig) == 1;
	rig_stop(rig);
	return open;
}

TEST(a_vendor_barrier_compares_what_its_mask_leaves)
{
	static struct rig rig;

	CHECK(compares(&rig, 0, 0x15, 0xf, 5) && !compares(&rig, 0, 0x15, 0x1f, 5));
	CHECK(compares(&rig, 1, 4, ~0ULL, 5) && !compares(&rig, 1, 5, ~0ULL, 5));
	CHECK(compares(&rig, 2, ~0ULL, ~0ULL, 0) && !compares(&rig, 2, 5, ~0ULL, 5));
	CHECK(compares(&rig, 3, 5, ~0ULL, 5) && !compares(&rig, 3, 4, ~0ULL, 5));
	CHECK(!compares(&rig, 4, 5, ~0ULL, 5));
}

TEST_WITH(a_vendor_buffer_retires_and_a_null_signal_is_satisfied, struct rig *rig)
{
	rig_packet(rig, 0, rig_signal(rig, 0, 1, true))[2] = 1;
	rig_packet(rig, 0, 0)[2] = 2;
	rig_ring(rig, 1);
	CHECK(rig_work(rig) && taken(rig) == 2 && rig_value(rig, 0) == 0);
	rig_packet(rig, 0, 0)[2] = 9;
	rig_ring(rig, 2);
	CHECK(rig_work(rig) && taken(rig) == 2 && noted(rig, "format 9"));
}

TEST_WITH(a_packet_that_is_not_ready_holds_up_those_after_it, struct rig *rig)
{
	uint8_t *first;

	first = rig_dispatch(rig, 1, 1, 0);
	first[0] = 1;
	rig_dispatch(rig, 1, 1, 0);
	rig_ring(rig, 1);
	CHECK(!rig_work(rig) && taken(rig) == 0 && !rig->queue.stopped);
	first[0] = 2;
	rig_ring(rig, 0); /* its producer comes second, and rings lower */
	CHECK(rig_work(rig) && taken(rig) == 2);
}

TEST_WITH(the_ring_wraps, struct rig *rig)
{
	for (unsigned i = 0; i < 5 * SLOTS + 3; i++) {
		rig_dispatch(rig, i + 1, 1, 0);
		rig_ring(rig, i);
		CHECK(rig_work(rig) && taken(rig) == i + 1);
		CHECK(rig->queue.last.grid[0] == i + 1);
	}
}

TEST_WITH(a_full_ring_retires_at_once_and_no_further, struct rig *rig)
{
	for (unsigned i = 0; i < SLOTS; i++)
		rig_dispatch(rig, 1, 1, 0);
	rig_ring(rig, UINT64_MAX - 5); /* whatever the client says */
	CHECK(rig_work(rig) && taken(rig) == SLOTS && !rig->queue.stopped);
	CHECK(!rig_work(rig) && taken(rig) == SLOTS);
}

TEST_WITH(unknown_packets_stop_the_queue_and_say_so, struct rig *rig)
{
	rig_packet(rig, 4, 0);
	rig_ring(rig, 0);
	CHECK(rig_work(rig) && noted(rig, "type 4") && taken(rig) == 0);
	rig_packet(rig, 3, 0);
	rig_ring(rig, 1);
	CHECK(!rig_work(rig) && taken(rig) == 0 && rig->next_ns == UINT64_MAX);
}

TEST_WITH(invalid_dispatches_stop_the_queue, struct rig *rig)
{
	rig_dispatch(rig, 0, 64, 0);
	rig_ring(rig, 0);
	CHECK(rig_work(rig) && noted(rig, "nothing"));
	rig_stop(rig);
	start(rig);
	rig_dispatch(rig, 64, 0, 0);
	rig_ring(rig, 0);
	CHECK(rig_work(rig) && noted(rig, "nothing"));
	rig_stop(rig);
	start(rig);
	rig_dispatch(rig, 64, 1025, 0);
	rig_ring(rig, 0);
	CHECK(rig_work(rig) && noted(rig, "1025 threads"));
}

/* As rocrtst sends them: each stops the queue with an error of its own, and is not completed. */
TEST(dispatches_that_cannot_run_are_errors_of_the_queue)
{
	static struct rig rig;
	static const struct {
		unsigned offset;
		uint8_t value;
		int64_t error;
	} wrong[] = {
		{ 2, 0, 2 },      /* no dimension */
		{ 2, 4, 2 },      /* more than 3 */
		{ 2 + 1, 1, 2 },  /* a reserved bit */
		{ 28 + 2, 2, 4 }, /* 128 KiB of group memory */
		{ 32, 0, 8 },     /* no kernel */
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		start(&rig);
		rig_write64(&rig, RIG_READ - 128 + 192, rig_signal(&rig, 7, 0, true));
		rig_dispatch(&rig, 64, 64,
			     rig_signal(&rig, 0, 1, true))[wrong[i].offset] = wrong[i].value;
		rig_ring(&rig, 0);
		CHECK(rig_work(&rig) && rig.queue.stopped && taken(&rig) == 0);
		CHECK(rig_value(&rig, 7) == wrong[i].error && rig_value(&rig, 0) == 1);
		rig_stop(&rig);
	}
}

/* What ROCr gave the queue for it: a field of struct amd_queue_s. */
static uint64_t give_error_signal(struct rig *rig, bool mailed)
{
	uint64_t handle = rig_signal(rig, 7, 0, mailed);

	rig_write64(rig, RIG_READ - 128 + 192, handle);
	return handle;
}

static int64_t error_of(struct rig *rig, unsigned type, uint8_t format)
{
	int64_t error;

	start(rig);
	give_error_signal(rig, true);
	rig_packet(rig, type, 0)[2] = format;
	rig_ring(rig, 0);
	CHECK(rig_work(rig) && rig->queue.stopped);
	CHECK(rig->n_raised == 1 && rig->raised[0] == 8);
	error = rig_value(rig, 7);
	rig_stop(rig);
	return error;
}

TEST(the_queues_own_signal_says_why_it_stopped)
{
	static struct rig rig;

	CHECK(error_of(&rig, 4, 0) == 32);  /* packet */
	CHECK(error_of(&rig, 0, 9) == 256); /* vendor packet */
	start(&rig);
	give_error_signal(&rig, false);
	rig_dispatch(&rig, 0, 64, 0);
	rig_ring(&rig, 0);
	CHECK(rig_work(&rig) && rig_value(&rig, 7) == 2 && rig.n_raised == 0);
	rig_stop(&rig);
	start(&rig);
	give_error_signal(&rig, true);
	rig_dispatch(&rig, 64, 1025, 0);
	rig_ring(&rig, 0);
	CHECK(rig_work(&rig) && rig_value(&rig, 7) == 64);
	rig_stop(&rig);
	start(&rig);
	rig_write64(&rig, RIG_READ - 128 + 192, 8); /* nothing is there */
	rig_packet(&rig, 4, 0);
	rig_ring(&rig, 0);
	CHECK(rig_work(&rig) && noted(&rig, "type 4") && rig.n_raised == 0);
	rig_stop(&rig);
}

/* Each address of a client in turn, where nothing is mapped. */
TEST(unmapped_addresses_stop_the_queue)
{
	static struct rig rig;
	uint64_t *const members[] = { &rig.queue.ring_base, &rig.queue.read_pointer,
				      &rig.queue.write_pointer };
	static const uint64_t bad[] = {
		0, 1, RIG_MEMORY - 64, RIG_MEMORY + RIG_SIZE - 1, UINT64_MAX, UINT64_MAX - 63
	};

	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 6; k++) {
			start(&rig);
			rig_packet(&rig, 3, 0);
			rig_ring(&rig, 0);
			*members[i] = bad[k];
			CHECK(rig_work(&rig) && noted(&rig, "cannot ") &&
			      rig.queue.read_index <= 1);
			rig_stop(&rig);
		}
	for (unsigned k = 1; k < 6; k++) {
		start(&rig);
		rig_packet(&rig, 3, bad[k]);
		rig_packet(&rig, 3, 0);
		rig_ring(&rig, 1);
		CHECK(rig_work(&rig) && noted(&rig, "read") && taken(&rig) == 1);
		rig_stop(&rig);
		start(&rig);
		put64(rig_packet(&rig, 3 + k % 2 * 2, 0), 24, bad[k]);
		rig_ring(&rig, 0);
		CHECK(rig_work(&rig) && noted(&rig, "read") && taken(&rig) == 0);
		rig_stop(&rig);
	}
}

TEST_WITH(unmapped_barrier_or_mailbox_stops_the_queue, struct rig *rig)
{
	uint8_t *packet;

	packet = rig_packet(rig, 0, 0);
	packet[2] = 2;
	put64(packet, 8, 8);
	rig_ring(rig, 0);
	CHECK(rig_work(rig) && noted(rig, "read") && taken(rig) == 0);
	rig_stop(rig);
	start(rig);
	rig_packet(rig, 3, rig_signal(rig, 0, 1, true));
	rig_write64(rig, RIG_SIGNALS + 16, 12);
	rig_ring(rig, 0);
	CHECK(rig_work(rig) && noted(rig, "write") && rig->n_raised == 0);
}

TEST_WITH(a_ring_of_less_than_a_packet_stops_the_queue, struct rig *rig)
{
	rig->queue.ring_size = 32;
	CHECK(rig_work(rig) && noted(rig, "ring of 32"));
}

TEST_WITH(inactive_queues_do_not_run, struct rig *rig)
{
	bool *const members[] = { &rig->queue.stopped, &rig->queue.reset, &rig->process.dead };

	rig_packet(rig, 3, 0);
	rig_ring(rig, 0);
	for (unsigned i = 0; i < 3; i++) {
		*members[i] = true;
		CHECK(!rig_work(rig) && rig->next_ns == UINT64_MAX && taken(rig) == 0);
		*members[i] = false;
	}
	rig->queue.active = false;
	CHECK(!rig_work(rig) && rig->next_ns == UINT64_MAX && taken(rig) == 0);
	rig->queue.active = true;
	CHECK(rig_work(rig) && taken(rig) == 1);
}
