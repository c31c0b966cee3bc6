/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "util/base.h"
#include "kfdsim/driver/ioctl.h"
#include "kfdsim/driver/parts.h"

#define ARENA_MIN (1U << 20)
#define PASSES 8U /* queues wait for each other's signals: looked at again while any moves */

/* It is no longer among the sim's: GPUs count without it. */
static void process_free(struct sim_process *process, uint64_t now_ns)
{
	sim_waits_forget(process->sim, process);
	sim_queues_free(process, now_ns);
	sim_events_free(process);
	sim_buffers_free(process);
	sim_files_free(process);
	sim_slices_free(process);
	free(process);
}

struct sim *sim_free(struct sim *sim)
{
	if (!sim)
		return NULL;
	while (sim->processes) {
		struct sim_process *process = sim->processes;

		sim->processes = process->next;
		process_free(process, 0);
	}
	for (size_t i = 0; i < sim->n_gpus; i++)
		timing_free(sim->gpus[i].timing);
	sim_smis_free(sim);
	sim_faults_free(sim);
	sim_record_free(sim);
	sim_arena_free(sim);
	free(sim);
	return NULL;
}
DEFINE_CLEANUP(struct sim *, sim_free)

static int check_gpus(const struct sim_config *config)
{
	for (size_t i = 0; i < config->n_gpus; i++) {
		uint32_t id = config->gpus[i].kfd_gpu_id;

		if (id == 0 || id > UINT16_MAX) /* an offset for mmap has 16 bits for it */
			return -EINVAL;
		for (size_t j = 0; j < i; j++)
			if (config->gpus[j].kfd_gpu_id == id)
				return -EEXIST;
	}
	return 0;
}

int sim_new(const struct sim_config *config, const struct sim_world *world, struct sim **ret)
{
	_cleanup_(sim_freep) struct sim *sim = NULL;
	int r;

	if (config->n_gpus > SIM_GPUS_MAX || world->arena_size < ARENA_MIN)
		return -EINVAL;
	r = check_gpus(config);
	if (r < 0)
		return r;
	sim = calloc(1, sizeof(*sim));
	if (!sim)
		return -ENOMEM;
	sim->world = *world;
	sim->timing = config->timing;
	sim->kfd_minor = config->kfd_minor ? config->kfd_minor : KFD_LINUX_6_1;
	sim->nodes = (unsigned)config->n_gpus + 1; /* one of processors */
	sim->topology_generation = 1;
	r = sim_arena_new(sim);
	for (size_t i = 0; r == 0 && i < config->n_gpus; i++) {
		r = sim_gpu_init(sim, i, &config->gpus[i], config->minors[i]);
		sim->gpus[i].node = config->each ? config->each[i] : (struct sim_node){ 0 };
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(sim);
	return 0;
}

/* ---- lookups ---- */

struct sim_process *sim_find_process(const struct sim *sim, pid_t pid)
{
	for (struct sim_process *process = sim->processes; process; process = process->next)
		if (process->pid == pid && !process->dead &&
		    process->context == SIM_CONTEXT_PRIMARY)
			return process;
	return NULL;
}

struct sim_process *sim_find_context(struct sim_process *from, pid_t pid)
{
	while (from && (from->pid != pid || from->dead))
		from = from->next;
	return from;
}

struct sim_gpu *sim_known_gpu(struct sim *sim, uint32_t gpu_id)
{
	for (size_t i = 0; i < sim->n_gpus; i++)
		if (sim->gpus[i].info.kfd_gpu_id == gpu_id)
			return &sim->gpus[i];
	return NULL;
}

struct sim_gpu *sim_find_gpu(struct sim *sim, uint32_t gpu_id)
{
	struct sim_gpu *gpu = sim_known_gpu(sim, gpu_id);

	return gpu && !gpu->gone ? gpu : NULL;
}

struct sim_queue *sim_find_queue(struct sim_process *process, unsigned id)
{
	for (struct sim_queue *queue = process->queues; queue; queue = queue->next)
		if (queue->id == id)
			return queue;
	return NULL;
}

/* ---- processes come and go ---- */

static struct sim_process *process_new(struct sim *sim, pid_t pid, unsigned context)
{
	struct sim_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->sim = sim;
	process->pid = pid;
	process->context = context;
	process->serial = ++sim->serial;
	process->next = sim->processes;
	sim->processes = process;
	sim_record_process(process);
	return process;
}

int sim_open(struct sim *sim, pid_t pid, struct sim_process **ret)
{
	struct sim_process *process = sim_find_process(sim, pid);

	if (!process)
		process = process_new(sim, pid, SIM_CONTEXT_PRIMARY);
	if (!process)
		return -ENOMEM;
	*ret = process;
	return 0;
}

/* kfd_ioctl_create_process(), Linux 7.2: the open file is that of a secondary context from now on. */
int ioctl_create_process(const struct sim_call *call, void *argument)
{
	struct sim *sim = call->sim;
	struct sim_process *process;
	unsigned id = 0;

	(void)argument;
	if (call->process->context != SIM_CONTEXT_PRIMARY)
		return -EINVAL;
	if (!call->file)
		return -EOPNOTSUPP;
	for (process = sim_find_context(sim->processes, call->process->pid); process;)
		if (process->context == id) {
			id++;
			process = sim_find_context(sim->processes, process->pid);
		} else {
			process = sim_find_context(process->next, process->pid);
		}
	process = process_new(sim, call->process->pid, id);
	if (!process)
		return -ENOMEM;
	*call->file = process;
	return 0;
}

static void unlink_process(struct sim_process *process)
{
	struct sim_process **at = &process->sim->processes;

	while (*at != process)
		at = &(*at)->next;
	*at = process->next;
}

static void process_end(struct sim_process *process, uint64_t now_ns)
{
	struct sim *sim = process->sim;

	process->dead = true;
	process->gone_ns = now_ns + sim->teardown_ns;
	sim_waits_forget(sim, process);
	if (sim->teardown_ns == 0) {
		unlink_process(process);
		process_free(process, now_ns);
	}
}

void sim_exit(struct sim *sim, pid_t pid, uint64_t now_ns)
{
	struct sim_process *process;

	while ((process = sim_find_context(sim->processes, pid)))
		process_end(process, now_ns);
}

void sim_close(struct sim_process *file, uint64_t now_ns)
{
	if (file->context != SIM_CONTEXT_PRIMARY)
		process_end(file, now_ns);
}

/* ---- what happens by itself ---- */

static void tear_down(struct sim *sim, uint64_t now_ns, uint64_t *next_ns)
{
	struct sim_process *next;

	for (struct sim_process *process = sim->processes; process; process = next) {
		next = process->next;
		if (!process->dead)
			continue;
		if (process->gone_ns <= now_ns) {
			unlink_process(process);
			process_free(process, now_ns);
		} else if (process->gone_ns < *next_ns) {
			*next_ns = process->gone_ns;
		}
	}
}

static bool work_queues(struct sim *sim, uint64_t now_ns, uint64_t *next_ns)
{
	bool any = false;

	for (size_t i = 0; i < sim->n_gpus; i++)
		any |= sim_gpu_work(&sim->gpus[i], now_ns, next_ns);
	for (struct sim_process *process = sim->processes; process; process = process->next)
		for (struct sim_queue *queue = process->queues; queue; queue = queue->next)
			if (queue->active)
				any |= sim_queue_work(queue, now_ns, next_ns);
	return any;
}

uint64_t sim_work(struct sim *sim, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;
	unsigned passes = PASSES;

	tear_down(sim, now_ns, &next_ns);
	while (passes > 0 && work_queues(sim, now_ns, &next_ns))
		passes--;
	if (passes == 0)
		next_ns = now_ns;
	sim_waits_work(sim, now_ns, &next_ns);
	if (next_ns == UINT64_MAX)
		return UINT64_MAX;
	return next_ns > now_ns ? next_ns - now_ns : 0;
}
