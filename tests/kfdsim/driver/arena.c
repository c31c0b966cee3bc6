/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"
#include "kfdsim/driver/parts.h"

#define PAGE 4096ULL
#define LARGE_PAGE (2ULL << 20)
#define SLICE_STEP (4ULL << 30)
#define LARGE (64ULL << 30) /* an arena of at least that has room for slices so far apart */

/* What is free, by place; neighbours are joined. */
struct extent {
	uint64_t place, size;
	struct extent *next;
};

struct sim_arena {
	struct extent *free;
};

int sim_arena_new(struct sim *sim)
{
	struct sim_arena *arena = calloc(1, sizeof(*arena));
	struct extent *extent = calloc(1, sizeof(*extent));

	if (!arena || !extent) {
		free(arena);
		free(extent);
		return -ENOMEM;
	}
	extent->place = PAGE;
	extent->size = sim->world.arena_size / PAGE * PAGE - PAGE;
	arena->free = extent;
	sim->arena = arena;
	return 0;
}

void sim_arena_free(struct sim *sim)
{
	if (!sim->arena)
		return;
	for (struct extent *extent = sim->arena->free, *next; extent; extent = next) {
		next = extent->next;
		free(extent);
	}
	free(sim->arena);
	sim->arena = NULL;
}

static uint64_t round_up(uint64_t value, uint64_t step)
{
	return (value + step - 1) / step * step;
}

/* Takes [place, place + size) out of *at: what is left before it, and after it. */
static int cut(struct extent **at, uint64_t place, uint64_t size)
{
	struct extent *extent = *at, *rest;
	uint64_t end = extent->place + extent->size;

	if (place > extent->place && place + size < end) {
		rest = malloc(sizeof(*rest));
		if (!rest)
			return -ENOMEM;
		*rest = (struct extent){ place + size, end - place - size, extent->next };
		extent->next = rest;
		extent->size = place - extent->place;
	} else if (place > extent->place) {
		extent->size = place - extent->place;
	} else if (place + size < end) {
		extent->place += size;
		extent->size -= size;
	} else {
		*at = extent->next;
		free(extent);
	}
	return 0;
}

int sim_arena_take(struct sim *sim, uint64_t size, uint64_t *ret)
{
	uint64_t step = size >= LARGE_PAGE ? LARGE_PAGE : PAGE;

	if (size == 0 || size > sim->world.arena_size)
		return -ENOMEM;
	size = round_up(size, PAGE);
	for (struct extent **at = &sim->arena->free; *at; at = &(*at)->next) {
		uint64_t place = round_up((*at)->place, step);
		uint64_t end = (*at)->place + (*at)->size;

		if (place > end || end - place < size)
			continue;
		*ret = place;
		return cut(at, place, size);
	}
	return -ENOMEM;
}

int sim_arena_take_slice(struct sim *sim, uint64_t *ret)
{
	uint64_t step = sim->world.arena_size >= LARGE ? SLICE_STEP : SIM_SLICE;
	struct extent **last = NULL;
	uint64_t best = 0;

	for (struct extent **at = &sim->arena->free; *at; at = &(*at)->next) {
		uint64_t end = (*at)->place + (*at)->size, place;

		if (end < SIM_SLICE)
			continue;
		place = (end - SIM_SLICE) / step * step;
		if (place < (*at)->place || place == 0)
			continue;
		last = at;
		best = place;
	}
	if (!last)
		return -ENOMEM;
	*ret = best;
	return cut(last, best, SIM_SLICE);
}

static void clear(struct sim *sim, uint64_t place, uint64_t size)
{
	if (sim->world.clear)
		sim->world.clear(sim->world.userdata, place, size);
	else
		memset(sim->world.arena + place, 0, size);
}

/* Joins the extent with the one after it. */
static void join(struct extent *extent)
{
	struct extent *next = extent->next;

	if (!next || extent->place + extent->size != next->place)
		return;
	extent->size += next->size;
	extent->next = next->next;
	free(next);
}

void sim_arena_put(struct sim *sim, uint64_t place, uint64_t size)
{
	struct extent *extent, *before = NULL, **at = &sim->arena->free;

	if (place == 0)
		return;
	size = round_up(size, PAGE);
	clear(sim, place, size);
	while (*at && (*at)->place < place) {
		before = *at;
		at = &(*at)->next;
	}
	extent = malloc(sizeof(*extent));
	if (!extent)
		return; /* not given out again: no more harm than that */
	*extent = (struct extent){ place, size, *at };
	*at = extent;
	join(extent);
	if (before)
		join(before);
}

/* ---- what has one piece each: doorbells of a process on a GPU, registers of a GPU ---- */

int sim_slice(struct sim_process *process, const struct sim_gpu *gpu, uint64_t *ret)
{
	uint64_t *slice = &process->slices[gpu->index];

	if (*slice == 0) {
		int r = sim_arena_take_slice(process->sim, slice);

		if (r < 0)
			return r;
	}
	*ret = *slice;
	return 0;
}

void sim_slices_free(struct sim_process *process)
{
	for (size_t i = 0; i < process->sim->n_gpus; i++)
		sim_arena_put(process->sim, process->slices[i], SIM_SLICE);
}

int sim_mmio(struct sim *sim, const struct sim_gpu *gpu, uint64_t *ret)
{
	uint64_t *page = &sim->mmio[gpu->index];

	if (*page == 0) {
		int r = sim_arena_take(sim, PAGE, page);

		if (r < 0)
			return r;
	}
	*ret = *page;
	return 0;
}
