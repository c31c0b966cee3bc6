/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdio.h>

#include "client/options/options.h"
#include "client/output/observed.h"

/* One picture of `gpuarbctl top`: GPUs, and a row for each lease and GPU, and for each process
 * without a lease. */
void top_print(const struct command *command, const struct gpuarb_view *view,
	       const struct seen *seen, FILE *out);

/* The same on a terminal, in place of what was there, cut at its last line. note: what is said
 * above it, "" for nothing; view NULL: nothing but that. */
void top_draw(const struct command *command, const struct gpuarb_view *view,
	      const struct seen *seen, const char *note);
