/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Compares effective CUs, occupied CUs and the law t = a/E + b with what others measured on MI300X,
 * MI325X, MI250X, RX 7800 XT and R9700: tests/data/measured. Prints the error of every row.
 */

#include "client/output/explain.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/output/mask-text.h"
#include "sys/config/profile.h"
#include "util/base.h"

#include "check.h"
#include "measured.h"

#define ROWS 64
#define COLUMNS 16

/* One line of a table, cut at its tabs. */
struct row {
	char line[1024];
	char *cell[COLUMNS];
};

struct table {
	struct row head;
	struct row rows[128];
	size_t n;
};

static void cut(struct row *row)
{
	char *rest = row->line;

	row->line[strcspn(row->line, "\n")] = '\0';
	for (size_t i = 0; i < COLUMNS; i++)
		row->cell[i] = rest ? strsep(&rest, "\t") : NULL;
}

static void table_load(const char *file, struct table *ret)
{
	FILE *f = measured_open(file);
	bool head = false;

	ret->n = 0;
	while (ret->n < ARRAY_SIZE(ret->rows)) {
		struct row *row = head ? &ret->rows[ret->n] : &ret->head;

		if (!fgets(row->line, sizeof(row->line), f))
			break;
		if (row->line[0] == '#')
			continue;
		cut(row);
		ret->n += head;
		head = true;
	}
	CHECK(ret->n > 0 && feof(f));
	fclose(f);
}

static const char *cell(const struct table *table, const struct row *row, const char *name)
{
	for (size_t i = 0; i < COLUMNS && table->head.cell[i]; i++)
		if (strcmp(table->head.cell[i], name) == 0 && row->cell[i])
			return row->cell[i];
	return "";
}

static unsigned number(const struct table *table, const struct row *row, const char *name)
{
	return (unsigned)strtoul(cell(table, row, name), NULL, 10);
}

static void load_model(const char *name, struct model *ret)
{
	struct diagnostics diagnostics = { 0 };
	struct profile profile;
	char dir[4096];

	CHECK(getenv("GPUARB_SOURCE_ROOT"));
	snprintf(dir, sizeof(dir), "%s/conf/gpus", getenv("GPUARB_SOURCE_ROOT"));
	CHECK(profile_load(dir, name, &profile, &diagnostics) == 0);
	model_init(ret, &profile.info.geometry);
	ret->law = profile.info.law;
}

/* ---- masks ------------------------------------------------------------------------------ */

struct bits {
	uint32_t word[CODEC_WORDS];
};

static void set_bits(struct bits *bits, unsigned first, unsigned n)
{
	for (unsigned bit = first; bit < first + n; bit++)
		bits->word[bit / 32] |= UINT32_C(1) << bit % 32;
}

/* "0:0-15", "0,8,16,24", "bits 76-151", or "none". */
static void set_list(struct bits *bits, const char *text)
{
	const char *list = strchr(text, ':') ? strchr(text, ':') + 1 : text;
	_cleanup_(freep) uint32_t *mask = NULL;
	size_t words;

	if (strcmp(text, "none") == 0) {
		memset(bits, 0xff, sizeof(*bits));
		return;
	}
	if (strncmp(list, "bits ", 5) == 0)
		list += 5;
	CHECK(mask_parse(list, &mask, &words) == 0 && words <= CODEC_WORDS);
	memcpy(bits->word, mask, words * sizeof(*mask));
}

/* 9 CUs of one engine of every XCC: "engine 1 of every XCC, 9 CUs of each". */
static void set_engine(const struct model *model, struct bits *bits, unsigned engine)
{
	struct cuset set = { 0 };

	for (unsigned x = 0; x < model->geometry.xccs; x++)
		set.pair[cuset_pair(x, engine)] = 0x1ff;
	codec_encode(&model->codec, &set, bits->word);
}

static void mask_mi300x(const struct table *t, const struct row *row, const struct model *,
			struct bits *ret)
{
	unsigned k = number(t, row, "k");

	if (strcmp(cell(t, row, "layout"), "none") == 0)
		set_list(ret, "none");
	else if (strcmp(cell(t, row, "layout"), "first") == 0)
		set_bits(ret, 0, k);
	else
		for (unsigned block = 0; block < 8; block++)
			set_bits(ret, 38 * block, k);
}

static void mask_listed(const struct table *t, const struct row *row, const struct model *model,
			struct bits *ret)
{
	unsigned engine;

	if (sscanf(cell(t, row, "mask"), "engine %u of", &engine) == 1)
		set_engine(model, ret, engine);
	else
		set_list(ret, cell(t, row, "mask"));
}

/* Bits, or WGPs, from an offset on. */
static void mask_offset(const struct table *t, const struct row *row, const struct model *model,
			struct bits *ret)
{
	unsigned step = geometry_step(&model->geometry);

	set_bits(ret, step * number(t, row, "offset"), step * number(t, row, "n"));
}

static void mask_wgps(const struct table *t, const struct row *row, const struct model *model,
		      struct bits *ret)
{
	set_bits(ret, 0, geometry_step(&model->geometry) * number(t, row, "wgps"));
}

/* ---- the law ---------------------------------------------------------------------------- */

struct sample {
	double e, pairs; /* E, and E as if every (XCC, engine) pair were alike */
	double time;
};

struct errors {
	double a, b, median, worst;
};

/* The most (XCC, engine) pairs x the least CUs of one: the negative control. */
static double pairs_effective(const struct model *model, const struct cuset *set)
{
	unsigned used = 0, least = UINT32_MAX;

	for (unsigned x = 0; x < model->geometry.xccs; x++)
		for (unsigned e = 0; e < model->geometry.engines; e++) {
			uint32_t word = set->pair[cuset_pair(x, e)];

			used += word != 0;
			least = word ? min_u(least, cuset_count_word(word)) : least;
		}
	return (double)used * least / geometry_step(&model->geometry);
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Least squares of the relative errors of a/E + b. */
static struct errors fit(const struct sample *samples, size_t n, bool control)
{
	double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0, error[ROWS];
	struct errors ret;

	for (size_t i = 0; i < n; i++) {
		double y = 1 / samples[i].time, x = y / (control ? samples[i].pairs : samples[i].e);

		xx += x * x;
		xy += x * y;
		yy += y * y;
		x1 += x;
		y1 += y;
	}
	ret.a = (x1 * yy - y1 * xy) / (xx * yy - xy * xy);
	ret.b = (xx * y1 - xy * x1) / (xx * yy - xy * xy);
	for (size_t i = 0; i < n; i++) {
		double e = control ? samples[i].pairs : samples[i].e;

		error[i] = fabs((ret.a / e + ret.b) / samples[i].time - 1);
	}
	qsort(error, n, sizeof(error[0]), by_size);
	ret.median = (error[(n - 1) / 2] + error[n / 2]) / 2;
	ret.worst = error[n - 1];
	return ret;
}

static const struct set {
	const char *title, *file, *profile;
	const char *column, *value; /* rows of the set; column 2: or NULL */
	const char *column2, *value2;
	const char *e, *measure; /* columns */
	bool throughput;
	void (*mask)(const struct table *t, const struct row *row, const struct model *model,
		     struct bits *ret);
	size_t rows;
	double median, worst; /* limits in percent */
} sets[] = {
	{ "MI300X, GEMM 8192", "law_mi300x.tsv", "mi300x-spx", "size", "8192", "kernel", "torch",
	  "E_alt", "ms", false, mask_mi300x, 30, 3, 12 },
	{ "MI300X, persistent GEMM 8192", "law_mi300x.tsv", "mi300x-spx", "size", "8192", "kernel",
	  "persistent", "E_alt", "ms", false, mask_mi300x, 10, 6, 12 },
	/* 256 tiles: fewer than the CUs of some masks. */
	{ "MI300X, GEMM 4096", "law_mi300x.tsv", "mi300x-spx", "size", "4096", "kernel", "torch",
	  "E_alt", "ms", false, mask_mi300x, 29, 3, 30 },
	{ "MI300X, FMA", "law_mi300x_hsa.tsv", "mi300x-spx", "workload", "fma_soak", NULL, NULL,
	  "E", "value", true, mask_listed, 5, 3, 12 },
	{ "MI300X, fp16 GEMM 4096", "law_mi300x_hsa.tsv", "mi300x-spx", "workload", "gemm4096_fp16",
	  NULL, NULL, "E", "value", true, mask_listed, 3, 3, 12 },
	{ "MI325X, fp16 GEMM 8192", "law_mi325x.tsv", "mi325x", NULL, NULL, NULL, NULL, "E",
	  "TFLOPs", true, mask_listed, 5, 3, 12 },
	{ "MI250X, CogVideoX-2b", "law_mi250.tsv", "mi250", "model", "cogvideox2b_9f", NULL, NULL,
	  "E", "s_per_step", false, mask_offset, 3, 3, 12 },
	{ "MI250X, SDXL", "law_mi250.tsv", "mi250", "model", "sdxl_768", NULL, NULL, "E",
	  "s_per_step", false, mask_offset, 11, 3, 12 },
	{ "R9700, CogVideoX-2b", "law_r9700.tsv", "r9700", "model", "cogvideox2b_9f", NULL, NULL,
	  "E", "s_per_step", false, mask_offset, 4, 3, 12 },
	{ "R9700, SDXL", "law_r9700.tsv", "r9700", "model", "sdxl_768", NULL, NULL, "E",
	  "s_per_step", false, mask_offset, 14, 4, 12 },
	{ "RX 7800 XT, FMA", "law_rx7800xt.tsv", "rx7800xt", "unit", "percent_of_whole", NULL, NULL,
	  "E", "value", true, mask_wgps, 4, 3, 12 },
};

static bool in_set(const struct set *set, const struct table *table, const struct row *row)
{
	return (!set->column || strcmp(cell(table, row, set->column), set->value) == 0) &&
	       (!set->column2 || strcmp(cell(table, row, set->column2), set->value2) == 0);
}

static void take(const struct set *set, const struct table *table, const struct row *row,
		 const struct model *model, struct sample *ret)
{
	double measure = strtod(cell(table, row, set->measure), NULL);
	struct bits bits = { 0 };
	struct explanation e;

	set->mask(table, row, model, &bits);
	explain(model, bits.word, codec_words(&model->codec), &e);
	ret->e = (double)e.effective / geometry_step(&model->geometry);
	ret->pairs = pairs_effective(model, &e.set);
	ret->time = set->throughput ? 100 / measure : measure;
	CHECK(measure > 0 && ret->e > 0 && ret->e == number(table, row, set->e));
}

static size_t load_set(const struct set *set, struct model *model, struct sample *ret)
{
	static struct table table;
	size_t n = 0;

	load_model(set->profile, model);
	table_load(set->file, &table);
	for (size_t i = 0; i < table.n; i++) {
		if (!in_set(set, &table, &table.rows[i]))
			continue;
		CHECK(n < ROWS);
		take(set, &table, &table.rows[i], model, &ret[n++]);
	}
	CHECK(n == set->rows);
	return n;
}

TEST(the_law_predicts_every_published_row)
{
	struct sample samples[ROWS];
	struct model model;

	for (size_t s = 0; s < ARRAY_SIZE(sets); s++) {
		size_t n = load_set(&sets[s], &model, samples);
		struct errors law = fit(samples, n, false), control = fit(samples, n, true);

		printf("%s: t = %.4g/E + %.4g, median error %.1f %%, worst %.1f %%"
		       " (every pair alike: %.1f %%, %.1f %%)\n",
		       sets[s].title, law.a, law.b, law.median * 100, law.worst * 100,
		       control.median * 100, control.worst * 100);
		for (size_t i = 0; i < n; i++)
			printf("  E %3.0f: %.5g measured, %+.1f %%\n", samples[i].e,
			       samples[i].time,
			       ((law.a / samples[i].e + law.b) / samples[i].time - 1) * 100);
		CHECK(law.a > 0 && law.b > 0);
		CHECK(law.median * 100 <= sets[s].median && law.worst * 100 <= sets[s].worst);
	}
}

TEST(e_by_pairs_of_the_whole_gpu_is_wrong_where_xccs_differ)
{
	struct sample samples[ROWS];
	struct model model;
	size_t n = load_set(&sets[0], &model, samples);
	struct errors law = fit(samples, n, false), control = fit(samples, n, true);

	CHECK(control.worst > 2 * law.worst && control.median > 2 * law.median);
}

/* ---- occupied CUs ------------------------------------------------------------------------ */

/* "38x8", "1,38,38,38,38,38,38,38" or "-". */
static bool per_xcc_is(const char *text, const struct model *model, const struct cuset *set)
{
	unsigned each, times;
	bool same = true;

	for (unsigned x = 0; x < model->geometry.xccs && *text != '-'; x++) {
		unsigned cus = 0;

		for (unsigned e = 0; e < model->geometry.engines; e++)
			cus += cuset_count_word(set->pair[cuset_pair(x, e)]);
		if (sscanf(text, "%ux%u", &each, &times) == 2) {
			same &= times == model->geometry.xccs && cus == each;
			continue;
		}
		same &= cus == strtoul(text, NULL, 10);
		text += strcspn(text, ",") + (x + 1 < model->geometry.xccs);
	}
	return same;
}

TEST(an_xcc_without_a_bit_runs_unmasked_as_read_on_an_mi300x)
{
	static struct table table;
	struct model model;
	unsigned broken = 0;

	load_model("mi300x-spx", &model);
	table_load("mi300x_occupied.tsv", &table);
	for (size_t i = 0; i < table.n; i++) {
		const struct row *row = &table.rows[i];
		unsigned occupied = number(&table, row, "occupied");
		struct bits bits = { 0 };
		struct explanation e;
		struct cuset set;

		/* ROCr reads no bit from this one: the GPU is not a decimal index. */
		if (strstr(cell(&table, row, "mask"), "GPU-"))
			continue;
		set_list(&bits, cell(&table, row, "mask"));
		explain(&model, bits.word, codec_words(&model.codec), &e);
		geometry_occupied(&model.geometry, e.lost ? &model.all : &e.set, &set);
		printf("  %s: %u occupied\n", cell(&table, row, "mask"), e.occupied);
		CHECK(e.occupied == occupied && cuset_count(&set) == occupied);
		CHECK(per_xcc_is(cell(&table, row, "per_xcc"), &model, &set));
		CHECK((e.occupied > e.cus) == (e.n_unmasked > 0));
		CHECK(e.n_unmasked == 0 || !e.valid);
		broken += e.n_unmasked > 0;
	}
	CHECK(broken == 5);
}

TEST(masks_of_whole_wgps_occupy_them_as_read_on_an_rx_7800_xt)
{
	static struct table table;
	struct model model;
	unsigned split = 0;

	load_model("rx7800xt", &model);
	table_load("rx7800xt_occupied.tsv", &table);
	for (size_t i = 0; i < table.n; i++) {
		const struct row *row = &table.rows[i];
		struct bits bits = { 0 };
		struct explanation e;

		if (strcmp(cell(&table, row, "variable"), "HSA_CU_MASK") != 0 ||
		    strstr(cell(&table, row, "mask"), "GPU-"))
			continue;
		set_list(&bits, cell(&table, row, "mask"));
		explain(&model, bits.word, codec_words(&model.codec), &e);
		if (strstr(cell(&table, row, "outcome"), "splits")) {
			CHECK(!e.valid && e.lost && e.occupied == 60 && e.effective == 0);
			split++;
		} else {
			CHECK(!e.lost &&
			      (e.valid || strcmp(cell(&table, row, "mask"), "none") == 0));
			CHECK(e.occupied == 2 * number(&table, row, "wgps_occupied"));
		}
	}
	CHECK(split == 4);
}

/* ---- persistent kernels ------------------------------------------------------------------ */

static void persistent_mask(const char *name, struct bits *ret)
{
	if (strcmp(name, "m270") == 0)
		set_bits(ret, 0, 270);
	for (unsigned i = 0; i < 91; i++) {
		if (strcmp(name, "m91odd") == 0)
			set_bits(ret, 2 * i + 1, 1);
		else if (strcmp(name, "m91even") == 0)
			set_bits(ret, 2 * i, 1);
	}
	if (strcmp(name, "m213") == 0) {
		set_bits(ret, 0, 304);
		for (unsigned i = 0; i < 91; i++)
			ret->word[(2 * i + 1) / 32] &= ~(UINT32_C(1) << (2 * i + 1) % 32);
	}
}

/* Blocks on the fullest CU of an even deal over the XCCs and over the engines in use of each. */
static unsigned rounds(const struct model *model, const struct cuset *set, unsigned grid)
{
	unsigned most = 0, share = (grid + model->geometry.xccs - 1) / model->geometry.xccs;

	for (unsigned x = 0; x < model->geometry.xccs; x++) {
		unsigned used = 0, least = UINT32_MAX;

		for (unsigned e = 0; e < model->geometry.engines; e++) {
			uint32_t word = set->pair[cuset_pair(x, e)];

			used += word != 0;
			least = word ? min_u(least, cuset_count_word(word)) : least;
		}
		CHECK(used > 0);
		most = max_u(most, ((share + used - 1) / used + least - 1) / least);
	}
	return most;
}

TEST(a_grid_of_one_block_per_reported_cu_runs_in_the_published_rounds)
{
	static struct table table;
	struct model model;

	load_model("mi300x-spx", &model);
	table_load("persistent_grid.tsv", &table);
	CHECK(table.n == 12);
	for (size_t i = 0; i < table.n; i++) {
		const struct row *row = &table.rows[i];
		struct bits bits = { 0 };
		struct explanation e;
		struct cuset set;

		persistent_mask(cell(&table, row, "mask"), &bits);
		explain(&model, bits.word, codec_words(&model.codec), &e);
		geometry_occupied(&model.geometry, &e.set, &set);
		CHECK(e.cus == number(&table, row, "bits"));
		CHECK(e.effective == number(&table, row, "E"));
		CHECK(rounds(&model, &set, number(&table, row, "grid")) ==
		      number(&table, row, "rounds"));
	}
}
