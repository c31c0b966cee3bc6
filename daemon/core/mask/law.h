/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The law of masks: the time of a large kernel is a/E + b, where E is the effective CUs of its mask
 * (geometry_effective()). a and b belong to the kernel and the card.
 */

#define LAW_SOURCE_MAX 64U

enum law_basis {
	LAW_ASSUMED,
	LAW_DERIVED,  /* from a GPU of the same generation that was measured */
	LAW_MEASURED, /* on this target */
};

struct law {
	enum law_basis basis;
	char source[LAW_SOURCE_MAX]; /* who measured it; "": nobody */

	/* b in percent of the time on the whole GPU: the median of the kernels that were measured.
	 * 0: unknown. */
	unsigned constant;
};

/* assumed derived measured, by enum law_basis; NULL after the last. */
extern const char *const law_names[];

/* What is known of a gfx target as KFD numbers it: 90006 is gfx906. */
struct law law_of_target(unsigned gfx_target);
