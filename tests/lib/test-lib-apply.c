/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The public functions that mask queues of this process, and attached pointers. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "dbus/record.h"
#include "fake-lease.h"
#include "libgpuarb/lease/apply.h"
#include "libgpuarb/lease/lease-handle.h"
#include "rig.h"

NEEDS(rig_bus_missing);

/* The inode of the first PID namespace. */
static bool in_first_namespace(void)
{
	char name[64];
	ssize_t n = readlink("/proc/self/ns/pid", name, sizeof(name) - 1);

	CHECK(n > 0);
	name[n] = '\0';
	return strcmp(name, "pid:[4026531836]") == 0;
}

TEST(the_lease_is_checked_before_its_queues)
{
	static const uint32_t mask[] = { 0xf };
	struct gpuarb_lease *lease;
	struct stage stage;
	uint32_t id;

	if (!in_first_namespace())
		SKIP("in a PID namespace of its own");
	stage_set(&stage, "granted", NULL);
	lease = stage_reserve(&stage, 0);
	CHECK(gpuarb_lease_apply(lease) == -EOPNOTSUPP);
	CHECK(strstr(gpuarb_last_error(stage.gpuarb), "GPU "));
	CHECK(gpuarb_lease_queue_ids(lease, 0, &id, 1) == -EOPNOTSUPP);
	CHECK(gpuarb_lease_queue_ids(lease, 0, NULL, 1) == -EINVAL);
	CHECK(gpuarb_lease_mask_queue(lease, 0, 0, mask, 1) == -EOPNOTSUPP);

	/* A GPU that KFD knows, without queues of this process. */
	lease->info.partitions = &(struct gpuarb_partition){
		.gpu = "0000:03:00.0", .kfd_gpu_id = 4711, .cu_mask = mask, .cu_mask_words = 1
	};
	CHECK(gpuarb_lease_apply(lease) == 0 && !*gpuarb_last_error(stage.gpuarb));
	CHECK(gpuarb_lease_queue_ids(lease, 0, &id, 1) == 0);
	CHECK(gpuarb_lease_mask_queue(lease, 0, 0, mask, 1) == -ENOENT);
	CHECK(gpuarb_lease_pause_queue(lease, 0, 0, 1) == -ENOENT);

	setenv("HSA_CU_MASK", "0:0xff", 1);
	CHECK(gpuarb_lease_apply(lease) == -EEXIST);
	unsetenv("HSA_CU_MASK");

	stage_end(&stage, GPUARB_RECORD_ENDED);
	CHECK(gpuarb_lease_dispatch(lease, NULL, NULL) == -ENOENT);
	CHECK(gpuarb_lease_apply(lease) == -EBADFD);
	CHECK(strstr(gpuarb_last_error(stage.gpuarb), "ending"));
	gpuarb_lease_close(lease);
	stage_strike(&stage);
}

static int apply_in_own_namespace(struct stage *stage, struct gpuarb_lease *lease)
{
	int status;
	pid_t pid;

	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWPID) < 0)
			_exit(77);
		pid = fork();
		if (pid == 0)
			_exit(gpuarb_lease_apply(lease) == -EOPNOTSUPP &&
					      strstr(gpuarb_last_error(stage->gpuarb),
						     "PID namespace")
				      ? 0
				      : 1);
		_exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									   : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(no_queue_is_masked_from_another_pid_namespace)
{
	struct gpuarb_lease *lease;
	struct stage stage;
	int r;

	stage_set(&stage, "granted", NULL);
	lease = stage_reserve(&stage, 0);
	r = apply_in_own_namespace(&stage, lease);
	gpuarb_lease_close(lease);
	stage_strike(&stage);
	if (r == 77)
		SKIP("may not make a PID namespace");
	CHECK(r == 0);
}

/* ---- the driver ----------------------------------------------------------------------------- */

TEST(a_mask_for_another_file_than_kfd_fails)
{
	static const struct mask mask = { .word = { 1 }, .words = 1 };
	struct gpuarb gpuarb = { .references = 1 };
	struct apply apply;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)apply_this_process(&gpuarb, &apply);
	handle_begin(&gpuarb);
	CHECK(apply.driver->set_mask(NULL, fd, 0, &mask) == -ENOTTY);
	close(fd);
	CHECK(apply.driver->set_mask(NULL, fd, 0, &mask) == -EBADF);
	if (access("/dev/kfd", F_OK) == 0)
		SKIP("there is a /dev/kfd");
	CHECK(apply.driver->open(NULL) == -ENOENT);
}

/* ---- attached pointers ----------------------------------------------------------------------- */

static void count(void *data)
{
	(*(unsigned *)data)++;
}

TEST(an_attached_pointer_is_released_once)
{
	unsigned first = 0, second = 0, third = 0;
	_cleanup_(stage_strike) struct stage stage;
	struct gpuarb_lease *lease = stage_begin(&stage, "granted", NULL);

	CHECK(!gpuarb_lease_attached(lease));
	gpuarb_lease_attach(lease, &first, count);
	/* Attaching the same pointer again does not release it. */
	gpuarb_lease_attach(lease, &first, count);
	CHECK(gpuarb_lease_attached(lease) == &first && first == 0);
	gpuarb_lease_attach(lease, &second, NULL);
	CHECK(gpuarb_lease_attached(lease) == &second && first == 1);
	gpuarb_lease_attach(lease, &third, count);
	gpuarb_lease_close(lease);
	CHECK(first == 1 && second == 0 && third == 1);
}
