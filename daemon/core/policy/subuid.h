/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Subordinate uids, subuid(5): the uids that the processes in a user's containers may have. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "util/base.h"

/* Ranges below this one hold uids of the system and of users, and are not believed. */
#define SUBUID_FIRST 65536U
#define SUBUID_RANGES_MAX 65536U

struct subuid_range {
	uid_t first, last, owner;
};

/* Ascending, without overlaps. */
struct subuids {
	struct subuid_range *ranges;
	size_t n;
};

/* The uid of an owner, which the file names or gives as a number; false: there is no such user. */
typedef bool subuid_owner_t(void *userdata, const char *owner, uid_t *ret);

/* Parses a subuid file, which is changed. The ranges of root are no part of root: each belongs to its
 * first uid. What is malformed, below SUBUID_FIRST, of an unknown owner, or
 * beyond SUBUID_RANGES_MAX is left out, and so are ranges of different owners that overlap, and a range
 * that contains an owner: these uids then stand for themselves. Returns how many lines were left out;
 * -ENOMEM. */
int subuids_parse(char *text, subuid_owner_t *owner, void *userdata, struct subuids *ret);
void subuids_done(struct subuids *subuids);

/* The owner of a subordinate uid; otherwise the uid itself. */
uid_t subuids_user(const struct subuids *subuids, uid_t uid);
