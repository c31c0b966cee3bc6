/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What each dispatch took by the timing model: debug/kfdsim/dispatches. */

#include <inttypes.h>
#include <stdlib.h>

#include "kfdsim/text/state.h"
#include "kfdsim/text/text.h"

void sim_record_dispatch(const struct sim_queue *queue, const struct timing_kernel *kernel,
			 uint64_t end_ns)
{
	struct sim_record *record = queue->process->sim->record;

	if (!record)
		return;
	if (!record->dispatches)
		record->dispatches = calloc(STATE_DISPATCHES, sizeof(*record->dispatches));
	if (!record->dispatches)
		return;
	record->dispatches[record->n_dispatches++ % STATE_DISPATCHES] = (struct state_dispatch){
		.pid = queue->process->pid,
		.queue = queue->id,
		.gpu = queue->gpu->index,
		.blocks = kernel->blocks,
		.threads = kernel->threads,
		.began = queue->began,
		.ns = end_ns - queue->began,
	};
}

void dispatches_print(const struct sim *sim, FILE *out)
{
	const struct sim_record *record = sim->record;
	uint64_t n = record ? record->n_dispatches : 0;

	fputs("number\tgpu\tpid\tqueue\tblocks\tthreads\tbegan_ns\ttook_ns\n", out);
	for (uint64_t i = n > STATE_DISPATCHES ? n - STATE_DISPATCHES : 0; i < n; i++) {
		const struct state_dispatch *d = &record->dispatches[i % STATE_DISPATCHES];

		fprintf(out, "%" PRIu64 "\t%s\t%d\t%u\t%u\t%u\t%" PRIu64 "\t%" PRIu64 "\n", i,
			sim->gpus[d->gpu].info.name, (int)d->pid, d->queue, d->blocks, d->threads,
			d->began, d->ns);
	}
}
