/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How the CUs of a GPU are divided among its adaptable leases: whole rectangles that come as close as
 * possible to the shares (share.h).
 *
 * No lease loses CUs unless a lease that is starved gets more by it: divide() returns masks that are
 * larger, or masks with which the leases that are furthest below three quarters of their shares have
 * more. So masks come to rest: a sequence of such steps ends.
 */

#include "core/decide/share.h"

/* The CUs of one GPU that are divided. */
struct division {
	const struct arbiter *arbiter;
	const struct gpu *gpu;
	struct cuset pool;      /* free CUs, and those that the growers have */
	struct grower *growers; /* n, and behind them leases that keep their masks for now */
	size_t n, n_all;
	unsigned cus; /* to be shared by all: those of the pool, and of leases that keep theirs */

	struct cuset left; /* of the pool: in no target; set by divide() */
};

/* Finds the shares and the targets of the growers. 1: the CUs could be divided better if the bases of
 * some growers moved first to `rebase`, a part of their present masks; the others have none. -ENOMEM. */
int divide(struct division *division);
