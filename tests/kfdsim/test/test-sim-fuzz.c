/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "check.h"
#include "kfdsim/test/sim-rig.h"
#include "seed.h"

/* Random bytes to random ioctls, some of them sensible: nothing but an errno may come of it. */

#define ROUNDS check_rounds(120000, 1000000)
#define PROCESSES 3U
#define WORDS 24U /* CREATE_QUEUE's */
#define NUMBERS 0x28U

struct fuzz {
	struct sim_rig rig;
	struct sim_process *processes[PROCESSES];
	unsigned seed;
	unsigned good[256], bad[256]; /* by number: how often it went well, or not */
	unsigned rendered;            /* requests to render nodes that went well */
};

static uint32_t any(struct fuzz *fuzz)
{
	return (uint32_t)rand_r(&fuzz->seed) << 16 ^ (uint32_t)rand_r(&fuzz->seed);
}

/* A number that something may be known by. */
static uint32_t any_word(struct fuzz *fuzz)
{
	static const uint32_t liked[] = {
		0,       0,          1,          2,          3,          32,     64,
		100,     1024,       4096,       8192,       0x1000,     0x1101, 0x10000,
		0x12000, 0x80000000, 0x80000001, 0x7fffffff, 0xffffffff,
	};

	switch (any(fuzz) % 6) {
	case 0: return any(fuzz);
	case 1: return any(fuzz) % 64;
	case 2: return RIG_MEMORY + any(fuzz) % RIG_SIZE;
	default: return liked[any(fuzz) % (sizeof(liked) / sizeof(liked[0]))];
	}
}

static void scribble(struct fuzz *fuzz)
{
	uint32_t *memory = (uint32_t *)(void *)fuzz->rig.memory;

	for (unsigned i = 0; i < 16; i++)
		memory[any(fuzz) % (RIG_SIZE / 4)] = any_word(fuzz);
}

/* Sensible arguments of those that want much at once; the rest is found by chance. */
static void make_sensible(struct fuzz *fuzz, unsigned nr, uint32_t *words)
{
	size_t gpu = any(fuzz) % 2;
	struct kfd_ioctl_create_queue_args queue = rig_queue_args(&fuzz->rig, gpu, any(fuzz) % 5);
	struct kfd_ioctl_alloc_memory_of_gpu_args memory = {
		.va_addr = (uint64_t)any(fuzz) << 12,
		.size = 1U << any(fuzz) % 22,
		.mmap_offset = RIG_MEMORY,
		.gpu_id = rig_id(&fuzz->rig, gpu),
		.flags = 1U << any(fuzz) % 5,
	};
	struct kfd_ioctl_map_memory_to_gpu_args map = {
		.handle = (uint64_t)rig_id(&fuzz->rig, gpu) << 32 | any(fuzz) % 64,
		.device_ids_array_ptr = RIG_MEMORY,
		.n_devices = 1,
	};
	struct kfd_ioctl_set_cu_mask_args mask = {
		.queue_id = any(fuzz) % 32,
		.num_cu_mask = 32 * (any(fuzz) % 40),
		.cu_mask_ptr = RIG_MEMORY + any(fuzz) % RIG_SIZE,
	};

	if (nr == 0x1a)
		memcpy(words, &mask, sizeof(mask));
	if (nr == 0x02)
		memcpy(words, &queue, sizeof(queue));
	if (nr == 0x16)
		memcpy(words, &memory, sizeof(memory));
	if (nr == 0x17 || nr == 0x18 || nr == 0x19)
		memcpy(words, &map, sizeof(map));
	if (nr == 0x18)
		memcpy(fuzz->rig.memory, &memory.gpu_id, sizeof(memory.gpu_id));
	if (any(fuzz) % 2)
		words[any(fuzz) % WORDS] = any_word(fuzz);
}

static void call(struct fuzz *fuzz)
{
	static const uint16_t sizes[] = { 0, 1, 7, 8, 16, 24, 32, 40, 48 };
	unsigned nr = any(fuzz) % NUMBERS, p = any(fuzz) % PROCESSES;
	size_t size = any(fuzz) % 3 ? sizeof(uint32_t) * WORDS : sizes[any(fuzz) % 9];
	_Alignas(8) uint32_t words[256];
	int r;

	for (unsigned i = 0; i < 256; i++)
		words[i] = any_word(fuzz);
	if (any(fuzz) % 2) /* 64-bit numbers have zeros above */
		for (unsigned i = 1; i < WORDS; i += 2)
			words[i] = 0;
	if (any(fuzz) % 8 == 0)
		size = sizeof(words);
	if (any(fuzz) % 2)
		make_sensible(fuzz, nr, words);
	r = rig_call(&fuzz->rig, fuzz->processes[p],
		     _IOC(_IOC_READ | _IOC_WRITE, 'K', nr, (unsigned)size), words, size);
	CHECK(r <= 0 && r > -600);
	if (r == 0)
		fuzz->good[nr]++;
	else
		fuzz->bad[nr]++;
}

static void end(struct fuzz *fuzz)
{
	unsigned p = any(fuzz) % PROCESSES;

	sim_exit(fuzz->rig.sim, 1 + (pid_t)p, fuzz->rig.now);
	fuzz->processes[p] = rig_open(&fuzz->rig, 1 + (pid_t)p);
}

static void pass(struct fuzz *fuzz)
{
	fuzz->rig.now += any(fuzz) % 1000000;
	sim_work(fuzz->rig.sim, fuzz->rig.now);
}

static void ring(struct fuzz *fuzz)
{
	struct sim_process *process = fuzz->processes[any(fuzz) % PROCESSES];
	uint64_t place, value = any(fuzz) % 200;

	if (!process->queues)
		return;
	place = process->slices[process->queues->gpu->index] + 8ULL * process->queues->doorbell;
	memcpy(fuzz->rig.world.arena + place, &value, sizeof(value));
}

/* What is wrong now is refused. */
static void disturb(struct fuzz *fuzz)
{
	unsigned kind = any(fuzz) % 3, n = 1 + any(fuzz) % PROCESSES;
	char text[64], why[256];

	if (kind == 2)
		snprintf(text, sizeof(text), "reset:0000:0%u:00.0", n);
	else
		snprintf(text, sizeof(text), "%s:%u", kind ? "restore" : "evict", n);
	(void)sim_fault(fuzz->rig.sim, text, fuzz->rig.now, why, sizeof(why));
}

static void ask_render_node(struct fuzz *fuzz)
{
	static const unsigned numbers[] = { 0x00, 0x05, 0x45, 0x45, 0x45, 0x46 };
	uint64_t words[8];
	int r;

	for (unsigned i = 0; i < 8; i++)
		words[i] = any(fuzz) % 2 ? RIG_MEMORY + any(fuzz) % RIG_SIZE : any_word(fuzz);
	if (any(fuzz) % 2) /* size and query of AMDGPU_INFO */
		words[1] = (uint64_t)(any(fuzz) % 32) << 32 | any(fuzz) % 600;
	r = sim_render_ioctl(fuzz->rig.sim, 128 + any(fuzz) % 3, 1,
			     (unsigned)_IOC(_IOC_READ | _IOC_WRITE, (unsigned)'d',
					    numbers[any(fuzz) % 6], any(fuzz) % 65),
			     words, any(fuzz) % 65, fuzz->rig.now);
	CHECK(r <= 0 && r > -600);
	fuzz->rendered += r == 0;
}

static void round_of(struct fuzz *fuzz)
{
	unsigned kind = any(fuzz) % 4000;

	if (kind == 0)
		end(fuzz);
	else if (kind < 100)
		scribble(fuzz);
	else if (kind < 300)
		pass(fuzz);
	else if (kind < 400)
		ring(fuzz);
	else if (kind < 410)
		disturb(fuzz);
	else if (kind < 430)
		ask_render_node(fuzz);
	else if (kind < 450)
		sim_cancel(fuzz->rig.sim, fuzz->rig.request - any(fuzz) % 100);
	else
		call(fuzz);
}

static void run(bool timing, unsigned kfd_minor)
{
	static struct fuzz fuzz;
	static const struct sim_node each[] = { { .sdma_engines = 2, .sdma_xgmi_engines = 3 },
						{ .sdma_engines = 2 } };
	struct sim_config config = { .each = each, .timing = timing, .kfd_minor = kfd_minor };
	struct gpu_info infos[] = { rig_vega(), rig_navi() };

	memset(&fuzz, 0, sizeof(fuzz));
	fuzz.seed = seed_nth(SEED_OF_RUN("SEED"), 0);
	rig_start_with(&fuzz.rig, infos, 2, config, RIG_ARENA);
	for (unsigned p = 0; p < PROCESSES; p++)
		fuzz.processes[p] = rig_open(&fuzz.rig, 1 + (pid_t)p);
	for (unsigned i = 0; i < ROUNDS; i++)
		round_of(&fuzz);

	/* It came further than the first check. */
	for (unsigned nr = 1; nr < NUMBERS; nr++)
		CHECK_REACHED(fuzz.good[nr] + fuzz.bad[nr] > ROUNDS / 100);
	CHECK_REACHED(fuzz.rendered > 100);
	CHECK_REACHED(fuzz.good[0x08] > 100 && fuzz.good[0x0c] > 10 && fuzz.good[0x16] > 100);
	CHECK_REACHED(fuzz.good[0x18] > 10);
	/* Linux 6.12 wants buffers of queues that chance does not find. */
	if (kfd_minor != KFD_LINUX_6_12) {
		CHECK_REACHED(fuzz.good[0x02] > 100 && fuzz.good[0x03] > 100 &&
			      fuzz.good[0x07] > 100);
		CHECK_REACHED(fuzz.good[0x1a] > 10);
	}
	rig_stop(&fuzz.rig);
}

TEST_CASE(random_arguments_do_not_break_the_driver, run(false, KFD_LINUX_6_1));
TEST_CASE(random_arguments_do_not_break_the_driver_with_timing, run(true, KFD_LINUX_6_1));
TEST_CASE(random_arguments_do_not_break_the_driver_of_linux_6_12, run(false, KFD_LINUX_6_12));
