/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The shipped GPU profiles: conf/gpus in $GPUARB_SOURCE_ROOT. */

#include <dirent.h>

#include "core/mask/codec.h"
#include "sys/config/profile.h"

#include "check.h"

/* What every shipped profile must fulfil. */
static void check_shipped(const char *dir, const char *name)
{
	uint32_t mask[CODEC_WORDS];
	struct diagnostics diagnostics = { 0 };
	struct profile profile;
	struct cuset all;
	struct codec codec;

	printf("  %s\n", name);
	CHECK(profile_load(dir, name, &profile, &diagnostics) == 0 && diagnostics.n == 0);
	CHECK(geometry_check(&profile.info.geometry, NULL, 0) == 0);
	CHECK(profile.info.geometry.wgp == (profile.info.gfx_target >= 100000));
	CHECK(profile.info.law.basis == law_of_target(profile.info.gfx_target).basis);
	CHECK((profile.info.scheduler == SCHEDULER_MES) == (profile.info.gfx_target >= 110000));

	/* A mask can reach every CU. */
	geometry_all(&profile.info.geometry, &all);
	codec_init(&codec, &profile.info.geometry);
	codec_encode(&codec, &all, mask);
	codec_decode(&codec, mask, codec_words(&codec), &all);
	CHECK(cuset_count(&all) == geometry_cus(&profile.info.geometry));
}

TEST(every_shipped_profile_loads)
{
	static const char *const expected[] = {
		"mi100",       "mi210",      "mi250",    "mi300a",   "mi300x-cpx", "mi300x-spx",
		"mi308x",      "mi325x",     "mi350x",   "mi355x",   "polaris10",  "r9700",
		"radeon-780m", "radeon-vii", "rx6900xt", "rx7800xt", "rx7900xtx",  "rx9070xt",
		"strix-halo",  "v620",       "vega10",
	};
	const char *root = getenv("GPUARB_SOURCE_ROOT");
	struct dirent **list = NULL;
	char dir[4096];
	int n, shipped = 0;

	if (!root)
		SKIP("GPUARB_SOURCE_ROOT does not say where conf/gpus is");
	snprintf(dir, sizeof(dir), "%s/conf/gpus", root);
	n = scandir(dir, &list, NULL, alphasort);
	CHECK(n > 0);
	for (int i = 0; i < n; i++) {
		char *suffix = strstr(list[i]->d_name, ".conf");

		if (suffix) {
			*suffix = '\0';
			CHECK((size_t)shipped < sizeof(expected) / sizeof(expected[0]));
			CHECK(strcmp(list[i]->d_name, expected[shipped++]) == 0);
			check_shipped(dir, list[i]->d_name);
		}
		free(list[i]);
	}
	free(list);
	CHECK((size_t)shipped == sizeof(expected) / sizeof(expected[0]));
}

TEST(shipped_profiles_have_the_numbers_of_their_cards)
{
	static const struct {
		const char *name;
		unsigned cus, queue_slots, process_slots, sdma_queues, sdma_xgmi_queues, reserve,
			partitions;
	} rows[] = {
		{ "radeon-vii", 60, 24, 8, 16, 0, 0, 1 },
		{ "polaris10", 36, 24, 8, 4, 0, 0, 1 },
		{ "vega10", 64, 24, 8, 4, 0, 0, 1 },
		{ "mi100", 120, 24, 13, 16, 48, 0, 1 },
		{ "mi210", 104, 24, 13, 16, 24, 0, 1 },
		{ "mi250", 104, 24, 13, 16, 24, 3, 1 },
		{ "mi300a", 228, 24, 13, 16, 80, 0, 1 },
		{ "radeon-780m", 12, 8, 8, 6, 0, 0, 1 },
		{ "mi300x-spx", 304, 24, 13, 16, 112, 0, 1 },
		{ "mi308x", 80, 24, 13, 16, 112, 0, 1 },
		{ "mi325x", 304, 24, 13, 16, 112, 0, 1 },
		{ "mi350x", 256, 24, 13, 16, 112, 0, 1 },
		{ "mi355x", 256, 24, 13, 16, 112, 0, 1 },
		{ "mi300x-cpx", 38, 24, 6, 16, 0, 0, 8 },
		{ "v620", 72, 8, 8, 16, 0, 0, 1 },
		{ "rx6900xt", 80, 8, 8, 16, 0, 0, 1 },
		{ "rx7900xtx", 96, 8, 8, 12, 0, 0, 1 },
		{ "rx7800xt", 60, 8, 8, 12, 0, 0, 1 },
		{ "r9700", 64, 4, 8, 12, 0, 0, 1 },
		{ "strix-halo", 40, 8, 8, 6, 0, 0, 1 },
		{ "rx9070xt", 64, 4, 8, 12, 0, 0, 1 },
	};
	const char *root = getenv("GPUARB_SOURCE_ROOT");
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	struct profile profile;
	char dir[4096];

	if (!root)
		SKIP("GPUARB_SOURCE_ROOT does not say where conf/gpus is");
	snprintf(dir, sizeof(dir), "%s/conf/gpus", root);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK(profile_load(dir, rows[i].name, &profile, &diagnostics) == 0);
		CHECK(geometry_cus(&profile.info.geometry) == rows[i].cus);
		CHECK(profile.info.queue_slots == rows[i].queue_slots);
		CHECK(profile.info.process_slots == rows[i].process_slots);
		CHECK(profile.info.sdma_queues == rows[i].sdma_queues);
		CHECK(profile.info.sdma_xgmi_queues == rows[i].sdma_xgmi_queues);
		CHECK(profile.info.reserve_queues == rows[i].reserve);
		CHECK(profile.partitions == rows[i].partitions);
	}
}
