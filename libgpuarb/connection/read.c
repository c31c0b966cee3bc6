/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "libgpuarb/connection/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 4096U /* more than the GPUs or KFD processes of any machine */

int iter_check(DBusMessageIter *iter, const char *signature)
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

static const struct field *field_find(const struct field *fields, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(fields[i].key, key) == 0)
			return &fields[i];
	return NULL;
}

static int read_entry(DBusMessageIter *entry, const struct field *fields, size_t n_fields,
		      struct arena *arena, void *object, const char **ret_key)
{
	const struct field *field;
	DBusMessageIter value;
	const char *key;
	int r;

	dbus_message_iter_get_basic(entry, &key);
	field = field_find(fields, n_fields, key);
	if (!field)
		return 0;

	dbus_message_iter_next(entry);
	dbus_message_iter_recurse(entry, &value);
	r = read_field(&value, field, arena, object);
	if (r == -EPROTO && ret_key)
		*ret_key = field->key;
	return r;
}

int read_fields(DBusMessageIter *dict, const struct field *fields, size_t n_fields,
		struct arena *arena, void *object, const char **ret_key)
{
	DBusMessageIter entries, entry;

	for (size_t i = 0; i < n_fields; i++)
		if (fields[i].type == 's')
			*(const char **)member_at(object, fields[i].offset) = "";

	dbus_message_iter_recurse(dict, &entries);
	for (; dbus_message_iter_get_arg_type(&entries) != DBUS_TYPE_INVALID;
	     dbus_message_iter_next(&entries)) {
		int r;

		dbus_message_iter_recurse(&entries, &entry);
		r = read_entry(&entry, fields, n_fields, arena, object, ret_key);
		if (r < 0)
			return r;
	}
	return 0;
}

int read_rows(DBusMessageIter *rows, const struct field *fields, size_t n_fields,
	      struct arena *arena, size_t size, void *ret_array, size_t *ret_n,
	      const char **ret_key)
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
	array = arena_alloc(arena, n, size);
	if (!array)
		return -ENOMEM;

	dbus_message_iter_recurse(rows, &row);
	for (size_t i = 0; i < n; i++) {
		r = read_fields(&row, fields, n_fields, arena, array + i * size, ret_key);
		if (r < 0)
			return r;
		dbus_message_iter_next(&row);
	}
	*(void **)ret_array = array;
	*ret_n = n;
	return 0;
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
