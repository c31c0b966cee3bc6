/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The requests that take longest to decide: 64 wants of awkward sizes on 64 GPUs that hundreds of
 * leases share, with the advice, the moves and the preemption that Plan searches for. The floor is
 * the decision about one want in the same run. Worst of several runs.
 *
 *	bench-worst
 */

#include <string.h>

#include "bench/bench.h"
#include "core/decide/advice.h"
#include "core/decide/preempt.h"
#include "ledger-rig.h"

#define GPUS 64
#define RUNS 9
#define USER 1

static const struct geometry large = { .xccs = 8, .engines = 4, .arrays = 1, .array_cus = 10 };

static struct arbiter *machine(bool many_engines, unsigned leases)
{
	static struct gpu_info infos[GPUS];
	struct arbiter *arbiter;

	for (unsigned i = 0; i < GPUS; i++) {
		infos[i] = radeon_vii("");
		snprintf(infos[i].name, sizeof(infos[i].name), "gpu%02u", i);
		if (many_engines) {
			infos[i].geometry = large;
			CHECK(geometry_spread(&infos[i].geometry, 304) == 0);
		}
		infos[i].process_slots = 1000;
		infos[i].queue_slots = 60;
	}
	arbiter = arbiter_of(infos, GPUS);
	arbiter->settings->max_leases = arbiter->settings->max_leases_per_user = 100000;
	for (unsigned i = 0; i < leases; i++) {
		struct caller caller = caller_of(i % 7 + 1);
		struct request request = request_for(15);
		struct result result = { 0 };
		struct lease *lease;

		request.wants[0].isolation = ISOLATION_SHARED;
		request.wants[0].queues = 1;
		snprintf(request.wants[0].gpu, sizeof(request.wants[0].gpu), "%u", i % GPUS);
		CHECK(arbiter_plan(arbiter, &caller, &request, &lease, &result) >= 0);
		arbiter_add_holder(arbiter, arbiter_commit(arbiter, lease)->id);
	}
	return arbiter;
}

/* different: no two wants are equal. */
static struct request awkward(unsigned wants, bool different)
{
	struct request request = request_for(37);

	request.n_wants = wants;
	for (unsigned i = 0; i < wants; i++) {
		request.wants[i] = request.wants[0];
		request.wants[i].cus = different ? 5 + i % 50 : 37;
		request.wants[i].any_shape = true;
		request.wants[i].exact = true;
		request.wants[i].queues = 60; /* no lease may be left */
	}
	return request;
}

enum part { PART_DECISION, PART_MOVES, PART_PREEMPTION, PART_ADVICE, PARTS };
static const char *const part_names[PARTS] = { "decision", "moves", "preemption", "advice" };

/* Other processes on this core do not count. */
static uint64_t cpu_nsec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The parts of the method Plan. */
static void run(enum part part, const struct arbiter *arbiter, const struct request *request)
{
	const struct caller caller = caller_of(USER);
	struct advice advice = { 0 };
	struct result result = { 0 };
	struct lease *lease = NULL;
	struct move_set set;

	if (part == PART_DECISION)
		arbiter_plan(arbiter, &caller, request, &lease, &result);
	else if (part == PART_PREEMPTION)
		preempt_plan(arbiter, &caller, request, &lease, &result);
	else if (part == PART_MOVES &&
		 arbiter_plan_moves(arbiter, &caller, request, 1, MOVE_STEPS, &set) > 0)
		move_set_done(&set);
	else if (part == PART_ADVICE)
		arbiter_advise(arbiter, &caller, request, &advice);
	lease_free(lease);
	result_done(&result);
}

static void measure(const struct arbiter *arbiter, const struct request *request, double *us)
{
	for (unsigned part = 0; part < PARTS; part++) {
		uint64_t samples[RUNS];

		for (unsigned r = 0; r < RUNS; r++) {
			uint64_t start = cpu_nsec();

			run(part, arbiter, request);
			samples[r] = cpu_nsec() - start;
		}
		us[part] = (double)bench_quantile(samples, RUNS, 0.5) / 1e3;
	}
}

int main(void)
{
	static const unsigned leases[] = { 400, 2000 };

	bench_pin();
	printf("%8s %8s %6s %10s", "engines", "leases", "wants", "different");
	for (unsigned part = 0; part < PARTS; part++)
		printf(" %12s us", part_names[part]);
	for (unsigned i = 0; i < 16; i++) {
		bool many = i & 1, different = i & 2;
		unsigned n = leases[i >> 2 & 1], wants = i & 8 ? GPUS : 1;
		struct arbiter *arbiter = machine(many, n);
		struct request request = awkward(wants, different);
		double us[PARTS];

		measure(arbiter, &request, us);
		printf("\n%8u %8u %6u %10s", many ? 32 : 4, n, wants, different ? "yes" : "no");
		for (unsigned part = 0; part < PARTS; part++)
			printf(" %15.1f", us[part]);
		fflush(stdout);
		arbiter_free(arbiter);
	}
	printf("\n");
	return 0;
}
