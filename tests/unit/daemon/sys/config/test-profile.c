/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/config/profile.h"

#include <errno.h>

#include "check.h"
#include "scratch.h"

/* A valid profile, one key per line; tests replace a line. */
static const char *const good[] = {
	"device = Test",
	"gfx-target = 100300",
	"shader-engines = 4",
	"shader-arrays = 2",
	"cus-per-array = 10",
	"cus = 72",
	"wgp = yes",
	"queue-slots = 8",
	"process-slots = 8",
	"pipes = 4",
	"queues-per-pipe = 4",
	"sdma-queues = 16",
	"vram = 32G",
	"scheduler = hws",
	"law = assumed",
	"harvest = assumed",
	NULL,
};

static size_t key_length(const char *line)
{
	return strcspn(line, " =");
}

/* Whether two lines set the same key. */
static bool same_key(const char *a, const char *b)
{
	return key_length(a) == key_length(b) && strncmp(a, b, key_length(a)) == 0;
}

/* Writes test.conf: the valid profile with `line` in the place of the line with the same key (or
 * added), and without `dropped`. */
static void write_profile(const struct scratch *scratch, const char *line, const char *dropped)
{
	char text[2048] = "[gpu]\n";
	bool placed = !line;

	for (size_t i = 0; good[i]; i++) {
		bool swap = line && same_key(line, good[i]);

		if (dropped && same_key(dropped, good[i]))
			continue;
		strcat(strcat(text, swap ? line : good[i]), "\n");
		placed |= swap;
	}
	if (!placed)
		strcat(strcat(text, line), "\n");
	scratch_write(scratch, "test.conf", text);
}

static bool reported(const struct diagnostics *diagnostics, const char *words)
{
	for (size_t i = 0; i < diagnostics->n; i++)
		if (diagnostics->list[i].error && strstr(diagnostics->list[i].text, words))
			return true;
	for (size_t i = 0; i < diagnostics->n; i++)
		fprintf(stderr, "diagnostic: %s\n", diagnostics->list[i].text);
	return false;
}

/* Loads the valid profile with this change. */
static int load(const char *line, const char *dropped, struct profile *ret,
		struct diagnostics *diagnostics)
{
	struct scratch scratch = scratch_new();
	int r;

	write_profile(&scratch, line, dropped);
	r = profile_load(scratch.path, "test", ret, diagnostics);
	scratch_done(&scratch);
	return r;
}

/* Whether the profile is refused with these words, and *ret is unchanged. */
static bool refused(const char *line, const char *dropped, const char *words)
{
	struct profile profile = { .partitions = 77 };
	struct diagnostics diagnostics = { 0 };
	bool ok;

	ok = load(line, dropped, &profile, &diagnostics) == -EINVAL &&
	     reported(&diagnostics, words) && profile.partitions == 77;
	diagnostics_done(&diagnostics);
	return ok;
}

static bool loads(const char *line, const char *dropped, struct profile *ret)
{
	struct diagnostics diagnostics = { 0 };
	bool ok = load(line, dropped, ret, &diagnostics) == 0 && diagnostics.n == 0;

	diagnostics_done(&diagnostics);
	return ok;
}

/* Whether this text is refused as a profile, with diagnostics that have all of these words. */
static bool text_refused(const char *text, const char *const words[static 3])
{
	struct scratch scratch = scratch_new();
	struct diagnostics diagnostics = { 0 };
	struct profile profile;
	bool ok;

	scratch_write(&scratch, "test.conf", text);
	ok = profile_load(scratch.path, "test", &profile, &diagnostics) == -EINVAL;
	for (size_t i = 0; i < 3; i++)
		ok = ok && reported(&diagnostics, words[i]);
	diagnostics_done(&diagnostics);
	scratch_done(&scratch);
	return ok;
}

TEST(profile_keys_are_stored_in_their_fields)
{
	struct profile profile;

	CHECK(loads(NULL, NULL, &profile));
	CHECK(profile.info.name[0] == '\0' && profile.info.kfd_gpu_id == 0);
	CHECK(strcmp(profile.info.device, "Test") == 0);
	CHECK(profile.info.gfx_target == 100300);
	CHECK(profile.info.geometry.xccs == 1 && profile.info.geometry.engines == 4);
	CHECK(profile.info.geometry.arrays == 2 && profile.info.geometry.array_cus == 10);
	CHECK(profile.info.geometry.wgp && geometry_cus(&profile.info.geometry) == 72);
	CHECK(profile.info.queue_slots == 8 && profile.info.process_slots == 8);
	CHECK(profile.info.pipes == 4 && profile.info.queues_per_pipe == 4);
	CHECK(profile.info.sdma_queues == 16 && profile.info.sdma_xgmi_queues == 0);
	CHECK(profile.info.vram_bytes == UINT64_C(32) << 30);
	CHECK(profile.info.scheduler == SCHEDULER_HWS);
	CHECK(profile.info.law.basis == LAW_ASSUMED && !profile.info.harvest_known);
	CHECK(profile.info.reserve_queues == 0 && profile.partitions == 1);
}

TEST(optional_keys_override_their_defaults)
{
	struct profile profile;

	CHECK(loads("reserve-queues = 3", NULL, &profile) && profile.info.reserve_queues == 3);
	CHECK(loads("partitions = 8", NULL, &profile) && profile.partitions == 8);
	CHECK(loads("law = measured", NULL, &profile) && profile.info.law.basis == LAW_MEASURED);
	CHECK(loads("harvest = known", NULL, &profile) && profile.info.harvest_known);
	CHECK(loads("sdma-xgmi-queues = 24", NULL, &profile));
	CHECK(profile.info.sdma_xgmi_queues == 24);
	CHECK(loads("scheduler = mes", NULL, &profile) && profile.info.scheduler == SCHEDULER_MES);
}

TEST(harvest_map_is_in_order_of_engine_and_array)
{
	struct profile profile;

	CHECK(loads("active = 10 8, 6,4 10 10 0 2", "cus", &profile));
	CHECK(profile.info.geometry.active[0][0][0] == 10);
	CHECK(profile.info.geometry.active[0][0][1] == 8);
	CHECK(profile.info.geometry.active[0][1][0] == 6);
	CHECK(profile.info.geometry.active[0][1][1] == 4);
	CHECK(profile.info.geometry.active[0][3][0] == 0);
	CHECK(profile.info.geometry.active[0][3][1] == 2);
}

TEST(unknown_key_is_refused_with_the_nearest_one)
{
	CHECK(refused("queue-slot = 8", NULL, "key 'queue-slot' in [gpu]"));
	CHECK(refused("zzzzzzzz = 8", NULL, "key 'zzzzzzzz'"));
}

TEST(every_missing_key_is_reported)
{
	char words[64];

	for (size_t i = 0; good[i]; i++) {
		if (same_key(good[i], "cus"))
			continue;
		snprintf(words, sizeof(words), "missing key '%.*s'", (int)key_length(good[i]),
			 good[i]);
		CHECK(refused(NULL, good[i], words));
	}
	CHECK(refused(NULL, "cus", "key 'cus' or 'active'"));
}

TEST(invalid_number_is_refused)
{
	static const char *const keys[] = {
		"gfx-target",       "xccs",           "shader-engines",
		"shader-arrays",    "cus-per-array",  "cus",
		"queue-slots",      "process-slots",  "pipes",
		"queues-per-pipe",  "partitions",     "sdma-queues",
		"sdma-xgmi-queues", "reserve-queues", "vram",
	};
	static const char *const values[] = {
		"-1",
		"99999999999999999999999",
		"4294967297000000",
		"eight",
		"",
		"0x10",
		"8 8",
		"1.5",
		"0",
	};
	char line[80];

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		for (size_t j = 0; j < sizeof(values) / sizeof(values[0]); j++) {
			bool may_be_zero = !strcmp(keys[i], "sdma-queues") ||
					   !strcmp(keys[i], "sdma-xgmi-queues") ||
					   !strcmp(keys[i], "reserve-queues");

			if (!strcmp(values[j], "0") && may_be_zero)
				continue;
			if (!strcmp(values[j], "4294967297000000") && !strcmp(keys[i], "vram"))
				continue;
			snprintf(line, sizeof(line), "%s = %s", keys[i], values[j]);
			CHECK(refused(line, NULL, keys[i]));
		}
}

TEST(unknown_word_is_refused)
{
	CHECK(refused("scheduler = fifo", NULL,
		      "scheduler: 'fifo' is not unknown, hws, hws-strict"));
	CHECK(refused("law = guessed", NULL, "law: 'guessed' is not assumed, derived or measured"));
	CHECK(refused("harvest = no", NULL, "harvest: 'no' is not assumed or known"));
	CHECK(refused("wgp = maybe", NULL, "wgp: 'maybe'"));
	CHECK(refused("vram = 16Q", NULL, "vram: '16Q'"));
	CHECK(refused("vram = 20000000T", NULL, "vram: '20000000T'"));
}

TEST(device_name_has_1_to_63_bytes)
{
	CHECK(refused("device =", NULL, "1 to 63 bytes"));
	CHECK(refused("device = 0123456789012345678901234567890123456789012345678901234567890123",
		      NULL, "1 to 63 bytes"));
}

TEST(cus_that_do_not_fit_the_geometry_are_refused)
{
	CHECK(refused("cus = 82", NULL, "test.conf:7: cus: 82 CUs"));
	CHECK(refused("cus = 71", NULL, "71 CUs"));
	CHECK(refused("xccs = 2", NULL, "72 CUs"));
}

TEST(harvest_map_that_does_not_fit_the_geometry_is_refused)
{
	CHECK(refused("active = 10 10 10", "cus", "1 XCCs x 4 engines"));
	CHECK(refused("active = 10 10 10 10 10 10 10 10 10", "cus", "active: 9 numbers"));
	CHECK(refused("active = 10 10 10 10 10 10 10 12", "cus", "12 CUs in XCC 0"));
	CHECK(refused("active = 10 10 10 10 10 10 10 9", "cus", "pairs"));
	CHECK(refused("active = 0 0 0 0 0 0 0 0", "cus", "CU"));
	CHECK(refused("active = 10 10 10 x 10 10 10 10", "cus", "active: 'x'"));
	CHECK(refused("active = 10 10 10 -2 10 10 10 10", "cus", "active: '-2'"));
	CHECK(refused("active = 10 10 10 10 10 10 10 10", NULL, "'cus'"));
}

TEST(contradicting_numbers_of_queues_are_refused)
{
	CHECK(refused("queue-slots = 17", NULL, "queue-slots: 17"));
	CHECK(refused("reserve-queues = 8", NULL, "reserve-queues: 8"));
}

TEST(key_outside_of_the_gpu_section_is_refused)
{
	static const char *const words[] = {
		"test.conf:1: 'device' is in section []",
		"test.conf:3: 'cores' is in section [cpu]",
		"the only section of a profile",
	};

	CHECK(text_refused("device = Early\n[cpu]\ncores = 4\n", words));
}

TEST(all_errors_are_reported_at_once)
{
	static const char *const words[] = {
		"test.conf:2: pipes",
		"test.conf:3: law",
		"test.conf:4: unknown key 'foo'",
	};

	CHECK(text_refused("[gpu]\npipes = 0\nlaw = x\nfoo = 1\n", words));
}

TEST(profile_name_that_is_a_path_is_refused)
{
	static const char *const names[] = {
		"", ".", "..", ".hidden", "../test", "a/b", "/etc/passwd", "a b", "a\n", "ä",
	};
	struct profile profile;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };

		CHECK(profile_load("/nonexistent", names[i], &profile, &diagnostics) == -EINVAL);
		CHECK(reported(&diagnostics, "profile"));
	}
}

TEST(missing_profile_is_reported_with_those_that_exist)
{
	struct scratch scratch = scratch_new();
	struct diagnostics diagnostics = { 0 };
	struct profile profile;

	write_profile(&scratch, NULL, NULL);
	scratch_write(&scratch, "other.conf", "");
	scratch_write(&scratch, "README", "");
	scratch_write(&scratch, ".conf", "");
	CHECK(profile_load(scratch.path, "radeon", &profile, &diagnostics) == -ENOENT);
	CHECK(reported(&diagnostics, "no GPU profile 'radeon' in"));
	CHECK(reported(&diagnostics, "available: other test"));
	scratch_done(&scratch);
	diagnostics_done(&diagnostics);

	CHECK(profile_load(scratch.path, "radeon", &profile, &diagnostics) == -ENOENT);
	CHECK(reported(&diagnostics, "available: none"));
	diagnostics_done(&diagnostics);
}

TEST(directory_in_the_place_of_a_profile_is_refused)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	struct profile profile;

	scratch_mkdir(&scratch, "test.conf");
	CHECK(profile_load(scratch.path, "test", &profile, &diagnostics) == -EINVAL);
	CHECK(reported(&diagnostics, "test.conf"));
}
