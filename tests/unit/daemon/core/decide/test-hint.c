/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/hint.h"

#include "check.h"

static bool amount_is(enum reason reason, uint64_t n, const char *wanted)
{
	char buf[HINT_AMOUNT];

	if (strcmp(hint_amount(reason, n, buf), wanted) == 0)
		return true;
	fprintf(stderr, "\"%s\" is not \"%s\"\n", buf, wanted);
	return false;
}

static bool countable_is(enum reason reason, uint64_t free, const char *wanted)
{
	const struct gpu gpu = { 0 };
	struct refusal refusal = { 0 };

	hint_countable(&refusal, &gpu, reason, free);
	if (strcmp(refusal.hint, wanted) == 0)
		return true;
	fprintf(stderr, "\"%s\" is not \"%s\"\n", refusal.hint, wanted);
	return false;
}

static bool cus_is(unsigned free, unsigned below, unsigned above, const char *wanted)
{
	const struct place_miss miss = { .below = below, .above = above };
	struct refusal refusal = { 0 };

	hint_cus(&refusal, free, &miss, "now");
	if (strcmp(refusal.hint, wanted) == 0)
		return true;
	fprintf(stderr, "\"%s\" is not \"%s\"\n", refusal.hint, wanted);
	return false;
}

TEST(memory_is_told_in_units_for_people_and_never_more_than_there_is)
{
	CHECK(amount_is(REASON_VRAM, 0, "0"));
	CHECK(amount_is(REASON_VRAM, 1023, "1023"));
	CHECK(amount_is(REASON_VRAM, 1024, "1.0K"));
	CHECK(amount_is(REASON_VRAM, UINT64_C(3) << 29, "1.5G"));
	CHECK(amount_is(REASON_VRAM, (UINT64_C(2) << 30) - 1, "1.9G"));
	CHECK(amount_is(REASON_VRAM, UINT64_MAX, "15.9E"));
	CHECK(countable_is(REASON_VRAM, UINT64_C(2) << 30, "2.0G of VRAM is free"));
}

TEST(what_is_counted_is_told_as_it_is)
{
	CHECK(amount_is(REASON_QUEUES, 4096, "4096"));
	CHECK(amount_is(REASON_CUS, UINT64_MAX, "18446744073709551615"));
}

TEST(one_is_singular)
{
	CHECK(countable_is(REASON_QUEUES, 1, "1 queue slot is free"));
	CHECK(countable_is(REASON_QUEUES, 0, "0 queue slots are free"));
	CHECK(countable_is(REASON_PROCESSES, 1, "1 process slot is free"));
	CHECK(countable_is(REASON_SDMA, 2, "2 SDMA queues are free"));
	CHECK(countable_is(REASON_COOPERATIVE, 1, "1 cooperative (GWS) queue is free"));
	CHECK(cus_is(1, 0, 0, "1 CU is free for it; nothing would fit now"));
	CHECK(cus_is(7, 1, 0, "7 CUs are free for it; 1 would fit now"));
	CHECK(cus_is(1, 1, 0, "1 CU is free for it, and would fit now"));
	CHECK(cus_is(7, 0, 1, "1 CU would fit now, fewer would not"));
	CHECK(cus_is(7, 1, 2, "1 or 2 CUs would fit now"));
}

TEST(what_is_plain_is_not_said_twice)
{
	CHECK(cus_is(7, 7, 0, "7 CUs are free for it, and would fit now"));
	CHECK(cus_is(0, 0, 0, "nothing would fit now"));
}

TEST(who_is_in_the_way_is_told_with_its_queues)
{
	const struct gpu gpu = {
		.info = { .queue_slots = 1, .process_slots = 8 },
		.observed.used = { .queues = 6, .processes = 1 },
		.observed.n_processes = 2,
		.observed.processes = {
			{ .pid = 10, .command = "python3", .queues = 1 },
			{ .pid = 11, .command = "ollama", .queues = 5 },
		},
	};
	struct refusal refusal = { 0 };

	hint_oversubscribed(&refusal, &gpu);
	CHECK(strcmp(refusal.hint, "6 queues of 1 process on 1 slot and 8 VMIDs; pid 10 (python3) "
				   "has 1 queue, pid 11 (ollama) has 5 queues") == 0);
}
