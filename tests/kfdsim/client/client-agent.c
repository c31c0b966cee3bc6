/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A HIP program that holds an adaptable lease itself and follows it: of GPU 0 by the library's agent
 * or by itself, or of GPUs 0 and 1 by the agent. It prints "ready" after each line of standard input:
 *
 *	client-agent agent|own|both
 *
 *	stream    one more stream, whose queue has its mask before it is used
 *	quiet     one more, of which the library is told nothing
 *	second    the same on GPU 1
 *	high      the same with high priority, on GPU 0
 *	follow    own: what the lease is now is applied and acknowledged
 *	lie       own: it is acknowledged alone
 *	release   the lease is given up, and the queues are kept
 *	fork      a child that closes the lease, and ends
 */

#include <hip/hip_runtime_api.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libgpuarb/gpuarb.h"

struct state {
	struct gpuarb *gpuarb;
	struct gpuarb_lease *lease;
};

static void must(const struct state *state, const char *what, long is)
{
	if (is >= 0)
		return;
	fprintf(stderr, "%s: %ld: %s\n", what, is, gpuarb_last_error(state->gpuarb));
	exit(EXIT_FAILURE);
}

static void must_hip(const struct state *state, hipError_t error)
{
	must(state, hipGetErrorName(error), error == hipSuccess ? 0 : -1);
}

static void reserve(struct state *state, bool agent, size_t gpus)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want wants[2] = { GPUARB_WANT_INIT, GPUARB_WANT_INIT };

	wants[0].gpu = "0";
	wants[0].cus = 60;
	wants[0].cus_min = 15;
	wants[0].queues = wants[1].queues = 8;
	wants[1].gpu = "1";
	wants[1].cus = 104;
	wants[1].cus_min = 26;
	options.lease_class = "besteffort";
	options.name = agent ? "agent" : "own";
	options.adaptable = true;
	must(state, "open", gpuarb_open(&state->gpuarb));
	must(state, "reserve", gpuarb_reserve(state->gpuarb, wants, gpus, &options, &state->lease));
	if (agent)
		must(state, "agent", gpuarb_lease_start_agent(state->lease));
}

/* A stream has its queue, or shares one, when it is used. */
static void use(struct state *state, hipStream_t stream)
{
	hipEvent_t event;

	must_hip(state, hipEventCreate(&event));
	must_hip(state, hipEventRecord(event, stream));
	must_hip(state, hipStreamSynchronize(stream));
	must_hip(state, hipEventDestroy(event));
}

static void make(struct state *state, bool told, int device, int priority)
{
	hipStream_t stream;

	must_hip(state, hipSetDevice(device));
	must_hip(state, hipStreamCreateWithPriority(&stream, hipStreamDefault, priority));
	if (told)
		must(state, "apply", gpuarb_lease_apply(state->lease));
	use(state, stream);
}

static void follow(struct state *state, bool apply)
{
	must(state, "dispatch", gpuarb_lease_dispatch(state->lease, NULL, NULL));
	if (apply)
		must(state, "apply", gpuarb_lease_apply(state->lease));
	must(state, "acknowledge", gpuarb_lease_acknowledge(state->lease));
}

static void release(struct state *state)
{
	must(state, "release", gpuarb_lease_release(state->lease));
	state->lease = NULL;
}

static void fork_one(struct state *state)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		gpuarb_lease_close(state->lease);
		gpuarb_close(state->gpuarb);
		_exit(0);
	}
	must(state, "fork", pid);
	must(state, "wait", waitpid(pid, &status, 0));
	must(state, "the child", status == 0 ? 0 : -1);
}

static void step(struct state *state, const char *line)
{
	if (strcmp(line, "stream\n") == 0)
		make(state, true, 0, 0);
	else if (strcmp(line, "quiet\n") == 0)
		make(state, false, 0, 0);
	else if (strcmp(line, "second\n") == 0)
		make(state, false, 1, 0);
	else if (strcmp(line, "high\n") == 0)
		make(state, false, 0, -1);
	else if (strcmp(line, "follow\n") == 0)
		follow(state, true);
	else if (strcmp(line, "lie\n") == 0)
		follow(state, false);
	else if (strcmp(line, "release\n") == 0)
		release(state);
	else if (strcmp(line, "fork\n") == 0)
		fork_one(state);
	else
		must(state, line, -EINVAL);
}

int main(int argc, char *argv[])
{
	struct state state = { NULL, NULL };
	char line[64];

	if (argc != 2)
		return 2;
	reserve(&state, strcmp(argv[1], "own") != 0, strcmp(argv[1], "both") == 0 ? 2 : 1);
	do {
		puts("ready");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			break;
		step(&state, line);
	} while (true);
	gpuarb_lease_close(state.lease);
	gpuarb_close(state.gpuarb);
	return EXIT_SUCCESS;
}
