/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The test rig of one page: TEST() registers itself, CHECK() aborts with the line that
 * failed, SKIP() leaves the test saying why, and ./test-x NAME runs one test alone. A
 * program whose tests were all skipped exits with 77.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check-cond.h"

/* The function runs at the end of the scope of the variable. */
#define _cleanup_(f) __attribute__((cleanup(f)))

struct check_test {
	const char *name;
	void (*run)(void);
	struct check_test *next;
};

static struct check_test *check_first, **check_last = &check_first;
static bool check_skipped;

/* Why the tests of this program cannot run; NULL: they can. */
static const char *(*check_missing)(void);
#define NEEDS(missing) static const char *(*check_missing)(void) = (missing)

#define SKIP(why)                             \
	do {                                  \
		printf("skipped: %s\n", why); \
		check_skipped = true;         \
		return;                       \
	} while (0)

#define TEST(id)                                                         \
	static void id(void);                                            \
	__attribute__((constructor)) static void register_##id(void)     \
	{                                                                \
		static struct check_test t = { .name = #id, .run = id }; \
		*check_last = &t;                                        \
		check_last = &t.next;                                    \
	}                                                                \
	static void id(void)

/* How often a test tries: USUAL times, THOROUGH times under `tests/run --long`. */
static inline unsigned check_rounds(unsigned usual, unsigned thorough)
{
	return getenv("GPUARB_LONG") ? thorough : usual;
}

int main(int argc, char *argv[])
{
	const char *missing = check_missing ? check_missing() : NULL;
	int ran = 0, skipped = 0;

	if (missing) {
		printf("skipped: %s\n", missing);
		return 77;
	}
	for (struct check_test *t = check_first; t; t = t->next) {
		if (argc > 1 && strcmp(argv[1], t->name) != 0)
			continue;
		printf("%s\n", t->name);
		fflush(stdout);
		check_skipped = false;
		t->run();
		if (check_skipped)
			skipped++;
		else
			ran++;
	}
	if (ran == 0 && skipped > 0)
		return 77;
	return ran > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
