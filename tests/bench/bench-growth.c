/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * How the time of a decision grows: with CUs, XCCs, engines, leases, GPUs, and leases that
 * wait. One of them grows at a time; the exponent is the slope of log time over log size, by
 * least squares over the larger half: 1 is linear. Best of several runs.
 *
 *	bench-growth
 */

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "core/decide/advice.h"
#include "ledger-rig.h"

#define REQUESTS 32
#define RUNS 5
#define SIZES 8
#define USER 1
#define NSEC 2000000 /* that one run takes at least */

/* ---- machines ----------------------------------------------------------------------------- */

static struct arbiter *machine(const struct geometry *geometry, unsigned n_gpus)
{
	struct gpu_info *infos = calloc(n_gpus, sizeof(*infos));
	struct arbiter *arbiter;

	for (unsigned i = 0; i < n_gpus; i++) {
		infos[i] = radeon_vii("");
		snprintf(infos[i].name, sizeof(infos[i].name), "gpu%02u", i);
		if (geometry)
			infos[i].geometry = *geometry;
		infos[i].queue_slots = infos[i].process_slots = 100000;
	}
	arbiter = arbiter_of(infos, n_gpus);
	add_tenant(arbiter, "bench", USER, CLASS_REALTIME);
	arbiter->settings->max_leases = arbiter->settings->max_leases_per_user = 100000;
	free(infos);
	return arbiter;
}

/* Granted, or waiting where the request says so. */
static struct lease *take(struct arbiter *arbiter, const struct request *request)
{
	const struct caller caller = caller_of(USER);
	struct result result = { 0 };
	struct lease *lease = NULL;

	if (arbiter_plan(arbiter, &caller, request, &lease, &result) < 0) {
		result_done(&result);
		return NULL;
	}
	lease = arbiter_commit(arbiter, lease);
	arbiter_add_holder(arbiter, lease->id);
	result_done(&result);
	return lease;
}

static struct request want(unsigned cus, enum lease_class lease_class)
{
	struct request request = request_for(cus);

	request.class = (int)lease_class;
	request.wants[0].queues = 1;
	return request;
}

/* A quarter realtime, a quarter best effort, on every GPU. */
static void fill_half(struct arbiter *arbiter)
{
	for (size_t g = 0; g < arbiter->n_gpus; g++)
		for (int i = 0; i < 2; i++) {
			struct request request = want(max_u(arbiter->gpus[g].cus / 4, 1),
						      i ? CLASS_BESTEFFORT : CLASS_REALTIME);

			snprintf(request.wants[0].gpu, sizeof(request.wants[0].gpu), "%zu", g);
			take(arbiter, &request);
		}
}

/* ---- one decision ---------------------------------------------------------------------------- */

static void decide(const struct arbiter *arbiter, const struct request *request)
{
	const struct caller caller = caller_of(USER);
	_cleanup_(result_done) struct result result = { 0 };
	_cleanup_(lease_freep) struct lease *lease = NULL;

	arbiter_plan(arbiter, &caller, request, &lease, &result);
}

static void advise(const struct arbiter *arbiter, const struct request *request)
{
	const struct caller caller = caller_of(USER);
	struct advice advice;

	arbiter_advise(arbiter, &caller, request, &advice);
}

/* Nanoseconds for each request, whatever the answer. */
static double measure(const struct arbiter *arbiter, const struct request *requests, size_t n,
		      void (*what)(const struct arbiter *, const struct request *))
{
	double best = INFINITY;

	for (unsigned run = 0; run < RUNS; run++) {
		uint64_t start = bench_nsec(), spent;
		unsigned rounds = 0;

		do {
			for (size_t i = 0; i < n; i++)
				what(arbiter, &requests[i]);
			rounds++;
			spent = bench_nsec() - start;
		} while (spent < NSEC);
		best = fmin(best, (double)spent / ((double)rounds * (double)n));
	}
	return best;
}

/* Requests of all classes and sizes: some are refused. */
static double measure_mixed(const struct arbiter *arbiter)
{
	static struct request requests[REQUESTS];
	unsigned seed = 1, cus = arbiter->gpus[0].cus;

	for (unsigned i = 0; i < REQUESTS; i++)
		requests[i] = want(1 + (unsigned)rand_r(&seed) % (i % 4 ? max_u(cus / 4, 1) : cus),
				   (enum lease_class)(i % 3));
	return measure(arbiter, requests, REQUESTS, decide);
}

static double measure_half_full(const struct geometry *geometry, unsigned n_gpus)
{
	struct arbiter *arbiter = machine(geometry, n_gpus);
	double ns;

	fill_half(arbiter);
	ns = measure_mixed(arbiter);
	arbiter_free(arbiter);
	return ns;
}

/* ---- what grows ------------------------------------------------------------------ */

static struct geometry shape(unsigned xccs, unsigned engines, unsigned arrays, unsigned cus)
{
	struct geometry g = {
		.xccs = xccs, .engines = engines, .arrays = arrays, .array_cus = CUSET_ARRAY_CUS
	};

	CHECK(geometry_spread(&g, cus) == 0);
	return g;
}

static double with_cus(unsigned n)
{
	unsigned engines = n < 128 ? max_u(n / 16, 1) : 8;
	struct geometry g = shape(n > 128 ? n / 128 : 1, engines, 1, n);

	return measure_half_full(&g, 1);
}

static double with_cus_alone(unsigned n) /* in four engines */
{
	struct geometry g = shape(1, 4, 2, n);

	return measure_half_full(&g, 1);
}

static double with_xccs(unsigned n)
{
	struct geometry g = shape(n, 4, 1, n * 40);

	return measure_half_full(&g, 1);
}

static double with_engines(unsigned n)
{
	struct geometry g = shape(1, n, 1, n * 16);

	return measure_half_full(&g, 1);
}

static struct arbiter *with_shared(unsigned n)
{
	struct arbiter *arbiter = machine(NULL, 1);
	struct request request = want(1, CLASS_BESTEFFORT);

	request.wants[0].isolation = ISOLATION_SHARED;
	for (unsigned i = 0; i < n; i++)
		take(arbiter, &request);
	return arbiter;
}

static double with_leases(unsigned n)
{
	struct arbiter *arbiter = with_shared(n);
	double ns = measure_mixed(arbiter);

	arbiter_free(arbiter);
	return ns;
}

static double with_leases_of_tenant(unsigned n)
{
	struct arbiter *arbiter = with_shared(n);
	double ns;

	arbiter->settings->tenants[0].max_cus = (struct limit){ LIMIT_COUNT, 1000000 };
	arbiter->settings->tenants[0].max_leases = (struct limit){ LIMIT_COUNT, 1000000 };
	ns = measure_mixed(arbiter);
	arbiter_free(arbiter);
	return ns;
}

static double advice_with_leases(unsigned n)
{
	struct arbiter *arbiter = with_shared(n);
	struct request all = want(60, CLASS_GUARANTEED);
	double ns = measure(arbiter, &all, 1, advise);

	arbiter_free(arbiter);
	return ns;
}

static double with_gpus(unsigned n)
{
	return measure_half_full(NULL, n);
}

/* A GPU that is full but for one CU, and leases that wait for much of it. */
static struct arbiter *with_waiting(unsigned n)
{
	struct arbiter *arbiter = machine(NULL, 1);
	struct request all = want(56, CLASS_REALTIME), much = want(30, CLASS_BESTEFFORT);

	all.wants[0].exact = true;
	CHECK(take(arbiter, &all));
	much.wait_usec = UINT64_MAX;
	for (unsigned i = 0; i < n; i++)
		CHECK(take(arbiter, &much));
	return arbiter;
}

static double with_waiters(unsigned n)
{
	struct arbiter *arbiter = with_waiting(n);
	double ns = measure_mixed(arbiter);

	arbiter_free(arbiter);
	return ns;
}

/* Something becomes free that helps none of them: all are looked at. */
static double look_with_waiters(unsigned n)
{
	struct arbiter *arbiter = with_waiting(n);
	struct request one = want(1, CLASS_GUARANTEED);
	double best = INFINITY;

	for (unsigned run = 0; run < RUNS; run++) {
		struct lease *lease = take(arbiter, &one), *next;
		uint64_t start;

		CHECK(lease);
		while (arbiter_plan_next(arbiter, &next) == 1)
			CHECK(false);
		release(arbiter, lease->id);
		start = bench_nsec();
		while (arbiter_plan_next(arbiter, &next) == 1)
			CHECK(false);
		best = fmin(best, (double)(bench_nsec() - start));
	}
	arbiter_free(arbiter);
	return best;
}

static const struct axis {
	const char *name, *text;
	double (*measure)(unsigned size);
	unsigned sizes[SIZES];
} axes[] = {
	{ "cus",
	  "CUs, with XCCs of 8 engines of 16",
	  with_cus,
	  { 16, 32, 64, 128, 256, 512, 1024 } },
	{ "cus-alone", "CUs of 4 engines", with_cus_alone, { 4, 8, 16, 32, 64, 128 } },
	{ "xccs", "XCCs of 4 engines of 10 CUs", with_xccs, { 1, 2, 4, 8 } },
	{ "engines", "engines of 16 CUs", with_engines, { 1, 2, 4, 6, 8 } },
	{ "leases", "leases on a GPU", with_leases, { 1, 10, 100, 1000 } },
	{ "leases-quota",
	  "leases, of a tenant with quotas",
	  with_leases_of_tenant,
	  { 1, 10, 100, 1000 } },
	{ "gpus", "GPUs, any of which will do", with_gpus, { 1, 2, 4, 8, 16, 32, 64 } },
	{ "waiters", "leases that wait: a decision", with_waiters, { 1, 10, 100, 1000, 10000 } },
	{ "waiters-look",
	  "leases that wait: all are looked at",
	  look_with_waiters,
	  { 1, 10, 100, 1000, 10000 } },
	{ "advice", "leases on a GPU: advice", advice_with_leases, { 1, 10, 100, 1000 } },
};

/* ---- what is printed -------------------------------------------------------------- */

static double exponent(const unsigned *sizes, const double *ns, size_t n)
{
	double x = 0, y = 0, xx = 0, xy = 0, points = 0;

	for (size_t i = n / 2; i < n; i++) {
		double a = log(sizes[i]), b = log(ns[i]);

		x += a, y += b, xx += a * a, xy += a * b;
		points++;
	}
	return (points * xy - x * y) / (points * xx - x * x);
}

int main(void)
{
	double ns[ARRAY_SIZE(axes)][SIZES], slope[ARRAY_SIZE(axes)];
	size_t n[ARRAY_SIZE(axes)] = { 0 };

	bench_pin();
	for (size_t i = 0; i < ARRAY_SIZE(axes); i++) {
		printf("%s\n", axes[i].text);
		for (; n[i] < SIZES && axes[i].sizes[n[i]]; n[i]++) {
			ns[i][n[i]] = axes[i].measure(axes[i].sizes[n[i]]);
			printf("%8u %12.0f ns\n", axes[i].sizes[n[i]], ns[i][n[i]]);
			fflush(stdout);
		}
		slope[i] = exponent(axes[i].sizes, ns[i], n[i]);
		printf("exponent %12.2f\n\n", slope[i]);
	}
	printf("{");
	for (size_t i = 0; i < ARRAY_SIZE(axes); i++) {
		printf("%s\"%s\":{\"exponent\":%.3f,\"ns\":{", i ? "," : "", axes[i].name,
		       slope[i]);
		for (size_t j = 0; j < n[i]; j++)
			printf("%s\"%u\":%.0f", j ? "," : "", axes[i].sizes[j], ns[i][j]);
		printf("}}");
	}
	printf("}\n");
	return 0;
}
