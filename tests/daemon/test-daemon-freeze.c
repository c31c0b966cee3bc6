/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The shipped daemon freezes the unit of an overdue borrower, if all processes in it belong to the lease,
 * and thaws it when its CUs are not needed any more. */

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <linux/magic.h>

#include "check.h"
#include "enforce-rig.h"
#include "fake-systemd.h"
#include "lend-live.h"

#define CGROUPS "/sys/fs/cgroup"

struct stage {
	struct rig rig;
	struct helper helper;
	struct fake_systemd systemd;
	sd_bus *bus, *crowd;
	struct told told;
	struct live_lease rt, borrower;
	char unit[32], cgroup[64];
	pid_t pid;
	int fd;
};

static bool is_unified(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* Whether this process can create cgroups; mounts the hierarchy at its usual place for this process and
 * its children where that is needed. */
static bool have_cgroups(void)
{
	if (is_unified(CGROUPS))
		return access(CGROUPS, W_OK) == 0;
	return is_unified(CGROUPS "/unified") && unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount(CGROUPS "/unified", CGROUPS, NULL, MS_BIND, NULL) == 0;
}

static void move_in(const struct stage *s, pid_t pid)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.procs", s->cgroup);
	file = fopen(path, "we");
	CHECK(file && fprintf(file, "%d\n", pid) > 0 && fclose(file) == 0);
}

/* false: no unit can be made here. */
static bool arrive(struct stage *s)
{
	char options[256];

	memset(s, 0, sizeof(*s));
	snprintf(s->unit, sizeof(s->unit), "ok-%d.scope", getpid());
	snprintf(s->cgroup, sizeof(s->cgroup), CGROUPS "/%s", s->unit);
	if (!have_cgroups() || mkdir(s->cgroup, 0755) < 0)
		return false;
	rig_new(&s->rig);
	CHECK(setenv("GPUARB_BUS_ADDRESS", s->rig.address, 1) == 0);
	CHECK(fake_systemd_start(&s->systemd));
	helper_listen(&s->helper);
	helper_start(&s->helper, NULL, NULL, -1);
	lend_configure(&s->rig, "activate-grace = 50ms\n" GROW_NEVER, "freeze");
	snprintf(options, sizeof(options), LEND_GPU " --enforce=%s", s->helper.path);
	rig_start(&s->rig, options);
	s->bus = rig_connect(&s->rig, 0);
	s->crowd = rig_connect(&s->rig, STRANGER);
	listen_in(s->bus, &s->told);
	s->rt = keep_inactive(s->bus, 15);
	s->borrower = borrow(s->crowd);
	s->pid = idler(STRANGER, &s->fd);
	helper_uses_kfd(&s->helper, s->pid, true);
	move_in(s, s->pid);
	CHECK(is_fine(call(with(call_lease(s->crowd, s->borrower.path, "Bind"), "h", s->fd))));
	return true;
}

static void depart(struct stage *s)
{
	end_process(s->pid);
	close(s->fd);
	leave(s->bus);
	leave(s->crowd);
	helper_stop(&s->helper);
	fake_systemd_stop(&s->systemd);
	rig_done(&s->rig);
	CHECK(rmdir(s->cgroup) == 0);
}

static bool was_asked(struct stage *s, const char *method)
{
	char call[64];

	snprintf(call, sizeof(call), "%s %s", method, s->unit);
	return fake_systemd_was_asked(&s->systemd, call);
}

TEST(a_unit_stays_frozen_while_its_cus_are_needed)
{
	static struct stage s;

	NEEDS_DAEMON();
	if (!arrive(&s))
		SKIP("there is no cgroup of version 2 that could be made");
	CHECK(is_fine(activate(s.bus, &s.rt)));
	CHECK(was_asked(&s, "FreezeUnit"));
	CHECK(is_in_state(s.bus, &s.rt, "activating")); /* what it runs on the GPU runs on */
	CHECK(is_fine(deactivate(s.bus, &s.rt)));
	CHECK(was_asked(&s, "ThawUnit"));
	depart(&s);
}

TEST(a_unit_is_thawed_when_its_lease_is_removed)
{
	static struct stage s;

	NEEDS_DAEMON();
	if (!arrive(&s))
		SKIP("there is no cgroup of version 2 that could be made");
	CHECK(is_fine(activate(s.bus, &s.rt)));
	CHECK(was_asked(&s, "FreezeUnit"));
	CHECK(is_fine(call(release(s.bus, s.borrower.path))));
	await_record(s.rt.holder, GPUARB_RECORD_GRANTED);
	CHECK(was_asked(&s, "ThawUnit"));
	depart(&s);
}

TEST(a_unit_with_a_foreign_process_is_not_frozen)
{
	static struct stage s;
	const char *said;
	char pid[64];
	pid_t other;
	int fd, log;

	NEEDS_DAEMON();
	if (!arrive(&s))
		SKIP("there is no cgroup of version 2 that could be made");
	rig_stop(&s.rig);
	log = log_begin(&s.rig);
	rig_start(&s.rig, LEND_GPU);
	s.rt = keep_inactive(s.bus, 15);
	s.borrower = borrow(s.crowd);
	CHECK(is_fine(call(with(call_lease(s.crowd, s.borrower.path, "Bind"), "h", s.fd))));
	other = idler(STRANGER, &fd);
	move_in(&s, other);
	CHECK(is_fine(activate(s.bus, &s.rt)));
	AWAIT(s.bus, lease_says(s.bus, s.borrower.path, "Reason", "has not given back"));
	end_process(other);
	close(fd);
	said = log_end(&s.rig, log);
	snprintf(pid, sizeof(pid), "pid %d in %s ", other, s.unit);
	CHECK(strstr(said, pid));
	depart(&s);
}
