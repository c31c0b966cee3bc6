/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "check.h"
#include "kfd-rig.h"

#include "hw/kfd-read.h"
#include "hw/hw-private.h"

#define PROPERTIES NODE(1) "/properties"

TEST(engine_without_cus_is_accepted)
{
	struct gpu_info info = kfd_radeon_vii();
	_cleanup_(kfd_rig_end) struct rig rig;

	info.geometry.active[0][2][0] = 0;
	kfd_rig_start(&rig, &info, 1);
	CHECK(kfd_rig_list(&rig) == 1 && rig.diagnostics.n == 0);
	CHECK(geometry_engine_cus(&rig.gpus[0].geometry, 0, 2) == 0);
	CHECK(geometry_cus(&rig.gpus[0].geometry) == 45);
}

TEST(harvest_on_six_engines_of_gfx11_is_assumed_with_a_warning)
{
	struct gpu_info info = kfd_radeon_vii();
	_cleanup_(kfd_rig_end) struct rig rig;

	info.gfx_target = 110000; /* an RX 7900 XT */
	info.geometry = shape(1, 6, 2, 8, true, 84);
	kfd_rig_start(&rig, &info, 1);
	CHECK(kfd_rig_list(&rig) == 1 && !rig.gpus[0].harvest_known);
	CHECK(geometry_cus(&rig.gpus[0].geometry) == 84);
	CHECK(kfd_rig_says(&rig, NODE(1) "/caches", "84 CUs") &&
	      !diagnostics_have_errors(&rig.diagnostics));
}

static void write_map(const struct rig *rig, const char *text)
{
	char path[600];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u", rig->hw->maps, rig->gpus[0].kfd_gpu_id);
	file = fopen(path, "we");
	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

TEST(harvest_that_the_caches_do_not_show_is_read_from_a_map)
{
	static const char *const wrong[] = {
		"",
		"8 8 8 6 6 6 8 8 8 6 6", /* of one array less */
		"8 8 8 6 6 6 8 8 8 6 6 6 0",
		"8 8 8 6 6 6 8 8 8 6 6 8", /* 86 CUs */
		"8 8 8 6 6 6 8 8 8 6 5 7",
		"8 8 8 6 6 6 8 8 8 4 4 10",
		"8 8 8 6 6 6 8 8 8 6 six 6",
		"8 8 8 6 6 6 8 8 8 6 -6 6",
		"18446744073709551624 8 8 6 6 6 8 8 8 6 6 6",
	};
	struct gpu_info info = kfd_radeon_vii();
	_cleanup_(kfd_rig_end) struct rig rig;

	info.gfx_target = 110000;
	info.geometry = shape(1, 6, 2, 8, true, 84);
	kfd_rig_start(&rig, &info, 1);
	hw_kfd_set_maps(rig.hw, rig.dir);
	CHECK(kfd_rig_list(&rig) == 1 && rig.gpus[0].guessed);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		write_map(&rig, wrong[i]);
		CHECK(kfd_rig_list(&rig) == 1 && rig.gpus[0].guessed);
		CHECK(geometry_engine_cus(&rig.gpus[0].geometry, 0, 2) == 14);
		CHECK(kfd_rig_says(&rig, rig.dir, "evenly"));
	}
	write_map(&rig, "8 8 8 6 6 6 8 8 8 6 6 6 \n");
	CHECK(kfd_rig_list(&rig) == 1 && rig.gpus[0].harvest_known && !rig.gpus[0].guessed);
	CHECK(rig.diagnostics.n == 0 && geometry_engine_cus(&rig.gpus[0].geometry, 0, 2) == 12);
}

/* The harvest is assumed: the CUs are spread evenly, and the warning names the file. */
static void check_guessed(struct rig *rig, const char *file)
{
	check_degraded(rig, file);
	CHECK(!rig->gpus[0].harvest_known && rig->gpus[1].harvest_known);
	CHECK(geometry_cus(&rig->gpus[0].geometry) == 57);
	CHECK(geometry_engine_cus(&rig->gpus[0].geometry, 0, 1) == 14);
	CHECK(kfd_rig_says(rig, file, "57 CUs"));
}

TEST(unreadable_caches_make_the_harvest_assumed)
{
	_cleanup_(kfd_rig_end) struct rig rig;

	with_each_intruder(NODE(1) "/caches", check_guessed);
	with_each_intruder(NODE(1) "/caches/9/properties", check_guessed);
	start_two(&rig);
	CHECK(fake_sysfs_set(rig.dir, PROPERTIES, "simd_id_base", NULL) == 0);
	check_guessed(&rig, NODE(1) "/caches");
}

TEST(contradicting_caches_make_the_harvest_assumed)
{
	static const struct kfd_value wrong[] = {
		{ "level", NULL },
		{ "level", "one" },
		{ "processor_id_low", NULL },
		{ "processor_id_low", "12" },
		{ "processor_id_low", "4294967295" },
		{ "processor_id_low", "-5" },
		{ "sibling_map", NULL },
		{ "sibling_map", "2,0" },
		{ "sibling_map", "10" },
		{ "sibling_map", "1;0" },
		{ "sibling_map", "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1" },
		{ "sibling_map",
		  "1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1" },
	};
	struct rig rig;

	with_each_value(NODE(1) "/caches/9/properties", wrong, ARRAY_SIZE(wrong), check_guessed);
	start_two(&rig); /* one CU more than the GPU has */
	CHECK(fake_sysfs_set(rig.dir, NODE(1) "/caches/9/properties", "sibling_map", "1,1,1,1") ==
	      0);
	CHECK(fake_sysfs_set(rig.dir, NODE(1) "/caches/6/properties", "sibling_map", "1,1,1,1") ==
	      0);
	check_guessed(&rig, NODE(1) "/caches");
	CHECK(kfd_rig_says(&rig, NODE(1) "/caches", "has 5"));
	kfd_rig_end(&rig);
}

TEST(xcc_without_cus_in_the_caches_makes_the_harvest_assumed)
{
	struct gpu_info info = kfd_radeon_vii();
	_cleanup_(kfd_rig_end) struct rig rig;

	info.gfx_target = 90402;
	info.geometry = shape(2, 4, 1, 10, false, 76);
	memset(info.geometry.active[1], 0, sizeof(info.geometry.active[1]));
	kfd_rig_start(&rig, &info, 1);
	CHECK(kfd_rig_list(&rig) == 1 && !rig.gpus[0].harvest_known);
	CHECK(geometry_cus(&rig.gpus[0].geometry) == 38);
	CHECK(kfd_rig_says(&rig, NODE(1) "/caches", "XCC 1 has no CU"));
}

TEST(cus_that_only_the_bios_names_are_granted_all_or_none)
{
	struct gpu_info info = kfd_radeon_vii();
	_cleanup_(kfd_rig_end) struct rig rig;

	info.geometry = shape(1, 1, 1, 11, false, 11);
	kfd_rig_start(&rig, &info, 1);
	CHECK(kfd_rig_list(&rig) == 1 && !rig.gpus[0].whole_only);
	CHECK(fake_sysfs_set(rig.dir, PROPERTIES, "cpu_cores_count", "2") == 0);
	CHECK(kfd_rig_list(&rig) == 1 && rig.gpus[0].harvest_known && !rig.gpus[0].whole_only);
	for (unsigned i = 2; i < 32; i++) {
		char path[64];

		snprintf(path, sizeof(path), NODE(1) "/caches/%u", i);
		CHECK(fake_sysfs_remove(rig.dir, path) == 0);
	}
	CHECK(kfd_rig_list(&rig) == 1 && rig.gpus[0].whole_only && !rig.gpus[0].harvest_known);
	CHECK(kfd_rig_says(&rig, NODE(1) "/caches", "all CUs"));
	CHECK(fake_sysfs_set(rig.dir, PROPERTIES, "cpu_cores_count", "0") == 0);
	CHECK(kfd_rig_list(&rig) == 1 && !rig.gpus[0].whole_only);
}

TEST(reading_of_a_huge_directory_stops)
{
	_cleanup_(kfd_rig_end) struct rig rig;
	char path[256];

	start_two(&rig);
	for (unsigned i = 0; i <= KFD_ENTRIES; i++) {
		snprintf(path, sizeof(path), "%s/" NODE(1) "/caches/x%u", rig.dir, i);
		CHECK(symlink("x", path) == 0);
	}
	check_guessed(&rig, NODE(1) "/caches");
	CHECK(kfd_rig_says(&rig, NODE(1) "/caches", "many"));
}
