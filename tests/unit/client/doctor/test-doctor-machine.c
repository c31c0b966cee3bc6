/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks of doctor: drivers and GPUs. */

#include "check.h"
#include "client/output/memory-cap.h"
#include "doctor-rig.h"

#define PARAMETERS "sys/module/amdgpu/parameters"

static const char *const vii[] = { "radeon-vii" };
static const char *const mixed[] = { "radeon-vii", "v620", "rx9070xt" };

FIXTURE(struct patient, patient, patient_new(patient), patient_done(patient));

TEST_WITH(a_driver_with_gpus_is_fine, struct patient *patient)
{
	patient_has_gpus(patient, vii, 1);
	examine(patient, check_kernel);
	only(patient, MARK_OK, "amdgpu of Linux ");
	only(patient, MARK_OK, "KFD has 1 GPU");
	CHECK(!doctor_has_problems(&patient->doctor));

	patient_put(patient, "sys/module/amdgpu/version", "6.8.5\n");
	examine(patient, check_kernel);
	only(patient, MARK_OK, "amdgpu 6.8.5 of Linux ");
}

TEST_WITH(a_driver_of_a_newer_kernel_is_noted, struct patient *patient)
{
	static const struct {
		const char *release;
		bool newer;
	} cases[] = {
		{ "6.1.0-56-amd64\n", false }, { "6.12.999+deb13-amd64\n", false },
		{ "6.13.0\n", true },          { "7.0-rc1\n", true },
		{ "5.99.1\n", false },         { "next\n", false },
	};

	patient_has_gpus(patient, vii, 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		patient_put(patient, "proc/sys/kernel/osrelease", cases[i].release);
		examine(patient, check_kernel);
		CHECK(patient->doctor.n_findings == 1 + (size_t)cases[i].newer);
	}

	patient_put(patient, "proc/sys/kernel/osrelease", "6.16.3-cloud\n");
	examine(patient, check_kernel);
	CHECK(advises(finding_of(patient, MARK_NOTE, "6.16.3-cloud"), "verify"));
	CHECK(!doctor_has_problems(&patient->doctor));

	/* A driver of its own has another version than the kernel. */
	patient_put(patient, "sys/module/amdgpu/version", "6.12.12\n");
	examine(patient, check_kernel);
	only(patient, MARK_OK, "amdgpu 6.12.12 of Linux 6.16.3-cloud;");
}

TEST_WITH(gpus_beyond_those_that_gpuarbd_uses_are_named, struct patient *patient)
{
	struct gpu_info gpus[66];

	patient_has_gpus(patient, vii, 1);
	doctor_read_gpus(&patient->doctor);
	for (size_t i = 0; i < ARRAY_SIZE(gpus); i++) {
		gpus[i] = patient->doctor.gpus[0];
		gpus[i].kfd_gpu_id = 0; /* fake-sysfs chooses */
		gpus[i].geometry = (struct geometry){ 1, 1, 1, 1, false, { { { 1 } } } };
		snprintf(gpus[i].name, sizeof(gpus[i].name), "0000:%02zx:00.0", 100 - i);
	}
	CHECK(fake_sysfs_remove(patient->scratch.path, "sys/class") == 0);
	CHECK(fake_sysfs_build(patient->sys, gpus, 64) == 0);
	examine(patient, check_kernel);
	CHECK(!doctor_has_problems(&patient->doctor));

	CHECK(fake_sysfs_remove(patient->scratch.path, "sys/class") == 0);
	CHECK(fake_sysfs_build(patient->sys, gpus, 66) == 0);
	examine(patient, check_kernel);
	finding_of(patient, MARK_PROBLEM, "0000:63:00.0");
	finding_of(patient, MARK_PROBLEM, "0000:64:00.0");
	CHECK(patient->doctor.n_findings == 3);
}

TEST_WITH(a_missing_driver_and_a_driver_without_kfd_are_distinguished, struct patient *patient)
{
	examine(patient, check_kernel);
	CHECK(advises(only(patient, MARK_PROBLEM, "loaded"), "modprobe"));
	CHECK(doctor_has_problems(&patient->doctor));

	patient_put(patient, PARAMETERS "/sched_policy", "0\n");
	examine(patient, check_kernel);
	CHECK(advises(only(patient, MARK_PROBLEM, "exist"), "CONFIG_HSA_AMD"));
}

TEST_WITH(a_driver_without_gpus_is_a_problem, struct patient *patient)
{
	patient_has_gpus(patient, NULL, 0);
	examine(patient, check_kernel);
	only(patient, MARK_PROBLEM, "KFD has no GPU");
}

static void has_device(const struct patient *patient, const char *address, const char *vendor,
		       const char *class)
{
	char path[96];

	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/vendor", address);
	patient_put(patient, path, vendor);
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/class", address);
	patient_put(patient, path, class);
}

TEST(a_machine_without_a_gpu_has_no_problem)
{
	_cleanup_(patient_done) struct patient patient;

	/* A bridge of AMD's, a GPU of somebody else's, a GPU's sound, a device that is no
	 * directory, one that is being removed. */
	patient_new(&patient);
	has_device(&patient, "0000:00:01.0", "0x1022\n", "0x060400\n");
	has_device(&patient, "0000:01:00.0", "0x10de\n", "0x030000\n");
	has_device(&patient, "0000:03:00.1", "0x1002\n", "0x040300\n");
	patient_put(&patient, "sys/bus/pci/devices/0000:04:00.0", "");
	patient_put(&patient, "sys/bus/pci/devices/0000:05:00.0/vendor", "0x1002\n");
	examine(&patient, check_kernel);
	CHECK(advises(only(&patient, MARK_NOTE, "no AMD GPU on its PCI bus"), "lspci"));

	/* Nor with the driver loaded, which makes a topology of the CPUs alone. */
	patient_has_gpus(&patient, NULL, 0);
	examine(&patient, check_kernel);
	only(&patient, MARK_NOTE, "KFD has none");

	examine(&patient, check_slots);
	CHECK(!strstr(only(&patient, MARK_NOTE, "no GPU")->means, "GPUARB_BUS_ADDRESS"));

	/* The gpuarbd of another bus may simulate GPUs. */
	setenv("GPUARB_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	examine(&patient, check_slots);
	CHECK(strstr(only(&patient, MARK_NOTE, "no GPU")->means, "GPUARB_BUS_ADDRESS"));
	examine(&patient, check_kernel);
	CHECK(strstr(only(&patient, MARK_NOTE, "KFD")->means, "GPUARB_BUS_ADDRESS"));
	unsetenv("GPUARB_BUS_ADDRESS");
}

TEST(a_gpu_without_its_driver_is_a_problem)
{
	static const char *const classes[] = { "0x030000\n", "0x038000\n", "0x120000\n" };
	struct patient patient;

	for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
		patient_new(&patient);
		has_device(&patient, "0000:03:00.0", "0x1002\n", classes[i]);
		examine(&patient, check_kernel);
		CHECK(advises(only(&patient, MARK_PROBLEM, "loaded"), "modprobe"));

		patient_has_gpus(&patient, NULL, 0);
		examine(&patient, check_kernel);
		only(&patient, MARK_PROBLEM, "KFD has no GPU");
		patient_done(&patient);
	}
}

TEST_WITH(diagnostics_of_the_topology_are_findings, struct patient *patient)
{
	patient_has_gpus(patient, mixed, 2);
	CHECK(fake_sysfs_set(patient->sys, FAKE_NODES "/2/properties", "simd_count", "many") == 0);
	patient_remove(patient, PARAMETERS "/hws_max_conc_proc");
	examine(patient, check_kernel);
	finding_of(patient, MARK_OK, "KFD has 1 GPU");
	finding_of(patient, MARK_PROBLEM, "this GPU is left out");
	finding_of(patient, MARK_NOTE, "hws_max_conc_proc");

	CHECK(fake_sysfs_remove(patient->sys, FAKE_NODES) == 0);
	examine(patient, check_kernel);
	only(patient, MARK_PROBLEM, "/nodes: ");
}

TEST_WITH(each_sched_policy_has_a_finding, struct patient *patient)
{
	static const struct {
		const char *value;
		enum mark mark;
		const char *found;
	} rows[] = {
		{ "0\n", MARK_OK, "sched_policy=0: firmware schedules" },
		{ "1\n", MARK_NOTE, "sched_policy=1: " },
		{ "2\n", MARK_PROBLEM, "no scheduler" },
		{ "3\n", MARK_NOTE, "sched_policy=3: unknown" },
	};

	patient_has_gpus(patient, vii, 1);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		patient_put(patient, PARAMETERS "/sched_policy", rows[i].value);
		examine(patient, check_scheduler);
		only(patient, rows[i].mark, rows[i].found);
	}
	patient_remove(patient, PARAMETERS "/sched_policy");
	examine(patient, check_scheduler);
	only(patient, MARK_NOTE, "cannot read");
}

TEST_WITH(a_process_limit_and_mes_have_findings, struct patient *patient)
{
	patient_has_gpus(patient, mixed, 3);
	examine(patient, check_scheduler);
	finding_of(patient, MARK_OK, "MES schedules");
	CHECK(patient->doctor.n_findings == 2);

	patient_put(patient, PARAMETERS "/hws_max_conc_proc", "4\n");
	examine(patient, check_scheduler);
	finding_of(patient, MARK_NOTE, "hws_max_conc_proc=4");
	patient_put(patient, PARAMETERS "/hws_max_conc_proc", "-1\n");
	examine(patient, check_scheduler);
	CHECK(patient->doctor.n_findings == 2);
}

TEST_WITH(a_gpu_with_few_slots_is_a_note, struct patient *patient)
{
	patient_has_gpus(patient, mixed, 3);
	examine(patient, check_slots);
	CHECK(patient->doctor.n_findings == 3);
	finding_of(patient, MARK_OK, "0000:03:00.0 (gfx906): 24 queue slots, 8 process slots");
	finding_of(patient, MARK_NOTE, "(gfx1030): 8 queue slots");
	CHECK(strstr(finding_of(patient, MARK_NOTE, "(gfx1201): 4")->means, "2 of"));

	/* With HWS each process more than that waits for a turn. */
	patient_put(patient, PARAMETERS "/hws_max_conc_proc", "1\n");
	examine(patient, check_slots);
	finding_of(patient, MARK_NOTE, "(gfx906): 24 queue slots, 1 process slot (VMIDs)");

	patient_remove(patient, "sys/class");
	examine(patient, check_slots);
	only(patient, MARK_NOTE, "no GPU");
}

TEST_WITH(cards_whose_partition_mode_can_be_changed_have_no_events, struct patient *patient)
{
	static const char *const gpus[] = { "radeon-vii", "mi210" };

	patient_has_gpus(patient, gpus, 2);
	patient_put(patient, "sys/bus/pci/devices/0000:04:00.0/available_compute_partition",
		    "SPX, DPX, CPX\n");
	examine(patient, check_isolation);
	only(patient, MARK_NOTE, "0000:04:00.0: its compute partition mode can be changed");
}

TEST_WITH(enabled_user_queues_of_drm_are_a_note, struct patient *patient)
{
	patient_has_gpus(patient, mixed, 3);
	patient_put(patient, PARAMETERS "/user_queue", "1\n");
	examine(patient, check_isolation);
	CHECK(patient->doctor.n_findings == 1);
	CHECK(advises(finding_of(patient, MARK_NOTE, "0000:05:00.0"), "amdgpu.user_queue=0"));
}

TEST_WITH(enforced_isolation_is_one_note_per_card, struct patient *patient)
{
	static const char *const gpus[] = { "radeon-vii", "mi210" };

	patient_has_gpus(patient, gpus, 2);
	examine(patient, check_isolation);
	only(patient, MARK_OK, "no GPU here has enforce_isolation");

	patient_put(patient, "sys/bus/pci/devices/0000:03:00.0/enforce_isolation", "0 0\n");
	patient_put(patient, "sys/bus/pci/devices/0000:04:00.0/enforce_isolation", "0 1\n");
	examine(patient, check_isolation);
	CHECK(patient->doctor.n_findings == 2);
	finding_of(patient, MARK_OK, "0000:03:00.0: enforce_isolation is off");
	CHECK(advises(finding_of(patient, MARK_NOTE, "0000:04:00.0: enforce_isolation is 0 1"),
		      "/sys/bus/pci/devices/0000:04:00.0/enforce_isolation"));

	/* Partitions of one card. */
	CHECK(patient->doctor.n_gpus == 2);
	snprintf(patient->doctor.gpus[0].name, GPU_NAME_MAX, "0000:04:00.0/0");
	snprintf(patient->doctor.gpus[1].name, GPU_NAME_MAX, "0000:04:00.0/1");
	doctor_run(&patient->doctor, &(struct check){ "test", check_isolation });
	CHECK(patient->doctor.n_findings == 3);
}

TEST_WITH(missing_debugfs_is_never_a_problem, struct patient *patient)
{
	examine(patient, check_debugfs);
	CHECK(advises(only(patient, MARK_NOTE, "mounted"), "mount -t debugfs"));

	patient_put(patient, "proc/self/mounts",
		    "proc /proc proc rw 0 0\ndebugfs /sys/kernel/debug debugfs rw 0 0\n");
	examine(patient, check_debugfs);
	CHECK(advises(only(patient, MARK_NOTE, "debug/kfd"), "modprobe"));

	patient_put(patient, "sys/kernel/debug/kfd/mqds", "");
	examine(patient, check_debugfs);
	only(patient, MARK_OK, "exists");

	patient_put(patient, "sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	examine(patient, check_debugfs);
	only(patient, MARK_OK, "exists");
	patient_put(patient, "sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	examine(patient, check_debugfs);
	CHECK(advises(finding_of(patient, MARK_NOTE, "locked"), "lockdown=integrity"));
}

TEST_WITH(debugfs_without_permission_is_a_note, struct patient *patient)
{
	uid_t uid = geteuid();

	patient_put(patient, "sys/kernel/debug/kfd/mqds", "");
	CHECK(chmod(scratch_at(&patient->scratch, "sys/kernel/debug"), 0) == 0);
	CHECK(uid != 0 || seteuid(65534) == 0);
	examine(patient, check_debugfs);
	CHECK(seteuid(uid) == 0);
	CHECK(advises(only(patient, MARK_NOTE, "may not"), "denied"));
	CHECK(chmod(scratch_at(&patient->scratch, "sys/kernel/debug"), 0755) == 0);
}

TEST_WITH(the_memory_of_each_gpu_is_told_and_whether_it_can_be_capped, struct patient *patient)
{
	static const char *const gpus[] = { "radeon-vii", "strix-halo" };
	const char *controllers = "sys/fs/cgroup/cgroup.controllers";

	patient_has_gpus(patient, gpus, 2);
	patient_put(patient, "sys/bus/pci/devices/0000:04:00.0/mem_info_vram_total", "536870912\n");
	patient_put(patient, "sys/bus/pci/devices/0000:04:00.0/mem_info_gtt_total",
		    "65498251264\n");
	doctor_read_gpus(&patient->doctor);
	patient_put(patient, controllers, "cpu memory dmemory\n");
	examine(patient, check_memory);
	finding_of(patient, MARK_OK, "16.0G of VRAM");
	CHECK(advises(finding_of(patient, MARK_OK, "61.0G of"), "ttm.pages_limit"));

	patient_put(patient, controllers, "cpu dmem memory\n");
	patient_put(patient, "sys/fs/cgroup/dmem.capacity", "drm/0000:03:00.0/vram 17179869184\n");
	examine(patient, check_memory);
	finding_of(patient, MARK_OK, "(dmem.max");
	finding_of(patient, MARK_OK, "dmem region");
}

/* ---- caps of a cgroup ------------------------------------------------------------------------ */

static void cap_is(const struct patient *patient, enum memory_cap wanted, uint64_t bytes)
{
	uint64_t limit = 0;

	CHECK(memory_cap_read(patient->doctor.root, "0000:03:00.0/2", 42, &limit) == wanted);
	CHECK(limit == bytes);
}

TEST_WITH(the_smallest_limit_of_the_cgroups_of_a_process_caps_it, struct patient *patient)
{
#define GROUP "sys/fs/cgroup/user.slice/run-1.scope/"
	char text[MEMORY_CAP_TEXT], many[8192];

	cap_is(patient, MEMORY_CAP_NO_CONTROLLER, 0);
	patient_put(patient, "sys/fs/cgroup/cgroup.controllers", "dmem\n");
	cap_is(patient, MEMORY_CAP_NO_REGION, 0);
	patient_put(patient, "sys/fs/cgroup/dmem.capacity",
		    "drm/0000:04:00.0/vram 1\ndrm/0000:03:00.0/vram 17179869184\n");
	cap_is(patient, MEMORY_CAP_NONE, 0); /* no such process */
	patient_put(patient, "proc/42/cgroup", "1:name=x:/\n0::/user.slice/run-1.scope\n");
	cap_is(patient, MEMORY_CAP_NONE, 0);
	patient_put(patient, GROUP "dmem.max", "drm/0000:03:00.0/vram max\n");
	cap_is(patient, MEMORY_CAP_NONE, 0);
	patient_put(patient, "sys/fs/cgroup/user.slice/dmem.max",
		    "drm/0000:03:00.0/vram 8589934592\n");
	cap_is(patient, MEMORY_CAP_SET, UINT64_C(8) << 30);
	patient_put(patient, GROUP "dmem.max",
		    "drm/0000:03:00.0/vram 9999999999999\ndrm/0000:04:00.0/vram 5\n");
	cap_is(patient, MEMORY_CAP_SET, UINT64_C(8) << 30);
	patient_put(patient, GROUP "dmem.max", "drm/0000:03:00.0/vram 4096\n");
	cap_is(patient, MEMORY_CAP_SET, 4096);

	/* What the kernel never writes. */
	static const char *const bad[] = { "", "drm/0000:03:00.0/vram\n",
					   "drm/0000:03:00.0/vram -1\n",
					   "drm/0000:03:00.0/vram 99999999999999999999\n", "\n\n" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		patient_put(patient, GROUP "dmem.max", bad[i]);
		cap_is(patient, MEMORY_CAP_SET, UINT64_C(8) << 30);
	}
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	patient_put(patient, "proc/42/cgroup", many);
	cap_is(patient, MEMORY_CAP_NONE, 0);
	patient_put(patient, "proc/42/cgroup", "0::/../../etc\n");
	cap_is(patient, MEMORY_CAP_NONE, 0);

	memory_cap_text(MEMORY_CAP_SET, UINT64_C(8) << 30, text);
	CHECK(strstr(text, "8.0G"));
	memory_cap_text(MEMORY_CAP_NO_CONTROLLER, 0, text);
	CHECK(strstr(text, "dmem"));
}
