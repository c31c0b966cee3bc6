/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * How good the choice of CUs is: useful work that the arbiter admits from one random load, beside
 * fluid repacking.
 *
 *	bench-placement SOURCE-ROOT [INSTANCES]
 */

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

	for (size_t i = 0; i < POLICIES; i++) {
		run_policy(info, &policies[i], jobs, load->n, FORGET, &runs[i]);
		mean_add(&row->by[i].useful, runs[i].useful);
		mean_add(&row->by[i].moves, runs[i].moves);
		if (!isnan(runs[i].fairness))
			mean_add(&row->by[i].fairness, runs[i].fairness);
	}
	for (size_t i = 0; i < POLICIES; i++)
		mean_add(&row->by[i].of_fluid, runs[i].useful / runs[FLUID].useful);
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
	putchar('\n');
	for (size_t j = 0; j < n; j++) {
		const struct row *r = &rows[j];

		print_key(r);
		for (size_t i = 0; i < POLICIES; i++) {
			print_mean(&r->by[i].useful);
			if (i < GPUARB)
				printf(" (%.3f)", mean_of(&r->by[i].of_fluid));
		}
		putchar('\n');
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
		json_mean("moves_an_hour", &r->by[i].moves);
		if (r->by[i].fairness.n > 0) {
			putchar(',');
			json_mean("jain", &r->by[i].fairness);
		}
		putchar('}');
	}
	putchar('}');
}

static void print_json(const struct row *rows, size_t n, unsigned instances)
{
	printf("\n{\"seed\":%u,\"instances\":%u,\"requests\":%u,\"rows\":[", SEED, instances,
	       JOBS - FORGET);
	for (size_t i = 0; i < n; i++) {
		printf("%s", i ? "," : "");
		json_row(&rows[i]);
	}
	printf("]}\n");
}

int main(int argc, char *argv[])
{
	unsigned instances = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : INSTANCES;
	static struct row rows[ROWS];
	size_t n = 0;

	bench_pin();
	if (measure_all(argc > 1 ? argv[1] : ".", instances, rows, &n) < 0)
		return 1;
	printf("seed %u, %u instances of %u requests\n", SEED, instances, JOBS - FORGET);
	print_useful(rows, n);
	print_summary(rows, n);
	print_json(rows, n, instances);
	return 0;
}
