/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/test/packet-rig.h"

#include "check.h"

#define RING 4096U
#define TO (RIG_DATA + 0x10000)
#define MIB (1U << 20)

static void start(struct rig *rig)
{
	rig_start(rig, SIM_SDMA, RING);
}

static uint64_t taken(struct rig *rig)
{
	return rig_read64(rig, RIG_READ);
}

static uint8_t pattern(uint64_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

static void fill_source(struct rig *rig, uint64_t size)
{
	uint8_t *bytes = rig_at(rig, RIG_DATA);

	for (uint64_t i = 0; i < size; i++)
		bytes[i] = pattern(i);
}

static bool stopped(struct rig *rig, const char *text)
{
	return rig->queue.stopped && strstr(rig->queue.note, text);
}

FIXTURE(struct rig, rig, start(rig), rig_stop(rig));

TEST_WITH(nothing_happens_before_the_doorbell_is_rung, struct rig *rig)
{
	CHECK(!rig_work(rig) && taken(rig) == 0 && !rig->queue.stopped);
}

TEST_WITH(copy_writes_only_its_destination, struct rig *rig)
{
	const uint8_t *to;

	fill_source(rig, 100);
	to = rig_at(rig, TO);
	CHECK(RIG_SDMA(rig, 1, 99 - 1, 0, LOW(RIG_DATA + 1), HIGH(RIG_DATA), LOW(TO + 2),
		       HIGH(TO)));
	CHECK(taken(rig) == 28 && rig->queue.packets == 1 && rig->queue.copied == 99);
	CHECK(to[0] == 0 && to[1] == 0 && to[101] == 0);
	for (unsigned i = 0; i < 99; i++)
		CHECK(to[2 + i] == pattern(i + 1));
}

TEST_WITH(a_long_copy_takes_several_turns, struct rig *rig)
{
	const uint64_t size = 20ULL * MIB + 5, to = RIG_DATA + 24ULL * MIB;

	fill_source(rig, size);
	CHECK(RIG_SDMA(rig, 1, (uint32_t)size - 1, 0, LOW(RIG_DATA), HIGH(RIG_DATA), LOW(to),
		       HIGH(to)));
	CHECK(taken(rig) == 0 && rig->queue.copied == 16ULL * MIB && rig->next_ns == rig->now_ns);
	CHECK(rig_work(rig) && taken(rig) == 28 && rig->queue.copied == size);
	CHECK(memcmp(rig_at(rig, RIG_DATA), rig_at(rig, to), size) == 0);
	CHECK(*(uint8_t *)rig_at(rig, to + size) == 0);
}

/* 5 by 3 by 2 elements of 4 bytes from a place 2,1,1 in a larger one to 1,2,0. */
TEST_WITH(a_rectangle_is_copied_row_by_row, struct rig *rig)
{
	const uint32_t *from, *to;
	unsigned n = 0;

	from = rig_at(rig, RIG_DATA);
	to = rig_at(rig, TO);
	fill_source(rig, 4096);
	CHECK(RIG_SDMA(rig, 1 | 4 << 8 | 2U << 29, LOW(RIG_DATA), HIGH(RIG_DATA), 2 | 1 << 16,
		       1 | (10 - 1) << 13, 100 - 1, LOW(TO), HIGH(TO), 1 | 2 << 16, (8 - 1) << 13,
		       64 - 1, (5 - 1) | (3 - 1) << 16, 2 - 1));
	CHECK(taken(rig) == 52 && rig->queue.copied == 5 * 3 * 2 * 4);
	for (unsigned z = 0; z < 2; z++)
		for (unsigned y = 0; y < 3; y++)
			for (unsigned x = 0; x < 5; x++)
				CHECK(to[1 + x + (2 + y) * 8 + z * 64] ==
				      from[2 + x + (1 + y) * 10 + (1 + z) * 100]);
	for (unsigned i = 0; i < 1024; i++)
		n += to[i] != 0;
	CHECK(n == 5 * 3 * 2);
}

TEST_WITH(many_short_rows_take_several_turns, struct rig *rig)
{
	CHECK(RIG_SDMA(rig, 1 | 4 << 8, LOW(RIG_DATA), HIGH(RIG_DATA), 0, 0, 0, LOW(TO), HIGH(TO),
		       0, 0, 0, (6000U - 1) << 16, 0));
	CHECK(taken(rig) == 0 && rig->queue.copied == 4096);
	CHECK(rig_work(rig) && taken(rig) == 52 && rig->queue.copied == 6000);
}

TEST_WITH(fills_repeat_bytes_halves_or_words, struct rig *rig)
{
	const uint8_t *to;

	to = rig_at(rig, TO);
	CHECK(RIG_SDMA(rig, 11, LOW(TO), HIGH(TO), 0x44332211, 3 - 1));
	CHECK(memcmp(to, "\x11\x11\x11\0", 4) == 0);
	CHECK(RIG_SDMA(rig, 11 | 1U << 30, LOW(TO), HIGH(TO), 0x44332211, 4 - 2));
	CHECK(memcmp(to, "\x11\x22\x11\x22\0", 5) == 0);
	CHECK(RIG_SDMA(rig, 11 | 2U << 30, LOW(TO), HIGH(TO), 0x44332211, 8 - 4));
	CHECK(memcmp(to, "\x11\x22\x33\x44\x11\x22\x33\x44\0", 9) == 0);
	CHECK(RIG_SDMA(rig, 11 | 2U << 30, LOW(TO), HIGH(TO), 0x55555555, 8 - 1));
	CHECK(memcmp(to, "\x55\x55\x55\x55\x55\x55\x55\x55\0", 9) == 0);
	CHECK(taken(rig) == 4 * 20 && rig->queue.copied == 0);
	CHECK(RIG_SDMA(rig, 11 | 3U << 30, LOW(TO), HIGH(TO), 0, 0) && stopped(rig, "8 bytes"));
}

TEST_WITH(a_long_fill_takes_several_turns, struct rig *rig)
{
	const uint64_t size = 17ULL * MIB;

	CHECK(RIG_SDMA(rig, 11 | 2U << 30, LOW(TO), HIGH(TO), 0x01020304, (uint32_t)size - 4));
	CHECK(taken(rig) == 0 && rig_read64(rig, TO + size - 8) == 0);
	CHECK(rig_work(rig) && taken(rig) == 20);
	CHECK(rig_read64(rig, TO + size - 8) == 0x0102030401020304 &&
	      rig_read64(rig, TO + size) == 0);
}

TEST_WITH(a_fence_writes_and_a_trap_raises, struct rig *rig)
{
	CHECK(RIG_SDMA(rig, 5, LOW(TO), HIGH(TO), 0xcafe, 6, 0x12));
	CHECK(rig_read64(rig, TO) == 0xcafe && rig->n_raised == 1 && rig->raised[0] == 0x12);
	CHECK(taken(rig) == 24 && rig->queue.packets == 2);
}

TEST_WITH(a_timestamp_is_the_time, struct rig *rig)
{
	CHECK(RIG_SDMA(rig, 13 | 2 << 8, LOW(TO), HIGH(TO)));
	CHECK(rig_read64(rig, TO) == rig->now_ns && taken(rig) == 12);
}

TEST_WITH(an_atomic_adds_64_bits, struct rig *rig)
{
	rig_write64(rig, TO, 0x1ffffffffULL);
	CHECK(RIG_SDMA(rig, 10 | 47U << 25, LOW(TO), HIGH(TO), 2, 1, 0, 0, 0));
	CHECK(rig_read64(rig, TO) == 0x300000001ULL && taken(rig) == 32);
	CHECK(RIG_SDMA(rig, 10 | 47U << 25, LOW(TO), HIGH(TO), ~0U, ~0U, 0, 0, 0));
	CHECK(rig_read64(rig, TO) == 0x300000000ULL);
	CHECK(RIG_SDMA(rig, 10 | 46U << 25, LOW(TO), HIGH(TO), 1, 0, 0, 0, 0));
	CHECK(stopped(rig, "operation 46"));
}

static bool poll_passes(struct rig *rig, uint32_t function, uint32_t value, uint32_t against)
{
	bool passed;

	start(rig);
	rig_write64(rig, TO, value | 0xff000000U);
	RIG_SDMA(rig, 8 | function << 28 | 1U << 31, LOW(TO), HIGH(TO), against, 0xffffff, 0);
	passed = taken(rig) == 24;
	CHECK(rig->queue.stopped == (function == 7));
	rig_stop(rig);
	return passed;
}

TEST(a_poll_waits_for_what_it_compares)
{
	static struct rig rig;
	static const bool want[8][3] = {
		/* less, equal, more */
		{ true, true, true },   { true, false, false },  { true, true, false },
		{ false, true, false }, { true, false, true },   { false, true, true },
		{ false, false, true }, { false, false, false },
	};

	for (uint32_t function = 0; function < 8; function++)
		for (uint32_t value = 0; value < 3; value++)
			CHECK(poll_passes(&rig, function, 4 + value, 5) == want[function][value]);
}

TEST_WITH(a_poll_goes_on_when_the_client_writes, struct rig *rig)
{
	rig_write64(rig, TO, 1);
	CHECK(!RIG_SDMA(rig, 8 | 3U << 28 | 1U << 31, LOW(TO), HIGH(TO), 0, ~0U, 0));
	CHECK(!rig_work(rig) && rig->next_ns > rig->now_ns && rig->next_ns != UINT64_MAX);
	rig_write64(rig, TO, 0);
	CHECK(rig_work(rig) && taken(rig) == 24);
}

TEST_WITH(flushes_and_fillers_retire, struct rig *rig)
{
	CHECK(RIG_SDMA(rig, 8, 0, 0x80000000, 0, 0, 0)); /* of the host's writes */
	CHECK(RIG_SDMA(rig, 17, 0, 0, 0, 0));
	CHECK(RIG_SDMA(rig, 17 | 1 << 8, 0, 0, 0, 0));
	CHECK(RIG_SDMA(rig, 0, 2 << 16, 0xbad, 0xbad));
	CHECK(taken(rig) == 24 + 2 * 20 + 4 + 12 && rig->queue.packets == 5);
}

TEST_WITH(the_ring_wraps_in_the_middle_of_a_packet, struct rig *rig)
{
	for (unsigned i = 0; i < RING / 28 * 5; i++) {
		rig_write64(rig, RIG_DATA, i + 1);
		CHECK(RIG_SDMA(rig, 1, 7, 0, LOW(RIG_DATA), HIGH(RIG_DATA), LOW(TO), HIGH(TO)));
		CHECK(rig_read64(rig, TO) == i + 1 && taken(rig) == 28ULL * (i + 1));
	}
}

TEST_WITH(half_a_packet_waits_for_the_rest, struct rig *rig)
{
	CHECK(!RIG_SDMA(rig, 5, LOW(TO)));
	CHECK(taken(rig) == 0 && !rig->queue.stopped);
	CHECK(RIG_SDMA(rig, HIGH(TO), 9) && rig_read64(rig, TO) == 9 && taken(rig) == 16);
}

TEST(unknown_packets_stop_the_queue_and_are_named)
{
	static struct rig rig;
	static const uint32_t headers[] = { 2, 1 | 1 << 8, 0xff, 13, 5 | 1 << 8, 4 };
	char name[16];

	for (unsigned i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		start(&rig);
		CHECK(RIG_SDMA(&rig, headers[i], 0, 0, 0, 0, 0, 0, 0));
		snprintf(name, sizeof(name), "0x%08x", headers[i]);
		CHECK(stopped(&rig, name) && taken(&rig) == 0 && rig.next_ns == UINT64_MAX);
		rig_stop(&rig);
	}
	start(&rig);
	CHECK(RIG_SDMA(&rig, 1 | 1U << 27, 0, 0, 0, 0, 0, 0) && stopped(&rig, "two places"));
	rig_stop(&rig);
}

TEST(invalid_write_pointers_stop_the_queue)
{
	static struct rig rig;
	static const uint64_t lies[] = { 2, 4, RING + 12, UINT64_MAX - 3 };

	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		start(&rig);
		CHECK(RIG_SDMA(&rig, 0, 0));
		rig_ring(&rig, lies[i]);
		CHECK(rig_work(&rig) && stopped(&rig, "write pointer") && taken(&rig) == 8);
		rig_stop(&rig);
	}
	start(&rig);
	rig.queue.ring_size = 0;
	rig_ring(&rig, 0);
	CHECK(rig_work(&rig) && stopped(&rig, "write pointer"));
	rig_stop(&rig);
}

/* Each kind of packet with each of its addresses where nothing is. */
TEST(unmapped_addresses_stop_the_queue)
{
	static struct rig rig;
	static const uint32_t packets[][13] = {
		{ 1, 99, 0, 8, 0, LOW(TO), HIGH(TO) },
		{ 1, 99, 0, LOW(RIG_DATA), HIGH(RIG_DATA), 8, 0 },
		{ 1, 0x3fffffff, 0, LOW(RIG_DATA), HIGH(RIG_DATA), LOW(TO), HIGH(TO) },
		{ 1 | 4 << 8, 8, 0, 0, 0, 0, LOW(TO), HIGH(TO), 0, 0, 0, 0, 0 },
		{ 1 | 4 << 8, LOW(TO), HIGH(TO), 0, 0, 0, 8, 0, 0, 0, 0, 0, 0 },
		{ 5, ~0U, ~0U, 1 },
		{ 8 | 1U << 31, ~0U, ~0U, 0, 0, 0 },
		{ 10 | 47U << 25, 8, 0, 1, 0, 0, 0, 0 },
		{ 11 | 2U << 30, 8, 0, 1, 0 },
		{ 11 | 2U << 30, LOW(TO), HIGH(TO), 1, 0x3fffffff },
		{ 13 | 2 << 8, 8, 0 },
	};

	for (unsigned i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		start(&rig);
		CHECK(rig_sdma(&rig, packets[i], 13));
		for (unsigned turn = 0; turn < 100 && !rig.queue.stopped; turn++)
			CHECK(rig_work(&rig));
		CHECK(stopped(&rig, "cannot ") && taken(&rig) == 0);
		rig_stop(&rig);
	}
}

TEST_WITH(unmapped_ring_or_read_pointer_stops_the_queue, struct rig *rig)
{
	rig->queue.ring_base = RIG_MEMORY + RIG_SIZE;
	CHECK(RIG_SDMA(rig, 0) && stopped(rig, "read"));
	rig_stop(rig);
	start(rig);
	rig->queue.ring_base = RIG_MEMORY + RIG_SIZE - 4;
	*(uint8_t *)rig_at(rig, rig->queue.ring_base) = 5;
	CHECK(RIG_SDMA(rig, 5, 0, 0, 0) && stopped(rig, "read"));
	rig_stop(rig);
	start(rig);
	rig->queue.read_pointer = 8;
	CHECK(RIG_SDMA(rig, 0) && stopped(rig, "write"));
}
