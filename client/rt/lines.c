/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/policy/class.h"

static char *close_text(FILE *out, char **text)
{
	if (out && fclose(out) == 0)
		return TAKE_PTR(*text);
	return NULL;
}

static void tenant(FILE *out, const struct rt_partition *partition, const struct rt_place *place)
{
	fprintf(out, "[tenant %s]\n", partition->name);
	if (partition->user)
		fprintf(out, "match-user = %s\n", partition->user);
	else
		fprintf(out, "match-user = %u\n", getuid());
	fprintf(out, "class = realtime\nmax-leases = 1\nmax-gpus = 1\n");
	fprintf(out, "max-cus = %u\n", max_u(place->ask.cus, place->cus));
	fprintf(out, "max-queues = %u\n", rt_partition_queues(partition));
	fprintf(out, "max-processes = %u\n", partition->processes);
	if (partition->priority > PRIORITY_NORMAL)
		fprintf(out, "priority = %u\n", partition->priority);
	if (partition->alone)
		fprintf(out, "alone = yes\n");
}

/* Has a lease of it to be activated by what the daemon does to those who do not answer? */
static bool needs_kill(const struct rt_set *set)
{
	for (size_t i = 0; i < set->n_partitions; i++)
		if (set->partitions[i].start_inactive && set->partitions[i].activation == RT_UNSET)
			return true;
	return false;
}

char *rt_tenant_lines(const struct rt_plan *plan)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t n = 0; out && n < plan->layout.n; n++) {
		size_t i = plan->layout.order[n];

		if (n > 0)
			fputc('\n', out);
		tenant(out, &plan->set->partitions[i], &plan->layout.places[i]);
	}
	if (out && needs_kill(plan->set))
		fputs("\n# Every tenant whose leases borrow (adaptable) needs: enforce = kill\n",
		      out);
	return close_text(out, &text);
}

char *rt_run_line(const struct rt_plan *plan, const struct rt_gpu *gpu, size_t i)
{
	const struct rt_partition *partition = &plan->set->partitions[i];
	const struct rt_ask *ask = &plan->layout.places[i].ask;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "gpuarbctl run --class=realtime --tenant=%s --name=%s", partition->name,
		partition->name);
	if (gpu->here)
		fprintf(out, " --gpu=%s", gpu->info.name);
	fprintf(out, " --cus=%u --cus-min=%u", ask->cus, ask->least);
	if (ask->engines > 0)
		fprintf(out, " --shader-engines=%u", ask->engines);
	else
		fprintf(out, " --isolation=cu");
	fprintf(out, " --queues=%u", rt_partition_queues(partition));
	if (partition->processes > 1)
		fprintf(out, " --processes=%u", partition->processes);
	if (partition->priority != PRIORITY_NORMAL)
		fprintf(out, " --priority=%u", partition->priority);
	if (partition->start_inactive)
		fprintf(out, " --start-inactive");
	fprintf(out, " -- %s", partition->command ? partition->command : "COMMAND");
	return close_text(out, &text);
}

/* A whole number of the largest unit that gpuarbd.conf(5) knows. */
static void interval(FILE *out, const char *key, uint64_t usec)
{
	if (usec % 1000000 == 0)
		fprintf(out, "%s = %llus\n", key, (unsigned long long)usec / 1000000);
	else
		fprintf(out, "%s = %llums\n", key, (unsigned long long)usec / 1000);
}

char *rt_daemon_lines(const struct rt_plan *plan)
{
	const struct rt_daemon *daemon = &plan->set->daemon, *now = &plan->set->in_force;
	bool paced, graced;
	char *text = NULL;
	size_t size;
	FILE *out;

	paced = plan->preempts && plan->set->borrowers &&
		daemon->activate_min_interval != now->activate_min_interval;
	graced = needs_kill(plan->set) && (daemon->activate_grace != now->activate_grace ||
					   daemon->enforce_delay != now->enforce_delay);
	if (!paced && !graced)
		return NULL;

	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	fputs("[daemon]\n", out);
	if (paced)
		interval(out, "activate-min-interval", daemon->activate_min_interval);
	if (graced) {
		interval(out, "activate-grace", daemon->activate_grace);
		interval(out, "enforce-delay", daemon->enforce_delay);
	}
	return close_text(out, &text);
}
