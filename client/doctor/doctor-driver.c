/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/doctor/doctor.h"
#include "client/output/memory-cap.h"
#include "client/output/print.h"

/* Checks of the amdgpu driver, and of the slots of each GPU. */

#define TOPOLOGY "/sys/class/kfd/kfd/topology"
#define PARAMETERS "/sys/module/amdgpu/parameters"

/* The newest driver in tests/system/kernel: tests/lint/check-limits.sh compares the number. */
#define TRIED_LINUX "6.12"

static bool is_newer(const char *release)
{
	unsigned major = 0, minor = 0, tried_major = 0, tried_minor = 0;

	(void)sscanf(TRIED_LINUX, "%u.%u", &tried_major, &tried_minor);
	return sscanf(release, "%u.%u", &major, &minor) == 2 &&
	       (major > tried_major || (major == tried_major && minor > tried_minor));
}

/* KFD tells its own version only to those who open /dev/kfd. */
static void describe_gpus(struct doctor *doctor)
{
	char version[64] = "", shown[72] = "", release[72] = "";
	bool own; /* built outside of the kernel (DKMS): only such a driver has the file */

	own = doctor_read_line(doctor, "/sys/module/amdgpu/version", version, sizeof(version)) == 0;
	if (own)
		snprintf(shown, sizeof(shown), " %s", version);
	(void)doctor_read_line(doctor, "/proc/sys/kernel/osrelease", release, sizeof(release));
	report(doctor, MARK_OK, "amdgpu%s of Linux %s; KFD has %zu GPU%s", shown, release,
	       doctor->n_gpus, print_s(doctor->n_gpus));
	means(doctor, "These GPUs can be leased, and programs can compute on them.");
	if (own || !is_newer(release))
		return;
	report(doctor, MARK_NOTE, "the amdgpu of Linux %s is newer than this gpuarb", release);
	means(doctor, "gpuarb was tried with the drivers of Linux up to " TRIED_LINUX
		      ". This one may treat masks in another way.");
	advise(doctor, "Run a program in a lease, and compare its masks: gpuarbctl verify.");
}

/* The gpuarbd of another bus is usually one with --simulate. */
static void means_no_lease(struct doctor *doctor, const char *meaning)
{
	means(doctor, "%s%s", meaning,
	      getenv("GPUARB_BUS_ADDRESS") ? " But the gpuarbd at GPUARB_BUS_ADDRESS can have "
					     "simulated GPUs of its own: see gpuarbctl status."
					   : "");
}

static void no_device(struct doctor *doctor, const char *also)
{
	report(doctor, MARK_NOTE, "this machine has no AMD GPU on its PCI bus%s", also);
	means_no_lease(doctor,
		       "There is nothing to lease. gpuarbd runs all the same and has no GPUs.");
	advise(doctor, "If the machine should have one, run lspci; in a virtual machine, check "
		       "that the host passes the GPU through.");
}

static void no_topology(struct doctor *doctor)
{
	if (doctor_count_devices(doctor) == 0) {
		no_device(doctor, "");
		return;
	}
	if (doctor_find(doctor, "/sys/module/amdgpu") < 0) {
		report(doctor, MARK_PROBLEM, "the kernel module amdgpu is not loaded");
		means(doctor,
		      "The kernel does not drive any AMD GPU, so there is nothing to lease.");
		advise(doctor,
		       "Run modprobe amdgpu and read dmesg. In a container, do so on the host, "
		       "and mount its /sys.");
		return;
	}
	report(doctor, MARK_PROBLEM, "amdgpu is loaded, but " TOPOLOGY " does not exist");
	means(doctor, "The driver was built without KFD: ROCm programs cannot use the GPUs.");
	advise(doctor, "Use a kernel with CONFIG_HSA_AMD; search dmesg for kfd.");
}

static void no_gpu(struct doctor *doctor)
{
	if (doctor_count_devices(doctor) == 0) {
		no_device(doctor, ", and KFD has none");
		return;
	}
	report(doctor, MARK_PROBLEM, "KFD has no GPU");
	means(doctor, "KFD supports none of the GPUs, or the device cgroup of this process (of a "
		      "container, for example) hides them.");
	advise(doctor, "Search dmesg for kfd. In a container or a unit, allow /dev/dri/renderD*.");
}

static void report_diagnostics(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->diagnostics.n; i++) {
		const struct diagnostic *diagnostic = &doctor->diagnostics.list[i];

		report(doctor, diagnostic->error ? MARK_PROBLEM : MARK_NOTE, "%s",
		       diagnostic->text);
		if (!diagnostic->error) {
			means(doctor, "gpuarbd reads the same data and accepts it.");
			continue;
		}
		means(doctor, "The driver reports impossible data, so gpuarbd grants no leases on "
			      "that GPU.");
		advise(doctor, "If the kernel is not patched, report this as a bug of gpuarb, with "
			       "that file.");
	}
}

/* gpuarbd lists GPUs in the same order. */
static void report_unused(struct doctor *doctor, const struct gpu_info *gpu)
{
	report(doctor, MARK_PROBLEM, "%s: gpuarbd leaves this GPU out: it uses %u at most",
	       gpu->name, REQUEST_WANTS);
	means(doctor,
	      "It cannot be leased, and nothing watches the programs on it. This machine "
	      "has %zu GPUs; the first ones by name are used.",
	      doctor->n_gpus);
	advise(doctor, "Use larger partitions, or hide GPUs from gpuarbd by the device cgroup of "
		       "its unit.");
}

void check_kernel(struct doctor *doctor)
{
	/* Without a topology no_topology() says more than the diagnostics do. */
	if (doctor_find(doctor, TOPOLOGY) < 0) {
		no_topology(doctor);
		return;
	}
	if (doctor->n_gpus > 0)
		describe_gpus(doctor);
	else if (!diagnostics_have_errors(&doctor->diagnostics))
		no_gpu(doctor);
	for (size_t i = REQUEST_WANTS; i < doctor->n_gpus; i++)
		report_unused(doctor, &doctor->gpus[i]);
	report_diagnostics(doctor);
}

static bool any_scheduled_by(const struct doctor *doctor, enum scheduler scheduler)
{
	for (size_t i = 0; i < doctor->n_gpus; i++) {
		if (doctor->gpus[i].scheduler == scheduler)
			return true;
	}
	return false;
}

static void judge_sched_policy(struct doctor *doctor, const char *policy)
{
	if (strcmp(policy, "0") == 0) {
		report(doctor, MARK_OK, "sched_policy=0: firmware schedules queues (HWS)");
		means(doctor,
		      "Queues or processes beyond the slots of the GPU take turns, slowly and "
		      "without any error. gpuarbd grants leases so that this does not happen.");
	} else if (strcmp(policy, "1") == 0) {
		report(doctor, MARK_NOTE,
		       "sched_policy=1: firmware schedules queues, and no more than there are "
		       "slots");
		means(doctor,
		      "The driver refuses queues beyond the slots and counts SDMA queues as "
		      "queues: it can refuse a queue of a program that stays within its lease.");
		advise(doctor, "Unless you need it, remove amdgpu.sched_policy=1 from the kernel "
			       "command line or modprobe.d.");
	} else if (strcmp(policy, "2") == 0) {
		report(doctor, MARK_PROBLEM, "sched_policy=2: no scheduler");
		means(doctor,
		      "This mode is for debugging the driver: it refuses queues and processes "
		      "beyond the slots and never preempts a queue.");
		advise(doctor, "Remove amdgpu.sched_policy=2 from the kernel command line or "
			       "modprobe.d.");
	} else {
		report(doctor, MARK_NOTE, "sched_policy=%s: unknown value", policy);
		means(doctor, "The behaviour of the driver with too many queues is unknown.");
		advise(doctor, "Read the documentation of the driver, or remove the parameter.");
	}
}

static void judge_processes(struct doctor *doctor)
{
	char limit[32];

	if (doctor_read_line(doctor, PARAMETERS "/hws_max_conc_proc", limit, sizeof(limit)) < 0 ||
	    limit[0] == '-')
		return;

	report(doctor, MARK_NOTE, "hws_max_conc_proc=%s", limit);
	means(doctor, "At most so many processes (0: one) run on a GPU at a time, others wait for "
		      "their turn. gpuarbd uses this limit as the number of process slots.");
	advise(doctor,
	       "Unless you need it, remove amdgpu.hws_max_conc_proc from the kernel command "
	       "line or modprobe.d.");
}

void check_scheduler(struct doctor *doctor)
{
	char policy[32];

	if (any_scheduled_by(doctor, SCHEDULER_MES)) {
		report(doctor, MARK_OK, "MES schedules the queues of GPUs from gfx11 on");
		means(doctor,
		      "This firmware handles oversubscription by itself: the driver does not "
		      "report it, and sched_policy has no effect.");
	}
	if (doctor_read_line(doctor, PARAMETERS "/sched_policy", policy, sizeof(policy)) < 0) {
		report(doctor, MARK_NOTE, "cannot read " PARAMETERS "/sched_policy");
		means(doctor, "It is unknown how the driver schedules queues.");
		advise(doctor, "Load amdgpu; in a container, mount the /sys of the host.");
		return;
	}
	judge_sched_policy(doctor, policy);
	judge_processes(doctor);
}

static void close_mounts(FILE **file)
{
	if (*file)
		endmntent(*file);
}

static bool debugfs_mounted(const struct doctor *doctor)
{
	char path[DOCTOR_PATH];
	_cleanup_(close_mounts)
		FILE *file = setmntent(doctor_path(doctor, path, "/proc/self/mounts"), "re");
	const struct mntent *mount;

	while (file && (mount = getmntent(file))) {
		if (strcmp(mount->mnt_type, "debugfs") == 0)
			return true;
	}
	return false;
}

static void judge_lockdown(struct doctor *doctor)
{
	char lockdown[64];

	if (doctor_read_line(doctor, "/sys/kernel/security/lockdown", lockdown, sizeof(lockdown)) <
		    0 ||
	    !strstr(lockdown, "[confidentiality]"))
		return;

	report(doctor, MARK_NOTE, "the kernel is locked down: %s", lockdown);
	means(doctor, "No user, not even root, can read debugfs.");
	advise(doctor, "To verify masks, boot with lockdown=integrity.");
}

/* Leases work without debugfs, so no finding is a problem. */
void check_debugfs(struct doctor *doctor)
{
	static const char why[] =
		"gpuarbd can read from it the masks that queues really have. Leases "
		"work without it.";
	int r = doctor_find(doctor, "/sys/kernel/debug/kfd");

	if (r == 0) {
		report(doctor, MARK_OK, "/sys/kernel/debug/kfd exists");
		means(doctor, "%s", why);
	} else if (r == -EACCES || r == -EPERM) {
		report(doctor, MARK_NOTE, "this user may not read /sys/kernel/debug");
		means(doctor, "gpuarbctl cannot check for KFD in it. %s", why);
		advise(doctor,
		       "Usually nothing: debugfs is for root. As root, gpuarbctl doctor can check "
		       "it. If root may not either, a security module denies it: journalctl --boot "
		       "--dmesg --grep=denied");
	} else if (!debugfs_mounted(doctor)) {
		report(doctor, MARK_NOTE, "debugfs is not mounted on /sys/kernel/debug");
		means(doctor, "%s", why);
		advise(doctor, "mount -t debugfs debugfs /sys/kernel/debug; if that fails, boot "
			       "without debugfs=off, with a kernel that has CONFIG_DEBUG_FS.");
	} else {
		report(doctor, MARK_NOTE, "/sys/kernel/debug/kfd does not exist");
		means(doctor, "The driver is not loaded, or was built without debugfs. %s", why);
		advise(doctor,
		       "modprobe amdgpu; if it is loaded, take a kernel with CONFIG_DEBUG_FS.");
	}
	judge_lockdown(doctor);
}

/* Four HIP processes with two queues each, the fewest that HIP can work with. */
#define FEW_QUEUES 8U
#define FEW_PROCESSES 4U

static void describe(struct doctor *doctor, const struct gpu_info *gpu)
{
	bool few = gpu->queue_slots <= FEW_QUEUES || gpu->process_slots <= FEW_PROCESSES;
	char target[16];

	gpu_info_target_name(gpu->gfx_target, target, sizeof(target));
	report(doctor, few ? MARK_NOTE : MARK_OK,
	       "%s (%s): %u queue slot%s, %u process slot%s (VMIDs), %u SDMA queue%s, and "
	       "%u for XGMI",
	       gpu->name, target, gpu->queue_slots, print_s(gpu->queue_slots), gpu->process_slots,
	       print_s(gpu->process_slots), gpu->sdma_queues, print_s(gpu->sdma_queues),
	       gpu->sdma_xgmi_queues);
	if (!few) {
		means(doctor, "So many queues and processes run at a time; more take turns.");
		return;
	}
	means(doctor,
	      "These are few. A HIP process creates 5 queues, or 2 at the least, so %u of them "
	      "fit. Each unmanaged process makes all of them take turns.",
	      min_u(gpu->queue_slots / 2, gpu->process_slots));
	advise(doctor, "Request --queues and --processes explicitly, and run all programs on this "
		       "GPU in leases.");
}

void check_slots(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->n_gpus; i++)
		describe(doctor, &doctor->gpus[i]);
	if (doctor->n_gpus > 0)
		return;

	report(doctor, MARK_NOTE, "there is no GPU with slots");
	means_no_lease(doctor, "Nothing can be leased.");
	advise(doctor, "See kernel.");
}

/* Partitions of a card share the file, which has a value for each. */
static bool first_of_card(const struct doctor *doctor, size_t i, size_t length)
{
	for (size_t k = 0; k < i; k++) {
		const char *name = doctor->gpus[k].name;

		if (strcspn(name, "/") == length &&
		    strncmp(name, doctor->gpus[i].name, length) == 0)
			return false;
	}
	return true;
}

static void judge_card(struct doctor *doctor, const char *card, const char *path, const char *value)
{
	if (value[strspn(value, "0 ")] == '\0') {
		report(doctor, MARK_OK, "%s: enforce_isolation is off", card);
		means(doctor, "Processes run side by side, as leases need it.");
		return;
	}
	report(doctor, MARK_NOTE, "%s: enforce_isolation is %s", card, value);
	means(doctor, "Where it is not 0, one process at a time uses the GPU: leases take turns, "
		      "whatever CUs they have.");
	advise(doctor, "Unless you need it: echo 0 > %s (a 0 for each partition)", path);
}

static void judge_switching(struct doctor *doctor, const char *card)
{
	report(doctor, MARK_NOTE, "%s: its compute partition mode can be changed", card);
	means(doctor,
	      "gpuarbd does not read the events of its driver, because the driver may crash "
	      "when the mode is changed meanwhile: leases are not told of a reset, and VM "
	      "faults, throttling and evictions are not counted.");
}

static void judge_drm_queues(struct doctor *doctor, const char *card)
{
	report(doctor, MARK_NOTE, "%s: user queues of the graphics driver are enabled", card);
	means(doctor,
	      "They have no CU mask and run on the CUs of every lease: the gap drm-queues. Realtime "
	      "leases are refused beside one that computes.");
	advise(doctor, "If no program needs them, boot with amdgpu.user_queue=0.");
}

/* Older kernels do not have the file. */
void check_isolation(struct doctor *doctor)
{
	size_t before = doctor->n_findings;

	for (size_t i = 0; i < doctor->n_gpus; i++) {
		const char *name = doctor->gpus[i].name;
		size_t length = strcspn(name, "/");
		char path[128], value[256], card[GPU_NAME_MAX];

		if (!first_of_card(doctor, i, length))
			continue;
		snprintf(card, sizeof(card), "%.*s", (int)length, name);
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/enforce_isolation", card);
		if (doctor_read_line(doctor, path, value, sizeof(value)) == 0)
			judge_card(doctor, card, path, value);
		if (doctor->gpus[i].switches)
			judge_switching(doctor, card);
		if (doctor->gpus[i].drm_queues)
			judge_drm_queues(doctor, card);
	}
	if (doctor->n_findings > before)
		return;

	report(doctor, MARK_OK, "no GPU here has enforce_isolation");
	means(doctor, "Processes run side by side, as leases need it.");
}

static void describe_memory(struct doctor *doctor, const struct gpu_info *gpu)
{
	enum memory_cap cap = memory_cap_read(doctor->root, gpu->name, 0, NULL);
	bool can = cap != MEMORY_CAP_NO_CONTROLLER && cap != MEMORY_CAP_NO_REGION;
	char bytes[PRINT_BYTES];

	print_bytes(gpu->vram_bytes, bytes);
	report(doctor, MARK_OK, "%s: %s of %s; the kernel %s cap it%s", gpu->name, bytes,
	       gpu->system_memory ? "the memory of the machine" : "VRAM", can ? "can" : "cannot",
	       cap == MEMORY_CAP_NO_CONTROLLER ? " (no dmem controller)"
	       : can                           ? " (dmem.max of a cgroup)"
					       : " (the driver has no dmem region for it)");
	means(doctor, "gpuarbd counts what is used, and keeps no program from using more.");
	if (gpu->system_memory)
		advise(doctor, "More or less of it: the kernel parameter ttm.pages_limit, in pages "
			       "of 4 KiB.");
}

void check_memory(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->n_gpus; i++)
		describe_memory(doctor, &doctor->gpus[i]);
}
