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
	struct enforce *enforce;
	sd_event *event;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK(sd_event_new(&event) >= 0);
	CHECK(enforce_new(event, name, await_limit_usec(), on_done, on_lost, NULL, &enforce) == 0);
	CHECK(enforce_ask(enforce, ENFORCE_THAW, -1, 0, 0, "a.service", 1, why, sizeof(why)) ==
	      -ENAMETOOLONG);
	enforce_free(enforce);
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
	enforce_free(stage->enforce);
	stage->enforce = NULL;
	CHECK(client_receive(fd, buf) && !client_receive(fd, buf));
	CHECK(stage->n == 0 && !enforce_free(NULL));
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
