/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A ledger with a clock: leases that lend and borrow. */

#include "scene.h"

#define SECOND_USEC UINT64_C(1000000)

struct lending {
	struct scene s;
	uint64_t now;
};

/* What a daemon does after everything. */
void settle(struct lending *l);

void pass(struct lending *l, uint64_t usec);

struct lending lending_of(size_t gpus);

/* An adaptable lease of anybody's. */
struct lease *borrow(struct lending *l, unsigned least, unsigned most);

struct lease *keep_inactive(struct lending *l, unsigned cus);

/* 0, or the error. */
int activate(struct lending *l, uint64_t id, bool active);

void follow(struct lending *l, const struct lease *lease);

unsigned cus_of(const struct lease *lease);

/* A borrower that does not answer, and who needs what it has. */
struct contest {
	struct lending l;
	struct lease *rt, *borrower;
};

struct contest contest_of(enum enforce_step enforce);
