/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The test rig of one page: TEST() registers itself, TEST_WITH() has the fixture of its file, CHECK() aborts
 * with the line that failed, SKIP() leaves the test saying why. A program has the tests of all its files:
 *
 *	./test-x              all of them
 *	./test-x NAME...      those of the file test-NAME.c, or one test
 *
 * A program whose tests were all skipped exits with 77.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check-cond.h"
#include "rounds.h"

/* The function runs at the end of the scope of the variable. */
#define _cleanup_(f) __attribute__((cleanup(f)))

struct check_test {
	const char *file, *name;
	void (*run)(void);
	const char *(**missing)(void); /* of its file */
	struct check_test *next;
};

/* One list for all files of a program. */
__attribute__((weak)) struct check_test *check_first, *check_latest;
__attribute__((weak)) bool check_skipped;

/* Why the tests of this file cannot run; NULL: they can. */
static const char *(*check_missing)(void);
#define NEEDS(missing) static const char *(*check_missing)(void) = (missing)

#define SKIP(why)                             \
	do {                                  \
		printf("skipped: %s\n", why); \
		check_skipped = true;         \
		return;                       \
	} while (0)

#define CHECK_REGISTER(id, runs)                                                            \
	__attribute__((constructor)) static void register_##id(void)                        \
	{                                                                                   \
		static struct check_test t = { __FILE__, #id, runs, &check_missing, NULL }; \
		*(check_latest ? &check_latest->next : &check_first) = &t;                  \
		check_latest = &t;                                                          \
	}

#define TEST(id)               \
	static void id(void);  \
	CHECK_REGISTER(id, id) \
	static void id(void)

/* One of several tests that differ in what they pass to a function. */
#define TEST_CASE(id, statement) \
	TEST(id)                 \
	{                        \
		statement;       \
	}                        \
	struct check_test

/* What the tests TEST_WITH() of this file are given: `begin` makes it of zeros, and `end` ends it, both
 * statements about the pointer `name`. */
#define FIXTURE(type, name, begin, end)              \
	static void check_with(void (*test)(type *)) \
	{                                            \
		static type check_fixture;           \
		type *name = &check_fixture;         \
                                                     \
		memset(name, 0, sizeof(*name));      \
		begin;                               \
		test(name);                          \
		end;                                 \
	}                                            \
	struct check_test

#define TEST_WITH(id, parameter)              \
	static void id(parameter);            \
	static void id##_with_fixture(void)   \
	{                                     \
		check_with(id);               \
	}                                     \
	CHECK_REGISTER(id, id##_with_fixture) \
	static void id(parameter)

static inline bool check_is_named(const struct check_test *t, const char *name)
{
	const char *file = strrchr(t->file, '/');
	size_t length = strlen(name);

	file = file ? file + 1 : t->file;
	return strcmp(t->name, name) == 0 ||
	       (strncmp(file, "test-", 5) == 0 && strncmp(file + 5, name, length) == 0 &&
		strcmp(file + 5 + length, ".c") == 0);
}

/* Whether it ran. */
static inline bool check_run(struct check_test *t)
{
	static const char *(*said)(void);
	const char *missing = *t->missing ? (*t->missing)() : NULL;

	if (missing) {
		if (said != *t->missing)
			printf("skipped: %s\n", missing);
		said = *t->missing;
		return false;
	}
	printf("%s\n", t->name);
	fflush(stdout);
	check_skipped = false;
	t->run();
	return !check_skipped;
}

__attribute__((weak)) int main(int argc, char *argv[])
{
	int ran = 0, skipped = 0;

	for (struct check_test *t = check_first; t; t = t->next) {
		bool wanted = argc < 2;

		for (int i = 1; i < argc; i++)
			wanted = wanted || check_is_named(t, argv[i]);
		if (wanted)
			*(check_run(t) ? &ran : &skipped) += 1;
	}
	if (ran == 0 && skipped > 0)
		return 77;
	return ran > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
