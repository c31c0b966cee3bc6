/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The units whose masks are in one array, sorted by CU, and the places where they ran. */
struct row {
	size_t unit[CUSET_ARRAY_CUS];
	unsigned got[CUSET_ARRAY_CUS];
	size_t n;
};

static void collect(struct matrix *matrix, const struct units *units, const struct place *array,
		    struct row *row)
{
	for (unsigned cu = 0; cu < CUSET_ARRAY_CUS; cu++) {
		for (size_t i = 0; i < units->n; i++) {
			const struct place *asked = &units->list[i].lane[array->xcc], *got;

			if (!matrix->ran[i].known || asked->cu != cu ||
			    asked->engine != array->engine || asked->array != array->array)
				continue;
			got = ran_on_xcc(&matrix->ran[i], units->lanes, array->xcc);
			/* Fused-off CUs can only increase a number. */
			if (!got || got->engine != asked->engine || got->array != asked->array ||
			    got->cu < asked->cu) {
				matrix->ran[i].elsewhere = true;
				continue;
			}
			row->unit[row->n] = i;
			row->got[row->n++] = got->cu;
		}
	}
}

/* Marks the units outside of the longest ascending sequence of places. */
static void mark_disorder(struct matrix *matrix, const struct row *row)
{
	size_t length[CUSET_ARRAY_CUS], longest = 0;
	unsigned next = UINT_MAX;

	for (size_t i = 0; i < row->n; i++) {
		length[i] = 1;
		for (size_t j = 0; j < i; j++) {
			if (row->got[j] < row->got[i] && length[j] >= length[i])
				length[i] = length[j] + 1;
		}
		longest = length[i] > longest ? length[i] : longest;
	}
	for (size_t i = row->n; i-- > 0;) {
		if (longest > 0 && length[i] == longest && row->got[i] < next) {
			next = row->got[i];
			longest--;
		} else {
			matrix->ran[row->unit[i]].elsewhere = true;
		}
	}
}

void judge_places(struct matrix *matrix, const struct units *units)
{
	struct place array = { 0 };

	for (size_t i = 0; i < units->n; i++)
		matrix->ran[i].elsewhere = matrix->ran[i].moved;

	for (array.xcc = 0; array.xcc < units->lanes; array.xcc++)
		for (array.engine = 0; array.engine < CUSET_ENGINES; array.engine++)
			for (array.array = 0; array.array < CUSET_ARRAYS; array.array++) {
				struct row row = { 0 };

				collect(matrix, units, &array, &row);
				mark_disorder(matrix, &row);
			}
}

enum pair_class pair_class(const struct units *units, size_t a, size_t b)
{
	if (a == b)
		return PAIR_SAME_UNIT;
	for (unsigned lane = 0; lane < units->lanes; lane++) {
		if (units->list[a].lane[lane].engine != units->list[b].lane[lane].engine)
			return PAIR_ACROSS;
	}
	return PAIR_SAME_ENGINE;
}

static void spread_class(const struct matrix *matrix, const struct units *units,
			 enum pair_class class, double *values, struct spread *ret)
{
	size_t n = 0;

	for (size_t a = 0; a < matrix->n; a++) {
		for (size_t b = a; b < matrix->n; b++) {
			if (pair_class(units, a, b) == class)
				values[n++] = matrix_get(matrix, a, b);
		}
	}
	statistic_spread(values, n, ret);
}

static double ratio_of(const struct matrix *matrix, const struct units *units,
		       const struct summary *summary, size_t a, double *values)
{
	size_t n = 0;

	for (size_t b = 0; b < matrix->n; b++) {
		if (b != a)
			values[n++] = matrix_get(matrix, a, b) /
				      summary->pairs[pair_class(units, a, b)].median;
	}
	return statistic_median(values, n);
}

int summary_init(const struct matrix *matrix, const struct units *units, struct summary *ret)
{
	struct summary summary = { 0 };
	double *values = calloc(matrix->n * matrix->n, sizeof(*values));

	summary.ratio = calloc(matrix->n, sizeof(*summary.ratio));
	summary.slow = calloc(matrix->n, sizeof(*summary.slow));
	if (!values || !summary.ratio || !summary.slow) {
		free(values);
		summary_done(&summary);
		return -ENOMEM;
	}
	for (unsigned class = 0; class < PAIR_CLASSES; class ++)
		spread_class(matrix, units, class, values, &summary.pairs[class]);
	for (size_t i = 0; i < matrix->n; i++)
		summary.ratio[i] = ratio_of(matrix, units, &summary, i, values);

	memcpy(values, summary.ratio, matrix->n * sizeof(*values));
	statistic_spread(values, matrix->n, &summary.ratios);
	for (size_t i = 0; i < matrix->n; i++)
		summary.slow[i] = summary.ratio[i] > statistic_fence(&summary.ratios);
	free(values);
	*ret = summary;
	return 0;
}

void summary_done(struct summary *summary)
{
	free(summary->ratio);
	free(summary->slow);
	*summary = (struct summary){ 0 };
}

bool summary_slow_pair(const struct summary *summary, const struct matrix *matrix,
		       const struct units *units, size_t a, size_t b)
{
	const struct spread *class = &summary->pairs[pair_class(units, a, b)];

	return !summary->slow[a] && !summary->slow[b] &&
	       matrix_get(matrix, a, b) > statistic_fence(class);
}
