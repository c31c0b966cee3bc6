/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The other processes of a calibration: this program again, which joins the lease. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/calibrate/neighbour.h"
#include "client/calibrate/paper.h"
#include "client/launch/child.h"
#include "client/output/fail.h"
#include "client/output/mask-text.h"
#include "util/base.h"
#include "util/number.h"

/* ---- this process -------------------------------------------------------------------------- */

/* Standard input and output of the child are one socket: it says that it runs, and ends with this end. */
static int start_one(const char *lease, const char *kind, const char *mask, bool emulated,
		     struct neighbour *ret)
{
	const char *const words[] = { "gpuarb-latency",
				      "neighbour",
				      lease,
				      kind,
				      mask,
				      emulated ? "--emulated" : NULL,
				      NULL };
	int fds[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	r = process_spawn(
		"/proc/self/exe", words, false,
		(const struct process_fd[]){ { STDIN_FILENO, fds[1] }, { STDOUT_FILENO, fds[1] } },
		2, &ret->pid);
	close(fds[1]);
	ret->fd = fds[0];
	if (r < 0)
		close(fds[0]);
	return r;
}

/* Waits until the child says that its kernels run. -ECHILD: it has ended. */
static int await(const struct neighbour_list *neighbours, const struct neighbour *neighbour)
{
	struct pollfd fd = { .fd = neighbour->fd, .events = POLLIN };
	char answer;
	int r = 0;

	for (int waited = 0; waited < NEIGHBOUR_START_MS; waited += 10) {
		r = poll(&fd, 1, 10);
		if (r > 0)
			return read(neighbour->fd, &answer, 1) == 1 ? 0 : -ECHILD;
		r = neighbours->stop->wait(neighbours->stop->data, 0);
		if (r < 0)
			return r;
	}
	return -ETIMEDOUT;
}

int neighbours_check(void *data)
{
	const struct neighbour_list *neighbours = data;

	for (unsigned i = 0; i < neighbours->n; i++) {
		struct pollfd fd = { .fd = neighbours->list[i].fd, .events = POLLIN };

		if (poll(&fd, 1, 0) > 0)
			return -ECHILD;
	}
	return 0;
}

int neighbours_start(void *data, const struct work *work, const struct cuset *sets, unsigned n)
{
	struct neighbour_list *neighbours = data;
	char id[32], kind[32];
	int r = 0;

	snprintf(kind, sizeof(kind), "%s", neighbours_names[work->kind]);
	if (work->threads > 0)
		snprintf(kind, sizeof(kind), "%u", work->threads);
	snprintf(id, sizeof(id), "%" PRIu64, neighbours->lease);
	for (unsigned i = 0; i < n && r >= 0; i++) {
		_cleanup_(freep) char *mask = mask_hex_of(neighbours->model, &sets[i]);

		r = mask ? start_one(id, kind, mask, neighbours->emulated,
				     &neighbours->list[neighbours->n])
			 : -ENOMEM;
		neighbours->n += r >= 0;
	}
	for (unsigned i = 0; i < neighbours->n && r >= 0; i++)
		r = await(neighbours, &neighbours->list[i]);
	return r;
}

void neighbours_stop(void *data)
{
	struct neighbour_list *neighbours = data;

	for (unsigned i = 0; i < neighbours->n; i++)
		close(neighbours->list[i].fd);
	for (unsigned i = 0; i < neighbours->n; i++)
		(void)process_wait(neighbours->list[i].pid);
	neighbours->n = 0;
}

/* ---- the other process ---------------------------------------------------------------------- */

static int run_until_hangup(const struct bench *bench, void *stream, const struct work *work)
{
	const struct device *device = &bench->device;
	struct pollfd parent = { .fd = STDIN_FILENO };
	_cleanup_(freep) struct wave *waves = calloc(work->groups, sizeof(*waves));
	struct spun spun;
	bool told = false;
	int r = waves ? 0 : -ENOMEM;

	while (r >= 0 && poll(&parent, 1, 0) == 0) {
		r = device->calls->spin(device->data, stream, work, waves, &spun);
		if (r >= 0 && waves[0].state != WAVE_ENDED)
			r = -ENODATA;
		if (r >= 0 && !told)
			told = send(STDOUT_FILENO, "r", 1, MSG_NOSIGNAL) == 1;
		if (r >= 0)
			r = bench->stop.wait(bench->stop.data, 0);
	}
	return r;
}

static struct work work_of(const struct bench *bench, const char *kind)
{
	const bool memory = strcmp(kind, neighbours_names[NEIGHBOURS_MEMORY]) == 0;
	uint64_t threads;

	if (number_parse(kind, 1, SPIN_THREADS, &threads) == 0)
		return paper_work((unsigned)threads);
	return (struct work){ memory ? NEIGHBOURS_MEMORY : NEIGHBOURS_COMPUTE,
			      CALIBRATION_PER_CU * bench->gpu->cus,
			      memory ? CALIBRATION_READS : CALIBRATION_SPINS, 0 };
}

static int run(const struct bench *bench, const char *kind, const char *text)
{
	const struct device *device = &bench->device;
	_cleanup_(freep) uint32_t *mask = NULL;
	const struct work work = work_of(bench, kind);
	void *stream;
	size_t words;
	int r;

	r = mask_parse(text, &mask, &words);
	if (r >= 0)
		r = device->calls->create(device->data, mask, words, &stream);
	if (r < 0)
		return r;
	r = run_until_hangup(bench, stream, &work);
	device->calls->destroy(device->data, stream);
	return r;
}

int neighbour_run(struct command *command, struct bench *bench)
{
	int r;

	if (command->n_rest != 3)
		return fail(command, EXIT_USAGE, "gpuarbctl calibrate starts this program");
	r = bench_start(command, bench);
	if (r != EXIT_OK)
		return r;
	r = run(bench, command->rest[1], command->rest[2]);
	return r < 0 ? bench_failed(command, bench, r, bench->device.problem) : EXIT_OK;
}
