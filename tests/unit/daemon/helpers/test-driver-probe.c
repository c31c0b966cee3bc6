/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Answers of gpuarb-probe and their file descriptors. */

#include "helpers/clients.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "await.h"
#include "check.h"
#include "scratch.h"
#include "util/fd.h"

#define PATIENCE_USEC UINT64_C(600000000) /* reached by a failure only */

struct stage {
	struct scratch scratch;
	sd_event *event;
	struct asker *asker;
	int listening, connection;
	bool takes; /* the descriptors of an answer */
	int fds[ASKER_FDS_MAX], r;
	size_t n;
	unsigned answers;
};

static void on_done(void *userdata, const struct asker_request *, int r, const void *packet,
		    const char *)
{
	struct stage *stage = userdata;

	CHECK((packet != NULL) == (r == 0));
	stage->answers++;
	stage->r = r;
	if (packet && stage->takes)
		stage->n = asker_take_fds(stage->asker, stage->fds);
}

static void arrive(struct stage *stage)
{
	char why[256];

	*stage = (struct stage){ .scratch = scratch_new() };
	CHECK(sd_event_new(&stage->event) >= 0);
	stage->listening = scratch_bind(scratch_at(&stage->scratch, "socket"), SOCK_SEQPACKET);
	CHECK(listen(stage->listening, 1) == 0);
	CHECK(asker_new(stage->event, &probe_helper, scratch_at(&stage->scratch, "socket"),
			PATIENCE_USEC, on_done, NULL, stage, &stage->asker) == 0);
	CHECK(asker_ask(stage->asker, "", 1, -1, 0, why, sizeof(why)) == 0);
	stage->connection = accept4(stage->listening, NULL, NULL, SOCK_CLOEXEC);
	CHECK(stage->connection >= 0 && recv(stage->connection, &(char){ 1 }, 1, 0) == 1);
}

static void depart(struct stage *stage)
{
	asker_free(stage->asker);
	sd_event_unref(stage->event);
	close(stage->connection);
	close(stage->listening);
	scratch_done(&stage->scratch);
}

FIXTURE(struct stage, stage, arrive(stage), depart(stage));

/* Sends the write end of a pipe twice. Returns its read end. */
static int answer(struct stage *stage, const struct probe_answer *answer, size_t size)
{
	int pair[2];

	CHECK(pipe2(pair, O_CLOEXEC) == 0);
	CHECK(send_with_fds(stage->connection, answer, size, 0, (int[]){ pair[1], pair[1] }, 2) ==
	      0);
	close(pair[1]);
	AWAIT_LOOP(stage->event, stage->answers > 0);
	return pair[0];
}

static bool is_closed(int pipe)
{
	struct pollfd end = { .fd = pipe };

	return poll(&end, 1, 0) == 1 && end.revents & POLLHUP;
}

static const struct probe_answer one_gpu = { .protocol = PROBE_PROTOCOL,
					     .n = 1,
					     .gpus = { { .kfd_gpu_id = 4711, .subscribed = 1 } } };

TEST_WITH(descriptors_of_an_answer_belong_to_the_caller_that_takes_them, struct stage *stage)
{
	int pipe;

	stage->takes = true;
	pipe = answer(stage, &one_gpu, sizeof(one_gpu));
	CHECK(stage->r == 0 && stage->n == PROBE_FDS && !is_closed(pipe));
	close(stage->fds[0]);
	close(stage->fds[1]);
	CHECK(is_closed(pipe));
	close(pipe);
}

TEST_WITH(descriptors_that_are_not_taken_are_closed, struct stage *stage)
{
	int pipe = answer(stage, &one_gpu, sizeof(one_gpu));

	CHECK(stage->r == 0 && is_closed(pipe));
	close(pipe);
}

TEST_WITH(descriptors_of_an_invalid_answer_are_closed, struct stage *stage)
{
	int pipe = answer(stage, &one_gpu, sizeof(one_gpu) - 1);

	CHECK(stage->r == -EBADMSG && is_closed(pipe));
	close(pipe);
}

TEST_WITH(descriptors_of_a_gpu_without_a_subscription_are_closed, struct stage *stage)
{
	struct probe_answer silent = one_gpu;
	int pipe;

	silent.gpus[0].subscribed = 0;
	pipe = answer(stage, &silent, sizeof(silent));
	CHECK(stage->r == -EBADMSG && is_closed(pipe));
	close(pipe);
}

/* The kernel passes descriptors without a byte, too. */
TEST_WITH(descriptors_of_an_empty_answer_are_closed, struct stage *stage)
{
	int pipe = answer(stage, &one_gpu, 0);

	CHECK(stage->r == -ECONNRESET && is_closed(pipe));
	close(pipe);
}
