/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reading the answers of the daemon into structures. */

#include <errno.h>
#include <math.h>

#include "check.h"
#include "dbus/names.h"
#include "lack.h"
#include "libgpuarb/connection/handle.h"
#include "libgpuarb/connection/read.h"

/* Appends one entry to an a{sv}. Its value is 7 or "/text"; an array has three elements. */
static void put_variant(DBusMessageIter *dict, const char *key, const char *signature)
{
	DBusMessageIter entry, variant, array, inner;

	CHECK(dbus_message_iter_open_container(dict, DBUS_TYPE_DICT_ENTRY, NULL, &entry));
	CHECK(dbus_message_iter_append_basic(&entry, DBUS_TYPE_STRING, &key));
	CHECK(dbus_message_iter_open_container(&entry, DBUS_TYPE_VARIANT, signature, &variant));
	if (signature[0] == 'a') {
		CHECK(dbus_message_iter_open_container(&variant, DBUS_TYPE_ARRAY, signature + 1,
						       &array));
		for (uint32_t i = 0; i < 3; i++) {
			const char *text = "gap";

			if (signature[1] == 'u')
				CHECK(dbus_message_iter_append_basic(&array, 'u', &i));
			if (signature[1] == 't') {
				uint64_t wide = i;

				CHECK(dbus_message_iter_append_basic(&array, 't', &wide));
			}
			if (signature[1] == 's')
				CHECK(dbus_message_iter_append_basic(&array, 's', &text));
			if (strncmp(signature, "aau", 3) == 0) {
				CHECK(dbus_message_iter_open_container(&array, 'a', "u", &inner));
				for (uint32_t k = 0; k < 4; k++)
					CHECK(dbus_message_iter_append_basic(&inner, 'u', &k));
				CHECK(dbus_message_iter_close_container(&array, &inner));
			}
		}
		CHECK(dbus_message_iter_close_container(&variant, &array));
	} else {
		static char text[] = "/text"; /* also valid as an object path */
		DBusBasicValue value = { .u64 = 7 };

		if (strchr("so", signature[0]))
			value.str = text;
		if (signature[0] == 'b')
			value.bool_val = TRUE;
		CHECK(dbus_message_iter_append_basic(&variant, signature[0], &value));
	}
	CHECK(dbus_message_iter_close_container(&entry, &variant));
	CHECK(dbus_message_iter_close_container(dict, &entry));
}

struct pair {
	const char *key, *signature;
};

static DBusMessage *dict_of(const struct pair *pairs, size_t n, DBusMessageIter *ret)
{
	DBusMessage *m = dbus_message_new(DBUS_MESSAGE_TYPE_METHOD_CALL);
	DBusMessageIter iter, dict;

	CHECK(m);
	dbus_message_iter_init_append(m, &iter);
	CHECK(dbus_message_iter_open_container(&iter, DBUS_TYPE_ARRAY, "{sv}", &dict));
	for (size_t i = 0; i < n; i++)
		put_variant(&dict, pairs[i].key, pairs[i].signature);
	CHECK(dbus_message_iter_close_container(&iter, &dict));
	dbus_message_iter_init(m, ret);
	return m;
}

static DBusMessage *rows_of(const struct pair *pairs, size_t n, size_t rows, DBusMessageIter *ret)
{
	DBusMessage *m = dbus_message_new(DBUS_MESSAGE_TYPE_METHOD_CALL);
	DBusMessageIter iter, array, dict;

	CHECK(m);
	dbus_message_iter_init_append(m, &iter);
	CHECK(dbus_message_iter_open_container(&iter, DBUS_TYPE_ARRAY, "a{sv}", &array));
	for (size_t row = 0; row < rows; row++) {
		CHECK(dbus_message_iter_open_container(&array, DBUS_TYPE_ARRAY, "{sv}", &dict));
		for (size_t i = 0; i < n; i++)
			put_variant(&dict, pairs[i].key, pairs[i].signature);
		CHECK(dbus_message_iter_close_container(&array, &dict));
	}
	CHECK(dbus_message_iter_close_container(&iter, &array));
	dbus_message_iter_init(m, ret);
	return m;
}

static const struct pair partition_pairs[] = {
	{ "gpu", "s" },
	{ "kfd-gpu-id", "u" },
	{ "cu-mask", "au" },
	{ "cus", "u" },
	{ "cus-asked", "u" },
	{ "effective-cus", "u" },
	{ "shader-engines", "au" },
	{ "queues", "u" },
	{ "streams", "u" },
	{ "processes", "u" },
	{ "sdma-queues", "u" },
	{ "vram", "t" },
	{ "priority", "u" },
	{ "paused", "b" },
	{ "tier", "s" },
	{ "gaps", "as" },
	{ "priorities-seen", "au" },
	{ "what-comes-later", "o" },
};

TEST(partitions_are_read_and_unknown_keys_skipped)
{
	const struct gpuarb_partition *partitions;
	_cleanup_(arena_clear) struct arena arena = { NULL };
	DBusMessageIter iter;
	DBusMessage *m = rows_of(partition_pairs, ARRAY_SIZE(partition_pairs), 2, &iter);
	size_t n;

	CHECK(read_partitions(&iter, &arena, &partitions, &n, NULL) == 0);
	dbus_message_unref(m);
	CHECK(n == 2 && strcmp(partitions[1].gpu, "/text") == 0);
	CHECK(partitions[1].kfd_gpu_id == 7 && partitions[1].vram == 7);
	CHECK(partitions[1].cu_mask_words == 3 && partitions[1].cu_mask[2] == 2);
	CHECK(partitions[1].n_shader_engines == 3 && partitions[1].priority == 7);
	CHECK(partitions[1].n_gaps == 3 && strcmp(partitions[1].gaps[2], "gap") == 0);
	CHECK(partitions[1].n_priorities_seen == 3 && partitions[1].priorities_seen[2] == 2);
}

TEST(only_partitions_tell_the_cap_and_the_duration_of_a_lease)
{
	static const struct pair pairs[] = { { "gpu", "s" },
					     { "cap", "b" },
					     { "duration-usec", "t" } };
	static const struct pair wrong[] = { { "cap", "s" } };
	_cleanup_(arena_clear) struct arena arena = { NULL };
	const char *key = NULL;
	DBusMessageIter iter;
	DBusMessage *m;
	struct terms terms = { .cap = true };

	m = rows_of(pairs, ARRAY_SIZE(pairs), 0, &iter);
	CHECK(read_terms(&iter, &arena, &terms, NULL) == 0 && terms.cap);
	dbus_message_unref(m);
	m = rows_of(pairs, 1, 1, &iter); /* of an older daemon */
	CHECK(read_terms(&iter, &arena, &terms, NULL) == 1 && !terms.cap);
	CHECK(terms.duration == 0);
	dbus_message_unref(m);
	m = rows_of(pairs, 3, 2, &iter);
	CHECK(read_terms(&iter, &arena, &terms, NULL) == 1 && terms.cap);
	CHECK(terms.duration == 7);
	dbus_message_unref(m);
	m = rows_of(wrong, 1, 1, &iter);
	CHECK(read_terms(&iter, &arena, &terms, &key) == -EPROTO && strcmp(key, "cap") == 0);
	dbus_message_unref(m);
}

TEST(missing_strings_are_empty_and_never_null)
{
	struct refusals refusals;
	const struct gpuarb_partition *partitions;
	_cleanup_(arena_clear) struct arena arena = { NULL };
	DBusMessageIter iter;
	DBusMessage *m = rows_of(NULL, 0, 1, &iter);
	size_t n;

	CHECK(read_partitions(&iter, &arena, &partitions, &n, NULL) == 0 && n == 1);
	CHECK(*partitions[0].gpu == '\0' && *partitions[0].tier == '\0');
	CHECK(read_refusals(&iter, &arena, &refusals, NULL) == 0 && refusals.n == 1);
	CHECK(*refusals.rows[0].gpu == '\0' && *refusals.rows[0].hint == '\0');
	CHECK(*refusals.facts[0].resource == '\0' && *refusals.facts[0].tenant == '\0');
	CHECK(refusals.facts[0].size == sizeof(refusals.facts[0]) && !refusals.facts[0].leases);
	dbus_message_unref(m);
}

TEST(numbers_of_refusals_are_read_in_both_widths)
{
	static const struct pair narrow[] = { { "asked", "u" }, { "free", "t" } };
	struct refusals refusals;
	_cleanup_(arena_clear) struct arena arena = { NULL };
	DBusMessageIter iter;
	DBusMessage *m = rows_of(narrow, 2, 1, &iter);

	CHECK(read_refusals(&iter, &arena, &refusals, NULL) == 0);
	CHECK(refusals.rows[0].asked == 7 && refusals.rows[0].free == 7);
	dbus_message_unref(m);
}

TEST(a_refusal_can_list_leases)
{
	static const struct pair end[] = { { "end", "at" }, { "end-exact", "b" } };
	struct refusals refusals;
	_cleanup_(arena_clear) struct arena arena = { NULL };
	DBusMessageIter iter;
	DBusMessage *m = rows_of(end, 2, 1, &iter);

	CHECK(read_refusals(&iter, &arena, &refusals, NULL) == 0);
	CHECK(refusals.rows[0].n_end == 3 && refusals.rows[0].end[2] == 2 &&
	      refusals.rows[0].end_exact);
	dbus_message_unref(m);
}

TEST(effects_of_a_plan_are_in_its_first_row)
{
	static const struct pair pairs[] = { { "revokes", "at" }, { "within-usec", "t" } };
	static const struct pair none[] = { { "gpu", "s" } };
	static const struct pair wrong[] = { { "shrinks", "s" } };
	const struct gpuarb_effects *effects = NULL;
	_cleanup_(arena_clear) struct arena arena = { NULL };
	DBusMessageIter iter;
	DBusMessage *m = rows_of(pairs, ARRAY_SIZE(pairs), 2, &iter);

	CHECK(read_effects(&iter, &arena, &effects) == 0 && effects);
	CHECK(effects->size == sizeof(*effects) && effects->n_shrinks == 0);
	CHECK(effects->n_revokes == 3 && effects->revokes[2] == 2 && effects->within_usec == 7);
	dbus_message_unref(m);
	effects = NULL;
	m = rows_of(none, ARRAY_SIZE(none), 2, &iter);
	CHECK(read_effects(&iter, &arena, &effects) == 0 && !effects);
	dbus_message_unref(m);
	m = rows_of(wrong, ARRAY_SIZE(wrong), 1, &iter);
	CHECK(read_effects(&iter, &arena, &effects) == -EPROTO && !effects);
	dbus_message_unref(m);
}

TEST(facts_of_a_refusal_are_beside_it)
{
	static const struct pair pairs[] = { { "resource", "s" },    { "total", "t" },
					     { "limit", "u" },       { "key", "s" },
					     { "fits", "at" },       { "leases", "at" },
					     { "lease-count", "u" }, { "behind", "t" } };
	const struct gpuarb_refusal_facts *facts;
	_cleanup_(arena_clear) struct arena arena = { NULL };
	struct refusals refusals;
	DBusMessageIter iter;
	DBusMessage *m = rows_of(pairs, ARRAY_SIZE(pairs), 2, &iter);

	CHECK(read_refusals(&iter, &arena, &refusals, NULL) == 0 && refusals.n == 2);
	facts = &refusals.facts[1];
	CHECK(strcmp(facts->resource, "/text") == 0 && strcmp(facts->key, "/text") == 0);
	CHECK(facts->total == 7 && facts->limit == 7 && facts->behind == 7);
	CHECK(facts->n_fits == 3 && facts->n_leases == 3 && facts->leases[2] == 2);
	CHECK(facts->lease_count == 7 && facts->n_processes == 0);
	dbus_message_unref(m);
}

TEST(a_value_of_the_wrong_type_is_rejected_with_its_key)
{
	static const char *const types[] = { "s", "u", "t", "b", "d", "y", "o", "au", "as", "aau" };

	for (size_t i = 0; i + 1 < ARRAY_SIZE(partition_pairs); i++)
		for (size_t k = 0; k < ARRAY_SIZE(types); k++) {
			struct pair pair = { partition_pairs[i].key, types[k] };
			bool right = strcmp(pair.signature, partition_pairs[i].signature) == 0 ||
				     (*partition_pairs[i].signature == 't' && *types[k] == 'u');
			const struct gpuarb_partition *partitions;
			struct arena arena = { NULL };
			const char *key = NULL;
			DBusMessageIter iter;
			DBusMessage *m = rows_of(&pair, 1, 1, &iter);
			size_t n;
			int r = read_partitions(&iter, &arena, &partitions, &n, &key);

			CHECK(r == (right ? 0 : -EPROTO));
			CHECK(right ? !key : strcmp(key, pair.key) == 0);
			dbus_message_unref(m);
			arena_clear(&arena);
		}
}

TEST(too_many_rows_are_rejected)
{
	const struct gpuarb_partition *partitions;
	_cleanup_(arena_clear) struct arena arena = { NULL };
	DBusMessageIter iter;
	DBusMessage *m = rows_of(NULL, 0, 4097, &iter);
	size_t n;

	CHECK(read_partitions(&iter, &arena, &partitions, &n, NULL) == -EPROTO);
	dbus_message_unref(m);
}

TEST(tables_of_cus_must_match_the_gpu)
{
	/* All numbers are 7 and all tables are 3 x 4, so no table matches its GPU. */
	static const struct pair pairs[] = { { "Xccs", "u" },
					     { "ShaderEngines", "u" },
					     { "CusPerShaderEngine", "aau" } };
	static const struct pair empty[] = { { "Name", "s" }, { "Oversubscribed", "b" } };
	_cleanup_(arena_clear) struct arena arena = { NULL };
	struct gpuarb_gpu gpu;
	struct gpu_facts facts = { 0 };
	const char *key = NULL;
	DBusMessageIter iter;
	DBusMessage *m = dict_of(pairs, 3, &iter);

	CHECK(read_gpu(&iter, &arena, &gpu, NULL, &key) == -EPROTO);
	CHECK(strcmp(key, "CusPerShaderEngine") == 0);
	dbus_message_unref(m);

	m = dict_of(empty, 2, &iter);
	CHECK(read_gpu(&iter, &arena, &gpu, &facts, &key) == 0);
	CHECK(isnan(facts.fairness) && strcmp(facts.pipes_source, "") == 0); /* an older daemon */
	CHECK(facts.masks_observed == 0 && facts.n_covers == 0);
	CHECK(gpu.oversubscribed && !gpu.cus_per_shader_engine && gpu.shader_arrays == 0);
	CHECK(*gpu.scheduler == '\0' && gpu.n_unmanaged == 0);
	dbus_message_unref(m);
}

/* Appends an aaau of xccs x engines x arrays; uneven: its last row has one more element. */
static DBusMessage *gpu_of(uint32_t xccs, uint32_t engines, uint32_t arrays, bool uneven,
			   DBusMessageIter *ret)
{
	DBusMessage *m = dbus_message_new(DBUS_MESSAGE_TYPE_METHOD_CALL);
	DBusMessageIter iter, dict, entry, variant, outer, middle, inner;
	const char *key = "CusPerShaderArray";

	CHECK(m);
	dbus_message_iter_init_append(m, &iter);
	CHECK(dbus_message_iter_open_container(&iter, 'a', "{sv}", &dict));
	CHECK(dbus_message_iter_open_container(&dict, 'e', NULL, &entry));
	CHECK(dbus_message_iter_append_basic(&entry, 's', &key));
	CHECK(dbus_message_iter_open_container(&entry, 'v', "aaau", &variant));
	CHECK(dbus_message_iter_open_container(&variant, 'a', "aau", &outer));
	for (uint32_t x = 0; x < xccs; x++) {
		CHECK(dbus_message_iter_open_container(&outer, 'a', "au", &middle));
		for (uint32_t e = 0; e < engines; e++) {
			uint32_t n = arrays + (uneven && x + 1 == xccs && e + 1 == engines);

			CHECK(dbus_message_iter_open_container(&middle, 'a', "u", &inner));
			for (uint32_t a = 0; a < n; a++) {
				uint32_t number = x * 100 + e * 10 + a;

				CHECK(dbus_message_iter_append_basic(&inner, 'u', &number));
			}
			CHECK(dbus_message_iter_close_container(&middle, &inner));
		}
		CHECK(dbus_message_iter_close_container(&outer, &middle));
	}
	CHECK(dbus_message_iter_close_container(&variant, &outer));
	CHECK(dbus_message_iter_close_container(&entry, &variant));
	CHECK(dbus_message_iter_close_container(&dict, &entry));

	const char *names[] = { "Xccs", "ShaderEngines" };
	uint32_t numbers[] = { xccs, engines };

	for (size_t i = 0; i < 2; i++) {
		CHECK(dbus_message_iter_open_container(&dict, 'e', NULL, &entry));
		CHECK(dbus_message_iter_append_basic(&entry, 's', &names[i]));
		CHECK(dbus_message_iter_open_container(&entry, 'v', "u", &variant));
		CHECK(dbus_message_iter_append_basic(&variant, 'u', &numbers[i]));
		CHECK(dbus_message_iter_close_container(&entry, &variant));
		CHECK(dbus_message_iter_close_container(&dict, &entry));
	}
	CHECK(dbus_message_iter_close_container(&iter, &dict));
	dbus_message_iter_init(m, ret);
	return m;
}

TEST(arrays_of_every_engine_and_xcc_are_read_in_order)
{
	_cleanup_(arena_clear) struct arena arena = { NULL };
	struct gpuarb_gpu gpu;
	const char *key = NULL;
	DBusMessageIter iter;
	DBusMessage *m = gpu_of(2, 3, 2, false, &iter);

	CHECK(read_gpu(&iter, &arena, &gpu, NULL, &key) == 0);
	CHECK(gpu.xccs == 2 && gpu.shader_engines == 3 && gpu.shader_arrays == 2);
	for (uint32_t i = 0; i < 12; i++)
		CHECK(gpu.cus_per_shader_array[i] == i / 6 * 100 + i / 2 % 3 * 10 + i % 2);
	dbus_message_unref(m);

	m = gpu_of(2, 3, 2, true, &iter);
	CHECK(read_gpu(&iter, &arena, &gpu, NULL, &key) == -EPROTO);
	CHECK(strcmp(key, "CusPerShaderArray") == 0);
	dbus_message_unref(m);

	m = gpu_of(2, 3, 0, false, &iter);
	CHECK(read_gpu(&iter, &arena, &gpu, NULL, &key) == -EPROTO);
	dbus_message_unref(m);

	m = gpu_of(2, 0, 0, false, &iter);
	CHECK(read_gpu(&iter, &arena, &gpu, NULL, &key) == -EPROTO);
	dbus_message_unref(m);
}

TEST(object_paths_end_with_a_decimal_number)
{
	uint64_t number = 3;

	CHECK(path_number("/a/b/17", "/a/b", &number) == 0 && number == 17);
	CHECK(path_number("/a/b/18446744073709551615", "/a/b", &number) == 0);
	CHECK(number == UINT64_MAX);
	CHECK(path_number("/a/b/18446744073709551616", "/a/b", &number) == -EPROTO);
	CHECK(path_number("/a/b/", "/a/b", &number) == -EPROTO);
	CHECK(path_number("/a/b", "/a/b", &number) == -EPROTO);
	CHECK(path_number("/a/bb/1", "/a/b", &number) == -EPROTO);
	CHECK(path_number("/a/b/1x", "/a/b", &number) == -EPROTO);
	CHECK(path_number("/a/b/1/2", "/a/b", &number) == -EPROTO);
	CHECK(path_number("/a/b/-1", "/a/b", &number) == -EPROTO);
	CHECK(number == UINT64_MAX);
}

TEST(every_error_name_of_the_contract_has_its_errno)
{
	static const struct {
		const char *name;
		int error;
	} names[] = {
		{ GPUARB_ERROR_INVALID_REQUEST, -EINVAL },
		{ GPUARB_ERROR_INVALID_STATE, -EBADFD },
		{ GPUARB_ERROR_TOKEN_CONFLICT, -EEXIST },
		{ GPUARB_ERROR_NOT_PERMITTED, -EACCES },
		{ GPUARB_ERROR_QUOTA_EXCEEDED, -EDQUOT },
		{ GPUARB_ERROR_NO_CAPACITY, -EBUSY },
		{ GPUARB_ERROR_NEVER_FITS, -ENOSPC },
		{ GPUARB_ERROR_NO_SUCH_GPU, -ENODEV },
		{ GPUARB_ERROR_NO_SUCH_LEASE, -ENOENT },
		{ GPUARB_ERROR_NO_SUCH_TENANT, -ESRCH },
		{ GPUARB_ERROR_NOT_SUPPORTED, -EOPNOTSUPP },
		{ GPUARB_ERROR_NOT_SAVED, -EIO },
		{ GPUARB_ERROR_TOO_MANY_LEASES, -EUSERS },
		{ GPUARB_ERROR_TIMED_OUT, -ETIMEDOUT },
		{ GPUARB_ERROR_SHUTDOWN, -ESHUTDOWN },
		{ DBUS_ERROR_SERVICE_UNKNOWN, -ECONNREFUSED },
		{ DBUS_ERROR_NAME_HAS_NO_OWNER, -ECONNREFUSED },
		{ DBUS_ERROR_SPAWN_EXEC_FAILED, -ECONNREFUSED },
		{ "org.freedesktop.systemd1.NoSuchUnit", -ECONNREFUSED },
		{ DBUS_ERROR_NO_REPLY, -ECONNRESET },
		{ DBUS_ERROR_ACCESS_DENIED, -EACCES },
		{ DBUS_ERROR_UNKNOWN_OBJECT, -ENOENT },
		{ "org.example.Whatever", -EPROTO },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		CHECK(error_from_name(names[i].name) == names[i].error);
}

static DBusMessageIter *answer; /* what is read without memory */

static int read_answer(long allocations)
{
	const struct gpuarb_effects *effects = NULL;
	const struct gpuarb_partition *partitions = NULL;
	struct refusals refusals = { 0 };
	struct arena arena = { NULL };
	const char *key = NULL;
	size_t n = 0;
	int r;

	lack_left = allocations;
	r = read_partitions(answer, &arena, &partitions, &n, &key);
	if (r >= 0)
		r = read_refusals(answer, &arena, &refusals, &key);
	if (r >= 0)
		r = read_effects(answer, &arena, &effects);
	CHECK(r < 0 || (n == 2 && refusals.n == 2 && effects));
	arena_clear(&arena);
	return r;
}

static int read_one_gpu(long allocations)
{
	struct gpu_facts facts = { 0 };
	struct arena arena = { NULL };
	struct gpuarb_gpu gpu;
	const char *key = NULL;
	int r;

	lack_left = allocations;
	r = read_gpu(answer, &arena, &gpu, &facts, &key);
	arena_clear(&arena);
	return r;
}

TEST(answers_are_read_whole_or_not)
{
	static const struct pair rows[] = { { "gpu", "s" },     { "cu-mask", "au" },
					    { "gaps", "as" },   { "shader-engines", "au" },
					    { "tier", "s" },    { "resource", "s" },
					    { "fits", "at" },   { "end", "at" },
					    { "revokes", "at" } };
	static const struct pair texts[] = { { "Name", "s" },
					     { "Scheduler", "s" },
					     { "Law", "s" } };
	DBusMessageIter iter;
	DBusMessage *m = rows_of(rows, ARRAY_SIZE(rows), 2, &iter);

	answer = &iter;
	CHECK(lack_each("rows", read_answer) >= 20);
	dbus_message_unref(m);
	m = gpu_of(2, 3, 2, false, &iter);
	CHECK(lack_each("read_gpu", read_one_gpu) >= 2);
	dbus_message_unref(m);
	m = dict_of(texts, ARRAY_SIZE(texts), &iter);
	CHECK(lack_each("read_gpu", read_one_gpu) >= 3);
	dbus_message_unref(m);
}

TEST(an_array_that_no_memory_can_hold_is_not_made)
{
	_cleanup_(arena_clear) struct arena arena = { NULL };

	CHECK(!arena_alloc(&arena, SIZE_MAX, 2) && !arena_alloc(&arena, SIZE_MAX, 1));
}
