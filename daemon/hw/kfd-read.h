/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Bounded reading of sysfs for the kfd backend. Nothing is read at greater length than the kernel
 * can have written, and a number must be one from its first to its last byte.
 */

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/base.h"

#define KFD_TEXT 65537U /* a sysfs attribute is one page, 64 KiB at most, and a NUL */
#define KFD_NODES 256U
#define KFD_ENTRIES 16384U /* in one directory of hardware */

/* An open directory, and its path for diagnostics. */
struct kfd_dir {
	int fd;
	char path[512];
};

int kfd_dir_open(const struct kfd_dir *parent, const char *name, struct kfd_dir *ret);
void kfd_dir_close(struct kfd_dir *dir);

/* The initial value: a zeroed kfd_dir would close file descriptor 0. */
/* clang-format off */
#define KFD_DIR_NONE { .fd = -1 }
/* clang-format on */
#define _cleanup_dir_ _cleanup_(kfd_dir_close)

/* Is the name a decimal number up to INT32_MAX, as the driver writes it? */
bool kfd_name_number(const char *name, unsigned *ret);

/* Opens a directory of hardware and fills numbers[] with the names in it that are numbers, ascending.
 * Ignores other names. Returns how many, or -E2BIG for more than max, or than KFD_ENTRIES names. *ret is
 * for kfd_dir_close() also after an error. */
int kfd_dir_open_numbers(const struct kfd_dir *parent, const char *name, unsigned *numbers,
			 size_t max, struct kfd_dir *ret);

/* Reads a whole file and adds a NUL. -EFBIG: buf is too small; -EBADMSG: not a regular file or not
 * text; or the error of open() or read(). */
int kfd_read(const struct kfd_dir *dir, const char *name, char *buf, size_t size);

/* Reads a file with one number and perhaps a newline. As kfd_read(); -EBADMSG: no number; -ERANGE:
 * above max. */
int kfd_read_number(const struct kfd_dir *dir, const char *name, uint64_t max, uint64_t *ret);

/* Parses the decimal number in text[0..length). -EBADMSG; -ERANGE: above max. */
int kfd_number(const char *text, size_t length, uint64_t max, uint64_t *ret);

/* Finds the value in the line "key value" of a properties file; it is not NUL-terminated. -ENODATA:
 * no such line. */
int kfd_property(const char *text, const char *key, const char **ret, size_t *ret_length);
int kfd_property_number(const char *text, const char *key, uint64_t max, uint64_t *ret);

/* Does the error tell nothing of what was to be read? There was no descriptor or memory for it. */
bool kfd_is_lacking(int error);

/* Likewise, or it is too much. */
bool kfd_is_unread(int error);

const char *kfd_trouble(int error); /* the errors of these functions in words */
