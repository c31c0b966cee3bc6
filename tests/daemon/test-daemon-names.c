/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Users of the configuration that a name service does not know yet, or looks up slowly. */

#include <signal.h>

#include "adapter.h"
#include "check.h"
#include "live.h"

NEEDS(daemon_missing);

#define SIMULATED "--simulate=radeon-vii"
#define TENANTS "tenants.d/10-users.conf"
#define LATE "[tenant late]\nmatch-user = late\nclass = guaranteed\n"

static void arrive_with_names(struct rig *rig, sd_bus **ret, sd_bus **ret_user)
{
	rig_new(rig);
	CHECK(setenv("GPUARB_NAMES", rig->dir, 1) == 0);
	CHECK(setenv("LD_PRELOAD", getenv("NAMES_PRELOAD"), 1) == 0);
	rig_write(rig, "gpuarbd.conf", "");
	rig_write(rig, TENANTS, LATE);
	rig_start(rig, SIMULATED);
	CHECK(unsetenv("LD_PRELOAD") == 0);
	*ret = rig_connect(rig, 0);
	*ret_user = rig_connect(rig, STRANGER);
}

static sd_bus_message *plan_guaranteed(sd_bus *user)
{
	return with_request(call_arbiter(user, "Plan"), "cus=15; class=guaranteed");
}

static bool is_granted(sd_bus *user)
{
	sd_bus_message *m = call(plan_guaranteed(user));
	const char *result;
	bool granted;

	CHECK(is_fine(sd_bus_message_ref(m)) && sd_bus_message_read(m, "s", &result) > 0);
	granted = strcmp(result, "granted") == 0;
	sd_bus_message_unref(m);
	return granted;
}

TEST(user_that_exists_later_matches_without_a_reload)
{
	sd_bus *bus, *user;
	struct rig rig;

	arrive_with_names(&rig, &bus, &user);
	CHECK(!is_granted(user));
	/* What was written, and not reloaded, waits for a reload. */
	rig_write(&rig, TENANTS, "[tenant late]\nmatch-user = late\nclass = none\n");
	rig_write(&rig, "late", "1\n");
	AWAIT_STATE(is_granted(user));
	CHECK(is_fine(call(call_arbiter(bus, "Reload"))));
	CHECK(!is_granted(user));
	rig_done(&rig);
}

TEST(reload_waits_for_the_name_service_and_other_calls_do_not)
{
	struct answer reloaded = { 0 }, again = { 0 };
	sd_bus *bus, *user;
	struct rig rig;

	arrive_with_names(&rig, &bus, &user);
	rig_write(&rig, "late.wait", "");
	rig_write(&rig, "late", "1\n");
	call_send(call_arbiter(bus, "Reload"), &reloaded);
	CHECK(!is_granted(user) && !reloaded.came); /* it is answered meanwhile */
	call_send(call_arbiter(bus, "Reload"), &again);
	CHECK(unlink(rig_path(&rig, "late.wait")) == 0);
	AWAIT(bus, reloaded.came && again.came);
	CHECK(is_fine(reloaded.m) && is_fine(again.m) && is_granted(user));

	/* The configuration in force stays where names cannot be looked up. */
	rig_write(&rig, "late.abort", "");
	rig_write(&rig, TENANTS, "[tenant late]\nmatch-user = late\nclass = none\n");
	CHECK(is_error(call(call_arbiter(bus, "Reload")), GPUARB_ERROR_INVALID_REQUEST, "getent"));
	CHECK(is_granted(user));
	CHECK(unlink(rig_path(&rig, "late.abort")) == 0);
	CHECK(kill(rig.daemon, SIGHUP) == 0);
	AWAIT_STATE(!is_granted(user));
	rig_done(&rig);
}
