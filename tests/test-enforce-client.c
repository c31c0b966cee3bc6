/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gpuarbd's side: beside the shipped helper, and beside helpers of the test's that misbehave. */

#include "sys/enforce.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "core/enforce-text.h"
#include "enforce-rig.h"

#define FOR_EVER UINT64_C(60000000) /* microseconds: reached by a failure only */

struct stage {
	struct helper helper;
	sd_event *event;
	struct enforce *enforce;
	char why[300];

	/* Answers, in the order in which they came. */
	struct heard {
		uint64_t tag;
		int r;
		char sentence[ENFORCE_TEXT_MAX];
	} heard[600];
	unsigned n;
	void (*then)(struct stage *stage); /* from within an answer */
};

static void on_done(void *userdata, uint64_t tag, int r, const char *sentence)
{
	struct stage *stage = userdata;
	struct heard *heard = &stage->heard[stage->n++];

	CHECK(stage->n <= 600);
	heard->tag = tag;
	heard->r = r;
	snprintf(heard->sentence, sizeof(heard->sentence), "%s", sentence);
	if (stage->then)
		stage->then(stage);
}

/* A socket that listens; who answers is up to the test. */
static struct stage *stage_new(uint64_t patience_usec)
{
	struct stage *stage = calloc(1, sizeof(*stage));

	CHECK(stage);
	helper_listen(&stage->helper);
	CHECK(sd_event_new(&stage->event) >= 0);
	CHECK(enforce_new(stage->event, stage->helper.path, patience_usec, on_done, stage,
			  &stage->enforce) == 0);
	return stage;
}

static void stage_end(struct stage *stage)
{
	CHECK(!enforce_free(stage->enforce));
	sd_event_unref(stage->event);
	helper_stop(&stage->helper);
	free(stage);
}

static void run_until(struct stage *stage, unsigned n)
{
	while (stage->n < n)
		CHECK(sd_event_run(stage->event, FOR_EVER) > 0);
	CHECK(stage->n == n);
}

static void run_all_there_is(struct stage *stage)
{
	while (sd_event_run(stage->event, 0) > 0)
		;
}

static int freeze(struct stage *stage, const char *unit, uint64_t tag)
{
	return enforce_freeze(stage->enforce, unit, tag, stage->why, sizeof(stage->why));
}

static int thaw(struct stage *stage, const char *unit, uint64_t tag)
{
	return enforce_thaw(stage->enforce, unit, tag, stage->why, sizeof(stage->why));
}

static int kill_it(struct stage *stage, int pidfd, uint64_t tag)
{
	return enforce_kill(stage->enforce, pidfd, tag, stage->why, sizeof(stage->why));
}

static bool heard(const struct stage *stage, unsigned i, uint64_t tag, int r, const char *words)
{
	const struct heard *row = &stage->heard[i];

	if (i < stage->n && row->tag == tag && row->r == r && strstr(row->sentence, words) &&
	    (r != 0 || row->sentence[0] == '\0'))
		return true;
	fprintf(stderr, "tag %d: %d: %s\n", (int)row->tag, row->r, row->sentence);
	return false;
}

static bool says(const struct stage *stage, const char *words)
{
	if (strstr(stage->why, words))
		return true;
	fprintf(stderr, "it says: %s\n", stage->why);
	return false;
}

/* ---- the shipped helper ------------------------------------------------------------------ */

TEST(a_process_is_killed_and_the_caller_is_told)
{
	struct stage *stage = stage_new(FOR_EVER);
	pid_t victims[3];

	helper_start(&stage->helper, NULL, NULL, -1);
	for (unsigned i = 0; i < 3; i++) {
		int pidfd;

		victims[i] = victim_new();
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
	stage_end(stage);
}

TEST(what_the_helper_refuses_comes_back_with_its_sentence)
{
	struct stage *stage = stage_new(FOR_EVER);
	int pidfd = victim_pidfd(1);

	CHECK(setenv("GPUARB_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1) == 0);
	helper_start(&stage->helper, NULL, NULL, -1);
	CHECK(kill_it(stage, pidfd, 1) == 0 && freeze(stage, "a.service", 2) == 0);
	CHECK(thaw(stage, "a.scope", 3) == 0 && kill_it(stage, STDIN_FILENO, 4) == 0);
	run_until(stage, 4);
	CHECK(heard(stage, 0, 1, -EPERM, "process 1 ("));
	CHECK(heard(stage, 1, 2, -ENOENT, "cannot ask the service manager"));
	CHECK(heard(stage, 2, 3, -ENOENT, "cannot ask the service manager"));
	CHECK(heard(stage, 3, 4, -EBADF, "no pidfd"));
	close(pidfd);
	stage_end(stage);
}

TEST(a_helper_that_has_left_is_found_again)
{
	struct stage *stage = stage_new(FOR_EVER);

	for (unsigned i = 0; i < 3; i++) {
		helper_start(&stage->helper, NULL, NULL, -1);
		CHECK(kill_it(stage, STDIN_FILENO, i) == 0);
		run_until(stage, i + 1);
		CHECK(heard(stage, i, i, -EBADF, "no pidfd"));
		CHECK(kill(stage->helper.pid, SIGTERM) == 0 && helper_wait(&stage->helper) == 0);
		if (i == 1)
			run_all_there_is(stage); /* it has seen the end, or finds it when it asks */
	}
	stage_end(stage);
}

TEST(hundreds_of_requests_at_once_are_answered_in_order)
{
	struct stage *stage = stage_new(FOR_EVER);
	unsigned n = 0;

	helper_start(&stage->helper, NULL, NULL, -1);
	while (kill_it(stage, STDIN_FILENO, n) == 0)
		n++;
	CHECK(n == ENFORCE_QUEUE && says(stage, "256 requests wait for the helper"));
	run_until(stage, n);
	for (unsigned i = 0; i < n; i++)
		CHECK(heard(stage, i, i, -EBADF, ""));
	CHECK(kill_it(stage, STDIN_FILENO, n) == 0);
	run_until(stage, n + 1);
	stage_end(stage);
}

/* ---- no helper ----------------------------------------------------------------------------- */

TEST(without_a_helper_the_caller_hears_what_to_do)
{
	struct stage *stage = stage_new(FOR_EVER);

	close(stage->helper.listening);
	stage->helper.listening = -1;
	CHECK(kill_it(stage, STDIN_FILENO, 1) == -EOPNOTSUPP);
	CHECK(says(stage, "nobody is at /tmp/gpuarb-test-"));
	CHECK(says(stage, "systemctl enable --now gpuarb-enforce.socket"));
	CHECK(unlink(stage->helper.path) == 0);
	CHECK(freeze(stage, "a.service", 2) == -EOPNOTSUPP);
	run_all_there_is(stage);
	CHECK(stage->n == 0);
	stage_end(stage);
}

TEST(what_can_be_refused_here_is)
{
	struct stage *stage = stage_new(FOR_EVER);

	CHECK(freeze(stage, "a.slice", 1) == -EINVAL && says(stage, "no name of a service"));
	CHECK(thaw(stage, "", 1) == -EINVAL);
	CHECK(freeze(stage, "gpuarbd.service", 1) == -EPERM && says(stage, "is never frozen"));
	CHECK(kill_it(stage, -1, 1) == -EBADF && says(stage, "there is no pidfd"));
	CHECK(kill_it(stage, 123456, 1) == -EBADF && says(stage, "cannot keep a copy"));
	stage_end(stage);
}

TEST(a_name_that_is_too_long_for_a_socket_is_told)
{
	char name[200], why[300];
	struct enforce *enforce;
	sd_event *event;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK(sd_event_new(&event) >= 0);
	CHECK(enforce_new(event, name, FOR_EVER, on_done, NULL, &enforce) == 0);
	CHECK(enforce_thaw(enforce, "a.service", 1, why, sizeof(why)) == -ENAMETOOLONG);
	enforce_free(enforce);
	sd_event_unref(event);
}

/* ---- bad helpers --------------------------------------------------------------------------- */

static int accept_one(const struct stage *stage)
{
	int fd = accept4(stage->helper.listening, NULL, NULL, SOCK_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static void say(int fd, const char *text)
{
	CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

TEST(requests_are_what_the_protocol_says)
{
	struct stage *stage = stage_new(FOR_EVER);
	char buf[ENFORCE_TEXT_MAX];
	int fd;

	CHECK(freeze(stage, "a.service", 1) == 0 && thaw(stage, "b.scope", 2) == 0);
	CHECK(kill_it(stage, STDIN_FILENO, 3) == 0);
	fd = accept_one(stage);
	CHECK(client_receive(fd, buf) && strcmp(buf, "freeze a.service") == 0);
	CHECK(client_receive(fd, buf) && strcmp(buf, "thaw b.scope") == 0);
	CHECK(client_receive(fd, buf) && strcmp(buf, "kill") == 0);
	say(fd, "ok");
	say(fd, "error 3 gone");
	say(fd, "ok");
	run_until(stage, 3);
	CHECK(heard(stage, 0, 1, 0, "") && heard(stage, 1, 2, -ESRCH, "gone"));
	CHECK(heard(stage, 2, 3, 0, ""));
	close(fd);
	stage_end(stage);
}

TEST(a_helper_that_never_answers_is_given_up_in_time)
{
	struct stage *stage = stage_new(50000);
	char buf[ENFORCE_TEXT_MAX];
	int fd;

	CHECK(freeze(stage, "a.service", 1) == 0 && thaw(stage, "a.service", 2) == 0);
	fd = accept_one(stage);
	run_until(stage, 2);
	CHECK(heard(stage, 0, 1, -ETIMEDOUT, "did not answer in time"));
	CHECK(heard(stage, 1, 2, -ETIMEDOUT, "did not answer in time"));
	CHECK(client_receive(fd, buf) && client_receive(fd, buf) && !client_receive(fd, buf));
	close(fd);

	/* The next request goes to the next one. */
	CHECK(thaw(stage, "a.service", 3) == 0);
	fd = accept_one(stage);
	say(fd, "ok");
	run_until(stage, 3);
	CHECK(heard(stage, 2, 3, 0, ""));
	close(fd);
	stage_end(stage);
}

TEST(one_that_never_accepts_is_given_up_in_time)
{
	struct stage *stage = stage_new(50000);

	CHECK(freeze(stage, "a.service", 1) == 0);
	run_until(stage, 1);
	CHECK(heard(stage, 0, 1, -ETIMEDOUT, "did not answer in time"));
	stage_end(stage);
}

TEST(a_helper_that_dies_has_answered_nothing)
{
	struct stage *stage = stage_new(FOR_EVER);
	int fd;

	CHECK(freeze(stage, "a.service", 1) == 0 && freeze(stage, "b.service", 2) == 0);
	fd = accept_one(stage);
	say(fd, "ok");
	close(fd);
	run_until(stage, 2);
	CHECK(stage->heard[0].tag == 1 && heard(stage, 1, 2, -ECONNRESET, "ended before"));
	stage_end(stage);
}

TEST(answers_that_make_no_sense_end_the_connection)
{
	static const char *const answers[] = { "yes", "ok ok", "error", "error 0 x", "error x" };
	struct stage *stage = stage_new(FOR_EVER);
	char large[ENFORCE_TEXT_MAX + 1], buf[ENFORCE_TEXT_MAX];
	unsigned n = 0;
	int fd;

	memset(large, 'x', sizeof(large));
	memcpy(large, "error 5 ", 8);
	for (size_t i = 0; i <= ARRAY_SIZE(answers); i++) {
		CHECK(freeze(stage, "a.service", i) == 0);
		fd = accept_one(stage);
		if (i < ARRAY_SIZE(answers))
			say(fd, answers[i]);
		else
			CHECK(send(fd, large, sizeof(large), 0) == sizeof(large));
		run_until(stage, ++n);
		CHECK(heard(stage, n - 1, i, -EBADMSG, "makes no sense"));
		CHECK(client_receive(fd, buf) && !client_receive(fd, buf));
		close(fd);
	}
	stage_end(stage);
}

TEST(an_answer_that_nobody_asked_for_ends_the_connection)
{
	struct stage *stage = stage_new(FOR_EVER);
	char buf[ENFORCE_TEXT_MAX];
	int fd;

	CHECK(freeze(stage, "a.service", 1) == 0);
	fd = accept_one(stage);
	say(fd, "ok");
	say(fd, "ok");
	run_until(stage, 1);
	run_all_there_is(stage);
	CHECK(heard(stage, 0, 1, 0, ""));
	CHECK(client_receive(fd, buf) && !client_receive(fd, buf));
	close(fd);
	stage_end(stage);
}

TEST(a_helper_that_takes_no_more_is_left_for_the_next)
{
	struct stage *stage = stage_new(FOR_EVER);
	char buf[ENFORCE_TEXT_MAX];
	int fd, next;

	CHECK(freeze(stage, "a.service", 1) == 0);
	fd = accept_one(stage);
	CHECK(client_receive(fd, buf));
	CHECK(shutdown(fd, SHUT_RD) == 0); /* it leaves when it has answered */
	CHECK(freeze(stage, "b.service", 2) == 0 && freeze(stage, "c.service", 3) == 0);
	say(fd, "ok");
	close(fd);
	run_until(stage, 1);
	CHECK(heard(stage, 0, 1, 0, ""));
	run_all_there_is(stage);
	next = accept_one(stage);
	CHECK(client_receive(next, buf) && strcmp(buf, "freeze b.service") == 0);
	CHECK(client_receive(next, buf) && strcmp(buf, "freeze c.service") == 0);
	say(next, "ok");
	say(next, "ok");
	run_until(stage, 3);
	CHECK(heard(stage, 1, 2, 0, "") && heard(stage, 2, 3, 0, ""));
	close(next);
	stage_end(stage);
}

TEST(one_that_takes_no_more_and_does_not_leave_is_left)
{
	struct stage *stage = stage_new(50000);
	char buf[ENFORCE_TEXT_MAX];
	int fd;

	CHECK(freeze(stage, "a.service", 1) == 0);
	fd = accept_one(stage);
	CHECK(client_receive(fd, buf) && shutdown(fd, SHUT_RD) == 0);
	CHECK(freeze(stage, "b.service", 2) == 0);
	say(fd, "ok");
	run_until(stage, 2);
	CHECK(heard(stage, 0, 1, 0, "") &&
	      heard(stage, 1, 2, -ETIMEDOUT, "took no request in time"));

	CHECK(freeze(stage, "c.service", 3) == 0);
	close(fd);
	fd = accept_one(stage);
	say(fd, "ok");
	run_until(stage, 3);
	CHECK(heard(stage, 2, 3, 0, ""));
	close(fd);
	stage_end(stage);
}

TEST(a_request_finds_a_helper_or_its_lack_not_a_loop)
{
	struct stage *stage = stage_new(FOR_EVER);
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
	stage_end(stage);
}

/* One that is full: it takes nothing out of its socket. */
TEST(what_there_is_no_room_for_goes_when_there_is)
{
	struct stage *stage = stage_new(FOR_EVER);
	char unit[ENFORCE_UNIT_MAX], expected[ENFORCE_TEXT_MAX], buf[ENFORCE_TEXT_MAX];
	unsigned n = 0, fits = 0;
	int fd;

	memset(unit, 'a', 240);
	strcpy(unit + 240, ".service");
	while (freeze(stage, unit, n) == 0)
		n++;
	CHECK(n == ENFORCE_QUEUE);
	fd = accept_one(stage);
	snprintf(expected, sizeof(expected), "freeze %s", unit);
	while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		fits++;
	for (unsigned i = 0; i < fits; i++)
		say(fd, "ok");
	run_until(stage, fits);
	run_all_there_is(stage);
	for (unsigned i = fits; i < n; i++) {
		CHECK(client_receive(fd, buf) && strcmp(buf, expected) == 0);
		say(fd, "error 3 late");
		run_until(stage, i + 1);
		run_all_there_is(stage);
		CHECK(heard(stage, i, i, -ESRCH, "late"));
	}
	printf("%u of %u fitted at once\n", fits, n);
	close(fd);
	stage_end(stage);
}

/* ---- callers ------------------------------------------------------------------------------- */

static void ask_again(struct stage *stage)
{
	if (stage->n < 5)
		CHECK(freeze(stage, "again.service", 100 + stage->n) == 0);
}

TEST(an_answer_may_lead_to_the_next_request)
{
	struct stage *stage = stage_new(FOR_EVER);
	int fd;

	stage->then = ask_again;
	CHECK(freeze(stage, "a.service", 1) == 0);
	fd = accept_one(stage);
	for (unsigned i = 0; i < 5; i++) {
		say(fd, "ok");
		run_until(stage, i + 1);
	}
	CHECK(heard(stage, 4, 104, 0, ""));
	close(fd);
	stage_end(stage);
}

TEST(so_may_the_news_that_the_helper_is_gone)
{
	struct stage *stage = stage_new(FOR_EVER);
	int fd;

	stage->then = ask_again;
	CHECK(freeze(stage, "a.service", 1) == 0 && freeze(stage, "b.service", 2) == 0);
	close(accept_one(stage));
	run_until(stage, 2);
	CHECK(stage->heard[0].r == -ECONNRESET && stage->heard[1].r == -ECONNRESET);
	fd = accept_one(stage); /* for what the first answer led to, and the second */
	say(fd, "ok");
	say(fd, "ok");
	run_until(stage, 4);
	CHECK(heard(stage, 2, 101, 0, "") && heard(stage, 3, 102, 0, ""));
	stage->then = NULL;
	close(fd);
	stage_end(stage);
}

TEST(requests_of_one_that_goes_are_forgotten)
{
	struct stage *stage = stage_new(FOR_EVER);
	char buf[ENFORCE_TEXT_MAX];
	int fd;

	CHECK(kill_it(stage, STDIN_FILENO, 1) == 0);
	fd = accept_one(stage);
	enforce_free(stage->enforce);
	stage->enforce = NULL;
	CHECK(client_receive(fd, buf) && !client_receive(fd, buf));
	CHECK(stage->n == 0 && !enforce_free(NULL));
	close(fd);
	stage_end(stage);
}

TEST(running_out_of_file_descriptors_is_told)
{
	struct stage *stage = stage_new(FOR_EVER);
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
	CHECK(r == -EMFILE && says(stage, "cannot keep a copy"));
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	r = freeze(stage, "a.service", 1);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(r == -EMFILE && says(stage, "cannot connect to"));
	stage_end(stage);
}
