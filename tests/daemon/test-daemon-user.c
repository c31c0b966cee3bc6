/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The shipped daemon as a user without privileges, as its unit starts it. */

#include <sys/stat.h>

#include "check.h"
#include "live.h"
#include "sys/process.h"

NEEDS(daemon_missing);

#define SERVICE 65534 /* "nobody" */

static void arrive(struct rig *rig, sd_bus **ret_root, sd_bus **ret_user)
{
	rig_run_as(rig, SERVICE);
	rig_start_managed(rig, "--simulate=radeon-vii", "--store-max=64");
	*ret_root = rig_connect(rig, 0);
	*ret_user = rig_connect(rig, STRANGER);
}

static uid_t owner_of(const char *path, mode_t *ret_mode)
{
	struct stat st;

	CHECK(stat(path, &st) == 0);
	*ret_mode = st.st_mode & 07777;
	return st.st_uid;
}

FIXTURE(struct rig, rig, rig_new(rig), rig_done(rig));

TEST_WITH(an_unprivileged_daemon_serves_every_user_and_keeps_its_files_private, struct rig *rig)
{
	struct live_lease roots, of_user;
	sd_bus *root, *user;
	char saved[64];
	mode_t mode;

	arrive(rig, &root, &user);
	CHECK(owner_of(rig_path(rig, "run/leases"), &mode) == SERVICE && mode == 0700);
	roots = reserve(root, 15);
	of_user = reserve(user, 15);
	CHECK(number_of(root, of_user.path, GPUARB_INTERFACE_LEASE, "OwnerUid") == STRANGER);
	CHECK(number_of(root, roots.path, GPUARB_INTERFACE_LEASE, "OwnerPid") ==
	      (uint64_t)getpid());
	snprintf(saved, sizeof(saved), "run/leases/%" PRIu64 ".json", roots.id);
	CHECK(owner_of(rig_path(rig, saved), &mode) == SERVICE && mode == 0600);
	CHECK(is_error(call(release(user, roots.path)), GPUARB_ERROR_NOT_PERMITTED, ""));
	CHECK(is_fine(call(release(root, of_user.path)))); /* an administrator */
	CHECK(is_fine(call(drain(root, "0"))));
}

TEST_WITH(an_unprivileged_daemon_identifies_processes_and_their_ends, struct rig *rig)
{
	sd_bus *root, *user;
	struct live_lease lease;
	int own, roots;
	pid_t a, b;

	arrive(rig, &root, &user);
	a = idler(STRANGER, &own);
	b = idler(0, &roots);
	lease = granted(call(ask_bound(user, 15, own)));
	CHECK(is_error(call(ask_bound(user, 15, roots)), GPUARB_ERROR_NOT_PERMITTED, ""));
	close(lease.holder);
	CHECK(lease_exists(user, lease.path)); /* by its process */
	rig_crash(rig);
	CHECK(lease_exists(user, lease.path));
	rig_restart(rig);
	CHECK(lease_exists(user, lease.path) && gpu_number(root, "CusFree") == 45);
	end_process(a);
	while (lease_exists(user, lease.path))
		continue;
	end_process(b);
}

#define UNREADABLE "10-t.conf: not readable by uid 65534: chmod a+r"

/* An unreadable policy is an error, not an empty policy. */
TEST_WITH(an_unreadable_policy_is_refused_at_start_and_at_reload, struct rig *rig)
{
	sd_bus *root, *user;

	rig_run_as(rig, SERVICE);
	rig_write(rig, "tenants.d/10-t.conf", "[tenant few]\nmatch-user = 1\nmax-cus = 15\n");
	CHECK(chmod(rig_path(rig, "tenants.d/10-t.conf"), 0600) == 0);
	log_begin(rig);
	CHECK(rig_start_fails(rig, "--simulate=radeon-vii") == 6);
	CHECK(strstr(log_end(rig), UNREADABLE));

	CHECK(chmod(rig_path(rig, "tenants.d/10-t.conf"), 0644) == 0);
	rig_start(rig, "--simulate=radeon-vii");
	root = rig_connect(rig, 0);
	user = rig_connect(rig, STRANGER);
	CHECK(chmod(rig_path(rig, "tenants.d/10-t.conf"), 0600) == 0);
	CHECK(is_error(call(call_arbiter(root, "Reload")), GPUARB_ERROR_INVALID_REQUEST,
		       UNREADABLE));
	CHECK(is_error(call(ask(user, "Reserve", 16)), GPUARB_ERROR_QUOTA_EXCEEDED, ""));
}

/* With CAP_SYS_PTRACE the daemon can read executables; the unit does not have it. */
TEST_WITH(match_executable_without_ptrace_is_logged, struct rig *rig)
{
	struct live_lease lease;
	sd_bus *user;
	const char *said;

	rig_run_as(rig, SERVICE);
	rig_write(rig, "tenants.d/10-t.conf",
		  "[tenant vr]\nmatch-user = 1\nmatch-executable = *\n");
	log_begin(rig);
	rig_start(rig, "--simulate=radeon-vii");
	said = log_end(rig);
	CHECK(strstr(said, "match-executable"));
	CHECK(strstr(said, "CAP_SYS_PTRACE"));
	user = rig_connect(rig, STRANGER);
	lease = reserve(user, 15);
	CHECK(lease_says(user, lease.path, "Tenant", "*"));
}

TEST_WITH(match_executable_with_ptrace_is_not_logged, struct rig *rig)
{
	const char *said;

	if (!process_sees_executables())
		SKIP("root has no CAP_SYS_PTRACE here");
	rig_write(rig, "tenants.d/10-t.conf",
		  "[tenant vr]\nmatch-user = 1\nmatch-executable = *\n");
	log_begin(rig);
	rig_start(rig, "--simulate=radeon-vii");
	said = log_end(rig);
	CHECK(!strstr(said, "match-executable"));
}
