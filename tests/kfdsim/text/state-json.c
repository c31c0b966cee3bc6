/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>

#include "util/base.h"
#include "kfdsim/text/state.h"
#include "kfdsim/text/text.h"

/* debug/kfdsim/state: what its members mean is in README.md. */

static void put(struct json_object *object, const char *key, struct json_object *value)
{
	json_object_object_add(object, key, value);
}

static void put_number(struct json_object *object, const char *key, uint64_t value)
{
	put(object, key, json_object_new_uint64(value));
}

static void put_text(struct json_object *object, const char *key, const char *value)
{
	put(object, key, value ? json_object_new_string(value) : NULL);
}

static void put_bool(struct json_object *object, const char *key, bool value)
{
	put(object, key, json_object_new_boolean(value));
}

static void append_text(struct json_object *array, const char *text)
{
	json_object_array_add(array, json_object_new_string(text));
}

static struct json_object *reasons(const struct sim_gpu *gpu)
{
	struct json_object *array = json_object_new_array();

	if (gpu->too_many_queues)
		append_text(array, "queues");
	if (gpu->too_many_processes)
		append_text(array, "processes");
	if (gpu->too_many_gws)
		append_text(array, "gws");
	return array;
}

static struct json_object *slots(const struct sim_gpu *gpu)
{
	struct json_object *array = json_object_new_array();
	unsigned pipes = max_u(gpu->info.pipes, 1);

	for (unsigned i = 0; i < SIM_HQDS_MAX; i++) {
		const struct sim_queue *queue = gpu->hqds[i];
		struct json_object *object;

		if (!queue)
			continue;
		object = json_object_new_object();
		put_number(object, "slot", i);
		put_number(object, "pipe", i % pipes);
		put_number(object, "queue", i / pipes);
		put_number(object, "pid", (uint64_t)queue->process->pid);
		put_number(object, "id", queue->id);
		json_object_array_add(array, object);
	}
	return array;
}

static struct json_object *gpu_object(const struct sim_gpu *gpu)
{
	struct json_object *object = json_object_new_object();

	put_text(object, "name", gpu->info.name);
	put_number(object, "gpu_id", gpu->info.kfd_gpu_id);
	put_bool(object, "gone", gpu->gone);
	put_number(object, "queue_slots", gpu->info.queue_slots);
	put_number(object, "process_slots", gpu->info.process_slots);
	put_number(object, "compute_queues", gpu->compute_queues);
	put_number(object, "sdma_queues", gpu->sdma_queues);
	put_number(object, "gws_queues", gpu->gws_queues);
	put_number(object, "processes", gpu->processes);
	put_bool(object, "oversubscribed", gpu->oversubscribed);
	put(object, "reasons", reasons(gpu));
	put_number(object, "oversubscriptions", gpu->oversubscriptions);
	put_number(object, "peak_queues", gpu->peak_queues);
	put_number(object, "peak_processes", gpu->peak_processes);
	put_number(object, "run_lists", gpu->run_lists);
	put(object, "slots", slots(gpu));
	put(object, "model_late_ns", gpu->timing ? json_object_new_uint64(gpu->late_ns) : NULL);
	return object;
}

static const char *type_name(enum sim_queue_type type)
{
	return type == SIM_COMPUTE ? "compute" : type == SIM_SDMA ? "sdma" : "sdma-xgmi";
}

static void put_mask(struct json_object *object, const struct sim_queue *queue)
{
	_cleanup_(freep) char *mask = NULL;

	if (queue->mask_bits > 0)
		mask = state_mask(queue->mask, queue->mask_bits);
	put_text(object, "mask", mask);
	put_number(object, "mask_bits", queue->mask_bits);
}

static struct json_object *masks(const struct state_queue *queue)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < queue->n_masks; i++)
		append_text(array, queue->masks[i]);
	return array;
}

static struct json_object *engines(const struct sim_queue *queue)
{
	const struct geometry *geometry = &queue->gpu->info.geometry;
	struct json_object *array = json_object_new_array();
	char text[16];

	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++) {
		struct json_object *words = json_object_new_array();

		for (unsigned engine = 0; engine < geometry->engines; engine++) {
			snprintf(text, sizeof(text), "0x%08x", queue->engines[xcc][engine]);
			append_text(words, text);
		}
		json_object_array_add(array, words);
	}
	return array;
}

static struct json_object *three(const uint32_t *numbers)
{
	struct json_object *array = json_object_new_array();

	for (unsigned i = 0; i < 3; i++)
		json_object_array_add(array, json_object_new_uint64(numbers[i]));
	return array;
}

static struct json_object *last_dispatch(const struct sim_queue *queue)
{
	struct json_object *object;

	if (queue->dispatches == 0)
		return NULL;
	object = json_object_new_object();
	put(object, "grid", three(queue->last.grid));
	put(object, "group", three(queue->last.group));
	return object;
}

static struct json_object *model_ns(const struct sim_queue *queue)
{
	struct json_object *object;

	if (queue->model_ns.all == 0)
		return NULL;
	object = json_object_new_object();
	put_number(object, "last", queue->model_ns.last);
	put_number(object, "most", queue->model_ns.most);
	put_number(object, "all", queue->model_ns.all);
	return object;
}

static struct json_object *queue_object(const struct state_queue *record)
{
	const struct sim_queue *queue = record->live ? record->live : &record->last;
	struct json_object *object = json_object_new_object();

	put_number(object, "id", queue->id);
	put_text(object, "gpu", queue->gpu->info.name);
	put_number(object, "gpu_id", queue->gpu->info.kfd_gpu_id);
	put_text(object, "type", type_name(queue->type));
	put_bool(object, "alive", record->live != NULL);
	put_bool(object, "active", record->live && queue->active);
	put_number(object, "priority", queue->priority);
	put_number(object, "percentage", queue->percentage);
	put_mask(object, queue);
	put(object, "masks", masks(record));
	put(object, "engines", engines(queue));
	put_number(object, "packets", queue->packets);
	put_number(object, "dispatches", queue->dispatches);
	put_number(object, "copied", queue->copied);
	put(object, "last", last_dispatch(queue));
	put_bool(object, "running", record->live && queue->dispatched);
	put(object, "model_ns", model_ns(queue));
	put_bool(object, "stopped", queue->stopped);
	put_text(object, "note", queue->note[0] ? queue->note : NULL);
	return object;
}

static struct json_object *process_object(const struct sim *sim,
					  const struct state_process *process)
{
	struct json_object *object = json_object_new_object();
	struct json_object *peaks = json_object_new_object(), *queues = json_object_new_array();

	for (size_t i = 0; i < sim->n_gpus; i++)
		put_number(peaks, sim->gpus[i].info.name, process->gpu_peak[i]);
	for (const struct state_queue *queue = process->queues; queue; queue = queue->next)
		json_object_array_add(queues, queue_object(queue));
	put_number(object, "pid", (uint64_t)process->pid);
	put_text(object, "command", process->command);
	put_bool(object, "alive", state_alive(sim, process));
	put_number(object, "made", process->made);
	put_number(object, "peak", process->peak);
	put(object, "peaks", peaks);
	put(object, "queues", queues);
	return object;
}

static struct json_object *state_object(const struct sim *sim)
{
	struct json_object *object = json_object_new_object();
	struct json_object *gpus = json_object_new_array(), *processes = json_object_new_array();

	for (size_t i = 0; i < sim->n_gpus; i++)
		json_object_array_add(gpus, gpu_object(&sim->gpus[i]));
	for (const struct state_process *p = sim->record ? sim->record->processes : NULL; p;
	     p = p->next)
		json_object_array_add(processes, process_object(sim, p));
	put_bool(object, "timing", sim->timing);
	put_number(object, "topology_generation", sim->topology_generation);
	put_number(object, "forgotten", sim->record ? sim->record->forgotten : 0);
	put(object, "gpus", gpus);
	put(object, "processes", processes);
	return object;
}

int state_print(const struct sim *sim, FILE *out)
{
	struct json_object *object = state_object(sim);
	const char *text = json_object_to_json_string_ext(
		object,
		JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);

	if (text)
		fprintf(out, "%s\n", text);
	json_object_put(object);
	return text ? 0 : -ENOMEM;
}
