/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * How good the choice of CUs is: useful work that the arbiter and other policies admit from
 * one random load, beside fluid repacking, and on small instances beside the offline optimum.
 *
 *	bench-placement SOURCE-ROOT [PICTURE.svg [INSTANCES]]
 */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/placement.h"
#include "ledger-rig.h"
#include "sys/config/profile.h"

#define SEED 1U /* of the first instance; the others follow */
#define INSTANCES 8U
#define JOBS 1500U
#define FORGET 150U /* the GPU fills up */

static const char *const profiles[] = {
	"strix-halo", "radeon-vii", "rx7900xtx", "mi100", "mi300x-spx",
};
static const double loads[] = { 0.8, 1.0, 1.2, 1.4 };
static const double shares[] = { 0, 0.2, 0.4 };

#define ROWS (ARRAY_SIZE(profiles) * ARRAY_SIZE(loads) * ARRAY_SIZE(shares))

/* ---- rows --------------------------------------------------------------------------------- */

static void add_instance(const struct gpu_info *info, const struct load *load, struct row *row)
{
	_cleanup_(freep) struct job *jobs = load_make(load, row->cus,
						      geometry_step(&info->geometry));
	struct outcome_of_run runs[POLICIES];
	double rival = 0;

	for (size_t i = 0; i < POLICIES; i++) {
		run_policy(info, &policies[i], jobs, load->n, FORGET, &runs[i]);
		mean_add(&row->by[i].useful, runs[i].useful);
		mean_add(&row->by[i].per_granted, runs[i].per_granted);
		mean_add(&row->by[i].largest, runs[i].largest);
		mean_add(&row->by[i].moves, runs[i].moves);
		if (!isnan(runs[i].fairness))
			mean_add(&row->by[i].fairness, runs[i].fairness);
		if (i >= GPUARB && i != FLUID && runs[i].useful > rival)
			rival = runs[i].useful;
	}
	for (size_t i = 0; i < POLICIES; i++)
		mean_add(&row->by[i].of_fluid, runs[i].useful / runs[FLUID].useful);
	mean_add(&row->ahead, runs[0].useful / rival);
}

static void measure(const char *name, const struct gpu_info *info, unsigned instances,
		    struct row *rows, size_t *n)
{
	for (size_t s = 0; s < ARRAY_SIZE(shares); s++)
		for (size_t l = 0; l < ARRAY_SIZE(loads); l++) {
			struct row *row = &rows[(*n)++];

			snprintf(row->profile, sizeof(row->profile), "%s", name);
			row->xccs = info->geometry.xccs;
			row->engines = info->geometry.engines;
			row->cus = geometry_cus(&info->geometry);
			row->offered = loads[l];
			row->realtime = shares[s];
			for (unsigned i = 0; i < instances; i++) {
				struct load load = { loads[l], shares[s], JOBS, SEED + i };

				add_instance(info, &load, row);
			}
		}
}

static int measure_all(const char *root, unsigned instances, struct row *rows, size_t *n)
{
	struct diagnostics diagnostics = { 0 };
	char dir[4096];

	snprintf(dir, sizeof(dir), "%s/conf/gpus", root);
	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++) {
		struct profile profile;
		int r = profile_load(dir, profiles[i], &profile, &diagnostics);

		if (r < 0) {
			fprintf(stderr, "%s/%s.conf: %s\n", dir, profiles[i], strerror(-r));
			diagnostics_done(&diagnostics);
			return r;
		}
		measure(profiles[i], &profile.info, instances, rows, n);
	}
	diagnostics_done(&diagnostics);
	return 0;
}

/* ---- small instances, beside the offline optimum --------------------------------------------- */

#define SMALL_ENGINES 4U
#define SMALL_CUS 6U
#define SMALL_JOBS 12U
#define SMALL_N 40U /* instances */

struct small {
	double realtime;
	unsigned proved;
	struct mean of_optimum[POLICIES];
};

static int add_small(const struct gpu_info *info, unsigned seed, struct small *small)
{
	struct load load = { 1.4, small->realtime, SMALL_JOBS, seed };
	_cleanup_(freep) struct job *jobs = load_make(&load, SMALL_ENGINES * SMALL_CUS, 1);
	double best, offered = 0;
	int r;

	r = optimum(jobs, load.n, SMALL_ENGINES, SMALL_CUS, &best);
	if (r < 0)
		return r;
	small->proved++;
	for (size_t i = 0; i < load.n; i++)
		offered += jobs[i].cus * (jobs[i].until - jobs[i].at);
	for (size_t i = 0; i < POLICIES; i++) {
		struct outcome_of_run run;

		run_policy(info, &policies[i], jobs, load.n, 0, &run);
		mean_add(&small->of_optimum[i], run.useful * offered / best);
	}
	return 0;
}

/* -EOPNOTSUPP: there is no solver. */
static int measure_small(struct small *small)
{
	struct gpu_info info = radeon_vii("small");

	info.geometry.array_cus = SMALL_CUS;
	geometry_spread(&info.geometry, SMALL_ENGINES * SMALL_CUS);
	for (unsigned i = 0; i < SMALL_N; i++) {
		int r = add_small(&info, SEED + i, small);

		if (r == -EOPNOTSUPP)
			return r;
	}
	return 0;
}

/* ---- what is printed ------------------------------------------------------------------------ */

static void print_key(const struct row *row)
{
	printf("%-11s %ux%u %4.1f %3.1f", row->profile, row->xccs, row->engines, row->offered,
	       row->realtime);
}

static void print_mean(const struct mean *mean)
{
	printf("  %.3f ±%.3f", mean_of(mean), mean_error(mean));
}

static void print_useful(const struct row *rows, size_t n)
{
	printf("Useful work of work offered, mean and standard error; (of fluid repacking)\n");
	printf("%-11s %3s %4s %3s", "profile", "SE", "load", "RT");
	for (size_t i = 0; i < POLICIES; i++)
		printf("  %*s", i < GPUARB ? 19 : 11, policies[i].name);
	printf("  ahead\n");
	for (size_t j = 0; j < n; j++) {
		const struct row *r = &rows[j];

		print_key(r);
		for (size_t i = 0; i < POLICIES; i++) {
			print_mean(&r->by[i].useful);
			if (i < GPUARB)
				printf(" (%.3f)", mean_of(&r->by[i].of_fluid));
		}
		printf("  %.3f\n", mean_of(&r->ahead));
	}
}

/* Over all loads and shares of realtime leases. */
static void print_summary(const struct row *rows, size_t n)
{
	printf("\nOf fluid repacking, by profile; moves of a GPU in an hour if jobs take an hour; "
	       "Jain's index of\nthe CUs of adaptable leases while there are two or more, mostly "
	       "the spread of the requests: they\ndo not grow here\n");
	printf("%-11s %3s", "profile", "SE");
	for (size_t i = 0; i < GPUARB; i++)
		printf("  %9s", policies[i].name);
	printf("  moves (half, adaptable)  Jain (half, adaptable)\n");
	for (size_t j = 0, next; j < n; j = next) {
		struct mean of_fluid[GPUARB] = { 0 }, moves[GPUARB] = { 0 };
		struct mean fairness[GPUARB] = { 0 };

		for (next = j; next < n && strcmp(rows[next].profile, rows[j].profile) == 0; next++)
			for (size_t i = 0; i < GPUARB; i++) {
				mean_add(&of_fluid[i], mean_of(&rows[next].by[i].of_fluid));
				mean_add(&moves[i], mean_of(&rows[next].by[i].moves));
				if (rows[next].by[i].fairness.n > 0)
					mean_add(&fairness[i], mean_of(&rows[next].by[i].fairness));
			}
		printf("%-11s %ux%u", rows[j].profile, rows[j].xccs, rows[j].engines);
		for (size_t i = 0; i < GPUARB; i++)
			printf("  %9.3f", mean_of(&of_fluid[i]));
		printf("  %10.2f %12.2f  %9.3f %12.3f\n", mean_of(&moves[1]), mean_of(&moves[2]),
		       mean_of(&fairness[1]), mean_of(&fairness[2]));
	}
}

static void print_others(const struct row *rows, size_t n)
{
	printf("\nE for each CU granted; the largest request still possible, of the GPU, over time\n");
	printf("%-11s %3s %4s %3s", "profile", "SE", "load", "RT");
	for (size_t i = 0; i < POLICIES; i++)
		printf("  %11s", policies[i].name);
	putchar('\n');
	for (size_t j = 0; j < n; j++) {
		const struct row *r = &rows[j];

		print_key(r);
		for (size_t i = 0; i < POLICIES; i++)
			printf("  %5.3f %5.3f", mean_of(&r->by[i].per_granted),
			       mean_of(&r->by[i].largest));
		putchar('\n');
	}
}

static void print_small(const struct small *small, size_t n, int status)
{
	printf("\nSmall instances (%u engines of %u CUs, %u requests, load 1.4), of the offline "
	       "optimum\n",
	       SMALL_ENGINES, SMALL_CUS, SMALL_JOBS);
	if (status < 0) {
		printf("skipped: built without glpk\n");
		return;
	}
	for (size_t j = 0; j < n; j++) {
		printf("RT %.1f, %2u of %u proved ", small[j].realtime, small[j].proved, SMALL_N);
		for (size_t i = 0; i < POLICIES; i++)
			printf("  %s %.3f ±%.3f", policies[i].name,
			       mean_of(&small[j].of_optimum[i]),
			       mean_error(&small[j].of_optimum[i]));
		putchar('\n');
	}
}

static void json_mean(const char *key, const struct mean *mean)
{
	printf("\"%s\":%.4f,\"%s_error\":%.4f", key, mean_of(mean), key, mean_error(mean));
}

static void json_row(const struct row *r)
{
	printf("{\"profile\":\"%s\",\"xccs\":%u,\"engines\":%u,\"load\":%.1f,\"realtime\":%.1f",
	       r->profile, r->xccs, r->engines, r->offered, r->realtime);
	for (size_t i = 0; i < POLICIES; i++) {
		printf(",\"%s\":{", policies[i].name);
		json_mean("useful", &r->by[i].useful);
		putchar(',');
		json_mean("of_fluid", &r->by[i].of_fluid);
		putchar(',');
		json_mean("per_granted", &r->by[i].per_granted);
		putchar(',');
		json_mean("largest", &r->by[i].largest);
		putchar(',');
		json_mean("moves_an_hour", &r->by[i].moves);
		if (r->by[i].fairness.n > 0) {
			putchar(',');
			json_mean("jain", &r->by[i].fairness);
		}
		putchar('}');
	}
	putchar(',');
	json_mean("ahead", &r->ahead);
	putchar('}');
}

static void print_json(const struct row *rows, size_t n, const struct small *small, size_t n_small,
		       unsigned instances)
{
	printf("\n{\"seed\":%u,\"instances\":%u,\"requests\":%u,\"rows\":[", SEED, instances,
	       JOBS - FORGET);
	for (size_t i = 0; i < n; i++) {
		printf("%s", i ? "," : "");
		json_row(&rows[i]);
	}
	printf("],\"optimum\":[");
	for (size_t i = 0; i < n_small; i++) {
		printf("%s{\"realtime\":%.1f,\"proved\":%u", i ? "," : "", small[i].realtime,
		       small[i].proved);
		for (size_t j = 0; j < POLICIES; j++) {
			putchar(',');
			json_mean(policies[j].name, &small[i].of_optimum[j]);
		}
		putchar('}');
	}
	printf("]}\n");
}

int main(int argc, char *argv[])
{
	unsigned instances = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : INSTANCES;
	struct small small[] = { { .realtime = 0 }, { .realtime = 0.4 } };
	static struct row rows[ROWS];
	size_t n = 0;
	int r = 0;

	bench_pin();
	if (measure_all(argc > 1 ? argv[1] : ".", instances, rows, &n) < 0)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(small) && r == 0; i++)
		r = measure_small(&small[i]);
	printf("seed %u, %u instances of %u requests\n", SEED, instances, JOBS - FORGET);
	print_useful(rows, n);
	print_summary(rows, n);
	print_others(rows, n);
	print_small(small, ARRAY_SIZE(small), r);
	print_json(rows, n, small, r == 0 ? ARRAY_SIZE(small) : 0, instances);
	if (argc > 2) {
		r = draw_rows(argv[2], rows, n);
		if (r < 0) {
			fprintf(stderr, "%s: %s\n", argv[2], strerror(-r));
			return 1;
		}
	}
	return 0;
}
