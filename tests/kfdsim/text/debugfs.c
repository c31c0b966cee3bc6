/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>

#include "util/base.h"
#include "kfdsim/text/text.h"

/*
 * /sys/kernel/debug/kfd/{mqds,hqds} as pqm_debugfs_mqds(), dqm_debugfs_hqds() and
 * kfd_debugfs_hqds_by_device() print them (Linux 6.12).
 */

#define HQD_REGISTERS 56U /* CP_MQD_BASE_ADDR to CP_HQD_PQ_WPTR_HI */
#define HQD_REGISTERS_GFX8 54U
#define HIQ_PIPE 4U /* KFD_CIK_HIQ_PIPE */

void debugfs_dump(FILE *out, const char *indent, const uint32_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i % 8 == 0)
			fprintf(out, "%s%08zx:", indent, i * sizeof(words[0]));
		fprintf(out, " %08x%s", words[i], i % 8 == 7 || i + 1 == n ? "\n" : "");
	}
}

static void print_compute(const struct sim_queue *queue, FILE *out)
{
	uint32_t words[MQD_WORDS];

	fprintf(out, "  Compute queue on device %x\n", queue->gpu->info.kfd_gpu_id);
	for (unsigned xcc = 0; xcc < queue->gpu->info.geometry.xccs; xcc++) {
		mqd_compute(queue, xcc, words);
		debugfs_dump(out, "    ", words, MQD_WORDS);
	}
}

/* copies: the driver does not set its count of XCCs back after a compute queue, so an SDMA
 * queue that comes after one is printed as often. */
static void print_sdma(const struct sim_queue *queue, unsigned copies, FILE *out)
{
	uint32_t words[MQD_SDMA_WORDS];

	fprintf(out, "  SDMA queue on device %x\n", queue->gpu->info.kfd_gpu_id);
	mqd_sdma(queue, words);
	for (unsigned i = 0; i < copies; i++)
		debugfs_dump(out, "    ", words, MQD_SDMA_WORDS);
}

void debugfs_mqds(const struct sim *sim, FILE *out)
{
	for (const struct sim_process *process = sim->processes; process; process = process->next) {
		unsigned copies = 1;

		if (sim->kfd_minor < KFD_LINUX_7_2)
			fprintf(out, "Process %d PASID 0x%x:\n", (int)process->pid,
				mqd_pasid(process));
		else /* the number of its main thread */
			fprintf(out, "Process %d PASID %d:\n", (int)process->pid,
				(int)process->pid);
		for (const struct sim_queue *queue = process->queues; queue; queue = queue->next) {
			if (queue->type == SIM_COMPUTE) {
				copies = queue->gpu->info.geometry.xccs;
				print_compute(queue, out);
			} else {
				print_sdma(queue, copies, out);
			}
		}
	}
}

/* seq_reg_dump(): registers by byte address, up to 8 a line, a new line where there is a gap. */
struct registers {
	FILE *out;
	uint32_t last;
	unsigned left; /* on the line; 0: at the start */
	bool any;
};

static void put_register(struct registers *registers, uint32_t address, uint32_t value)
{
	if (registers->left > 0 && registers->last + 4 == address) {
		fprintf(registers->out, " %08x", value);
		registers->left--;
	} else {
		fprintf(registers->out, "%s    %08x: %08x", registers->any ? "\n" : "", address,
			value);
		registers->left = 7;
	}
	registers->last = address;
	registers->any = true;
}

/* CP_MQD_BASE_ADDR: mmCP_MQD_BASE_ADDR of gc_*_offset.h with the block's base, in bytes. */
static uint32_t first_register(unsigned target)
{
	return (target < 100000 ? 0x3245 : 0x1260 + 0x1fa9) * 4;
}

/* gfx8 tells the masks of the engines, too: COMPUTE_STATIC_THREAD_MGMT_SE0 and on. */
static void put_engine_registers(struct registers *registers, const uint32_t *words)
{
	static const uint32_t addresses[] = { 0xb858, 0xb85c, 0xb864, 0xb868 };

	for (unsigned i = 0; i < ARRAY_SIZE(addresses); i++)
		put_register(registers, addresses[i], words[23 + i + i / 2]);
}

static void print_hqd(const struct sim_gpu *gpu, const struct sim_queue *queue, unsigned xcc,
		      FILE *out)
{
	struct registers registers = { .out = out };
	unsigned target = gpu->info.gfx_target;
	unsigned n = target < 90000 ? HQD_REGISTERS_GFX8 : HQD_REGISTERS;
	uint32_t words[MQD_WORDS] = { 0 };

	if (queue)
		mqd_compute(queue, xcc, words);
	if (target < 90000)
		put_engine_registers(&registers, words);
	for (unsigned i = 0; i < n; i++)
		put_register(&registers, first_register(target) + 4 * i, words[MQD_REGISTERS + i]);
	fputc('\n', out);
}

static void print_slots(const struct sim_gpu *gpu, unsigned xcc, FILE *out)
{
	unsigned pipes = max_u(gpu->info.pipes, 1), first, end;

	slots_of(&gpu->info, &first, &end);
	for (unsigned pipe = 0; pipe < pipes; pipe++)
		for (unsigned slot = pipe; slot < end; slot += pipes) {
			if (slot < first)
				continue;
			fprintf(out, " Inst %u,  CP Pipe %u, Queue %u\n", xcc, pipe, slot / pipes);
			print_hqd(gpu, gpu->hqds[slot], xcc, out);
		}
}

/* The n-th SDMA queue of this type on this GPU, oldest first: ids of engines and rings are given
 * out so. */
static const struct sim_queue *sdma_queue(const struct sim_gpu *gpu, const struct sim *sim,
					  enum sim_queue_type type, unsigned n)
{
	const struct sim_queue *found = NULL;
	uint64_t after = 0;

	for (unsigned i = 0; i <= n; i++) {
		found = NULL;
		for (const struct sim_process *p = sim->processes; p; p = p->next)
			for (const struct sim_queue *q = p->queues; q; q = q->next)
				if (q->gpu == gpu && q->active && q->type == type &&
				    q->serial > after && (!found || q->serial < found->serial))
					found = q;
		if (!found)
			return NULL;
		after = found->serial;
	}
	return found;
}

static unsigned sdma_per_engine(unsigned queues)
{
	return queues % 8 == 0 ? 8 : queues % 6 == 0 ? 6 : queues % 2 == 0 ? 2 : 1;
}

/* What hqd_sdma_dump() in amdgpu_amdkfd_gfx_v8.c to _v12.c prints: runs of registers behind
 * SDMA0_RLC0_RB_CNTL, at the addresses of oss_3_0_d.h, sdma0_4_0_offset.h, gc_11_0_0_offset.h and
 * gc_12_0_0_offset.h. */
static const struct sdma_dump {
	unsigned before;             /* the first target of the next one */
	uint32_t base, engine, ring; /* addresses in words: the first, and from each to the next */
	struct {
		unsigned first, n;
	} runs[5];
} sdma_dumps[] = {
	{ 90000,
	  0x3500,
	  0x200,
	  0x80,
	  { { 0, 19 }, { 0x27, 4 }, { 0x2c, 2 }, { 0x2f, 3 }, { 0x41, 7 } } },
	{ 90400, 0x13a0, 0x600, 0x60, { { 0, 19 }, { 0x28, 6 }, { 0x2f, 7 }, { 0x40, 10 } } },
	{ 100000, 0x13a0, 0x600, 0x60, { { 0, 19 }, { 0x28, 6 }, { 0x2f, 7 }, { 0x40, 12 } } },
	{ 100300, 0x13a0, 0x600, 0x60, { { 0, 19 }, { 0x28, 6 }, { 0x2f, 7 }, { 0x40, 10 } } },
	{ 110000, 0x13a0, 0x600, 0x60, { { 0, 19 }, { 0x28, 6 }, { 0x2f, 7 }, { 0x40, 12 } } },
	{ 120000,
	  0x12e0,
	  0x600,
	  0x58,
	  { { 0, 7 }, { 8, 11 }, { 0x29, 1 }, { 0x2b, 12 }, { 0x40, 12 } } },
	{ UINT32_MAX, 0x12e0, 0x600, 0x58, { { 0, 49 } } },
};

/* The registers have the words of the descriptor, and the ring is enabled. */
static void print_sdma_ring(const struct sim_gpu *gpu, const struct sim_queue *queue,
			    unsigned engine, unsigned ring, FILE *out)
{
	const struct sdma_dump *dump = sdma_dumps;
	struct registers registers = { .out = out };
	uint32_t words[MQD_SDMA_WORDS] = { 0 }, base;
	unsigned word = 0;

	while (gpu->info.gfx_target >= dump->before)
		dump++;
	base = dump->base + dump->engine * engine + dump->ring * ring;
	if (queue) {
		mqd_sdma(queue, words);
		words[0] |= mqd_vmid(queue) << 24 | 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(dump->runs); i++)
		for (unsigned k = 0; k < dump->runs[i].n; k++)
			put_register(&registers, (base + dump->runs[i].first + k) * 4,
				     words[word++]);
	fputc('\n', out);
}

static void print_sdma_rings(const struct sim_gpu *gpu, const struct sim *sim, FILE *out)
{
	unsigned per_engine = sdma_per_engine(gpu->info.sdma_queues);
	unsigned pcie = gpu->info.sdma_queues / per_engine;
	unsigned xgmi = gpu->info.sdma_xgmi_queues / per_engine;

	for (unsigned i = 0; i < (pcie + xgmi) * per_engine; i++) {
		unsigned engine = i / per_engine, ring = i % per_engine;
		const struct sim_queue *queue =
			engine < pcie
				? sdma_queue(gpu, sim, SIM_SDMA, ring * pcie + engine)
				: sdma_queue(gpu, sim, SIM_SDMA_XGMI, ring * xgmi + engine - pcie);

		fprintf(out, "  SDMA Engine %u, RLC %u\n", engine, ring);
		print_sdma_ring(gpu, queue, engine, ring, out);
	}
}

/* The scheduler's own queue, firmware's, of which nothing is known here but that it runs. MECs are
 * counted from 1 by dqm_debugfs_hqds(), and the pipe is a number of all MECs: with two a MEC it
 * names one that is not there. */
static void print_hiq(const struct sim_gpu *gpu, unsigned xcc, FILE *out)
{
	struct registers registers = { .out = out };
	uint32_t first = first_register(gpu->info.gfx_target);
	unsigned pipes = max_u(gpu->info.pipes, 1);

	fprintf(out, "   Inst %u, HIQ on MEC %u Pipe %u Queue 0\n", xcc, HIQ_PIPE / pipes + 1,
		HIQ_PIPE % pipes);
	for (unsigned i = 0; i < HQD_REGISTERS; i++)
		put_register(&registers, first + 4 * i, i == 2);
	fputc('\n', out);
}

void debugfs_hqds(const struct sim *sim, const struct topology *topology, FILE *out)
{
	for (size_t i = 0; i < sim->n_gpus; i++) {
		const struct sim_gpu *gpu = &sim->gpus[i];

		if (gpu->gone)
			continue;
		fprintf(out, "Node %u, gpu_id %x:\n", topology_node(topology, gpu->info.kfd_gpu_id),
			gpu->info.kfd_gpu_id);
		for (unsigned xcc = 0; xcc < gpu->info.geometry.xccs; xcc++) {
			print_hiq(gpu, xcc, out);
			print_slots(gpu, xcc, out);
		}
		print_sdma_rings(gpu, sim, out);
	}
}
