/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gpuarb-enforce as it is shipped: clients that misbehave, and who may be one. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "enforce-rig.h"

#define NOBODY 65534U

/* ---- bad clients --------------------------------------------------------------------------- */

FIXTURE(struct helper, helper, *helper = helper_new(), helper_stop(helper));

TEST_WITH(malformed_request_is_answered_with_an_error, struct helper *helper)
{
	int client = client_connect(helper);

	CHECK(client_asks(client, "hello", -1, "error 74 "));
	CHECK(client_asks(client, "freeze 1 /etc/passwd", -1, "error 22 "));
	CHECK(client_asks(client, "freeze 1 init.scope", -1, "error 1 "));
	CHECK(client_asks(client, "freeze 1 gpuarbd.service", -1, "error 1 "));
	CHECK(client_send(client, "freeze 1 a\0.service", 19, NULL, 0));
	CHECK(client_hears(client, "error 22 "));
	close(client);
}

TEST_WITH(a_packet_that_is_too_long_is_refused_whole, struct helper *helper)
{
	int client = client_connect(helper);
	char large[60000];

	memset(large, 0, sizeof(large));
	memcpy(large, "kill", 4);
	CHECK(client_send(client, large, sizeof(large), NULL, 0));
	CHECK(client_hears(client, "error 90 "));
	CHECK(client_send(client, large, sizeof(struct enforce_request) + 1, NULL, 0));
	CHECK(client_hears(client, "error 90 "));
	CHECK(client_send(client, large, sizeof(struct enforce_request), NULL, 0));
	CHECK(client_hears(client, "error 74 "));
	close(client);
}

TEST_WITH(an_empty_packet_is_the_end, struct helper *helper)
{
	int client = client_connect(helper);
	char buf[ENFORCE_TEXT_MAX];

	CHECK(client_send(client, "hello", 5, NULL, 0));
	CHECK(client_send(client, "", 0, NULL, 0));
	CHECK(client_hears(client, "error 74 "));
	CHECK(client_receive(client, buf) == 0);
	close(client);
}

TEST_WITH(a_client_that_takes_no_answers_holds_up_itself_alone, struct helper *helper)
{
	int client = client_connect(helper);
	unsigned sent = 0;

	while (sent < 10000 && client_send(client, "hello", 5, NULL, 0))
		sent++;
	close(client);
	client = client_connect(helper);
	CHECK(client_asks(client, "hello", -1, "error 74 "));
	close(client);
}

TEST_WITH(a_client_that_does_not_listen_is_left, struct helper *helper)
{
	int client = client_connect(helper), next;

	CHECK(shutdown(client, SHUT_RD) == 0);
	CHECK(client_send(client, "hello", 5, NULL, 0));
	next = client_connect(helper);
	CHECK(client_asks(next, "hello", -1, "error 74 "));
	close(next);
	close(client);
}

TEST_WITH(one_client_is_served_after_the_other, struct helper *helper)
{
	int first = client_connect(helper), second, pidfd;
	struct pollfd event;
	pid_t victim = victim_new();

	CHECK(client_asks(first, "hello", -1, "error 74 "));
	second = client_connect(helper);
	pidfd = victim_pidfd(victim);
	helper_uses_kfd(helper, victim, true);
	client_sends_kill(second, pidfd);
	CHECK(client_asks(first, "hello", -1, "error 74 "));
	event = (struct pollfd){ .fd = second, .events = POLLIN };
	CHECK(poll(&event, 1, 0) == 0 && waitpid(victim, NULL, WNOHANG) == 0);
	close(first);
	CHECK(client_hears(second, "ok"));
	CHECK(victim_was_killed(victim));
	close(pidfd);
	close(second);
}

TEST_WITH(client_that_shuts_down_writing_receives_its_answers, struct helper *helper)
{
	int client = client_connect(helper);
	char buf[ENFORCE_TEXT_MAX];

	for (unsigned i = 0; i < 5; i++)
		CHECK(client_send(client, "hello", 5, NULL, 0));
	CHECK(shutdown(client, SHUT_WR) == 0);
	for (unsigned i = 0; i < 5; i++)
		CHECK(client_hears(client, "error 74 "));
	CHECK(client_receive(client, buf) == 0);
	close(client);
}

TEST_WITH(clients_that_come_and_go_leave_nothing_behind, struct helper *helper)
{
	int client, pidfd = victim_pidfd(getpid());
	char path[64];
	unsigned before = 0, after = 0;

	for (unsigned i = 0; i < 300; i++) {
		client = client_connect(helper);
		if (i % 3 == 0)
			client_sends_kill(client, pidfd);
		if (i % 3 == 1)
			CHECK(client_kills(client, pidfd, "error 1 "));
		close(client);
		if (i != 10 && i != 299)
			continue;
		/* Its answer comes when all that were before are gone. */
		client = client_connect(helper);
		CHECK(client_asks(client, "hello", -1, "error 74 "));
		for (int fd = 0; fd < 256; fd++) {
			snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)helper->pid, fd);
			*(i == 10 ? &before : &after) += faccessat(AT_FDCWD, path, F_OK,
								   AT_SYMLINK_NOFOLLOW) == 0;
		}
		close(client);
	}
	CHECK(before > 3 && after == before);
	close(pidfd);
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
		victim = victim_new();
		helper_uses_kfd(helper, victim, true);
		if (setresuid(uid, uid, uid) < 0)
			_exit(2);
		pidfd = victim_pidfd(victim);
		client = client_connect(helper);
		/* It may have been sent away already. */
		signal(SIGPIPE, SIG_IGN);
		send(client, "hello", 5, MSG_NOSIGNAL);
		if (!client_hears(client, expected))
			_exit(1);
		_exit(client_kills(client, pidfd, "ok") && victim_was_killed(victim) ? 0 : 1);
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

TEST(other_users_are_refused_although_they_can_connect)
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
	helper_uses_kfd(&helper, victim, true);
	pidfd = victim_pidfd(victim);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		char buf[ENFORCE_TEXT_MAX];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CHECK(setresuid(NOBODY, NOBODY, NOBODY) == 0);
		client = client_connect(&helper);
		CHECK(client_hears(client, "error 1 uid 65534"));
		CHECK(client_receive(client, buf) == 0);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(waitpid(victim, NULL, WNOHANG) == 0);

	client = client_connect(&helper); /* it goes on with who may */
	CHECK(client_kills(client, pidfd, "ok") && victim_was_killed(victim));
	close(client);
	close(pidfd);
	helper_stop(&helper);
}
