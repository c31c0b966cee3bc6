/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/policy/class.h"

#define CALLER_GROUPS 1024U /* of a user; one with more is refused */

/* The process that sent the request. The bus guarantees uid and groups; the rest are hints. */
struct caller {
	uid_t uid;
	gid_t groups[CALLER_GROUPS];
	size_t n_groups;
	bool administrator;
	bool unbound;            /* no process will be bound to its lease: struct lease */
	pid_t pid;               /* 0: unknown */
	uint64_t start_time;     /* of pid, when the connection was first used; 0: unknown */
	char unit[REQUEST_TEXT]; /* "": unknown, as the next two */
	char slice[REQUEST_TEXT];
	char executable[256];
};
