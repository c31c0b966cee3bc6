/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the answers of the daemon into structures and checks the type of every value. */

#include <dbus/dbus.h>

#include "libgpuarb/connection/basics.h"
#include "daemon/util/each.h"
#include "libgpuarb/gpuarb.h"

/*
 * One key of a dictionary and the member that it fills. type: 'b' bool, 'd' double, 'u' uint32_t,
 * 't' uint64_t (from u or t), 's' const char *; 'U' const uint32_t *, 'T' const uint64_t *, 'S'
 * const char *const * and 'R' an array of the objects of rows (from aa{sv}), with their number in
 * the member at count_offset; 0: read() does it.
 */
struct field {
	const char
		*key; /* or the name of the member, which has underscores and lower case instead */
	char type;
	size_t offset, count_offset;
	const struct dictionary *rows;
	int (*read)(DBusMessageIter *value, struct arena *arena, void *object);
};

struct dictionary {
	const struct field *fields;
	size_t n;
	size_t size; /* of the object that it fills */
};

/* clang-format off */
#define FIELD(type_, key_, object, member) \
	{ .key = (key_), .type = (type_), .offset = offsetof(struct object, member) }
#define MEMBER_FIELD(object, prefix, member)                                        \
	{ .key = #member, .offset = offsetof(struct object, prefix member),         \
	  .type = _Generic(((struct object *)NULL)->prefix member, bool: 'b', double: 'd', \
			   uint32_t: 'u', uint64_t: 't', const char *: 's') }
#define MEMBERS(object, ...) EACH(MEMBER_FIELD, object, , __VA_ARGS__)
#define LIST_FIELD(object, prefix, member)                                                \
	{ .key = #member, .offset = offsetof(struct object, member),                      \
	  .count_offset = offsetof(struct object, n_##member),                            \
	  .type = _Generic(((struct object *)NULL)->member, const uint32_t *: 'U',        \
			   const uint64_t *: 'T', const char *const *: 'S') }
#define LISTS(object, ...) EACH(LIST_FIELD, object, , __VA_ARGS__)
#define ROWS(type_, key_, rows_, object, member, count)                            \
	{ .key = (key_), .type = (type_), .offset = offsetof(struct object, member), \
	  .rows = (rows_), .count_offset = offsetof(struct object, count) }
#define LIST(type, key, object, member, count) ROWS(type, key, NULL, object, member, count)
#define SPECIAL(key_, read_) { .key = (key_), .read = (read_) }
#define DICTIONARY(object, ...)                                                           \
	{ .fields = (const struct field[]){ __VA_ARGS__ }, .size = sizeof(struct object),  \
	  .n = sizeof((const struct field[]){ __VA_ARGS__ }) / sizeof(struct field) }
/* clang-format on */

/*
 * Fills object from an a{sv}. Keys without a field are skipped, because newer daemons send more
 * keys. A string whose key is missing is "". -EPROTO: *ret_key (unless ret_key is NULL) is the key
 * whose value has the wrong type, in the message. -ENOMEM.
 */
int read_dictionary(DBusMessageIter *dict, const struct dictionary *dictionary, struct arena *arena,
		    void *object, const char **ret_key);

/* Sets *ret_array to an array of *ret_n objects, one for each dictionary of an aa{sv}. */
int read_rows(DBusMessageIter *rows, const struct dictionary *dictionary, struct arena *arena,
	      void *ret_array, size_t *ret_n, const char **ret_key);

/* An argument of an answer: an a{sv} that fills a member, or an aa{sv} with the number of its rows in the
 * member at count_offset. */
struct argument {
	const struct dictionary *dictionary;
	size_t offset, count_offset; /* count_offset 0: a{sv} */
};

/* clang-format off */
#define ARGUMENT(dictionary_, object, member) \
	{ .dictionary = (dictionary_), .offset = offsetof(struct object, member) }
#define ARGUMENT_ROWS(dictionary_, object, member, count)                              \
	{ .dictionary = (dictionary_), .offset = offsetof(struct object, member), \
	  .count_offset = offsetof(struct object, count) }
/* clang-format on */

/* Fills object from all arguments of an answer, whose signature has been checked. */
int read_arguments(DBusMessage *answer, const struct argument *arguments, size_t n,
		   struct arena *arena, void *object, const char **ret_key);

size_t iter_count(const DBusMessageIter *array); /* elements of the array at the iterator */

/* Reads the number in the object path PREFIX/NUMBER. -EPROTO for every other path. */
int path_number(const char *path, const char *prefix, uint64_t *ret);

/* ---- GPUs and leases; failures as of read_dictionary() --------------------------------------- */

int read_partitions(DBusMessageIter *rows, struct arena *arena, const struct gpuarb_partition **ret,
		    size_t *ret_n, const char **ret_key);
/* What a plan takes from other leases, which is in the first row of partitions or refusals. *ret stays
 * as it is where there is nothing. */
int read_effects(DBusMessageIter *rows, struct arena *arena, const struct gpuarb_effects **ret);

/* 0: there is no partition, and *ret is untouched; 1. */
int read_terms(DBusMessageIter *rows, struct arena *arena, struct terms *ret, const char **ret_key);

int read_refusals(DBusMessageIter *rows, struct arena *arena, struct refusals *ret,
		  const char **ret_key);

/* What struct gpuarb_lease_info and struct gpuarb_gpu have no place for: for each, ROW(type, name, none).
 * gpuarb_view_NAME() returns it, or none where there is no such lease or GPU. */
/* clang-format off */
#define LEASE_FACTS(ROW)                 \
	ROW(bool, alone, false)          \
	ROW(bool, capped, false)         \
	ROW(const char *, uncapped, "")  \
	ROW(bool, verified, false)       \
	ROW(uint64_t, duration, 0)       \
	ROW(uint64_t, moves, 0)          \
	ROW(uint64_t, queue_refusals, 0) \
	ROW(uint64_t, resets, 0)         \
	ROW(uint64_t, since, 0)

#define GPU_FACTS(ROW)                      \
	ROW(double, fairness, NAN)          \
	ROW(const char *, floor_excess, "") \
	ROW(const char *, graphics, "")     \
	ROW(uint32_t, law_constant, 0)      \
	ROW(const char *, law_source, "")   \
	ROW(uint64_t, masks_observed, 0)    \
	ROW(const char *, memory, "")       \
	ROW(const char *, pipes_source, "") \
	ROW(const char *, unseen, "")       \
	ROW(uint64_t, barred_for, 0)        \
	ROW(bool, named_only, false)        \
	ROW(bool, system_memory, false)     \
	ROW(bool, vram_pressure, false)
/* clang-format on */

#define FACT_MEMBER(type, name, none) type name;

struct lease_facts {
	LEASE_FACTS(FACT_MEMBER)
	struct refusals waits_for; /* why a waiting lease is not granted */
	struct gpuarb_pause pause, evictions;
	const uint32_t *cus_min; /* of each partition */
	size_t n_cus_min;
	struct gpuarb_drift *drift;
	size_t n_drift;
	struct gpuarb_intruder *intruders;
	size_t n_intruders;
};

struct gpu_facts {
	GPU_FACTS(FACT_MEMBER)
	const struct gpuarb_client *clients;
	size_t n_clients;
	struct gpuarb_calibration calibration; /* date NULL: the daemon does not tell */
	struct gpuarb_cover *covers;
	size_t n_covers;
	const struct gpuarb_driver_events *events;
	size_t n_events;
};

/* ret_facts: or NULL. */
int read_lease(DBusMessageIter *dict, struct arena *arena, struct gpuarb_lease_info *ret,
	       struct lease_facts *ret_facts, const char **ret_key);
/* ret_facts: or NULL. */
int read_gpu(DBusMessageIter *dict, struct arena *arena, struct gpuarb_gpu *ret,
	     struct gpu_facts *ret_facts, const char **ret_key);

/* The answer of ReadSlots. */
struct gpuarb_slots {
	struct arena arena;
	const struct gpuarb_queue_slot *rows, *sdma; /* sdma: pipe is the number of the engine */
	size_t n, n_sdma;
	uint64_t usec;
	uint32_t queues, without_slot;
};
#define SLOTS_ARGUMENTS 2U
extern const struct argument slots_arguments[SLOTS_ARGUMENTS];
