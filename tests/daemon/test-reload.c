/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A new policy, and the leases that the old policy granted. */

#include <sys/stat.h>

#include "check.h"
#include "book.h"

NEEDS(daemon_missing);

#define SIMULATED "--simulate=radeon-vii"
#define KEEP "[daemon]\non-reload = keep\n"
#define REVOKE "[daemon]\non-reload = revoke\n"

#define TENANTS "tenants.d/10-users.conf"
#define BEFORE "[tenant users]\nmatch-user = 1\nclass = guaranteed\n"

static void arrive(struct rig *rig, const char *policy, sd_bus **ret, sd_bus **ret_user,
		   struct told *told)
{
	rig_new(rig);
	rig_write(rig, "gpuarbd.conf", policy);
	rig_write(rig, TENANTS, BEFORE);
	rig_start_managed(rig, SIMULATED, "--store-max=64");
	*ret = rig_connect(rig, 0);
	*ret_user = rig_connect(rig, STRANGER);
	listen_in(*ret, told);
}

static void reload(const struct rig *rig, sd_bus *bus, const char *tenants)
{
	rig_write(rig, TENANTS, tenants);
	CHECK(is_fine(call(call_arbiter(bus, "Reload"))));
}

TEST(leases_that_the_new_policy_forbids_stay)
{
	struct live_lease lease, other;
	static struct book before, after;
	struct told told;
	sd_bus *bus, *user;
	struct rig rig;

	arrive(&rig, KEEP, &bus, &user, &told);
	lease = reserve(user, 30);
	other = reserve(bus, 15);
	book_read(bus, &before);
	reload(&rig, bus, "[tenant users]\nmatch-user = 1\nclass = besteffort\nmax-cus = 15\n");
	reload(&rig, bus, "");
	book_read(bus, &after);
	CHECK(after.n_leases == 2 && told.removed == 0);
	CHECK(book_same_parts(book_find(&after, lease.id), book_find(&before, lease.id)->parts, 1));
	rig_crash(&rig); /* nor does a restart end them */
	CHECK(lease_exists(bus, lease.path) && lease_exists(bus, other.path));
	rig_done(&rig);
}

TEST(leases_that_the_new_policy_forbids_are_revoked_with_on_reload_revoke)
{
	static const struct {
		const char *tenants, *why;
	} rows[] = {
		{ "[tenant users]\nmatch-user = 1\nclass = besteffort\n", "class" },
		{ "[tenant users]\nmatch-user = 2\nclass = guaranteed\n", "uid 1" },
		{ "[tenant users]\nmatch-user = 1\nclass = guaranteed\nmax-cus = 15\n", "max-cus" },
		{ "", "no tenant users" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct live_lease lease, other;
		struct live_record record;
		struct told told;
		sd_bus *bus, *user;
		struct rig rig;

		arrive(&rig, REVOKE, &bus, &user, &told);
		lease = reserve(user, 30);
		other = reserve(bus, 15);
		reload(&rig, bus, rows[i].tenants);
		record = await_record(lease.holder, GPUARB_RECORD_ENDING);
		CHECK(record.record.cause == GPUARB_RECORD_NOT_PERMITTED);
		CHECK(strstr(record.record.reason, rows[i].why));
		AWAIT(bus, told.removed == 1);
		CHECK(lease_exists(bus, other.path) && gpu_number(bus, "CusFree") == 45);
		close(lease.holder);
		close(other.holder);
		rig_done(&rig);
	}
}

TEST(leases_beyond_a_quota_are_revoked_latest_first)
{
	struct live_lease leases[3];
	struct told told;
	sd_bus *bus, *user;
	struct rig rig;

	arrive(&rig, REVOKE, &bus, &user, &told);
	for (unsigned i = 0; i < 3; i++)
		leases[i] = reserve(user, 15);
	reload(&rig, bus, BEFORE "max-cus = 30\n");
	AWAIT(bus, told.removed == 1);
	CHECK(strcmp(told.last_removed, leases[2].path) == 0);
	reload(&rig, bus, BEFORE "max-leases = 1\n");
	AWAIT(bus, told.removed == 2);
	CHECK(strcmp(told.last_removed, leases[1].path) == 0 && lease_exists(bus, leases[0].path));
	rig_done(&rig);
}

TEST(a_waiting_lease_is_judged_by_the_policy_in_force)
{
	struct live_lease all, wait;
	struct live_record record;
	struct told told;
	sd_bus *bus, *user;
	struct rig rig;

	arrive(&rig, KEEP, &bus, &user, &told);
	all = reserve(bus, 60);
	wait = waiting(call(with(call_arbiter(user, "Reserve"), "aa{sv}a{sv}", 1, 1, "cus", "u", 30,
				 2, "wait-usec", "t", UINT64_MAX, "class", "s", "guaranteed")));
	reload(&rig, bus, "[tenant users]\nmatch-user = 1\nclass = besteffort\n");
	close(all.holder);
	record = await_record(wait.holder, GPUARB_RECORD_ENDING);
	CHECK(record.record.cause == GPUARB_RECORD_NOT_PERMITTED);
	CHECK(gpu_number(bus, "CusFree") == 60);
	rig_done(&rig);
}

TEST(a_bad_file_changes_nothing_and_is_named)
{
	struct live_lease lease;
	struct told told;
	sd_bus *bus, *user;
	const char *said;
	struct rig rig;
	int log;

	arrive(&rig, REVOKE, &bus, &user, &told);
	lease = reserve(user, 30);
	rig_write(&rig, TENANTS, "[tenant users]\nmatch-user = 2\nmax-cus = some\n");
	CHECK(is_error(call(call_arbiter(bus, "Reload")), GPUARB_ERROR_INVALID_REQUEST,
		       "10-users.conf:3"));
	rig_write(&rig, "gpuarbd.conf", "[daemon]\non-reload = perhaps\n");
	rig_write(&rig, TENANTS, "");
	CHECK(is_error(call(call_arbiter(bus, "Reload")), GPUARB_ERROR_INVALID_REQUEST,
		       "gpuarbd.conf:2"));
	CHECK(kill(rig.daemon, SIGHUP) == 0);
	rig_hear(&rig, "reloading");
	rig_hear(&rig, "ready");
	CHECK(lease_exists(bus, lease.path) && told.removed == 0);
	close(reserve(user, 30).holder);

	/* No daemon starts with it; after the correction no lease is lost. */
	log = log_begin(&rig);
	rig_down(&rig);
	rig_write(&rig, "gpuarbd.conf", KEEP);
	rig_write(&rig, TENANTS, BEFORE);
	rig_up(&rig);
	said = log_end(&rig, log);
	CHECK(!strstr(said, "gpuarbd.conf:2") && lease_exists(bus, lease.path));
	rig_done(&rig);
}

TEST(a_directory_writable_by_others_is_refused_and_named)
{
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus;

	rig_new(&rig);
	rig_write(&rig, "tenants.d/10-t.conf", "[tenant few]\nmatch-user = 0\nmax-cus = 15\n");
	rig_start(&rig, "--simulate=radeon-vii");
	bus = rig_connect(&rig, 0);
	CHECK(unlink(rig_path(&rig, "tenants.d/10-t.conf")) == 0);
	CHECK(chmod(rig_path(&rig, "tenants.d"), 0777) == 0);
	CHECK(is_error(call(call_arbiter(bus, "Reload")), GPUARB_ERROR_INVALID_REQUEST,
		       "/tenants.d"));
	CHECK(is_error(call(ask(bus, "Reserve", 16)), GPUARB_ERROR_QUOTA_EXCEEDED, "max-cus"));
	CHECK(chmod(rig_path(&rig, "tenants.d"), 0755) == 0);
	CHECK(is_fine(call(call_arbiter(bus, "Reload"))));
	close(reserve(bus, 16).holder);
}

TEST(a_bad_file_and_a_missing_gpu_leave_the_policy_in_force)
{
	struct told told;
	sd_bus *bus, *user;
	struct rig rig;

	arrive(&rig, KEEP, &bus, &user, &told);
	reload(&rig, bus,
	       "[tenant users]\nmatch-user = 1\nmax-cus = 30\nreserved-gpu = 0000:99:00.0\n"
	       "reserved-queues = 1\n");
	rig_write(&rig, TENANTS, "[tenant users]\nmatch-user = 1\nmax-cus = some\n");
	CHECK(kill(rig.daemon, SIGHUP) == 0);
	rig_hear(&rig, "reloading");
	rig_hear(&rig, "ready");
	CHECK(is_error(call(ask(user, "Reserve", 31)), GPUARB_ERROR_QUOTA_EXCEEDED, ""));
	close(reserve(user, 30).holder);
	rig_done(&rig);
}
