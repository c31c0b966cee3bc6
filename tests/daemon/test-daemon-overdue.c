/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Borrowers that do not acknowledge in time, and the enforcement that policy allows. */

#include "check.h"
#include "enforce-rig.h"
#include "lend-live.h"

NEEDS(daemon_missing);

#define IMPATIENT "activate-grace = 50ms\nenforce-delay = 50ms\n" GROW_NEVER

struct stage {
	struct rig rig;
	struct helper helper;
	sd_bus *bus, *crowd;
	struct told told;
	struct live_lease other, rt, borrower; /* other: of who borrows, too */
};

static void settle_in(struct stage *stage)
{
	stage->bus = rig_connect(&stage->rig, 0);
	stage->crowd = rig_connect(&stage->rig, STRANGER);
	listen_in(stage->bus, &stage->told);
	stage->other = granted(call(ask_for(stage->crowd, "gpu=0 cus=4 queues=2")));
	stage->rt = keep_inactive(stage->bus, 15);
	stage->borrower = borrow(stage->crowd);
	CHECK(part_of(stage->bus, &stage->borrower).cus > 41); /* that is some of what is kept */
}

/* helped: gpuarb-enforce runs. */
static void arrive(struct stage *stage, const char *enforce, bool helped)
{
	char options[256];

	memset(stage, 0, sizeof(*stage));
	helper_listen(&stage->helper);
	if (helped)
		helper_start(&stage->helper, NULL, NULL, -1);
	rig_new(&stage->rig);
	lend_configure(&stage->rig, IMPATIENT, enforce);
	snprintf(options, sizeof(options), LEND_GPU " --enforce=%s%s", stage->helper.path,
		 helped ? "" : "-none");
	rig_start(&stage->rig, options);
	settle_in(stage);
}

static void depart(struct stage *stage)
{
	rig_done(&stage->rig);
	helper_stop(&stage->helper);
}

static bool lives(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == 0;
}

static void await_reason(struct stage *s, const struct live_lease *lease, const char *reason)
{
	AWAIT(s->bus, lease_says(s->bus, lease->path, "Reason", reason));
}

/* ---- report ------------------------------------------------------------------------------ */

TEST(enforce_report_reports_and_waits)
{
	static struct stage s;
	const char *said;
	int log;

	memset(&s, 0, sizeof(s));
	rig_new(&s.rig);
	log = log_begin(&s.rig);
	lend_configure(&s.rig, IMPATIENT, "report");
	rig_start(&s.rig, LEND_GPU);
	settle_in(&s);
	CHECK(is_fine(activate(s.bus, &s.rt)));
	await_reason(&s, &s.borrower, "has not given back CUs that others need");
	CHECK(boottime_usec() >= lease_number(s.bus, &s.borrower, "Deadline"));
	/* The reason names the missing CUs and the lease that has them. */
	CHECK(is_in_state(s.bus, &s.rt, "activating"));
	CHECK(lease_says(s.bus, s.rt.path, "Reason", " CUs of 0000:03:00.0, which lease "));
	CHECK(lease_number(s.bus, &s.rt, "Deadline") ==
	      UINT64_MAX);                                    /* nothing makes it return them */
	CHECK(is_fine(acknowledge(s.crowd, &s.borrower, 2))); /* late is not never */
	await_record(s.rt.holder, GPUARB_RECORD_GRANTED);
	CHECK(lease_number(s.bus, &s.borrower, "Deadline") == UINT64_MAX);
	CHECK(!lease_says(s.bus, s.borrower.path, "Reason", "has"));
	said = log_end(&s.rig, log);
	CHECK(strstr(said, "deadline"));
	CHECK(strstr(said, "active: 15 CUs"));
	rig_done(&s.rig);
}

/* ---- freeze ------------------------------------------------------------------------------ */

TEST(a_unit_that_cannot_be_frozen_is_logged)
{
	static struct stage s;
	const char *said;
	int log, fd;
	pid_t pid;

	memset(&s, 0, sizeof(s));
	rig_new(&s.rig);
	log = log_begin(&s.rig);
	lend_configure(&s.rig, IMPATIENT, "freeze");
	rig_start(&s.rig, LEND_GPU " --enforce=/nonexistent");
	settle_in(&s);
	pid = idler(STRANGER, &fd);
	CHECK(is_fine(call(with(call_lease(s.crowd, s.borrower.path, "Bind"), "h", fd))));
	CHECK(is_fine(activate(s.bus, &s.rt)));
	await_reason(&s, &s.borrower, "has not given back");
	CHECK(is_in_state(s.bus, &s.rt, "activating") && lives(pid));
	end_process(pid);
	close(fd);
	close(s.borrower.holder);
	await_record(s.rt.holder, GPUARB_RECORD_GRANTED);
	said = log_end(&s.rig, log);
	CHECK(strstr(said, "frozen"));
	rig_done(&s.rig);
}

/* ---- kill -------------------------------------------------------------------------------- */

static void bind_it(const struct stage *s, const struct live_lease *lease, int pidfd)
{
	CHECK(is_fine(call(with(call_lease(s->crowd, lease->path, "Bind"), "h", pidfd))));
}

TEST(an_overdue_lease_is_killed_and_no_other_process)
{
	struct live_record record;
	static struct stage s;
	pid_t pids[3];
	int fds[3];

	arrive(&s, "kill", true);
	for (unsigned i = 0; i < 3; i++) {
		pids[i] = idler(STRANGER, &fds[i]);
		helper_uses_kfd(&s.helper, pids[i], true);
	}
	bind_it(&s, &s.borrower, fds[0]);
	bind_it(&s, &s.other, fds[1]); /* and the third is nobody's */
	CHECK(is_fine(activate(s.bus, &s.rt)));
	CHECK(victim_was_killed(pids[0]));
	record = await_record(s.borrower.holder, GPUARB_RECORD_ENDING);
	CHECK(strstr(record.record.reason, "back"));
	await_record(s.rt.holder, GPUARB_RECORD_GRANTED);
	CHECK(is_in_state(s.bus, &s.rt, "granted") && !lease_exists(s.bus, s.borrower.path));
	CHECK(lives(pids[1]) && lives(pids[2]) && is_in_state(s.bus, &s.other, "granted"));
	for (unsigned i = 1; i < 3; i++)
		end_process(pids[i]);
	for (unsigned i = 0; i < 3; i++)
		close(fds[i]);
	depart(&s);
}

/* Its CUs are free all the same: the process uses none. */
TEST(a_bound_process_that_uses_no_gpu_is_not_killed)
{
	static struct stage s;
	pid_t pid;
	int fd;

	arrive(&s, "kill", true);
	pid = idler(STRANGER, &fd);
	bind_it(&s, &s.borrower, fd);
	CHECK(is_fine(activate(s.bus, &s.rt)));
	await_record(s.borrower.holder, GPUARB_RECORD_ENDING);
	await_record(s.rt.holder, GPUARB_RECORD_GRANTED);
	depart(&s); /* gpuarb-enforce has answered by its end */
	CHECK(lives(pid));
	end_process(pid);
	close(fd);
}

TEST(without_gpuarb_enforce_a_lease_ends_and_its_process_is_logged)
{
	static struct stage s;
	const char *said;
	int log, fd;
	pid_t pid;

	pid = idler(STRANGER, &fd);
	memset(&s, 0, sizeof(s));
	rig_new(&s.rig);
	log = log_begin(&s.rig);
	lend_configure(&s.rig, IMPATIENT, "kill");
	rig_start(&s.rig, LEND_GPU " --enforce=/nonexistent");
	settle_in(&s);
	bind_it(&s, &s.borrower, fd);
	CHECK(is_fine(activate(s.bus, &s.rt)));
	await_record(s.borrower.holder, GPUARB_RECORD_ENDING);
	await_record(s.rt.holder, GPUARB_RECORD_GRANTED); /* nothing of it is on the hardware */
	CHECK(lives(pid));
	said = log_end(&s.rig, log);
	CHECK(strstr(said, "0 of its"));
	rig_done(&s.rig);
	end_process(pid);
	close(fd);
}
