/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "check.h"
#include "kfd-rig.h"

#include "hw/kfd-read.h"

#define PROPERTIES NODE(1) "/properties"

/* Node 1 is left out with a diagnostic that names the file. */
static void check_left_out(struct rig *rig, const char *file)
{
	CHECK(kfd_rig_list(rig) == 1 && strcmp(rig->gpus[0].name, "0000:04:00.0") == 0);
	CHECK(kfd_rig_says(rig, file, "left") && diagnostics_have_errors(&rig->diagnostics));
}

TEST(invalid_properties_leave_the_gpu_out)
{
	with_each_intruder(PROPERTIES, check_left_out);
}

TEST(invalid_gpu_id_leaves_the_node_out)
{
	static const char *const values[] = { "-1\n", "0x10\n", "4294967296\n",
					      " 7\n", "7 8\n",  "99999999999999999999999\n" };
	struct rig rig;

	for (size_t i = 0; i < ARRAY_SIZE(intruders); i++) {
		start_two(&rig);
		in_place_of(&rig, NODE(1) "/gpu_id", intruders[i]);
		if (i > 0) {
			check_left_out(&rig, NODE(1) "/gpu_id");
		} else {
			/* A node without a GPU. */
			CHECK(kfd_rig_list(&rig) == 1 && rig.diagnostics.n == 0);
		}
		kfd_rig_end(&rig);
	}
	start_two(&rig);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		CHECK(fake_sysfs_print(rig.dir, NODE(1) "/gpu_id", "%s", values[i]) == 0);
		check_left_out(&rig, NODE(1) "/gpu_id");
	}
	kfd_rig_end(&rig);
}

static void check_unnamed(struct rig *rig, const char *)
{
	CHECK(kfd_rig_list(rig) == 2 && rig->diagnostics.n == 0);
	CHECK(strcmp(rig->gpus[0].device, "gfx906 (1002:66af)") == 0);
}

TEST(invalid_name_is_ignored)
{
	_cleanup_(kfd_rig_end) struct rig rig;

	with_each_intruder(NODE(1) "/name", check_unnamed);
	start_two(&rig);
	CHECK(fake_sysfs_print(rig.dir, NODE(1) "/name", "vega\x1b[1m\n") == 0);
	CHECK(fake_sysfs_set(rig.dir, PROPERTIES, "device_id", NULL) == 0);
	CHECK(kfd_rig_list(&rig) == 2 && strcmp(rig.gpus[0].device, "gfx906") == 0);
}

/* Keys with a value that no driver writes (NULL: the line is missing). */
static const struct kfd_value unbelievable[] = {
	{ "simd_count", NULL },
	{ "simd_count", "-240" },
	{ "simd_count", "24e1" },
	{ "simd_count", "18446744073709551616" },
	{ "simd_count", "4294967295" },
	{ "simd_count", "65536" },
	{ "simd_count", "260" },
	{ "simd_count", "241" },
	{ "simd_count", "" },
	{ "simd_count", "+240" },
	{ "simd_per_cu", NULL },
	{ "simd_per_cu", "0" },
	{ "array_count", NULL },
	{ "array_count", "0" },
	{ "array_count", "65536" },
	{ "simd_arrays_per_engine", NULL },
	{ "simd_arrays_per_engine", "0" },
	{ "simd_arrays_per_engine", "3" },
	{ "simd_arrays_per_engine", "4" },
	{ "cu_per_simd_array", NULL },
	{ "cu_per_simd_array", "0" },
	{ "cu_per_simd_array", "17" },
	{ "num_xcc", "0" },
	{ "num_xcc", "3" },
	{ "num_xcc", "65" },
	{ "gfx_target_version", NULL },
	{ "gfx_target_version", "0" },
	{ "gfx_target_version", "90006x" },
	{ "gfx_target_version", "1000000" },
	{ "location_id", NULL },
	{ "location_id", "4294967296" },
	{ "num_cp_queues", NULL },
	{ "num_cp_queues", "0" },
	{ "num_cp_queues", "999999" },
	{ "num_sdma_queues_per_engine", NULL },
	{ "num_sdma_engines", "257" },
	{ "vendor_id", "65536" },
	{ "gfx_target_version", "100300" }, /* 57 CUs are not WGPs */
};

TEST(impossible_number_leaves_the_gpu_out)
{
	with_each_value(PROPERTIES, unbelievable, ARRAY_SIZE(unbelievable), check_left_out);
}

TEST(several_xccs_with_wgps_are_refused)
{
	struct gpu_info info = kfd_radeon_vii();
	_cleanup_(kfd_rig_end) struct rig rig;

	info.gfx_target = 120000;
	info.geometry = shape(8, 4, 1, 10, false, 320);
	kfd_rig_start(&rig, &info, 1);
	CHECK(kfd_rig_list(&rig) == 0 && kfd_rig_says(&rig, PROPERTIES, "left"));
}

TEST(fewer_cus_than_xccs_leave_the_gpu_out)
{
	struct gpu_info info = kfd_radeon_vii();
	_cleanup_(kfd_rig_end) struct rig rig;

	info.gfx_target = 90402;
	info.geometry = shape(8, 4, 1, 10, false, 304);
	kfd_rig_start(&rig, &info, 1);
	CHECK(fake_sysfs_set(rig.dir, PROPERTIES, "simd_count", "28") == 0);
	CHECK(kfd_rig_list(&rig) == 0 && kfd_rig_says(&rig, PROPERTIES, "XCC 7 has no CU"));
}

TEST(partition_that_is_left_out_still_marks_the_others)
{
	struct gpu_info infos[2] = { mi300x_cpx(3, 0), mi300x_cpx(3, 1) };
	_cleanup_(kfd_rig_end) struct rig rig;

	kfd_rig_start(&rig, infos, 2);
	CHECK(fake_sysfs_set(rig.dir, NODE(2) "/properties", "simd_count", "3") == 0);
	CHECK(kfd_rig_list(&rig) == 1 && kfd_rig_says(&rig, NODE(2) "/properties", "left"));
	CHECK(strcmp(rig.gpus[0].name, "0000:03:00.0/0") == 0);
	CHECK(rig.gpus[0].process_slots == 6);
}

TEST(gpu_hidden_by_a_device_cgroup_is_reported)
{
	CHECK(strstr(kfd_trouble(-EPERM), "cgroup"));
}

FIXTURE(struct rig, rig, start_two(rig), kfd_rig_end(rig));

TEST_WITH(values_missing_in_old_drivers_are_those_of_a_single_xcc, struct rig *rig)
{
	CHECK(fake_sysfs_set(rig->dir, PROPERTIES, "num_xcc", NULL) == 0);
	CHECK(fake_sysfs_set(rig->dir, PROPERTIES, "domain", NULL) == 0);
	CHECK(kfd_rig_list(rig) == 2 && rig->diagnostics.n == 0);
	CHECK(rig->gpus[0].geometry.xccs == 1);
}

static void check_memory(struct rig *rig, const char *file)
{
	check_degraded(rig, file);
	CHECK(rig->gpus[0].vram_bytes == 0 && rig->gpus[1].vram_bytes > 0);
}

TEST_WITH(unreadable_memory_is_not_counted, struct rig *rig)
{
	with_each_intruder(NODE(1) "/mem_banks/0/properties", check_memory);
	CHECK(fake_sysfs_set(rig->dir, NODE(1) "/mem_banks/0/properties", "size_in_bytes",
			     "18446744073709551615") == 0);
	check_degraded(rig, NODE(1) "/mem_banks/0/properties");
	CHECK(fake_sysfs_remove(rig->dir, NODE(1) "/mem_banks") == 0);
	check_degraded(rig, NODE(1) "/mem_banks");
}

#define POLICY FAKE_PARAMETERS "/sched_policy"
#define LIMIT FAKE_PARAMETERS "/hws_max_conc_proc"

static void check_scheduler(struct rig *rig, const char *file)
{
	check_degraded(rig, file);
	CHECK((rig->gpus[0].scheduler == SCHEDULER_UNKNOWN) == (strcmp(file, POLICY) == 0));
	CHECK(rig->gpus[0].process_slots == 8);
}

TEST_WITH(unreadable_parameters_leave_the_scheduler_unknown, struct rig *rig)
{
	with_each_intruder(POLICY, check_scheduler);
	with_each_intruder(LIMIT, check_scheduler);
	CHECK(fake_sysfs_print(rig->dir, POLICY, "3\n") == 0);
	CHECK(fake_sysfs_print(rig->dir, LIMIT, "4294967296\n") == 0);
	check_degraded(rig, POLICY);
	check_degraded(rig, LIMIT);
}

TEST_WITH(invalid_preemption_timeout_becomes_the_default, struct rig *rig)
{
	static const char file[] = FAKE_PARAMETERS "/queue_preemption_timeout_ms";

	CHECK(fake_sysfs_print(rig->dir, file, "-1\n") == 0);
	check_degraded(rig, file);
	CHECK(rig->gpus[0].preemption_msec == 0);
}

TEST_WITH(second_node_with_the_same_identity_is_left_out, struct rig *rig)
{
	CHECK(fake_sysfs_print(rig->dir, NODE(2) "/gpu_id", "4096\n") == 0);
	CHECK(kfd_rig_list(rig) == 1 && strcmp(rig->gpus[0].name, "0000:03:00.0") == 0);
	CHECK(kfd_rig_says(rig, NODE(2) "/gpu_id", "0000:03:00.0"));

	CHECK(fake_sysfs_print(rig->dir, NODE(2) "/gpu_id", "4097\n") == 0);
	CHECK(fake_sysfs_set(rig->dir, NODE(2) "/properties", "location_id", "768") == 0);
	CHECK(kfd_rig_list(rig) == 1 && rig->gpus[0].kfd_gpu_id == 4096);
	CHECK(kfd_rig_says(rig, NODE(2) "/properties", "location_id"));
}

TEST_WITH(nodes_without_a_gpu_are_ignored, struct rig *rig)
{
	static const char *const names[] = { "power", "01", "1a", "-1", "4294967297", ".x" };
	char file[64];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(file, sizeof(file), FAKE_NODES "/%s/gpu_id", names[i]);
		CHECK(fake_sysfs_print(rig->dir, file, "77\n") == 0);
	}
	CHECK(fake_sysfs_print(rig->dir, NODE(3) "/gpu_id", "78\n") == 0); /* without SIMDs */
	CHECK(fake_sysfs_print(rig->dir, NODE(3) "/properties",
			       "simd_count 0\nsimd_per_cu 0\n"
			       "array_count 0\nsimd_arrays_per_engine 0\ncu_per_simd_array 0\n"
			       "location_id 0\n") == 0);
	CHECK(kfd_rig_list(rig) == 2 && rig->diagnostics.n == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_NODES "/4", "file") == 0);
	CHECK(kfd_rig_list(rig) == 2 && kfd_rig_says(rig, FAKE_NODES "/4", strerror(ENOTDIR)));
}

TEST_WITH(invalid_tree_is_an_error, struct rig *rig)
{
	char path[256];

	for (unsigned i = 3; i <= KFD_NODES; i++) {
		snprintf(path, sizeof(path), "%s/" FAKE_NODES "/%u", rig->dir, i);
		CHECK(mkdir(path, 0755) == 0);
	}
	CHECK(kfd_rig_list(rig) == -EIO && kfd_rig_says(rig, FAKE_NODES, "many"));
	CHECK(fake_sysfs_remove(rig->dir, FAKE_NODES) == 0);
	CHECK(kfd_rig_list(rig) == -EIO && kfd_rig_says(rig, FAKE_NODES, strerror(ENOENT)));
	CHECK(fake_sysfs_mkdir(rig->dir, FAKE_NODES) == 0);
	CHECK(kfd_rig_list(rig) == -EIO && kfd_rig_says(rig, FAKE_NODES, "node"));
	in_place_of(rig, FAKE_TOPOLOGY, "loop");
	CHECK(kfd_rig_list(rig) == -EIO && kfd_rig_says(rig, FAKE_TOPOLOGY, "symbolic links"));
}

/* A file with another content at each read simulates a topology that keeps changing. */
TEST_WITH(topology_that_keeps_changing_is_not_listed, struct rig *rig)
{
	char path[256];

	put_path(rig, FAKE_TOPOLOGY "/generation_id", path, sizeof(path));
	CHECK(unlink(path) == 0);
	CHECK(symlink("/proc/sys/kernel/random/uuid", path) == 0);
	CHECK(kfd_rig_list(rig) == -EIO &&
	      kfd_rig_says(rig, FAKE_TOPOLOGY "/generation_id", "changes"));
	CHECK(unlink(path) == 0);
	CHECK(kfd_rig_list(rig) == 2 && rig->diagnostics.n == 0);
}

TEST(a_path_that_is_too_long_is_an_error)
{
	struct kfd_dir parent = { .fd = -1, .path = "/sys" }, directory;
	char name[8192];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK(kfd_dir_open(&parent, name, &directory) == -ENAMETOOLONG);
}
