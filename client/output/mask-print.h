/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the verb mask prints, as text or JSON, on standard output. */

#include "client/output/explain.h"

void mask_print_explanation(const struct command *command, const struct model *model,
			    const struct explanation *explanation);

void mask_print_places(const struct command *command, const struct model *model,
		       const struct explanation *explanation);

/* wanted: what was asked for; the explanation is of the mask that came of it. */
void mask_print_encoded(const struct command *command, const struct cuset *wanted,
			const uint32_t *mask, size_t words, const struct explanation *explanation);
