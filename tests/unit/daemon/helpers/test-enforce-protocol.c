/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/enforce-protocol.h"

#include <errno.h>

#include "check.h"
#include "seed.h"
#include "util/base.h"

static char why[300];

static int unit(const char *name)
{
	why[0] = '\0';
	return enforce_unit_check(name, why, sizeof(why));
}

TEST(services_and_scopes_may_be_frozen)
{
	static const char *const names[] = {
		"training.service",     "session-3.scope",   "a.b.service",      "job@17.service",
		"run-u12.scope",        "x-\\x2d:_.service", "mygpuarb.service", "gpuarb-1.scope",
		"dbusy.service",        "user.service",      "init.service",     "a@b@c.service",
		"gpuarb.service.scope",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		CHECK(unit(names[i]) == 0);
}

TEST(units_of_other_types_are_refused)
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

TEST(units_that_the_system_needs_are_never_frozen)
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

static int request(const struct enforce_request *request, size_t length)
{
	why[0] = '\0';
	return enforce_request_check(request, length, why, sizeof(why));
}

TEST(requests_are_accepted)
{
	static const struct enforce_request rows[] = {
		{ ENFORCE_KILL, 4711, 0, "" },
		{ ENFORCE_KILL, UINT64_MAX, 0, "" },
		{ ENFORCE_FREEZE, 8, 0, "a.service" },
		{ ENFORCE_THAW, 0, 0, "b.scope" },
		{ ENFORCE_KILL, 1, 0, "its lease has ended" },
		{ ENFORCE_END, 1, 1000, "" },
		{ ENFORCE_WARN, 1, 1000, "no lease" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		CHECK(request(&rows[i], sizeof(rows[i])) == 0);
}

TEST(an_invalid_request_is_refused_with_a_sentence)
{
	static const struct {
		struct enforce_request request;
		int r;
	} rows[] = {
		{ { 0, 1, 0, "" }, -EBADMSG },
		{ { 0, 1, 0, "a.service" }, -EBADMSG },
		{ { ENFORCE_END + 1, 1, 0, "a.service" }, -EBADMSG },
		{ { ENFORCE_KILL + (UINT64_C(1) << 32), 1, 0, "" }, -EBADMSG },
		{ { UINT64_MAX, 1, 0, "a.service" }, -EBADMSG },
		{ { ENFORCE_KILL, 1, UINT32_MAX, "" }, -EBADMSG },
		{ { ENFORCE_FREEZE, 1, UINT64_MAX, "a.service" }, -EBADMSG },
		{ { ENFORCE_FREEZE, 1, 0, "" }, -EINVAL },
		{ { ENFORCE_FREEZE, 1, 0, " a.service" }, -EINVAL },
		{ { ENFORCE_FREEZE, 1, 0, "a\0.service" }, -EINVAL },
		{ { ENFORCE_THAW, 0, 0, "a.service\n" }, -EINVAL },
		{ { ENFORCE_THAW, 0, 0, "init.scope" }, -EPERM },
		{ { ENFORCE_FREEZE, 1, 0, "gpuarbd.service" }, -EPERM },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		CHECK(request(&rows[i].request, sizeof(rows[i].request)) == rows[i].r && why[0]);
}

TEST(a_request_of_another_size_is_refused)
{
	const struct enforce_request thaw = { ENFORCE_THAW, 0, 0, "a.service" };

	for (size_t length = 0; length < sizeof(thaw); length++)
		CHECK(request(&thaw, length) == -EBADMSG && why[0]);
	CHECK(request(&thaw, sizeof(thaw)) == 0);
	CHECK(request(&thaw, sizeof(thaw) + 1) == -EMSGSIZE && why[0]);
}

TEST(a_unit_without_its_end_is_refused)
{
	struct enforce_request thaw = { .verb = ENFORCE_THAW };

	memset(thaw.text, 'a', sizeof(thaw.text));
	memcpy(thaw.text + sizeof(thaw.text) - 8, ".service", 8);
	CHECK(request(&thaw, sizeof(thaw)) == -EINVAL && why[0]);
	memcpy(thaw.text + sizeof(thaw.text) - 9, ".service", 9);
	CHECK(request(&thaw, sizeof(thaw)) == 0);
}

static bool is_answer(const struct enforce_answer *answer, int r, const char *sentence)
{
	struct enforce_answer copy = *answer;

	return enforce_answer_check(&copy, sizeof(copy)) == 0 && copy.r == r &&
	       strcmp(copy.sentence, sentence) == 0;
}

TEST(an_answer_is_received_as_it_was_made)
{
	static const struct {
		int r;
		const char *sentence, *expected;
	} rows[] = {
		{ 0, "", "" },    { 0, "not sent", "" },      { -ESRCH, "gone", "gone" },
		{ -EIO, "", "" }, { -4095, "a\033b", "a?b" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct enforce_answer answer = enforce_answer_new(rows[i].r, rows[i].sentence);

		CHECK(is_answer(&answer, rows[i].r, rows[i].expected));
	}
}

TEST(a_sentence_is_cut_and_cleaned)
{
	struct enforce_answer answer = { .r = -EIO, .sentence = "a\033b" };
	char large[2000];

	CHECK(is_answer(&answer, -EIO, "a?b"));
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	large[3] = '\033';
	answer = enforce_answer_new(-EIO, large);
	CHECK(strlen(answer.sentence) == sizeof(answer.sentence) - 1);
	CHECK(strncmp(answer.sentence, "xxx?xxx", 7) == 0);
	CHECK(is_answer(&answer, -EIO, answer.sentence));
}

TEST(malformed_answer_is_refused)
{
	struct enforce_answer rows[] = { { 1, "" },
					 { 0, "none" },
					 { -4096, "x" },
					 { INT32_MIN, "x" } },
			      answer = { -EIO, "x" };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		CHECK(enforce_answer_check(&rows[i], sizeof(rows[i])) == -EBADMSG);
	for (size_t length = 0; length < sizeof(answer); length++)
		CHECK(enforce_answer_check(&answer, length) == -EBADMSG);
	CHECK(enforce_answer_check(&answer, sizeof(answer) + 1) == -EBADMSG);
	memset(answer.sentence, 'x', sizeof(answer.sentence));
	CHECK(enforce_answer_check(&answer, sizeof(answer)) == -EBADMSG);
}

/* Under the sanitizers, in memory of exactly this size. */
TEST(random_bytes_are_checked)
{
	unsigned accepted = 0;

	seed_rand(SEED_OF_RUN("SEED"));
	for (unsigned round = 0; round < 20000; round++) {
		struct enforce_request *random = malloc(sizeof(*random));
		struct enforce_answer answer;

		CHECK(random);
		random->verb = (uint64_t)lrand48() % 7;
		random->start_time = (uint64_t)lrand48();
		random->uid = (uint64_t)lrand48() << lrand48() % 3;
		for (size_t i = 0; i < sizeof(random->text); i++)
			random->text[i] = (char)lrand48();
		if (lrand48() % 4 == 0)
			strcpy(random->text + lrand48() % 3, "a.scope");
		if (request(random, sizeof(*random)) == 0)
			accepted++;
		memset(&answer, (int)lrand48(), sizeof(answer));
		answer.r = -(int32_t)(lrand48() % 5000);
		answer.sentence[(size_t)lrand48() % sizeof(answer.sentence)] = '\0';
		if (enforce_answer_check(&answer, sizeof(answer)) == 0)
			CHECK(answer.r <= 0 && answer.r >= -4095);
		free(random);
	}
	CHECK(accepted > 0);
}
