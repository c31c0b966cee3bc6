/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "client/doctor/doctor.h"
#include "client/output/print.h"

/* What the driver says of itself. */

#define TOPOLOGY "/sys/class/kfd/kfd/topology"
#define PARAMETERS "/sys/module/amdgpu/parameters"

static void describe_gpus(struct doctor *doctor)
{
	char version[64] = "", shown[72] = "";
	struct utsname system;

	/* There only where the driver was built outside of the kernel (DKMS). */
	if (doctor_read_line(doctor, "/sys/module/amdgpu/version", version, sizeof(version)) == 0)
		snprintf(shown, sizeof(shown), " %s", version);
	uname(&system);
	say(doctor, MARK_OK, "amdgpu%s of Linux %s; KFD shows %zu GPU%s", shown, system.release,
	    doctor->n_gpus, print_s(doctor->n_gpus));
	means(doctor, "They can be leased, and programs can compute on them.");
}

/* What there is not cannot be at fault. */
static void no_device(struct doctor *doctor, const char *also)
{
	say(doctor, MARK_NOTE, "there is no AMD GPU on the PCI bus of this machine%s", also);
	means(doctor, "There is nothing to lease here. gpuarbd runs all the same, and says so.");
	advise(doctor, "If there should be one: see lspci, and in a virtual machine whether it is "
		       "passed through.");
}

static void no_topology(struct doctor *doctor)
{
	if (doctor_count_devices(doctor) == 0) {
		no_device(doctor, "");
		return;
	}
	if (doctor_find(doctor, "/sys/module/amdgpu") < 0) {
		say(doctor, MARK_PROBLEM, "the kernel module amdgpu is not loaded");
		means(doctor, "There is no AMD GPU for the kernel, so there is nothing to lease.");
		advise(doctor, "modprobe amdgpu, and see what dmesg says of it. In a container: do "
			       "so outside, and mount its /sys.");
		return;
	}
	say(doctor, MARK_PROBLEM, "amdgpu is loaded, but without KFD: no " TOPOLOGY);
	means(doctor, "The GPUs draw, but nothing can compute on them by ROCm.");
	advise(doctor, "Use a kernel with CONFIG_HSA_AMD; see what dmesg says of kfd.");
}

static void no_gpu(struct doctor *doctor)
{
	if (doctor_count_devices(doctor) == 0) {
		no_device(doctor, ", and KFD shows none");
		return;
	}
	say(doctor, MARK_PROBLEM, "KFD shows no GPU");
	means(doctor, "Either it supports none that is there, or the device cgroup of this process "
		      "hides them, as that of a container does.");
	advise(doctor, "See what dmesg says of kfd. In a container or a unit: allow "
		       "/dev/dri/renderD*.");
}

/* What was left out, and what was guessed. */
static void tell_diagnostics(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->diagnostics.n; i++) {
		const struct diagnostic *diagnostic = &doctor->diagnostics.list[i];

		say(doctor, diagnostic->error ? MARK_PROBLEM : MARK_NOTE, "%s", diagnostic->text);
		if (!diagnostic->error) {
			means(doctor, "gpuarbd sees the same, and goes on like that.");
			continue;
		}
		means(doctor, "The driver says what gpuarbd cannot believe: there are no leases on "
			      "that GPU.");
		advise(doctor, "If the kernel is a plain one, this is a defect of gpuarb: report "
			       "it, with that file.");
	}
}

void check_kernel(struct doctor *doctor)
{
	/* Where there is no topology at all its note says less than what follows. */
	if (doctor_find(doctor, TOPOLOGY) < 0) {
		no_topology(doctor);
		return;
	}
	if (doctor->n_gpus > 0)
		describe_gpus(doctor);
	else if (!diagnostics_have_errors(&doctor->diagnostics))
		no_gpu(doctor);
	tell_diagnostics(doctor);
}

static bool any_scheduled_by(const struct doctor *doctor, enum scheduler scheduler)
{
	for (size_t i = 0; i < doctor->n_gpus; i++) {
		if (doctor->gpus[i].scheduler == scheduler)
			return true;
	}
	return false;
}

static void judge_policy(struct doctor *doctor, const char *policy)
{
	if (strcmp(policy, "0") == 0) {
		say(doctor, MARK_OK, "sched_policy=0: firmware schedules queues (HWS)");
		means(doctor, "Queues or processes beyond the GPU's slots take turns, slowly and "
			      "without a word. Leases are granted such that it does not come to "
			      "that.");
	} else if (strcmp(policy, "1") == 0) {
		say(doctor, MARK_NOTE, "sched_policy=1: HWS, and no more queues than slots");
		means(doctor, "The driver refuses queues beyond the slots, and counts SDMA queues "
			      "among them: a program within its lease can be refused, too, by what "
			      "others have.");
		advise(doctor, "Unless that is wanted, take amdgpu.sched_policy=1 out of the "
			       "kernel's command line or modprobe.d.");
	} else if (strcmp(policy, "2") == 0) {
		say(doctor, MARK_PROBLEM, "sched_policy=2: no scheduler");
		means(doctor, "Made to debug the driver: queues and processes beyond the slots are "
			      "refused, none is ever preempted.");
		advise(doctor, "Take amdgpu.sched_policy=2 out of the kernel's command line or "
			       "modprobe.d.");
	} else {
		say(doctor, MARK_NOTE, "sched_policy=%s: not known", policy);
		means(doctor, "What the driver does with too many queues is not known.");
		advise(doctor, "See the driver's documentation, or take it out.");
	}
}

static void judge_processes(struct doctor *doctor)
{
	char limit[32];

	if (doctor_read_line(doctor, PARAMETERS "/hws_max_conc_proc", limit, sizeof(limit)) < 0 ||
	    limit[0] == '-')
		return;

	say(doctor, MARK_NOTE, "hws_max_conc_proc=%s", limit);
	means(doctor, "No more processes than that are on a GPU at a time (0: one), the others "
		      "wait for their turn. gpuarbd counts with it.");
	advise(doctor, "Unless that is wanted, take amdgpu.hws_max_conc_proc out of the kernel's "
		       "command line or modprobe.d.");
}

void check_scheduler(struct doctor *doctor)
{
	char policy[32];

	if (any_scheduled_by(doctor, SCHEDULER_MES)) {
		say(doctor, MARK_OK, "MES schedules the queues of GPUs from gfx11 on");
		means(doctor, "It is firmware that oversubscribes by itself: the driver does not "
			      "tell of it, nor does sched_policy matter to it.");
	}
	if (doctor_read_line(doctor, PARAMETERS "/sched_policy", policy, sizeof(policy)) < 0) {
		say(doctor, MARK_NOTE, PARAMETERS "/sched_policy cannot be read");
		means(doctor, "How queues are scheduled is not known.");
		advise(doctor, "Load amdgpu; in a container, mount the /sys of the machine.");
		return;
	}
	judge_policy(doctor, policy);
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

	say(doctor, MARK_NOTE, "the kernel is locked down: %s", lockdown);
	means(doctor, "Nobody can read debugfs, root neither.");
	advise(doctor, "If masks are to be verified: lockdown=integrity.");
}

/* Whatever is here is no problem: leases do without it. */
void check_debugfs(struct doctor *doctor)
{
	static const char why[] = "It shows the masks that queues really have. Leases do without "
				  "it.";
	int r = doctor_find(doctor, "/sys/kernel/debug/kfd");

	if (r == 0) {
		say(doctor, MARK_OK, "/sys/kernel/debug/kfd is there");
		means(doctor, "%s", why);
	} else if (r == -EACCES || r == -EPERM) {
		say(doctor, MARK_NOTE, "/sys/kernel/debug is closed to this user");
		means(doctor, "Whether KFD is in it cannot be seen. %s", why);
		advise(doctor, "Nothing, as a rule: debugfs is root's. Root's `gpuarbctl doctor` "
			       "says more.");
	} else if (!debugfs_mounted(doctor)) {
		say(doctor, MARK_NOTE, "debugfs is not mounted");
		means(doctor, "%s", why);
		advise(doctor, "mount -t debugfs debugfs /sys/kernel/debug");
	} else {
		say(doctor, MARK_NOTE, "no kfd in /sys/kernel/debug");
		means(doctor, "The driver is not loaded, or was built without debugfs. %s", why);
		advise(doctor, "To have it: a kernel with CONFIG_DEBUG_FS.");
	}
	judge_lockdown(doctor);
}

/* What each GPU has room for. */

/* Four HIP processes of two queues each, the least that they can live with. */
#define FEW_QUEUES 8U
#define FEW_PROCESSES 4U

static void describe(struct doctor *doctor, const struct gpu_info *gpu)
{
	bool few = gpu->queue_slots <= FEW_QUEUES || gpu->process_slots <= FEW_PROCESSES;
	char target[16];

	gpu_info_target_name(gpu->gfx_target, target, sizeof(target));
	say(doctor, few ? MARK_NOTE : MARK_OK,
	    "%s (%s): %u queue slot%s, %u process slot%s "
	    "(VMIDs), %u SDMA queue%s",
	    gpu->name, target, gpu->queue_slots, print_s(gpu->queue_slots), gpu->process_slots,
	    print_s(gpu->process_slots), gpu->sdma_queues, print_s(gpu->sdma_queues));
	if (!few) {
		means(doctor, "As many queues, and processes, compute at a time; those beyond take "
			      "turns.");
		return;
	}
	means(doctor,
	      "Few: a HIP process takes 5 queues if it is let, and 2 at least, so %u of "
	      "them fit, and what comes without a lease makes all take turns.",
	      min_u(gpu->queue_slots / 2, gpu->process_slots));
	advise(doctor, "Name --queues and --processes when asking, and let all programs on this "
		       "GPU have leases.");
}

void check_slots(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->n_gpus; i++)
		describe(doctor, &doctor->gpus[i]);
	if (doctor->n_gpus > 0)
		return;

	say(doctor, MARK_NOTE, "there is no GPU whose slots could be counted");
	means(doctor, "Nothing can be leased.");
	advise(doctor, "See kernel.");
}

/* Partitions of a card share the file: a value for each of them. */
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
		say(doctor, MARK_OK, "%s: enforce_isolation is off", card);
		means(doctor, "Processes compute side by side, as leases want it.");
		return;
	}
	say(doctor, MARK_NOTE, "%s: enforce_isolation is %s", card, value);
	means(doctor, "Where it is not 0, one process is on the GPU at a time: leases on it take "
		      "turns, whatever CUs they have.");
	advise(doctor, "Unless that is wanted: echo 0 > %s (a 0 for each partition)", path);
}

/* Older kernels have no such file. */
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
	}
	if (doctor->n_findings > before)
		return;

	say(doctor, MARK_OK, "no GPU here has enforce_isolation");
	means(doctor, "Processes compute side by side, as leases want it.");
}
