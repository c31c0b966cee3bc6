/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A new policy, and the leases that the old policy granted. */

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

TEST_WITH(leases_that_the_new_policy_forbids_are_revoked_with_on_reload_revoke, struct live *s)
{
	struct live_lease lease, other;
	struct live_record record;

	arrive(s, REVOKE);
	lease = reserve(s->user, 30);
	other = reserve(s->bus, 15);
	reload(s, BEFORE "max-cus = 15\n");
	record = await_record(lease.holder, GPUARB_RECORD_ENDING);
	CHECK(record.record.cause == GPUARB_RECORD_NOT_PERMITTED);
	CHECK(strstr(record.record.reason, "max-cus"));
	AWAIT(s->bus, s->told.removed == 1);
	CHECK(lease_exists(s->bus, other.path) && gpu_number(s->bus, "CusFree") == 45);
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
