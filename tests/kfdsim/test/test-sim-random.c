/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "check.h"
#include "kfdsim/test/sim-rig.h"
#include "seed.h"

/*
 * Eight GPUs behind one driver, random operations, and beside it a model that keeps but plain
 * tables. After each operation: the counts of the GPU that it was about are the model's, every
 * other GPU is byte for byte what it was, and no doorbell has another's value.
 */

#define GPUS 8U
#define PROCESSES 6U
#define OPERATIONS check_rounds(40000, 400000)
#define SDMA_MAX 16U
#define OWN_MAX 127U

struct model_queue {
	bool used, active, sdma, gws;
	unsigned gpu;
	uint64_t stamp, place; /* what its doorbell holds, and where that is in the arena */
};

struct model_process {
	unsigned ever; /* ids that were ever given out */
	struct model_queue queues[GPUS * OWN_MAX + 1];
};

struct model {
	struct sim_rig rig;
	struct sim_process *real[PROCESSES];
	struct model_process processes[PROCESSES];
	struct sim_gpu before[GPUS];
	bool touched[GPUS];
	uint64_t stamp;
	unsigned seed;
	unsigned refused, made, most; /* that something happened at all */
};

static unsigned any(struct model *model, unsigned n)
{
	return (unsigned)rand_r(&model->seed) % n;
}

/* ---- what the model expects ---- */

struct counts {
	unsigned compute, sdma, gws, processes, own[PROCESSES], sdma_made;
};

static struct counts count(const struct model *model, unsigned gpu)
{
	struct counts counts = { 0 };

	for (unsigned p = 0; p < PROCESSES; p++) {
		for (unsigned i = 0; i < model->processes[p].ever; i++) {
			const struct model_queue *queue = &model->processes[p].queues[i];

			if (!queue->used || queue->gpu != gpu)
				continue;
			counts.own[p]++;
			counts.sdma_made += queue->sdma;
			counts.compute += queue->active && !queue->sdma;
			counts.sdma += queue->active && queue->sdma;
			counts.gws += queue->active && queue->gws;
		}
		counts.processes += counts.own[p] > 0;
	}
	return counts;
}

static unsigned lowest(const struct model_process *process)
{
	unsigned id = 0;

	while (process->queues[id].used)
		id++;
	return id;
}

static int expect_create(const struct model *model, unsigned p, unsigned gpu, bool sdma)
{
	struct counts counts;

	if (gpu >= GPUS)
		return -EINVAL;
	counts = count(model, gpu);
	if (counts.own[p] >= OWN_MAX)
		return -ENOSPC;
	if (sdma && counts.sdma_made >= SDMA_MAX)
		return -ENOMEM;
	return 0;
}

/* ---- operations ---- */

static void remember_doorbell(struct model *model, unsigned p, struct model_queue *queue,
			      uint64_t offset)
{
	CHECK(offset - model->real[p]->slices[queue->gpu] < SIM_SLICE && offset % 8 == 0);
	queue->place = offset;
	queue->stamp = ++model->stamp;
	memcpy(model->rig.world.arena + queue->place, &queue->stamp, sizeof(queue->stamp));
}

static void do_create(struct model *model, unsigned p)
{
	unsigned gpu = any(model, GPUS + 1), id = lowest(&model->processes[p]);
	bool sdma = any(model, 4) == 0, active = any(model, 5) > 0;
	struct kfd_ioctl_create_queue_args args =
		rig_queue_args(&model->rig, gpu % GPUS,
			       sdma ? KFD_IOC_QUEUE_TYPE_SDMA : KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	struct model_queue *queue = &model->processes[p].queues[id];
	int expected = expect_create(model, p, gpu, sdma);

	args.gpu_id = gpu < GPUS ? args.gpu_id : 0x7777;
	args.queue_percentage = active ? 1 + any(model, 100) : 0;
	CHECK(RIG_CALL(&model->rig, model->real[p], CREATE_QUEUE, &args) == expected);
	model->refused += expected < 0;
	if (expected < 0)
		return;
	CHECK(args.queue_id == id);
	*queue = (struct model_queue){ .used = true, .active = active, .sdma = sdma, .gpu = gpu };
	remember_doorbell(model, p, queue, args.doorbell_offset);
	if (id >= model->processes[p].ever)
		model->processes[p].ever = id + 1;
	model->touched[gpu] = true;
	model->made++;
}

static void do_destroy(struct model *model, unsigned p, unsigned id)
{
	struct model_queue *queue = &model->processes[p].queues[id];

	CHECK(rig_destroy(&model->rig, model->real[p], id) == (queue->used ? 0 : -EINVAL));
	if (queue->used)
		model->touched[queue->gpu] = true;
	queue->used = false;
}

static void do_update(struct model *model, unsigned p, unsigned id)
{
	struct model_queue *queue = &model->processes[p].queues[id];
	unsigned percentage = any(model, 3) * 50;

	CHECK(rig_update(&model->rig, model->real[p], id, percentage, any(model, 16)) ==
	      (queue->used ? 0 : -EFAULT));
	if (!queue->used)
		return;
	queue->active = percentage > 0;
	model->touched[queue->gpu] = true;
}

static void do_mask(struct model *model, unsigned p, unsigned id)
{
	struct model_queue *queue = &model->processes[p].queues[id];
	uint32_t mask[2] = { (uint32_t)rand_r(&model->seed), (uint32_t)rand_r(&model->seed) };

	CHECK(rig_mask(&model->rig, model->real[p], id, mask, 64) == (queue->used ? 0 : -EFAULT));
	if (queue->used)
		model->touched[queue->gpu] = true;
}

static void do_gws(struct model *model, unsigned p, unsigned id)
{
	struct model_queue *queue = &model->processes[p].queues[id];
	bool want = any(model, 2) > 0, other = false;
	int expected = queue->used ? 0 : -EINVAL;

	for (unsigned i = 0; queue->used && i < model->processes[p].ever; i++) {
		const struct model_queue *one = &model->processes[p].queues[i];

		other |= one != queue && one->used && one->gpu == queue->gpu && one->gws;
	}
	if (queue->used && want && (other || queue->gws))
		expected = -EBUSY;
	if (queue->used && !want && !queue->gws)
		expected = -EINVAL;
	CHECK(rig_gws(&model->rig, model->real[p], id, want) == expected);
	if (expected < 0)
		return;
	queue->gws = want;
	model->touched[queue->gpu] = true;
}

static void do_end(struct model *model, unsigned p)
{
	struct model_process *process = &model->processes[p];

	for (unsigned i = 0; i < process->ever; i++)
		if (process->queues[i].used)
			model->touched[process->queues[i].gpu] = true;
	memset(process, 0, sizeof(*process));
	sim_exit(model->rig.sim, 1 + (pid_t)p, model->rig.now);
	model->real[p] = NULL;
}

/* Mostly ids that are there. */
static unsigned choose_id(struct model *model, unsigned p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < model->processes[p].ever; i++)
		n += model->processes[p].queues[i].used;
	return any(model, n + n / 8 + 2);
}

static void operate(struct model *model)
{
	unsigned p = any(model, PROCESSES), kind = any(model, 1000);

	if (!model->real[p])
		model->real[p] = rig_open(&model->rig, 1 + (pid_t)p);
	if (kind < 2)
		do_end(model, p);
	else if (kind < 400)
		do_create(model, p);
	else if (kind < 650)
		do_destroy(model, p, choose_id(model, p));
	else if (kind < 800)
		do_update(model, p, choose_id(model, p));
	else if (kind < 950)
		do_mask(model, p, choose_id(model, p));
	else
		do_gws(model, p, choose_id(model, p));
}

/* ---- what must be so then ---- */

static void check_gpu(struct model *model, unsigned i)
{
	const struct sim_gpu *gpu = &model->rig.sim->gpus[i];
	struct counts counts = count(model, i);
	bool some = counts.compute + counts.sdma > 0;

	CHECK(gpu->compute_queues == counts.compute && gpu->sdma_queues == counts.sdma);
	CHECK(gpu->gws_queues == counts.gws && gpu->processes == counts.processes);
	if (gpu->run_lists == model->before[i].run_lists) /* not sent: judged no more */
		return;
	CHECK(gpu->oversubscribed ==
	      (some && (counts.compute > gpu->info.queue_slots ||
			counts.processes > gpu->info.process_slots || counts.gws > 1)));
	model->most = counts.compute > model->most ? counts.compute : model->most;
}

static void check_doorbells(const struct model *model, unsigned p)
{
	for (unsigned i = 0; i < model->processes[p].ever; i++) {
		const struct model_queue *queue = &model->processes[p].queues[i];

		if (!queue->used)
			continue;
		CHECK(memcmp(model->rig.world.arena + queue->place, &queue->stamp, 8) == 0);
		CHECK(sim_doorbell(sim_find_queue(model->real[p], i)) == queue->stamp);
		CHECK(sim_find_queue(model->real[p], i)->gpu->index == queue->gpu);
	}
}

static void step(struct model *model)
{
	memcpy(model->before, model->rig.sim->gpus, sizeof(model->before));
	memset(model->touched, 0, sizeof(model->touched));
	operate(model);
	for (unsigned i = 0; i < GPUS; i++) {
		if (model->touched[i])
			check_gpu(model, i);
		else
			CHECK(memcmp(&model->before[i], &model->rig.sim->gpus[i],
				     sizeof(model->before[i])) == 0);
	}
}

TEST(random_calls_on_one_gpu_do_not_change_the_others)
{
	static struct model model;
	struct gpu_info infos[GPUS];

	model.seed = seed_nth(SEED_OF_RUN("SEED"), 0);
	for (unsigned i = 0; i < GPUS; i++) /* no pairs: masks are random */
		infos[i] = i % 2 ? rig_vega() : rig_info(90010, SCHEDULER_HWS, 8, 4);
	rig_start(&model.rig, infos, GPUS);
	for (unsigned i = 0; i < OPERATIONS; i++) {
		step(&model);
		if (i % 64 == 0 && model.real[i / 64 % PROCESSES])
			check_doorbells(&model, i / 64 % PROCESSES);
	}
	CHECK_REACHED(model.made > OPERATIONS / 8 && model.refused > 1000 && model.most > 24);
	for (unsigned p = 0; p < PROCESSES; p++)
		do_end(&model, p);
	for (unsigned i = 0; i < GPUS; i++)
		CHECK(model.rig.sim->gpus[i].processes == 0);
	rig_stop(&model.rig);
}
