/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gpuarbd's side: beside the shipped helper, without one, and callers that go on asking. */

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "check.h"
#include "enforce-client-rig.h"

/* ---- the shipped helper ------------------------------------------------------------------ */

FIXTURE(struct stage, stage, stage = client_stage_new(await_limit_usec()), client_stage_end(stage));

TEST_WITH(process_is_killed_and_the_caller_receives_the_result, struct stage *stage)
{
	pid_t victims[3];

	helper_start(&stage->helper, NULL, NULL, -1);
	for (unsigned i = 0; i < 3; i++) {
		int pidfd;

		victims[i] = victim_new();
		helper_uses_kfd(&stage->helper, victims[i], true);
		pidfd = victim_pidfd(victims[i]);
		CHECK(kill_it(stage, pidfd, 10 + i) == 0);
		close(pidfd); /* it has a copy */
	}
	CHECK(stage->n == 0); /* never from within */
	run_until(stage, 3);
	for (unsigned i = 0; i < 3; i++) {
		CHECK(heard(stage, i, 10 + i, 0, ""));
		CHECK(victim_was_killed(victims[i]));
	}
}

TEST_WITH(refusal_of_the_helper_is_returned_with_its_reason, struct stage *stage)
{
	int pidfd = victim_pidfd(1);

	CHECK(setenv("GPUARB_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1) == 0);
	helper_start(&stage->helper, NULL, NULL, -1);
	CHECK(kill_it(stage, pidfd, 1) == 0 && freeze(stage, "a.service", 2) == 0);
	CHECK(thaw(stage, "a.scope", 3) == 0 && kill_it(stage, STDIN_FILENO, 4) == 0);
	run_until(stage, 4);
	CHECK(heard(stage, 0, 1, -EPERM, "process 1 ("));
	CHECK(heard(stage, 1, 2, -EBADF, "pidfd"));
	CHECK(heard(stage, 2, 3, -EPERM, "frozen"));
	CHECK(heard(stage, 3, 4, -EBADF, "pidfd"));
	close(pidfd);
}

TEST_WITH(a_helper_that_has_left_is_found_again, struct stage *stage)
{
	for (unsigned i = 0; i < 3; i++) {
		helper_start(&stage->helper, NULL, NULL, -1);
		CHECK(kill_it(stage, STDIN_FILENO, i) == 0);
		run_until(stage, i + 1);
		CHECK(heard(stage, i, i, -EBADF, "pidfd"));
		CHECK(kill(stage->helper.pid, SIGTERM) == 0 && helper_wait(&stage->helper) == 0);
		if (i == 1)
			run_all_there_is(stage); /* it has seen the end, or finds it when it asks */
	}
}

TEST_WITH(hundreds_of_requests_at_once_are_answered_in_order, struct stage *stage)
{
	unsigned n = 0;

	helper_start(&stage->helper, NULL, NULL, -1);
	while (kill_it(stage, STDIN_FILENO, n) == 0)
		n++;
	CHECK(n == ENFORCE_QUEUE && client_says(stage, "256 requests"));
	run_until(stage, n);
	for (unsigned i = 0; i < n; i++)
		CHECK(heard(stage, i, i, -EBADF, ""));
	CHECK(kill_it(stage, STDIN_FILENO, n) == 0);
	run_until(stage, n + 1);
}

/* ---- no helper ----------------------------------------------------------------------------- */

TEST_WITH(without_a_helper_the_caller_hears_what_to_do, struct stage *stage)
{
	close(stage->helper.listening);
	stage->helper.listening = -1;
	CHECK(kill_it(stage, STDIN_FILENO, 1) == -EOPNOTSUPP);
	CHECK(client_says(stage, "/gpuarb-test-"));
	CHECK(client_says(stage, "systemctl enable --now gpuarb-enforce.socket"));
	CHECK(unlink(stage->helper.path) == 0);
	CHECK(freeze(stage, "a.service", 2) == -EOPNOTSUPP);
	run_all_there_is(stage);
	CHECK(stage->n == 0);
}

TEST_WITH(invalid_request_is_refused_without_the_helper, struct stage *stage)
{
	CHECK(freeze(stage, "a.slice", 1) == -EINVAL && client_says(stage, "service"));
	CHECK(thaw(stage, "", 1) == -EINVAL);
	CHECK(freeze(stage, "gpuarbd.service", 1) == -EPERM && client_says(stage, "frozen"));
	CHECK(kill_it(stage, -1, 1) == -EBADF && client_says(stage, "pidfd"));
	CHECK(kill_it(stage, 123456, 1) == -EBADF && client_says(stage, "copy"));
}

TEST(socket_path_that_is_too_long_is_reported)
{
	char name[200], why[300];
	struct asker *enforce;
	sd_event *event;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK(sd_event_new(&event) >= 0);
	CHECK(asker_new(event, &enforce_helper, name, await_limit_usec(), on_done, on_lost, NULL,
			&enforce) == 0);
	CHECK(enforce_ask(enforce, ENFORCE_THAW, -1, 0, 0, "a.service", 1, why, sizeof(why)) ==
	      -ENAMETOOLONG);
	asker_free(enforce);
	sd_event_unref(event);
}

/* ---- callers ------------------------------------------------------------------------------- */

static void ask_again(struct stage *stage)
{
	if (stage->n < 5)
		CHECK(freeze(stage, "again.service", 100 + stage->n) == 0);
}

TEST_WITH(an_answer_may_lead_to_the_next_request, struct stage *stage)
{
	int fd;

	stage->then = ask_again;
	CHECK(freeze(stage, "a.service", 1) == 0);
	fd = accept_one(stage);
	for (unsigned i = 0; i < 5; i++) {
		client_answer(fd, "ok");
		run_until(stage, i + 1);
	}
	CHECK(heard(stage, 4, 104, 0, ""));
	close(fd);
}

TEST_WITH(so_may_the_news_that_the_helper_is_gone, struct stage *stage)
{
	int fd;

	stage->then = ask_again;
	CHECK(freeze(stage, "a.service", 1) == 0 && freeze(stage, "b.service", 2) == 0);
	close(accept_one(stage));
	run_until(stage, 2);
	CHECK(stage->heard[0].r == -ECONNRESET && stage->heard[1].r == -ECONNRESET);
	fd = accept_one(stage); /* for what the first answer led to, and the second */
	client_answer(fd, "ok");
	client_answer(fd, "ok");
	run_until(stage, 4);
	CHECK(heard(stage, 2, 101, 0, "") && heard(stage, 3, 102, 0, ""));
	stage->then = NULL;
	close(fd);
}

TEST_WITH(requests_of_one_that_goes_are_forgotten, struct stage *stage)
{
	char buf[ENFORCE_TEXT_MAX];
	int fd;

	CHECK(kill_it(stage, STDIN_FILENO, 1) == 0);
	fd = accept_one(stage);
	asker_free(stage->enforce);
	stage->enforce = NULL;
	CHECK(client_receive(fd, buf) && !client_receive(fd, buf));
	CHECK(stage->n == 0 && !asker_free(NULL));
	close(fd);
}

TEST_WITH(lack_of_file_descriptors_is_reported, struct stage *stage)
{
	struct rlimit before, limit;
	int fd, r;

	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	fd = fcntl(0, F_DUPFD_CLOEXEC, 0);
	close(fd);
	limit = before;
	limit.rlim_cur = (rlim_t)fd;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	r = kill_it(stage, STDIN_FILENO, 1);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(r == -EMFILE && client_says(stage, "copy"));
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	r = thaw(stage, "a.service", 1);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(r == -EMFILE && client_says(stage, "connect"));
}

/* ---- helpers that misbehave ---------------------------------------------- */

TEST_WITH(requests_follow_the_protocol, struct stage *stage)
{
	char buf[ENFORCE_TEXT_MAX];
	int fd;

	CHECK(freeze(stage, "a.service", 1) == 0 && thaw(stage, "b.scope", 2) == 0);
	CHECK(kill_it(stage, STDIN_FILENO, 3) == 0);
	fd = accept_one(stage);
	CHECK(client_receive(fd, buf) && strcmp(buf, "freeze 1 a.service") == 0);
	CHECK(client_receive(fd, buf) && strcmp(buf, "thaw b.scope") == 0);
	CHECK(client_receive(fd, buf) && strcmp(buf, "kill 0") == 0);
	client_answer(fd, "ok");
	client_answer(fd, "error 3 gone");
	client_answer(fd, "ok");
	run_until(stage, 3);
	CHECK(heard(stage, 0, 1, 0, "") && heard(stage, 1, 2, -ESRCH, "gone"));
	CHECK(heard(stage, 2, 3, 0, ""));
	close(fd);
}

TEST(a_helper_that_never_answers_is_given_up_in_time)
{
	struct stage *stage = client_stage_new(50000);
	char buf[ENFORCE_TEXT_MAX];
	int fd;

	CHECK(freeze(stage, "a.service", 1) == 0 && thaw(stage, "a.service", 2) == 0);
	fd = accept_one(stage);
	run_until(stage, 2);
	CHECK(heard(stage, 0, 1, -ETIMEDOUT, "answer"));
	CHECK(heard(stage, 1, 2, -ETIMEDOUT, "answer"));
	CHECK(client_receive(fd, buf) && client_receive(fd, buf) && !client_receive(fd, buf));
	close(fd);

	/* The next request goes to the next one. */
	CHECK(thaw(stage, "a.service", 3) == 0);
	fd = accept_one(stage);
	client_answer(fd, "ok");
	run_until(stage, 3);
	CHECK(heard(stage, 2, 3, 0, ""));
	close(fd);
	client_stage_end(stage);
}

TEST(one_that_never_accepts_is_given_up_in_time)
{
	struct stage *stage = client_stage_new(50000);

	CHECK(freeze(stage, "a.service", 1) == 0);
	run_until(stage, 1);
	CHECK(heard(stage, 0, 1, -ETIMEDOUT, "answer"));
	client_stage_end(stage);
}

TEST_WITH(a_helper_that_dies_has_answered_nothing, struct stage *stage)
{
	int fd;

	CHECK(freeze(stage, "a.service", 1) == 0 && freeze(stage, "b.service", 2) == 0);
	fd = accept_one(stage);
	client_answer(fd, "ok");
	close(fd);
	run_until(stage, 2);
	CHECK(stage->heard[0].tag == 1 && heard(stage, 1, 2, -ECONNRESET, "ended"));
}

TEST_WITH(answers_that_make_no_sense_end_the_connection, struct stage *stage)
{
	static const char *const answers[] = { "yes", "ok ok", "error", "error 0 x", "error x" };
	char large[sizeof(struct enforce_answer) + 1], buf[ENFORCE_TEXT_MAX];
	unsigned n = 0;
	int fd;

	memset(large, 'x', sizeof(large));
	memcpy(large, "error 5 ", 8);
	for (size_t i = 0; i <= ARRAY_SIZE(answers); i++) {
		CHECK(freeze(stage, "a.service", i) == 0);
		fd = accept_one(stage);
		if (i < ARRAY_SIZE(answers))
			client_answer(fd, answers[i]);
		else
			CHECK(send(fd, large, sizeof(large), 0) == sizeof(large));
		run_until(stage, ++n);
		CHECK(heard(stage, n - 1, i, -EBADMSG, ""));
		CHECK(client_receive(fd, buf) && !client_receive(fd, buf));
		close(fd);
	}
}

TEST_WITH(unrequested_answer_ends_the_connection, struct stage *stage)
{
	char buf[ENFORCE_TEXT_MAX];
	int fd;

	CHECK(freeze(stage, "a.service", 1) == 0);
	fd = accept_one(stage);
	client_answer(fd, "ok");
	client_answer(fd, "ok");
	run_until(stage, 1);
	run_all_there_is(stage);
	CHECK(heard(stage, 0, 1, 0, ""));
	CHECK(client_receive(fd, buf) && !client_receive(fd, buf));
	close(fd);
}

TEST_WITH(a_helper_that_takes_no_more_is_left_for_the_next, struct stage *stage)
{
	char buf[ENFORCE_TEXT_MAX];
	int fd, next;

	CHECK(freeze(stage, "a.service", 1) == 0);
	fd = accept_one(stage);
	CHECK(client_receive(fd, buf));
	CHECK(shutdown(fd, SHUT_RD) == 0); /* it leaves when it has answered */
	CHECK(freeze(stage, "b.service", 2) == 0 && freeze(stage, "c.service", 3) == 0);
	client_answer(fd, "ok");
	close(fd);
	run_until(stage, 1);
	CHECK(heard(stage, 0, 1, 0, ""));
	run_all_there_is(stage);
	next = accept_one(stage);
	CHECK(client_receive(next, buf) && strcmp(buf, "freeze 1 b.service") == 0);
	CHECK(client_receive(next, buf) && strcmp(buf, "freeze 1 c.service") == 0);
	client_answer(next, "ok");
	client_answer(next, "ok");
	run_until(stage, 3);
	CHECK(heard(stage, 1, 2, 0, "") && heard(stage, 2, 3, 0, ""));
	close(next);
}

TEST(one_that_takes_no_more_and_does_not_leave_is_left)
{
	struct stage *stage = client_stage_new(50000);
	char buf[ENFORCE_TEXT_MAX];
	int fd;

	CHECK(freeze(stage, "a.service", 1) == 0);
	fd = accept_one(stage);
	CHECK(client_receive(fd, buf) && shutdown(fd, SHUT_RD) == 0);
	CHECK(freeze(stage, "b.service", 2) == 0);
	client_answer(fd, "ok");
	run_until(stage, 2);
	CHECK(heard(stage, 0, 1, 0, "") && heard(stage, 1, 2, -ETIMEDOUT, "request"));

	CHECK(freeze(stage, "c.service", 3) == 0);
	close(fd);
	fd = accept_one(stage);
	client_answer(fd, "ok");
	run_until(stage, 3);
	CHECK(heard(stage, 2, 3, 0, ""));
	close(fd);
	client_stage_end(stage);
}

TEST_WITH(a_request_finds_a_helper_or_its_lack_not_a_loop, struct stage *stage)
{
	int fd;

	/* One that leaves before it takes the second request, and no other behind it. */
	CHECK(freeze(stage, "a.service", 1) == 0);
	fd = accept_one(stage);
	CHECK(shutdown(fd, SHUT_RD) == 0);
	CHECK(freeze(stage, "b.service", 2) == 0);
	close(fd);
	close(stage->helper.listening);
	stage->helper.listening = -1;
	run_until(stage, 2);
	CHECK(stage->heard[0].tag == 1 && stage->heard[0].r == -ECONNRESET);
	CHECK(heard(stage, 1, 2, -EOPNOTSUPP, "systemctl enable --now gpuarb-enforce.socket"));
}

/* One that is full: it takes nothing out of its socket. */
TEST_WITH(requests_that_the_socket_cannot_take_are_sent_later, struct stage *stage)
{
	char unit[ENFORCE_UNIT_MAX], expected[ENFORCE_TEXT_MAX], buf[ENFORCE_TEXT_MAX];
	unsigned n = 0, fits = 0;
	int fd;

	memset(unit, 'a', 240);
	strcpy(unit + 240, ".service");
	while (freeze(stage, unit, n) == 0)
		n++;
	CHECK(n == ENFORCE_QUEUE);
	fd = accept_one(stage);
	snprintf(expected, sizeof(expected), "freeze 1 %s", unit);
	while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		fits++;
	for (unsigned i = 0; i < fits; i++)
		client_answer(fd, "ok");
	run_until(stage, fits);
	run_all_there_is(stage);
	for (unsigned i = fits; i < n; i++) {
		CHECK(client_receive(fd, buf) && strcmp(buf, expected) == 0);
		client_answer(fd, "error 3 late");
		run_until(stage, i + 1);
		run_all_there_is(stage);
		CHECK(heard(stage, i, i, -ESRCH, "late"));
	}
	printf("%u of %u fitted at once\n", fits, n);
	close(fd);
}
