/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "check.h"

#include <elf.h>
#include <string.h>

#include "client/latency/kernel.h"
#include "core/mask/geometry.h"
#include "kfdsim/packet/kernel.h"
#include "kfdsim/test/packet-rig.h"

#define IMAGE (RIG_DATA + 0x10000) /* a page */
#define OBJECT (IMAGE + 0x1040)    /* a descriptor in it */
#define ARGUMENTS (RIG_DATA + 0x20000)
#define WRITTEN (RIG_DATA + 0x30000)
#define BLOCKS 6U

/* A code object as lld and the loader leave it: one kernel. */
static struct image {
	Elf64_Ehdr header;
	Elf64_Phdr program[2];
	Elf64_Dyn dynamic[4];
	Elf64_Sym symbols[2];
	uint32_t hash[2];
	char strings[64];
} image;

static void make_image(struct rig *rig, const char *symbol, uint32_t arguments)
{
	uint32_t descriptor[6] = { 0, 0, arguments, 0, 0x1000, 0 };

	image = (struct image){
		.header = { .e_machine = 0xe0,
			    .e_phoff = offsetof(struct image, program),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 2 },
		.program = { { .p_type = PT_LOAD },
			     { .p_type = PT_DYNAMIC,
			       .p_vaddr = offsetof(struct image, dynamic),
			       .p_memsz = sizeof(image.dynamic) } },
		.dynamic = { { DT_SYMTAB, { offsetof(struct image, symbols) } },
			     { DT_STRTAB, { offsetof(struct image, strings) } },
			     { DT_HASH, { offsetof(struct image, hash) } } },
		.symbols = { { 0 }, { .st_name = 1, .st_value = OBJECT - IMAGE } },
		.hash = { 1, 2 },
	};
	memcpy(image.header.e_ident, ELFMAG, SELFMAG);
	image.header.e_ident[EI_CLASS] = ELFCLASS64;
	snprintf(image.strings + 1, sizeof(image.strings) - 1, "%s.kd", symbol);
	memcpy(rig_at(rig, IMAGE), &image, sizeof(image));
	memcpy(rig_at(rig, OBJECT), descriptor, sizeof(descriptor));
}

static void start(struct rig *rig, unsigned target)
{
	rig_start(rig, SIM_COMPUTE, 4096);
	rig->gpu->timing = (struct timing *)(void *)rig;
	rig->gpu->info.gfx_target = target;
	rig->gpu->info.geometry = (struct geometry){ .xccs = 1, .engines = 4, .arrays = 2 };
	rig->gpu->info.geometry.array_cus = 10;
	rig->gpu->info.geometry.wgp = target >= 100000;
	memset(rig->gpu->info.geometry.active, 8, sizeof(rig->gpu->info.geometry.active));
	memset(rig_at(rig, WRITTEN), 0x55, 4096);
}

/* Runs the kernel, from 1000 ns to 5000 ns of the model. */
static void run(struct rig *rig, const void *arguments, size_t size)
{
	const uint64_t place = ARGUMENTS, object = OBJECT;
	uint8_t *packet = rig_dispatch(rig, BLOCKS * 64, 64, 0);

	memcpy(rig_at(rig, ARGUMENTS), arguments, size);
	memcpy(packet + 32, &object, sizeof(object));
	memcpy(packet + 40, &place, sizeof(place));
	rig->model_now = 1000;
	rig_ring(rig, rig->written - 1);
	rig_work(rig);
	CHECK(rig->queue.dispatched);
	sim_queue_ended(&rig->queue, 5000);
}

struct spin {
	uint64_t waves;
	uint32_t spins;
};

static const struct spin spin = { WRITTEN, 100 };

/* Six work-groups: of XCC 1 four, of XCC 0 two. */
static void place_blocks(struct rig *rig)
{
	rig->ran[0] = (struct timing_ran){ 1, 3, 16 + 7, 1, 1000, 2000 };
	rig->ran[1] = (struct timing_ran){ 0, 2, 2, 1, 1000, 2000 };
	rig->ran[2] = (struct timing_ran){ 1, 0, 0, 1, 2000, 3000 };
	rig->ran[3] = (struct timing_ran){ 0, 1, 4, 2, 2000, 5000 };
	rig->ran[4] = (struct timing_ran){ 1, 1, 1, 1, 2000, 5000 };
	rig->n_ran = 5;
}

FIXTURE(struct rig, rig, , rig_stop(rig));

TEST_WITH(waves_tell_the_places_that_the_model_gave_them, struct rig *rig)
{
	const struct wave *waves;

	start(rig, 90402);
	make_image(rig, KERNEL_SPIN, 16);
	place_blocks(rig);
	run(rig, &spin, sizeof(spin));
	CHECK(!rig->queue.dispatched && !rig->queue.stopped && rig->queue.dispatches == 1);
	CHECK(rig->kernel.places && !rig->kernel.exact && rig->kernel.block_ns == 100 * 16);
	waves = rig_at(rig, WRITTEN);
	for (unsigned i = 0; i < BLOCKS; i++)
		CHECK(waves[i].state == WAVE_ENDED && waves[i].xcc_id == i % 2);
	/* CU 7 of 8 in array 1: behind the two that are fused off, in the middle. */
	CHECK(waves[1].hw_id == (9U << 8 | 1U << 12 | 3U << 13));
	CHECK(waves[0].hw_id == (2U << 8 | 2U << 13));
	CHECK(waves[1].start == 100 && waves[1].end == 200 && waves[4].end == 500);
	CHECK(((const uint32_t *)(const void *)&waves[BLOCKS])[0] == 0x55555555);
}

TEST_WITH(waves_of_later_generations_number_wgps, struct rig *rig)
{
	const struct wave *waves;

	start(rig, 100300);
	make_image(rig, KERNEL_READ, 32);
	place_blocks(rig);
	run(rig, &(const uint64_t[4]){ WRITTEN, 2 }, 32);
	waves = rig_at(rig, WRITTEN);
	CHECK(rig->kernel.block_ns == 2 * 1250);
	CHECK(waves[1].hw_id == (4U << 10 | 1U << 16 | 3U << 18));
}

TEST_WITH(the_clock_says_that_it_is_a_models, struct rig *rig)
{
	start(rig, 90006);
	make_image(rig, KERNEL_CLOCK, 8);
	run(rig, &(const uint64_t){ WRITTEN }, 8);
	CHECK(rig->kernel.exact && rig_read64(rig, WRITTEN) == (KERNEL_CLOCK_MODEL | 500));
}

TEST_WITH(a_gap_is_how_long_the_kernel_stood_still, struct rig *rig)
{
	start(rig, 90006);
	make_image(rig, KERNEL_GAP, 16);
	run(rig, &(const uint64_t[2]){ WRITTEN, 300 }, 16);
	CHECK(rig->kernel.exact && rig->kernel.block_ns == 3000);
	CHECK(rig_read64(rig, WRITTEN) == 2 && rig_read64(rig, WRITTEN + 8) == 100);
}

TEST_WITH(a_player_that_meets_nobody_gives_up, struct rig *rig)
{
	struct {
		uint64_t mine, theirs;
		uint32_t stride, first, rules, unused;
		uint64_t reports;
	} arguments = { 1, 2, 3, 1, 0, 0, WRITTEN };
	const struct report *report;

	start(rig, 90006);
	make_image(rig, KERNEL_NAME, 40);
	place_blocks(rig);
	run(rig, &arguments, sizeof(arguments));
	CHECK(rig->queue.dispatched && rig->queue.meets_ns > 5000);
	rig_work(rig);
	CHECK(rig->next_ns == rig->queue.meets_ns);
	rig->now_ns = rig->queue.meets_ns;
	rig_work(rig);
	report = rig_at(rig, WRITTEN);
	CHECK(!rig->queue.dispatched && report[0].state == REPORT_ALONE && report[0].rounds == 0);
	CHECK(report[5].state == REPORT_ALONE && report[0].hw_id == (2U << 8 | 2U << 13));
}

/* Those of ROCr: bounds of four or two phases, and what follows them. */
TEST(copy_kernels_of_the_runtime_copy)
{
	const uint64_t from = RIG_DATA, to = WRITTEN;
	const uint64_t four[] = { from,   to,       from + 1, to + 1,    from + 5,
				  to + 5, from + 9, to + 9,   from + 10, to + 10 };
	const uint64_t two[] = { from, to, from + 8, to + 8, from + 10, to + 10, 0, 0, 0, 0 };
	const uint64_t bad[] = { from, to, from + 8, to + 8, from + 10, to + 11, 0, 0, 0, 0 };
	const uint64_t *const all[] = { four, two, bad };

	for (unsigned i = 0; i < 3; i++) {
		const uint32_t descriptor[6] = { 0, 0, 0, 0, 0x100, 0 };
		struct rig rig;

		start(&rig, 90006);
		memcpy(rig_at(&rig, OBJECT), descriptor, sizeof(descriptor));
		memcpy(rig_at(&rig, from), "0123456789", 10);
		run(&rig, all[i], sizeof(four));
		CHECK((memcmp(rig_at(&rig, to), "0123456789U", 11) == 0) == (i < 2));
		CHECK(!rig.queue.stopped);
		rig_stop(&rig);
	}
}

/* Whatever is not as it should be: the kernel is none of ours, and its dispatch ends. */
TEST(other_kernels_and_broken_code_objects_do_nothing)
{
	for (unsigned i = 0; i < 8; i++) {
		struct rig rig;
		struct image *there;

		start(&rig, 90006);
		make_image(&rig, i == 0 ? "other" : KERNEL_SPIN, i == 1 ? 8 : 16);
		there = rig_at(&rig, IMAGE);
		if (i == 2)
			there->header.e_ident[0] = 0;
		if (i == 3)
			there->header.e_phoff = UINT64_MAX / 2;
		if (i == 4)
			there->dynamic[2].d_tag = DT_NULL;
		if (i == 5)
			there->dynamic[0].d_un.d_ptr = UINT64_MAX / 2;
		if (i == 6)
			there->program[1].p_vaddr = RIG_SIZE;
		if (i == 7)
			there->symbols[1].st_name = UINT32_MAX;
		run(&rig, &spin, sizeof(spin));
		CHECK(!rig.queue.dispatched && !rig.queue.stopped && rig.queue.dispatches == 1);
		CHECK(rig_read64(&rig, WRITTEN) == 0x5555555555555555);
		rig_stop(&rig);
	}
}

TEST_WITH(a_kernel_that_writes_nowhere_stops_its_queue, struct rig *rig)
{
	const struct spin nowhere = { RIG_MEMORY + RIG_SIZE - 8, 100 };

	start(rig, 90006);
	make_image(rig, KERNEL_SPIN, 16);
	run(rig, &nowhere, sizeof(nowhere));
	CHECK(rig->queue.stopped && rig->queue.dispatches == 0);
}
