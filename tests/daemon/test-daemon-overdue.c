/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Borrowers that do not acknowledge in time, and the enforcement that policy allows. */

#include "check.h"
#include "enforce-rig.h"
#include "lend-live.h"

NEEDS(daemon_missing);

#define IMPATIENT "activate-grace = 50ms\nenforce-delay = 50ms\n" GROW_NEVER

static struct helper helper;

/* `lease` is another one of the user who borrows. */
static void take_leases(struct lend *s)
{
	s->lease = granted(call(ask_for(s->crowd, "gpu=0 cus=4 queues=2")));
	s->rt = keep_inactive(s->bus, 15);
	s->borrower = borrow(s->crowd);
	CHECK(part_of(s->bus, &s->borrower).cus > 41); /* that is some of what is kept */
}

static void arrive(struct lend *s)
{
	lend_start_helped(s, &helper, IMPATIENT, "kill");
	take_leases(s);
}

/* socket: of gpuarb-enforce. The log goes to a file until log_end(). */
static void arrive_logged(struct lend *s, const char *enforce, const char *socket)
{
	char option[128];

	snprintf(option, sizeof(option), "--enforce=%s", socket);
	rig_new(&s->rig);
	log_begin(&s->rig);
	lend_begin(s, IMPATIENT, enforce, option);
	take_leases(s);
}

static void depart(struct lend *s)
{
	rig_done(&s->rig);
	helper_stop(&helper);
}

static bool lives(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == 0;
}

static void await_reason(struct lend *s, const struct live_lease *lease, const char *reason)
{
	AWAIT(s->bus, lease_says(s->bus, lease->path, "Reason", reason));
}

/* ---- report ------------------------------------------------------------------------------ */

TEST(enforce_report_reports_and_waits)
{
	static struct lend s;
	const char *said;

	arrive_logged(&s, "report", "/nonexistent");
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
	said = log_end(&s.rig);
	CHECK(strstr(said, "deadline"));
	CHECK(strstr(said, "active: 15 CUs"));
	rig_done(&s.rig);
}

/* ---- kill -------------------------------------------------------------------------------- */

TEST(an_overdue_lease_is_killed_and_no_other_process)
{
	struct live_record record;
	static struct lend s;
	pid_t pids[3];
	int fds[3];

	arrive(&s);
	for (unsigned i = 0; i < 3; i++) {
		pids[i] = idler(STRANGER, &fds[i]);
		helper_uses_kfd(&helper, pids[i], true);
	}
	bind_process(s.crowd, &s.borrower, fds[0]);
	bind_process(s.crowd, &s.lease, fds[1]); /* and the third is nobody's */
	CHECK(is_fine(activate(s.bus, &s.rt)));
	CHECK(victim_was_killed(pids[0]));
	record = await_record(s.borrower.holder, GPUARB_RECORD_ENDING);
	CHECK(strstr(record.record.reason, "back"));
	await_record(s.rt.holder, GPUARB_RECORD_GRANTED);
	CHECK(is_in_state(s.bus, &s.rt, "granted") && !lease_exists(s.bus, s.borrower.path));
	CHECK(lives(pids[1]) && lives(pids[2]) && is_in_state(s.bus, &s.lease, "granted"));
	for (unsigned i = 1; i < 3; i++)
		end_process(pids[i]);
	depart(&s);
}

TEST(without_gpuarb_enforce_a_lease_ends_and_its_process_is_logged)
{
	static struct lend s;
	const char *said;
	int fd;
	pid_t pid;

	pid = idler(STRANGER, &fd);
	arrive_logged(&s, "kill", "/nonexistent");
	bind_process(s.crowd, &s.borrower, fd);
	CHECK(is_fine(activate(s.bus, &s.rt)));
	await_record(s.borrower.holder, GPUARB_RECORD_ENDING);
	await_record(s.rt.holder, GPUARB_RECORD_GRANTED); /* nothing of it is on the hardware */
	CHECK(lives(pid));
	said = log_end(&s.rig);
	CHECK(strstr(said, "0 of its"));
	rig_done(&s.rig);
	end_process(pid);
}

TEST(process_that_gpuarb_enforce_spares_is_not_called_killed)
{
	static struct lend s;
	const char *said;
	int fd;
	pid_t pid;

	memset(&helper, 0, sizeof(helper));
	helper_listen(&helper);
	helper_start(&helper, NULL, NULL, -1);
	pid = idler(STRANGER, &fd);
	arrive_logged(&s, "kill", helper.path);
	bind_process(s.crowd, &s.borrower, fd); /* which the helper does not see on a GPU */
	CHECK(is_fine(activate(s.bus, &s.rt)));
	AWAIT_STATE(log_says(&s.rig, "does not use a KFD device"));
	CHECK(lives(pid));
	said = log_end(&s.rig);
	CHECK(strstr(said, " kill 1 "));
	CHECK(!strstr(said, "were killed"));
	depart(&s);
	end_process(pid);
}
