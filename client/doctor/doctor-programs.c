/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks whether programs of this user may use the GPUs, and checks of AMD's runtime and of its environment variables. Libraries are identified by the names of their
 * files, because loading a library runs its code. */

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/doctor/doctor.h"
#include "client/output/print.h"

#define NODES "/sys/class/kfd/kfd/topology/nodes"
#define NODES_MAX 256U

static void missing(struct doctor *doctor, const char *device)
{
	if (doctor->n_gpus == 0) { /* the check "kernel" has reported why */
		report(doctor, MARK_NOTE, "not examined: there is no GPU to use");
		means(doctor, "Programs find no GPU.");
		advise(doctor, "See the check \"kernel\".");
		return;
	}
	report(doctor, MARK_PROBLEM, "%s does not exist", device);
	means(doctor, "Programs cannot compute on %s.",
	      strcmp(device, "/dev/kfd") == 0 ? "any GPU" : "that GPU");
	advise(doctor, "Run modprobe amdgpu, and check that udev runs. In a container: --device=%s",
	       device);
}

static void advise_group(struct doctor *doctor, const struct stat *st)
{
	const struct group *group = getgrgid(st->st_gid);
	char user[PRINT_USER];

	print_user(geteuid(), user);
	if ((st->st_mode & 060) != 060 || st->st_gid == 0)
		advise(doctor,
		       "Give the device to a group by a udev rule: KERNEL==\"kfd\", "
		       "GROUP=\"render\", MODE=\"0660\"; the same for renderD*. Then add %s to "
		       "that group.",
		       user);
	else if (group)
		advise(doctor, "usermod -a -G %s %s; then log in again.", group->gr_name, user);
	else
		advise(doctor,
		       "The device belongs to group %u, which has no name here. In a container: "
		       "--group-add %u",
		       st->st_gid, st->st_gid);
}

/* Whether the device may be used. Directories on the path are not checked. */
static bool usable(struct doctor *doctor, const char *device)
{
	char path[DOCTOR_PATH];
	char user[PRINT_USER];
	struct stat st;
	int r;

	doctor_path(doctor, path, "%s", device);
	if (stat(path, &st) < 0) {
		missing(doctor, device);
		return false;
	}
	/* The device cgroup takes part: its refusal is EPERM. */
	if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0)
		return true;

	r = -errno;
	print_user(geteuid(), user);
	report(doctor, MARK_PROBLEM, "%s: user %s may not read and write it: %s", device, user,
	       strerror(-r));
	means(doctor, "This user's programs cannot use the GPU, with or without a lease.");
	if (r == -EACCES)
		advise_group(doctor, &st);
	else
		advise(doctor,
		       "The device cgroup denies access. In a unit: DeviceAllow=; in a container: "
		       "--device=%s",
		       device);
	return false;
}

/* Reads the number after a key in the properties of a node. */
static int read_property(const struct doctor *doctor, unsigned node, const char *key, uint64_t *ret)
{
	char path[DOCTOR_PATH], name[64];
	uint64_t value;
	FILE *file = fopen(doctor_path(doctor, path, NODES "/%u/properties", node), "re");
	int r = -ENODATA;

	if (!file)
		return -errno;
	while (r < 0 && fscanf(file, "%63s %" SCNu64, name, &value) == 2) {
		if (strcmp(name, key) == 0) {
			*ret = value;
			r = 0;
		}
	}
	fclose(file);
	return r;
}

/* Checks the render node of the GPU. 1: it may be used; 0: it may not, or the node is no GPU. */
static int usable_node(struct doctor *doctor, unsigned node)
{
	char path[96], id[32], device[48];
	uint64_t minor = 0;
	int r;

	snprintf(path, sizeof(path), NODES "/%u/gpu_id", node);
	r = doctor_read_line(doctor, path, id, sizeof(id));
	if (r == -EPERM) {
		report(doctor, MARK_NOTE,
		       "the device cgroup of this process hides the GPU of KFD node %u", node);
		means(doctor, "Programs that are started from here do not see this GPU.");
		advise(doctor, "To use it: DeviceAllow= in a unit, --device in a container.");
	}
	if (r < 0 || strcmp(id, "0") == 0)
		return 0;

	if (read_property(doctor, node, "drm_render_minor", &minor) < 0 || minor == 0) {
		report(doctor, MARK_PROBLEM, "KFD node %u has no render node", node);
		means(doctor, "ROCm ignores this GPU.");
		advise(doctor, "Search dmesg for amdgpu and drm.");
		return 0;
	}
	snprintf(device, sizeof(device), "/dev/dri/renderD%" PRIu64, minor);
	return usable(doctor, device) ? 1 : 0;
}

/* How opening the device ends, in a child that ends at once, so that the driver forgets it again. */
static int try_open(const char *path)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK) < 0 ? errno : 0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -ECHILD;
	return -WEXITSTATUS(status);
}

/* After a card was unplugged or given to vfio, the driver refuses everybody although all permissions are right
 * (kfd_create_process(), kfd_process.c: EINVAL while it is locked). */
static void check_open(struct doctor *doctor)
{
	char path[DOCTOR_PATH];
	int r = try_open(doctor_path(doctor, path, "/dev/kfd"));

	if (r == 0)
		return;
	report(doctor, MARK_PROBLEM, "/dev/kfd may be used, and cannot be opened: %s",
	       strerror(-r));
	means(doctor, "No program can use a GPU until the driver is loaded again.");
	advise(doctor,
	       "End the programs that have /dev/kfd open (fuser /dev/kfd), then modprobe -r amdgpu "
	       "&& modprobe amdgpu, or reboot. Search dmesg for kfd.");
}

void check_permissions(struct doctor *doctor)
{
	size_t before = doctor->n_findings;
	char path[96], user[PRINT_USER];
	int n = 0;

	if (usable(doctor, "/dev/kfd"))
		check_open(doctor);
	for (unsigned i = 0; i < NODES_MAX; i++) {
		snprintf(path, sizeof(path), NODES "/%u", i);
		if (doctor_find(doctor, path) < 0)
			break;
		n += usable_node(doctor, i);
	}
	if (doctor->n_findings > before)
		return;

	print_user(geteuid(), user);
	report(doctor, MARK_OK, "user %s may use /dev/kfd and %d render node%s", user, n,
	       print_s((uint64_t)n));
	means(doctor, "This user's programs can use the GPUs, with or without a lease.");
}

/* ---- AMD's runtime ----------------------------------------------------------------------- */

/* Where distributions and AMD put libraries. */
static const char *const places[] = {
	"/opt/rocm*/lib", "/usr/local/lib", "/usr/lib64", "/usr/lib/*-linux-gnu", "/usr/lib",
};

/* The files of one library, by their real paths. */
struct libraries {
	char *paths[16];
	size_t n;
};

static void libraries_done(struct libraries *libraries)
{
	for (size_t i = 0; i < libraries->n; i++)
		free(libraries->paths[i]);
}

static void add(struct libraries *libraries, const char *path)
{
	char *real = realpath(path, NULL);

	for (size_t i = 0; real && i < libraries->n; i++) {
		if (strcmp(libraries->paths[i], real) == 0) {
			free(real);
			return;
		}
	}
	if (real && libraries->n < ARRAY_SIZE(libraries->paths))
		libraries->paths[libraries->n++] = real;
	else
		free(real);
}

static void add_matching(struct libraries *libraries, const char *pattern)
{
	glob_t found = { 0 };

	if (glob(pattern, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			add(libraries, found.gl_pathv[i]);
	}
	globfree(&found);
}

/* name: "libamdhip64.so". Searches LD_LIBRARY_PATH first, as the loader does. */
static void find(const struct doctor *doctor, const char *name, struct libraries *libraries)
{
	const char *own = getenv("LD_LIBRARY_PATH");
	char path[DOCTOR_PATH];

	for (size_t n; own && *own; own += n + (own[n] == ':')) {
		n = strcspn(own, ":");
		if (n > 0 && (size_t)snprintf(path, sizeof(path), "%.*s/%s.*", (int)n, own, name) <
				     sizeof(path))
			add_matching(libraries, path);
	}
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		add_matching(libraries, doctor_path(doctor, path, "%s/%s.*", places[i], name));
}

/* "5.2.21153" of .../libamdhip64.so.5.2.21153. */
static const char *version_of(const char *path)
{
	const char *suffix = strstr(path, ".so.");

	return suffix ? suffix + 4 : "of unknown version";
}

/* last: the newest major version whose handling of masks is known. */
static bool is_newer(struct doctor *doctor, const char *name, const char *path, int last)
{
	const char *version = version_of(path);

	if (atoi(version) <= last)
		return false;
	report(doctor, MARK_NOTE, "%s %s (%s) is newer than this gpuarb", name, version, path);
	means(doctor, "It may treat masks in another way.");
	advise(doctor, "Run a program in a lease, and compare its masks: gpuarbctl verify.");
	return true;
}

static void describe_hip(struct doctor *doctor, const char *path)
{
	const char *version = version_of(path);
	int major = atoi(version);

	if (is_newer(doctor, "HIP", path, 7))
		return;
	report(doctor, MARK_OK, "HIP %s (%s)", version, path);
	if (major > 0 && major <= 6)
		means(doctor,
		      "This version fails (hipErrorOutOfMemory) if HSA_CU_MASK narrows the mask "
		      "of a stream: programs under gpuarbctl run that create streams with "
		      "masks must stay within the mask of the lease.");
	else
		means(doctor, "Programs that use it can run in a lease.");
}

void check_hip(struct doctor *doctor)
{
	_cleanup_(libraries_done) struct libraries hip = { 0 }, rocr = { 0 };

	find(doctor, "libamdhip64.so", &hip);
	find(doctor, "libhsa-runtime64.so", &rocr);
	for (size_t i = 0; i < hip.n; i++)
		describe_hip(doctor, hip.paths[i]);
	for (size_t i = 0; i < rocr.n; i++) {
		if (is_newer(doctor, "ROCr", rocr.paths[i], 1))
			continue;
		report(doctor, MARK_OK, "ROCr %s (%s)", version_of(rocr.paths[i]), rocr.paths[i]);
		means(doctor, "It reads HSA_CU_MASK and applies the mask to each queue from its "
			      "creation on.");
	}
	if (hip.n == 0) {
		report(doctor, MARK_NOTE, "no HIP (libamdhip64) in the usual directories");
		means(doctor,
		      "Programs with a HIP of their own, in a container or a Python package, "
		      "do not need it, and neither does gpuarbd.");
		advise(doctor, "If programs need it, install it or set LD_LIBRARY_PATH.");
	}
	if (hip.n > 1) {
		report(doctor, MARK_NOTE, "%zu versions of HIP are installed", hip.n);
		means(doctor, "The loader decides which of them a program uses.");
		advise(doctor, "To find out, run ldd PROGRAM.");
	}
}

static const struct variable {
	const char *name;
	enum mark mark;
	const char *means, *advice;
} variables[] = {
	{ "HSA_CU_MASK", MARK_PROBLEM,
	  "The runtime would combine it with the mask of a lease, so gpuarbctl run fails.",
	  "unset HSA_CU_MASK" },
	{ "ROC_GLOBAL_CU_MASK", MARK_PROBLEM,
	  "The runtime would combine it with the mask of a lease, so gpuarbctl run fails.",
	  "unset ROC_GLOBAL_CU_MASK" },
	{ "HSA_CU_MASK_SKIP_INIT", MARK_NOTE,
	  "Queues start without the mask of HSA_CU_MASK. gpuarbctl run removes the variable; a "
	  "program that sets it uses the whole GPU.",
	  "unset HSA_CU_MASK_SKIP_INIT" },
	{ "GPU_MAX_HW_QUEUES", MARK_NOTE,
	  "HIP creates up to so many queues for each priority class. gpuarbctl run takes the "
	  "smaller of it and the queues of the lease; other programs use this value.",
	  "unset GPU_MAX_HW_QUEUES, unless you need it" },
};

void check_environment(struct doctor *doctor)
{
	const char *lease = getenv("GPUARB_LEASE");
	size_t before = doctor->n_findings;

	/* gpuarbctl run has set the variables. */
	if (lease) {
		report(doctor, MARK_OK, "this shell runs in lease %s", lease);
		means(doctor, "Programs that are started from here have the mask of that lease and "
			      "share its queues.");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const char *value = getenv(variables[i].name);

		if (!value)
			continue;
		report(doctor, variables[i].mark, "%s=%s", variables[i].name, value);
		means(doctor, "%s", variables[i].means);
		advise(doctor, "%s", variables[i].advice);
	}
	if (doctor->n_findings > before)
		return;

	report(doctor, MARK_OK, "no environment variable disturbs masks");
	means(doctor, "The variables that gpuarbctl run sets take effect.");
}
