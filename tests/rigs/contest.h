/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "lend-rig.h"

/* A borrower that does not answer, and who needs what it has. */
struct contest {
	struct lending l;
	struct lease *rt, *borrower;
};

static inline struct contest contest_of(enum enforce_step enforce)
{
	struct contest c = { .l = lending_of(1) };

	add_tenant(c.l.s.arbiter, "borrowers", ANY, CLASS_BESTEFFORT)->enforce = enforce;
	c.rt = keep_inactive(&c.l, 15);
	c.borrower = borrow(&c.l, 4, 60);
	CHECK(activate(&c.l, c.rt->id, true) == 0);
	return c;
}
