/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks whether this user's programs may use the GPUs, without opening a device. */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/doctor/doctor.h"
#include "client/output/print.h"

#define NODES "/sys/class/kfd/kfd/topology/nodes"
#define NODES_MAX 256U

static void missing(struct doctor *doctor, const char *device)
{
	if (doctor->n_gpus == 0 && doctor_count_devices(doctor) == 0) {
		report(doctor, MARK_NOTE, "%s does not exist, and this machine has no AMD GPU",
		       device);
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
	uint64_t minor;
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

void check_permissions(struct doctor *doctor)
{
	size_t before = doctor->n_findings;
	char path[96], user[PRINT_USER];
	int n = 0;

	(void)usable(doctor, "/dev/kfd");
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
