/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A lease as JSON text: one object, version 2. All members that state-json.c writes have to
 * be there, but for what its comments say, and no others: what a reader does not know could
 * be what the promise rests on. Whoever adds a member counts the version up.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/change/arbiter.h"
#include "sys/state/state.h"

#define STATE_JSON_VERSION 2

/* All of the lease, so that a ledger can be built again from it. -ENOMEM. */
int state_json_write(const struct arbiter *arbiter, const struct lease *lease, char **ret);

/* The word for why a lease ends: its place in the enum may change. */
const char *state_json_cause(enum result_kind cause);

/* Reads what state_json_write() wrote. -EINVAL: it is torn or not ours; why says what is
 * wrong with it. -ENOMEM. */
int state_json_read(const struct arbiter *arbiter, const char *text, size_t length,
		    struct state_lease *ret, char *why, size_t size);
