/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * adversary [SEED [PERCENT]]: no task of a set that `gpuarbctl rt plan` accepts may take longer than
 * its bound. With less than 100 percent it has to find one that takes longer than this share of it.
 * Prints the seed, and how far the bounds are above the longest simulated times.
 */

#include "adversary.h"

#include <errno.h>
#include <inttypes.h>
#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rounds.h"
#include "seed.h"

#define SETS 200U
#define SETS_LONG 100000U
#define BATCH 50U   /* sets that one gpuarbctl plans */
#define ATTACKS 12U /* for each partition of a set */
/* Where a period is long, so many of the shortest are simulated, before and after the jobs meet. */
#define JOBS_LONG 400

struct tally {
	int64_t percent; /* of the bounds that are claimed */
	unsigned sets, accepted, spread, chained, with_offsets, copying, rare, violated;
	struct {
		unsigned tasks, reached; /* within a percent */
		double ratio;
	} by[POLICIES];
};

static void must(bool so, const char *what)
{
	if (so)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

/* ---- plans --------------------------------------------------------------------------------- */

static int64_t number(struct json_object *map, const char *key)
{
	struct json_object *value = json_object_object_get(map, key);

	return value ? json_object_get_int64(value) : -1;
}

static bool is(struct json_object *map, const char *key, const char *value)
{
	const char *text = json_object_get_string(json_object_object_get(map, key));

	return text && strcmp(text, value) == 0;
}

static unsigned engines_of(struct json_object *map)
{
	struct json_object *list = json_object_object_get(map, "shader_engines");
	unsigned engines = 0;

	for (size_t i = 0; list && i < json_object_array_length(list); i++)
		engines |= 1U << json_object_get_int(json_object_array_get_idx(list, i));
	return engines;
}

static void take_plan(struct set *set, const char *line)
{
	struct json_object *plan = json_tokener_parse(line), *list;

	must(plan, line);
	snprintf(set->verdict, sizeof(set->verdict), "%s",
		 json_object_get_string(json_object_object_get(plan, "verdict")));
	list = json_object_object_get(plan, "gpus");
	for (size_t i = 0; i < GPUS_MAX; i++)
		set->margins[i] = number(json_object_array_get_idx(list, i), "margin_percent");
	list = json_object_object_get(plan, "partitions");
	for (size_t i = 0; i < set->n_partitions; i++) {
		struct json_object *map = json_object_array_get_idx(list, i);

		set->partitions[i].cus = (unsigned)number(map, "effective_cus");
		set->partitions[i].response = number(map, "response_usec");
		set->partitions[i].engines = engines_of(map);
		set->partitions[i].offsets = is(map, "offsets", "used");
	}
	list = json_object_object_get(plan, "tasks");
	for (size_t i = 0; i < set->n_tasks; i++) {
		struct json_object *map = json_object_array_get_idx(list, i);

		set->tasks[i].bound = number(map, "bound_usec");
		set->tasks[i].budget = number(map, "budget_usec");
	}
	json_object_put(plan);
}

/* Plans the files 0 to n - 1 in this directory. */
static void plan(struct set *sets, size_t n, const char *profile)
{
	char command[512], *line = NULL;
	size_t room = 0;
	FILE *in;

	snprintf(command, sizeof(command),
		 "\"$GPUARBCTL\" rt plan $(seq -f %%g.ini 0 %zu) --profile=g0=%s,g1=%s --json "
		 "--profiles=\"$GPUARB_SOURCE_ROOT/conf/gpus\"",
		 n - 1, profile, profile);
	in = popen(command, "re");
	must(in, command);
	for (size_t i = 0; i < n; i++) {
		must(getline(&line, &room, in) > 0, "gpuarbctl rt plan prints too few results");
		take_plan(&sets[i], line);
	}
	pclose(in);
	free(line);
}

/* ---- attacks ------------------------------------------------------------------------------- */

/* Whether partitions wait for each other. */
static bool depends(const struct set *set)
{
	return set->chains || set->copies;
}

/* The longest and the shortest period of a partition, and the time within which what is stated happens at most so
 * often; of all partitions if they wait for each other. */
static void find_times(const struct set *set, size_t partition, int64_t *period, int64_t *shortest,
		       int64_t *window)
{
	int64_t deadline = 0;

	*period = *window = 0;
	*shortest = INT64_MAX;
	for (size_t i = 0; i < set->n_tasks; i++) {
		const struct task *task = &set->tasks[i];
		const struct partition *p = &set->partitions[task->partition];

		if (task->partition != partition && !depends(set))
			continue;
		*period = task->period > *period ? task->period : *period;
		*shortest = task->period < *shortest ? task->period : *shortest;
		deadline = p->policy == POLICY_FIFO ? p->response : task->deadline;
		*window = deadline > *window ? deadline : *window;
	}
}

static void attack(struct set *set, size_t partition)
{
	static struct stills stills[GPUS_MAX];
	int64_t period, shortest, window, horizon;
	bool lagging = one_in(4), all = depends(set);

	find_times(set, partition, &period, &shortest, &window);
	horizon = (period < PERIOD_LONG ? 4 * (window + period) : JOBS_LONG * shortest) * TICKS;
	for (size_t i = 0; i < GPUS_MAX; i++)
		disturb_draw(set, lagging, window, -horizon, horizon, &stills[i]);
	serve(set, all ? 0 : partition, all ? set->n_partitions - 1 : partition, !lagging, stills,
	      horizon / 2);
}

/* Partitions with shader engines of their own share none, and no GPU has more CUs than it has. */
static void check_places(const struct set *set, int64_t cus)
{
	for (size_t i = 0; i < set->n_partitions; i++) {
		const struct partition *p = &set->partitions[i];
		int64_t sum = 0;

		must(p->engines != 0, "a partition has no shader engine");
		for (size_t j = 0; j < set->n_partitions; j++) {
			const struct partition *q = &set->partitions[j];

			if (p->gpu != q->gpu)
				continue;
			sum += q->cus;
			must(i == j || (p->shares && q->shares) || !(p->engines & q->engines),
			     "partitions share a shader engine");
		}
		must(sum <= cus, "partitions have more CUs than the GPU");
	}
}

/* The worst simulated time is within this part of what the plan has. */
static void compare(const char *file, size_t i, const char *what, int64_t worst, int64_t bound,
		    struct tally *tally)
{
	if (worst <= bound * tally->percent * TICKS / 100)
		return;
	tally->violated++;
	printf("%s: t%zu takes %.2f us, and its %s is %" PRId64 " us\n", file, i,
	       (double)worst / TICKS, what, bound);
	must(tally->violated > 1 || rename(file, "violated.ini") == 0, file);
}

static void judge(struct set *set, const char *file, struct tally *tally)
{
	for (size_t i = 0; i < set->n_tasks; i++) {
		const struct task *task = &set->tasks[i];
		enum policy policy = set->partitions[task->partition].policy;

		tally->chained += task->after >= 0;
		tally->copying += task->copy_in + task->copy_out > 0;
		tally->rare += task->period >= PERIOD_LONG;
		tally->with_offsets += set->partitions[task->partition].offsets;
		tally->by[policy].tasks++;
		tally->by[policy].ratio += (double)task->bound * TICKS / (double)task->worst;
		tally->by[policy].reached += task->bound * TICKS * 99 <= task->worst * 100;
		compare(file, i, "bound", task->worst, task->bound, tally);
		compare(file, i, "budget", task->longest, task->budget, tally);
	}
}

static void play(unsigned n, bool preempts, struct tally *tally)
{
	static struct set sets[BATCH];
	char file[32];

	for (unsigned i = 0; i < n; i++) {
		draw_set(preempts, &sets[i]);
		snprintf(file, sizeof(file), "%u.ini", i);
		must(draw_write(&sets[i], file), file);
	}
	plan(sets, n, preempts ? "radeon-vii" : "rx7900xtx");
	for (unsigned i = 0; i < n; i++) {
		tally->sets++;
		if (strcmp(sets[i].verdict, "rejected") == 0)
			continue;
		tally->accepted++;
		for (size_t p = 1; p < sets[i].n_partitions; p++)
			if (sets[i].partitions[p].gpu != sets[i].partitions[p - 1].gpu) {
				tally->spread++;
				break;
			}
		check_places(&sets[i], preempts ? 60 : 96);
		for (size_t p = 0; p < sets[i].n_partitions; p++)
			for (unsigned k = 0; k < ATTACKS; k++)
				attack(&sets[i], p);
		snprintf(file, sizeof(file), "%u.ini", i);
		judge(&sets[i], file, tally);
	}
}

static void print(const struct tally *tally)
{
	printf("%u sets, %u accepted, %u of them on two GPUs; %u tasks of chains, %u that copy, %u whose bounds rely on "
	       "offsets, %u with periods up to an hour\n"
	       "%u bounds violated\n",
	       tally->sets, tally->accepted, tally->spread, tally->chained, tally->copying,
	       tally->with_offsets, tally->rare, tally->violated);
	for (unsigned i = 0; i < POLICIES; i++)
		if (tally->by[i].tasks > 0)
			printf("%s: %u tasks, bound %.2f x the longest simulated, %u reached\n",
			       policy_names[i], tally->by[i].tasks,
			       tally->by[i].ratio / tally->by[i].tasks, tally->by[i].reached);
}

static void work_in(char *directory)
{
	must(mkdtemp(directory), directory);
	must(chdir(directory) == 0, directory);
}

int main(int argc, char *argv[])
{
	char directory[] = "/tmp/gpuarb-adversary-XXXXXX", command[64];
	unsigned sets = check_rounds(SETS, SETS_LONG);
	long seed = argc > 1 ? atol(argv[1]) : (long)SEED_OF_RUN("RT_SEED");
	struct tally tally = { .percent = argc > 2 ? atol(argv[2]) : 100 };

	printf("seed %ld, %u sets\n", seed, sets);
	fflush(stdout);
	seed_rand((unsigned)seed);
	work_in(directory);
	for (unsigned done = 0; done < sets && tally.violated == 0; done += BATCH)
		play(sets - done < BATCH ? sets - done : BATCH, done / BATCH % 4 != 3, &tally);
	print(&tally);
	if (tally.violated > 0 && tally.percent == 100) {
		printf("the first set is %s/violated.ini\n", directory);
		return EXIT_FAILURE;
	}
	snprintf(command, sizeof(command), "rm -r %s", directory);
	must(system(command) == 0, command);
	return (tally.violated == 0) == (tally.percent == 100) ? EXIT_SUCCESS : EXIT_FAILURE;
}
