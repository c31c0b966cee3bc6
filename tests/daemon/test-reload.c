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

static void arrive(struct live *s, const char *policy)
{
	rig_new(&s->rig);
	rig_write(&s->rig, "gpuarbd.conf", policy);
	rig_write(&s->rig, TENANTS, BEFORE);
	rig_start_managed(&s->rig, SIMULATED, "--store-max=64");
	live_connect(s);
	s->user = rig_connect(&s->rig, STRANGER);
}

static void reload(const struct live *s, const char *tenants)
{
	rig_write(&s->rig, TENANTS, tenants);
	CHECK(is_fine(call(call_arbiter(s->bus, "Reload"))));
}

FIXTURE(struct live, s, , rig_done(&s->rig));

TEST_WITH(leases_that_the_new_policy_forbids_stay, struct live *s)
{
	struct live_lease lease, other;
	static struct book before, after;

	arrive(s, KEEP);
	lease = reserve(s->user, 30);
	other = reserve(s->bus, 15);
	book_read(s->bus, &before);
	reload(s, "[tenant users]\nmatch-user = 1\nclass = besteffort\nmax-cus = 15\n");
	reload(s, "");
	book_read(s->bus, &after);
	CHECK(after.n_leases == 2 && s->told.removed == 0);
	CHECK(book_same_parts(book_find(&after, lease.id), book_find(&before, lease.id)->parts, 1));
	rig_crash(&s->rig); /* nor does a restart end them */
	CHECK(lease_exists(s->bus, lease.path) && lease_exists(s->bus, other.path));
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
		static struct live s;
		struct live_lease lease, other;
		struct live_record record;

		arrive(&s, REVOKE);
		lease = reserve(s.user, 30);
		other = reserve(s.bus, 15);
		reload(&s, rows[i].tenants);
		record = await_record(lease.holder, GPUARB_RECORD_ENDING);
		CHECK(record.record.cause == GPUARB_RECORD_NOT_PERMITTED);
		CHECK(strstr(record.record.reason, rows[i].why));
		AWAIT(s.bus, s.told.removed == 1);
		CHECK(lease_exists(s.bus, other.path) && gpu_number(s.bus, "CusFree") == 45);
		close(lease.holder);
		close(other.holder);
		rig_done(&s.rig);
	}
}

TEST_WITH(leases_beyond_a_quota_are_revoked_latest_first, struct live *s)
{
	struct live_lease leases[3];

	arrive(s, REVOKE);
	for (unsigned i = 0; i < 3; i++)
		leases[i] = reserve(s->user, 15);
	reload(s, BEFORE "max-cus = 30\n");
	AWAIT(s->bus, s->told.removed == 1);
	CHECK(strcmp(s->told.last_removed, leases[2].path) == 0);
	reload(s, BEFORE "max-leases = 1\n");
	AWAIT(s->bus, s->told.removed == 2);
	CHECK(strcmp(s->told.last_removed, leases[1].path) == 0 &&
	      lease_exists(s->bus, leases[0].path));
}

TEST_WITH(a_waiting_lease_is_judged_by_the_policy_in_force, struct live *s)
{
	struct live_lease all, wait;
	struct live_record record;

	arrive(s, KEEP);
	all = reserve(s->bus, 60);
	wait = waiting(call(ask_for(s->user, "cus=30; wait-usec=forever class=guaranteed")));
	reload(s, "[tenant users]\nmatch-user = 1\nclass = besteffort\n");
	close(all.holder);
	record = await_record(wait.holder, GPUARB_RECORD_ENDING);
	CHECK(record.record.cause == GPUARB_RECORD_NOT_PERMITTED);
	CHECK(gpu_number(s->bus, "CusFree") == 60);
}

TEST_WITH(a_bad_file_changes_nothing_and_is_named, struct live *s)
{
	struct live_lease lease;
	const char *said;

	arrive(s, REVOKE);
	lease = reserve(s->user, 30);
	rig_write(&s->rig, TENANTS, "[tenant users]\nmatch-user = 2\nmax-cus = some\n");
	CHECK(is_error(call(call_arbiter(s->bus, "Reload")), GPUARB_ERROR_INVALID_REQUEST,
		       "10-users.conf:3"));
	rig_write(&s->rig, "gpuarbd.conf", "[daemon]\non-reload = perhaps\n");
	rig_write(&s->rig, TENANTS, "");
	CHECK(is_error(call(call_arbiter(s->bus, "Reload")), GPUARB_ERROR_INVALID_REQUEST,
		       "gpuarbd.conf:2"));
	CHECK(kill(s->rig.daemon, SIGHUP) == 0);
	rig_hear(&s->rig, "reloading");
	rig_hear(&s->rig, "ready");
	CHECK(lease_exists(s->bus, lease.path) && s->told.removed == 0);
	close(reserve(s->user, 30).holder);

	/* No daemon starts with it; after the correction no lease is lost. */
	log_begin(&s->rig);
	rig_down(&s->rig);
	rig_write(&s->rig, "gpuarbd.conf", KEEP);
	rig_write(&s->rig, TENANTS, BEFORE);
	rig_up(&s->rig);
	said = log_end(&s->rig);
	CHECK(!strstr(said, "gpuarbd.conf:2") && lease_exists(s->bus, lease.path));
}

TEST_WITH(a_directory_writable_by_others_is_refused_and_named, struct live *s)
{
	rig_new(&s->rig);
	rig_write(&s->rig, "tenants.d/10-t.conf", "[tenant few]\nmatch-user = 0\nmax-cus = 15\n");
	rig_start(&s->rig, "--simulate=radeon-vii");
	s->bus = rig_connect(&s->rig, 0);
	CHECK(unlink(rig_path(&s->rig, "tenants.d/10-t.conf")) == 0);
	CHECK(chmod(rig_path(&s->rig, "tenants.d"), 0777) == 0);
	CHECK(is_error(call(call_arbiter(s->bus, "Reload")), GPUARB_ERROR_INVALID_REQUEST,
		       "/tenants.d"));
	CHECK(is_error(call(ask(s->bus, "Reserve", 16)), GPUARB_ERROR_QUOTA_EXCEEDED, "max-cus"));
	CHECK(chmod(rig_path(&s->rig, "tenants.d"), 0755) == 0);
	CHECK(is_fine(call(call_arbiter(s->bus, "Reload"))));
	reserve(s->bus, 16);
}

TEST_WITH(a_bad_file_and_a_missing_gpu_leave_the_policy_in_force, struct live *s)
{
	arrive(s, KEEP);
	reload(s, "[tenant users]\nmatch-user = 1\nmax-cus = 30\nreserved-gpu = 0000:99:00.0\n"
		  "reserved-queues = 1\n");
	rig_write(&s->rig, TENANTS, "[tenant users]\nmatch-user = 1\nmax-cus = some\n");
	CHECK(kill(s->rig.daemon, SIGHUP) == 0);
	rig_hear(&s->rig, "reloading");
	rig_hear(&s->rig, "ready");
	CHECK(is_error(call(ask(s->user, "Reserve", 31)), GPUARB_ERROR_QUOTA_EXCEEDED, ""));
	reserve(s->user, 30);
}
