/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "libgpuarb/connection/read.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/partition.h"

#define ROWS_MAX 4096U /* more than the GPUs or KFD processes of any machine */
#define TABLE_DEPTH 3U /* XCCs, shader engines, shader arrays */

/* -EPROTO unless the iterator is at a value of this single complete type. */
static int iter_check(DBusMessageIter *iter, const char *signature)
{
	char *have = dbus_message_iter_get_signature(iter);
	int r;

	if (!have)
		return -ENOMEM;
	r = strcmp(have, signature) == 0 ? 0 : -EPROTO;
	dbus_free(have);
	return r;
}

size_t iter_count(const DBusMessageIter *array)
{
	DBusMessageIter copy = *array;

	return (size_t)dbus_message_iter_get_element_count(&copy);
}

/* Copies an array of numbers of this size. */
static int read_numbers(DBusMessageIter *value, struct arena *arena, size_t size, const void **ret,
			size_t *ret_n)
{
	DBusMessageIter array;
	const void *numbers = NULL;
	int n = 0;

	dbus_message_iter_recurse(value, &array);
	dbus_message_iter_get_fixed_array(&array, &numbers, &n);
	*ret = arena_copy(arena, numbers, (size_t)n, size);
	*ret_n = (size_t)n;
	return *ret ? 0 : -ENOMEM;
}

static int read_strings(DBusMessageIter *value, struct arena *arena, const char *const **ret,
			size_t *ret_n)
{
	size_t n = iter_count(value);
	const char **strings = arena_alloc(arena, n + 1, sizeof(*strings));
	DBusMessageIter array;

	if (!strings)
		return -ENOMEM;

	dbus_message_iter_recurse(value, &array);
	for (size_t i = 0; i < n; i++) {
		const char *string;

		dbus_message_iter_get_basic(&array, &string);
		strings[i] = arena_string(arena, string);
		if (!strings[i])
			return -ENOMEM;
		dbus_message_iter_next(&array);
	}
	*ret = strings;
	*ret_n = n;
	return 0;
}

/* For 't' both widths are accepted. */
static int read_basic(DBusMessageIter *value, char type, struct arena *arena, void *member)
{
	int have = dbus_message_iter_get_arg_type(value);
	DBusBasicValue basic = { .u64 = 0 };

	if (have != type && !(type == 't' && have == 'u'))
		return -EPROTO;

	dbus_message_iter_get_basic(value, &basic);
	switch (type) {
	case 'b': *(bool *)member = basic.bool_val; return 0;
	case 'd': *(double *)member = basic.dbl; return 0;
	case 'u': *(uint32_t *)member = basic.u32; return 0;
	case 't': *(uint64_t *)member = have == 'u' ? basic.u32 : basic.u64; return 0;
	default:
		*(const char **)member = arena_string(arena, basic.str);
		return *(const char **)member ? 0 : -ENOMEM;
	}
}

static void *member_at(void *object, size_t offset)
{
	return (char *)object + offset;
}

static int read_field(DBusMessageIter *value, const struct field *field, struct arena *arena,
		      void *object)
{
	void *member = member_at(object, field->offset);
	size_t *count = member_at(object, field->count_offset);
	int r;

	switch (field->type) {
	case 0: return field->read(value, arena, object);
	case 'R': return read_rows(value, field->rows, arena, member, count, NULL);
	case 'U':
		r = iter_check(value, "au");
		return r < 0 ? r : read_numbers(value, arena, sizeof(uint32_t), member, count);
	case 'T':
		r = iter_check(value, "at");
		return r < 0 ? r : read_numbers(value, arena, sizeof(uint64_t), member, count);
	case 'S':
		r = iter_check(value, "as");
		return r < 0 ? r : read_strings(value, arena, member, count);
	default: return read_basic(value, field->type, arena, member);
	}
}

/* Is "kfd-gpu-id" or "KfdGpuId" the key of the member "kfd_gpu_id"? */
static bool is_key(const char *key, const char *member)
{
	for (;; key++, member++) {
		key += *key == '-';
		member += *member == '-' || *member == '_';
		if (tolower((unsigned char)*key) != tolower((unsigned char)*member))
			return false;
		if (!*key)
			return true;
	}
}

static const struct field *field_find(const struct dictionary *dictionary, const char *key)
{
	for (size_t i = 0; i < dictionary->n; i++)
		if (is_key(key, dictionary->fields[i].key))
			return &dictionary->fields[i];
	return NULL;
}

static int read_entry(DBusMessageIter *entry, const struct dictionary *dictionary,
		      struct arena *arena, void *object, const char **ret_key)
{
	const struct field *field;
	DBusMessageIter value;
	const char *key;
	int r;

	dbus_message_iter_get_basic(entry, &key);
	field = field_find(dictionary, key);
	if (!field)
		return 0;

	dbus_message_iter_next(entry);
	dbus_message_iter_recurse(entry, &value);
	r = read_field(&value, field, arena, object);
	if (r == -EPROTO && ret_key)
		*ret_key = key;
	return r;
}

int read_dictionary(DBusMessageIter *dict, const struct dictionary *dictionary, struct arena *arena,
		    void *object, const char **ret_key)
{
	DBusMessageIter entries, entry;

	for (size_t i = 0; i < dictionary->n; i++)
		if (dictionary->fields[i].type == 's')
			*(const char **)member_at(object, dictionary->fields[i].offset) = "";

	dbus_message_iter_recurse(dict, &entries);
	for (; dbus_message_iter_get_arg_type(&entries) != DBUS_TYPE_INVALID;
	     dbus_message_iter_next(&entries)) {
		int r;

		dbus_message_iter_recurse(&entries, &entry);
		r = read_entry(&entry, dictionary, arena, object, ret_key);
		if (r < 0)
			return r;
	}
	return 0;
}

int read_rows(DBusMessageIter *rows, const struct dictionary *dictionary, struct arena *arena,
	      void *ret_array, size_t *ret_n, const char **ret_key)
{
	DBusMessageIter row;
	char *array;
	size_t n;
	int r;

	r = iter_check(rows, "aa{sv}");
	if (r < 0)
		return r;

	n = iter_count(rows);
	if (n > ROWS_MAX)
		return -EPROTO;
	array = arena_alloc(arena, n, dictionary->size);
	if (!array)
		return -ENOMEM;

	dbus_message_iter_recurse(rows, &row);
	for (size_t i = 0; i < n && r >= 0; i++, dbus_message_iter_next(&row))
		r = read_dictionary(&row, dictionary, arena, array + i * dictionary->size, ret_key);
	if (r < 0)
		return r;
	*(void **)ret_array = array;
	*ret_n = n;
	return 0;
}

int read_arguments(DBusMessage *answer, const struct argument *arguments, size_t n,
		   struct arena *arena, void *object, const char **ret_key)
{
	DBusMessageIter iter;
	int r = 0;

	dbus_message_iter_init(answer, &iter);
	for (size_t i = 0; i < n && r >= 0; i++, dbus_message_iter_next(&iter)) {
		const struct argument *argument = &arguments[i];
		void *member = member_at(object, argument->offset);

		if (argument->count_offset == 0)
			r = read_dictionary(&iter, argument->dictionary, arena, member, ret_key);
		else
			r = read_rows(&iter, argument->dictionary, arena, member,
				      member_at(object, argument->count_offset), ret_key);
	}
	return r;
}

int path_number(const char *path, const char *prefix, uint64_t *ret)
{
	size_t length = strlen(prefix);
	uint64_t number = 0;

	if (strncmp(path, prefix, length) != 0 || path[length] != '/' || !path[length + 1])
		return -EPROTO;

	for (const char *p = path + length + 1; *p; p++) {
		if (*p < '0' || *p > '9' || __builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*p - '0'), &number))
			return -EPROTO;
	}
	*ret = number;
	return 0;
}

/* ---- which key fills which member: partitions, refusals, leases and GPUs ------------------ */

/* For dbus/partition.h. */
#define READ_VALUE(name, value) MEMBER_FIELD(gpuarb_partition, , name),
#define READ_LIST(name, value) LIST_FIELD(gpuarb_partition, , name),
#define READ_MASK(name, value) LIST('U', #name, gpuarb_partition, name, name##_words),

static const struct dictionary partition_dictionary =
	DICTIONARY(gpuarb_partition, GPUARB_PARTITION(READ_VALUE, READ_VALUE, READ_VALUE, READ_MASK,
						      READ_LIST, READ_LIST, READ_LIST));

static const struct dictionary refusal_dictionary = DICTIONARY(
	gpuarb_refusal, MEMBERS(gpuarb_refusal, gpu, reason, asked, free, hint, retry, end_exact),
	LISTS(gpuarb_refusal, end));

static const struct dictionary process_dictionary =
	DICTIONARY(gpuarb_process, MEMBERS(gpuarb_process, pid, uid, command, queues));

static const struct dictionary fact_dictionary = DICTIONARY(
	gpuarb_refusal_facts,
	MEMBERS(gpuarb_refusal_facts, resource, total, reserved, key, limit, held, tenant, uid,
		asked_class, limit_class, fits_resource, lease_count, process_count, behind,
		preempt_tenant, end_cut),
	LISTS(gpuarb_refusal_facts, fits, leases),
	ROWS('R', "processes", &process_dictionary, gpuarb_refusal_facts, processes, n_processes));

static const struct dictionary shrink_dictionary = DICTIONARY(
	gpuarb_shrink, MEMBERS(gpuarb_shrink, lease, gpu),
	FIELD('u', "from", gpuarb_shrink, from_cus), FIELD('u', "to", gpuarb_shrink, to_cus));

static const struct dictionary effect_dictionary =
	DICTIONARY(gpuarb_effects, LISTS(gpuarb_effects, revokes, pauses, moves),
		   MEMBERS(gpuarb_effects, within_usec),
		   ROWS('R', "shrinks", &shrink_dictionary, gpuarb_effects, shrinks, n_shrinks));

int read_effects(DBusMessageIter *rows, struct arena *arena, const struct gpuarb_effects **ret)
{
	struct gpuarb_effects *effects;
	size_t n;
	int r = read_rows(rows, &effect_dictionary, arena, &effects, &n, NULL);

	if (r < 0 || n == 0 ||
	    effects[0].n_shrinks + effects[0].n_revokes + effects[0].n_pauses +
			    effects[0].n_moves ==
		    0)
		return r;
	effects[0].size = sizeof(effects[0]);
	*ret = &effects[0];
	return 0;
}

int read_partitions(DBusMessageIter *rows, struct arena *arena, const struct gpuarb_partition **ret,
		    size_t *ret_n, const char **ret_key)
{
	return read_rows(rows, &partition_dictionary, arena, ret, ret_n, ret_key);
}

static const struct dictionary terms_dictionary = DICTIONARY(
	terms, FIELD('b', "cap", terms, cap), FIELD('t', "duration-usec", terms, duration));

int read_terms(DBusMessageIter *rows, struct arena *arena, struct terms *ret, const char **ret_key)
{
	struct terms *terms;
	size_t n;
	int r = read_rows(rows, &terms_dictionary, arena, &terms, &n, ret_key);

	if (r < 0 || n == 0)
		return r;
	*ret = terms[0];
	return 1;
}

int read_refusals(DBusMessageIter *rows, struct arena *arena, struct refusals *ret,
		  const char **ret_key)
{
	struct gpuarb_refusal_facts *facts;
	struct refusals refusals;
	int r;

	r = read_rows(rows, &refusal_dictionary, arena, &refusals.rows, &refusals.n, ret_key);
	if (r >= 0)
		r = read_rows(rows, &fact_dictionary, arena, &facts, &refusals.n, ret_key);
	if (r < 0)
		return r;
	for (size_t i = 0; i < refusals.n; i++)
		facts[i].size = sizeof(facts[i]);
	refusals.facts = facts;
	*ret = refusals;
	return 0;
}

static const struct dictionary drift_dictionary =
	DICTIONARY(gpuarb_drift, MEMBERS(gpuarb_drift, kind, gpu, granted, observed, since, pid));

static const struct dictionary intruder_dictionary =
	DICTIONARY(gpuarb_intruder,
		   MEMBERS(gpuarb_intruder, gpu, pid, uid, command, lease, cus, since, draws));

static const struct dictionary cover_dictionary = DICTIONARY(
	gpuarb_cover, MEMBERS(gpuarb_cover, pid, uid, command, lease, queues, cus, outside_cus),
	LIST('U', "cu-mask", gpuarb_cover, cu_mask, cu_mask_words),
	LIST('U', "outside-mask", gpuarb_cover, outside_mask, outside_mask_words));

/* A lease while it is read: its public structure cannot grow. */
struct lease_reading {
	struct gpuarb_lease_info info;
	struct lease_facts facts;
};

static int read_waits_for(DBusMessageIter *value, struct arena *arena, void *object)
{
	struct lease_reading *lease = object;

	return read_refusals(value, arena, &lease->facts.waits_for, NULL);
}

#define READ_LEASE_FACT(type, name, none) MEMBER_FIELD(lease_reading, facts., name),
#define READ_GPU_FACT(type, name, none) MEMBER_FIELD(reading, facts., name),

static const struct dictionary lease_dictionary = DICTIONARY(
	lease_reading,
	MEMBERS(gpuarb_lease_info, id, name, state, tenant, owner_uid, owner_pid, owner_unit,
		adaptable, generation, tier, position, reason, deadline, disturbances),
	FIELD('s', "Class", gpuarb_lease_info, lease_class),
	LEASE_FACTS(READ_LEASE_FACT) ROWS('R', "Partitions", &partition_dictionary,
					  gpuarb_lease_info, partitions, n_partitions),
	SPECIAL("WaitsFor", read_waits_for),
	LIST('U', "CusMin", lease_reading, facts.cus_min, facts.n_cus_min),
	ROWS('R', "Drift", &drift_dictionary, lease_reading, facts.drift, facts.n_drift),
	ROWS('R', "Intruders", &intruder_dictionary, lease_reading, facts.intruders,
	     facts.n_intruders),
	FIELD('t', "PausedCount", lease_reading, facts.pause.count),
	FIELD('t', "PausedUsec", lease_reading, facts.pause.usec),
	FIELD('t', "PausedSince", lease_reading, facts.pause.since),
	FIELD('t', "EvictedCount", lease_reading, facts.evictions.count),
	FIELD('t', "EvictedUsec", lease_reading, facts.evictions.usec),
	FIELD('t', "EvictedSince", lease_reading, facts.evictions.since));

int read_lease(DBusMessageIter *dict, struct arena *arena, struct gpuarb_lease_info *ret,
	       struct lease_facts *ret_facts, const char **ret_key)
{
	struct lease_reading lease = { .info.owner_uid = UINT32_MAX, .info.deadline = UINT64_MAX };
	int r = read_dictionary(dict, &lease_dictionary, arena, &lease, ret_key);

	for (size_t i = 0; r >= 0 && i < lease.facts.n_drift; i++)
		lease.facts.drift[i].size = sizeof(*lease.facts.drift);
	for (size_t i = 0; r >= 0 && i < lease.facts.n_intruders; i++)
		lease.facts.intruders[i].size = sizeof(*lease.facts.intruders);
	*ret = lease.info;
	if (ret_facts)
		*ret_facts = lease.facts;
	return r;
}

/*
 * Copies the numbers of nested arrays to *next, row by row. Arrays of one depth have equal sizes:
 * sizes[0] is that of the outermost array.
 */
static int copy_nested(DBusMessageIter *value, size_t depth, const size_t *sizes, uint32_t **next)
{
	DBusMessageIter element;
	const uint32_t *numbers = NULL;
	int n = 0, r = 0;

	if (iter_count(value) != sizes[0])
		return -EPROTO;
	dbus_message_iter_recurse(value, &element);
	if (depth > 1) {
		for (size_t i = 0; i < sizes[0] && r >= 0; i++, dbus_message_iter_next(&element))
			r = copy_nested(&element, depth - 1, sizes + 1, next);
		return r;
	}
	dbus_message_iter_get_fixed_array(&element, &numbers, &n);
	memcpy(*next, numbers, (size_t)n * sizeof(*numbers));
	*next += n;
	return 0;
}

/* Reads nested arrays into one array. sizes: those of the arrays of each depth. No table for an
 * empty outermost array. */
static int read_table(DBusMessageIter *value, size_t depth, struct arena *arena, size_t *sizes,
		      const uint32_t **ret)
{
	static const char *const signatures[] = { [2] = "aau", [TABLE_DEPTH] = "aaau" };
	DBusMessageIter array = *value, inner;
	uint32_t *table, *next;
	size_t n = 1;
	int r;

	r = iter_check(value, signatures[depth]);
	if (r < 0 || iter_count(value) == 0)
		return r;

	for (size_t i = 0; i < depth; i++) {
		sizes[i] = iter_count(&array);
		if (sizes[i] == 0 || sizes[i] > ROWS_MAX)
			return -EPROTO;
		n *= sizes[i];
		dbus_message_iter_recurse(&array, &inner);
		array = inner;
	}
	table = next = arena_alloc(arena, n, sizeof(*table));
	if (!table)
		return -ENOMEM;
	*ret = table;
	return copy_nested(value, depth, sizes, &next);
}

/* A GPU while it is read, with the sizes of its tables: its public structure cannot grow. */
struct reading {
	struct gpuarb_gpu gpu;
	struct gpu_facts facts;
	size_t engine_sizes[TABLE_DEPTH], array_sizes[TABLE_DEPTH];
};

static int read_engines(DBusMessageIter *value, struct arena *arena, void *object)
{
	struct reading *reading = object;

	return read_table(value, 2, arena, reading->engine_sizes,
			  &reading->gpu.cus_per_shader_engine);
}

static int read_arrays(DBusMessageIter *value, struct arena *arena, void *object)
{
	struct reading *reading = object;

	return read_table(value, TABLE_DEPTH, arena, reading->array_sizes,
			  &reading->gpu.cus_per_shader_array);
}

static const struct dictionary client_dictionary =
	DICTIONARY(gpuarb_client,
		   MEMBERS(gpuarb_client, pid, uid, command, lease, draws, gfx_share, compute_share,
			   dma_share, gfx_nsec, compute_nsec, dma_nsec, vram, gtt));

static const struct dictionary slowdown_dictionary =
	DICTIONARY(gpuarb_slowdown, MEMBERS(gpuarb_slowdown, kind, neighbours, slowdown));

static int read_driver_events(DBusMessageIter *value, struct arena *arena, void *object)
{
	struct reading *reading = object;
	struct gpuarb_driver_events *events;
	size_t n = iter_count(value);
	DBusMessageIter row, entry;
	int r = iter_check(value, "a{st}");

	if (r < 0 || n > ROWS_MAX)
		return r < 0 ? r : -EPROTO;
	events = arena_alloc(arena, n + 1, sizeof(*events));
	if (!events)
		return -ENOMEM;
	dbus_message_iter_recurse(value, &row);
	for (size_t i = 0; i < n && r >= 0; i++, dbus_message_iter_next(&row)) {
		dbus_message_iter_recurse(&row, &entry);
		r = read_basic(&entry, 's', arena, &events[i].kind);
		dbus_message_iter_next(&entry);
		if (r >= 0)
			r = read_basic(&entry, 't', arena, &events[i].count);
	}
	reading->facts.events = events;
	reading->facts.n_events = n;
	return r;
}

static const struct dictionary gpu_dictionary = DICTIONARY(
	reading,
	MEMBERS(gpuarb_gpu, name, device, gfx_target, kfd_gpu_id, xccs, shader_engines, cus,
		cus_free, wgp_mode, harvest_known, law, queue_slots, queue_slots_free,
		process_slots, process_slots_free, pipes, queues_per_pipe, sdma_queues,
		sdma_xgmi_queues, vram_bytes, vram_free, scheduler, oversubscribed, draining),
	SPECIAL("CusPerShaderEngine", read_engines), SPECIAL("CusPerShaderArray", read_arrays),
	GPU_FACTS(READ_GPU_FACT) FIELD('s', "Calibrated", reading, facts.calibration.date),
	FIELD('s', "CalibrationProblem", reading, facts.calibration.problem),
	FIELD('u', "PreemptionUsec", reading, facts.calibration.preemption_usec),
	ROWS('R', "Slowdowns", &slowdown_dictionary, reading, facts.calibration.slowdowns,
	     facts.calibration.n_slowdowns),
	ROWS('R', "Unmanaged", &process_dictionary, gpuarb_gpu, unmanaged, n_unmanaged),
	ROWS('R', "Clients", &client_dictionary, reading, facts.clients, facts.n_clients),
	ROWS('R', "Observed", &cover_dictionary, reading, facts.covers, facts.n_covers),
	SPECIAL("DriverEvents", read_driver_events));

/* Whether a table has a row for each XCC and shader engine: programs index it by these. */
static bool table_matches(const struct gpuarb_gpu *gpu, const uint32_t *table, const size_t *sizes)
{
	return !table || (sizes[0] == gpu->xccs && sizes[1] == gpu->shader_engines);
}

static int check_tables(struct reading *reading, const char **ret_key)
{
	struct gpuarb_gpu *gpu = &reading->gpu;

	if (!table_matches(gpu, gpu->cus_per_shader_engine, reading->engine_sizes))
		*ret_key = "CusPerShaderEngine";
	else if (!table_matches(gpu, gpu->cus_per_shader_array, reading->array_sizes))
		*ret_key = "CusPerShaderArray";
	else
		return 0;
	return -EPROTO;
}

int read_gpu(DBusMessageIter *dict, struct arena *arena, struct gpuarb_gpu *ret,
	     struct gpu_facts *ret_facts, const char **ret_key)
{
	struct reading reading = { .facts.fairness = NAN };
	int r = read_dictionary(dict, &gpu_dictionary, arena, &reading, ret_key);

	reading.gpu.shader_arrays = (uint32_t)reading.array_sizes[2];
	if (r >= 0)
		r = check_tables(&reading, ret_key);
	if (r < 0)
		return r;
	for (size_t i = 0; i < reading.facts.n_covers; i++)
		reading.facts.covers[i].size = sizeof(*reading.facts.covers);
	reading.facts.calibration.size = sizeof(reading.facts.calibration);
	*ret = reading.gpu;
	if (ret_facts)
		*ret_facts = reading.facts;
	return r;
}
