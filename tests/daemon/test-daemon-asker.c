/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The process that asks for an adaptable lease is bound to it by default, and a lease without a bound
 * process borrows nothing. */

#include "check.h"
#include "enforce-rig.h"
#include "lend-live.h"

#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

NEEDS(daemon_missing);

#define IMPATIENT "activate-grace = 50ms\nenforce-delay = 50ms\n"

static struct helper helper;

static void arrive(struct lend *s, const char *settings, const char *enforce)
{
	lend_start_helped(s, &helper, settings, enforce);
	s->rt = keep_inactive(s->bus, 15);
}

static void depart(struct lend *s)
{
	rig_done(&s->rig);
	helper_stop(&helper);
}

/* ---- a process that asks --------------------------------------------------------------------- */

static _Noreturn void ask_and_wait(const struct rig *rig, int socket, pid_t parent)
{
	const struct passwd *user = getpwuid(STRANGER);
	struct live_lease lease;

	CHECK(user && initgroups(user->pw_name, user->pw_gid) == 0 &&
	      setresgid(user->pw_gid, user->pw_gid, user->pw_gid) == 0 &&
	      setresuid(STRANGER, STRANGER, STRANGER) == 0);
	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent);
	lease = borrow(rig_connect(rig, STRANGER));
	CHECK(send(socket, &lease, sizeof(lease), 0) == sizeof(lease));
	pass(socket, lease.holder);
	close(lease.holder);
	while (true)
		pause();
}

/* A process of STRANGER that has asked for an adaptable lease, and passed the holder on. */
static pid_t asker(const struct rig *rig, struct live_lease *ret)
{
	pid_t parent = getpid(), pid;
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		ask_and_wait(rig, pair[1], parent);
	close(pair[1]);
	CHECK(recv(pair[0], ret, sizeof(*ret), 0) == sizeof(*ret));
	ret->holder = pass(pair[0], -1);
	close(pair[0]);
	return pid;
}

static unsigned cus(const struct lend *s, const struct live_lease *lease)
{
	return part_of(s->bus, lease).cus;
}

/* ---- the asker gives back ------------------------------------------------------------------- */

static void check_killed(struct lend *s, void (*meanwhile)(struct rig *rig))
{
	struct live_lease lease;
	pid_t pid = asker(&s->rig, &lease);

	CHECK(cus(s, &lease) > 45); /* some of them are of the inactive lease */
	helper_uses_kfd(&helper, pid, true);
	CHECK(is_fine(activate(s->bus, &s->rt)));
	CHECK(await_record(s->rt.holder, GPUARB_RECORD_ACTIVATING).record.deadline_usec <
	      UINT64_MAX);
	if (meanwhile)
		meanwhile(&s->rig);
	CHECK(victim_was_killed(pid));
	await_record(s->rt.holder, GPUARB_RECORD_GRANTED);
	CHECK(!lease_exists(s->bus, lease.path));
}

FIXTURE(struct lend, s, , depart(s));

TEST_WITH(the_process_that_asked_is_killed_when_its_lease_is_overdue, struct lend *s)
{
	arrive(s, IMPATIENT GROW_NEVER, "kill");
	check_killed(s, NULL);
}

TEST_WITH(the_process_that_asked_is_killed_over_a_restart_in_the_middle_of_an_activation,
	  struct lend *s)
{
	arrive(s, "activate-grace = 2s\nenforce-delay = 50ms\n" GROW_NEVER, "kill");
	check_killed(s, rig_crash);
}

/* ---- without a bound process ---------------------------------------------------------------- */

/* The bus vouches for a pid, and the process has another user by now: it is not killed for a lease. */
static sd_bus *connect_and_return(const struct rig *rig)
{
	sd_bus *bus;

	CHECK(seteuid(STRANGER) == 0);
	bus = rig_connect(rig, STRANGER);
	CHECK(seteuid(0) == 0);
	return bus;
}

TEST_WITH(a_lease_that_no_process_is_bound_to_borrows_nothing_until_one_is, struct lend *s)
{
	struct live_lease lease;
	sd_bus *bus;
	pid_t pid;
	int fd;

	arrive(s, "activate-grace = 1h\n" GROW_SOON, "kill");
	bus = connect_and_return(&s->rig);
	lease = borrow(bus);
	CHECK(cus(s, &lease) == LEND_LEAST);
	CHECK(is_fine(activate(s->bus, &s->rt)));
	await_record(s->rt.holder, GPUARB_RECORD_GRANTED); /* nothing is to be given back */
	CHECK(is_fine(deactivate(s->bus, &s->rt)));
	pid = idler(STRANGER, &fd);
	bind_process(s->crowd, &lease, fd);
	follow_until(s->crowd, &lease, LEND_CUS);
	end_process(pid);
	follow_until(s->crowd, &lease, LEND_LEAST);
}

/* ---- which processes keep a lease ------------------------------------------------------------- */

TEST_WITH(the_process_that_asked_does_not_keep_its_lease_unless_it_is_bound_by_a_call,
	  struct lend *s)
{
	struct live_lease first, second;
	pid_t one, two;
	int fd;

	arrive(s, IMPATIENT GROW_NEVER, "report");
	one = asker(&s->rig, &first);
	rig_crash(&s->rig);
	AWAIT(s->bus, lease_exists(s->bus, first.path));
	close(first.holder);
	AWAIT(s->bus, !lease_exists(s->bus, first.path));
	end_process(one);

	two = asker(&s->rig, &second);
	fd = pidfd_open(two, 0);
	bind_process(s->crowd, &second, fd);
	rig_crash(&s->rig);
	AWAIT(s->bus, lease_exists(s->bus, second.path));
	close(second.holder);
	CHECK(is_in_state(s->bus, &second, "granted"));
	end_process(two);
	AWAIT(s->bus, !lease_exists(s->bus, second.path));
}

TEST_WITH(a_process_that_a_call_binds_replaces_the_process_that_asked, struct lend *s)
{
	struct live_lease lease;
	pid_t pid, chosen;
	int fd;

	arrive(s, IMPATIENT GROW_NEVER, "kill");
	pid = asker(&s->rig, &lease);
	helper_uses_kfd(&helper, pid, true);
	chosen = idler(STRANGER, &fd);
	bind_process(s->crowd, &lease, fd);
	helper_uses_kfd(&helper, chosen, true);
	CHECK(is_fine(activate(s->bus, &s->rt)));
	CHECK(victim_was_killed(chosen));
	await_record(s->rt.holder, GPUARB_RECORD_GRANTED);
	CHECK(waitpid(pid, NULL, WNOHANG) == 0);
	end_process(pid);
}
