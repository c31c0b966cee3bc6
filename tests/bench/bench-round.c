/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A round through 1,000 waiting leases after something became free on one of 64 GPUs: the leases wait for 64
 * GPUs each, or for one; with equal wants, or wants of eight kinds. No two leases are equal. The floor is a
 * round in which every lease is examined in full. CPU time, medians.
 *
 *	bench-round
 */

#include <string.h>

#include "bench/bench.h"
#include "ledger-rig.h"

#define GPUS 64U
#define WAITING 1000U
#define RUNS 9U
#define HOLDER 1
#define USER 2

static struct arbiter *machine(bool all_held, struct lease *held[GPUS])
{
	static struct gpu_info infos[GPUS];
	struct arbiter *arbiter;

	for (unsigned i = 0; i < GPUS; i++) {
		infos[i] = radeon_vii("");
		snprintf(infos[i].name, sizeof(infos[i].name), "gpu%02u", i);
	}
	arbiter = arbiter_of(infos, GPUS);
	arbiter->settings->max_leases = arbiter->settings->max_leases_per_user = 100000;
	add_tenant(arbiter, "holder", HOLDER, CLASS_GUARANTEED); /* it passes no waiting lease */
	for (unsigned i = all_held ? 0 : GPUS - 2; i < GPUS; i++) {
		struct request request = request_for(8);
		struct result result = { 0 };

		snprintf(request.wants[0].gpu, sizeof(request.wants[0].gpu), "%u", i);
		CHECK(reserve(arbiter, HOLDER, &request, &result));
		held[i] = reserve(arbiter, HOLDER, &request, &result);
		CHECK(held[i]);
	}
	return arbiter;
}

static void wait_for(struct arbiter *arbiter, unsigned wants, unsigned kinds, unsigned i)
{
	struct caller caller = caller_of(USER);
	struct request request = request_for(0);
	struct result result = { 0 };
	struct lease *lease;

	request.n_wants = wants;
	request.wait_usec = UINT64_MAX;
	for (unsigned j = 0; j < wants; j++) {
		want_init(&request.wants[j]);
		request.wants[j].cus = 53 + j % kinds % 8;
		request.wants[j].queues = 1 + j % kinds / 8;
		request.wants[j].vram = i + 1;
		request.wants[j].exact = request.wants[j].any_shape = true;
	}
	CHECK(arbiter_plan(arbiter, &caller, &request, &lease, &result) >= 0);
	result_done(&result);
	arbiter_add_holder(arbiter, arbiter_commit(arbiter, lease)->id);
}

/* As gpuarbd: in parts of so many steps. Returns how many. */
static unsigned round_of(struct arbiter *arbiter)
{
	struct lease *next;
	unsigned parts = 0;

	do {
		arbiter->round_steps = 1024;
		CHECK(arbiter_plan_next(arbiter, &next) == 0);
		parts++;
	} while (arbiter->paused);
	return parts;
}

static double measure(struct arbiter *arbiter, struct lease *held[GPUS], unsigned *ret_parts)
{
	uint64_t samples[RUNS];

	for (unsigned i = 0; i < RUNS; i++) {
		unsigned gpu = GPUS - 1 - i % 2;
		struct request request = request_for(8);
		struct result result = { 0 };
		uint64_t start;

		release(arbiter, held[gpu]->id);
		start = bench_thread_nsec();
		*ret_parts = round_of(arbiter);
		samples[i] = bench_thread_nsec() - start;
		snprintf(request.wants[0].gpu, sizeof(request.wants[0].gpu), "%u", gpu);
		held[gpu] = reserve(arbiter, HOLDER, &request, &result);
		CHECK(held[gpu]);
	}
	return (double)bench_quantile(samples, RUNS, 0.5) / 1e6;
}

int main(void)
{
	static const struct {
		unsigned wants, kinds;
		bool all_held;
	} rows[] = {
		{ 64, 1, true }, { 64, 8, true }, { 1, 1, true }, { 64, 1, false }, { 64, 8, false }
	};
	double worst = 0;

	bench_pin();
	printf("%5s %5s %9s %10s %6s\n", "wants", "kinds", "GPUs held", "round ms", "parts");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lease *held[GPUS];
		struct arbiter *arbiter = machine(rows[i].all_held, held);
		unsigned parts;
		double ms;

		for (unsigned j = 0; j < WAITING; j++)
			wait_for(arbiter, rows[i].wants, rows[i].kinds, j);
		ms = measure(arbiter, held, &parts);
		printf("%5u %5u %9s %10.2f %6u\n", rows[i].wants, rows[i].kinds,
		       rows[i].all_held ? "all" : "2", ms, parts);
		fflush(stdout);
		worst = ms > worst ? ms : worst;
		arbiter_free(arbiter);
	}
	printf("\n{\"round_ms\":%.2f}\n", worst);
	return 0;
}
