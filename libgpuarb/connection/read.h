/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads D-Bus dictionaries into structures and checks the type of every value. */

#include <dbus/dbus.h>

#include "libgpuarb/connection/basics.h"

/*
 * One key of a dictionary and the member that it fills. type: 'b' bool, 'u' uint32_t, 't'
 * uint64_t (from u or t), 's' const char *; 'U' const uint32_t *, 'T' const uint64_t * and 'S'
 * const char *const *, with their number in the member at count_offset; 0: read() does it.
 */
struct field {
	const char *key;
	char type;
	size_t offset, count_offset;
	int (*read)(DBusMessageIter *value, struct arena *arena, void *object);
};

/*
 * Fills object from an a{sv}. Keys without a field are skipped, because newer daemons send more
 * keys. A string whose key is missing is "". -EPROTO: *ret_key (unless ret_key is NULL) is the key
 * whose value has the wrong type. -ENOMEM.
 */
int read_fields(DBusMessageIter *dict, const struct field *fields, size_t n_fields,
		struct arena *arena, void *object, const char **ret_key);

/* Sets *ret_array to an array of *ret_n objects of size bytes, one for each dictionary of an
 * aa{sv}. */
int read_rows(DBusMessageIter *rows, const struct field *fields, size_t n_fields,
	      struct arena *arena, size_t size, void *ret_array, size_t *ret_n,
	      const char **ret_key);

/* -EPROTO unless the iterator is at a value of this single complete type. */
int iter_check(DBusMessageIter *iter, const char *signature);
size_t iter_count(const DBusMessageIter *array); /* elements of the array at the iterator */

/* Reads the number in the object path PREFIX/NUMBER. -EPROTO for every other path. */
int path_number(const char *path, const char *prefix, uint64_t *ret);
