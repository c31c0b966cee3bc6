/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * One Reserve for n GPUs, beside n of them for one GPU each, alternating in the same run, with
 * Welch's t-test: is the difference of the means more than chance? The floor is one call
 * that changes nothing (Plan).
 *
 *	GPUARBD=… GPUARB_ROOT=… bench-gang
 */

#include <math.h>

#include "bench/client.h"

#define GPUS 8
#define SAMPLES 400

static const char hardware[] = "--simulate=radeon-vii,radeon-vii,radeon-vii,radeon-vii,"
			       "radeon-vii,radeon-vii,radeon-vii,radeon-vii";

struct sample {
	double mean, variance;
	uint64_t p50;
};

struct result {
	unsigned n;
	struct sample one, many;
	double t, freedom, p;
};

/* ---- statistics -------------------------------------------------------------------------- */

static struct sample summarize(uint64_t *samples)
{
	struct sample s = { 0 };

	for (unsigned i = 0; i < SAMPLES; i++)
		s.mean += (double)samples[i] / SAMPLES;
	for (unsigned i = 0; i < SAMPLES; i++)
		s.variance += ((double)samples[i] - s.mean) * ((double)samples[i] - s.mean) /
			      (SAMPLES - 1);
	s.p50 = bench_quantile(samples, SAMPLES, 0.5);
	return s;
}

/* With hundreds of degrees of freedom Student's distribution is the normal one. */
static void compare(struct result *result)
{
	double a = result->one.variance / SAMPLES, b = result->many.variance / SAMPLES;

	result->t = (result->many.mean - result->one.mean) / sqrt(a + b);
	result->freedom = (a + b) * (a + b) / ((a * a + b * b) / (SAMPLES - 1));
	result->p = erfc(fabs(result->t) / sqrt(2));
}

/* ---- what is measured -------------------------------------------------------------------- */

static uint64_t time_one(sd_bus *bus, unsigned n)
{
	uint64_t start = bench_nsec();
	struct client_lease lease = client_reserve(bus, n, 15, 0);

	start = bench_nsec() - start;
	client_release(bus, &lease);
	return start;
}

static uint64_t time_many(sd_bus *bus, unsigned n)
{
	struct client_lease leases[GPUS];
	uint64_t start = bench_nsec();

	for (unsigned i = 0; i < n; i++)
		leases[i] = client_reserve(bus, 1, 15, 0);
	start = bench_nsec() - start;
	for (unsigned i = 0; i < n; i++)
		client_release(bus, &leases[i]);
	return start;
}

static uint64_t time_plan(sd_bus *bus)
{
	sd_bus_message *m = client_ask_arbiter(bus, "Plan");
	uint64_t start;

	CHECK(sd_bus_message_append(m, "aa{sv}a{sv}", 1, 1, "cus", "u", 15, 0) >= 0);
	start = bench_nsec();
	sd_bus_message_unref(client_call(bus, m));
	return bench_nsec() - start;
}

static struct result measure(sd_bus *bus, unsigned n)
{
	static uint64_t one[SAMPLES], many[SAMPLES];
	struct result result = { .n = n };

	for (unsigned i = 0; i < SAMPLES; i++) {
		/* Whoever comes second has the warmer cache. */
		if (i % 2)
			one[i] = time_one(bus, n);
		many[i] = time_many(bus, n);
		if (i % 2 == 0)
			one[i] = time_one(bus, n);
	}
	result.one = summarize(one);
	result.many = summarize(many);
	compare(&result);
	return result;
}

static void print(const struct result *r)
{
	printf("%4u %10.1f %8.1f %10.1f %8.1f %8.2f %8.1f %7.0f %9.2g\n", r->n, r->one.mean / 1e3,
	       sqrt(r->one.variance) / 1e3, r->many.mean / 1e3, sqrt(r->many.variance) / 1e3,
	       r->many.mean / r->one.mean, r->t, r->freedom, r->p);
}

int main(void)
{
	static const unsigned counts[] = { 1, 2, 4, GPUS };
	struct result results[sizeof(counts) / sizeof(counts[0])];
	static uint64_t plan[SAMPLES];
	struct sample floor;
	struct rig rig;
	sd_bus *bus;

	if (rig_missing()) {
		fprintf(stderr, "%s\n", rig_missing());
		return 1;
	}
	bench_pin();
	rig_new(&rig);
	client_start_daemon(&rig, hardware, true);
	bus = rig_connect(&rig, getuid());
	for (unsigned i = 0; i < SAMPLES; i++)
		plan[i] = time_plan(bus);
	floor = summarize(plan);
	for (unsigned i = 0; i < 4; i++)
		results[i] = measure(bus, counts[i]);

	printf("one call that changes nothing (floor): %.1f us, sd %.1f\n\n", floor.mean / 1e3,
	       sqrt(floor.variance) / 1e3);
	printf("%4s %10s %8s %10s %8s %8s %8s %7s %9s\n", "GPUs", "one us", "sd", "n of one", "sd",
	       "ratio", "t", "df", "p");
	for (unsigned i = 0; i < 4; i++)
		print(&results[i]);
	printf("\n{\"floor_ns\":%.0f,\"gangs\":[", floor.mean);
	for (unsigned i = 0; i < 4; i++)
		printf("%s{\"gpus\":%u,\"one_ns\":%.0f,\"many_ns\":%.0f,\"t\":%.2f,\"df\":%.0f,"
		       "\"p\":%.3g}",
		       i ? "," : "", results[i].n, results[i].one.mean, results[i].many.mean,
		       results[i].t, results[i].freedom, results[i].p);
	printf("]}\n");
	sd_bus_flush_close_unref(bus);
	rig_done(&rig);
	return 0;
}
