/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/law.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "util/base.h"

const char *const law_names[] = {
	[LAW_ASSUMED] = "assumed",
	[LAW_DERIVED] = "derived",
	[LAW_MEASURED] = "measured",
	NULL,
};

const char *const neighbours_names[] = {
	[NEIGHBOURS_MEMORY] = "memory",
	[NEIGHBOURS_COMPUTE] = "compute",
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

/* ---- fitting ------------------------------------------------------------------------------ */

static double error_of(const struct law_fit *fit, const struct law_point *point)
{
	return fabs((fit->a_usec / point->effective + fit->b_usec) / point->usec - 1) * 100;
}

static int compare_errors(const void *a, const void *b, void *fit)
{
	double x = error_of(fit, a), y = error_of(fit, b);

	return (x > y) - (x < y);
}

void law_judge(struct law_point *points, size_t n, struct law_fit *fit)
{
	qsort_r(points, n, sizeof(*points), compare_errors, fit);
	fit->median_error = (error_of(fit, &points[(n - 1) / 2]) + error_of(fit, &points[n / 2])) /
			    2;
	fit->worst_error = error_of(fit, &points[n - 1]);
}

int law_fit(struct law_point *points, size_t n, struct law_fit *ret)
{
	double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0, det;
	unsigned most = 0;

	for (size_t i = 0; i < n; i++) {
		double y = 1 / points[i].usec, x = y / points[i].effective;

		xx += x * x;
		xy += x * y;
		yy += y * y;
		x1 += x;
		y1 += y;
		most = max_u(most, points[i].effective);
	}
	det = xx * yy - xy * xy;
	/* Not above rounding errors: all E are equal. */
	if (n < 2 || !(det > xx * yy * 1e-9))
		return -EINVAL;
	*ret = (struct law_fit){ .a_usec = (x1 * yy - y1 * xy) / det,
				 .b_usec = (xx * y1 - xy * x1) / det };
	if (!(ret->a_usec > 0))
		return -EINVAL;
	if (ret->b_usec > 0)
		ret->constant = ret->b_usec / (ret->a_usec / most + ret->b_usec) * 100;
	law_judge(points, n, ret);
	return 0;
}
