/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a refusal tells people: who is in the way, and what would fit. */

#include "core/ledger/gpu.h"
#include "core/mask/place.h"
#include "core/policy/result.h"

void hint_format(struct refusal *refusal, const char *format, ...) PRINTF_LIKE(2, 3);

/* The amount as text, in the unit of the reason: "24"; "1.5G" of VRAM. Returns buf. */
#define HINT_AMOUNT 24U
const char *hint_amount(enum reason reason, uint64_t n, char buf[static HINT_AMOUNT]);

/* Too few slots or bytes: how many would do, and which strangers hold the others. */
void hint_countable(struct refusal *refusal, const struct gpu *gpu, enum reason reason,
		    uint64_t free);

/* The GPU is oversubscribed: by whom. */
void hint_oversubscribed(struct refusal *refusal, const struct gpu *gpu);

/* No such shape: the neighbours that would fit; where: "now" or "an empty GPU". */
void hint_cus(struct refusal *refusal, unsigned free, const struct place_miss *miss,
	      const char *where);

/* The reason of a waiting lease, from the refusal that decides; no number in it changes while
 * the lease waits. */
void hint_waits_for(const struct result *result, char ret[static REQUEST_TEXT]);
