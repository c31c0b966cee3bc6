/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "client/calibrate/calibration-print.h"
#include "client/calibrate/paper.h"
#include "client/output/json.h"
#include "client/output/mask-text.h"
#include "client/output/print.h"
#include "util/base.h"

static const struct paper_case *find_alone(const struct paper *paper, const struct paper_case *c)
{
	for (size_t i = 0; i < paper->n; i++) {
		const struct paper_case *other = &paper->list[i];

		if (other->set == c->set && other->threads == c->threads && other->done &&
		    other->competitor == 0 && other->layout == c->layout)
			return other;
	}
	return NULL;
}

static void print_law(const struct paper_law *law, FILE *out)
{
	if (isnan(law->fit.a_usec))
		print_line(out, "MM%u: no law fits", law->threads);
	else
		print_line(
			out,
			"MM%u: t = %.0f us / E + %.0f us, fitted on %zu masks; on %zu others the "
			"median error is %.1f %%, the worst %.1f %%",
			law->threads, law->fit.a_usec, law->fit.b_usec, law->fitted, law->judged,
			law->fit.median_error, law->fit.worst_error);
}

void paper_print_text(const struct paper *paper, FILE *out)
{
	unsigned outliers = 0;
	size_t done = 0, samples = 0;
	char name[96];

	for (size_t i = 0; i < paper->n; i++) {
		done += paper->list[i].done;
		samples += paper->list[i].done ? paper->list[i].n : 0;
		outliers += paper->list[i].outliers;
	}
	print_line(out, "%zu of %zu cases, %zu samples, %u outliers (kept); seed %" PRIu64, done,
		   paper->n, samples, outliers, paper->seed);
	for (size_t i = 0; i < PAPER_KERNELS; i++)
		print_law(&paper->law[i], out);
	for (size_t i = 0; i < paper->n; i++) {
		const struct paper_case *c = &paper->list[i], *alone = find_alone(paper, c);

		if (c->set == PAPER_MASKS || !c->done)
			continue;
		fprintf(out, "%-44s %9.0f us (%.0f to %.0f)", paper_name(c, name, sizeof(name)),
			c->median.median, c->median.low, c->median.high);
		if (c->competitor > 0 && alone)
			fprintf(out, ", %.2f times as long as alone",
				c->median.median / alone->median.median);
		fputc('\n', out);
	}
	for (size_t i = 0; i < paper->calibration.n_missing; i++)
		print_line(out, "missing: %s: %s", paper->calibration.missing[i].step,
			   paper->calibration.missing[i].why);
}

/* ---- TSV ---------------------------------------------------------------------------------- */

void paper_print_header(const struct gpuarb_gpu *gpu, const struct paper *paper, FILE *out)
{
	fprintf(out,
		"# %s (%s), %s, %s: products of %u x %u matrices, %u runs for warming up are left out; seed "
		"%" PRIu64 "%s\n",
		gpu->name, gpu->device, gpu->gfx_target, paper->calibration.date, MULTIPLY_SIZE,
		MULTIPLY_SIZE, PAPER_WARM, paper->seed,
		paper->calibration.emulated ? "; EMULATED, not measured" : "");
	fprintf(out, "# gpuarbctl calibrate --gpu=%s --paper=DIR --seed=%" PRIu64 "\n", gpu->name,
		paper->seed);
	fputs("set\tlayout\tthreads\tqueues\tcus\teffective_cus\tcu_mask\tcompetitor\tcompetitor_mask\trun\tusec\t"
	      "host_usec\tmhz\tcelsius\n",
	      out);
}

static void print_real(double value, FILE *out)
{
	if (isnan(value))
		fputs("\t-", out);
	else
		fprintf(out, "\t%.3f", value);
}

static char *hex_of(const struct model *model, const struct cuset *set)
{
	uint32_t mask[CODEC_WORDS] = { 0 };

	codec_encode(&model->codec, set, mask);
	return mask_hex(mask, codec_words(&model->codec));
}

void paper_print_rows(const struct model *model, const struct paper_case *c, FILE *out)
{
	_cleanup_(freep) char *mask = hex_of(model, &c->mask);
	_cleanup_(freep) char *theirs = c->competitor > 0 ? hex_of(model, &c->theirs) : NULL;

	for (unsigned i = 0; i < c->n; i++) {
		fprintf(out, "%s\t%s\t%u\t%u\t%u\t%u\t%s\t%u\t%s\t%u", paper_sets[c->set],
			c->layout, c->threads, c->queues, c->cus, c->effective, mask ? mask : "-",
			c->competitor, theirs ? theirs : "-", i);
		print_real(c->sample[i].usec, out);
		print_real(c->sample[i].host_usec, out);
		print_real(c->sample[i].mhz, out);
		print_real(c->sample[i].celsius, out);
		fputc('\n', out);
	}
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void json_samples(struct json_object *map, const struct paper_case *c)
{
	struct json_object *list = json_list(map, "samples");

	for (unsigned i = 0; i < c->n; i++) {
		const struct sample *sample = &c->sample[i];
		struct json_object *entry = json_map(list, NULL);

		JSON_MEMBERS(entry, sample, usec, host_usec, mhz, celsius);
	}
}

static void json_case(struct json_object *list, const struct model *model, bool emulated,
		      const struct paper_case *c)
{
	_cleanup_(freep) char *mask = hex_of(model, &c->mask);
	_cleanup_(freep) char *theirs = c->competitor > 0 ? hex_of(model, &c->theirs) : NULL;
	struct json_object *map = json_map(list, NULL);

	JSON_FIELDS(map, ("emulated", emulated), ("set", paper_sets[c->set]),
		    ("layout", c->layout));
	JSON_MEMBERS(map, c, threads, queues, cus);
	JSON_FIELDS(map, ("effective_cus", c->effective), ("cu_mask", mask),
		    ("competitor_threads", c->competitor, 0), ("competitor_mask", theirs),
		    ("median_usec", c->median.median), ("low_usec", c->median.low),
		    ("high_usec", c->median.high));
	JSON_MEMBERS(map, c, outliers);
	json_samples(map, c);
}

static void json_laws(struct json_object *map, const struct paper *paper)
{
	struct json_object *list = json_list(map, "laws");

	for (size_t i = 0; i < PAPER_KERNELS; i++) {
		const struct paper_law *law = &paper->law[i];
		struct json_object *entry = json_map(list, NULL);

		JSON_FIELDS(entry, ("threads", law->threads), ("a_usec", law->fit.a_usec),
			    ("b_usec", law->fit.b_usec), ("fitted", law->fitted),
			    ("judged", law->judged),
			    ("median_error_percent", law->fit.median_error),
			    ("worst_error_percent", law->fit.worst_error));
	}
}

void paper_print_json(const struct gpuarb_gpu *gpu, const struct model *model,
		      const struct paper *paper, FILE *out)
{
	struct json_object *map = json_map(NULL, NULL), *list;
	bool emulated = paper->calibration.emulated;

	json_text(map, "schema", PAPER_SCHEMA);
	json_number(map, "version", 1);
	JSON_FIELDS(map, ("date", paper->calibration.date), ("emulated", emulated),
		    ("gpu", gpu->name), ("device", gpu->device), ("gfx_target", gpu->gfx_target),
		    ("cus", gpu->cus), ("seed", paper->seed));
	json_number(map, "warm_up", PAPER_WARM);
	json_number(map, "clock_jumps", paper->calibration.clock_jumps);
	list = json_list(map, "cases");
	for (size_t i = 0; i < paper->n; i++)
		if (paper->list[i].done)
			json_case(list, model, emulated, &paper->list[i]);
	json_laws(map, paper);
	calibration_print_missing(map, &paper->calibration);
	json_print(out, map);
}
