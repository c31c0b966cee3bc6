/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"
#include "client/output/svg.h"
#include "client/output/table.h"
#include "client/verbs/verb.h"

/* The queue slots of a GPU. */
struct rack {
	const struct gpuarb_gpu *gpu;
	const char *source; /* of the number of pipes */
	struct gpuarb_slots *slots;
	size_t n, active;
	size_t n_sdma, active_sdma; /* slots of SDMA engines */
	unsigned queues, without;   /* compute queues; those without a slot */
	uint32_t *pids;             /* of the processes with a slot, each once; 0: unknown */
	size_t n_pids;
};

struct racks {
	const struct command *command;
	struct rack *list;
	size_t n;
};

static void racks_done(struct racks *racks)
{
	for (size_t i = 0; i < racks->n; i++) {
		gpuarb_slots_free(racks->list[i].slots);
		free(racks->list[i].pids);
	}
	free(racks->list);
}

static size_t index_of_pid(const struct rack *rack, uint32_t pid)
{
	size_t i = 0;

	while (i < rack->n_pids && rack->pids[i] != pid)
		i++;
	return i;
}

/* Slot i: those of pipes, then those of SDMA engines; NULL: there is none. */
static const struct gpuarb_queue_slot *slot_at(const struct rack *rack, size_t i)
{
	return i < rack->n ? gpuarb_slots_get(rack->slots, i)
			   : gpuarb_slots_sdma(rack->slots, i - rack->n);
}

static size_t count_all(const struct rack *rack)
{
	return rack->n + rack->n_sdma;
}

/* Whether slot i is the first of its pipe, or of its engine. */
static bool begins_pipe(const struct rack *rack, size_t i)
{
	const struct gpuarb_queue_slot *slot = slot_at(rack, i), *before;

	if (i == 0 || i == rack->n)
		return true;
	before = slot_at(rack, i - 1);
	return before->pipe != slot->pipe || before->xcc != slot->xcc;
}

/* The number of active queues in the pipe or engine that begins with slot i. */
static unsigned count_pipe(const struct rack *rack, size_t i)
{
	unsigned n = slot_at(rack, i)->active;

	while (++i < count_all(rack) && !begins_pipe(rack, i))
		n += slot_at(rack, i)->active;
	return n;
}

/* -ENOMEM as the exit code. */
static int rack_count(const struct command *command, struct rack *rack)
{
	const struct gpuarb_queue_slot *slot;

	while (gpuarb_slots_get(rack->slots, rack->n))
		rack->n++;
	while (gpuarb_slots_sdma(rack->slots, rack->n_sdma))
		rack->n_sdma++;
	rack->pids = calloc(count_all(rack) + 1, sizeof(*rack->pids));
	if (!rack->pids)
		return fail(command, EXIT_FAILED, "out of memory");
	for (size_t i = 0; (slot = slot_at(rack, i)); i++) {
		if (!slot->active)
			continue;
		rack->active += i < rack->n;
		rack->active_sdma += i >= rack->n;
		if (index_of_pid(rack, slot->pid) == rack->n_pids)
			rack->pids[rack->n_pids++] = slot->pid;
	}
	rack->queues = gpuarb_slots_queues(rack->slots, &rack->without);
	return EXIT_OK;
}

/* '.' for a free slot, else the letter of its process. */
static char letter_of(const struct rack *rack, const struct gpuarb_queue_slot *slot)
{
	return slot->active ? print_letter(index_of_pid(rack, slot->pid)) : '.';
}

#define LABEL_MAX 40

/* The pipe or engine of slot i. */
static const char *label_of(const struct rack *rack, size_t i, char buf[static LABEL_MAX])
{
	const struct gpuarb_queue_slot *slot = slot_at(rack, i);

	if (i >= rack->n)
		snprintf(buf, LABEL_MAX, "SDMA %u", slot->pipe);
	else if (rack->gpu->xccs > 1)
		snprintf(buf, LABEL_MAX, "XCC %u pipe %u", slot->xcc, slot->pipe);
	else
		snprintf(buf, LABEL_MAX, "pipe %u", slot->pipe);
	return buf;
}

#define LEASE_MAX 160 /* "lease", its number, and a name of 127 bytes */

static void lease_name(const struct command *command, uint64_t id, char buf[static LEASE_MAX])
{
	const struct gpuarb_lease_info *lease = session_find(command, id);

	if (id == 0)
		snprintf(buf, LEASE_MAX, "no lease");
	else
		snprintf(buf, LEASE_MAX, "lease %" PRIu64 "%s%s", id,
			 lease && *lease->name ? " " : "", lease ? lease->name : "");
}

/* ---- text ----------------------------------------------------------------------------------- */

static void print_pipes(const struct rack *rack)
{
	for (size_t i = 0; i < count_all(rack); i++) {
		unsigned n = count_pipe(rack, i);
		char label[LABEL_MAX];

		printf("%s  ", label_of(rack, i, label));
		putchar(letter_of(rack, slot_at(rack, i)));
		while (i + 1 < count_all(rack) && !begins_pipe(rack, i + 1))
			putchar(letter_of(rack, slot_at(rack, ++i)));
		print_line(stdout, "  %u queue%s", n, print_s(n));
	}
}

static void add_slot(struct table *table, const struct command *command, const struct rack *rack,
		     size_t i)
{
	const struct gpuarb_queue_slot *slot = slot_at(rack, i);
	char lease[LEASE_MAX], priority[PRIORITY_NAME];

	lease_name(command, slot->lease, lease);
	table_add(table, "%c", letter_of(rack, slot));
	if (i >= rack->n)
		table_add(table, "SDMA %u.%u", slot->pipe, slot->queue);
	else if (rack->gpu->xccs > 1)
		table_add(table, "%u.%u.%u", slot->xcc, slot->pipe, slot->queue);
	else
		table_add(table, "%u.%u", slot->pipe, slot->queue);
	table_number(table, slot->pid);
	TABLE_CELLS(table, *slot->command ? slot->command : "?", slot->pid ? lease : "?",
		    i < rack->n ? priority_name(slot->priority, priority) : "-", slot->vmid);
}

static void print_active(const struct command *command, const struct rack *rack)
{
	static const char *const one[] = { "",      "PIPE.SLOT", "PID",  "COMMAND",
					   "LEASE", "PRIORITY",  "VMID", NULL };
	static const char *const many[] = { "",      "XCC.PIPE.SLOT", "PID",  "COMMAND",
					    "LEASE", "PRIORITY",      "VMID", NULL };
	_cleanup_(table_done) struct table table = { .heads = rack->gpu->xccs > 1 ? many : one };
	const struct gpuarb_queue_slot *slot;

	for (size_t i = 0; (slot = slot_at(rack, i)); i++)
		if (slot->active)
			add_slot(&table, command, rack, i);
	table_print(&table, command, stdout);
}

static void print_rack(const struct command *command, const struct rack *rack)
{
	print_line(stdout, "%s  %s, %zu of %zu queue slots in use, %u pipes of %u (%s)",
		   rack->gpu->name, rack->gpu->device, rack->active, rack->n, rack->gpu->pipes,
		   rack->gpu->queues_per_pipe, rack->source);
	if (rack->n_sdma > 0)
		print_line(stdout, "%zu of %zu slots of SDMA engines in use", rack->active_sdma,
			   rack->n_sdma);
	print_pipes(rack);
	if (rack->without > 0)
		print_line(stdout, "%u of %u compute queue%s: inactive, or waiting for a slot",
			   rack->without, rack->queues, print_s(rack->queues));
	print_active(command, rack);
	if (rack->n_sdma == 0)
		print_line(stdout, "the slots of SDMA engines are not visible");
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void json_slot(struct json_object *list, const struct gpuarb_queue_slot *slot, bool sdma)
{
	struct json_object *map = json_map(list, NULL);

	json_number(map, "queue", slot->queue);
	json_flag(map, "active", slot->active);
	if (!slot->active)
		return;
	JSON_FIELDS(map, ("pid", slot->pid, 0), ("command", slot->command, ""),
		    ("lease", slot->lease, 0));
	if (!sdma)
		json_number(map, "priority", slot->priority);
	json_number(map, "vmid", slot->vmid);
}

/* Slots from first on to the one before end, in a list for each pipe or engine. */
static void json_slots(struct json_object *map, const char *key, const struct rack *rack,
		       size_t first, size_t end)
{
	struct json_object *lists = json_list(map, key), *pipe, *slots = NULL;
	bool sdma = first == rack->n;

	for (size_t i = first; i < end; i++) {
		const struct gpuarb_queue_slot *slot = slot_at(rack, i);

		if (begins_pipe(rack, i)) {
			pipe = json_map(lists, NULL);
			if (!sdma)
				json_number(pipe, "xcc", slot->xcc);
			json_number(pipe, sdma ? "engine" : "pipe", slot->pipe);
			json_number(pipe, "queues", count_pipe(rack, i));
			slots = json_list(pipe, "slots");
		}
		json_slot(slots, slot, sdma);
	}
}

static void json_rack(struct json_object *list, const struct rack *rack)
{
	struct json_object *map = json_map(list, NULL);

	JSON_FIELDS(map, ("gpu", rack->gpu->name), ("usec", gpuarb_slots_usec(rack->slots)),
		    ("pipes", rack->gpu->pipes), ("queues_per_pipe", rack->gpu->queues_per_pipe),
		    ("pipes_source", rack->source, ""), ("queues", rack->queues),
		    ("queues_without_slot", rack->without),
		    ("sdma", rack->n_sdma > 0 ? "visible" : "not visible"));
	json_slots(map, "pipe_list", rack, 0, rack->n);
	json_slots(map, "sdma_list", rack, rack->n, count_all(rack));
}

static void print_json(const struct racks *racks)
{
	struct json_object *list = json_list(NULL, NULL);

	for (size_t i = 0; i < racks->n; i++)
		json_rack(list, &racks->list[i]);
	json_print(stdout, list);
}

/* ---- SVG ------------------------------------------------------------------------------------ */

#define NAME_CHARACTERS 44            /* of a lease */
#define LABEL_ONE (SVG_LABEL * 2 / 3) /* without an XCC */

static int number_of(const struct rack *rack, const struct gpuarb_queue_slot *slot)
{
	return slot->active ? (int)index_of_pid(rack, slot->pid) : SVG_FREE;
}

/* Draws the pipes below each other. */
static void svg_pipes(struct svg *svg, const struct rack *rack)
{
	for (size_t i = 0; i < count_all(rack); i++) {
		const struct gpuarb_queue_slot *slot = slot_at(rack, i);
		char label[LABEL_MAX];

		if (begins_pipe(rack, i)) {
			svg->y += i > 0 ? SVG_CELL : 0;
			svg->y += i == rack->n ? SVG_GAP : 0;
			svg_row(svg, label_of(rack, i, label),
				rack->gpu->xccs > 1 ? SVG_LABEL : LABEL_ONE);
		}
		svg_cell(svg, number_of(rack, slot), letter_of(rack, slot));
	}
	svg->y += SVG_CELL + SVG_GAP;
}

/* A line for each process, and one for free slots. */
static void svg_processes(struct svg *svg, const struct command *command, const struct rack *rack)
{
	const struct gpuarb_queue_slot *slot;
	int next = 0;
	char lease[LEASE_MAX], name[SVG_NAME(NAME_CHARACTERS)];

	for (size_t i = 0; (slot = slot_at(rack, i)); i++) {
		if (number_of(rack, slot) != next)
			continue;
		lease_name(command, slot->lease, lease);
		svg_legend(svg, next++, letter_of(rack, slot), "pid %u %s, %s", slot->pid,
			   slot->command, svg_cut(lease, NAME_CHARACTERS, name));
	}
	svg_legend(svg, SVG_FREE, ' ', "free");
}

static void draw_svg(struct svg *svg, const void *drawing)
{
	const struct racks *racks = drawing;

	for (size_t i = 0; i < racks->n; i++) {
		const struct rack *rack = &racks->list[i];

		svg_title(svg, rack->gpu, "%zu of %zu queue slots in use", rack->active, rack->n);
		svg_pipes(svg, rack);
		svg_processes(svg, racks->command, rack);
		svg->y += SVG_LINE;
	}
}

/* ---- the verb ------------------------------------------------------------------------------- */

static int read_rack(const struct command *command, const struct gpuarb_gpu *gpu, struct rack *rack)
{
	int r = gpuarb_read_slots(command->gpuarb, gpu->name, &rack->slots);

	if (r < 0)
		return fail_asked(command, r);
	rack->gpu = gpu;
	return rack_count(command, rack);
}

/* A reading tells the daemon the number of pipes, and leases may have come: takes another snapshot,
 * and finds the GPUs in it. */
static int refresh(struct command *command, struct racks *racks)
{
	struct gpuarb_view *before = TAKE_PTR(command->view);
	int r = session_refresh(command);

	r = r < 0 ? fail_asked(command, r) : EXIT_OK;
	for (size_t i = 0; i < racks->n && r == EXIT_OK; i++) {
		struct rack *rack = &racks->list[i];

		r = session_gpu(command, rack->gpu->name, &rack->gpu);
		if (r == EXIT_OK)
			rack->source = gpuarb_view_pipes_source(
				command->view, (size_t)(rack->gpu - command->gpus));
	}
	gpuarb_view_free(before);
	return r;
}

static void print_racks(const struct racks *racks)
{
	for (size_t i = 0; i < racks->n; i++) {
		if (i > 0)
			putchar('\n');
		print_rack(racks->command, &racks->list[i]);
	}
	if (racks->n == 0)
		print_line(stdout, "No GPU: gpuarbd found none on this machine.");
}

static int print(const struct command *command, const struct racks *racks)
{
	if (command->svg)
		return svg_write(command, draw_svg, racks);
	if (command->json)
		print_json(racks);
	else
		print_racks(racks);
	return EXIT_OK;
}

int run_slots(struct command *command)
{
	_cleanup_(racks_done) struct racks racks = { .command = command };
	const struct gpuarb_gpu *gpus = command->gpus;
	size_t n = command->n_gpus;
	int r = EXIT_OK;

	if (command->n_rest > 0) {
		r = session_gpu(command, command->rest[0], &gpus);
		n = 1;
	}
	racks.list = calloc(n + 1, sizeof(*racks.list));
	if (!racks.list)
		return fail(command, EXIT_FAILED, "out of memory");
	for (; racks.n < n && r == EXIT_OK; racks.n++)
		r = read_rack(command, &gpus[racks.n], &racks.list[racks.n]);
	if (r == EXIT_OK)
		r = refresh(command, &racks);
	return r == EXIT_OK ? print(command, &racks) : r;
}
