/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "bus/bus-private.h"
#include "bus/bus-write.h"
#include "dbus/names.h"

static const struct gpu *gpu_at(const struct bus *bus, const char *path)
{
	uint64_t i;

	if (bus_path_number(path, GPUARB_PATH_GPU, &i) < 0 || i >= bus->arbiter->n_gpus ||
	    bus->arbiter->gpus[i].absent)
		return NULL;
	return &bus->arbiter->gpus[i];
}

/* Any call to a path below gpu/ that is no GPU is answered with NoSuchGpu. */
static int find(sd_bus *, const char *path, const char *, void *userdata, void **ret_found,
		sd_bus_error *error)
{
	struct bus *bus = userdata;

	if (strcmp(path, GPUARB_PATH_GPU) == 0)
		return 0;
	if (!gpu_at(bus, path))
		return sd_bus_error_setf(error, GPUARB_ERROR_NO_SUCH_GPU,
					 "%s: no such GPU: it does not exist, or was removed",
					 path);
	*ret_found = bus;
	return 1;
}

static size_t count_present(const struct bus *bus)
{
	size_t n = 0;

	for (size_t i = 0; i < bus->arbiter->n_gpus; i++)
		n += !bus->arbiter->gpus[i].absent;
	return n;
}

/* The number of the i-th GPU that is present. */
static uint64_t gpu_number(const struct bus *bus, size_t i)
{
	uint64_t number = 0;

	while (bus->arbiter->gpus[number].absent || i-- > 0)
		number++;
	return number;
}

/* sd-bus passes the path of the object that is introspected, which can be a parent. */
static int enumerate(sd_bus *, const char *, void *userdata, char ***ret_nodes, sd_bus_error *)
{
	const struct bus *bus = userdata;

	return bus_list_nodes(bus, GPUARB_PATH_GPU, count_present(bus), gpu_number, ret_nodes);
}

#define PROPERTY(name, type, value)                               \
	BUS_GETTER(name)                                          \
	{                                                         \
		const struct gpu *gpu = gpu_at(userdata, path);   \
                                                                  \
		return sd_bus_message_append(reply, type, value); \
	}

PROPERTY(get_name, "s", gpu->info.name)
PROPERTY(get_kfd_gpu_id, "u", gpu->info.kfd_gpu_id)
PROPERTY(get_xccs, "u", gpu->info.geometry.xccs)
PROPERTY(get_shader_engines, "u", gpu->info.geometry.engines)
PROPERTY(get_cus, "u", gpu->cus)
PROPERTY(get_cus_free, "u", gpu_cus_free(gpu))
PROPERTY(get_wgp_mode, "b", gpu->info.geometry.wgp)
PROPERTY(get_harvest_known, "b", gpu->info.harvest_known)
PROPERTY(get_law, "s", gpu->info.law_measured ? "measured" : "assumed")
PROPERTY(get_queue_slots, "u", gpu->info.queue_slots)
PROPERTY(get_queue_slots_free, "u", gpu_queues_free(gpu))
PROPERTY(get_process_slots, "u", gpu->info.process_slots)
PROPERTY(get_process_slots_free, "u", gpu_processes_free(gpu))
PROPERTY(get_pipes, "u", gpu->info.pipes)
PROPERTY(get_queues_per_pipe, "u", gpu->info.queues_per_pipe)
PROPERTY(get_sdma_queues, "u", gpu->info.sdma_queues)
PROPERTY(get_vram_bytes, "t", gpu->info.vram_bytes)
PROPERTY(get_vram_free, "t", gpu_vram_free(gpu))
PROPERTY(get_scheduler, "s", scheduler_name(gpu->info.scheduler))
PROPERTY(get_oversubscribed, "b", gpu->observed.oversubscribed)
PROPERTY(get_draining, "b", gpu->draining)

BUS_GETTER(get_device)
{
	return bus_append_text(reply, gpu_at(userdata, path)->info.device);
}

BUS_GETTER(get_gfx_target)
{
	char name[32];

	gpu_info_target_name(gpu_at(userdata, path)->info.gfx_target, name, sizeof(name));
	return sd_bus_message_append(reply, "s", name);
}

BUS_GETTER(get_cus_per_shader_engine)
{
	return bus_append_engine_cus(reply, &gpu_at(userdata, path)->info.geometry);
}

BUS_GETTER(get_cus_per_shader_array)
{
	return bus_append_array_cus(reply, &gpu_at(userdata, path)->info.geometry);
}

BUS_GETTER(get_unmanaged)
{
	return bus_append_unmanaged(reply, gpu_at(userdata, path));
}

#define CONST SD_BUS_VTABLE_PROPERTY_CONST
#define CHANGES SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_PROPERTY("Name", "s", get_name, 0, CONST),
	SD_BUS_PROPERTY("Device", "s", get_device, 0, CONST),
	SD_BUS_PROPERTY("GfxTarget", "s", get_gfx_target, 0, CONST),
	SD_BUS_PROPERTY("KfdGpuId", "u", get_kfd_gpu_id, 0, CONST),
	SD_BUS_PROPERTY("Xccs", "u", get_xccs, 0, CONST),
	SD_BUS_PROPERTY("ShaderEngines", "u", get_shader_engines, 0, CONST),
	SD_BUS_PROPERTY("Cus", "u", get_cus, 0, CONST),
	SD_BUS_PROPERTY("CusPerShaderEngine", "aau", get_cus_per_shader_engine, 0, CONST),
	SD_BUS_PROPERTY("CusPerShaderArray", "aaau", get_cus_per_shader_array, 0, CONST),
	SD_BUS_PROPERTY("CusFree", "u", get_cus_free, 0, CHANGES),
	SD_BUS_PROPERTY("WgpMode", "b", get_wgp_mode, 0, CONST),
	SD_BUS_PROPERTY("HarvestKnown", "b", get_harvest_known, 0, CONST),
	SD_BUS_PROPERTY("Law", "s", get_law, 0, CONST),
	SD_BUS_PROPERTY("QueueSlots", "u", get_queue_slots, 0, CONST),
	SD_BUS_PROPERTY("QueueSlotsFree", "u", get_queue_slots_free, 0, CHANGES),
	SD_BUS_PROPERTY("ProcessSlots", "u", get_process_slots, 0, CONST),
	SD_BUS_PROPERTY("ProcessSlotsFree", "u", get_process_slots_free, 0, CHANGES),
	SD_BUS_PROPERTY("Pipes", "u", get_pipes, 0, CONST),
	SD_BUS_PROPERTY("QueuesPerPipe", "u", get_queues_per_pipe, 0, CONST),
	SD_BUS_PROPERTY("SdmaQueues", "u", get_sdma_queues, 0, CONST),
	SD_BUS_PROPERTY("VramBytes", "t", get_vram_bytes, 0, CONST),
	SD_BUS_PROPERTY("VramFree", "t", get_vram_free, 0, CHANGES),
	SD_BUS_PROPERTY("Scheduler", "s", get_scheduler, 0, CONST),
	SD_BUS_PROPERTY("Unmanaged", "aa{sv}", get_unmanaged, 0, CHANGES),
	SD_BUS_PROPERTY("Oversubscribed", "b", get_oversubscribed, 0, CHANGES),
	SD_BUS_PROPERTY("Draining", "b", get_draining, 0, CHANGES),
	SD_BUS_VTABLE_END,
};

int bus_export_gpus(struct bus *bus)
{
	int r;

	r = sd_bus_add_fallback_vtable(bus->sd, NULL, GPUARB_PATH_GPU, GPUARB_INTERFACE_GPU, vtable,
				       find, bus);
	return r < 0 ? r
		     : sd_bus_add_node_enumerator(bus->sd, NULL, GPUARB_PATH_GPU, enumerate, bus);
}

struct gpu_path {
	char text[sizeof(GPUARB_PATH_GPU) + 12];
};

static struct gpu_path gpu_path(unsigned gpu)
{
	struct gpu_path path;

	snprintf(path.text, sizeof(path.text), GPUARB_PATH_GPU "/%u", gpu);
	return path;
}

void bus_tell_gpu_added(struct bus *bus, unsigned gpu)
{
	sd_bus_emit_object_added(bus->sd, gpu_path(gpu).text);
}

void bus_tell_gpu_removed(struct bus *bus, unsigned gpu)
{
	bus_emit_removed(bus, gpu_path(gpu).text, GPUARB_INTERFACE_GPU);
}

void bus_tell_gpu(struct bus *bus, unsigned gpu)
{
	sd_bus_emit_properties_changed(bus->sd, gpu_path(gpu).text, GPUARB_INTERFACE_GPU, "CusFree",
				       "QueueSlotsFree", "ProcessSlotsFree", "VramFree",
				       "Unmanaged", "Oversubscribed", "Draining", NULL);
}
