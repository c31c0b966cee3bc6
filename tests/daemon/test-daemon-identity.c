/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Processes of two users, beside each other in a unit and below each other: nobody's lease suffers for
 * the queues of another user, and nobody's program is killed for the lease of another user. */

#include <sys/prctl.h>

#include "await.h"
#include "budget-rig.h"
#include "check.h"
#include "enforce-rig.h"
#include "lend-live.h"
#include "machine.h"

NEEDS(daemon_missing);

#define OTHER 2 /* "bin" */

struct stage {
	struct machine machine;
	struct helper helper;
	sd_bus *bus; /* of the user STRANGER */
	struct live_lease lease;
	pid_t pid; /* bound to the lease */
	int fd;
};

static void start(struct stage *s)
{
	char options[256];

	snprintf(options, sizeof(options), "%s --enforce=%s", s->machine.option, s->helper.path);
	rig_start_managed(&s->machine.rig, options, "--store-max=64");
}

/* A lease of STRANGER with 2 queues; policy: of all tenants. */
static void arrive_with(struct stage *s, const char *keys, const char *policy)
{
	char config[512];

	memset(s, 0, sizeof(*s));
	machine_build(&s->machine, *keys ? 2 : 1);
	helper_listen(&s->helper);
	snprintf(s->helper.sysfs, sizeof(s->helper.sysfs), "%s",
		 strchr(s->machine.option, '=') + 1);
	helper_start(&s->helper, NULL, NULL, -1);
	snprintf(config, sizeof(config),
		 "[daemon]\naudit-interval = 100ms\ndrift-grace = 100ms\nactivate-grace = 100ms\n"
		 "enforce-delay = 100ms\n%s",
		 keys);
	rig_write(&s->machine.rig, "gpuarbd.conf", config);
	rig_write(&s->machine.rig, "tenants.d/10-test.conf", policy);
	log_begin(&s->machine.rig);
	start(s);
	machine_connect(&s->machine);
	s->bus = rig_connect(&s->machine.rig, STRANGER);
	s->lease = granted(call(ask_for(s->bus, "gpu=0 cus=15 queues=2")));
}

static void arrive(struct stage *s, const char *policy)
{
	arrive_with(s, "", policy);
}

static void bind_it(struct stage *s, sd_bus *bus, pid_t pid)
{
	s->pid = pid;
	s->fd = victim_pidfd(pid);
	bind_process(bus, &s->lease, s->fd);
}

/* Returns what was logged. */
static const char *depart(struct stage *s)
{
	const char *said;

	close(s->fd);
	said = log_end(&s->machine.rig);
	machine_halt(&s->machine);
	helper_stop(&s->helper);
	return said;
}

static void end_off_hardware(struct stage *s, pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK(fake_sysfs_process_gone(s->machine.sys, pid) == 0);
}

/* ---- one unit ------------------------------------------------------------------------------------ */

/* Moves this process, and what else of the test lives as long, out of the unit. */
static void empty(const struct unit_rig *unit)
{
	char path[128];
	FILE *from, *to;
	int pid;

	snprintf(path, sizeof(path), "%s/cgroup.procs", unit->cgroup);
	from = fopen(path, "re");
	CHECK(from);
	while (fscanf(from, "%d", &pid) == 1) {
		to = fopen("/sys/fs/cgroup/cgroup.procs", "we");
		CHECK(to && fprintf(to, "%d\n", pid) > 0);
		fclose(to); /* fails for one that has ended meanwhile */
	}
	fclose(from);
}

/* The lease drifts if the queues of the other user count for it: it has 2, all of them in use. */
static void share_a_unit(const char *policy)
{
	struct unit_rig unit;
	static struct stage s;
	pid_t other, third;
	int fds[2];

	if (!unit_rig_new(&unit, "shared"))
		SKIP("there is no cgroup of version 2 that could be made");
	unit_rig_add(&unit, getpid()); /* as the asking process, and those that it starts */
	arrive(&s, policy);
	bind_it(&s, s.bus, idler(STRANGER, &fds[0]));
	close(fds[0]);
	machine_use(&s.machine, s.pid, 0, 2);
	other = idler(OTHER, &fds[0]);
	third = idler(3, &fds[1]);
	machine_use(&s.machine, other, 0, 5);
	machine_use(&s.machine, third, 0, 4);
	AWAIT(s.machine.bus,
	      is_unmanaged(&s.machine, other, 5) && is_unmanaged(&s.machine, third, 4));
	CHECK(is_in_state(s.machine.bus, &s.lease, "granted"));
	CHECK(!lease_says(s.machine.bus, s.lease.path, "Reason", "queues"));

	/* Its own queues are drift, and have the consequence. */
	CHECK(fake_sysfs_queue(s.machine.sys, s.pid, 2, machine_gpu_id(&s.machine, 0), 0) == 0);
	await_record(s.lease.holder, GPUARB_RECORD_REVOKING);
	if (strstr(policy, "kill"))
		CHECK(victim_was_killed(s.pid));
	else
		end_process(s.pid);
	CHECK(waitpid(other, NULL, WNOHANG) == 0 && waitpid(third, NULL, WNOHANG) == 0);
	CHECK(fake_sysfs_process_gone(s.machine.sys, s.pid) == 0);
	end_process(other);
	end_process(third);
	for (unsigned i = 0; i < 2; i++)
		close(fds[i]);
	depart(&s);
	empty(&unit);
	AWAIT_STATE(rmdir(unit.cgroup) == 0); /* what was in it may still be ending */
}

TEST_CASE(program_is_not_killed_for_queues_of_other_users_in_its_unit,
	  share_a_unit("[tenant *]\non-drift = kill\n"));

/* ---- one above the other -------------------------------------------------------------------------- */

/* The lease of the parent is revoked, and the child alone has queues. */
static void revoke_above(bool restart)
{
	static struct stage s;
	pid_t parent, child;

	arrive(&s, "[tenant *]\nenforce = kill\n");
	parent = family(STRANGER, OTHER, &child);
	bind_it(&s, s.bus, parent);
	machine_use(&s.machine, child, 0, 1);
	AWAIT(s.machine.bus, is_unmanaged(&s.machine, child, 1));
	if (restart) {
		rig_crash(&s.machine.rig);
		AWAIT(s.machine.bus, is_unmanaged(&s.machine, child, 1));
	}
	CHECK(is_fine(take_away(s.machine.bus, &s.lease, 1000, "")));
	await_record(s.lease.holder, GPUARB_RECORD_ENDING);
	/* Nothing of the lease uses the GPU: it ends although the child goes on. */
	AWAIT(s.machine.bus, !lease_exists(s.machine.bus, s.lease.path));
	CHECK(waitpid(parent, NULL, WNOHANG) == 0 && kill(child, 0) == 0);
	CHECK(is_unmanaged(&s.machine, child, 1));
	end_process(parent);
	CHECK(kill(child, SIGKILL) == 0);
	AWAIT_END(child);
	CHECK(fake_sysfs_process_gone(s.machine.sys, child) == 0);
	depart(&s);
}

TEST_CASE(child_of_another_user_is_not_killed_for_the_lease_of_its_parent, revoke_above(false));
TEST_CASE(child_of_another_user_is_not_killed_after_a_restart_either, revoke_above(true));

/* ---- a helper that is away ----------------------------------------------------------------------- */

TEST(process_is_killed_when_gpuarb_enforce_is_back)
{
	static struct stage s;
	char away[sizeof(s.helper.path) + 8];

	arrive(&s, "[tenant *]\nenforce = kill\n");
	bind_it(&s, s.bus, idler(STRANGER, NULL));
	machine_use(&s.machine, s.pid, 0, 3);
	AWAIT(s.machine.bus, lease_says(s.machine.bus, s.lease.path, "Reason", "3 queues"));
	snprintf(away, sizeof(away), "%s.away", s.helper.path);
	CHECK(rename(s.helper.path, away) == 0);
	CHECK(is_fine(take_away(s.machine.bus, &s.lease, 1000, "")));
	AWAIT_STATE(log_says(&s.machine.rig, "cannot kill a process"));
	rig_crash(&s.machine.rig);
	CHECK(rename(away, s.helper.path) == 0);
	CHECK(victim_was_killed(s.pid));
	CHECK(fake_sysfs_process_gone(s.machine.sys, s.pid) == 0);
	AWAIT(s.machine.bus, !lease_exists(s.machine.bus, s.lease.path));
	depart(&s);
}

/* ---- containers ----------------------------------------------------------------------------------- */

/* root binds a process of another user to a lease of STRANGER: it counts, and so does its child of the
 * same user, before and after a restart. */
TEST(process_that_root_bound_counts_and_is_killed_whatever_its_user)
{
	static struct stage s;
	pid_t parent, child;

	arrive(&s, "[tenant *]\nenforce = kill\n");
	parent = family(OTHER, OTHER, &child);
	bind_it(&s, s.machine.bus, parent);
	machine_use(&s.machine, parent, 0, 1);
	machine_use(&s.machine, child, 0, 2);
	AWAIT(s.machine.bus, lease_says(s.machine.bus, s.lease.path, "Reason", "3 queues"));
	CHECK(!is_unmanaged(&s.machine, parent, 1) && !is_unmanaged(&s.machine, child, 2));
	rig_crash(&s.machine.rig);
	AWAIT(s.machine.bus, lease_says(s.machine.bus, s.lease.path, "Reason", "3 queues"));
	CHECK(is_fine(take_away(s.machine.bus, &s.lease, 1000, "")));
	await_record(s.lease.holder, GPUARB_RECORD_ENDING);
	CHECK(victim_was_killed(parent));
	AWAIT_END(child);
	CHECK(fake_sysfs_process_gone(s.machine.sys, parent) == 0);
	CHECK(fake_sysfs_process_gone(s.machine.sys, child) == 0);
	AWAIT(s.machine.bus, !lease_exists(s.machine.bus, s.lease.path));
	depart(&s);
}

/* What an engine adds to a container counts as a child of its first process, before and after a restart, and neither what
 * another user does there nor a process from outside in its cgroup. */
static void add_to_container(bool root_binds)
{
	uid_t uid = root_binds ? OTHER : STRANGER;
	static struct stage s;
	struct unit_rig unit;
	/* The first process; added, of its user and of another; from outside; added late. */
	pid_t pids[5];

	if (!unit_rig_new(&unit, "container"))
		SKIP("there is no cgroup of version 2 that could be made");
	arrive(&s, "");
	pids[0] = container_rig_start(uid);
	pids[1] = container_rig_add(pids[0], uid);
	pids[2] = container_rig_add(pids[0], 3);
	pids[3] = idler(uid, NULL);
	pids[4] = container_rig_add(pids[0], uid);
	for (unsigned i = 0; i < 5; i++)
		unit_rig_add(&unit, pids[i]);
	bind_it(&s, root_binds ? s.machine.bus : s.bus, pids[0]);
	for (unsigned i = 0; i < 4; i++)
		machine_use(&s.machine, pids[i], 0, i + 1);
	AWAIT(s.machine.bus, lease_says(s.machine.bus, s.lease.path, "Reason", "3 queues") &&
				     is_unmanaged(&s.machine, pids[2], 3) &&
				     is_unmanaged(&s.machine, pids[3], 4));
	rig_crash(&s.machine.rig);
	machine_use(&s.machine, pids[4], 0, 5);
	AWAIT(s.machine.bus, lease_says(s.machine.bus, s.lease.path, "Reason", "8 queues") &&
				     is_unmanaged(&s.machine, pids[2], 3) &&
				     is_unmanaged(&s.machine, pids[3], 4));
	end_off_hardware(&s, pids[1]);
	AWAIT(s.machine.bus, lease_says(s.machine.bus, s.lease.path, "Reason", "6 queues"));
	end_process(pids[3]);
	end_process(pids[0]);
	for (unsigned i = 0; i < 5; i++)
		if (i != 1)
			CHECK(fake_sysfs_process_gone(s.machine.sys, pids[i]) == 0);
	depart(&s);
	unit_rig_done(&unit);
}

TEST_CASE(process_that_is_added_to_a_container_counts_as_a_child_of_its_first_process,
	  add_to_container(false));
TEST_CASE(process_that_is_added_to_a_container_of_root_counts_too, add_to_container(true));

/* ---- kernel threads ------------------------------------------------------------------------------- */

TEST(kernel_thread_is_not_bound)
{
	static struct stage s;
	int fd;

	if (!sees_kthreadd())
		SKIP("kernel threads are not to be seen here");
	arrive(&s, "");
	s.fd = fd = victim_pidfd(2);
	CHECK(is_error(call(with(call_lease(s.machine.bus, s.lease.path, "Bind"), "h", fd)),
		       GPUARB_ERROR_INVALID_REQUEST, "kernel"));
	CHECK(is_error(call(ask_bound(s.machine.bus, 15, fd)), GPUARB_ERROR_INVALID_REQUEST,
		       "kernel"));
	depart(&s);
}

/* ---- processes that hold the device ------------------------------------------------------------------ */

#define SUBORDINATE 70000 /* of STRANGER */

static void start_with_subordinates(struct rig *rig, const char *options)
{
	rig_write(rig, "subuid", "daemon:70000:10\n");
	CHECK(setenv("GPUARB_SUBUID", rig_path(rig, "subuid"), 1) == 0);
	rig_start(rig, options);
	CHECK(unsetenv("GPUARB_SUBUID") == 0);
}

TEST(subordinate_uid_has_the_quota_of_its_owner)
{
	sd_bus *owner, *subordinate, *other;
	struct rig rig;

	if (!getenv("GPUARB_BUS"))
		SKIP("dbus-daemon does not admit users without a name");
	rig_new(&rig);
	rig_write(&rig, "tenants.d/10-test.conf", "[tenant *]\nmax-leases = 1\n");
	start_with_subordinates(&rig, "--simulate=radeon-vii,radeon-vii");
	owner = rig_connect(&rig, STRANGER);
	subordinate = rig_connect(&rig, SUBORDINATE);
	other = rig_connect(&rig, OTHER);
	reserve(subordinate, 15);
	CHECK(is_error(call(ask(owner, "Reserve", 15)), GPUARB_ERROR_QUOTA_EXCEEDED,
		       "uid 1 holds 1"));
	reserve(other, 15);
	rig_done(&rig);
}

/* A lease that no process is bound to borrows nothing. */
TEST(process_with_a_subordinate_uid_is_bound_to_the_adaptable_lease_that_it_asks_for)
{
	struct live_lease borrower;
	sd_bus *root;
	struct rig rig;

	if (!getenv("GPUARB_BUS"))
		SKIP("dbus-daemon does not admit users without a name");
	rig_new(&rig);
	lend_configure(&rig, GROW_NEVER, "report");
	start_with_subordinates(&rig, LEND_GPU);
	root = rig_connect(&rig, 0);
	keep_inactive(root, 30);
	borrower = borrow(rig_connect(&rig, SUBORDINATE));
	CHECK(part_of(root, &borrower).cus > 30);
	rig_done(&rig);
}

/* ---- unmanaged = refuse ----------------------------------------------------------------------------- */

/* A process with these real, effective and saved uids, and queues on the GPU. */
static pid_t user_of_gpu(const struct stage *s, uid_t real, uid_t effective, uid_t saved)
{
	int ends[2];
	pid_t pid;
	char c;

	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(setresuid(real, effective, saved) == 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CHECK(write(ends[1], "", 1) == 1);
		close_range(3, UINT32_MAX, 0);
		for (;;)
			pause();
	}
	CHECK(read(ends[0], &c, 1) == 1);
	close(ends[0]);
	close(ends[1]);
	machine_use(&s->machine, pid, 0, 1);
	return pid;
}

static bool lives(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == 0;
}

#define EXEMPT 3

TEST(process_without_a_lease_is_killed_and_none_of_root_or_exempt_users)
{
	static struct stage s;
	static const uid_t uids[] = { 0, EXEMPT, OTHER, OTHER, OTHER }; /* effective ones */
	pid_t spared[5], ended[2];
	const char *said;
	char line[128];

	arrive_with(&s, "unmanaged = refuse\nunmanaged-grace = 100ms\nunmanaged-exempt = 3\n", "");
	bind_it(&s, s.bus, idler(STRANGER, &s.fd));
	machine_use(&s.machine, s.pid, 0, 1);
	spared[0] = user_of_gpu(&s, 0, 0, 0);
	spared[1] = user_of_gpu(&s, EXEMPT, EXEMPT, EXEMPT);
	spared[2] = user_of_gpu(&s, EXEMPT, OTHER, OTHER); /* it runs a setuid program of OTHER */
	spared[3] = user_of_gpu(&s, OTHER, OTHER, 0);
	spared[4] = idler(OTHER, NULL);
	CHECK(fake_sysfs_process(s.machine.sys, spared[4]) ==
	      0); /* it has the device open, no more */
	for (unsigned i = 0; i < 5; i++)
		AWAIT(s.machine.bus, is_unmanaged(&s.machine, spared[i], i < 4));
	ended[0] = user_of_gpu(&s, OTHER, OTHER, OTHER);
	ended[1] = user_of_gpu(&s, OTHER, STRANGER, STRANGER); /* nobody's trick */
	for (unsigned i = 0; i < 2; i++) {
		CHECK(victim_was_killed(ended[i]));
		CHECK(fake_sysfs_process_gone(s.machine.sys, ended[i]) == 0);
	}
	CHECK(lives(s.pid) && is_in_state(s.machine.bus, &s.lease, "granted"));
	for (unsigned i = 0; i < 5; i++) {
		CHECK(lives(spared[i]));
		end_off_hardware(&s, spared[i]);
	}
	/* A lease of one GPU is none of the other. */
	CHECK(fake_sysfs_queue(s.machine.sys, s.pid, 7, machine_gpu_id(&s.machine, 1), 0) == 0);
	CHECK(victim_was_killed(s.pid));
	CHECK(fake_sysfs_process_gone(s.machine.sys, s.pid) == 0);
	said = depart(&s);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(line, sizeof(line),
			 "pid %d (test-daemon) of uid %u uses it without a lease, and is ended",
			 ended[i], i == 0 ? OTHER : STRANGER);
		CHECK(strstr(said, line));
	}
	for (unsigned i = 0; i < 5; i++) {
		snprintf(line, sizeof(line), "pid %d (test-daemon) of uid %u uses it", spared[i],
			 uids[i]);
		CHECK(!strstr(said, line));
	}
}
