/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which GPU programs get on a machine with four of them, beside a person who pins each program by hand to the
 * GPU with the fewest programs for each of its CUs. Programs come and go; most take any number of CUs, some a
 * fixed number. Both play the same programs.
 *
 *	bench-machine SOURCE-ROOT [SEEDS]
 *
 * worst: CUs of the worst-off program, of its weighted max-min share of the whole machine; sum: effective CUs
 * of all such programs, of the sum of these shares. Means over time, while there are two such programs.
 */

#include <string.h>

#include "bench/bench.h"
#include "lend-rig.h"
#include "sys/config/profile.h"

#define GPUS 4U
#define STEPS 240U
#define SEEDS 8U
#define PROGRAMS 512U
#define STEP_USEC (20 * SECOND_USEC) /* longer than grow-delay and activate-min-interval */
#define MOST 10000U
#define USER 7

static const struct {
	const char *name, *profiles[GPUS];
} machines[] = {
	{ "equal", { "radeon-vii", "radeon-vii", "radeon-vii", "radeon-vii" } },
	{ "different", { "mi300x-spx", "v620", "radeon-vii", "strix-halo" } },
};
static const double loads[] = { 0.25, 0.5, 0.8 }; /* arrivals in a step */

struct program {
	uint64_t id;
	unsigned until, most; /* most: 0: it is not adaptable */
};

struct play {
	struct lending l;
	struct program programs[PROGRAMS];
	size_t n;
	unsigned seed;
	bool by_hand;
	double worst, sum;
	unsigned measured, refused, arrivals;
	uint64_t changes;
};

static unsigned below(struct play *play, unsigned n)
{
	return (unsigned)rand_r(&play->seed) % n;
}

/* ---- programs ----------------------------------------------------------------------------- */

static void follow_all(struct play *play)
{
	const struct arbiter *arbiter = play->l.s.arbiter;

	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (arbiter->leases[i]->acknowledged < arbiter->leases[i]->generation) {
			play->changes++;
			follow(&play->l, arbiter->leases[i]);
		}
}

static void choose_by_hand(const struct arbiter *arbiter, struct want *want)
{
	unsigned n[GPUS] = { 0 };
	size_t best = 0;

	for (size_t i = 0; i < arbiter->n_leases; i++)
		n[arbiter->leases[i]->partitions[0].gpu]++;
	for (size_t g = 1; g < GPUS; g++)
		if (n[g] * arbiter->gpus[best].cus < n[best] * arbiter->gpus[g].cus ||
		    (n[g] == 0 && n[best] == 0 && arbiter->gpus[g].cus > arbiter->gpus[best].cus))
			best = g;
	snprintf(want->gpu, sizeof(want->gpu), "%s", arbiter->gpus[best].info.name);
}

/* Draws the same numbers whatever the machine does. */
static void arrive(struct play *play, unsigned step)
{
	static const unsigned lives[] = { 3, 10, 40 };
	bool adaptable = below(play, 5) > 0, few = below(play, 4) == 0;
	unsigned until = step + lives[below(play, ARRAY_SIZE(lives))];
	struct request request = request_for(adaptable ? 1 : 15);
	struct lease *lease;

	request.adaptable = adaptable;
	request.wants[0].cus_min = adaptable ? 1 : 0;
	request.wants[0].cus_max = !adaptable ? 0 : few ? 8 : MOST;
	request.wants[0].queues = 1;
	if (play->by_hand)
		choose_by_hand(play->l.s.arbiter, &request.wants[0]);
	play->arrivals++;
	lease = reserve(play->l.s.arbiter, USER, &request, &play->l.s.result);
	settle(&play->l);
	play->refused += !lease;
	if (lease && play->n < PROGRAMS)
		play->programs[play->n++] = (struct program){ lease->id, until,
							      request.wants[0].cus_max };
}

static void leave(struct play *play, unsigned step)
{
	for (size_t i = play->n; i-- > 0;)
		if (play->programs[i].until <= step) {
			release(play->l.s.arbiter, play->programs[i].id);
			play->programs[i] = play->programs[--play->n];
		}
	settle(&play->l);
}

/* ---- what is measured --------------------------------------------------------------------- */

static double fair_share(const struct program *program, double level)
{
	return program->most < level ? program->most : level;
}

/* CUs for each program that takes any number, if the machine were one GPU. */
static double find_level(const struct play *play, double cus)
{
	double low = 0, high = cus;

	for (unsigned i = 0; i < 50; i++) {
		double middle = (low + high) / 2, sum = 0;

		for (size_t j = 0; j < play->n; j++)
			sum += fair_share(&play->programs[j], middle);
		*(sum <= cus ? &low : &high) = middle;
	}
	return low;
}

static void measure(struct play *play)
{
	const struct arbiter *arbiter = play->l.s.arbiter;
	double cus = 0, largest = 0, worst = 1, sum = 0, fair = 0, level;
	unsigned n = 0;

	for (size_t g = 0; g < GPUS; g++) {
		cus += arbiter->gpus[g].cus;
		largest = max_u((unsigned)largest, arbiter->gpus[g].cus);
	}
	for (size_t i = 0; i < play->n; i++)
		if (play->programs[i].most == 0)
			cus -= cus_of(ledger_find(arbiter, play->programs[i].id));
	level = find_level(play, cus);
	level = level < largest ? level : largest; /* a program is on one GPU */
	for (size_t i = 0; i < play->n; i++) {
		const struct lease *lease = ledger_find(arbiter, play->programs[i].id);
		double share = fair_share(&play->programs[i], level);

		if (play->programs[i].most == 0)
			continue;
		n++;
		fair += share;
		sum += lease->partitions[0].effective;
		worst = lease->partitions[0].effective < worst * share
				? lease->partitions[0].effective / share
				: worst;
	}
	if (n < 2)
		return;
	play->worst += worst;
	play->sum += sum / fair;
	play->measured++;
}

static void run(struct play *play, const struct gpu_info *gpus, double load, unsigned seed)
{
	play->l = (struct lending){ .s.arbiter = arbiter_of(gpus, GPUS), .now = 100 * SECOND_USEC };
	play->n = 0;
	play->seed = seed;
	for (unsigned step = 0; step < STEPS; step++) {
		leave(play, step);
		if (below(play, 100) < load * 100)
			arrive(play, step);
		for (unsigned i = 0; i < 3; i++) {
			follow_all(play);
			pass(&play->l, STEP_USEC);
		}
		measure(play);
	}
	lending_done(&play->l);
}

/* ---- what is printed ---------------------------------------------------------------------- */

static bool load_machine(const char *dir, size_t machine, struct gpu_info *ret)
{
	struct diagnostics diagnostics = { 0 };
	bool loaded = true;

	for (unsigned g = 0; g < GPUS && loaded; g++) {
		const char *name = machines[machine].profiles[g];
		struct profile profile;

		loaded = profile_load(dir, name, &profile, &diagnostics) >= 0;
		if (!loaded)
			fprintf(stderr, "%s/%s.conf cannot be loaded\n", dir, name);
		ret[g] = profile.info;
		ret[g].queue_slots = ret[g].process_slots = PROGRAMS; /* not the subject */
		gpu_info_name_simulated(&ret[g], g, 0, 1);
	}
	diagnostics_done(&diagnostics);
	return loaded;
}

static void print_row(const char *machine, double load, struct play plays[static 2], char *json,
		      size_t size)
{
	size_t n = strlen(json);

	for (unsigned hand = 0; hand < 2; hand++) {
		const struct play *p = &plays[hand];

		printf("%-9s  %.2f  %-9s %6.3f %6.3f  %8.2f  %7u of %u\n", machine, load,
		       hand ? "by hand" : "gpuarb", p->worst / p->measured, p->sum / p->measured,
		       (double)p->changes / p->arrivals, p->refused, p->arrivals);
		n += (size_t)snprintf(
			json + n, size - n,
			"%s{\"machine\":\"%s\",\"load\":%.2f,\"by_hand\":%s,\"worst\":%.4f,"
			"\"sum\":%.4f,\"changes_of_arrival\":%.3f,\"refused\":%u,\"arrivals\":%u}",
			n > 0 ? "," : "", machine, load, hand ? "true" : "false",
			p->worst / p->measured, p->sum / p->measured,
			(double)p->changes / p->arrivals, p->refused, p->arrivals);
	}
	fflush(stdout);
}

int main(int argc, char *argv[])
{
	unsigned seeds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : SEEDS;
	char dir[4096], json[16384] = "";

	snprintf(dir, sizeof(dir), "%s/conf/gpus", argc > 1 ? argv[1] : ".");
	printf("4 GPUs, %u steps, %u seeds; load: arrivals in a step\n"
	       "%-9s  %-4s  %-9s %6s %6s  %8s  %s\n",
	       STEPS, seeds, "machine", "load", "by", "worst", "sum", "changes", "refused");
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		struct gpu_info gpus[GPUS];

		if (!load_machine(dir, m, gpus))
			return 1;
		for (size_t i = 0; i < ARRAY_SIZE(loads); i++) {
			static struct play plays[2];

			memset(plays, 0, sizeof(plays));
			for (unsigned seed = 1; seed <= seeds; seed++)
				for (unsigned hand = 0; hand < 2; hand++) {
					plays[hand].by_hand = hand;
					run(&plays[hand], gpus, loads[i], seed);
				}
			print_row(machines[m].name, loads[i], plays, json, sizeof(json));
		}
	}
	printf("worst, sum: of the weighted max-min share of the machine; changes: of masks, for each "
	       "arrival\n\n{\"steps\":%u,\"seeds\":%u,\"rows\":[%s]}\n",
	       STEPS, seeds, json);
	return 0;
}
