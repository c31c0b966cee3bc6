/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Requests to gpuarb-budget, answered well and badly; the shipped gpuarb-budget where it cannot work. */

#include "helpers/clients.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "budget-rig.h"
#include "check.h"
#include "scratch.h"

#define PATIENCE_USEC UINT64_C(60000000) /* reached by a failure only */

struct asking {
	struct scratch scratch;
	struct budget_rig rig;
	sd_event *event;
	struct asker *asker;
	struct budget_request request; /* two rows */
	unsigned answers;
	int r;
	struct budget_answer answer;
	char why[256];
};

static struct asking asking;

static void on_done(void *userdata, const struct asker_request *, int r, const void *packet,
		    const char *why)
{
	const struct budget_answer *answer = packet;
	struct asking *a = userdata;

	a->answers++;
	a->r = r;
	if (answer)
		memcpy(&a->answer, answer, budget_answer_size(answer->n));
	snprintf(a->why, sizeof(a->why), "%s", why);
}

static void asking_new(uint64_t patience_usec)
{
	memset(&asking, 0, sizeof(asking));
	asking.scratch = scratch_new();
	budget_rig_new(&asking.rig, asking.scratch.path);
	asking.request = (struct budget_request){ .version = BUDGET_VERSION, .n = 2 };
	asking.request.rows[1] = (struct budget_row){ .lease = 7, .cgroup = 70, .limit = 4 };
	CHECK(sd_event_new(&asking.event) >= 0);
	CHECK(asker_new(asking.event, &budget_helper, asking.rig.path, patience_usec, on_done, NULL,
			&asking, &asking.asker) == 0);
}

static void asking_done(void)
{
	asker_free(asking.asker);
	sd_event_unref(asking.event);
	budget_rig_done(&asking.rig);
	scratch_done(&asking.scratch);
}

static int ask(void)
{
	return asker_ask(asking.asker, &asking.request, budget_request_size(asking.request.n), -1,
			 0, asking.why, sizeof(asking.why));
}

static int clear(void)
{
	static const struct budget_request none = { .version = BUDGET_VERSION };

	return asker_tell(asking.asker, &none, budget_request_size(0), asking.why,
			  sizeof(asking.why));
}

static int finish(void)
{
	AWAIT_LOOP(asking.event, asking.answers > 0);
	return asking.r;
}

/* Sends these bytes as the answer. */
static int finish_with(const void *bytes, size_t size)
{
	CHECK(budget_rig_receive(&asking.rig) == 2);
	CHECK(send(asking.rig.connection, bytes, size, MSG_NOSIGNAL) == (ssize_t)size);
	return finish();
}

TEST(a_request_has_all_rows_and_its_answer_the_state_of_each)
{
	asking_new(PATIENCE_USEC);
	CHECK(ask() == 0 && ask() == -ENOBUFS);
	CHECK(budget_rig_receive(&asking.rig) == 2);
	CHECK(asking.rig.request.rows[1].cgroup == 70 && asking.rig.request.rows[1].limit == 4);
	asking.rig.answer.rows[1].refused = 9;
	budget_rig_answer(&asking.rig);
	CHECK(finish() == 0 && asking.answer.n == 2 && asking.answer.rows[1].refused == 9);
	CHECK(ask() == 0);
	asking_done();
}

/* A packet of the most rows passes with the usual buffers of a socket. */
TEST(request_without_room_for_all_units_leaves_out_the_newest)
{
	enum { UNITS = BUDGET_ROWS_MAX + 2 };
	struct budget_row *rows = calloc(2 * UNITS, sizeof(*rows));

	asking_new(PATIENCE_USEC);
	for (unsigned i = 0; i < 2 * UNITS; i++) /* two leases of each unit, in any order */
		rows[i] = (struct budget_row){ 3 * UNITS - i, 10 + 7 * i % UNITS, 3 };
	CHECK(budget_request_fill(&asking.request, rows, (size_t)2 * UNITS) == 2);
	CHECK(ask() == 0 && budget_rig_receive(&asking.rig) == BUDGET_ROWS_MAX);
	asking.rig.answer.rows[BUDGET_ROWS_MAX - 1].refused = 9;
	budget_rig_answer(&asking.rig);
	CHECK(finish() == 0 && asking.answer.n == BUDGET_ROWS_MAX);
	for (unsigned i = 0; i < UNITS; i++) {
		const struct budget_state *state = budget_state_of(&asking.request, &asking.answer,
								   10 + i);

		CHECK(state == (i < BUDGET_ROWS_MAX ? &asking.answer.rows[i] : NULL));
		CHECK(!state || (asking.request.rows[i].cgroup == 10 + i &&
				 asking.request.rows[i].limit == 6 &&
				 asking.request.rows[i].lease <= 2 * UNITS));
	}
	CHECK(budget_state_of(&asking.request, &asking.answer, 0) == NULL);
	rows[0].limit = rows[1].limit = BUDGET_LIMIT_MAX;
	rows[1].cgroup = rows[0].cgroup;
	CHECK(budget_request_fill(&asking.request, rows, 2) == 0 && asking.request.n == 1);
	CHECK(asking.request.rows[0].limit == BUDGET_LIMIT_MAX);
	CHECK(budget_request_fill(&asking.request, rows, 0) == 0 && asking.request.n == 0);
	free(rows);
	asking_done();
}

TEST(without_a_helper_the_sentence_names_the_unit_to_enable)
{
	asking_new(PATIENCE_USEC);
	CHECK(unlink(asking.rig.path) == 0);
	CHECK(ask() == -EOPNOTSUPP);
	CHECK(strstr(asking.why, "systemctl enable --now gpuarb-budget.socket"));
	CHECK(clear() == -EOPNOTSUPP);
	asking_done();
}

TEST(a_helper_that_ends_without_an_answer_is_an_error)
{
	asking_new(PATIENCE_USEC);
	CHECK(ask() == 0 && budget_rig_receive(&asking.rig) == 2);
	budget_rig_hang_up(&asking.rig);
	CHECK(finish() == -ECONNRESET);
	asking_done();
}

TEST(a_helper_that_never_answers_is_given_up)
{
	asking_new(50000);
	CHECK(ask() == 0 && budget_rig_receive(&asking.rig) == 2);
	CHECK(finish() == -ETIMEDOUT);
	asking_done();
}

static void answer_badly(const struct budget_answer *answer, size_t size)
{
	asking_new(PATIENCE_USEC);
	CHECK(ask() == 0 && finish_with(answer, size) == -EBADMSG);
	asking_done();
}

TEST(an_answer_that_is_none_is_an_error)
{
	static const struct budget_answer good = { .version = BUDGET_VERSION, .n = 2 };
	struct budget_answer *bad = malloc(sizeof(*bad));

	CHECK(bad);
	answer_badly(&good, 3);
	answer_badly(&good, budget_answer_size(1));
	answer_badly(&good, sizeof(good));
	*bad = good, bad->version++;
	answer_badly(bad, budget_answer_size(2));
	*bad = good, bad->n = 1;
	answer_badly(bad, budget_answer_size(1));
	*bad = good, bad->r = 1;
	answer_badly(bad, budget_answer_size(2));
	*bad = good, bad->r = -EPERM;
	answer_badly(bad, budget_answer_size(2));
	*bad = good, memset(bad->sentence, 'x', sizeof(bad->sentence));
	answer_badly(bad, budget_answer_size(2));
	free(bad);
}

TEST(budgets_are_cleared_in_place_of_a_request_under_way)
{
	asking_new(PATIENCE_USEC);
	CHECK(ask() == 0 && budget_rig_receive(&asking.rig) == 2);
	CHECK(clear() == 0);
	CHECK(budget_rig_receive(&asking.rig) == 0);
	asking_done();
	CHECK(asking.answers == 0);
}

/* ---- the shipped program ------------------------------------------------------------------ */

/* Its exit status, with this argument and standard input. */
static int run(const char *argument, int input)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		dup2(input, STDIN_FILENO);
		execl(getenv("GPUARB_BUDGET"), "gpuarb-budget", argument, NULL);
		abort();
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Its exit status after this packet; *ret has the answer, if there is one. */
static int run_with(const void *packet, size_t size, struct budget_answer *ret)
{
	int sockets[2], status;

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
	CHECK(send(sockets[0], packet, size, 0) == (ssize_t)size);
	status = run("--sysfs=/nonexistent", sockets[1]);
	close(sockets[1]);
	ret->r = 0;
	(void)recv(sockets[0], ret, sizeof(*ret), MSG_DONTWAIT);
	close(sockets[0]);
	return status;
}

TEST(bad_options_and_a_missing_connection_are_errors)
{
	if (!getenv("GPUARB_BUDGET"))
		SKIP("gpuarb-budget was not built: libbpf, clang or bpftool is missing");
	CHECK(run("--help", 0) == 0 && run("--version", 0) == 0);
	CHECK(run("--no-such-option", 0) == 2 && run("argument", 0) == 2);
	CHECK(run("--sysfs=/nonexistent", STDERR_FILENO) == 2);
}

TEST(packets_that_are_no_request_are_refused)
{
	static struct budget_request request = { .version = BUDGET_VERSION, .n = 1 };
	static struct budget_answer answer;

	if (!getenv("GPUARB_BUDGET"))
		SKIP("gpuarb-budget was not built: libbpf, clang or bpftool is missing");
	CHECK(run_with(&request, 3, &answer) == 1);
	CHECK(run_with(&request, budget_request_size(2), &answer) == 1);
	request.rows[0].limit = BUDGET_LIMIT_MAX + 1;
	CHECK(run_with(&request, budget_request_size(1), &answer) == 1);
	request.rows[0].limit = 1;
	request.version++;
	CHECK(run_with(&request, budget_request_size(1), &answer) == 1);
}

TEST(a_machine_without_kfd_is_told_with_a_sentence)
{
	static const struct budget_request request = { .version = BUDGET_VERSION, .n = 1 };
	static struct budget_answer answer;

	if (!getenv("GPUARB_BUDGET"))
		SKIP("gpuarb-budget was not built: libbpf, clang or bpftool is missing");
	CHECK(run_with(&request, budget_request_size(1), &answer) == 0);
	CHECK((answer.r == -ENODEV || answer.r == -EOPNOTSUPP) && answer.sentence[0]);
}
