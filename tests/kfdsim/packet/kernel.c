/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/packet/kernel.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/latency/kernel.h"

enum kind { OTHER, CLEAR, CLOCK, COPY, GAP, MULTIPLY, PLAY, READ, SPIN };

/* As the compiler lays out the parameters of kernel.c. */
union arguments {
	struct {
		uint64_t flags;
		uint32_t n;
	} clear;
	struct {
		uint64_t time;
	} clock;
	struct copy {
		uint64_t from, to, size;
	} copy; /* as copy_of() finds it */
	struct {
		uint64_t report, ticks;
	} gap;
	struct {
		uint64_t mine, theirs;
		uint32_t stride, first, rules, unused;
		uint64_t reports;
	} play;
	struct {
		uint64_t waves;
		uint32_t spins;
	} spin; /* also the first parameters of read and multiply */
};

static const struct {
	const char *symbol;
	uint32_t size;      /* of its arguments, at least */
	uint32_t spin_ns;   /* of a work-group for each of its turns; 0: as the model has it */
	bool places, exact; /* what the model is to tell; it takes as long as it says */
} kinds[] = {
	[OTHER] = { NULL, 0, 0, false, false },
	[CLEAR] = { KERNEL_CLEAR ".kd", 12, 0, false, false },
	[CLOCK] = { KERNEL_CLOCK ".kd", 8, 0, false, true },
	[COPY] = { "", 0, 0, false, true },
	[GAP] = { KERNEL_GAP ".kd", 16, 0, false, true },
	[MULTIPLY] = { KERNEL_MULTIPLY ".kd", 12, 0, true, false },
	[PLAY] = { KERNEL_NAME ".kd", 40, 0, true, true },
	[READ] = { KERNEL_READ ".kd", 32, 1250, true, false },
	[SPIN] = { KERNEL_SPIN ".kd", 12, 16, true, false },
};

/* ---- which kernel it is ------------------------------------------------------------------ */

#define PAGE 4096U
#define PAGES 256U   /* of a code object before its descriptors */
#define SYMBOLS 256U /* of a code object */

/* The start of a kernel descriptor (LLVM, AMDHSAKernelDescriptor.h). */
struct descriptor {
	uint32_t group_size, private_size, arguments_size, reserved;
	int64_t entry;
};

/* What the loader has put into memory: a code object with its ELF header, as lld makes it. */
struct image {
	struct sim_process *process;
	uint64_t base, symbols, strings;
	uint32_t n_symbols;
};

static bool is_header(const Elf64_Ehdr *header)
{
	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_machine == 0xe0 /* AMDGPU */ &&
	       header->e_phentsize == sizeof(Elf64_Phdr) && header->e_phnum <= 16;
}

/* Its header is at the start of a page. */
static bool find_header(struct image *image, uint64_t object, Elf64_Ehdr *ret)
{
	image->base = object & ~(uint64_t)(PAGE - 1);
	for (unsigned i = 0; i < PAGES && image->base >= PAGE; i++, image->base -= PAGE) {
		if (sim_get(image->process, image->base, ret, sizeof(*ret)) < 0)
			return false;
		if (is_header(ret))
			return true;
	}
	return false;
}

static bool read_dynamic(struct image *image, const Elf64_Phdr *header)
{
	Elf64_Dyn entries[32];
	uint32_t hash[2] = { 0 }; /* buckets, symbols */
	size_t n = header->p_memsz / sizeof(entries[0]);
	uint64_t at = 0;

	n = n < ARRAY_SIZE(entries) ? n : ARRAY_SIZE(entries);
	if (sim_get(image->process, image->base + header->p_vaddr, entries,
		    n * sizeof(entries[0])) < 0)
		return false;
	for (size_t i = 0; i < n && entries[i].d_tag != DT_NULL; i++)
		switch (entries[i].d_tag) {
		case DT_SYMTAB: image->symbols = entries[i].d_un.d_ptr; break;
		case DT_STRTAB: image->strings = entries[i].d_un.d_ptr; break;
		case DT_HASH: at = entries[i].d_un.d_ptr; break;
		default: break;
		}
	if (at == 0 || image->symbols == 0 || image->strings == 0 ||
	    sim_get(image->process, image->base + at, hash, sizeof(hash)) < 0)
		return false;
	image->n_symbols = hash[1] < SYMBOLS ? hash[1] : SYMBOLS;
	return true;
}

static bool find_image(struct image *image, uint64_t object)
{
	Elf64_Ehdr header;
	Elf64_Phdr programs[16];

	if (!find_header(image, object, &header) ||
	    sim_get(image->process, image->base + header.e_phoff, programs,
		    header.e_phnum * sizeof(programs[0])) < 0)
		return false;
	for (unsigned i = 0; i < header.e_phnum; i++)
		if (programs[i].p_type == PT_DYNAMIC)
			return read_dynamic(image, &programs[i]);
	return false;
}

static bool symbol_name(const struct image *image, uint64_t object, char *buf, size_t size)
{
	Elf64_Sym symbol;

	for (uint32_t i = 0; i < image->n_symbols; i++) {
		if (sim_get(image->process, image->base + image->symbols + i * sizeof(symbol),
			    &symbol, sizeof(symbol)) < 0)
			return false;
		if (symbol.st_value != object - image->base)
			continue;
		memset(buf, 0, size);
		return sim_get(image->process, image->base + image->strings + symbol.st_name, buf,
			       size - 1) == 0;
	}
	return false;
}

/*
 * ROCr loads code objects with copy kernels of its own, which have no symbols (amd_blit_kernel.cpp). Theirs are the
 * bounds of two or four phases: source, destination, of each; then both ends. The bounds must agree.
 */
static bool copy_of(const uint64_t *bounds, unsigned phases, struct copy *ret)
{
	const uint64_t *end = bounds + (size_t)2 * phases;

	*ret = (struct copy){ bounds[0], bounds[1], end[0] - bounds[0] };
	for (const uint64_t *bound = bounds; bound < end; bound++)
		if (bound[0] > bound[2])
			return false;
	return ret->size > 0 && ret->size <= UINT32_MAX && end[1] - bounds[1] == ret->size;
}

static bool find_copy(const struct sim_queue *queue, const struct kernel_call *call,
		      struct copy *ret)
{
	uint64_t bounds[10];

	if (sim_get(queue->process, call->arguments, bounds, sizeof(bounds)) < 0)
		return false;
	return copy_of(bounds, 4, ret) || copy_of(bounds, 2, ret);
}

static enum kind kind_of(const struct sim_queue *queue, const struct kernel_call *call)
{
	struct image image = { .process = queue->process };
	struct descriptor descriptor;
	struct copy copy;
	char name[32];

	if (sim_get(queue->process, call->object, &descriptor, sizeof(descriptor)) < 0)
		return OTHER;
	if (descriptor.arguments_size == 0 && descriptor.entry == 0x100)
		return find_copy(queue, call, &copy) ? COPY : OTHER;
	if (!find_image(&image, call->object) ||
	    !symbol_name(&image, call->object, name, sizeof(name)))
		return OTHER;
	for (enum kind kind = OTHER + 1; kind < ARRAY_SIZE(kinds); kind++)
		if (strcmp(name, kinds[kind].symbol) == 0)
			return descriptor.arguments_size >= kinds[kind].size ? kind : OTHER;
	return OTHER;
}

static int get_arguments(struct sim_queue *queue, const struct kernel_call *call, enum kind kind,
			 union arguments *ret)
{
	*ret = (union arguments){ 0 };
	if (kind == COPY)
		return find_copy(queue, call, &ret->copy) ? 0 : -EIO;
	return packet_get(queue, call->arguments, ret,
			  kinds[kind].size < sizeof(*ret) ? kinds[kind].size : sizeof(*ret));
}

/* ---- its beginning ----------------------------------------------------------------------- */

#define MOMENT_NS 1000U
#define GAME_NS 300000U /* a game; its turns are not played one by one */

static uint64_t exact_ns(const struct sim_queue *queue, enum kind kind,
			 const union arguments *arguments)
{
	uint64_t wanted;

	if (kind != GAP)
		return kind == PLAY ? GAME_NS : MOMENT_NS;
	wanted = arguments->gap.ticks * KERNEL_TICK_NS;
	return wanted > queue->ran_ns + MOMENT_NS ? wanted - queue->ran_ns : MOMENT_NS;
}

void kernel_prepare(struct sim_queue *queue, const struct kernel_call *call,
		    struct timing_kernel *kernel)
{
	enum kind kind = kind_of(queue, call);
	union arguments arguments;

	if (kind == OTHER || get_arguments(queue, call, kind, &arguments) < 0)
		return;
	kernel->places = kinds[kind].places;
	kernel->exact = kinds[kind].exact;
	if (kernel->exact)
		kernel->block_ns = exact_ns(queue, kind, &arguments);
	else if (kernel->block_ns == 0 && kinds[kind].spin_ns > 0)
		kernel->block_ns = (uint64_t)arguments.spin.spins * kinds[kind].spin_ns;
}

void kernel_begin(struct sim_queue *queue, const struct kernel_call *call, uint64_t now_ns)
{
	const uint64_t begun = 1;
	union arguments arguments;

	if (queue->first_ns == 0)
		queue->first_ns = now_ns;
	if (kind_of(queue, call) == GAP && get_arguments(queue, call, GAP, &arguments) == 0)
		(void)packet_put(queue, arguments.gap.report, &begun, sizeof(begun));
}

/* ---- where work-groups ran --------------------------------------------------------------- */

struct block {
	unsigned xcc, engine, array, cu; /* as the registers number them */
	uint64_t begin_ns, end_ns;
};

/* The registers number fused-off CUs, too. The model does not: here those are in the middle of an array. */
static unsigned with_fused(const struct geometry *geometry, const struct timing_ran *ran,
			   unsigned number)
{
	unsigned array = ran->cu / 16;
	unsigned active = geometry->active[ran->xcc][ran->engine][array];
	unsigned step = geometry->wgp ? 2 : 1;

	return number < active / 2 / step * step ? number : number + geometry->array_cus - active;
}

/* By the number of the work-group: XCCs take turns (kernel_h of ROCm's MI300 documentation: work-groups
 * go round robin to XCDs). NULL: none. The caller frees them. */
static struct block *find_blocks(struct sim_queue *queue, uint32_t n)
{
	struct block *blocks = calloc(n, sizeof(*blocks));
	unsigned turn[TIMING_XCCS] = { 0 }, xccs = 0;
	uint32_t used[TIMING_XCCS] = { 0 };
	const struct timing_ran *ran;
	size_t n_ran;

	ran = timing_ran(queue->gpu->timing, queue->serial, &n_ran);
	for (size_t i = 0; i < n_ran; i++)
		turn[ran[i].xcc] = 1;
	for (unsigned x = 0; x < TIMING_XCCS; x++)
		if (turn[x] > 0)
			turn[x] = xccs++;
	for (size_t i = 0; i < n_ran && blocks; i++)
		for (uint32_t k = 0; k < ran[i].blocks; k++) {
			uint32_t number = used[ran[i].xcc]++ * xccs + turn[ran[i].xcc];

			if (number < n)
				blocks[number] = (struct block){
					ran[i].xcc,
					ran[i].engine,
					ran[i].cu / 16,
					with_fused(&queue->gpu->info.geometry, &ran[i], ran[i].cu % 16),
					ran[i].begin_ns,
					ran[i].end_ns,
				};
		}
	return blocks;
}

/* HW_ID of gfx9, HW_ID1 of later ones (LLVM, SIDefines.h; the ISA documents of AMD). */
static uint32_t hw_id(const struct sim_queue *queue, const struct block *block)
{
	if (queue->gpu->info.gfx_target < 100000)
		return block->cu << 8 | block->array << 12 | block->engine << 13;
	return block->cu / 2 << 10 | block->array << 16 | block->engine << 18;
}

/* ---- its end ----------------------------------------------------------------------------- */

static int end_waves(struct sim_queue *queue, const struct kernel_call *call,
		     const union arguments *arguments)
{
	_cleanup_(freep) struct wave *waves = calloc(call->blocks, sizeof(*waves));
	_cleanup_(freep) struct block *blocks = find_blocks(queue, call->blocks);

	if (!waves || !blocks)
		return packet_stop(queue, "no memory for a kernel");
	for (uint32_t i = 0; i < call->blocks; i++)
		waves[i] = (struct wave){
			.state = WAVE_ENDED,
			.hw_id = hw_id(queue, &blocks[i]),
			.xcc_id = blocks[i].xcc,
			.start = blocks[i].begin_ns / KERNEL_TICK_NS,
			.end = blocks[i].end_ns / KERNEL_TICK_NS,
		};
	return packet_put(queue, arguments->spin.waves, waves, call->blocks * sizeof(*waves));
}

static int end_copy(struct sim_queue *queue, const struct copy *copy)
{
	const uint64_t most = 1U << 20;
	_cleanup_(freep) void *buf = malloc(most);
	int r = buf ? 0 : packet_stop(queue, "no memory for a kernel");

	for (uint64_t done = 0; done < copy->size && r == 0; done += most) {
		uint64_t size = copy->size - done < most ? copy->size - done : most;

		r = packet_get(queue, copy->from + done, buf, size);
		if (r == 0)
			r = packet_put(queue, copy->to + done, buf, size);
	}
	return r;
}

static int end_clear(struct sim_queue *queue, const union arguments *arguments)
{
	const uint32_t none[64] = { 0 };
	int r = 0;

	for (uint32_t i = 0; i < arguments->clear.n && r == 0; i += ARRAY_SIZE(none)) {
		uint32_t n = arguments->clear.n - i;

		r = packet_put(queue, arguments->clear.flags + i * sizeof(none[0]), none,
			       (n < ARRAY_SIZE(none) ? n : ARRAY_SIZE(none)) * sizeof(none[0]));
	}
	return r;
}

/* What it stood still, all in all: nearly always once. */
static int end_gap(struct sim_queue *queue, const union arguments *arguments, uint64_t end_ns)
{
	uint64_t wanted = arguments->gap.ticks * KERNEL_TICK_NS, took = end_ns - queue->first_ns;
	uint64_t report[2] = { 2, (took > wanted ? took - wanted : 0) / KERNEL_TICK_NS };

	return packet_put(queue, arguments->gap.report, report, sizeof(report));
}

/* ---- games ------------------------------------------------------------------------------- */

#define PATIENCE_NS UINT64_C(5000000000)

/* The other player's queue, which has ended before and waits; NULL: it has not come yet. */
static struct sim_queue *find_other(struct sim_queue *queue, const union arguments *mine,
				    union arguments *theirs)
{
	for (struct sim_queue *other = queue->process->queues; other; other = other->next) {
		if (other == queue || other->gpu != queue->gpu || other->meets_ns == 0)
			continue;
		if (sim_get(queue->process, other->meets_arguments, theirs, sizeof(*theirs)) == 0 &&
		    theirs->play.mine == mine->play.theirs &&
		    theirs->play.theirs == mine->play.mine)
			return other;
	}
	return NULL;
}

/* A turn there and back, in nanoseconds: nearer is faster. No card was measured for these. */
static uint64_t trip_ns(const struct block *a, const struct block *b, unsigned step)
{
	unsigned far = (a->cu / step * 7 + b->cu / step * 7 + a->engine + b->engine) % 20;

	if (a->engine != b->engine || a->array != b->array)
		return 2 * (560 + far);
	return a->cu / step == b->cu / step ? 2 * 180 : 2 * (420 + far);
}

static int put_reports(struct sim_queue *queue, const union arguments *arguments,
		       const struct block *mine, const struct block *theirs, uint32_t lanes,
		       uint32_t state)
{
	unsigned step = queue->gpu->info.geometry.wgp ? 2 : 1;
	int r = 0;

	for (uint32_t i = 0; i < lanes && r == 0; i++) {
		struct report report = {
			.state = state,
			.hw_id = hw_id(queue, &mine[i]),
			.xcc_id = mine[i].xcc,
			.rounds = state == REPORT_ENDED ? GAME_ROUNDS : 0,
		};

		for (unsigned k = 0; k < GAME_ROUNDS && theirs && arguments->play.first; k++)
			report.ticks[k] = trip_ns(&mine[i], &theirs[i], step) * GAME_TRIPS /
					  KERNEL_TICK_NS;
		r = packet_put(queue, arguments->play.reports + i * sizeof(report), &report,
			       sizeof(report));
	}
	return r;
}

/* The first one waits for the second. */
static int end_play(struct sim_queue *queue, const struct kernel_call *call,
		    const union arguments *mine, uint64_t end_ns)
{
	_cleanup_(freep) struct block *here = NULL, *there = NULL;
	union arguments theirs;
	struct sim_queue *other = find_other(queue, mine, &theirs);
	int r;

	if (!other) {
		queue->meets_arguments = call->arguments;
		queue->meets_ns = end_ns + PATIENCE_NS;
		return 1;
	}
	here = find_blocks(queue, call->blocks);
	there = find_blocks(other, call->blocks);
	if (!here || !there)
		return packet_stop(queue, "no memory for a kernel");
	r = put_reports(queue, mine, here, there, call->blocks, REPORT_ENDED);
	if (r == 0)
		r = put_reports(other, &theirs, there, here, call->blocks, REPORT_ENDED);
	if (r == 0)
		r = aql_dispatch_retire(other, end_ns);
	return r < 0 ? r : 0;
}

int kernel_give_up(struct sim_queue *queue, const struct kernel_call *call)
{
	_cleanup_(freep) struct block *blocks = find_blocks(queue, call->blocks);
	union arguments arguments;
	int r = get_arguments(queue, call, PLAY, &arguments);

	if (r < 0)
		return r;
	if (!blocks)
		return packet_stop(queue, "no memory for a kernel");
	return put_reports(queue, &arguments, blocks, NULL, call->blocks, REPORT_ALONE);
}

int kernel_end(struct sim_queue *queue, const struct kernel_call *call, uint64_t end_ns)
{
	enum kind kind = kind_of(queue, call);
	union arguments arguments;
	uint64_t ticks = end_ns / KERNEL_TICK_NS | KERNEL_CLOCK_MODEL;
	int r = kind == OTHER ? 0 : get_arguments(queue, call, kind, &arguments);

	if (r < 0)
		return r;
	switch (kind) {
	case CLEAR: return end_clear(queue, &arguments);
	case COPY: return end_copy(queue, &arguments.copy);
	case CLOCK: return packet_put(queue, arguments.clock.time, &ticks, sizeof(ticks));
	case GAP: return end_gap(queue, &arguments, end_ns);
	case PLAY: return end_play(queue, call, &arguments, end_ns);
	case MULTIPLY:
	case READ:
	case SPIN: return end_waves(queue, call, &arguments);
	case OTHER: break;
	}
	return 0;
}
