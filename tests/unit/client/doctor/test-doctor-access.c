/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks of doctor: permissions of devices. */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "check.h"
#include "doctor-rig.h"

static const char *const two[] = { "radeon-vii", "mi210" };

/* Two GPUs, whose render nodes are /dev/dri/renderD128 and 129, and all devices. */
static void new_machine(struct patient *patient)
{
	patient_new(patient);
	patient_has_gpus(patient, two, 2);
	patient_put(patient, "dev/kfd", "");
	patient_put(patient, "dev/dri/renderD128", "");
	patient_put(patient, "dev/dri/renderD129", "");
}

static void set_owner(const struct patient *patient, const char *path, gid_t group, mode_t mode)
{
	CHECK(chown(scratch_at(&patient->scratch, path), 0, group) == 0);
	CHECK(chmod(scratch_at(&patient->scratch, path), mode) == 0);
}

/* Runs the check as user nobody if this is root. */
static void examine_as_nobody(struct patient *patient)
{
	CHECK(seteuid(65534) == 0);
	examine(patient, check_permissions);
	CHECK(seteuid(0) == 0);
}

FIXTURE(struct patient, patient, new_machine(patient), patient_done(patient));

TEST_WITH(usable_devices_are_counted, struct patient *patient)
{
	examine(patient, check_permissions);
	only(patient, MARK_OK, "may use /dev/kfd and 2 render nodes");
}

/* A socket stands for a driver that refuses to be opened although the permissions are right. */
TEST_WITH(a_driver_that_cannot_be_opened_is_a_problem, struct patient *patient)
{
	int fd = scratch_bind(scratch_at(&patient->scratch, "dev/kfd"), SOCK_STREAM);

	examine(patient, check_permissions);
	CHECK(advises(only(patient, MARK_PROBLEM, "/dev/kfd"), "modprobe"));
	close(fd);
}

TEST_WITH(a_missing_device_is_named, struct patient *patient)
{
	const struct finding *finding;

	patient_remove(patient, "dev/dri/renderD129");
	examine(patient, check_permissions);
	finding = only(patient, MARK_PROBLEM, "/dev/dri/renderD129");
	CHECK(strstr(finding->means, "that GPU") && advises(finding, "udev"));

	patient_remove(patient, "dev");
	examine(patient, check_permissions);
	CHECK(patient->doctor.n_findings == 3);
	CHECK(strstr(finding_of(patient, MARK_PROBLEM, "/dev/kfd")->means, "any GPU"));
}

TEST(a_missing_device_without_a_gpu_is_left_to_the_check_kernel)
{
	_cleanup_(patient_done) struct patient patient;

	patient_new(&patient);
	CHECK(fake_sysfs_mkdir(patient.scratch.path, "sys/bus/pci/devices") == 0);
	examine(&patient, check_permissions);
	only(&patient, MARK_NOTE, "not examined");
}

TEST_WITH(a_gpu_without_a_render_node_is_a_problem, struct patient *patient)
{
	CHECK(fake_sysfs_set(patient->sys, FAKE_NODES "/2/properties", "drm_render_minor", "0") ==
	      0);
	examine(patient, check_permissions);
	only(patient, MARK_PROBLEM, "node 2 has no render node");
	CHECK(fake_sysfs_set(patient->sys, FAKE_NODES "/2/properties", "drm_render_minor", NULL) ==
	      0);
	examine(patient, check_permissions);
	only(patient, MARK_PROBLEM, "node 2 has no render node");
	CHECK(fake_sysfs_remove(patient->sys, FAKE_NODES "/2/properties") == 0);
	examine(patient, check_permissions);
	only(patient, MARK_PROBLEM, "node 2 has no render node");
}

TEST(a_user_outside_of_the_group_gets_its_name)
{
	struct patient patient;
	const struct finding *finding;

	if (geteuid() != 0)
		SKIP("devices of another group take root");
	new_machine(&patient);
	set_owner(&patient, "dev/dri/renderD128", 0, 0666);
	set_owner(&patient, "dev/dri/renderD129", 0, 0666);
	set_owner(&patient, "dev/kfd", 1, 0660);
	examine_as_nobody(&patient);
	finding = only(&patient, MARK_PROBLEM, "/dev/kfd: user nobody may not");
	CHECK(advises(finding, "usermod -a -G daemon nobody"));

	set_owner(&patient, "dev/kfd", 54321, 0660);
	examine_as_nobody(&patient);
	CHECK(advises(only(&patient, MARK_PROBLEM, "/dev/kfd"), "--group-add 54321"));

	/* As devtmpfs makes it, where udev has no rule. */
	set_owner(&patient, "dev/kfd", 0, 0600);
	examine_as_nobody(&patient);
	CHECK(advises(only(&patient, MARK_PROBLEM, "/dev/kfd"), "GROUP=\"render\""));

	/* What may be read alone does not do. */
	set_owner(&patient, "dev/kfd", 1, 0666);
	set_owner(&patient, "dev/dri/renderD128", 1, 0664);
	examine_as_nobody(&patient);
	only(&patient, MARK_PROBLEM, "/dev/dri/renderD128: user nobody may not");
	patient_done(&patient);
}

/* An immutable file fails with EPERM, as a device does that the device cgroup denies. */
static bool set_immutable(const char *path, bool immutable)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), flags = 0;
	bool done;

	CHECK(fd >= 0);
	done = ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0;
	flags = immutable ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
	done = done && ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
	close(fd);
	return done;
}

TEST(a_device_that_the_cgroup_denies_gets_cgroup_advice)
{
	struct patient patient;
	const char *path;

	new_machine(&patient);
	path = scratch_at(&patient.scratch, "dev/kfd");
	if (!set_immutable(path, true)) {
		patient_done(&patient);
		SKIP("no immutable files here");
	}
	examine(&patient, check_permissions);
	CHECK(set_immutable(path, false));
	CHECK(advises(only(&patient, MARK_PROBLEM, "/dev/kfd: "), "DeviceAllow="));
	patient_done(&patient);
}

static bool set_capability(unsigned capability, bool have)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	uint32_t bit = 1U << capability % 32;

	CHECK(syscall(SYS_capget, &header, data) == 0);
	if (have)
		data[capability / 32].effective |= bit;
	else
		data[capability / 32].effective &= ~bit;
	return syscall(SYS_capset, &header, data) == 0;
}

/* Root without CAP_SYSLOG gets EPERM from /proc/kmsg, as from gpu_id in such a cgroup. */
TEST(a_gpu_that_the_cgroup_hides_is_a_note)
{
	struct patient patient;
	const char *path;
	int fd;

	if (geteuid() != 0)
		SKIP("it takes root to lose a capability");
	new_machine(&patient);
	path = scratch_at(&patient.scratch, "sys/" FAKE_NODES "/2/gpu_id");
	CHECK(unlink(path) == 0 && symlink("/proc/kmsg", path) == 0);
	CHECK(set_capability(CAP_SYSLOG, false));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 || errno != EPERM) {
		close(fd);
		patient_done(&patient);
		SKIP("no file here answers EPERM");
	}
	examine(&patient, check_permissions);
	(void)set_capability(CAP_SYSLOG, true);
	CHECK(advises(only(&patient, MARK_NOTE, "node 2"), "DeviceAllow="));
	patient_done(&patient);
}
