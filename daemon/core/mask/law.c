/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/law.h"

#include <stddef.h>

#include "util/base.h"

const char *const law_names[] = {
	[LAW_ASSUMED] = "assumed",
	[LAW_DERIVED] = "derived",
	[LAW_MEASURED] = "measured",
	NULL,
};

/*
 * tests/data/measured has the rows and their sources; test-law.c fits a and b and prints the errors.
 * gfx906 is one kernel: t x E is 176.7 ms on one CU and 190.0 ms on the whole GPU. The others are the
 * median of b / t over the published kernels: gfx90a 0.26 and 0.50; gfx942 0.25, 0.37, 0.38, 0.45
 * and 0.46; gfx950 from two masks; gfx1101 0.09; gfx1201 0.25 and 0.47.
 */
static const struct {
	unsigned first, last;
	struct law law;
} rows[] = {
	{ 90000, 90005, { LAW_DERIVED, "from gfx906", 7 } },
	{ 90006, 90006, { LAW_MEASURED, "RTNS 2021, Radeon VII", 7 } },
	{ 90007, 90009, { LAW_DERIVED, "from gfx90a", 38 } },
	{ 90010, 90010, { LAW_MEASURED, "HUSRCF/alse, 2026, MI250X", 38 } },
	{ 90400, 90402, { LAW_MEASURED, "ROCm/tritonBLAS, 2026, MI300X", 38 } },
	{ 90500, 90599, { LAW_DERIVED, "from gfx942", 38 } },
	{ 110000, 110000, { LAW_DERIVED, "from gfx1101", 9 } },
	{ 110001, 110001, { LAW_MEASURED, "gpustack, 2026, RX 7800 XT", 9 } },
	{ 110002, 110599, { LAW_DERIVED, "from gfx1101", 9 } },
	{ 120000, 120000, { LAW_DERIVED, "from gfx1201", 36 } },
	{ 120001, 120001, { LAW_MEASURED, "HUSRCF/alse, 2026, R9700", 36 } },
};

struct law law_of_target(unsigned gfx_target)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (gfx_target >= rows[i].first && gfx_target <= rows[i].last)
			return rows[i].law;
	return (struct law){ .basis = LAW_ASSUMED };
}
