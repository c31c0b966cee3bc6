/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/options/options.h"

#include <errno.h>

#include "check.h"
#include "util/number.h"

#define ALL (OPTIONS_GENERAL | OPTIONS_WANT | OPTIONS_LEASE)

/* Parses words, terminated by NULL. */
static int parse(struct command *command, unsigned groups, bool stops, char **words)
{
	static char *argv[REQUEST_WANTS + 2];
	int argc = 0;

	for (; words[argc]; argc++)
		argv[argc] = words[argc];
	argv[argc] = NULL;
	command_init(command);
	return options_parse(command, groups, stops, argc, argv);
}

#define PARSE(command, ...) \
	parse(command, ALL, false, (char *[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })
#define PARSE_RUN(command, ...) parse(command, ALL, true, (char *[]){ __VA_ARGS__, NULL })

static bool says(const struct command *command, const char *part)
{
	return strstr(command->problem, part) != NULL;
}

FIXTURE(struct command, command, , );

TEST_WITH(no_options_are_one_want_with_the_defaults, struct command *command)
{
	CHECK(PARSE(command) == 0);
	CHECK(command->n_wants == 1 && command->n_rest == 0 && !command->json);
	CHECK(command->wants[0].want.size == sizeof(struct gpuarb_want));
	CHECK(command->wants[0].want.gpu == NULL && command->wants[0].want.cus == 0);
	CHECK(command->wants[0].want.priority == GPUARB_PRIORITY_DEFAULT);
	CHECK(command->options.process_fd == -1 && command->options.wait_usec == 0);
}

TEST_WITH(a_value_follows_an_equals_sign_or_is_a_word, struct command *command)
{
	CHECK(PARSE(command, "--cus=30", "--queues", "4", "--vram=2G", "--name", "a b") == 0);
	CHECK(command->wants[0].want.cus == 30 && command->wants[0].want.queues == 4);
	CHECK(command->wants[0].want.vram == UINT64_C(2) << 30);
	CHECK(strcmp(command->options.name, "a b") == 0);
}

TEST_WITH(every_option_of_a_want_is_stored, struct command *command)
{
	const struct gpuarb_want *want = &command->wants[0].want;

	CHECK(PARSE(command, "--gpu=0000:03:00.0", "--cus=30", "--cus-min=20", "--cus-max=40",
		    "--shader-engines=2", "--exact", "--shape=any", "--queues=9", "--streams=1",
		    "--processes=3", "--sdma-queues=2", "--vram=4096", "--priority=high",
		    "--isolation=cu") == 0);
	CHECK(strcmp(want->gpu, "0000:03:00.0") == 0 && want->cus == 30 && want->cus_min == 20);
	CHECK(want->cus_max == 40 && want->shader_engines == 2 && want->exact);
	CHECK(strcmp(want->shape, "any") == 0 && want->queues == 9 && want->streams == 1);
	CHECK(want->processes == 3 && want->sdma_queues == 2 && want->vram == 4096);
	CHECK(want->priority == 11 && strcmp(want->isolation, "cu") == 0);
}

TEST_WITH(every_option_of_a_lease_is_stored, struct command *command)
{
	CHECK(PARSE(command, "--class=realtime", "--tenant=vr", "--name=n", "--token=t",
		    "--start-inactive", "--adaptable", "--wait=3") == 0);
	CHECK(command->options.start_inactive && command->options.adaptable);
	CHECK(strcmp(command->options.lease_class, "realtime") == 0);
	CHECK(strcmp(command->options.tenant, "vr") == 0);
	CHECK(strcmp(command->options.token, "t") == 0);
	CHECK(command->options.wait_usec == 3000000);
}

TEST_WITH(wait_without_a_value_has_no_limit, struct command *command)
{
	CHECK(PARSE(command, "--wait", "7z") == 0);
	CHECK(command->options.wait_usec == GPUARB_FOREVER);
	CHECK(command->n_rest == 1 && strcmp(command->rest[0], "7z") == 0);
	CHECK(PARSE_RUN(command, "--wait", "--", "7") == 0);
	CHECK(command->options.wait_usec == GPUARB_FOREVER && strcmp(command->rest[0], "7") == 0);
}

TEST_WITH(a_time_after_wait_is_its_value_and_no_command, struct command *command)
{
	CHECK(PARSE_RUN(command, "--wait", "10", "--", "sleep", "1") == 0);
	CHECK(command->options.wait_usec == 10000000 && strcmp(command->rest[0], "sleep") == 0);
	CHECK(PARSE_RUN(command, "--wait", "5min", "sleep", "1") == 0);
	CHECK(command->options.wait_usec == 300000000 && strcmp(command->rest[0], "sleep") == 0);
	CHECK(PARSE_RUN(command, "--wait", "99999999999999999999", "sleep") == -EINVAL);
	CHECK(says(command, "--wait=99999999999999999999"));
}

TEST(times_have_the_units_of_the_configuration)
{
	uint64_t usec;

	CHECK(number_time("10", &usec) == 0 && usec == 10000000);
	CHECK(number_time("10s", &usec) == 0 && usec == 10000000);
	CHECK(number_time("500ms", &usec) == 0 && usec == 500000);
	CHECK(number_time("2h", &usec) == 0 && usec == UINT64_C(7200000000));
	CHECK(number_time("0", &usec) == 0 && usec == 0);
	CHECK(number_time("", &usec) == -EINVAL && number_time("s", &usec) == -EINVAL);
	CHECK(number_time("1 s", &usec) == -EINVAL && number_time("1.5s", &usec) == -EINVAL);
	CHECK(number_time("99999999999999h", &usec) == -ERANGE);
}

TEST_WITH(each_further_gpu_starts_the_next_want, struct command *command)
{
	CHECK(PARSE(command, "--cus=4", "--gpu=0", "--queues=3", "--gpu=1", "--cus=8") == 0);
	CHECK(command->n_wants == 2);
	CHECK(command->wants[0].want.cus == 4 && command->wants[0].want.queues == 3);
	CHECK(strcmp(command->wants[0].want.gpu, "0") == 0);
	CHECK(command->wants[1].want.cus == 8 && command->wants[1].want.queues == 0);
	CHECK(strcmp(command->wants[1].want.gpu, "1") == 0);
	CHECK(command->wants[1].want.priority == GPUARB_PRIORITY_DEFAULT);
}

TEST_WITH(more_gpus_than_a_lease_can_have_are_refused, struct command *command)
{
	char *words[REQUEST_WANTS + 2];

	for (size_t i = 0; i < REQUEST_WANTS + 1; i++)
		words[i] = "--gpu=any";
	words[REQUEST_WANTS + 1] = NULL;
	CHECK(parse(command, ALL, false, words) == -EINVAL);
	CHECK(command->n_wants == REQUEST_WANTS && says(command, "64"));

	words[REQUEST_WANTS] = NULL;
	CHECK(parse(command, ALL, false, words) == 0);
}

TEST_WITH(activate_and_revoke_have_their_own_options, struct command *command)
{
	char *revoke[] = { "17", "--grace=3", "--reason", "a b", NULL };
	char *activate[] = { "--wait", "17", NULL }, *after[] = { "17", "--wait", "9s", NULL };
	char *alone[] = { "17", NULL };
	char *wrong[] = { "--grace=25h", NULL }, *other[] = { "--wait=1", NULL };

	CHECK(parse(command, OPTIONS_REVOKE, false, revoke) == 0 && command->n_rest == 1);
	CHECK(command->grace_usec == 3000000 && strcmp(command->reason, "a b") == 0);
	CHECK(parse(command, OPTIONS_REVOKE, false, alone) == 0);
	CHECK(command->grace_usec == 10000000 && !command->reason);
	CHECK(parse(command, OPTIONS_REVOKE, false, wrong) == -EINVAL && says(command, "24h"));
	CHECK(parse(command, OPTIONS_REVOKE, false, other) == -EINVAL);
	CHECK(parse(command, OPTIONS_ACTIVATE, false, activate) == 0);
	CHECK(command->options.wait_usec == GPUARB_FOREVER && command->n_rest == 1);
	CHECK(parse(command, OPTIONS_ACTIVATE, false, after) == 0);
	CHECK(command->options.wait_usec == 9000000 && command->n_rest == 1);
}

TEST_WITH(cus_may_be_a_share, struct command *command)
{
	CHECK(PARSE(command, "--cus=25%", "--cus-min=10%", "--cus-max=100%") == 0);
	CHECK(command->wants[0].share.cus == 25 && command->wants[0].want.cus == 0);
	CHECK(command->wants[0].share.cus_min == 10 && command->wants[0].share.cus_max == 100);

	CHECK(PARSE(command, "--cus=25%", "--cus=7") == 0);
	CHECK(command->wants[0].share.cus == 0 && command->wants[0].want.cus == 7);
}

TEST_WITH(an_invalid_number_is_quoted_with_the_valid_range, struct command *command)
{
	static const struct {
		const char *option, *works;
	} options[] = {
		{ "--cus", "1024" },         { "--cus-min", "1%" },
		{ "--cus-max", "100%" },     { "--shader-engines", "1 to 8" },
		{ "--queues", "1 to 1024" }, { "--processes", "1 to 1024" },
	};
	static const char *const bad[] = { "0",    "-1", "99999999999999999999999",
					   "4097", "1x", "",
					   " 1",   "+1", "0x10",
					   "1.5",  "0%", "101%",
					   "%",    "5%%" };

	for (size_t o = 0; o < sizeof(options) / sizeof(options[0]); o++) {
		for (size_t b = 0; b < sizeof(bad) / sizeof(bad[0]); b++) {
			char word[80], *words[] = { word, NULL };

			snprintf(word, sizeof(word), "%s=%s", options[o].option, bad[b]);
			CHECK(parse(command, ALL, false, words) == -EINVAL);
			CHECK(says(command, word) && says(command, options[o].works));
		}
	}
}

TEST_WITH(a_negative_number_as_a_word_of_its_own_is_still_a_value, struct command *command)
{
	CHECK(PARSE(command, "--cus", "-5") == -EINVAL);
	CHECK(says(command, "--cus=-5"));
}

TEST_WITH(zero_is_valid_if_it_is_the_default, struct command *command)
{
	CHECK(PARSE(command, "--streams=0", "--sdma-queues=0", "--vram=0", "--wait=0") == 0);
	CHECK(option_given(&command->wants[0], "streams") &&
	      !option_given(&command->wants[0], "cus"));
	CHECK(PARSE(command, "--streams=-1") == -EINVAL && says(command, "0 to 1024"));
	CHECK(PARSE(command, "--wait=1w") == -EINVAL && says(command, "2h"));
}

TEST(bytes_take_a_suffix_and_do_not_overflow)
{
	uint64_t bytes = 7;

	CHECK(number_parse_bytes("512M", &bytes) == 0 && bytes == UINT64_C(512) << 20);
	CHECK(number_parse_bytes("3K", &bytes) == 0 && bytes == 3072);
	CHECK(number_parse_bytes("1T", &bytes) == 0 && bytes == UINT64_C(1) << 40);
	CHECK(number_parse_bytes("18446744073709551615", &bytes) == 0 && bytes == UINT64_MAX);
	CHECK(number_parse_bytes("18446744073709551616", &bytes) == -ERANGE && bytes == UINT64_MAX);
	CHECK(number_parse_bytes("16777216T", &bytes) == -ERANGE);
	CHECK(number_parse_bytes("1k", &bytes) == 0 && bytes == 1024);
	CHECK(number_parse_bytes("1GB", &bytes) == -EINVAL);
	CHECK(number_parse_bytes("G", &bytes) == -EINVAL);
	CHECK(number_parse_bytes("", &bytes) == -EINVAL);
}

TEST_WITH(an_invalid_word_lists_the_valid_ones, struct command *command)
{
	CHECK(PARSE(command, "--priority=urgent") == -EINVAL && says(command, "normal"));
	CHECK(PARSE(command, "--priority=16") == -EINVAL && says(command, "0 to 15"));
	CHECK(PARSE(command, "--class=rt") == -EINVAL && says(command, "realtime"));
	CHECK(PARSE(command, "--isolation=none") == -EINVAL && says(command, "shader-engine"));
	CHECK(PARSE(command, "--shape=round") == -EINVAL && says(command, "rectangle"));
	CHECK(PARSE(command, "--name=") == -EINVAL && says(command, "--name"));
	CHECK(PARSE(command, "--gpu=") == -EINVAL && says(command, "PCI"));
}

TEST_WITH(an_unknown_option_suggests_the_nearest, struct command *command)
{
	CHECK(PARSE(command, "--queue=3") == -EINVAL);
	CHECK(says(command, "--queue=3") && says(command, "--queues?"));
	CHECK(PARSE(command, "-x") == -EINVAL && says(command, "-x"));
	CHECK(PARSE(command, "--xyzzyxyzzyxyzzyxyzzyxyzzyxyzzyxyzzyxyzzy") == -EINVAL);
}

TEST_WITH(an_option_of_another_verb_is_unknown_here, struct command *command)
{
	char *words[] = { "--cus=3", NULL };

	CHECK(parse(command, OPTIONS_GENERAL, false, words) == -EINVAL);
}

TEST_WITH(a_flag_takes_no_value_and_an_option_needs_its_own, struct command *command)
{
	CHECK(PARSE(command, "--json=yes") == -EINVAL && says(command, "--json=yes"));
	CHECK(PARSE(command, "--cus") == -EINVAL && says(command, "--cus"));
}

TEST_WITH(options_and_words_may_be_mixed, struct command *command)
{
	CHECK(PARSE(command, "17", "--json", "-", "--cus=3", "x") == 0);
	CHECK(command->json && command->wants[0].want.cus == 3 && command->n_rest == 3);
	CHECK(strcmp(command->rest[0], "17") == 0 && strcmp(command->rest[1], "-") == 0);
	CHECK(strcmp(command->rest[2], "x") == 0 && command->rest[3] == NULL);
}

TEST_WITH(a_command_keeps_its_own_options, struct command *command)
{
	CHECK(PARSE_RUN(command, "--cus=3", "--", "app", "--cus=4", "--") == 0);
	CHECK(command->wants[0].want.cus == 3 && command->n_rest == 3);
	CHECK(strcmp(command->rest[0], "app") == 0 && strcmp(command->rest[2], "--") == 0);
	CHECK(command->rest[3] == NULL);

	CHECK(PARSE_RUN(command, "--json", "app", "--help") == 0);
	CHECK(!command->help && command->n_rest == 2);
}

TEST(the_table_describes_each_option_of_a_group)
{
	const char *help;
	char option[40];
	size_t n = 0;

	while (option_describe(OPTIONS_LEASE, n, option, sizeof(option), &help))
		n++;
	CHECK(n == 9 && strcmp(option, "--duration=TIME") == 0 && *help);
	CHECK(option_describe(OPTIONS_WANT, 1, option, sizeof(option), &help));
	CHECK(strcmp(option, "--cus=N|N%") == 0);
}
