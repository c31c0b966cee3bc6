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

/* Answers, one after the other, and what is read from them. */
struct reading {
	DBusMessage *m;
	DBusMessageIter iter; /* at the beginning of the answer */
	struct arena arena;
	struct refusals refusals;
	const struct gpuarb_partition *partitions;
	const struct gpuarb_effects *effects;
	const char *key; /* that is wrong */
	size_t n;
};

static void answer_drop(struct reading *r)
{
	if (r->m)
		dbus_message_unref(r->m);
	r->m = NULL;
}

static void reading_done(struct reading *r)
{
	answer_drop(r);
	arena_clear(&r->arena);
}

FIXTURE(struct reading, r, , reading_done(r));

/* Begins to write an answer. */
static void answer_begin(struct reading *r, DBusMessageIter *ret)
{
	answer_drop(r);
	r->key = NULL;
	r->m = dbus_message_new(DBUS_MESSAGE_TYPE_METHOD_CALL);
	CHECK(r->m);
	dbus_message_iter_init_append(r->m, ret);
}

static void dict_of(struct reading *r, const struct pair *pairs, size_t n)
{
	DBusMessageIter iter, dict;

	answer_begin(r, &iter);
	CHECK(dbus_message_iter_open_container(&iter, DBUS_TYPE_ARRAY, "{sv}", &dict));
	for (size_t i = 0; i < n; i++)
		put_variant(&dict, pairs[i].key, pairs[i].signature);
	CHECK(dbus_message_iter_close_container(&iter, &dict));
	dbus_message_iter_init(r->m, &r->iter);
}

static void rows_of(struct reading *r, const struct pair *pairs, size_t n, size_t rows)
{
	DBusMessageIter iter, array, dict;

	answer_begin(r, &iter);
	CHECK(dbus_message_iter_open_container(&iter, DBUS_TYPE_ARRAY, "a{sv}", &array));
	for (size_t row = 0; row < rows; row++) {
		CHECK(dbus_message_iter_open_container(&array, DBUS_TYPE_ARRAY, "{sv}", &dict));
		for (size_t i = 0; i < n; i++)
			put_variant(&dict, pairs[i].key, pairs[i].signature);
		CHECK(dbus_message_iter_close_container(&array, &dict));
	}
	CHECK(dbus_message_iter_close_container(&iter, &array));
	dbus_message_iter_init(r->m, &r->iter);
}

static int partitions_of(struct reading *r)
{
	return read_partitions(&r->iter, &r->arena, &r->partitions, &r->n, &r->key);
}

static int refusals_of(struct reading *r)
{
	return read_refusals(&r->iter, &r->arena, &r->refusals, &r->key);
}

static int effects_of(struct reading *r)
{
	r->effects = NULL;
	return read_effects(&r->iter, &r->arena, &r->effects);
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

TEST_WITH(partitions_are_read_and_unknown_keys_skipped, struct reading *r)
{
	const struct gpuarb_partition *second;

	rows_of(r, partition_pairs, ARRAY_SIZE(partition_pairs), 2);
	CHECK(partitions_of(r) == 0 && r->n == 2);
	second = &r->partitions[1];
	CHECK(strcmp(second->gpu, "/text") == 0);
	CHECK(second->kfd_gpu_id == 7 && second->vram == 7);
	CHECK(second->cu_mask_words == 3 && second->cu_mask[2] == 2);
	CHECK(second->n_shader_engines == 3 && second->priority == 7);
	CHECK(second->n_gaps == 3 && strcmp(second->gaps[2], "gap") == 0);
	CHECK(second->n_priorities_seen == 3 && second->priorities_seen[2] == 2);
}

TEST_WITH(only_partitions_tell_the_cap_and_the_duration_of_a_lease, struct reading *r)
{
	static const struct pair pairs[] = { { "gpu", "s" },
					     { "cap", "b" },
					     { "duration-usec", "t" } };
	static const struct pair wrong[] = { { "cap", "s" } };
	struct terms terms = { .cap = true };

	rows_of(r, pairs, ARRAY_SIZE(pairs), 0);
	CHECK(read_terms(&r->iter, &r->arena, &terms, NULL) == 0 && terms.cap);
	rows_of(r, pairs, 1, 1); /* of an older daemon */
	CHECK(read_terms(&r->iter, &r->arena, &terms, NULL) == 1 && !terms.cap);
	CHECK(terms.duration == 0);
	rows_of(r, pairs, 3, 2);
	CHECK(read_terms(&r->iter, &r->arena, &terms, NULL) == 1 && terms.cap);
	CHECK(terms.duration == 7);
	rows_of(r, wrong, 1, 1);
	CHECK(read_terms(&r->iter, &r->arena, &terms, &r->key) == -EPROTO);
	CHECK(strcmp(r->key, "cap") == 0);
}

TEST_WITH(missing_strings_are_empty_and_never_null, struct reading *r)
{
	const struct gpuarb_refusal_facts *facts;

	rows_of(r, NULL, 0, 1);
	CHECK(partitions_of(r) == 0 && r->n == 1);
	CHECK(*r->partitions[0].gpu == '\0' && *r->partitions[0].tier == '\0');
	CHECK(refusals_of(r) == 0 && r->refusals.n == 1);
	CHECK(*r->refusals.rows[0].gpu == '\0' && *r->refusals.rows[0].hint == '\0');
	facts = &r->refusals.facts[0];
	CHECK(*facts->resource == '\0' && *facts->tenant == '\0');
	CHECK(facts->size == sizeof(*facts) && !facts->leases);
}

TEST_WITH(numbers_of_refusals_are_read_in_both_widths, struct reading *r)
{
	static const struct pair narrow[] = { { "asked", "u" }, { "free", "t" } };

	rows_of(r, narrow, 2, 1);
	CHECK(refusals_of(r) == 0);
	CHECK(r->refusals.rows[0].asked == 7 && r->refusals.rows[0].free == 7);
}

TEST_WITH(a_refusal_can_list_leases, struct reading *r)
{
	static const struct pair end[] = { { "end", "at" }, { "end-exact", "b" } };
	const struct gpuarb_refusal *row;

	rows_of(r, end, 2, 1);
	CHECK(refusals_of(r) == 0);
	row = &r->refusals.rows[0];
	CHECK(row->n_end == 3 && row->end[2] == 2 && row->end_exact);
}

TEST_WITH(effects_of_a_plan_are_in_its_first_row, struct reading *r)
{
	static const struct pair pairs[] = { { "revokes", "at" }, { "within-usec", "t" } };
	static const struct pair none[] = { { "gpu", "s" } };
	static const struct pair wrong[] = { { "shrinks", "s" } };

	rows_of(r, pairs, ARRAY_SIZE(pairs), 2);
	CHECK(effects_of(r) == 0 && r->effects);
	CHECK(r->effects->size == sizeof(*r->effects) && r->effects->n_shrinks == 0);
	CHECK(r->effects->n_revokes == 3 && r->effects->revokes[2] == 2);
	CHECK(r->effects->within_usec == 7);
	rows_of(r, none, ARRAY_SIZE(none), 2);
	CHECK(effects_of(r) == 0 && !r->effects);
	rows_of(r, wrong, ARRAY_SIZE(wrong), 1);
	CHECK(effects_of(r) == -EPROTO && !r->effects);
}

TEST_WITH(facts_of_a_refusal_are_beside_it, struct reading *r)
{
	static const struct pair pairs[] = { { "resource", "s" },    { "total", "t" },
					     { "limit", "u" },       { "key", "s" },
					     { "fits", "at" },       { "leases", "at" },
					     { "lease-count", "u" }, { "behind", "t" } };
	const struct gpuarb_refusal_facts *facts;

	rows_of(r, pairs, ARRAY_SIZE(pairs), 2);
	CHECK(refusals_of(r) == 0 && r->refusals.n == 2);
	facts = &r->refusals.facts[1];
	CHECK(strcmp(facts->resource, "/text") == 0 && strcmp(facts->key, "/text") == 0);
	CHECK(facts->total == 7 && facts->limit == 7 && facts->behind == 7);
	CHECK(facts->n_fits == 3 && facts->n_leases == 3 && facts->leases[2] == 2);
	CHECK(facts->lease_count == 7 && facts->n_processes == 0);
}

TEST_WITH(a_value_of_the_wrong_type_is_rejected_with_its_key, struct reading *r)
{
	static const char *const types[] = { "s", "u", "t", "b", "d", "y", "o", "au", "as", "aau" };

	for (size_t i = 0; i + 1 < ARRAY_SIZE(partition_pairs); i++)
		for (size_t k = 0; k < ARRAY_SIZE(types); k++) {
			struct pair pair = { partition_pairs[i].key, types[k] };
			bool right = strcmp(pair.signature, partition_pairs[i].signature) == 0 ||
				     (*partition_pairs[i].signature == 't' && *types[k] == 'u');

			rows_of(r, &pair, 1, 1);
			CHECK(partitions_of(r) == (right ? 0 : -EPROTO));
			CHECK(right ? !r->key : strcmp(r->key, pair.key) == 0);
		}
}

TEST_WITH(too_many_rows_are_rejected, struct reading *r)
{
	rows_of(r, NULL, 0, 4097);
	CHECK(partitions_of(r) == -EPROTO);
}

TEST_WITH(tables_of_cus_must_match_the_gpu, struct reading *r)
{
	/* All numbers are 7 and all tables are 3 x 4, so no table matches its GPU. */
	static const struct pair pairs[] = { { "Xccs", "u" },
					     { "ShaderEngines", "u" },
					     { "CusPerShaderEngine", "aau" } };
	static const struct pair empty[] = { { "Name", "s" }, { "Oversubscribed", "b" } };
	struct gpu_facts facts = { 0 };
	struct gpuarb_gpu gpu;

	dict_of(r, pairs, 3);
	CHECK(read_gpu(&r->iter, &r->arena, &gpu, NULL, &r->key) == -EPROTO);
	CHECK(strcmp(r->key, "CusPerShaderEngine") == 0);

	dict_of(r, empty, 2);
	CHECK(read_gpu(&r->iter, &r->arena, &gpu, &facts, &r->key) == 0);
	CHECK(isnan(facts.fairness) && strcmp(facts.pipes_source, "") == 0); /* an older daemon */
	CHECK(facts.masks_observed == 0 && facts.n_covers == 0);
	CHECK(gpu.oversubscribed && !gpu.cus_per_shader_engine && gpu.shader_arrays == 0);
	CHECK(*gpu.scheduler == '\0' && gpu.n_unmanaged == 0);
}

/* Appends an aaau of xccs x engines x arrays; uneven: its last row has one more element. */
static void gpu_of(struct reading *r, uint32_t xccs, uint32_t engines, uint32_t arrays, bool uneven)
{
	DBusMessageIter iter, dict, entry, variant, outer, middle, inner;
	const char *key = "CusPerShaderArray";

	answer_begin(r, &iter);
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
	dbus_message_iter_init(r->m, &r->iter);
}

TEST_WITH(arrays_of_every_engine_and_xcc_are_read_in_order, struct reading *r)
{
	static const struct {
		uint32_t engines, arrays;
		bool uneven;
	} wrong[] = { { 3, 2, true }, { 3, 0, false }, { 0, 0, false } };
	struct gpuarb_gpu gpu;

	gpu_of(r, 2, 3, 2, false);
	CHECK(read_gpu(&r->iter, &r->arena, &gpu, NULL, &r->key) == 0);
	CHECK(gpu.xccs == 2 && gpu.shader_engines == 3 && gpu.shader_arrays == 2);
	for (uint32_t i = 0; i < 12; i++)
		CHECK(gpu.cus_per_shader_array[i] == i / 6 * 100 + i / 2 % 3 * 10 + i % 2);

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		gpu_of(r, 2, wrong[i].engines, wrong[i].arrays, wrong[i].uneven);
		CHECK(read_gpu(&r->iter, &r->arena, &gpu, NULL, &r->key) == -EPROTO);
		CHECK(i > 0 || strcmp(r->key, "CusPerShaderArray") == 0);
	}
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

TEST_WITH(answers_are_read_whole_or_not, struct reading *r)
{
	static const struct pair rows[] = { { "gpu", "s" },     { "cu-mask", "au" },
					    { "gaps", "as" },   { "shader-engines", "au" },
					    { "tier", "s" },    { "resource", "s" },
					    { "fits", "at" },   { "end", "at" },
					    { "revokes", "at" } };
	static const struct pair texts[] = { { "Name", "s" },
					     { "Scheduler", "s" },
					     { "Law", "s" } };

	answer = &r->iter;
	rows_of(r, rows, ARRAY_SIZE(rows), 2);
	CHECK(lack_each("rows", read_answer) >= 20);
	gpu_of(r, 2, 3, 2, false);
	CHECK(lack_each("read_gpu", read_one_gpu) >= 2);
	dict_of(r, texts, ARRAY_SIZE(texts));
	CHECK(lack_each("read_gpu", read_one_gpu) >= 3);
}

TEST(an_array_that_no_memory_can_hold_is_not_made)
{
	_cleanup_(arena_clear) struct arena arena = { NULL };

	CHECK(!arena_alloc(&arena, SIZE_MAX, 2) && !arena_alloc(&arena, SIZE_MAX, 1));
}
