/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/subuid.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "lack.h"

/* "u7" has the uid 7; other names are unknown. */
static bool find_owner(void *userdata, const char *name, uid_t *ret)
{
	unsigned uid;

	++*(unsigned *)userdata;
	if (sscanf(name, "u%u", &uid) != 1)
		return false;
	*ret = uid;
	return true;
}

static int parse(const char *text, struct subuids *ret)
{
	char *copy = strdup(text);
	unsigned lookups = 0;
	int r;

	CHECK(copy);
	*ret = (struct subuids){ 0 };
	r = subuids_parse(copy, find_owner, &lookups, ret);
	free(copy);
	return r;
}

FIXTURE(struct subuids, s, , subuids_done(s));

TEST_WITH(subordinate_uid_stands_for_its_owner_and_others_for_themselves, struct subuids *s)
{
	CHECK(parse("# users\nu1000:100000:65536\n\nu1001:165536:65536", s) == 0 && s->n == 2);
	CHECK(subuids_user(s, 99999) == 99999 && subuids_user(s, 231072) == 231072);
	CHECK(subuids_user(s, 100000) == 1000 && subuids_user(s, 165535) == 1000);
	CHECK(subuids_user(s, 165536) == 1001 && subuids_user(s, 231071) == 1001);
	CHECK(subuids_user(s, 0) == 0 && subuids_user(s, 1000) == 1000);
	CHECK(subuids_user(s, (uid_t)-1) == (uid_t)-1);
}

TEST_WITH(no_file_maps_nothing, struct subuids *s)
{
	CHECK(parse("", s) == 0 && s->n == 0 && subuids_user(s, 100000) == 100000);
}

TEST_WITH(ranges_of_root_are_no_root, struct subuids *s)
{
	CHECK(parse("u0:100000:65536\n", s) == 0);
	CHECK(subuids_user(s, 100005) == 100000 && subuids_user(s, 100000) == 100000);
}

TEST(malformed_lines_are_left_out_one_by_one)
{
	static const char *const bad[] = {
		"u7",
		"u7:100000",
		"u7:100000:",
		"u7::65536",
		":100000:65536",
		"nobody:100000:65536",
		"u7:100000:0",
		"u7:100000:65536:1",
		"u7:-100000:65536",
		"u7: 100000:65536",
		"u7:100000:65536 ",
		"u7:0x186a0:65536",
		"u7:4294967295:1",
		"u7:4294967294:2",
		"u7:100000:4294967295",
		"u7:100000:4294867296",
		"u7:99999999999999999999:1",
		"u7:100000:99999999999999999999",
		"u7:0:4294967294",
		"u7:1000:10",
		"u7:65535:1",
	};
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_(subuids_done) struct subuids s;

		snprintf(text, sizeof(text), "u5:200000:10\n%s\nu6:300000:10\n", bad[i]);
		if (parse(text, &s) != 1 || s.n != 2)
			printf("%s\n", bad[i]);
		CHECK(s.n == 2 && subuids_user(&s, 100000) == 100000);
		CHECK(subuids_user(&s, 200009) == 5 && subuids_user(&s, 300000) == 6);
	}
}

TEST_WITH(last_uid_and_the_smallest_range_are_mapped, struct subuids *s)
{
	CHECK(parse("u7:4294967294:1\nu8:65536:1\n", s) == 0);
	CHECK(subuids_user(s, 4294967294) == 7 && subuids_user(s, 65536) == 8);
}

TEST_WITH(ranges_of_different_owners_that_overlap_map_nothing, struct subuids *s)
{
	CHECK(parse("u1:100000:100\nu2:100050:100\nu3:200000:10\nu1:100120:10\n", s) == 3);
	CHECK(s->n == 1 && subuids_user(s, 100000) == 100000);
	CHECK(subuids_user(s, 100125) == 100125 && subuids_user(s, 200005) == 3);
}

TEST_WITH(ranges_of_one_owner_may_overlap, struct subuids *s)
{
	CHECK(parse("u1:100050:100\nu1:100000:100\nu1:100000:100\n", s) == 0 && s->n == 1);
	CHECK(subuids_user(s, 100000) == 1 && subuids_user(s, 100149) == 1);
	CHECK(subuids_user(s, 100150) == 100150);
}

TEST_WITH(range_that_contains_another_owner_maps_nothing, struct subuids *s)
{
	CHECK(parse("u1:100000:65536\nu100500:300000:10\nu400001:400000:10\n"
		    "u200001:500000:10\nu2:200000:5\n",
		    s) == 2);
	CHECK(subuids_user(s, 100500) == 100500 && subuids_user(s, 100000) == 100000);
	CHECK(subuids_user(s, 300001) == 100500);
	CHECK(subuids_user(s, 400005) == 400001); /* the owner's own uid is in its range */
	CHECK(subuids_user(s, 200002) == 200002 && subuids_user(s, 500005) == 200001);
}

TEST_WITH(huge_file_is_bounded, struct subuids *s)
{
	const unsigned lines = SUBUID_RANGES_MAX + 1000;
	char *text = malloc((size_t)lines * 32), *end = text;

	CHECK(text);
	for (unsigned i = 0; i < lines; i++)
		end += sprintf(end, "u7:%u:1\n", 4000000000U - 2 * i);
	CHECK(parse(text, s) == 1000 && s->n == SUBUID_RANGES_MAX);
	CHECK(subuids_user(s, 4000000000U) == 7 && subuids_user(s, 3999999999U) == 3999999999U);
	free(text);
}

TEST(without_memory_nothing_is_parsed)
{
	for (long n = 0; n < 2; n++) {
		char text[] = "u1:100000:10\nu2:200000:10\n";
		struct subuids s = { 0 };
		unsigned lookups = 0;
		int r;

		lack_left = n;
		r = subuids_parse(text, find_owner, &lookups, &s);
		lack_left = -1;
		CHECK(r == -ENOMEM && s.n == 0 && lookups == 0);
	}
}
