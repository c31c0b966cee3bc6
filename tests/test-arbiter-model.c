/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Random operations on random arbiters, one for every shipped profile and a machine that
 * mixes them; after each one arbiter_check() counts everything anew, and what was asked
 * is compared with what was granted.
 *
 *	test-arbiter-model           10^6 operations in all
 *	MODEL_OPERATIONS=N …         N for each profile
 *	MODEL_SEED=N …               the same run again
 */

#include <dirent.h>
#include <time.h>

#include "check.h"
#include "ledger-rig.h"
#include "sys/profile.h"

#define LEASES 40 /* that a run tries to keep alive at the most */

struct model {
	struct arbiter *arbiter;
	unsigned seed;
	uint64_t last_id;
	struct gpu_info infos[4];
	/* What was reached, over all runs. */
	unsigned granted[3], gangs, resized, refused[REASONS];
};

static unsigned below(struct model *model, unsigned n)
{
	return (unsigned)rand_r(&model->seed) % n;
}

static bool chance(struct model *model, unsigned percent)
{
	return below(model, 100) < percent;
}

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

static void check_promises(const struct model *model)
{
	char why[256];

	if (!arbiter_check(model->arbiter, why, sizeof(why)))
		fail(why);
}

static void drain_touched(struct model *model)
{
	struct lease *lease;
	unsigned touched;

	while ((lease = arbiter_take_touched(model->arbiter, &touched)))
		if (touched & TOUCH_REMOVED)
			lease_free(lease);
}

/* ---- requests ------------------------------------------------------------------------ */

static void random_want(struct model *model, struct want *want)
{
	want_init(want);
	if (chance(model, 40))
		snprintf(want->gpu, sizeof(want->gpu), "%u", below(model, 5));
	if (chance(model, 85))
		want->cus = 1 + below(model, chance(model, 20) ? 330 : 40);
	if (chance(model, 20))
		want->shader_engines = 1 + below(model, 8);
	if (chance(model, 20))
		want->cus_min = 1 + below(model, 40);
	if (chance(model, 20))
		want->cus_max = 1 + below(model, 400);
	want->exact = chance(model, 10);
	want->any_shape = chance(model, 10);
	want->queues = chance(model, 50) ? 1 + below(model, 6) : 0;
	want->streams = chance(model, 10) ? below(model, 3) : 0;
	want->processes = chance(model, 20) ? 1 + below(model, 3) : 0;
	want->sdma_queues = chance(model, 20) ? below(model, 4) : 0;
	want->vram = chance(model, 20) ? (uint64_t)below(model, 1000) << 24 : 0;
	want->cooperative = chance(model, 5);
	want->priority = chance(model, 10) ? below(model, 17) : PRIORITY_NORMAL;
	if (chance(model, 30))
		want->isolation = (enum isolation)below(model, 4);
}

static void random_request(struct model *model, struct request *request)
{
	memset(request, 0, sizeof(*request));
	request->n_wants = chance(model, 20) ? 1 + below(model, 4) : 1;
	request->class = chance(model, 70) ? (int)below(model, 3) : -1;
	for (size_t i = 0; i < request->n_wants; i++)
		random_want(model, &request->wants[i]);
	if (chance(model, 10))
		snprintf(request->token, sizeof(request->token), "t%u", below(model, 5));
}

/* What was granted against what was asked, want by want. */
static void check_grant(const struct model *model, const struct request *request,
			const struct lease *lease)
{
	if (lease->n_partitions != request->n_wants)
		fail("a partition for each want");
	for (size_t i = 0; i < request->n_wants; i++) {
		const struct want *want = &request->wants[i];
		const struct partition *p = &lease->partitions[i];
		const struct gpu *gpu = &model->arbiter->gpus[p->gpu];

		if (want->exact && want->cus && p->count != want->cus)
			fail("exact was not");
		if (want->cus_min && p->count < want->cus_min)
			fail("below cus-min");
		if (want->cus_max && p->count > want->cus_max)
			fail("above cus-max");
		if (want->cus && !want->cus_min && p->count < want->cus - want->cus / 10 - 1)
			fail("below nine tenths");
		if (want->shader_engines && p->count < gpu->cus &&
		    (unsigned)__builtin_popcount(cuset_engines(&p->cus)) != want->shader_engines)
			fail("not so many shader engines");
		if (strcmp(want->gpu, "any") != 0 && (unsigned)atoi(want->gpu) != p->gpu)
			fail("another GPU");
		if (p->priority != want->priority || (want->queues && p->granted.queues != want->queues))
			fail("another budget");
	}
}

static void check_refusal(struct model *model, const struct verdict *verdict)
{
	if (verdict->kind == VERDICT_OK || !verdict->sentence[0])
		fail("a refusal without a sentence");
	for (size_t i = 0; i < verdict->n_refusals; i++) {
		if (!verdict->refusals[i].gpu[0] || !verdict->refusals[i].hint[0])
			fail("a refusal without a name or a hint");
		model->refused[verdict->refusals[i].reason]++;
	}
	if (verdict->kind == VERDICT_NO_CAPACITY && verdict->n_refusals == 0)
		fail("nobody refused");
}

static void reserve_one(struct model *model)
{
	struct caller caller = caller_of(below(model, 4));
	struct verdict verdict = {0};
	struct request request;
	struct lease *lease = NULL;

	random_request(model, &request);
	if (arbiter_find_token(model->arbiter, caller.uid, request.token))
		return;
	if (arbiter_plan(model->arbiter, &caller, &request, &lease, &verdict) < 0) {
		check_refusal(model, &verdict);
	} else {
		if (lease->id <= model->last_id)
			fail("an id was used again");
		model->last_id = lease->id;
		check_grant(model, &request, lease);
		model->granted[lease->class]++;
		model->gangs += lease->n_partitions > 1;
		lease = arbiter_commit(model->arbiter, lease);
		arbiter_add_holder(model->arbiter, lease->id);
		if (chance(model, 30))
			arbiter_bind(model->arbiter, lease->id, (pid_t)(100 + below(model, 50)));
	}
	verdict_done(&verdict);
}

/* ---- the other operations ------------------------------------------------------------ */

static struct lease *random_lease(struct model *model)
{
	size_t n = model->arbiter->n_leases;

	return n ? model->arbiter->leases[below(model, (unsigned)n)] : NULL;
}

static void resize_one(struct model *model)
{
	struct lease *lease = random_lease(model), *next = NULL;
	struct verdict verdict = {0};
	struct request request;
	struct caller caller;

	if (!lease)
		return;
	caller = caller_of(chance(model, 90) ? lease->owner : 77);
	random_request(model, &request);
	if (chance(model, 90)) {
		request.n_wants = lease->n_partitions;
		for (size_t i = 0; i < request.n_wants; i++)
			strcpy(request.wants[i].gpu, "any");
	}
	for (size_t i = 0; i < request.n_wants; i++)
		if (!request.wants[i].cus)
			random_want(model, &request.wants[i]);
	if (arbiter_plan_resize(model->arbiter, &caller, lease->id, &request, &next, &verdict) < 0)
		check_refusal(model, &verdict);
	else if (arbiter_commit(model->arbiter, next))
		model->resized++;
	verdict_done(&verdict);
}

static void end_one(struct model *model)
{
	struct lease *lease = random_lease(model);

	if (!lease)
		return;
	if (chance(model, 50))
		arbiter_holder_gone(model->arbiter, lease->id);
	else if (lease->n_bound > 0)
		arbiter_bound_gone(model->arbiter, lease->id, lease->bound[0]);
	else
		arbiter_end(model->arbiter, lease->id, "model");
}

static void look(struct model *model)
{
	struct observed rows[6];
	unsigned n = below(model, 7);

	memset(rows, 0, sizeof(rows));
	for (unsigned i = 0; i < n; i++) {
		rows[i].pid = (pid_t)(100 + 10 * i + below(model, 10));
		rows[i].start_time = 1;
		rows[i].uid = below(model, 4);
		rows[i].kfd_gpu_id = 1 + below(model, 5);
		rows[i].queues = below(model, 4);
		rows[i].sdma_queues = below(model, 2);
		rows[i].vram = (uint64_t)below(model, 100) << 20;
	}
	if (arbiter_observe(model->arbiter, rows, n) < 0)
		fail("arbiter_observe");
}

static void step(struct model *model)
{
	unsigned what = below(model, 100);
	struct lease *lease = random_lease(model);
	char gpu[12];

	if (what < 40 && model->arbiter->n_leases < LEASES)
		reserve_one(model);
	else if (what < 55)
		resize_one(model);
	else if (what < 75)
		end_one(model);
	else if (what < 85 && lease)
		arbiter_acknowledge(model->arbiter, lease->id,
				    lease->generation - (lease->generation > 1 && chance(model, 20)));
	else if (what < 97)
		look(model);
	else {
		snprintf(gpu, sizeof(gpu), "%u", below(model, 5));
		arbiter_drain(model->arbiter, gpu, chance(model, 30));
	}
	drain_touched(model);
}

/* When everything is released every GPU is as it was. */
static void end_all(struct model *model)
{
	while (model->arbiter->n_leases > 0) {
		arbiter_end(model->arbiter, model->arbiter->leases[0]->id, "end");
		if (arbiter_observe(model->arbiter, NULL, 0) < 0)
			fail("arbiter_observe");
		drain_touched(model);
	}
	for (size_t i = 0; i < model->arbiter->n_gpus; i++) {
		const struct gpu *gpu = &model->arbiter->gpus[i];

		if (!cuset_empty(&gpu->taken) || !cuset_empty(&gpu->shared) ||
		    gpu_cus_free(gpu) != gpu->cus || gpu->charged.queues || gpu->charged.vram ||
		    gpu->n_partitions)
			fail("something was not given back");
	}
	check_promises(model);
}

static void run(struct model *model, size_t n_gpus, unsigned operations, unsigned seed)
{
	static const char *const names[] = { "0000:03:00.0", "0000:04:00.0", "0000:05:00.0/0",
					     "0000:05:00.0/1" };
	struct tenant *vr;

	model->seed = seed;
	model->last_id = 0;
	for (size_t i = 0; i < n_gpus; i++) {
		strcpy(model->infos[i].name, names[i]);
		model->infos[i].kfd_gpu_id = (uint32_t)i + 1;
	}
	model->arbiter = arbiter_of(model->infos, n_gpus);
	add_tenant(model->arbiter, "lab", 1, CLASS_GUARANTEED)->max_cus =
		(struct limit){ LIMIT_PERCENT, 80 };
	vr = add_tenant(model->arbiter, "vr", 2, CLASS_REALTIME);
	vr->priority = PRIORITY_HIGH;
	vr->alone = chance(model, 30);
	vr->max_queues = (struct limit){ LIMIT_COUNT, 12 };
	model->arbiter->settings->oversubscribe_besteffort = chance(model, 20);
	for (unsigned i = 0; i < operations; i++) {
		step(model);
		check_promises(model);
	}
	end_all(model);
	arbiter_free(model->arbiter);
}

/* A run that never got there has shown nothing. */
static void check_reached(const struct model *model)
{
	printf("granted: %u besteffort, %u guaranteed, %u realtime, %u gangs; %u resized\nrefused:",
	       model->granted[0], model->granted[1], model->granted[2], model->gangs,
	       model->resized);
	for (size_t i = 0; i < REASONS; i++)
		printf(" %s %u", reason_name((enum reason)i), model->refused[i]);
	printf("\n");
	for (size_t i = 0; i < 3; i++)
		CHECK(model->granted[i] > 0);
	CHECK(model->gangs > 0 && model->resized > 0);
	for (size_t i = 0; i < REASONS; i++)
		CHECK(model->refused[i] > 0);
}

static unsigned number(const char *name, unsigned otherwise)
{
	return getenv(name) ? (unsigned)strtoul(getenv(name), NULL, 10) : otherwise;
}

static size_t load_all(struct gpu_info *infos, char names[][64], size_t max)
{
	const char *root = getenv("GPUARB_SOURCE_ROOT");
	struct notes notes = {0};
	struct dirent *entry;
	char dir[4096];
	size_t n = 0;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/conf/gpus", root ? root : ".");
	d = opendir(dir);
	CHECK(d);
	while ((entry = readdir(d)) && n < max) {
		struct profile profile;
		char *dot = strstr(entry->d_name, ".conf");

		if (!dot)
			continue;
		*dot = '\0';
		CHECK(profile_load(dir, entry->d_name, &profile, &notes) == 0);
		snprintf(names[n], 64, "%.63s", entry->d_name);
		infos[n++] = profile.info;
	}
	closedir(d);
	notes_done(&notes);
	return n;
}

TEST(the_promises_hold_after_every_operation_on_every_profile)
{
	unsigned seed = number("MODEL_SEED", (unsigned)time(NULL));
	struct gpu_info infos[32];
	char names[32][64];
	size_t n = load_all(infos, names, 32);
	unsigned operations = number("MODEL_OPERATIONS", 1000000U / ((unsigned)n + 1) + 1);
	struct model model = {0};

	printf("MODEL_SEED=%u, %u operations for each of %zu profiles and a mix\n", seed,
	       operations, n);
	CHECK(n >= 13);
	for (size_t i = 0; i < n; i++) {
		printf("%s\n", names[i]);
		fflush(stdout);
		for (size_t j = 0; j < 2; j++)
			model.infos[j] = infos[i];
		run(&model, 1 + i % 2, operations, seed + (unsigned)i);
	}
	printf("a mix\n");
	fflush(stdout);
	for (size_t i = 0; i < 4; i++)
		model.infos[i] = infos[(seed + i) % n];
	run(&model, 4, operations, seed);
	check_reached(&model);
}
