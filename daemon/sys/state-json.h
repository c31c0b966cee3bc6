/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A lease as JSON text. */

#include <stdint.h>
#include <sys/types.h>

#include "core/arbiter.h"

/* All of the lease, so that a ledger can be built again from it. -ENOMEM. */
int state_json_write(const struct arbiter *arbiter, const struct lease *lease, char **ret);

/* What is told of a lease whose daemon is gone. */
struct state_obituary {
	uint64_t id;
	uid_t owner;
	char name[REQUEST_TEXT];
	char tenant[REQUEST_TEXT];
};

/* Reads just that from an open file. -EINVAL if it is no saved lease. */
int state_json_read(int fd, struct state_obituary *ret);
