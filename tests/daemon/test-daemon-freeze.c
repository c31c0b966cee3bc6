/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The shipped daemon freezes the unit of an overdue borrower, if all processes in it belong to the lease,
 * and the unit is thawed when its CUs are not needed any more, whatever is killed in between. */

#include "budget-rig.h"
#include "check.h"
#include "crash-rig.h"
#include "enforce-rig.h"
#include "fake-systemd.h"
#include "lend-live.h"

NEEDS(daemon_missing);

struct freezing {
	struct stage stage; /* the process of the borrower is in a unit of its own */
	struct helper helper;
	struct fake_systemd systemd;
	sd_bus *crowd;
	struct live_lease rt, borrower;
	struct unit_rig unit;
};

static const char *unit_name(const struct freezing *s)
{
	return strrchr(s->unit.cgroup, '/') + 1;
}

static void start(struct freezing *s)
{
	char options[256];

	snprintf(options, sizeof(options), LEND_GPU " --enforce=%s", s->helper.path);
	rig_start_managed(&s->stage.rig, options, "--store-max=64");
}

static void take_leases(struct freezing *s)
{
	s->rt = keep_inactive(s->stage.bus, 15);
	s->borrower = borrow(s->crowd);
	bind_process(s->crowd, &s->borrower, s->stage.pidfd);
}

/* false: no unit can be made here. */
static bool arrive(struct freezing *s)
{
	struct stage *stage = &s->stage;

	memset(s, 0, sizeof(*s));
	if (!unit_rig_new(&s->unit, "ok"))
		return false;
	rig_new(&stage->rig);
	CHECK(fake_systemd_start(&s->systemd));
	helper_listen(&s->helper);
	helper_start(&s->helper, NULL, NULL, -1);
	lend_configure(&stage->rig, "activate-grace = 50ms\naudit-interval = 100ms\n" GROW_NEVER,
		       "freeze");
	start(s);
	crash_connect(stage);
	s->crowd = rig_connect(&stage->rig, STRANGER);
	stage->process = idler(STRANGER, &stage->pidfd);
	helper_uses_kfd(&s->helper, stage->process, true);
	unit_rig_add(&s->unit, stage->process);
	take_leases(s);
	return true;
}

static void end_borrower(struct freezing *s)
{
	end_process(s->stage.process);
	s->stage.process = 0;
}

static void depart(struct freezing *s)
{
	if (s->stage.process > 0)
		end_borrower(s);
	close(s->stage.pidfd);
	helper_stop(&s->helper);
	rig_done(&s->stage.rig);
	fake_systemd_stop(&s->systemd);
	unit_rig_done(&s->unit);
}

static bool was_asked(struct freezing *s, const char *method)
{
	char call[64];

	snprintf(call, sizeof(call), "%s %s", method, unit_name(s));
	return fake_systemd_was_asked(&s->systemd, call);
}

static void await_frozen(struct freezing *s)
{
	CHECK(is_fine(activate(s->stage.bus, &s->rt)));
	CHECK(was_asked(s, "FreezeUnit"));
}

static bool a_name_is_saved(const struct freezing *s)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", s->helper.records, unit_name(s));
	return access(path, F_OK) == 0;
}

static void await_no_name(struct freezing *s)
{
	while (a_name_is_saved(s))
		ping(&s->stage);
}

/* Whether the last call for the unit was to thaw it, or there was none since the last time. */
static bool is_thawed(struct freezing *s)
{
	char line[300], frozen[64];
	bool is = true;
	sd_bus_message *m;

	snprintf(frozen, sizeof(frozen), "FreezeUnit %s", unit_name(s));
	CHECK(sd_bus_message_new_method_call(s->stage.bus, &m, "org.freedesktop.systemd1",
					     "/org/freedesktop/systemd1",
					     "org.freedesktop.systemd1.Manager", "ThawUnit") >= 0);
	sd_bus_message_unref(call(with(m, "s", "none.service")));
	while (fake_systemd_next(&s->systemd, line, sizeof(line)),
	       strcmp(line, "ThawUnit none.service") != 0)
		is = strcmp(line, frozen) != 0;
	return is;
}

static void kill_helper(struct freezing *s)
{
	CHECK(kill(s->helper.pid, SIGKILL) == 0);
	helper_wait(&s->helper);
}

#define ARRIVE(s)                                                                   \
	do {                                                                        \
		if (!arrive(s))                                                     \
			SKIP("there is no cgroup of version 2 that could be made"); \
	} while (0)

FIXTURE(struct freezing, s, ARRIVE(s), depart(s));

TEST_WITH(a_unit_stays_frozen_while_its_cus_are_needed, struct freezing *s)
{
	await_frozen(s);
	/* What it runs on the GPU runs on. */
	CHECK(is_in_state(s->stage.bus, &s->rt, "activating"));
	CHECK(is_fine(deactivate(s->stage.bus, &s->rt)));
	CHECK(was_asked(s, "ThawUnit"));
}

TEST_WITH(a_unit_is_thawed_when_its_lease_is_removed, struct freezing *s)
{
	await_frozen(s);
	CHECK(is_fine(call(release(s->stage.bus, s->borrower.path))));
	await_record(s->rt.holder, GPUARB_RECORD_GRANTED);
	CHECK(was_asked(s, "ThawUnit"));
}

TEST_WITH(a_unit_with_a_foreign_process_is_not_frozen, struct freezing *s)
{
	struct stage *stage = &s->stage;
	char pid[64];
	pid_t other;

	rig_stop(&stage->rig);
	log_begin(&stage->rig);
	start(s);
	take_leases(s);
	other = idler(STRANGER, NULL);
	unit_rig_add(&s->unit, other);
	CHECK(is_fine(activate(stage->bus, &s->rt)));
	snprintf(pid, sizeof(pid), "pid %d in %s ", other, unit_name(s));
	AWAIT_STATE(log_says(&stage->rig, pid));
	CHECK(lease_says(stage->bus, s->borrower.path, "Reason", "has not given back"));
	end_process(other);
	log_end(&stage->rig);
	CHECK(!a_name_is_saved(s));
}

TEST_WITH(a_unit_is_thawed_when_a_foreign_process_enters_it, struct freezing *s)
{
	pid_t other;

	await_frozen(s);
	other = idler(STRANGER, NULL);
	unit_rig_add(&s->unit, other);
	CHECK(was_asked(s, "ThawUnit"));
	await_no_name(s);
	CHECK(is_in_state(s->stage.bus, &s->rt, "activating"));
	end_process(other);
}

static void write_freeze(const struct freezing *s, const char *value)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.freeze", s->unit.cgroup);
	file = fopen(path, "we");
	CHECK(file && fputs(value, file) > 0 && fclose(file) == 0);
}

/* As systemctl freeze does it: to freeze it again, and thaw it after that, would undo that. */
TEST_WITH(a_unit_that_an_administrator_froze_is_neither_frozen_nor_thawed, struct freezing *s)
{
	write_freeze(s, "1");
	CHECK(is_fine(activate(s->stage.bus, &s->rt)));
	await_no_name(s);
	AWAIT(s->stage.bus,
	      lease_says(s->stage.bus, s->borrower.path, "Reason", "has not given back"));
	await_no_name(s);
	CHECK(is_fine(deactivate(s->stage.bus, &s->rt)));
	CHECK(is_thawed(s));
	write_freeze(s, "0");
}

/* ---- each party is killed ------------------------------------------------------------------- */

TEST_WITH(a_unit_is_thawed_when_its_bound_process_is_killed, struct freezing *s)
{
	await_frozen(s);
	CHECK(a_name_is_saved(s));
	close(s->borrower.holder); /* its bound process alone keeps the lease */
	end_borrower(s);
	CHECK(was_asked(s, "ThawUnit"));
	await_no_name(s);
}

TEST_WITH(a_unit_is_thawed_when_gpuarbd_stops, struct freezing *s)
{
	await_frozen(s);
	rig_stop(&s->stage.rig);
	CHECK(was_asked(s, "ThawUnit"));
}

TEST_WITH(a_unit_is_thawed_while_gpuarbd_does_not_run, struct freezing *s)
{
	await_frozen(s);
	rig_down(&s->stage.rig);
	CHECK(was_asked(s, "ThawUnit"));
	rig_up(&s->stage.rig);
	CHECK(was_asked(s, "FreezeUnit")); /* the CUs are needed still */
	CHECK(is_fine(deactivate(s->stage.bus, &s->rt)));
	CHECK(was_asked(s, "ThawUnit"));
	await_no_name(s);
}

TEST_WITH(a_unit_is_thawed_when_gpuarb_enforce_is_killed, struct freezing *s)
{
	await_frozen(s);
	kill_helper(s);
	helper_start(&s->helper, NULL, NULL, -1);
	CHECK(was_asked(s, "ThawUnit"));
	await_no_name(s);
}

TEST_WITH(a_unit_is_thawed_when_gpuarb_enforce_stops, struct freezing *s)
{
	await_frozen(s);
	CHECK(kill(s->helper.pid, SIGTERM) == 0);
	CHECK(helper_wait(&s->helper) == 0);
	CHECK(was_asked(s, "ThawUnit"));
	CHECK(!a_name_is_saved(s));
}

TEST_WITH(a_unit_is_thawed_when_gpuarbd_gpuarb_enforce_and_the_process_are_killed,
	  struct freezing *s)
{
	await_frozen(s);
	kill_helper(s);
	rig_down(&s->stage.rig);
	CHECK(a_name_is_saved(s));
	close(s->borrower.holder);
	end_borrower(s);
	helper_start(&s->helper, NULL, NULL, -1);
	rig_up(&s->stage.rig);
	CHECK(was_asked(s, "ThawUnit"));
	await_no_name(s);
}

/* ---- the names that gpuarb-enforce has saved --------------------------------------------------- */

TEST_WITH(a_unit_is_not_frozen_if_its_name_cannot_be_saved, struct freezing *s)
{
	char path[256];

	rig_stop(&s->stage.rig);
	log_begin(&s->stage.rig);
	snprintf(path, sizeof(path), "%s/%s", s->helper.records, unit_name(s));
	CHECK(mkdir(path, 0755) == 0);
	start(s);
	take_leases(s);
	CHECK(is_fine(activate(s->stage.bus, &s->rt)));
	AWAIT_STATE(log_says(&s->stage.rig, "saved:")); /* gpuarb-enforce has answered */
	CHECK(lease_says(s->stage.bus, s->borrower.path, "Reason", "has not given back"));
	log_end(&s->stage.rig);
	CHECK(is_thawed(s));
	CHECK(rmdir(path) == 0);
}

/* ---- gpuarbd is killed at each point --------------------------------------------------------- */

/* Until the unit is frozen, or the daemon was killed. */
static void await_end_of_grace(struct freezing *s)
{
	const struct await await = AWAIT_BEGIN("a frozen unit, or the end of gpuarbd");
	struct pollfd fds[] = {
		{ .fd = sd_bus_get_fd(s->stage.bus), .events = POLLIN },
		{ .fd = s->systemd.calls, .events = POLLIN },
	};

	while (!s->stage.gone && !(fds[1].revents & POLLIN))
		if (sd_bus_process(s->stage.bus, NULL) == 0)
			await_fds(&await, fds, 2);
}

static bool try_at(struct freezing *s, unsigned at, bool while_freezing)
{
	struct stage *stage = &s->stage;
	bool killed;

	if (while_freezing && !crash_arm(stage, at))
		return false;
	crash_done(call_lease(stage->bus, s->rt.path, "Activate"));
	await_end_of_grace(s);
	if (!while_freezing && !crash_arm(stage, at))
		return false;
	if (!while_freezing)
		crash_done(call_lease(stage->bus, s->rt.path, "Deactivate"));
	ping(stage);
	killed = crash_disarm(stage, at);
	if (killed)
		crash_start_next(stage, 0);
	else
		rig_say(&stage->rig, "go");
	if (!is_in_state(stage->bus, &s->rt, "inactive"))
		CHECK(is_fine(deactivate(stage->bus, &s->rt)));
	await_no_name(s);
	CHECK(is_thawed(s));
	return killed;
}

static bool try_freezing(void *data, unsigned at)
{
	return try_at(data, at, true);
}

static bool try_thawing(void *data, unsigned at)
{
	return try_at(data, at, false);
}

static void kill_everywhere(bool (*try_point)(void *data, unsigned at))
{
	static struct freezing s;
	unsigned points;

	ARRIVE(&s);
	points = crash_at_each(&s.stage, try_point, &s);
	depart(&s);
	if (s.stage.untraceable)
		SKIP("processes cannot be traced here");
	printf("killed at %u points\n", points);
	CHECK(points > 0);
}

TEST_CASE(a_unit_is_thawed_if_gpuarbd_is_killed_while_it_freezes, kill_everywhere(try_freezing));
TEST_CASE(a_unit_is_thawed_if_gpuarbd_is_killed_while_it_thaws, kill_everywhere(try_thawing));
