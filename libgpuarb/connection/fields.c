/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which key of the daemon fills which member: partitions, refusals, leases and GPUs. */

#include "libgpuarb/connection/fields.h"

#include <errno.h>
#include <string.h>

#include "libgpuarb/connection/read.h"

/* clang-format off */
#define FIELD(type_, key_, object, member) \
	{ .key = (key_), .type = (type_), .offset = offsetof(struct object, member) }
#define LIST(type_, key_, object, member, count)                                        \
	{                                                                               \
		.key = (key_), .type = (type_), .offset = offsetof(struct object, member), \
		.count_offset = offsetof(struct object, count)                          \
	}
#define SPECIAL(key_, read_) { .key = (key_), .read = (read_) }
/* clang-format on */

static const struct field partition_fields[] = {
	FIELD('s', "gpu", gpuarb_partition, gpu),
	FIELD('u', "kfd-gpu-id", gpuarb_partition, kfd_gpu_id),
	LIST('U', "cu-mask", gpuarb_partition, cu_mask, cu_mask_words),
	FIELD('u', "cus", gpuarb_partition, cus),
	FIELD('u', "cus-asked", gpuarb_partition, cus_asked),
	FIELD('u', "effective-cus", gpuarb_partition, effective_cus),
	LIST('U', "shader-engines", gpuarb_partition, shader_engines, n_shader_engines),
	FIELD('u', "queues", gpuarb_partition, queues),
	FIELD('u', "streams", gpuarb_partition, streams),
	FIELD('u', "processes", gpuarb_partition, processes),
	FIELD('u', "sdma-queues", gpuarb_partition, sdma_queues),
	FIELD('t', "vram", gpuarb_partition, vram),
	FIELD('u', "priority", gpuarb_partition, priority),
	LIST('U', "priorities-seen", gpuarb_partition, priorities_seen, n_priorities_seen),
	FIELD('s', "tier", gpuarb_partition, tier),
	LIST('S', "gaps", gpuarb_partition, gaps, n_gaps),
};

static const struct field refusal_fields[] = {
	FIELD('s', "gpu", gpuarb_refusal, gpu),
	FIELD('s', "reason", gpuarb_refusal, reason),
	FIELD('t', "asked", gpuarb_refusal, asked),
	FIELD('t', "free", gpuarb_refusal, free),
	FIELD('s', "hint", gpuarb_refusal, hint),
	FIELD('b', "retry", gpuarb_refusal, retry),
	LIST('T', "end", gpuarb_refusal, end, n_end),
	FIELD('b', "end-exact", gpuarb_refusal, end_exact),
};

static int read_processes(DBusMessageIter *value, struct arena *arena, void *object);

static const struct field fact_fields[] = {
	FIELD('s', "resource", gpuarb_refusal_facts, resource),
	FIELD('t', "total", gpuarb_refusal_facts, total),
	FIELD('t', "reserved", gpuarb_refusal_facts, reserved),
	FIELD('s', "key", gpuarb_refusal_facts, key),
	FIELD('t', "limit", gpuarb_refusal_facts, limit),
	FIELD('t', "held", gpuarb_refusal_facts, held),
	FIELD('s', "tenant", gpuarb_refusal_facts, tenant),
	FIELD('u', "uid", gpuarb_refusal_facts, uid),
	FIELD('s', "asked-class", gpuarb_refusal_facts, asked_class),
	FIELD('s', "limit-class", gpuarb_refusal_facts, limit_class),
	LIST('T', "fits", gpuarb_refusal_facts, fits, n_fits),
	FIELD('s', "fits-resource", gpuarb_refusal_facts, fits_resource),
	LIST('T', "leases", gpuarb_refusal_facts, leases, n_leases),
	FIELD('u', "lease-count", gpuarb_refusal_facts, lease_count),
	SPECIAL("processes", read_processes),
	FIELD('u', "process-count", gpuarb_refusal_facts, process_count),
	FIELD('t', "behind", gpuarb_refusal_facts, behind),
};

static const struct field process_fields[] = {
	FIELD('u', "pid", gpuarb_process, pid),
	FIELD('u', "uid", gpuarb_process, uid),
	FIELD('s', "command", gpuarb_process, command),
	FIELD('u', "queues", gpuarb_process, queues),
};

int read_partitions(DBusMessageIter *rows, struct arena *arena, const struct gpuarb_partition **ret,
		    size_t *ret_n, const char **ret_key)
{
	return read_rows(rows, partition_fields, ARRAY_SIZE(partition_fields), arena,
			 sizeof(struct gpuarb_partition), ret, ret_n, ret_key);
}

static int read_processes(DBusMessageIter *value, struct arena *arena, void *object)
{
	struct gpuarb_refusal_facts *facts = object;

	return read_rows(value, process_fields, ARRAY_SIZE(process_fields), arena,
			 sizeof(struct gpuarb_process), &facts->processes, &facts->n_processes,
			 NULL);
}

int read_refusals(DBusMessageIter *rows, struct arena *arena, struct refusals *ret,
		  const char **ret_key)
{
	struct gpuarb_refusal_facts *facts;
	struct refusals refusals;
	int r;

	r = read_rows(rows, refusal_fields, ARRAY_SIZE(refusal_fields), arena,
		      sizeof(struct gpuarb_refusal), &refusals.rows, &refusals.n, ret_key);
	if (r >= 0)
		r = read_rows(rows, fact_fields, ARRAY_SIZE(fact_fields), arena,
			      sizeof(struct gpuarb_refusal_facts), &facts, &refusals.n, ret_key);
	if (r < 0)
		return r;
	for (size_t i = 0; i < refusals.n; i++)
		facts[i].size = sizeof(facts[i]);
	refusals.facts = facts;
	*ret = refusals;
	return 0;
}

/* A lease while it is read: its public structure cannot grow. */
struct lease_reading {
	struct gpuarb_lease_info info;
	struct refusals waits_for;
};

static int read_lease_partitions(DBusMessageIter *value, struct arena *arena, void *object)
{
	struct lease_reading *lease = object;

	return read_partitions(value, arena, &lease->info.partitions, &lease->info.n_partitions,
			       NULL);
}

static int read_waits_for(DBusMessageIter *value, struct arena *arena, void *object)
{
	struct lease_reading *lease = object;

	return read_refusals(value, arena, &lease->waits_for, NULL);
}

static const struct field lease_fields[] = {
	FIELD('t', "Id", gpuarb_lease_info, id),
	FIELD('s', "Name", gpuarb_lease_info, name),
	FIELD('s', "State", gpuarb_lease_info, state),
	FIELD('s', "Class", gpuarb_lease_info, lease_class),
	FIELD('s', "Tenant", gpuarb_lease_info, tenant),
	FIELD('u', "OwnerUid", gpuarb_lease_info, owner_uid),
	FIELD('u', "OwnerPid", gpuarb_lease_info, owner_pid),
	FIELD('s', "OwnerUnit", gpuarb_lease_info, owner_unit),
	FIELD('b', "Adaptable", gpuarb_lease_info, adaptable),
	FIELD('t', "Generation", gpuarb_lease_info, generation),
	FIELD('s', "Tier", gpuarb_lease_info, tier),
	SPECIAL("Partitions", read_lease_partitions),
	FIELD('u', "Position", gpuarb_lease_info, position),
	FIELD('s', "Reason", gpuarb_lease_info, reason),
	SPECIAL("WaitsFor", read_waits_for),
	FIELD('t', "Deadline", gpuarb_lease_info, deadline),
	FIELD('t', "Disturbances", gpuarb_lease_info, disturbances),
};

int read_lease(DBusMessageIter *dict, struct arena *arena, struct gpuarb_lease_info *ret,
	       struct refusals *ret_waits_for, const char **ret_key)
{
	struct lease_reading lease = { .info.owner_uid = UINT32_MAX, .info.deadline = UINT64_MAX };
	int r = read_fields(dict, lease_fields, ARRAY_SIZE(lease_fields), arena, &lease, ret_key);

	*ret = lease.info;
	if (ret_waits_for)
		*ret_waits_for = lease.waits_for;
	return r;
}

static int read_unmanaged(DBusMessageIter *value, struct arena *arena, void *object)
{
	struct gpuarb_gpu *gpu = object;

	return read_rows(value, process_fields, ARRAY_SIZE(process_fields), arena,
			 sizeof(struct gpuarb_process), &gpu->unmanaged, &gpu->n_unmanaged, NULL);
}

/* Reads an array of equally long rows into one array, row by row. *ret_columns: the length of a
 * row, or 0 if no table was read before. */
static int read_table(DBusMessageIter *value, struct arena *arena, size_t *ret_columns,
		      const uint32_t **ret, size_t *ret_rows)
{
	size_t rows = iter_count(value), columns = *ret_columns;
	uint32_t *table = NULL;
	DBusMessageIter row;

	dbus_message_iter_recurse(value, &row);
	for (size_t i = 0; i < rows; i++, dbus_message_iter_next(&row)) {
		DBusMessageIter numbers;
		const uint32_t *from = NULL;
		int n = 0;

		dbus_message_iter_recurse(&row, &numbers);
		dbus_message_iter_get_fixed_array(&numbers, &from, &n);
		if (columns == 0)
			columns = (size_t)n;
		if (n == 0 || (size_t)n != columns)
			return -EPROTO;
		if (!table)
			table = arena_alloc(arena, rows, columns * sizeof(*table));
		if (!table)
			return -ENOMEM;
		memcpy(table + i * columns, from, columns * sizeof(*table));
	}
	*ret_columns = columns;
	*ret = table;
	*ret_rows = rows;
	return 0;
}

/* A GPU while it is read, with the dimensions of its tables. */
struct reading {
	struct gpuarb_gpu gpu;
	size_t engine_xccs, engines;
	size_t array_xccs, array_engines, arrays;
};

static int read_engines(DBusMessageIter *value, struct arena *arena, void *object)
{
	struct reading *reading = object;
	int r = iter_check(value, "aau");

	if (r < 0)
		return r;
	return read_table(value, arena, &reading->engines, &reading->gpu.cus_per_shader_engine,
			  &reading->engine_xccs);
}

static int read_arrays(DBusMessageIter *value, struct arena *arena, void *object)
{
	struct reading *reading = object;
	size_t xccs, engines = 0, arrays = 0, of_xcc;
	uint32_t *all = NULL;
	DBusMessageIter xcc;
	int r;

	r = iter_check(value, "aaau");
	if (r < 0)
		return r;

	xccs = iter_count(value);
	dbus_message_iter_recurse(value, &xcc);
	for (size_t i = 0; i < xccs; i++, dbus_message_iter_next(&xcc)) {
		const uint32_t *part = NULL;
		size_t n = 0;

		r = read_table(&xcc, arena, &arrays, &part, &n);
		if (r < 0)
			return r;
		if (i == 0)
			engines = n;
		if (n == 0 || n != engines)
			return -EPROTO;
		of_xcc = engines * arrays;
		if (!all)
			all = arena_alloc(arena, xccs, of_xcc * sizeof(*all));
		if (!all)
			return -ENOMEM;
		memcpy(all + i * of_xcc, part, of_xcc * sizeof(*all));
	}
	reading->gpu.cus_per_shader_array = all;
	reading->array_xccs = xccs;
	reading->array_engines = engines;
	reading->arrays = arrays;
	return 0;
}

static const struct field gpu_fields[] = {
	FIELD('s', "Name", gpuarb_gpu, name),
	FIELD('s', "Device", gpuarb_gpu, device),
	FIELD('s', "GfxTarget", gpuarb_gpu, gfx_target),
	FIELD('u', "KfdGpuId", gpuarb_gpu, kfd_gpu_id),
	FIELD('u', "Xccs", gpuarb_gpu, xccs),
	FIELD('u', "ShaderEngines", gpuarb_gpu, shader_engines),
	FIELD('u', "Cus", gpuarb_gpu, cus),
	SPECIAL("CusPerShaderEngine", read_engines),
	SPECIAL("CusPerShaderArray", read_arrays),
	FIELD('u', "CusFree", gpuarb_gpu, cus_free),
	FIELD('b', "WgpMode", gpuarb_gpu, wgp_mode),
	FIELD('b', "HarvestKnown", gpuarb_gpu, harvest_known),
	FIELD('s', "Law", gpuarb_gpu, law),
	FIELD('u', "QueueSlots", gpuarb_gpu, queue_slots),
	FIELD('u', "QueueSlotsFree", gpuarb_gpu, queue_slots_free),
	FIELD('u', "ProcessSlots", gpuarb_gpu, process_slots),
	FIELD('u', "ProcessSlotsFree", gpuarb_gpu, process_slots_free),
	FIELD('u', "Pipes", gpuarb_gpu, pipes),
	FIELD('u', "QueuesPerPipe", gpuarb_gpu, queues_per_pipe),
	FIELD('u', "SdmaQueues", gpuarb_gpu, sdma_queues),
	FIELD('t', "VramBytes", gpuarb_gpu, vram_bytes),
	FIELD('t', "VramFree", gpuarb_gpu, vram_free),
	FIELD('s', "Scheduler", gpuarb_gpu, scheduler),
	SPECIAL("Unmanaged", read_unmanaged),
	FIELD('b', "Oversubscribed", gpuarb_gpu, oversubscribed),
	FIELD('b', "Draining", gpuarb_gpu, draining),
};

/* The dimensions of the tables must match Xccs and ShaderEngines: programs index by these. */
static int check_tables(struct reading *reading, const char **ret_key)
{
	struct gpuarb_gpu *gpu = &reading->gpu;

	if (gpu->cus_per_shader_engine &&
	    (reading->engine_xccs != gpu->xccs || reading->engines != gpu->shader_engines)) {
		*ret_key = "CusPerShaderEngine";
		return -EPROTO;
	}
	if (gpu->cus_per_shader_array &&
	    (reading->array_xccs != gpu->xccs || reading->array_engines != gpu->shader_engines)) {
		*ret_key = "CusPerShaderArray";
		return -EPROTO;
	}
	gpu->shader_arrays = (uint32_t)reading->arrays;
	return 0;
}

int read_gpu(DBusMessageIter *dict, struct arena *arena, struct gpuarb_gpu *ret,
	     const char **ret_key)
{
	struct reading reading = {};
	int r = read_fields(dict, gpu_fields, ARRAY_SIZE(gpu_fields), arena, &reading, ret_key);

	if (r >= 0)
		r = check_tables(&reading, ret_key);
	if (r >= 0)
		*ret = reading.gpu;
	return r;
}
