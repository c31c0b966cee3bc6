/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The requests that take longest to decide: up to 64 wants on 64 GPUs that many leases share, adaptable
 * ones that may move, ones that may be revoked, or with floors of eight tenants; for CUs of any shape, for
 * rectangles that do not fit, and for adaptable leases that do. With what Plan searches for: moves,
 * preemption, effects, advice. The floor is the decision in the same run. CPU time, medians.
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
#define USERS 8

static const struct geometry large = { .xccs = 8, .engines = 4, .arrays = 1, .array_cus = 10 };

enum kind { KIND_SHARED, KIND_ADAPTABLE, KIND_REVOCABLE, KIND_FLOORS, KINDS };
static const char *const kind_names[KINDS] = { "shared", "adaptable", "revocable", "floors" };

/* The tenant of leases that may be revoked, and the one of user 1, whose class is higher; or tenants
 * with floors. */
static void add_tenants(struct arbiter *arbiter, enum kind kind)
{
	char name[16];

	if (kind == KIND_REVOCABLE) {
		for (uid_t uid = USER + 1; uid <= USERS; uid++) {
			snprintf(name, sizeof(name), "low%u", uid);
			add_tenant(arbiter, name, uid, CLASS_BESTEFFORT)->preempt = true;
		}
		add_tenant(arbiter, "high", USER, CLASS_GUARANTEED);
	}
	for (uid_t uid = USER; kind == KIND_FLOORS && uid <= USERS; uid++) {
		snprintf(name, sizeof(name), "floor%u", uid);
		add_tenant(arbiter, name, uid, CLASS_BESTEFFORT)->reserved_cus =
			(struct limit){ LIMIT_COUNT, 6 };
	}
}

static struct arbiter *machine(enum kind kind, bool many_engines, unsigned leases)
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
	add_tenants(arbiter, kind);
	for (unsigned i = 0; i < leases; i++) {
		struct caller caller = caller_of(i % (USERS - 1) + USER + 1);
		struct request request = request_for(many_engines ? 8 : 1);
		struct result result = { 0 };
		struct lease *lease;

		if (kind == KIND_SHARED || kind == KIND_FLOORS) {
			request.wants[0].cus = 15;
			request.wants[0].isolation = ISOLATION_SHARED;
		}
		request.adaptable = kind == KIND_ADAPTABLE;
		request.wants[0].queues = 1;
		snprintf(request.wants[0].gpu, sizeof(request.wants[0].gpu), "%u", i % GPUS);
		if (arbiter_plan(arbiter, &caller, &request, &lease, &result) >= 0)
			arbiter_add_holder(arbiter, arbiter_commit(arbiter, lease)->id);
		result_done(&result);
	}
	return arbiter;
}

enum shape { SHAPE_ANY, SHAPE_RECTANGLE, SHAPE_FITS, SHAPES };
static const char *const shape_names[SHAPES] = { "any", "rectangle", "fits" };

/* different: so many wants, each of other CUs; then the same again. */
static struct request awkward(bool many, unsigned wants, unsigned different, enum shape shape)
{
	struct request request = request_for(1);

	request.n_wants = wants;
	request.adaptable = shape == SHAPE_FITS;
	for (unsigned i = 0; i < wants; i++) {
		struct want *want = &request.wants[i];

		*want = request.wants[0];
		want->any_shape = want->exact = shape == SHAPE_ANY;
		want->cus = (many ? 185 : 37) + i % different;
		want->queues = shape == SHAPE_ANY ? 60 : 20; /* no lease may be left */
		if (shape == SHAPE_FITS) {
			want->queues = 1;
			want->cus = (many ? 4 : 1) + i % different;
			want->cus_max = 60;
		}
	}
	return request;
}

enum part { PART_DECISION, PART_MOVES, PART_PREEMPTION, PART_EFFECTS, PART_ADVICE, PARTS };
static const char *const part_names[PARTS] = { "decision", "moves", "preemption", "effects",
					       "advice" };

/* One part of the method Plan. The time of effects is without that of the preemption before. */
static uint64_t run(enum part part, const struct arbiter *arbiter, const struct request *request)
{
	const struct caller caller = caller_of(USER);
	struct effects effects = { 0 };
	struct advice advice = { 0 };
	struct result result = { 0 };
	struct lease *lease = NULL;
	uint64_t start = bench_thread_nsec();
	struct move_set set = { 0 };

	if (part == PART_DECISION)
		arbiter_plan(arbiter, &caller, request, &lease, &result);
	else if (part == PART_PREEMPTION || part == PART_EFFECTS)
		preempt_plan(arbiter, &caller, request, &lease, &result);
	else if (part == PART_MOVES)
		arbiter_plan_moves(arbiter, &caller, request, 1, MOVE_STEPS, &set);
	else if (part == PART_ADVICE)
		arbiter_advise(arbiter, &caller, request, &advice);
	if (part == PART_EFFECTS) {
		start = bench_thread_nsec();
		arbiter_effects(arbiter, &caller, request, lease, 1, &effects);
	}
	start = bench_thread_nsec() - start;
	effects_done(&effects);
	move_set_done(&set);
	lease_free(lease);
	result_done(&result);
	return start;
}

/* Returns the time of a Plan: it searches for moves and advice only where the request does not fit. */
static double measure(const struct arbiter *arbiter, const struct request *request, double *us)
{
	bool fits = request->adaptable;

	for (unsigned part = 0; part < PARTS; part++) {
		uint64_t samples[RUNS];

		for (unsigned r = 0; r < RUNS; r++)
			samples[r] = run(part, arbiter, request);
		us[part] = (double)bench_quantile(samples, RUNS, 0.5) / 1e3;
	}
	return us[PART_PREEMPTION] + us[PART_EFFECTS] +
	       (fits ? 0 : us[PART_MOVES] + us[PART_ADVICE]);
}

/* Returns the time of the longest Plan. */
static double measure_ledger(enum kind kind, bool many, unsigned leases)
{
	struct arbiter *arbiter = machine(kind, many, leases);
	double us[PARTS], worst = 0;

	for (unsigned i = 0; i < 4 * SHAPES; i++) {
		unsigned different = i & 1 ? 8 : 1, wants = i & 2 ? GPUS : different;
		struct request request = awkward(many, wants, different, i / 4);
		double plan = measure(arbiter, &request, us);

		printf("%-10s %7u %6zu %5u %9u %-10s", kind_names[kind], many ? 32 : 4,
		       arbiter->n_leases, wants, different, shape_names[i / 4]);
		for (unsigned part = 0; part < PARTS; part++)
			printf(" %10.0f", us[part]);
		printf(" %8.0f\n", plan);
		fflush(stdout);
		worst = plan > worst ? plan : worst;
	}
	arbiter_free(arbiter);
	return worst;
}

int main(void)
{
	static const unsigned leases[] = { 400, 1900 };
	double worst = 0;

	bench_pin();
	printf("%-10s %7s %6s %5s %9s %-10s", "ledger", "engines", "leases", "wants", "different",
	       "shape");
	for (unsigned part = 0; part < PARTS; part++)
		printf(" %10s", part_names[part]);
	printf(" %8s\n", "Plan us");
	for (unsigned i = 0; i < 4 * KINDS; i++) {
		double plan = measure_ledger(i / 4, i & 1, leases[i >> 1 & 1]);

		worst = plan > worst ? plan : worst;
	}
	printf("\n{\"worst_plan_us\":%.0f}\n", worst);
	return 0;
}
