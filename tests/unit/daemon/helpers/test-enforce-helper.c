/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gpuarb-enforce as it is shipped: whom it kills, and whom it does not. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "check.h"
#include "enforce-rig.h"
#include "util/base.h"

#define NOBODY 65534U

/* ---- killing ------------------------------------------------------------------------------- */

/* The helper with a client, and a process that the test may let it kill. */
struct aim {
	struct helper helper;
	int client, pidfd;
	pid_t victim; /* 0: it was killed */
};

/* With the helper that was started. */
static void aim_take(struct aim *aim)
{
	aim->client = client_connect(&aim->helper);
	aim->victim = victim_new();
	aim->pidfd = victim_pidfd(aim->victim);
}

static bool kills(const struct aim *aim, const char *answer)
{
	return client_kills(aim->client, aim->pidfd, answer);
}

static bool was_killed(struct aim *aim)
{
	bool was = victim_was_killed(aim->victim);

	aim->victim = 0;
	return was;
}

static bool lives(const struct aim *aim)
{
	return waitpid(aim->victim, NULL, WNOHANG) == 0;
}

static void uses_kfd(const struct aim *aim, bool uses)
{
	helper_uses_kfd(&aim->helper, aim->victim, uses);
}

static void aim_done(struct aim *aim)
{
	if (aim->victim > 0)
		CHECK(kill(aim->victim, SIGKILL) == 0 && was_killed(aim));
	close(aim->pidfd);
	close(aim->client);
	helper_stop(&aim->helper);
}

FIXTURE(struct aim, aim, (aim->helper = helper_new(), aim_take(aim)), aim_done(aim));

TEST_WITH(the_process_of_a_pidfd_is_killed, struct aim *aim)
{
	for (unsigned i = 0; i < 3; i++) {
		pid_t victim = victim_new();
		int pidfd = victim_pidfd(victim);

		helper_uses_kfd(&aim->helper, victim, true);
		CHECK(client_kills(aim->client, pidfd, "ok"));
		CHECK(victim_was_killed(victim));
		close(pidfd);
	}
	CHECK(lives(aim)); /* and nobody else is */
}

/* The number may be another's by then. */
TEST_WITH(a_process_that_has_ended_is_not_killed_again, struct aim *aim)
{
	kill(aim->victim, SIGKILL);
	CHECK(waitid(P_PID, (id_t)aim->victim, &(siginfo_t){ 0 }, WEXITED | WNOWAIT) == 0);
	CHECK(kills(aim, "error 3 "));
	CHECK(was_killed(aim));
	CHECK(kills(aim, "error 3 "));
}

TEST_WITH(a_kill_needs_one_pidfd_and_nothing_else, struct aim *aim)
{
	int client = aim->client, fds[16], event = eventfd(0, EFD_CLOEXEC);

	CHECK(event >= 0);
	for (unsigned i = 0; i < 16; i++)
		fds[i] = aim->pidfd;
	CHECK(client_asks(client, "kill 1", -1, "error 74 "));
	CHECK(client_asks(client, "kill 1", event, "error 9 "));
	CHECK(client_asks(client, "kill 1", client, "error 9 "));
	CHECK(client_send(client, "kill 1", 6, fds, 2));
	CHECK(client_hears(client, "error 74 "));
	CHECK(client_send(client, "kill 1", 6, fds, 16));
	CHECK(client_hears(client, "error 74 "));
	CHECK(client_asks(client, "thaw a.service", aim->pidfd, "error 74 "));
	CHECK(lives(aim));

	uses_kfd(aim, true);
	CHECK(kills(aim, "ok")); /* the refused requests have changed nothing */
	CHECK(was_killed(aim));
	close(event);
}

TEST_WITH(process_one_the_helper_and_its_client_are_never_killed, struct aim *aim)
{
	const pid_t pids[] = { 1, getpid(), aim->helper.pid };

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		int pidfd = victim_pidfd(pids[i]);

		CHECK(client_kills(aim->client, pidfd,
				   i == 0 ? "error 1 process 1 (" : "error 1 process "));
		close(pidfd);
	}
}

/* ---- processes that gpuarbd must not be able to end ----------------------------------------- */

/* A gpuarbd that an attacker controls may name any process, with its right pidfd and start time. */
TEST_WITH(a_process_that_uses_no_kfd_device_is_not_killed, struct aim *aim)
{
	pid_t other = victim_new();

	helper_uses_kfd(&aim->helper, other, true);
	CHECK(kills(aim, "error 19 "));
	uses_kfd(aim, true);
	uses_kfd(aim, false); /* it has closed the device again */
	CHECK(kills(aim, "error 19 "));
	CHECK(lives(aim) && waitpid(other, NULL, WNOHANG) == 0);

	uses_kfd(aim, true);
	CHECK(kills(aim, "ok") && was_killed(aim));
	kill(other, SIGKILL);
	CHECK(victim_was_killed(other));
}

TEST_WITH(a_process_with_another_start_time_is_not_killed, struct aim *aim)
{
	char text[64];

	uses_kfd(aim, true);
	snprintf(text, sizeof(text), "kill %llu",
		 (unsigned long long)start_time_of(aim->victim) + 1);
	CHECK(client_asks(aim->client, text, aim->pidfd, "error 3 "));
	CHECK(client_asks(aim->client, "kill 0", aim->pidfd, "error 3 "));
	CHECK(client_asks(aim->client, "kill", aim->pidfd, "error 74 "));
	CHECK(lives(aim));
	CHECK(kills(aim, "ok") && was_killed(aim));
}

/* A process of the user; a setuid program has two. */
static pid_t victim_of(uid_t real, uid_t effective)
{
	int ready[2];
	pid_t pid;
	char c;

	CHECK(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(setresuid(real, effective, effective) == 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of users, which resets it */
		CHECK(write(ready[1], "", 1) == 1);
		for (;;)
			pause();
	}
	CHECK(read(ready[0], &c, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

TEST(process_of_another_user_is_not_killed)
{
	static const struct {
		uid_t real, effective, asked;
		bool killed;
	} cases[] = {
		{ 1, 1, 2, false },          { 0, 0, 1, false },
		{ 1, 2, 2, false },          { 2, 1, 2, false },
		{ 1, 1, 1, true },           { 2, 2, 0, true },
		{ 100005, 100005, 1, true }, { 100005, 100005, 2, false },
	};
	struct helper helper;
	int client, pidfd;
	FILE *file;
	pid_t victim;
	char path[128];

	if (geteuid() != 0)
		SKIP("only root has processes of other users");
	helper_listen(&helper);
	snprintf(path, sizeof(path), "%s/subuid", helper.dir);
	file = fopen(path, "we");
	CHECK(file && fprintf(file, "daemon:100000:65536\n") > 0 && fclose(file) == 0);
	CHECK(setenv("GPUARB_SUBUID", path, 1) == 0);
	helper_start(&helper, NULL, NULL, -1);
	client = client_connect(&helper);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		victim = victim_of(cases[i].real, cases[i].effective);
		pidfd = victim_pidfd(victim);
		helper_uses_kfd(&helper, victim, true);
		CHECK(client_kills_for(client, pidfd, cases[i].asked,
				       cases[i].killed ? "ok" : "error 1 process "));
		if (!cases[i].killed)
			CHECK(waitpid(victim, NULL, WNOHANG) == 0 && kill(victim, SIGKILL) == 0);
		CHECK(victim_was_killed(victim));
		close(pidfd);
	}
	close(client);
	helper_stop(&helper);
}

TEST_WITH(a_unit_of_another_process_is_not_frozen, struct aim *aim)
{
	int client = aim->client, pidfd = aim->pidfd;

	CHECK(client_freezes(client, "postgresql.service", pidfd, "error 19 "));
	uses_kfd(aim, true);
	CHECK(client_freezes(client, "postgresql.service", pidfd, "error 1 "));
	CHECK(client_freezes(client, "postgresql.service", -1, "error 74 "));
	CHECK(client_asks(client, "freeze postgresql.service", pidfd, "error 74 "));
	CHECK(lives(aim));
}

TEST_WITH(kernel_threads_are_never_killed, struct aim *aim)
{
	int pidfd;

	if (!sees_kthreadd())
		SKIP("kernel threads are not to be seen here");
	pidfd = victim_pidfd(2);
	CHECK(client_kills(aim->client, pidfd, "error 1 process 2 ("));
	close(pidfd);
}

TEST(kill_is_logged_to_the_journal)
{
	_cleanup_(aim_done) struct aim aim;
	char line[200] = "", expected[64];
	int log[2];

	CHECK(pipe2(log, O_CLOEXEC) == 0);
	helper_listen(&aim.helper);
	helper_start(&aim.helper, NULL, NULL, log[1]);
	aim_take(&aim);
	snprintf(expected, sizeof(expected), "process %d (", (int)aim.victim);
	uses_kfd(&aim, true);
	CHECK(kills(&aim, "ok"));
	CHECK(was_killed(&aim));
	CHECK(read(log[0], line, sizeof(line) - 1) > 0);
	CHECK(strstr(line, expected) && strstr(line, "): SIGKILL\n"));
	close(log[0]);
	close(log[1]);
}

static bool nobody_may_run(const char *program)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(setresuid(NOBODY, NOBODY, NOBODY) < 0 || access(program, X_OK) < 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	return status == 0;
}

TEST(kill_that_the_kernel_refuses_is_reported)
{
	struct aim aim;

	if (geteuid() != 0 || !nobody_may_run(getenv("GPUARB_ENFORCE")))
		SKIP("the helper cannot be run as nobody here");
	helper_listen(&aim.helper);
	aim.helper.uid = NOBODY;
	CHECK(chmod(aim.helper.dir, 0755) == 0);
	helper_start(&aim.helper, NULL, NULL, -1);
	aim_take(&aim);
	uses_kfd(&aim, true);
	CHECK(kills(&aim, "error 1 "));
	CHECK(lives(&aim));
	aim_done(&aim);
}

/* ---- start and end ------------------------------------------------------------------------- */

static int run(const char *argument, int listen_fds, int fd)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		char text[16];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fd >= 0)
			dup2(fd, 3);
		snprintf(text, sizeof(text), "%d", (int)getpid());
		setenv("LISTEN_PID", text, 1);
		snprintf(text, sizeof(text), "%d", listen_fds);
		setenv("LISTEN_FDS", text, 1);
		execl(getenv("GPUARB_ENFORCE"), "gpuarb-enforce", argument, (char *)NULL);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(options_that_make_no_sense_are_a_usage_error)
{
	CHECK(run("--help", 0, -1) == 0);
	CHECK(run("--version", 0, -1) == 0);
	CHECK(run("--nonsense", 0, -1) == 2);
	CHECK(run("word", 0, -1) == 2);
	CHECK(run("--timeout=0", 0, -1) == 2);
	CHECK(run("--timeout=", 0, -1) == 2);
	CHECK(run("--timeout=-1", 0, -1) == 2);
	CHECK(run("--timeout=1s", 0, -1) == 2);
	CHECK(run("--exit-idle-time=99999999999999999999", 0, -1) == 2);
	CHECK(run("--exit-idle-time=86401", 0, -1) == 2);
}

TEST(without_its_socket_it_does_not_start)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX }; /* of an address that the kernel finds */
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), pair[2], stream;

	CHECK(null >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	stream = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(stream >= 0);
	CHECK(bind(stream, (const struct sockaddr *)&un, sizeof(sa_family_t)) == 0);
	CHECK(listen(stream, 1) == 0);
	CHECK(run(NULL, 0, -1) == 1);
	CHECK(run(NULL, 1, null) == 1);
	CHECK(run(NULL, 1, pair[0]) == 1);
	CHECK(run(NULL, 1, stream) == 1);
	close(stream);
	close(pair[0]);
	close(pair[1]);
	close(null);
}

TEST(helper_exits_when_it_is_idle)
{
	_cleanup_(helper_stop) struct helper helper;
	int client;
	char buf[ENFORCE_TEXT_MAX];

	helper_listen(&helper);
	helper_start(&helper, "1", NULL, -1);
	CHECK(helper_wait(&helper) == 0);

	/* The next one finds who has come meanwhile; and leaves one that says no more. */
	client = client_connect(&helper);
	CHECK(client_send(client, "hello", 5, NULL, 0));
	helper_start(&helper, "1", NULL, -1);
	CHECK(client_hears(client, "error 74 "));
	CHECK(client_receive(client, buf) == 0);
	CHECK(helper_wait(&helper) == 0);
	close(client);
}

/* Nothing to wait for but the time itself. */
static void let_pass(long msec)
{
	struct itimerspec when = { .it_value = { msec / 1000, msec % 1000 * 1000000 } };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	uint64_t n;

	CHECK(fd >= 0 && timerfd_settime(fd, 0, &when, NULL) == 0);
	CHECK(read(fd, &n, sizeof(n)) == sizeof(n));
	close(fd);
}

TEST(request_sent_while_the_helper_exits_is_carried_out)
{
	_cleanup_(aim_done) struct aim aim;

	helper_listen(&aim.helper);
	helper_start(&aim.helper, "1", NULL, -1);
	aim_take(&aim);
	CHECK(client_asks(aim.client, "hello", -1, "error 74 "));

	/* When it goes on, its time is over and a request is there. */
	CHECK(kill(aim.helper.pid, SIGSTOP) == 0);
	CHECK(waitid(P_PID, (id_t)aim.helper.pid, &(siginfo_t){ 0 }, WSTOPPED) == 0);
	let_pass(1100);
	uses_kfd(&aim, true);
	client_sends_kill(aim.client, aim.pidfd);
	CHECK(kill(aim.helper.pid, SIGCONT) == 0);
	CHECK(client_hears(aim.client, "ok") && was_killed(&aim));
	CHECK(helper_wait(&aim.helper) == 0);
}

TEST(systemd_starts_it_as_it_is)
{
	struct aim aim = { 0 };
	int ready[2], status;
	char c, sysfs[128];
	pid_t pid;

	if (system("systemd-socket-activate --version >/dev/null 2>&1") != 0)
		SKIP("there is no systemd-socket-activate");
	helper_prepare(&aim.helper);
	snprintf(sysfs, sizeof(sysfs), "--sysfs=%s", aim.helper.sysfs);
	CHECK(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ready[1], STDERR_FILENO); /* it says when it listens */
		execlp("systemd-socket-activate", "systemd-socket-activate", "--seqpacket", "-l",
		       aim.helper.path, getenv("GPUARB_ENFORCE"), "--exit-idle-time=1", sysfs,
		       (char *)NULL);
		_exit(127);
	}
	close(ready[1]);
	CHECK(read(ready[0], &c, 1) == 1);
	aim_take(&aim);
	uses_kfd(&aim, true);
	CHECK(kills(&aim, "ok") && was_killed(&aim));
	close(aim.client);
	aim.client = -1; /* which lets the helper end */
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	close(ready[0]);
	aim_done(&aim);
}

/* ---- processes without a lease --------------------------------------------------------------- */

/* With these uids, on a terminal of `user`, of which *ret is the other end. */
static pid_t victim_on_terminal(uid_t real, uid_t effective, uid_t saved, uid_t user, int *ret)
{
	int ready[2], terminal;
	char c;
	pid_t pid;

	CHECK(openpty(ret, &terminal, NULL, NULL, NULL) == 0 && pipe2(ready, O_CLOEXEC) == 0);
	CHECK(fchown(terminal, user, (gid_t)-1) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(setsid() > 0 && ioctl(terminal, TIOCSCTTY, 0) == 0);
		CHECK(setresuid(real, effective, saved) == 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CHECK(write(ready[1], "", 1) == 1);
		for (;;)
			pause();
	}
	CHECK(read(ready[0], &c, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	close(terminal);
	CHECK(fcntl(*ret, F_SETFL, O_NONBLOCK) == 0);
	return pid;
}

/* What was written to the terminal; "". The kernel passes that on after write(2) has returned. */
static const char *terminal_shows(int terminal)
{
	static char text[1024];
	ssize_t n = read(terminal, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void await_terminal(int terminal, const char *text)
{
	struct pollfd fd = { .fd = terminal, .events = POLLIN };
	struct await await = AWAIT_BEGIN(text);

	await_fds(&await, &fd, 1);
	CHECK(strstr(terminal_shows(terminal), text));
}

TEST_WITH(process_without_a_lease_is_warned_and_killed_on_its_terminal, struct aim *aim)
{
	int client = aim->client, terminal;
	pid_t victim = victim_on_terminal(NOBODY, NOBODY, NOBODY, NOBODY, &terminal);
	int pidfd = victim_pidfd(victim);

	CHECK(client_orders(client, ENFORCE_WARN, pidfd, NOBODY, "warned", "error 19 "));
	CHECK(strcmp(terminal_shows(terminal), "") == 0);
	helper_uses_kfd(&aim->helper, victim, true);
	CHECK(client_orders(client, ENFORCE_WARN, pidfd, NOBODY, "no\x1b]lease\n", "ok"));
	await_terminal(terminal, "): no?]lease?\r");
	CHECK(waitpid(victim, NULL, WNOHANG) == 0);
	CHECK(client_orders(client, ENFORCE_END, pidfd, NOBODY, "killed", "ok"));
	CHECK(victim_was_killed(victim));
	await_terminal(terminal, "gpuarb: process ");
	close(terminal);
	close(pidfd);
}

TEST_WITH(process_of_root_or_of_another_user_is_not_ended_without_a_lease, struct aim *aim)
{
	static const uid_t uids[][3] = {
		{ 0, 0, 0 }, { NOBODY, NOBODY, 0 }, { 0, NOBODY, NOBODY }, { 1, 1, 1 }
	};
	int client = aim->client, terminal, pidfd;

	for (size_t i = 0; i < ARRAY_SIZE(uids); i++) {
		pid_t victim = victim_on_terminal(uids[i][0], uids[i][1], uids[i][2], 2, &terminal);

		pidfd = victim_pidfd(victim);
		helper_uses_kfd(&aim->helper, victim, true);
		CHECK(client_orders(client, ENFORCE_END, pidfd, NOBODY, "killed", "error 1 "));
		CHECK(client_orders(client, ENFORCE_END, pidfd, 0, "killed", "error 1 "));
		CHECK(client_orders(client, ENFORCE_WARN, pidfd, 0, "warned", "error 1 "));
		CHECK(waitpid(victim, NULL, WNOHANG) == 0);
		/* A kill is not shown on a terminal of another user. */
		CHECK(client_orders(client, ENFORCE_KILL, pidfd, 0, "killed", "ok"));
		CHECK(victim_was_killed(victim));
		CHECK(strcmp(terminal_shows(terminal), "") == 0);
		close(terminal);
		close(pidfd);
	}
}
