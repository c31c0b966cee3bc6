/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Requests with the wants and options of the program, and calls of the daemon's object for a lease,
 * by the number of the lease. */

#include <dbus/dbus.h>

#include "libgpuarb/connection/handle.h"

/* -EINVAL, noted with the name of the argument, unless the string is NULL or short UTF-8. */
int check_string(struct gpuarb *gpuarb, const char *name, const char *string);

/* -EINVAL, noted with the name of the argument, unless fd is an open file descriptor. */
int check_fd(struct gpuarb *gpuarb, const char *name, int fd);

/* Makes a call with aa{sv} wants and a{sv} options, which contain only the keys that differ from
 * their defaults. -EINVAL and -EOPNOTSUPP are noted. */
int request_new(struct gpuarb *gpuarb, const char *path, const char *interface, const char *member,
		const struct gpuarb_want *wants, size_t n, const struct gpuarb_options *options,
		DBusMessage **ret);

struct lease_path {
	char text[64];
};
struct lease_path lease_path(uint64_t id); /* of the object */

/* -ENOENT from a call that was repeated counts as success: the first attempt released the lease. */
int lease_call_release(struct gpuarb *gpuarb, uint64_t id);

int lease_call_set_active(struct gpuarb *gpuarb, uint64_t id, bool active);
