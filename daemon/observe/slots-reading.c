/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The queue slots of the GPUs, read on demand: to print kfd/hqds the driver selects every slot in turn,
 * so a reading serves all calls of the next second.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "observe/observe.h"
#include "hw/kfd-queues.h"
#include "protocol/protocol.h"
#include "sys/process.h"

struct slots {
	struct probe *probe;
	struct queue_parser *parser; /* of the text that is being read; NULL: none */
	bool pending;                /* a reading has been started and has not ended */
	uint64_t usec;               /* of the last reading; 0: none */
	int error;                   /* of the last reading, with the sentence */
	char why[256];
	struct queue_text read;
};

#define MAX_AGE_USEC UINT64_C(1000000)

#define SCAN_MAX_AGE_USEC UINT64_C(20000)

/* ---- what was read ------------------------------------------------------------------- */

static void forget(struct daemon *daemon)
{
	free(daemon->slots->read.slots);
	free(daemon->slots->read.queues);
	daemon->slots->read = (struct queue_text){ 0 };
}

/* The lease and the command of the process in each slot. */
static void name_processes(struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->slots->read.n_slots; i++) {
		struct queue_slot *slot = &daemon->slots->read.slots[i];
		struct observed process = { .pid = slot->pid };

		if (slot->pid == 0)
			continue;
		process_describe(&process);
		memcpy(slot->command, process.command, sizeof(slot->command));
		slot->lease = known_lease(daemon->arbiter, slot->pid);
	}
}

static void set_shapes(struct daemon *daemon)
{
	const struct queue_text *read = &daemon->slots->read;

	for (size_t i = 0; i < daemon->arbiter->n_gpus; i++) {
		struct gpu *gpu = &daemon->arbiter->gpus[i];
		unsigned pipes, queues;

		if (gpu->absent || !queue_slots_shape(read->slots, read->n_slots,
						      gpu->info.kfd_gpu_id, &pipes, &queues))
			continue;
		gpu->changed |= gpu->pipes_observed != pipes ||
				gpu->queues_per_pipe_observed != queues;
		gpu->pipes_observed = pipes;
		gpu->queues_per_pipe_observed = queues;
	}
}

/* ---- the text ------------------------------------------------------------------------ */

static void end_text(struct daemon *daemon)
{
	daemon->slots->parser = queue_parser_free(daemon->slots->parser);
}

static int begin_text(struct daemon *daemon)
{
	size_t n;
	_cleanup_(freep) struct gpu_info *gpus = scan_present_gpus(daemon, &n);

	end_text(daemon);
	daemon->slots->parser = gpus ? queue_parser_new(gpus, n, true) : NULL;
	return daemon->slots->parser ? 0 : -ENOMEM;
}

static int on_piece(void *userdata, const char *text, size_t size, char *why, size_t why_size)
{
	struct daemon *daemon = userdata;

	return queue_parser_feed(daemon->slots->parser, text, size, why, why_size);
}

static int take_text(struct daemon *daemon, char *why, size_t why_size)
{
	struct queue_text *read = &daemon->slots->read;
	int r = queue_parser_end(daemon->slots->parser, read, why, why_size);

	if (r < 0)
		return r;
	if (scan_hardware(daemon, SCAN_MAX_AGE_USEC)) /* which lease the processes have */
		schedule_update(daemon);
	queue_slots_join(read->slots, read->n_slots, read->queues, read->n_queues);
	name_processes(daemon);
	set_shapes(daemon);
	return 0;
}

/* ---- reading ------------------------------------------------------------------------- */

/* Answers all calls that wait. The kernel prints the processes behind the slots, each under a mutex that the
 * process may hold. */
static void on_done(void *userdata, int r, const char *why)
{
	struct daemon *daemon = userdata;

	snprintf(daemon->slots->why, sizeof(daemon->slots->why), "%s", why);
	if (r >= 0)
		r = take_text(daemon, daemon->slots->why, sizeof(daemon->slots->why));
	if (r == -ETIMEDOUT)
		snprintf(daemon->slots->why, sizeof(daemon->slots->why),
			 "kfd/hqds was not read within %u s: a process that uses a GPU may be "
			 "blocked in the driver: try again later",
			 (unsigned)(PROBE_USEC / 1000000));
	end_text(daemon);
	daemon->slots->pending = false;
	daemon->slots->error = r;
	daemon->slots->usec = daemon_now_usec();
	schedule_update(daemon);
	schedule_answers(daemon);
}

static int read_again(struct daemon *daemon)
{
	int r;

	forget(daemon);
	r = begin_text(daemon);
	if (r >= 0)
		r = probe_start(daemon->slots->probe, daemon->slots->why,
				sizeof(daemon->slots->why));
	daemon->slots->error = r < 0 ? r : 0;
	daemon->slots->usec = daemon_now_usec();
	daemon->slots->pending = r >= 0;
	return r;
}

/* ---- the call ------------------------------------------------------------------------ */

static int refuse_reading(const struct daemon *daemon, const struct gpu *gpu, struct result *result)
{
	enum result_kind kind = RESULT_NOT_SUPPORTED;

	if (daemon->slots->error == -ETIMEDOUT)
		kind = RESULT_TIMED_OUT;
	if (daemon->slots->error == -ENOMEM)
		return result_set(result, RESULT_NO_MEMORY, "out of memory");
	return result_set(result, kind, "%s: cannot read its queue slots: %s", gpu->info.name,
			  daemon->slots->why);
}

static int answer(const struct daemon *daemon, const struct gpu *gpu, struct slots_reading *ret,
		  struct result *result)
{
	const struct queue_text *read = &daemon->slots->read;
	unsigned pipes, queues;

	if (daemon->slots->error < 0)
		return refuse_reading(daemon, gpu, result);
	if (!queue_slots_shape(read->slots, read->n_slots, gpu->info.kfd_gpu_id, &pipes, &queues))
		return result_set(
			result, RESULT_NOT_SUPPORTED,
			"%s: kfd/hqds has no queue slots of it: the GPU is suspended, or its "
			"registers are not known to this version",
			gpu->info.name);
	*ret = (struct slots_reading){ .usec = daemon->slots->usec,
				       .slots = read->slots,
				       .n = read->n_slots,
				       .kfd_gpu_id = gpu->info.kfd_gpu_id };
	queue_slots_count(read->slots, read->n_slots, read->queues, read->n_queues,
			  gpu->info.kfd_gpu_id, &ret->queues, &ret->without_slot);
	return 0;
}

int slots_read(void *userdata, const char *name, struct slots_reading *ret, struct result *result)
{
	struct daemon *daemon = userdata;
	int i = ledger_find_gpu(daemon->arbiter, name);
	const struct gpu *gpu;

	if (i < 0)
		return result_set(result, RESULT_NO_SUCH_GPU, "%s: no such GPU", name);
	gpu = &daemon->arbiter->gpus[i];
	if (gpu->info.kfd_gpu_id == 0)
		return result_set(result, RESULT_NOT_SUPPORTED,
				  "%s: a simulated GPU has no queue slots to read", gpu->info.name);
	if (daemon->slots->pending)
		return -EINPROGRESS;
	if (daemon->slots->usec > 0 && daemon_now_usec() - daemon->slots->usec < MAX_AGE_USEC)
		return answer(daemon, gpu, ret, result);
	return read_again(daemon) < 0 ? refuse_reading(daemon, gpu, result) : -EINPROGRESS;
}

int slots_start(struct daemon *daemon)
{
	daemon->slots = calloc(1, sizeof(*daemon->slots));
	if (!daemon->slots)
		return -ENOMEM;
	return probe_new(daemon->event, daemon->options->debugfs, &probe_hqds, PROBE_USEC, on_piece,
			 on_done, daemon, &daemon->slots->probe);
}

void slots_stop(struct daemon *daemon)
{
	if (!daemon->slots)
		return;
	probe_free(daemon->slots->probe);
	end_text(daemon);
	forget(daemon);
	free(daemon->slots);
}
