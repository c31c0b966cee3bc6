/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "check.h"
#include "kfd-rig.h"

#include "hw/hw.h"
#include "seed.h"

/* Every kind of GPU: the written values and the expected ones. */
static const struct kind {
	const char *what;
	unsigned target, xccs, engines, arrays, array_cus, cus;
	unsigned queue_slots, sdma_queues, sdma_xgmi_queues, process_slots, pipes, queues_per_pipe;
} kinds[] = {
	{ "Polaris10", 80003, 1, 4, 1, 9, 36, 24, 4, 0, 8, 4, 8 },
	{ "MI25", 90000, 1, 4, 1, 16, 64, 24, 4, 0, 8, 4, 8 },
	{ "Radeon VII", 90006, 1, 4, 1, 16, 60, 24, 16, 0, 8, 4, 8 },
	{ "MI100", 90008, 1, 8, 1, 16, 120, 24, 16, 48, 13, 4, 8 },
	{ "MI210", 90010, 1, 8, 1, 14, 104, 24, 16, 24, 13, 4, 8 },
	{ "MI250", 90010, 1, 8, 1, 14, 110, 24, 16, 24, 13, 4, 8 },
	{ "MI300A", 90402, 6, 4, 1, 10, 228, 24, 16, 80, 13, 4, 8 },
	{ "MI300X", 90402, 8, 4, 1, 10, 304, 24, 16, 112, 13, 4, 8 },
	{ "MI350X", 90500, 8, 4, 1, 9, 256, 24, 16, 112, 13, 4, 8 },
	{ "RX 6900 XT", 100300, 1, 4, 2, 10, 80, 8, 16, 0, 8, 4, 4 },
	{ "RX 6800", 100300, 1, 3, 2, 10, 60, 8, 16, 0, 8, 4, 4 },
	{ "RX 6800 XT", 100300, 1, 4, 2, 10, 72, 8, 16, 0, 8, 4, 4 },
	{ "RX 7900 XTX", 110000, 1, 6, 2, 8, 96, 8, 12, 0, 8, 4, 4 },
	{ "8060S", 110501, 1, 2, 2, 10, 40, 8, 6, 0, 8, 4, 4 },
	{ "8050S", 110501, 1, 2, 2, 8, 32, 8, 6, 0, 8, 4, 4 },
	{ "RX 9070 XT", 120001, 1, 4, 2, 8, 64, 4, 12, 0, 8, 2, 4 },
	{ "gfx1250", 120500, 8, 2, 2, 8, 256, 24, 16, 0, 8, 2, 4 },
	{ "RX 9070", 120001, 1, 4, 2, 8, 56, 4, 12, 0, 8, 2, 4 },
};

static struct gpu_info info_of(const struct kind *kind)
{
	return (struct gpu_info){
		.name = "0000:c3:00.0",
		.gfx_target = kind->target,
		.geometry = shape(kind->xccs, kind->engines, kind->arrays, kind->array_cus,
				  kind->target >= 100000 && kind->target != 120500, kind->cus),
		.queue_slots = kind->queue_slots,
		.sdma_queues = kind->sdma_queues,
		.sdma_xgmi_queues = kind->sdma_xgmi_queues,
		.vram_bytes = UINT64_C(24) << 30,
		.scheduler = kind->target >= 110000 ? SCHEDULER_MES : SCHEDULER_HWS,
	};
}

TEST(every_kind_of_gpu_is_read)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct kind *kind = &kinds[i];
		struct gpu_info info = info_of(kind), *gpu;
		_cleanup_(kfd_rig_end) struct rig rig;

		kfd_rig_start(&rig, &info, 1);
		CHECK(kfd_rig_list(&rig) == 1 && rig.diagnostics.n == 0);
		gpu = &rig.gpus[0];
		CHECK(memcmp(&gpu->geometry, &info.geometry, sizeof(info.geometry)) == 0);
		CHECK(strcmp(gpu->name, info.name) == 0 && gpu->kfd_gpu_id == 0x1000);
		CHECK(gpu->gfx_target == kind->target && gpu->harvest_known);
		CHECK(gpu->law.basis == law_of_target(kind->target).basis);
		CHECK(gpu->queue_slots == kind->queue_slots);
		CHECK(gpu->sdma_queues == kind->sdma_queues);
		CHECK(gpu->sdma_xgmi_queues == kind->sdma_xgmi_queues);
		CHECK(gpu->process_slots == kind->process_slots);
		CHECK(gpu->pipes == kind->pipes);
		CHECK(gpu->queues_per_pipe == kind->queues_per_pipe);
		CHECK(gpu->vram_bytes == info.vram_bytes && gpu->scheduler == info.scheduler);
	}
}

FIXTURE(struct rig, rig, , kfd_rig_end(rig));

TEST_WITH(gpu_of_an_unknown_generation_is_listed_with_a_warning, struct rig *rig)
{
	struct gpu_info info = kfd_radeon_vii();

	info.gfx_target = 130000;
	info.geometry = shape(1, 4, 2, 8, true, 64);
	kfd_rig_start(rig, &info, 1);
	CHECK(kfd_rig_list(rig) == 1 && rig->gpus[0].gfx_target == 130000);
	CHECK(rig->gpus[0].queue_slots == info.queue_slots);
	CHECK(rig->diagnostics.n == 1 && !rig->diagnostics.list[0].error);
	CHECK(kfd_rig_says(rig, "gfx_target_version", "130000"));
}

/* As drivers had it that came after this test. */
TEST_WITH(files_and_properties_that_are_unknown_are_ignored, struct rig *rig)
{
	struct gpu_info info = kfd_radeon_vii();
	struct gpu_info before;

	kfd_rig_start(rig, &info, 1);
	CHECK(kfd_rig_list(rig) == 1);
	before = rig->gpus[0];
	CHECK(fake_sysfs_set(rig->dir, NODE(1) "/properties", "capability2", "4294967295") == 0);
	CHECK(fake_sysfs_set(rig->dir, NODE(1) "/properties", "simd_count_of_tomorrow", "7") == 0);
	CHECK(fake_sysfs_set(rig->dir, NODE(1) "/properties", "a_list", "0x1f,2 three -4") == 0);
	CHECK(fake_sysfs_set(rig->dir, NODE(1) "/properties", "nothing", "") == 0);
	CHECK(fake_sysfs_set(rig->dir, NODE(1) "/caches/0/properties", "colour", "red") == 0);
	CHECK(fake_sysfs_print(rig->dir, NODE(1) "/tomorrow", "%s", "text without a number") == 0);
	CHECK(fake_sysfs_mkdir(rig->dir, NODE(1) "/caches/tomorrow") == 0);
	CHECK(kfd_rig_list(rig) == 1 && rig->diagnostics.n == 0);
	CHECK(memcmp(&rig->gpus[0], &before, sizeof(before)) == 0);
}

TEST_WITH(uneven_harvest_is_read_from_the_caches, struct rig *rig)
{
	static const uint8_t mi210[] = { 14, 14, 13, 13, 12, 13, 13, 12 };
	struct gpu_info info = info_of(&kinds[4]), spx = info_of(&kinds[7]);

	for (unsigned engine = 0; engine < 8; engine++)
		info.geometry.active[0][engine][0] = mi210[engine];
	kfd_rig_start(rig, &info, 1);
	CHECK(kfd_rig_list(rig) == 1 && rig->diagnostics.n == 0 && rig->gpus[0].harvest_known);
	CHECK(memcmp(&rig->gpus[0].geometry, &info.geometry, sizeof(info.geometry)) == 0);

	for (unsigned xcc = 0; xcc < 8; xcc++)
		for (unsigned engine = 0; engine < 4; engine++)
			spx.geometry.active[xcc][engine][0] = (xcc + engine) % 2 ? 9 : 10;
	CHECK(fake_sysfs_build(rig->dir, &spx, 1) == 0);
	CHECK(kfd_rig_list(rig) == 1 && rig->diagnostics.n == 0);
	CHECK(memcmp(&rig->gpus[0].geometry, &spx.geometry, sizeof(spx.geometry)) == 0);
}

TEST_WITH(random_harvests_are_read_from_the_caches, struct rig *rig)
{
	unsigned seed = seed_nth(SEED_OF_RUN("SEED"), 0);

	kfd_rig_start(rig, NULL, 0);
	for (unsigned turn = 0; turn < check_rounds(40, 400); turn++) {
		struct gpu_info info = info_of(&kinds[turn % ARRAY_SIZE(kinds)]);
		struct geometry *geometry = &info.geometry;
		unsigned step = geometry->wgp ? 2 : 1;

		if (geometry->wgp && geometry->engines > 4)
			continue;
		for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
			for (unsigned i = 0; i < geometry->engines * geometry->arrays; i++)
				geometry->active[xcc][i / geometry->arrays][i % geometry->arrays] =
					(uint8_t)((1 + (unsigned)rand_r(&seed) %
							       (geometry->array_cus / step)) *
						  step);
		CHECK(fake_sysfs_build(rig->dir, &info, 1) == 0);
		CHECK(kfd_rig_list(rig) == 1 && rig->diagnostics.n == 0 &&
		      rig->gpus[0].harvest_known);
		CHECK(memcmp(&rig->gpus[0].geometry, geometry, sizeof(*geometry)) == 0);
	}
}

TEST_WITH(partitions_of_one_device_are_separate_gpus, struct rig *rig)
{
	struct gpu_info infos[16];
	char name[GPU_NAME_MAX];

	for (unsigned i = 0; i < 16; i++)
		infos[i] = mi300x_cpx(i < 8 ? 0x9c : 3, i % 8);
	infos[5].geometry = shape(1, 4, 1, 10, false, 20); /* like an MI308X */
	kfd_rig_start(rig, infos, 16);
	CHECK(kfd_rig_list(rig) == 16 && rig->diagnostics.n == 0);
	for (unsigned i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "0000:%02x:00.0/%u", i < 8 ? 3U : 0x9c, i % 8);
		CHECK(strcmp(rig->gpus[i].name, name) == 0);
		CHECK(rig->gpus[i].process_slots == 6);
		CHECK(geometry_cus(&rig->gpus[i].geometry) == (i == 13 ? 20 : 38));
	}
}

TEST_WITH(partitions_of_one_card_share_the_memory_that_nps_leaves_in_one, struct rig *rig)
{
	static const struct {
		const char *mode;
		unsigned parts;
	} rows[] = {
		{ NULL, 1 }, { "NPS1\n", 1 }, { "NPS4\n", 4 }, { "NPS3\n", 1 }, { "NPS0\n", 1 }
	};
	struct gpu_info infos[8];

	for (unsigned i = 0; i < 8; i++)
		infos[i] = mi300x_cpx(3, i);
	kfd_rig_start(rig, infos, 8);
	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		if (rows[k].mode)
			CHECK(fake_sysfs_print(
				      rig->dir,
				      "bus/pci/devices/0000:03:00.0/current_memory_partition", "%s",
				      rows[k].mode) == 0);
		CHECK(kfd_rig_list(rig) == 8);
		for (unsigned i = 0; i < 8; i++)
			CHECK(gpu_info_share_memory(&rig->gpus[0], &rig->gpus[i]) ==
			      (i * rows[k].parts / 8 == 0));
	}
}

TEST(partition_with_two_or_four_xccs_has_all_process_slots)
{
	struct gpu_info infos[4];
	struct rig rig;

	for (unsigned n = 2; n <= 4; n += 2) {
		for (unsigned i = 0; i < n; i++) {
			infos[i] = mi300x_cpx(3, i);
			infos[i].geometry = shape(8 / n, 4, 1, 10, false, 304 / n);
		}
		kfd_rig_start(&rig, infos, n);
		CHECK(kfd_rig_list(&rig) == (int)n && rig.diagnostics.n == 0);
		CHECK(strcmp(rig.gpus[1].name, "0000:03:00.0/1") == 0);
		CHECK(rig.gpus[1].process_slots == 13);
		kfd_rig_end(&rig);
	}
}

TEST_WITH(partition_number_may_be_in_the_top_bits_of_location_id, struct rig *rig)
{
	struct gpu_info infos[2] = { mi300x_cpx(3, 0), mi300x_cpx(3, 0) };

	kfd_rig_start(rig, infos, 2);
	CHECK(fake_sysfs_set(rig->dir, NODE(2) "/properties", "location_id", "1610613504") == 0);
	CHECK(kfd_rig_list(rig) == 2 && rig->diagnostics.n == 0);
	CHECK(strcmp(rig->gpus[0].name, "0000:03:00.0/0") == 0);
	CHECK(strcmp(rig->gpus[1].name, "0000:03:00.0/6") == 0);
}

TEST_WITH(functions_with_all_xccs_of_a_card_are_no_partitions, struct rig *rig)
{
	struct gpu_info infos[3] = { mi300x_cpx(3, 0), mi300x_cpx(3, 1), mi300x_cpx(3, 2) };
	static const char *const names[] = { "0000:03:00.0", "0000:03:00.1", "0000:03:00.2" };

	for (size_t i = 0; i < 3; i++)
		infos[i].geometry = shape(8, 4, 1, 10, false, 304);
	kfd_rig_start(rig, infos, 3);
	CHECK(kfd_rig_list(rig) == 3 && rig->diagnostics.n == 0);
	for (size_t i = 0; i < 3; i++)
		CHECK(strcmp(rig->gpus[i].name, names[i]) == 0);
	kfd_rig_end(rig);

	/* The only one that is visible. */
	kfd_rig_start(rig, &infos[2], 1);
	CHECK(kfd_rig_list(rig) == 1 && strcmp(rig->gpus[0].name, names[2]) == 0);
}

TEST_WITH(single_visible_partition_is_a_partition, struct rig *rig)
{
	struct gpu_info info = mi300x_cpx(3, 5);

	kfd_rig_start(rig, &info, 1);
	CHECK(kfd_rig_list(rig) == 1);
	CHECK(strcmp(rig->gpus[0].name, "0000:03:00.0/5") == 0);
	CHECK(rig->gpus[0].process_slots == 6);
}

TEST_WITH(function_and_domain_of_other_gpus_are_kept, struct rig *rig)
{
	struct gpu_info infos[3] = { kfd_radeon_vii(), kfd_radeon_vii(), kfd_radeon_vii() };

	strcpy(infos[0].name, "10000:e1:1f.1");
	strcpy(infos[1].name, "0000:05:00.1");
	strcpy(infos[2].name, "0000:05:00.0");
	kfd_rig_start(rig, infos, 3);
	CHECK(kfd_rig_list(rig) == 3 && rig->diagnostics.n == 0);
	CHECK(strcmp(rig->gpus[0].name, "0000:05:00.0") == 0);
	CHECK(strcmp(rig->gpus[1].name, "0000:05:00.1") == 0);
	CHECK(strcmp(rig->gpus[2].name, "10000:e1:1f.1") == 0);
}

TEST_WITH(short_array_of_gpus_returns_the_full_number, struct rig *rig)
{
	struct gpu_info infos[2] = { kfd_radeon_vii(), info_of(&kinds[15]) }, one;

	kfd_rig_start(rig, infos, 2);
	CHECK(kfd_rig_list(rig) == 2 && rig->diagnostics.n == 0);
	CHECK(strcmp(rig->gpus[0].device, "vega20 (1002:66af)") == 0);
	CHECK(strcmp(rig->gpus[1].device, "gfx1201 (1002:7550)") == 0);
	CHECK(hw_list(rig->hw, &one, 1, &rig->diagnostics) == 2);
	CHECK(strcmp(one.name, "0000:03:00.0") == 0);
	CHECK(hw_list(rig->hw, NULL, 0, &rig->diagnostics) == 2);
}

TEST(scheduler_and_process_limit_are_read_from_module_parameters)
{
	static const enum scheduler policies[] = {
		SCHEDULER_HWS,
		SCHEDULER_HWS_STRICT,
		SCHEDULER_NONE,
	};
	struct gpu_info infos[2] = { kfd_radeon_vii(), info_of(&kinds[15]) };
	struct rig rig;

	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		infos[0].scheduler = policies[i];
		kfd_rig_start(&rig, infos, 2);
		CHECK(kfd_rig_list(&rig) == 2 && rig.gpus[0].scheduler == policies[i]);
		CHECK(rig.gpus[1].scheduler == SCHEDULER_MES);
		CHECK(fake_sysfs_print(rig.dir, FAKE_PARAMETERS "/hws_max_conc_proc", "%zu\n",
				       i * 10) == 0);
		CHECK(kfd_rig_list(&rig) == 2 && rig.diagnostics.n == 0);
		CHECK(rig.gpus[0].process_slots == (i == 0 ? 1 : 8));
		CHECK(rig.gpus[1].process_slots == 8);
		kfd_rig_end(&rig);
	}
}

TEST_WITH(preemption_timeout_is_read, struct rig *rig)
{
	struct gpu_info infos[2] = { kfd_radeon_vii(), info_of(&kinds[15]) };

	kfd_rig_start(rig, infos, 2);
	CHECK(kfd_rig_list(rig) == 2 && rig->gpus[0].preemption_msec == 9000);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PARAMETERS "/queue_preemption_timeout_ms",
			       "8000\n") == 0);
	CHECK(kfd_rig_list(rig) == 2 && rig->diagnostics.n == 0);
	CHECK(rig->gpus[0].preemption_msec == 8000 && rig->gpus[1].preemption_msec == 8000);
	CHECK(fake_sysfs_remove(rig->dir, FAKE_PARAMETERS "/queue_preemption_timeout_ms") == 0);
	CHECK(kfd_rig_list(rig) == 2 && rig->diagnostics.n == 0 &&
	      rig->gpus[0].preemption_msec == 0);
}

TEST_WITH(user_queues_of_drm_are_where_a_parameter_enables_them, struct rig *rig)
{
	static const char *const values[] = { NULL, "-1", "0", "1", "2" };
	struct gpu_info infos[] = { kfd_radeon_vii(), info_of(&kinds[15]), info_of(&kinds[15]) };

	infos[2].gfx_target = 110501;
	strcpy(infos[2].name, "0000:d3:00.0");
	kfd_rig_start(rig, infos, 3);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		const char *gaps[GPU_GAPS];

		if (values[i])
			CHECK(fake_sysfs_print(rig->dir, FAKE_PARAMETERS "/user_queue", "%s\n",
					       values[i]) == 0);
		CHECK(kfd_rig_list(rig) == 3 && rig->diagnostics.n == 0);
		CHECK(!rig->gpus[0].drm_queues && rig->gpus[1].drm_queues == (i > 2) &&
		      !rig->gpus[2].drm_queues);
		CHECK(gpu_info_gaps(&rig->gpus[1], gaps) == (i > 2 ? 6 : 5));
	}
}

TEST_WITH(vram_is_the_sum_of_both_heaps, struct rig *rig)
{
	struct gpu_info info = kfd_radeon_vii();

	kfd_rig_start(rig, &info, 1);
	CHECK(fake_sysfs_print(rig->dir, NODE(1) "/mem_banks/1/properties",
			       "heap_type 2\nsize_in_bytes 4096\n") == 0);
	CHECK(fake_sysfs_print(rig->dir, NODE(1) "/mem_banks/2/properties",
			       "heap_type 4\nsize_in_bytes 65536\n") == 0);
	CHECK(kfd_rig_list(rig) == 1 && rig->diagnostics.n == 0);
	CHECK(rig->gpus[0].vram_bytes == info.vram_bytes + 4096);
}

TEST_WITH(gpu_may_appear_on_a_machine_without_one, struct rig *rig)
{
	struct gpu_info info = kfd_radeon_vii();

	kfd_rig_start(rig, NULL, 0);
	CHECK(kfd_rig_list(rig) == 0 && rig->diagnostics.n == 0);
	CHECK(fake_sysfs_remove(rig->dir, "class") == 0);
	CHECK(kfd_rig_list(rig) == 0 && kfd_rig_says(rig, FAKE_TOPOLOGY, "loaded"));
	CHECK(!diagnostics_have_errors(&rig->diagnostics) && hw_uses(rig->hw, NULL, 0) == 0);
	CHECK(fake_sysfs_build(rig->dir, &info, 1) == 0);
	CHECK(kfd_rig_list(rig) == 1 && rig->diagnostics.n == 0);
}

TEST_WITH(generation_changes_with_the_gpus, struct rig *rig)
{
	struct gpu_info infos[2] = { kfd_radeon_vii(), kfd_radeon_vii() };
	uint64_t first, second;

	strcpy(infos[1].name, "0000:04:00.0");
	kfd_rig_start(rig, infos, 1);
	first = hw_generation(rig->hw);
	CHECK(first != UINT64_MAX && hw_generation(rig->hw) == first);
	CHECK(fake_sysfs_build(rig->dir, infos, 2) == 0);
	second = hw_generation(rig->hw);
	CHECK(second != UINT64_MAX && second != first);

	CHECK(fake_sysfs_write(rig->dir, FAKE_TOPOLOGY "/generation_id", "4294967295\n", 11) == 0);
	CHECK(hw_generation(rig->hw) != UINT64_MAX);
	CHECK(fake_sysfs_write(rig->dir, FAKE_TOPOLOGY "/generation_id", "4294967296\n", 11) == 0);
	CHECK(hw_generation(rig->hw) == UINT64_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(intruders); i++) {
		in_place_of(rig, FAKE_TOPOLOGY "/generation_id", intruders[i]);
		CHECK(hw_generation(rig->hw) == UINT64_MAX);
	}
	CHECK(fake_sysfs_remove(rig->dir, "class") == 0);
	CHECK(hw_generation(rig->hw) == UINT64_MAX); /* driver not loaded */
}

TEST_WITH(generation_changes_when_the_driver_is_reloaded, struct rig *rig)
{
	struct gpu_info info = kfd_radeon_vii();
	char topology[256], before[256];
	uint64_t first;

	kfd_rig_start(rig, &info, 1);
	first = hw_generation(rig->hw);
	put_path(rig, FAKE_TOPOLOGY, topology, sizeof(topology));
	put_path(rig, "before", before, sizeof(before));
	CHECK(rename(topology, before) == 0); /* keeps its inode from being reused */
	CHECK(fake_sysfs_build(rig->dir, &info, 1) == 0);
	CHECK(kfd_rig_list(rig) == 1 && hw_generation(rig->hw) != first);
	CHECK(fake_sysfs_remove(rig->dir, FAKE_TOPOLOGY) == 0);
	CHECK(rename(before, topology) == 0 && hw_generation(rig->hw) == first);
}

TEST(sysfs_that_is_no_directory_is_refused)
{
	char longer[700];
	struct diagnostics diagnostics = { 0 };
	struct hw *hw = NULL;

	CHECK(hw_kfd_open("/nonexistent/sys", &hw, &diagnostics) == -ENOENT && !hw);
	CHECK(diagnostics.n == 1 && strstr(diagnostics.list[0].text, "/nonexistent/sys"));
	CHECK(hw_kfd_open("/etc/passwd", &hw, &diagnostics) == -ENOTDIR && !hw);
	for (size_t i = 0; i + 1 < sizeof(longer); i++)
		longer[i] = i % 2 ? '.' : '/';
	longer[sizeof(longer) - 1] = '\0';
	CHECK(hw_kfd_open(longer, &hw, &diagnostics) == -ENAMETOOLONG && !hw);
	diagnostics_done(&diagnostics);
	hw_close(NULL);

	CHECK(hw_kfd_open("/sys", &hw, &diagnostics) == 0); /* the real /sys of this machine */
	hw_close(hw);
	diagnostics_done(&diagnostics);
}

/* What an APU may have: sizes as owners of these machines report them. */
TEST(the_memory_of_an_apu_is_what_a_program_can_allocate)
{
	static const struct {
		const char *what;
		uint64_t bank, set_aside, gtt,
			bytes; /* in MiB; set_aside and gtt 0: no such file */
		bool system;
	} table[] = {
		{ "a card", 24576, 24576, 64000, 24576, false },
		{ "an old driver", 24576, 0, 64000, 24576, false },
		{ "Strix Halo, 512 MiB set aside", 63000, 512, 63000, 63000, true },
		{ "the same with ttm.pages_limit raised above gttsize", 110000, 512, 63000, 63000,
		  true },
		{ "Strix Halo, 96 GiB set aside", 98304, 98304, 15800, 98304, false },
		{ "780M, 4 GiB set aside, before Linux 6.10", 4096, 4096, 14000, 4096, false },
		{ "780M, 512 MiB set aside", 14000, 512, 14000, 14000, true },
		{ "no file for GTT", 14000, 512, 0, 14000, true },
		{ "more set aside than there is memory", 512, 1 << 30, 14000, 512, false },
	};
	const char *device = "bus/pci/devices/0000:c3:00.0";

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct gpu_info info = info_of(&kinds[13]);
		char path[96];
		_cleanup_(kfd_rig_end) struct rig rig;

		info.vram_bytes = table[i].bank << 20;
		kfd_rig_start(&rig, &info, 1);
		snprintf(path, sizeof(path), "%s/mem_info_vram_total", device);
		if (table[i].set_aside)
			CHECK(fake_sysfs_print(rig.dir, path, "%llu\n",
					       (unsigned long long)table[i].set_aside << 20) == 0);
		snprintf(path, sizeof(path), "%s/mem_info_gtt_total", device);
		if (table[i].gtt)
			CHECK(fake_sysfs_print(rig.dir, path, "%llu\n",
					       (unsigned long long)table[i].gtt << 20) == 0);
		CHECK(kfd_rig_list(&rig) == 1);
		if (rig.gpus[0].vram_bytes != table[i].bytes << 20)
			fprintf(stderr, "%s: %llu bytes\n", table[i].what,
				(unsigned long long)rig.gpus[0].vram_bytes);
		CHECK(rig.gpus[0].vram_bytes == table[i].bytes << 20);
		CHECK(rig.gpus[0].system_memory == table[i].system);
	}
}
