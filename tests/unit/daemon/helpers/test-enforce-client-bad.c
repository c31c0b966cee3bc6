/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gpuarbd's side, beside helpers of the test's that misbehave. */

#include <signal.h>

#include "check.h"
#include "enforce-client-rig.h"

FIXTURE(struct stage, stage, stage = client_stage_new(await_limit_usec()), client_stage_end(stage));

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
