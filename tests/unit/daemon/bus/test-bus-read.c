/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus/bus-read.h"

#include <errno.h>

#include "seed.h"
#include "util/base.h"
#include "check.h"
#include "core/policy/request.h"
#include "messages.h"

#define SIGNATURE "aa{sv}a{sv}"

/* The outcome of reading a message. */
struct read_message {
	int r;
	struct request request;
	int process_fd;
	struct result result;
};

static struct read_message *take(sd_bus_message *m)
{
	static struct read_message reading;

	memset(&reading, 0xaa, sizeof(reading));
	reading.result = (struct result){ 0 };
	reading.r = bus_read_request(sealed(m), &reading.request, &reading.process_fd,
				     &reading.result);
	if (reading.r < 0) {
		CHECK(reading.r == -EINVAL && reading.result.kind == RESULT_INVALID_REQUEST);
		CHECK(strlen(reading.result.sentence) < sizeof(reading.result.sentence) - 1);
		CHECK(reading.request.n_wants == (size_t)0xaaaaaaaaaaaaaaaa); /* untouched */
	}
	sd_bus_message_unref(m);
	return &reading;
}

/* Whether it is refused with a sentence that contains both texts. */
static bool refused(sd_bus_message *m, const char *a, const char *b)
{
	struct read_message *reading = take(m);
	bool ok = reading->r < 0 && strstr(reading->result.sentence, a) &&
		  strstr(reading->result.sentence, b);

	if (!ok)
		fprintf(stderr, "said: %s\n", reading->r < 0 ? reading->result.sentence : "yes");
	return ok;
}

#define ONE_WANT(...) make(SIGNATURE, 1, __VA_ARGS__, 0)
#define ONE_OPTION(...) make(SIGNATURE, 1, 1, "cus", "u", 4, 1, __VA_ARGS__)

TEST(an_empty_want_gets_the_defaults)
{
	struct read_message *reading = take(ONE_WANT(0));
	struct want want;

	want_init(&want);
	CHECK(reading->r == 0 && reading->request.n_wants == 1);
	CHECK(memcmp(&reading->request.wants[0], &want, sizeof(want)) == 0);
	CHECK(reading->request.class == -1 && reading->process_fd == -1);
	CHECK(!reading->request.name[0] && !reading->request.tenant[0] &&
	      !reading->request.token[0]);
	CHECK(reading->request.wait_usec == 0);
	CHECK(!reading->request.start_inactive && !reading->request.adaptable);
}

TEST(every_key_of_a_want_is_read)
{
	struct read_message *reading = take(
		ONE_WANT(15, "gpu", "s", "0000:03:00.0/2", "cus", "u", 30, "shader-engines", "u", 2,
			 "cus-min", "u", 27, "cus-max", "u", 40, "exact", "b", 1, "shape", "s",
			 "any", "queues", "u", 8, "streams", "u", 3, "processes", "u", 2,
			 "sdma-queues", "u", 1, "vram", "t", UINT64_C(1) << 33, "cooperative", "b",
			 1, "priority", "u", 15, "isolation", "s", "shared"));
	const struct want *want = &reading->request.wants[0];

	CHECK(reading->r == 0 && strcmp(want->gpu, "0000:03:00.0/2") == 0);
	CHECK(want->cus == 30 && want->shader_engines == 2 && want->cus_min == 27);
	CHECK(want->cus_max == 40 && want->exact && want->any_shape && want->queues == 8);
	CHECK(want->streams == 3 && want->processes == 2 && want->sdma_queues == 1);
	CHECK(want->vram == UINT64_C(1) << 33 && want->cooperative && want->priority == 15);
	CHECK(want->isolation == ISOLATION_SHARED);
}

TEST(shares_are_percentages)
{
	const struct want *want = &take(ONE_WANT(4, "gpu", "s", "0,0000:43:00.0", "cus-percent",
						 "u", 25, "cus-min-percent", "u", 1,
						 "cus-max-percent", "u", 100))
					   ->request.wants[0];

	CHECK(strcmp(want->gpu, "0,0000:43:00.0") == 0 && want->cus_percent == 25);
	CHECK(want->cus_min_percent == 1 && want->cus_max_percent == 100);
	CHECK(refused(ONE_WANT(1, "cus-percent", "u", 0), "want 1: cus-percent", "1 to 100"));
	CHECK(refused(ONE_WANT(1, "cus-percent", "u", 101), "want 1: cus-percent", "1 to 100"));
}

TEST(every_option_is_read)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sd_bus_message *m = make(SIGNATURE, 1, 0, 9, "class", "s", "realtime", "name", "s",
				 "left eye", "tenant", "s", "vr", "token", "s", "t1", "wait-usec",
				 "t", UINT64_MAX, "start-inactive", "b", 1, "adaptable", "b", 1,
				 "process", "h", fd, "exclusive", "s", "active");
	struct read_message *reading = take(m);
	const struct request *request = &reading->request;

	close(fd);
	CHECK(reading->r == 0 && request->class == CLASS_REALTIME);
	CHECK(strcmp(request->name, "left eye") == 0 && strcmp(request->tenant, "vr") == 0);
	CHECK(strcmp(request->token, "t1") == 0 && request->wait_usec == UINT64_MAX);
	CHECK(request->start_inactive && request->adaptable && request->exclusive &&
	      reading->process_fd >= 0);
}

TEST(a_priority_is_a_word_or_a_number)
{
	CHECK(take(ONE_WANT(1, "priority", "s", "low"))->request.wants[0].priority == PRIORITY_LOW);
	CHECK(take(ONE_WANT(1, "priority", "s", "high"))->request.wants[0].priority ==
	      PRIORITY_HIGH);
	CHECK(take(ONE_WANT(1, "priority", "s", "by-class"))->request.wants[0].priority ==
	      PRIORITY_BY_CLASS);
	CHECK(take(ONE_WANT(1, "priority", "u", 3))->request.wants[0].priority == 3);
	CHECK(refused(ONE_WANT(1, "priority", "u", 16), "want 1: priority is 16", "0 to 15"));
	CHECK(refused(ONE_WANT(1, "priority", "s", "urgent"), "\"urgent\"", "normal"));
	CHECK(refused(ONE_WANT(1, "priority", "t", UINT64_C(3)), "type", "number (u)"));
	CHECK(refused(ONE_WANT(2, "priority", "u", 3, "priority", "s", "low"), "priority",
		      "twice"));
}

TEST(unknown_words_are_refused)
{
	CHECK(refused(ONE_WANT(1, "shape", "s", "circle"), "shape is \"circle\"", "rectangle"));
	CHECK(refused(ONE_WANT(1, "isolation", "s", ""), "isolation", "shader-engine"));
	CHECK(refused(ONE_OPTION("class", "s", "Realtime"), "options: class", "besteffort"));
	CHECK(refused(ONE_OPTION("exclusive", "s", "always"), "options: exclusive", "active (s)"));
	CHECK(take(ONE_WANT(1, "shape", "s", "rectangle"))->r == 0);
}

TEST(an_unknown_key_is_refused_with_the_known_keys)
{
	CHECK(refused(make(SIGNATURE, 2, 0, 1, "cuss", "u", 4, 0), "key \"cuss\"",
		      "gpu cus shader-engines"));
	CHECK(refused(ONE_OPTION("cus", "u", 4), "key \"cus\"", "wait-usec"));
	CHECK(refused(ONE_WANT(1, "", "u", 4), "want 1", "\"\""));
	CHECK(refused(ONE_WANT(1, "a\x1b[31m", "u", 4), "\"a?[31m\"", "want 1"));
}

TEST(a_duplicate_key_is_refused)
{
	CHECK(refused(ONE_WANT(2, "cus", "u", 4, "cus", "u", 4), "want 1: cus", "twice"));
	CHECK(refused(make(SIGNATURE, 1, 0, 2, "name", "s", "a", "name", "s", "a"), "options: name",
		      "twice"));
	CHECK(take(make(SIGNATURE, 2, 1, "cus", "u", 4, 1, "cus", "u", 4, 0))->r == 0);
}

TEST(numbers_out_of_range_are_refused)
{
	static const char *const from_one[] = { "cus",     "shader-engines", "cus-min",
						"cus-max", "queues",         "processes" };
	static const char *const from_zero[] = { "streams", "sdma-queues" };

	for (size_t i = 0; i < ARRAY_SIZE(from_one); i++) {
		CHECK(refused(ONE_WANT(1, from_one[i], "u", 0), from_one[i], "0"));
		CHECK(refused(ONE_WANT(1, from_one[i], "u", 65536), from_one[i], "1 to 65535"));
		CHECK(refused(ONE_WANT(1, from_one[i], "u", (uint32_t)-1), "4294967295", "want 1"));
		CHECK(take(ONE_WANT(1, from_one[i], "u", 65535))->r == 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(from_zero); i++) {
		CHECK(refused(ONE_WANT(1, from_zero[i], "u", 65536), from_zero[i], "0 to 65535"));
		CHECK(take(ONE_WANT(1, from_zero[i], "u", 0))->r == 0);
	}
	CHECK(refused(ONE_WANT(1, "vram", "t", (UINT64_C(1) << 50) + 1), "vram",
		      "1125899906842624"));
	CHECK(take(ONE_WANT(1, "vram", "t", UINT64_C(0)))->r == 0);
}

TEST(text_must_fit_and_be_printable)
{
	char longest[REQUEST_TEXT], longer[REQUEST_TEXT + 1], gpus[WANT_GPUS + 1] = "";

	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';

	CHECK(strcmp(take(ONE_OPTION("name", "s", longest))->request.name, longest) == 0);
	CHECK(refused(ONE_OPTION("name", "s", longer), "options: name", "0 to 127 bytes"));
	CHECK(take(ONE_OPTION("name", "s", ""))->r == 0);
	CHECK(refused(ONE_OPTION("token", "s", ""), "options: token", "1 to 127 bytes"));
	CHECK(refused(ONE_OPTION("tenant", "s", "a\nb"), "options: tenant", "\"a?b\""));
	CHECK(refused(ONE_OPTION("name", "s", "\xc2\x9b"), "options: name", "printable"));
	CHECK(take(ONE_OPTION("name", "s", "\u00e9t\u00e9"))->r == 0);
	CHECK(refused(ONE_WANT(1, "gpu", "s", ""), "want 1: gpu", "1 to 1023 bytes"));
	CHECK(take(ONE_WANT(1, "gpu", "s", longest))->r == 0);
	memset(gpus, '0', sizeof(gpus) - 1);
	CHECK(refused(ONE_WANT(1, "gpu", "s", gpus), "want 1: gpu", "1 to 1023 bytes"));
}

/* ---- types ---- */

static const char *const want_types[][2] = {
	{ "gpu", "s" },
	{ "cus", "u" },
	{ "shader-engines", "u" },
	{ "cus-min", "u" },
	{ "cus-max", "u" },
	{ "exact", "b" },
	{ "shape", "s" },
	{ "queues", "u" },
	{ "streams", "u" },
	{ "processes", "u" },
	{ "sdma-queues", "u" },
	{ "vram", "t" },
	{ "cooperative", "b" },
	{ "priority", "su" },
	{ "isolation", "s" },
	{ "cus-percent", "u" },
	{ "cus-min-percent", "u" },
	{ "cus-max-percent", "u" },
};

static const char *const option_types[][2] = {
	{ "class", "s" },     { "name", "s" },      { "tenant", "s" },
	{ "token", "s" },     { "wait-usec", "t" }, { "start-inactive", "b" },
	{ "adaptable", "b" }, { "process", "h" },   { "exclusive", "s" },
};

static sd_bus_message *with_type(bool option, const char *key, const char *type)
{
	sd_bus_message *m = message();

	CHECK(sd_bus_message_open_container(m, 'a', "a{sv}") >= 0);
	CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
	if (!option)
		append_entry(m, key, type, 1, "cu");
	CHECK(sd_bus_message_close_container(m) >= 0 && sd_bus_message_close_container(m) >= 0);
	CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
	if (option)
		append_entry(m, key, type, 1, "cu");
	CHECK(sd_bus_message_close_container(m) >= 0);
	return m;
}

static void check_types(bool option, const char *const keys[][2], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t t = 0; t < ARRAY_SIZE(all_types); t++) {
			const char *type = all_types[t];
			char of_type[16];

			if (type[1] == '\0' && strchr(keys[i][1], type[0]))
				continue;
			snprintf(of_type, sizeof(of_type), "of type %s;", type);
			CHECK(refused(with_type(option, keys[i][0], type), keys[i][0], of_type));
		}
	}
}

TEST(every_wrong_type_is_refused)
{
	check_types(false, want_types, ARRAY_SIZE(want_types));
	check_types(true, option_types, ARRAY_SIZE(option_types));
}

TEST(a_lease_takes_one_to_64_wants)
{
	sd_bus_message *m = message();

	CHECK(refused(make(SIGNATURE, 0, 0), "wants", "1 to 64"));
	CHECK(sd_bus_message_open_container(m, 'a', "a{sv}") >= 0);
	for (unsigned i = 0; i < REQUEST_WANTS + 1; i++)
		CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
	CHECK(sd_bus_message_close_container(m) >= 0);
	CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
	CHECK(refused(m, "many", "1 to 64"));
}

TEST(arguments_of_another_signature_are_refused)
{
	CHECK(refused(make("s", "hello"), "signature", ""));
	CHECK(refused(make("aa{sv}", 1, 0), "signature", ""));
	CHECK(refused(make("aa{sv}as", 1, 0, 0), "signature", ""));
	CHECK(refused(make("aa{su}a{sv}", 1, 1, "cus", 4, 0), "signature", ""));
	CHECK(refused(message(), "signature", ""));
}

TEST(resize_reads_wants_and_refuses_options)
{
	_cleanup_(result_done) struct result result = { 0 };
	struct request request;
	sd_bus_message *m = sealed(make(SIGNATURE, 1, 1, "cus", "u", 4, 0));

	CHECK(bus_read_request(m, &request, NULL, &result) == 0);
	CHECK(request.n_wants == 1 && request.wants[0].cus == 4);
	sd_bus_message_unref(m);

	m = sealed(make(SIGNATURE, 1, 1, "cus", "u", 4, 1, "name", "s", "x"));
	CHECK(bus_read_request(m, &request, NULL, &result) == -EINVAL);
	CHECK(strstr(result.sentence, "\"name\""));
	sd_bus_message_unref(m);
}

/* ---- random messages ---- */

static unsigned seed;

static unsigned below(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

static void append_random_dict(sd_bus_message *m, const char *const keys[][2], size_t n_keys)
{
	static const uint64_t numbers[] = { 0,         1,     2,     15,         16,
					    64,        65535, 65536, UINT32_MAX, UINT64_C(1) << 32,
					    UINT64_MAX };
	static const char *const texts[] = {
		"",   "any",      "rectangle", "cu",   "low",
		"15", "realtime", "\u00e9",    "\x1b", "0000:03:00.0"
	};

	CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
	for (unsigned n = below(5); n > 0; n--) {
		size_t key = below((unsigned)n_keys);
		char type[2] = { keys[key][1][0], '\0' };

		append_entry(m, below(40) ? keys[key][0] : "nonsense",
			     below(40) ? type : all_types[below(ARRAY_SIZE(all_types))],
			     numbers[below(ARRAY_SIZE(numbers))], texts[below(ARRAY_SIZE(texts))]);
	}
	CHECK(sd_bus_message_close_container(m) >= 0);
}

static bool in_bounds(const struct request *request)
{
	bool ok = request->n_wants >= 1 && request->n_wants <= REQUEST_WANTS &&
		  request->class >= -1 && request->class <= CLASS_REALTIME &&
		  strlen(request->name) < REQUEST_TEXT && strlen(request->token) < REQUEST_TEXT;

	for (size_t i = 0; i < request->n_wants; i++) {
		const struct want *want = &request->wants[i];

		ok = ok && want->cus <= 65535 && want->queues <= 65535 && want->streams <= 65535 &&
		     want->priority <= PRIORITY_BY_CLASS && want->vram <= UINT64_C(1) << 50 &&
		     want->isolation <= ISOLATION_SHARED && strlen(want->gpu) < GPU_NAME_MAX;
	}
	return ok;
}

TEST(random_messages_are_refused_or_within_bounds)
{
	unsigned taken = 0;

	seed = seed_nth(SEED_OF_RUN("SEED"), 0);
	for (unsigned i = 0; i < check_rounds(20000, 200000); i++) {
		sd_bus_message *m = message();
		struct read_message *reading;

		CHECK(sd_bus_message_open_container(m, 'a', "a{sv}") >= 0);
		for (unsigned n = below(4); n > 0; n--)
			append_random_dict(m, want_types, ARRAY_SIZE(want_types));
		CHECK(sd_bus_message_close_container(m) >= 0);
		append_random_dict(m, option_types, ARRAY_SIZE(option_types));

		reading = take(m);
		CHECK(reading->r < 0 || in_bounds(&reading->request));
		taken += reading->r >= 0;
	}
	CHECK_REACHED(taken > 100); /* or it tests nothing but refusals */
}
