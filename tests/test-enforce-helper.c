/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gpuarb-enforce as it is shipped: whom it kills, and whom it does not. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "enforce-rig.h"

#define NOBODY 65534U

static struct helper helper_new(void)
{
	struct helper helper;

	helper_listen(&helper);
	helper_start(&helper, NULL, NULL, -1);
	return helper;
}

/* ---- killing ------------------------------------------------------------------------------- */

TEST(the_process_of_a_pidfd_is_killed)
{
	struct helper helper = helper_new();
	int client = client_connect(&helper), pidfd;
	pid_t victim, other = victim_new();

	for (unsigned i = 0; i < 3; i++) {
		victim = victim_new();
		pidfd = victim_pidfd(victim);
		CHECK(client_asks(client, "kill", pidfd, "ok"));
		CHECK(victim_was_killed(victim));
		close(pidfd);
	}
	CHECK(waitpid(other, NULL, WNOHANG) == 0); /* and nobody else is */
	kill(other, SIGKILL);
	CHECK(victim_was_killed(other));
	close(client);
	helper_stop(&helper);
}

/* The number may be another's by then. */
TEST(a_process_that_has_ended_is_not_killed_again)
{
	struct helper helper = helper_new();
	int client = client_connect(&helper), pidfd;
	pid_t victim = victim_new();

	pidfd = victim_pidfd(victim);
	kill(victim, SIGKILL);
	CHECK(waitid(P_PID, (id_t)victim, &(siginfo_t){0}, WEXITED | WNOWAIT) == 0);
	CHECK(client_asks(client, "kill", pidfd, "error 3 the process has ended"));
	CHECK(victim_was_killed(victim));
	CHECK(client_asks(client, "kill", pidfd, "error 3 the process has ended"));
	close(pidfd);
	close(client);
	helper_stop(&helper);
}

TEST(a_kill_needs_one_pidfd_and_nothing_else)
{
	struct helper helper = helper_new();
	int client = client_connect(&helper), fds[16], event = eventfd(0, EFD_CLOEXEC);
	pid_t victim = victim_new();

	CHECK(event >= 0);
	fds[0] = victim_pidfd(victim);
	for (unsigned i = 1; i < 16; i++)
		fds[i] = fds[0];
	CHECK(client_asks(client, "kill", -1, "error 74 a kill needs one pidfd"));
	CHECK(client_asks(client, "kill", event, "error 9 what came with the request is no pidfd"));
	CHECK(client_asks(client, "kill", client, "error 9 "));
	CHECK(client_send(client, "kill", 4, fds, 2));
	CHECK(client_hears(client, "error 74 a kill needs one pidfd, other requests none: several"));
	CHECK(client_send(client, "kill", 4, fds, 16));
	CHECK(client_hears(client, "error 74 "));
	CHECK(client_asks(client, "thaw a.service", fds[0], "error 74 "));
	CHECK(waitpid(victim, NULL, WNOHANG) == 0);

	CHECK(client_asks(client, "kill", fds[0], "ok")); /* it goes on as if nothing had been */
	CHECK(victim_was_killed(victim));
	close(fds[0]);
	close(event);
	close(client);
	helper_stop(&helper);
}

TEST(process_one_the_helper_and_its_client_are_never_killed)
{
	struct helper helper = helper_new();
	int client = client_connect(&helper), one = victim_pidfd(1), self = victim_pidfd(getpid()),
	    it = victim_pidfd(helper.pid);

	CHECK(client_asks(client, "kill", one, "error 1 process 1 ("));
	CHECK(client_asks(client, "kill", self, "error 1 process "));
	CHECK(client_asks(client, "kill", it, "error 1 process "));
	close(it);
	close(self);
	close(one);
	close(client);
	helper_stop(&helper);
}

static bool is_kthreadd(void)
{
	char name[16] = "";
	FILE *file = fopen("/proc/2/comm", "re");

	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		name[0] = '\0';
	fclose(file);
	return strcmp(name, "kthreadd\n") == 0;
}

TEST(kernel_threads_are_never_killed)
{
	struct helper helper;
	int client, pidfd;

	if (!is_kthreadd())
		SKIP("kernel threads are not to be seen here");
	helper = helper_new();
	client = client_connect(&helper);
	pidfd = victim_pidfd(2);
	CHECK(client_asks(client, "kill", pidfd, "error 1 process 2 (kthreadd) is never killed"));
	close(pidfd);
	close(client);
	helper_stop(&helper);
}

TEST(a_kill_is_told_to_the_journal)
{
	struct helper helper;
	int client, pidfd, log[2];
	char line[200] = "", expected[64];
	pid_t victim = victim_new();

	CHECK(pipe2(log, O_CLOEXEC) == 0);
	helper_listen(&helper);
	helper_start(&helper, NULL, NULL, log[1]);
	client = client_connect(&helper);
	pidfd = victim_pidfd(victim);
	CHECK(client_asks(client, "kill", pidfd, "ok"));
	CHECK(victim_was_killed(victim));
	CHECK(read(log[0], line, sizeof(line) - 1) > 0);
	snprintf(expected, sizeof(expected), "process %d (", (int)victim);
	CHECK(strstr(line, expected) && strstr(line, "): SIGKILL\n"));
	close(log[0]);
	close(log[1]);
	close(pidfd);
	close(client);
	helper_stop(&helper);
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

TEST(what_the_kernel_does_not_allow_is_told)
{
	struct helper helper;
	int client, pidfd;
	pid_t victim;

	if (geteuid() != 0 || !nobody_may_run(getenv("GPUARB_ENFORCE")))
		SKIP("the helper cannot be run as nobody here");
	helper_listen(&helper);
	helper.uid = NOBODY;
	helper_start(&helper, NULL, NULL, -1);
	victim = victim_new();
	pidfd = victim_pidfd(victim);
	client = client_connect(&helper);
	CHECK(client_asks(client, "kill", pidfd, "error 1 cannot kill process "));
	CHECK(waitpid(victim, NULL, WNOHANG) == 0);
	kill(victim, SIGKILL);
	CHECK(victim_was_killed(victim));
	close(pidfd);
	close(client);
	helper_stop(&helper);
}

/* ---- bad clients --------------------------------------------------------------------------- */

TEST(what_makes_no_sense_is_answered_with_a_sentence)
{
	struct helper helper = helper_new();
	int client = client_connect(&helper);

	CHECK(client_asks(client, "hello", -1, "error 74 a request is \"kill\", \"freeze UNIT\""));
	CHECK(client_asks(client, "freeze /etc/passwd", -1, "error 22 "));
	CHECK(client_asks(client, "freeze init.scope", -1, "error 1 init.scope is never frozen"));
	CHECK(client_asks(client, "freeze gpuarbd.service", -1, "error 1 "));
	CHECK(client_send(client, "freeze a\0.service", 17, NULL, 0));
	CHECK(client_hears(client, "error 22 "));
	close(client);
	helper_stop(&helper);
}

TEST(a_packet_that_is_too_long_is_refused_whole)
{
	struct helper helper = helper_new();
	int client = client_connect(&helper);
	char large[60000];

	memset(large, 0, sizeof(large));
	memcpy(large, "kill", 4);
	CHECK(client_send(client, large, sizeof(large), NULL, 0));
	CHECK(client_hears(client, "error 90 a request has up to 512 bytes"));
	CHECK(client_send(client, large, ENFORCE_TEXT_MAX + 1, NULL, 0));
	CHECK(client_hears(client, "error 90 "));
	CHECK(client_send(client, large, ENFORCE_TEXT_MAX, NULL, 0));
	CHECK(client_hears(client, "error 74 "));
	close(client);
	helper_stop(&helper);
}

TEST(an_empty_packet_is_the_end)
{
	struct helper helper = helper_new();
	int client = client_connect(&helper);
	char buf[ENFORCE_TEXT_MAX];

	CHECK(client_send(client, "hello", 5, NULL, 0));
	CHECK(client_send(client, "", 0, NULL, 0));
	CHECK(client_hears(client, "error 74 "));
	CHECK(client_receive(client, buf) == 0);
	close(client);
	helper_stop(&helper);
}

TEST(ten_thousand_requests_are_answered_one_by_one)
{
	struct helper helper = helper_new();
	int client = client_connect(&helper);
	unsigned sent = 0, heard = 0;

	while (heard < 10000) {
		while (sent < 10000 && client_send(client, sent % 2 ? "kill" : "hm", sent % 2 ? 4 : 2,
						   NULL, 0))
			sent++;
		CHECK(client_hears(client, heard % 2 ? "error 74 a kill needs" :
						       "error 74 a request is"));
		heard++;
	}
	close(client);
	helper_stop(&helper);
}

TEST(a_client_that_takes_no_answers_holds_up_itself_alone)
{
	struct helper helper = helper_new();
	int client = client_connect(&helper);
	unsigned sent = 0;

	while (sent < 10000 && client_send(client, "hello", 5, NULL, 0))
		sent++;
	close(client);
	client = client_connect(&helper);
	CHECK(client_asks(client, "hello", -1, "error 74 "));
	close(client);
	helper_stop(&helper);
}

TEST(a_client_that_does_not_listen_is_left)
{
	struct helper helper = helper_new();
	int client = client_connect(&helper), next;

	CHECK(shutdown(client, SHUT_RD) == 0);
	CHECK(client_send(client, "hello", 5, NULL, 0));
	next = client_connect(&helper);
	CHECK(client_asks(next, "hello", -1, "error 74 "));
	close(next);
	close(client);
	helper_stop(&helper);
}

TEST(one_client_is_served_after_the_other)
{
	struct helper helper = helper_new();
	int first = client_connect(&helper), second, pidfd;
	struct pollfd event;
	pid_t victim = victim_new();

	CHECK(client_asks(first, "hello", -1, "error 74 "));
	second = client_connect(&helper);
	pidfd = victim_pidfd(victim);
	CHECK(client_send(second, "kill", 4, &pidfd, 1));
	CHECK(client_asks(first, "hello", -1, "error 74 "));
	event = (struct pollfd){ .fd = second, .events = POLLIN };
	CHECK(poll(&event, 1, 0) == 0 && waitpid(victim, NULL, WNOHANG) == 0);
	close(first);
	CHECK(client_hears(second, "ok"));
	CHECK(victim_was_killed(victim));
	close(pidfd);
	close(second);
	helper_stop(&helper);
}

TEST(a_client_that_says_that_it_is_done_hears_its_answers)
{
	struct helper helper = helper_new();
	int client = client_connect(&helper);
	char buf[ENFORCE_TEXT_MAX];

	for (unsigned i = 0; i < 5; i++)
		CHECK(client_send(client, "hello", 5, NULL, 0));
	CHECK(shutdown(client, SHUT_WR) == 0);
	for (unsigned i = 0; i < 5; i++)
		CHECK(client_hears(client, "error 74 "));
	CHECK(client_receive(client, buf) == 0);
	close(client);
	helper_stop(&helper);
}

TEST(clients_that_come_and_go_leave_nothing_behind)
{
	struct helper helper = helper_new();
	int client, pidfd = victim_pidfd(getpid());
	char path[64];
	unsigned before = 0, after = 0;

	for (unsigned i = 0; i < 300; i++) {
		client = client_connect(&helper);
		if (i % 3 == 0)
			CHECK(client_send(client, "kill", 4, &pidfd, 1));
		if (i % 3 == 1)
			CHECK(client_asks(client, "kill", pidfd, "error 1 "));
		close(client);
		if (i != 10 && i != 299)
			continue;
		/* Its answer comes when all that were before are gone. */
		client = client_connect(&helper);
		CHECK(client_asks(client, "hello", -1, "error 74 "));
		for (int fd = 0; fd < 256; fd++) {
			snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)helper.pid, fd);
			*(i == 10 ? &before : &after) += faccessat(AT_FDCWD, path, F_OK,
								   AT_SYMLINK_NOFOLLOW) == 0;
		}
		close(client);
	}
	CHECK(before > 3 && after == before);
	close(pidfd);
	helper_stop(&helper);
}

/* ---- who may ask --------------------------------------------------------------------------- */

/* As a user who may connect, whether or not it may ask. */
static int ask_as(const struct helper *helper, uid_t uid, const char *expected)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		int client, pidfd;
		pid_t victim;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setresuid(uid, uid, uid) < 0)
			_exit(2);
		victim = victim_new();
		pidfd = victim_pidfd(victim);
		client = client_connect(helper);
		/* It may have been sent away already. */
		signal(SIGPIPE, SIG_IGN);
		send(client, "hello", 5, MSG_NOSIGNAL);
		if (!client_hears(client, expected))
			_exit(1);
		_exit(client_asks(client, "kill", pidfd, "ok") && victim_was_killed(victim) ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

static void open_to_all(const struct helper *helper)
{
	CHECK(chmod(helper->dir, 0755) == 0 && chmod(helper->path, 0666) == 0);
}

TEST(the_owner_of_the_socket_may_ask)
{
	struct helper helper;

	if (geteuid() != 0)
		SKIP("only root can be somebody else");
	helper = helper_new();
	open_to_all(&helper);
	CHECK(chown(helper.path, NOBODY, NOBODY) == 0);
	CHECK(ask_as(&helper, NOBODY, "error 74 ") == 0);
	CHECK(ask_as(&helper, 0, "error 74 ") == 0);
	helper_stop(&helper);
}

TEST(others_are_sent_away_even_where_the_mode_lets_them_connect)
{
	struct helper helper;
	int client, pidfd;
	pid_t victim, pid;
	int status;

	if (geteuid() != 0)
		SKIP("only root can be somebody else");
	helper = helper_new();
	open_to_all(&helper);
	victim = victim_new();
	pidfd = victim_pidfd(victim);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		char buf[ENFORCE_TEXT_MAX];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CHECK(setresuid(NOBODY, NOBODY, NOBODY) == 0);
		client = client_connect(&helper);
		CHECK(client_hears(client, "error 1 uid 65534 is neither root nor the owner"));
		CHECK(client_receive(client, buf) == 0);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(waitpid(victim, NULL, WNOHANG) == 0);

	client = client_connect(&helper); /* it goes on with who may */
	CHECK(client_asks(client, "kill", pidfd, "ok") && victim_was_killed(victim));
	close(client);
	close(pidfd);
	helper_stop(&helper);
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

TEST(it_leaves_when_nobody_asks_anything)
{
	struct helper helper;
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
	helper_stop(&helper);
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

TEST(what_is_sent_while_it_leaves_is_carried_out)
{
	struct helper helper;
	int client, pidfd;
	pid_t victim = victim_new();

	helper_listen(&helper);
	helper_start(&helper, "1", NULL, -1);
	client = client_connect(&helper);
	CHECK(client_asks(client, "hello", -1, "error 74 "));

	/* When it goes on, its time is over and a request is there. */
	CHECK(kill(helper.pid, SIGSTOP) == 0);
	CHECK(waitid(P_PID, (id_t)helper.pid, &(siginfo_t){0}, WSTOPPED) == 0);
	let_pass(1100);
	pidfd = victim_pidfd(victim);
	CHECK(client_send(client, "kill", 4, &pidfd, 1));
	CHECK(kill(helper.pid, SIGCONT) == 0);
	CHECK(client_hears(client, "ok") && victim_was_killed(victim));
	CHECK(helper_wait(&helper) == 0);
	close(pidfd);
	close(client);
	helper_stop(&helper);
}

TEST(systemd_starts_it_as_it_is)
{
	struct helper helper = { .listening = -1, .dir = "/tmp/gpuarb-test-XXXXXX" };
	int client = -1, pidfd, status;
	pid_t victim = victim_new(), pid;
	int ready[2];
	char c;

	if (system("systemd-socket-activate --version >/dev/null 2>&1") != 0) {
		kill(victim, SIGKILL);
		victim_was_killed(victim);
		SKIP("there is no systemd-socket-activate");
	}
	CHECK(mkdtemp(helper.dir));
	snprintf(helper.path, sizeof(helper.path), "%s/socket", helper.dir);
	CHECK(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ready[1], STDERR_FILENO); /* it says when it listens */
		execlp("systemd-socket-activate", "systemd-socket-activate", "--seqpacket", "-l",
		       helper.path, getenv("GPUARB_ENFORCE"), "--exit-idle-time=1", (char *)NULL);
		_exit(127);
	}
	close(ready[1]);
	CHECK(read(ready[0], &c, 1) == 1);
	client = client_connect(&helper);
	pidfd = victim_pidfd(victim);
	CHECK(client_asks(client, "kill", pidfd, "ok") && victim_was_killed(victim));
	close(pidfd);
	close(client);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	close(ready[0]);
	helper_stop(&helper);
}
