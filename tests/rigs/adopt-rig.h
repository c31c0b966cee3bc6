/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Leases as a file would bring them. */

#include "scene.h"

struct lease *saved(const struct lease *lease);

/* 0; or the error, and then the lease is freed, nothing has changed, and why says something.
 * The promises hold. */
int adopt_saved(struct arbiter *arbiter, struct lease *lease, const char *lost, char *why,
		size_t size);

/* The daemon before, and the one that adopts. */
struct pair {
	struct scene old, new;
	char why[256];
};

struct pair pair_of(size_t n_gpus);

void pair_done(struct pair *p);

int adopt(struct pair *p, struct lease *lease);

bool refused_for(const struct pair *p, int r, int error, const char *words);
