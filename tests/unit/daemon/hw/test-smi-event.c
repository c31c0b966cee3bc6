/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Events of the driver as Linux 6.1 and 6.12 print them, and as no kernel does. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "hw/smi-event.h"
#include "seed.h"
#include "util/base.h"

#define ID 0x3a7cU

static int parse(const char *line, struct driver_event *ret)
{
	return smi_event_parse(line, strlen(line), ID, ret);
}

TEST(every_kind_of_event_is_parsed)
{
	struct driver_event event;

	CHECK(parse("3 1f", &event) == 0 && event.kind == DRIVER_RESET_BEGINS);
	CHECK(event.number == 0x1f && strcmp(event.text, "") == 0);
	CHECK(parse("3 2 job hang, ring comp_1.0.0", &event) == 0 && event.number == 2);
	CHECK(strcmp(event.text, "job hang, ring comp_1.0.0") == 0);
	CHECK(parse("4 1f", &event) == 0 && event.kind == DRIVER_RESET_ENDED);
	CHECK(parse("1 12ab:python3 -u", &event) == 0 && event.kind == DRIVER_VM_FAULT);
	CHECK(event.pid == 0x12ab && strcmp(event.text, "python3 -u") == 0);
	CHECK(parse("2 20000:1a", &event) == 0 && event.kind == DRIVER_THROTTLED);
	CHECK(event.number == 0x20000);
	CHECK(parse("9 81234567890 -4711 3a7c 2", &event) == 0 && event.kind == DRIVER_EVICTED);
	CHECK(event.pid == 4711 && event.usec == 81234567 && event.number == 2);
	CHECK(parse("5 81234567890 -4711 @7f00(100) 0->3a7c 0:0 1", &event) == 0);
	CHECK(event.kind == DRIVER_MIGRATION_BEGINS && event.pid == 4711);
	CHECK(parse("b 81234567890 -4711 @7f00(100) 3a7c 0", &event) == 0);
	CHECK(event.kind == DRIVER_UNMAPPED);
}

TEST(a_restore_that_is_tried_again_is_told_from_one_that_succeeded)
{
	static const char flagged[] =
		"a 5000 -7 3a7c \0"; /* of a kernel that prints the flag 0 as NUL */
	struct driver_event event;

	CHECK(parse("a 5000 -7 3a7c", &event) == 0 && event.kind == DRIVER_RESTORED);
	CHECK(event.pid == 7 && event.usec == 5 && event.number == 0);
	CHECK(parse("a 5000 -7 3a7c 0", &event) == 0 && event.number == 0);
	CHECK(parse("a 5000 -7 3a7c R", &event) == 0 && event.number == 1);
	CHECK(smi_event_parse(flagged, sizeof(flagged), ID, &event) == 0 && event.number == 0);
}

TEST(what_no_kernel_prints_is_unknown)
{
	static const char *const lines[] = {
		"",
		" ",
		"3",
		"3 ",
		"3  1",
		"3 g",
		"3 -1",
		"3 +1",
		"0 1",
		"c 1",
		"ff 1",
		"99999999999999999999 1",
		"1 0:x",
		"1 ffffffff:x",
		"1 12",
		"2 1",
		"2 1:",
		"9 1 4711 3a7c 2",
		"9 1 -0 3a7c 2",
		"9 1 -99999999999 3a7c 2",
		"9 1 -4711 3a7d 2", /* of another GPU */
		"9 1 -4711 3a7c",
		"9 99999999999999999999999 -4711 3a7c 1",
		"a 1 -4711 3a7d",
		"a 1 -4711 3a7c X",
		"a 1 -4711",
		"a x",
		"5 1",
	};
	struct driver_event event;
	char line[300];

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		event.kind = DRIVER_EVICTED;
		CHECK(parse(lines[i], &event) == -EBADMSG && event.kind == DRIVER_UNKNOWN);
	}
	memset(line, '1', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	memcpy(line, "3 ", 2);
	CHECK(parse(line, &event) == -EBADMSG);
}

TEST(no_bytes_make_an_invalid_event)
{
	static const char *const valid[] = { "9 81234567890 -4711 3a7c 2", "a 5000 -7 3a7c R",
					     "1 12ab:python3", "3 2 job hang", "2 20000:1a" };
	unsigned seed = seed_nth(SEED_OF_RUN("SEED"), 0);

	for (unsigned i = 0; i < 100000; i++) {
		struct driver_event event;
		char line[64];
		size_t n = strlen(valid[i % ARRAY_SIZE(valid)]);
		int r;

		memcpy(line, valid[i % ARRAY_SIZE(valid)], n);
		for (unsigned k = 0; k <= (unsigned)rand_r(&seed) % 3; k++)
			line[(size_t)rand_r(&seed) % n] = (char)(rand_r(&seed) % 256);
		r = smi_event_parse(line, (size_t)rand_r(&seed) % (n + 1), ID, &event);
		CHECK((r == 0) == (event.kind != DRIVER_UNKNOWN));
		CHECK(event.kind < DRIVER_EVENT_KINDS && event.pid >= 0);
		CHECK(memchr(event.text, '\0', sizeof(event.text)));
	}
}
