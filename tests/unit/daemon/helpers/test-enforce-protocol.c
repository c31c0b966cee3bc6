/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/enforce-protocol.h"

#include <errno.h>

#include "check.h"
#include "util/base.h"

#define SEED 20260303L

static char why[300];

static int unit(const char *name)
{
	why[0] = '\0';
	return enforce_unit_check(name, why, sizeof(why));
}

TEST(services_and_scopes_may_be_frozen)
{
	static const char *const names[] = {
		"training.service", "session-3.scope",   "a.b.service",      "job@17.service",
		"run-u12.scope",    "x-\\x2d:_.service", "mygpuarb.service", "gpuarb-1.scope",
		"dbusy.service",    "user.service",      "init.service",     "a@b@c.service",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		CHECK(unit(names[i]) == 0);
}

TEST(what_is_no_unit_of_these_types_is_refused)
{
	static const char *const names[] = {
		"",
		".service",
		".scope",
		"training",
		"training.slice",
		"training.socket",
		"training.services",
		"training.service ",
		" training.service",
		"a b.service",
		"a/b.service",
		"../a.service",
		"a\n.service",
		"a\x80.service",
		"@.service",
		"@1.service",
		"job@.service",
		"job@.scope",
		"a%i.service",
		"a*.service",
		"-.slice",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CHECK(unit(names[i]) == -EINVAL);
		CHECK(strstr(why, "scope"));
		CHECK(!strchr(why, '\n'));
	}
}

TEST(a_name_has_as_many_characters_as_systemd_takes)
{
	char name[300];

	memset(name, 'a', sizeof(name));
	strcpy(name + 255 - 8, ".service");
	CHECK(strlen(name) == 255 && unit(name) == 0);
	memset(name, 'a', sizeof(name));
	strcpy(name + 256 - 8, ".service");
	CHECK(strlen(name) == 256 && unit(name) == -EINVAL);
}

TEST(what_the_system_depends_on_is_never_frozen)
{
	static const char *const names[] = {
		"init.scope",          "gpuarbd.service",          "gpuarb-enforce.service",
		"gpuarb.service",      "gpuarb-mqds@3.service",    "dbus.service",
		"dbus-broker.service", "systemd-journald.service", "systemd-logind.service",
		"user@1000.service",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CHECK(unit(names[i]) == -EPERM);
		CHECK(strstr(why, names[i]) && strstr(why, "frozen"));
	}
}

static int request(const char *text, size_t length, struct enforce_request *ret)
{
	return enforce_request_read(text, length, ret, why, sizeof(why));
}

TEST(a_request_is_read_as_it_was_written)
{
	static const struct {
		struct enforce_request request;
		const char *text;
	} rows[] = {
		{ { ENFORCE_KILL, 4711, "" }, "kill 4711" },
		{ { ENFORCE_KILL, UINT64_MAX, "" }, "kill 18446744073709551615" },
		{ { ENFORCE_FREEZE, 8, "a.service" }, "freeze 8 a.service" },
		{ { ENFORCE_THAW, 0, "b.scope" }, "thaw b.scope" },
	};
	char buf[ENFORCE_TEXT_MAX];
	struct enforce_request read;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t n = enforce_request_write(buf, &rows[i].request);

		CHECK(n == strlen(rows[i].text) && memcmp(buf, rows[i].text, n) == 0);
		CHECK(request(buf, n, &read) == 0 && read.verb == rows[i].request.verb);
		CHECK(read.start_time == rows[i].request.start_time);
		CHECK(strcmp(read.unit, rows[i].request.unit) == 0);
	}
}

TEST(an_invalid_request_is_refused_with_a_sentence)
{
	static const struct {
		const char *text;
		size_t length;
		int r;
	} rows[] = {
		{ "", 0, -EBADMSG },
		{ "kil 1", 5, -EBADMSG },
		{ "kill", 4, -EBADMSG },
		{ "kill ", 5, -EBADMSG },
		{ "kill 1\n", 7, -EBADMSG },
		{ "kill 1 ", 7, -EBADMSG },
		{ "kill -1", 7, -EBADMSG },
		{ "kill 18446744073709551616", 25, -EBADMSG },
		{ "kill 99999999999999999999999", 28, -EBADMSG },
		{ "kill 1\0", 7, -EBADMSG },
		{ "KILL 1", 6, -EBADMSG },
		{ "freeze", 6, -EBADMSG },
		{ "freeze a.service", 16, -EBADMSG },
		{ "freeze 1", 8, -EBADMSG },
		{ "freeze 1a.service", 17, -EBADMSG },
		{ "freeze 1 ", 9, -EINVAL },
		{ "freeze 1  a.service", 19, -EINVAL },
		{ "freeze 1 a.service\0", 19, -EINVAL },
		{ "freeze 1 a\0.service", 19, -EINVAL },
		{ "thaw a.service\n", 15, -EINVAL },
		{ "thaw init.scope", 15, -EPERM },
		{ "freeze 1 gpuarbd.service", 24, -EPERM },
	};
	char large[2 * ENFORCE_TEXT_MAX];
	struct enforce_request read;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		why[0] = '\0';
		memset(&read, 0x5a, sizeof(read));
		CHECK(request(rows[i].text, rows[i].length, &read) == rows[i].r && why[0]);
		CHECK(read.start_time == UINT64_C(0x5a5a5a5a5a5a5a5a)); /* untouched */
	}
	memset(large, 'a', sizeof(large));
	memcpy(large, "freeze 1 ", 9);
	CHECK(request(large, sizeof(large), &read) == -EINVAL);
}

TEST(an_answer_is_read_as_it_was_written)
{
	char buf[ENFORCE_TEXT_MAX], sentence[ENFORCE_TEXT_MAX];
	size_t n;
	int r;

	n = enforce_answer_write(buf, 0, "");
	CHECK(n == 2 && enforce_answer_read(buf, n, &r, sentence) == 0);
	CHECK(r == 0 && sentence[0] == '\0');
	n = enforce_answer_write(buf, -ESRCH, "gone");
	CHECK(strcmp(buf, "error 3 gone") == 0);
	CHECK(enforce_answer_read(buf, n, &r, sentence) == 0);
	CHECK(r == -ESRCH && strcmp(sentence, "gone") == 0);
	n = enforce_answer_write(buf, -EIO, "");
	CHECK(enforce_answer_read(buf, n, &r, sentence) == 0 && r == -EIO && sentence[0] == '\0');
}

TEST(a_sentence_is_cut_and_cleaned)
{
	char buf[ENFORCE_TEXT_MAX], sentence[ENFORCE_TEXT_MAX], large[2000];
	size_t n;
	int r;

	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	large[3] = '\033';
	n = enforce_answer_write(buf, -EIO, large);
	CHECK(n < ENFORCE_TEXT_MAX && enforce_answer_read(buf, n, &r, sentence) == 0);
	CHECK(r == -EIO && strncmp(sentence, "xxx?xxx", 7) == 0);
	CHECK(enforce_answer_read("error 5 a\033b", 11, &r, sentence) == 0);
	CHECK(strcmp(sentence, "a?b") == 0);
}

TEST(what_is_no_answer_is_refused)
{
	static const char *const texts[] = {
		"",
		"o",
		"ok ",
		"okay",
		"OK",
		"error",
		"error ",
		"error 3",
		"error 0 none",
		"error -3 x",
		"error x y",
		"error  3 x",
		"error 4096 x",
		"error 99999999999999 x",
		"error 3x y",
	};
	char sentence[ENFORCE_TEXT_MAX];
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		CHECK(enforce_answer_read(texts[i], strlen(texts[i]), &r, sentence) == -EBADMSG);
	CHECK(enforce_answer_read("error 3 a\0b", 11, &r, sentence) == -EBADMSG);
}

/* Under the sanitizers, and without a NUL behind the text. */
TEST(random_bytes_are_read_within_their_length)
{
	static const char *const words[] = { "kill ",    "freeze ", "thaw ", "ok", "error ", "5 ",
					     ".service", ".scope",  "a",     "@",  " " };

	printf("seed %ld\n", SEED);
	srand48(SEED);
	for (unsigned round = 0; round < 20000; round++) {
		char sentence[ENFORCE_TEXT_MAX], buf[64];
		struct enforce_request read;
		size_t n = 0;
		char *copy;
		int r;

		for (unsigned i = (unsigned)lrand48() % 5; i > 0; i--) {
			const char *word = words[(size_t)lrand48() % ARRAY_SIZE(words)];

			memcpy(buf + n, word, strlen(word));
			n += strlen(word);
			if (lrand48() % 8 == 0)
				buf[n++] = (char)lrand48();
		}
		copy = malloc(n > 0 ? n : 1);
		CHECK(copy);
		memcpy(copy, buf, n);
		if (request(copy, n, &read) == 0 && read.verb != ENFORCE_KILL)
			CHECK(enforce_unit_check(read.unit, why, sizeof(why)) == 0);
		if (enforce_answer_read(copy, n, &r, sentence) == 0)
			CHECK(r <= 0);
		free(copy);
	}
}
