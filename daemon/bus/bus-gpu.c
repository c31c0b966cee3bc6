/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus/bus-objects.h"
#include "bus/bus-signals.h"
#include "bus/bus-write.h"
#include "core/change/arbiter.h"
#include "dbus/names.h"

static const void *gpu_at(const struct arbiter *arbiter, const char *path)
{
	uint64_t i;

	if (bus_path_number(path, GPUARB_PATH_GPU, &i) < 0 || i >= arbiter->n_gpus ||
	    arbiter->gpus[i].absent)
		return NULL;
	return &arbiter->gpus[i];
}

static size_t count_gpus(const struct arbiter *arbiter)
{
	return arbiter->n_gpus;
}

static uint64_t gpu_number(const struct bus *bus, size_t i)
{
	return bus->arbiter->gpus[i].absent ? BUS_NO_NODE : i;
}

static int append_target(sd_bus_message *m, const struct gpu *gpu)
{
	char name[32];

	gpu_info_target_name(gpu->info.gfx_target, name, sizeof(name));
	return sd_bus_message_append_basic(m, 's', name);
}

/* The kinds of events that there were. */
static int append_driver_events(sd_bus_message *m, const struct gpu *gpu)
{
	bus_open(m, "{st}");
	for (size_t i = 0; i < DRIVER_EVENT_KINDS; i++)
		if (gpu->driver_events[i] > 0)
			sd_bus_message_append(m, "{st}", driver_event_names[i],
					      gpu->driver_events[i]);
	return bus_close(m);
}

static double fairness(const struct arbiter *arbiter, const struct gpu *gpu)
{
	return lend_fairness(arbiter, (unsigned)(gpu - arbiter->gpus));
}

/* A simulated GPU has no queues. */
static uint64_t masks_observed(const struct arbiter *arbiter, const struct gpu *gpu)
{
	return arbiter->verifies && gpu->info.kfd_gpu_id ? arbiter->masks_usec : 0;
}

static const char *unseen(const struct arbiter *arbiter, const struct gpu *gpu)
{
	return gpu->info.kfd_gpu_id ? arbiter->unseen : "";
}

static int append_floor_excess(sd_bus_message *reply, const struct arbiter *arbiter,
			       const struct gpu *gpu)
{
	_cleanup_(diagnostics_done) struct diagnostics found = { 0 };

	settings_check_floors(arbiter->settings, &gpu->info, true, &found);
	return bus_append_text(reply, found.n > 0 ? found.list[0].text : "");
}

static int append_slowdowns(sd_bus_message *m, const struct calibrated *calibrated)
{
	bus_open(m, "a{sv}");
	for (size_t i = 0; i < calibrated->n_slowdowns; i++) {
		const struct slowdown *row = &calibrated->slowdowns[i];

		sd_bus_message_append(m, "a{sv}", 3, "kind", "s", neighbours_names[row->kind],
				      "neighbours", "u", row->neighbours, "slowdown", "u",
				      row->percent);
	}
	return bus_close(m);
}

static int append_memory(sd_bus_message *m, const struct gpu *gpu)
{
	char part[12] = "", text[GPU_NAME_MAX + sizeof(part)];

	if (gpu->info.memory > 0)
		snprintf(part, sizeof(part), "@%u", gpu->info.memory);
	snprintf(text, sizeof(text), "%.*s%s", (int)strcspn(gpu->info.name, "/"), gpu->info.name,
		 part);
	return sd_bus_message_append(m, "s", text);
}

/* clang-format off */
#define PROPERTIES(ROW)                                                                          \
	ROW(Name, "s", CONST, VALUE("s", gpu->info.name))                                        \
	ROW(Device, "s", CONST, bus_append_text(reply, gpu->info.device))                        \
	ROW(GfxTarget, "s", CONST, append_target(reply, gpu))                                    \
	ROW(KfdGpuId, "u", CONST, VALUE("u", gpu->info.kfd_gpu_id))                              \
	ROW(Xccs, "u", CONST, VALUE("u", gpu->info.geometry.xccs))                               \
	ROW(ShaderEngines, "u", CONST, VALUE("u", gpu->info.geometry.engines))                   \
	ROW(Cus, "u", CONST, VALUE("u", gpu->cus))                                               \
	ROW(CusPerShaderEngine, "aau", CONST, bus_append_engine_cus(reply, &gpu->info.geometry)) \
	ROW(CusPerShaderArray, "aaau", CONST, bus_append_array_cus(reply, &gpu->info.geometry))  \
	ROW(CusFree, "u", CHANGES, VALUE("u", gpu_cus_free(gpu)))                                \
	ROW(FloorExcess, "s", CHANGES, append_floor_excess(reply, arbiter, gpu))                \
	ROW(Fairness, "d", CHANGES, VALUE("d", fairness(arbiter, gpu))) \
	ROW(WgpMode, "b", CONST, VALUE("b", gpu->info.geometry.wgp))                             \
	ROW(HarvestKnown, "b", CONST, VALUE("b", gpu->info.harvest_known))                       \
	ROW(Law, "s", CHANGES, VALUE("s", law_names[gpu->info.law.basis]))                         \
	ROW(LawSource, "s", CHANGES, bus_append_text(reply, gpu->info.law.source))               \
	ROW(LawConstant, "u", CHANGES, VALUE("u", gpu->info.law.constant))                       \
	ROW(Calibrated, "s", CHANGES, bus_append_text(reply, gpu->info.calibrated.date))         \
	ROW(CalibrationProblem, "s", CHANGES,                                                    \
	    bus_append_text(reply, gpu->info.calibrated.problem))                                \
	ROW(PreemptionUsec, "u", CHANGES, VALUE("u", gpu->info.calibrated.preemption_usec))      \
	ROW(Slowdowns, "aa{sv}", CHANGES, append_slowdowns(reply, &gpu->info.calibrated))        \
	ROW(QueueSlots, "u", CONST, VALUE("u", gpu->info.queue_slots))                           \
	ROW(QueueSlotsFree, "u", CHANGES, VALUE("u", (uint32_t)gpu_free(gpu).queues))                      \
	ROW(ProcessSlots, "u", CONST, VALUE("u", gpu->info.process_slots))                       \
	ROW(ProcessSlotsFree, "u", CHANGES, VALUE("u", (uint32_t)gpu_free(gpu).processes))                 \
	ROW(Pipes, "u", CHANGES, VALUE("u", gpu->pipes_observed ?: gpu->info.pipes))             \
	ROW(QueuesPerPipe, "u", CHANGES,                                                         \
	    VALUE("u", gpu->queues_per_pipe_observed ?: gpu->info.queues_per_pipe))              \
	ROW(PipesSource, "s", CHANGES, VALUE("s", gpu->pipes_observed ? "observed" : "table"))   \
	ROW(SdmaQueues, "u", CONST, VALUE("u", gpu->info.sdma_queues))                           \
	ROW(SdmaXgmiQueues, "u", CONST, VALUE("u", gpu->info.sdma_xgmi_queues))                  \
	ROW(VramBytes, "t", CONST, VALUE("t", gpu->info.vram_bytes))                             \
	ROW(VramFree, "t", CHANGES, VALUE("t", gpu_free(gpu).vram))                              \
	ROW(SystemMemory, "b", CONST, VALUE("b", gpu->info.system_memory))                       \
	ROW(VramPressure, "b", CHANGES, VALUE("b", gpu->vram_pressure))                          \
	ROW(Memory, "s", CONST, append_memory(reply, gpu))                                       \
	ROW(Scheduler, "s", CONST, VALUE("s", scheduler_names[gpu->info.scheduler]))              \
	ROW(Unmanaged, "aa{sv}", CHANGES, bus_append_unmanaged(reply, gpu))                      \
	ROW(Graphics, "s", CHANGES, VALUE("s", graphics_state_names[gpu->graphics.state]))       \
	ROW(Clients, "aa{sv}", 0, bus_append_clients(reply, gpu))                                \
	ROW(Observed, "aa{sv}", 0, bus_append_covers(reply, arbiter, gpu))         \
	ROW(MasksObserved, "t", 0, VALUE("t", masks_observed(arbiter, gpu)))                       \
	ROW(Unseen, "s", 0, bus_append_text(reply, unseen(arbiter, gpu)))                       \
	ROW(Oversubscribed, "b", CHANGES, VALUE("b", gpu->observed.oversubscribed))              \
	ROW(Draining, "b", CHANGES, VALUE("b", gpu->draining))                                   \
	ROW(NamedOnly, "b", CHANGES, VALUE("b", gpu->named_only))                                \
	ROW(BarredFor, "t", CHANGES, VALUE("t", gpu->barrier.rank.id))                           \
	ROW(DriverEvents, "a{st}", CHANGES, append_driver_events(reply, gpu))
/* clang-format on */

#define APPENDER(name, type, flags, append) BUS_APPENDER(gpu, name, append)
PROPERTIES(APPENDER)

static const struct bus_property properties[] = { PROPERTIES(BUS_PROPERTY) };
_Static_assert(ARRAY_SIZE(properties) <= BUS_PROPERTIES_MAX, "bus_emit() has room for them");

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	PROPERTIES(BUS_PROPERTY_ROW) SD_BUS_VTABLE_END,
};

const struct bus_kind bus_gpus = {
	.prefix = GPUARB_PATH_GPU,
	.interface = GPUARB_INTERFACE_GPU,
	.properties = properties,
	.n_properties = ARRAY_SIZE(properties),
	.vtable = vtable,
	.count = count_gpus,
	.number = gpu_number,
	.at = gpu_at,
};

void bus_tell_gpu(struct bus *bus, unsigned gpu, enum bus_change change)
{
	bus_signal(bus, &bus_gpus, gpu, change);
}
