/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A ledger with a clock: leases that lend and borrow. */

#include "scene.h"

#define SECOND_USEC UINT64_C(1000000)

struct lending {
	struct scene s;
	uint64_t now;
};

/* Commits the leases of a step. */
void commit_all(struct lending *l, struct move_set *set);

/* Puts facts into force, and lets adaptable leases grow, until nothing follows. */
void settle(struct lending *l);

void pass(struct lending *l, uint64_t usec);

struct lending lending_of(size_t gpus);
void lending_done(struct lending *l);

/* Reserves as grant_as(), and settles. */
struct lease *reserve_as(struct lending *l, uid_t uid, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Reserves an adaptable lease for the user ANY. */
struct lease *borrow(struct lending *l, unsigned least, unsigned most);

struct lease *keep_inactive(struct lending *l, unsigned cus);

/* Returns 0 or a negative errno. */
int activate(struct lending *l, uint64_t id, bool active);

void follow(struct lending *l, const struct lease *lease);

/* Each holder acknowledges what it has not yet, and what follows is put into force before the next one. */
void follow_each(struct lending *l);

unsigned cus_of(const struct lease *lease);

/* A borrower that does not acknowledge, and the realtime lease that reclaims its CUs. */
struct contest {
	struct lending l;
	struct lease *rt, *borrower;
};

struct contest contest_of(enum enforce_step enforce);
