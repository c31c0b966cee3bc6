/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Compares the times that `mask explain` predicts with measured kernels: a Radeon VII, 60 masks
 * with bits set from 0 upwards (Otterness, Anderson, RTNS 2021). The negative control gives work to any
 * free CU. That one coefficient predicts all times is in test-codec.
 */

#include "client/output/explain.h"

#include <inttypes.h>
#include <math.h>

#include "check.h"
#include "util/base.h"
#include "made-gpus.h"
#include "measured.h"

#define SAMPLES 64

struct sample {
	unsigned bits;
	uint64_t mask;
	double msec; /* median of 99 runs */
};

typedef double (*predictor)(const struct explanation *e);

/* The law without its constant part. */
static double proportional(const struct explanation *e)
{
	return explain_relative_time(e, 0);
}

/* The negative control: every CU counts the same, whatever its shader engine is. */
static double work_conserving(const struct explanation *e)
{
	return (double)e->all_cus / e->cus;
}

static struct model radeon_vii_model(void)
{
	struct model model = { .geometry = radeon_vii("g").geometry, .law = law_of_target(90006) };

	codec_init(&model.codec, &model.geometry);
	geometry_all(&model.geometry, &model.all);
	return model;
}

static double predict(const struct model *model, uint64_t mask, predictor how)
{
	const uint32_t words[] = { (uint32_t)mask, (uint32_t)(mask >> 32) };
	struct explanation e;

	explain(model, words, ARRAY_SIZE(words), &e);
	CHECK(e.valid);
	return how(&e);
}

/* Bits of so many CUs in each engine. */
static uint64_t mask_of(const struct model *model, const unsigned engine[static 4])
{
	uint32_t words[CODEC_WORDS] = { 0 };
	struct cuset set = { 0 };

	for (unsigned e = 0; e < 4; e++)
		set.pair[e] = (UINT32_C(1) << engine[e]) - 1;
	codec_encode(&model->codec, &set, words);
	return words[0] | (uint64_t)words[1] << 32;
}

static size_t load(struct sample *samples)
{
	FILE *f = measured_open("cu_mask_distributed.tsv");
	char line[1024];
	size_t n = 0;

	while (fgets(line, sizeof(line), f)) {
		struct sample s;

		if (sscanf(line,
			   "SE-distributed %*u %u %" SCNx64 /* engines, blocks, n, least */
			   " %*u %*u %*u %*u %*u %*u %*u %*f %lf",
			   &s.bits, &s.mask, &s.msec) != 3)
			continue;
		CHECK(n < SAMPLES);
		samples[n++] = s;
	}
	fclose(f);
	return n;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Of 60 masks, seven were in the range without a tolerance. */
TEST(measured_times_are_in_the_range_that_is_printed)
{
	struct model model = radeon_vii_model();
	struct sample samples[SAMPLES];
	size_t n = load(samples), inside = 0;

	for (size_t i = 0; i < n; i++) {
		const uint32_t words[] = { (uint32_t)samples[i].mask,
					   (uint32_t)(samples[i].mask >> 32) };
		double times = samples[i].msec / samples[n - 1].msec;
		struct explained_range range;
		struct explanation e;

		explain(&model, words, ARRAY_SIZE(words), &e);
		range = explain_range(&e, model.law.constant);
		inside += times >= range.least && times <= range.most;
	}
	CHECK(samples[n - 1].bits == 60);
	printf("in the printed range: %zu of %zu masks\n", inside, n);
	CHECK(inside == n);
}

/* Median of |predicted / measured - 1| for masks of at most so many effective CUs, from the time on the
 * whole GPU alone. */
static double printed_error(const struct model *model, const struct sample *samples, size_t n,
			    unsigned constant, unsigned most)
{
	double error[SAMPLES], whole = samples[n - 1].msec;
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		const uint32_t words[] = { (uint32_t)samples[i].mask,
					   (uint32_t)(samples[i].mask >> 32) };
		struct explanation e;

		explain(model, words, ARRAY_SIZE(words), &e);
		if (e.effective <= most)
			error[m++] = fabs(
				whole * explain_relative_time(&e, constant) / samples[i].msec - 1);
	}
	CHECK(m > 0);
	qsort(error, m, sizeof(error[0]), by_size);
	return (error[(m - 1) / 2] + error[m / 2]) / 2;
}

TEST(constant_part_corrects_times_of_masks_with_few_cus)
{
	struct model model = radeon_vii_model();
	struct sample samples[SAMPLES];
	size_t n = load(samples);
	double with, without;

	CHECK(n == 60 && samples[n - 1].bits == 60 && model.law.constant > 0);
	with = printed_error(&model, samples, n, model.law.constant, 16);
	without = printed_error(&model, samples, n, 0, 16);
	printf("E up to 16: median error %.1f %%, without the constant part %.1f %%\n", with * 100,
	       without * 100);
	CHECK(with <= 0.02 && without > 0.05);
	CHECK(printed_error(&model, samples, n, model.law.constant, 60) <
	      printed_error(&model, samples, n, 0, 60));
}

TEST(one_cu_more_in_a_new_shader_engine_costs_most_of_the_speed)
{
	struct model model = radeon_vii_model();

	for (unsigned full = 1; full < 4; full++) {
		unsigned engine[4] = { 0 };
		uint64_t before, after;

		for (unsigned e = 0; e < full; e++)
			engine[e] = 15;
		before = mask_of(&model, engine);
		engine[full] = 1;
		after = mask_of(&model, engine);
		CHECK(predict(&model, after, proportional) >=
		      7 * predict(&model, before, proportional));
		CHECK(predict(&model, after, work_conserving) <
		      predict(&model, before, work_conserving));
	}
}

TEST(only_complete_rows_of_cus_reduce_the_time)
{
	struct model model = radeon_vii_model();

	for (unsigned bits = 4; bits < 60; bits++) {
		uint64_t mask = (UINT64_C(1) << bits) - 1;
		double before = predict(&model, mask, proportional);
		double after = predict(&model, mask << 1 | 1, proportional);

		CHECK(bits % 4 == 3 ? after < before : after >= before && after <= before);
	}
}
