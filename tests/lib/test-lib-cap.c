/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The filter of a capped lease, on the shipped daemon with a simulated GPU. A filter stays for ever, so
 * each test is a child. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "libgpuarb/gpuarb.h"
#include "rig.h"

#define CREATE_QUEUE 0xc0604b02UL

static struct gpuarb_lease *reserve(struct gpuarb **ret, bool bound)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease;

	if (bound)
		options.process_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	want.cus = 15;
	want.queues = 3;
	CHECK(gpuarb_open(ret) == 0);
	CHECK(gpuarb_reserve(*ret, &want, 1, &options, &lease) == 0);
	return lease;
}

static int request(unsigned long number)
{
	static int null = -1;

	if (null < 0)
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
	return syscall(SYS_ioctl, null, number, NULL) < 0 ? errno : 0;
}

static bool has_no_new_privs(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

static void compare_calls(const struct rig *rig);

/* Runs the work in a child; policy: what the tenant says. */
static void in_child(const char *policy, void (*work)(const struct rig *rig))
{
	struct rig rig;
	int status;
	pid_t pid;

	if (rig_missing())
		SKIP(rig_missing());
	rig_new(&rig);
	rig_write(&rig, "tenants.d/all.conf", policy);
	rig_start(&rig, "--simulate=radeon-vii");
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		work(&rig);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	if (work == compare_calls)
		rig_kill(&rig); /* the child has done so */
	rig_done(&rig);
}

#define DEFAULT "[tenant *]\nclass = besteffort\n"
#define CAPPED "[tenant *]\nclass = besteffort\ncap = yes\n"

/* ---- which calls wait for the daemon -------------------------------------------------------- */

/* Without a daemon they fail with ENOSYS; all others reach the device. */
static void compare_calls(const struct rig *rig)
{
	struct gpuarb *gpuarb;
	struct gpuarb_lease *lease = reserve(&gpuarb, true);

	CHECK(gpuarb_lease_cap(lease, true) == 1 && has_no_new_privs());
	CHECK(request(CREATE_QUEUE) == ENOTTY); /* allowed */
	CHECK(kill(rig->daemon, SIGKILL) == 0);
	while (request(CREATE_QUEUE) != ENOSYS)
		sched_yield();
	CHECK(request(0xc0584b02) == ENOSYS);               /* the size of Linux 6.1 */
	CHECK(request(0x00004b02) == ENOSYS);               /* no size */
	CHECK(request(CREATE_QUEUE | 1UL << 40) == ENOSYS); /* bits that the kernel ignores */
	CHECK(request(0xc0605602) == ENOSYS);               /* KFD ignores the type */
	CHECK(request(0x40280002) == ENOSYS);               /* enough bytes for the GPU */
	CHECK(request(0x40270002) == ENOTTY);               /* one too few */
	CHECK(request(0x5402) == ENOTTY);                   /* TCSETS */
	CHECK(request(0x80046402) == ENOTTY);               /* DRM_IOCTL_GET_MAGIC */
	CHECK(request(0xc0084b03) == ENOTTY);               /* DESTROY_QUEUE */
	CHECK(request(0x80084b01) == ENOTTY);               /* GET_VERSION */
}

TEST_CASE(only_calls_that_can_create_a_queue_wait_for_the_daemon, in_child(DEFAULT, compare_calls));

/* ---- policy and errors ---------------------------------------------------------------------- */

static void do_not_cap(const struct rig *)
{
	struct gpuarb *gpuarb;
	struct gpuarb_lease *lease = reserve(&gpuarb, true);

	CHECK(gpuarb_lease_cap(lease, false) == 0 && !has_no_new_privs());
}

TEST_CASE(nothing_is_installed_unless_the_policy_asks_for_it, in_child(DEFAULT, do_not_cap));

/* A launcher asks nothing that the answer to Reserve has. */
static void cap_without_a_call(const struct rig *)
{
	struct gpuarb *gpuarb;
	struct gpuarb_lease *lease = reserve(&gpuarb, true);

	gpuarb_set_timeout(gpuarb, 0);
	CHECK(gpuarb_lease_cap(lease, false) == 0);
}

TEST_CASE(a_granted_lease_tells_whether_it_is_to_be_capped, in_child(DEFAULT, cap_without_a_call));

static void cap_by_policy(const struct rig *)
{
	const struct gpuarb_lease_info *infos;
	struct gpuarb *gpuarb;
	struct gpuarb_lease *lease = reserve(&gpuarb, true);
	struct gpuarb_view *view;

	CHECK(gpuarb_lease_cap(lease, false) == 1 && has_no_new_privs());
	CHECK(gpuarb_look(gpuarb, &view) == 0 && gpuarb_view_leases(view, &infos) == 1);
	CHECK(strcmp(infos[0].tier, "capped") == 0);
	CHECK(gpuarb_view_queue_refusals(view, 0) == 0 && gpuarb_view_queue_refusals(view, 1) == 0);
	CHECK(gpuarb_lease_cap(lease, false) == -EBUSY); /* Linux allows one listener */
	CHECK(strstr(gpuarb_last_error(gpuarb), "listener"));
}

TEST_CASE(a_lease_is_capped_if_the_policy_asks_for_it, in_child(CAPPED, cap_by_policy));

static void cap_after_waiting(const struct rig *)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *first, *lease;
	struct gpuarb *gpuarb;

	first = reserve(&gpuarb, false);
	want.cus = 60;
	options.wait_usec = GPUARB_FOREVER;
	options.process_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	CHECK(gpuarb_reserve_start(gpuarb, &want, 1, &options, &lease) == 0);
	CHECK(gpuarb_lease_release(first) == 0);
	CHECK(gpuarb_lease_wait(lease, GPUARB_FOREVER) == 0);
	CHECK(gpuarb_lease_cap(lease, false) == 1 && has_no_new_privs());
}

TEST_CASE(a_lease_that_waited_is_capped_if_the_policy_asks_for_it,
	  in_child(CAPPED, cap_after_waiting));

static void cap_unbound(const struct rig *)
{
	struct gpuarb *gpuarb;
	struct gpuarb_lease *lease = reserve(&gpuarb, false);

	CHECK(gpuarb_lease_cap(lease, true) == -EIO);
	CHECK(strstr(gpuarb_last_error(gpuarb), "not bound"));
}

TEST_CASE(a_process_that_is_not_bound_cannot_cap_the_lease, in_child(DEFAULT, cap_unbound));

static void cap_waiting(const struct rig *)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease;
	struct gpuarb *gpuarb;

	(void)reserve(&gpuarb, true);
	want.cus = 60;
	options.wait_usec = GPUARB_FOREVER;
	CHECK(gpuarb_reserve_start(gpuarb, &want, 1, &options, &lease) == 0);
	CHECK(gpuarb_lease_cap(lease, true) == -EBADFD);
}

TEST_CASE(a_lease_that_waits_cannot_be_capped, in_child(DEFAULT, cap_waiting));
