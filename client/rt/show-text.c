/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/output/print.h"
#include "client/rt/lines.h"
#include "client/rt/show.h"
#include "client/output/table.h"

static void print_head(const struct rt_gpu *gpu, const struct rt_plan *plan)
{
	size_t tasks = plan->set->n_tasks, meet = 0;
	char on[160];

	snprintf(on, sizeof(on), "%s (%s, %s, %u CUs)", gpu->info.name, gpu->info.device,
		 gpu->target, geometry_cus(&gpu->info.geometry));
	for (size_t i = 0; i < tasks; i++)
		meet += plan->tasks[i].meets;
	if (plan->reason[0])
		print_line(stdout, "%s on %s: %s", rt_result_name(plan->result), on, plan->reason);
	else
		print_line(stdout, "%s: %zu of %zu task%s deadline on %s",
			   rt_result_name(plan->result), meet, tasks,
			   tasks == 1 ? " keeps its" : "s keep their", on);
}

/* Times are microseconds; what has no bound is "none". */
static void add_time(struct table *table, uint64_t usec)
{
	if (usec == BOUND_NONE)
		table_add(table, "none");
	else
		table_add(table, "%" PRIu64, usec);
}

static void add_engines(struct table *table, const struct rt_place *place)
{
	uint32_t engines[CUSET_ENGINES];
	char ranges[64];
	size_t n = 0;

	for (unsigned e = 0; e < CUSET_ENGINES; e++)
		if (place->engines >> e & 1)
			engines[n++] = e;
	print_ranges(engines, n, ranges, sizeof(ranges));
	if (place->effective == place->cus && n > 0)
		table_add(table, "SE %s x%zu", ranges, place->cus / n);
	else
		table_add(table, "SE %s uneven", ranges);
}

static void print_partitions(const struct command *command, const struct rt_plan *plan)
{
	static const char *const heads[] = {
		"PARTITION", "CUS",        "AT LEAST",   "WHERE",    "WORK", "MARGIN",
		"HOST",      "STANDSTILL", "ACTIVATION", "RESPONSE", NULL,
	};
	_cleanup_(table_done) struct table table = { .heads = heads };

	for (size_t i = 0; i < plan->set->n_partitions; i++) {
		const struct rt_partition_plan *p = &plan->partitions[i];

		table_add(&table, "%s", plan->set->partitions[i].name);
		table_add(&table, "%u", p->effective);
		if (p->least > 0)
			table_add(&table, "%u", p->least);
		else
			table_add(&table, "none");
		if (p->placed)
			add_engines(&table, &plan->layout.places[i]);
		else
			table_add(&table, "not placed");
		add_time(&table, p->work);
		add_time(&table,
			 p->work == RT_UNSET ? BOUND_NONE : bound_margin(&p->bound, p->work));
		add_time(&table, p->bound.host);
		add_time(&table, p->response == BOUND_NONE
					 ? BOUND_NONE
					 : bound_standstill(&p->bound, p->response));
		if (p->activation == RT_UNSET)
			table_add(&table, "-");
		else
			table_add(&table, p->bound.latency > 0 ? "%" PRIu64 : "(%" PRIu64 ")",
				  p->activation);
		add_time(&table, p->response);
	}
	table_print(&table, command, stdout);
}

static void add_task(struct table *table, const struct rt_plan *plan, size_t i)
{
	const struct rt_task *task = &plan->set->tasks[i];
	const struct rt_task_plan *t = &plan->tasks[i];

	table_add(table, "%s", task->name);
	table_add(table, "%s", plan->set->partitions[task->partition].name);
	add_time(table, t->wcet);
	table_add(table, "%s", rt_source_name(t->source));
	add_time(table, task->jitter);
	add_time(table, t->bound);
	add_time(table, task->deadline);
	if (t->bound == BOUND_NONE)
		table_add(table, "-");
	else
		table_add(table, "%" PRId64, t->slack);
	if (plan->partitions[task->partition].passes)
		table_add(table, "%" PRIu64 " (%" PRIu64 "%%)", t->growth,
			  t->growth * 100 / t->wcet);
	else
		table_add(table, "-");
}

static void print_tasks(const struct command *command, const struct rt_plan *plan)
{
	static const char *const heads[] = {
		"TASK",  "PARTITION", "WCET",  "HOW",         "JITTER",
		"BOUND", "DEADLINE",  "SLACK", "MAY GROW BY", NULL,
	};
	_cleanup_(table_done) struct table table = { .heads = heads };

	for (size_t i = 0; i < plan->set->n_tasks; i++)
		add_task(&table, plan, i);
	table_print(&table, command, stdout);
	for (size_t i = 0; i < plan->set->n_tasks; i++)
		if (!plan->tasks[i].meets)
			print_line(stdout, "%s: %s", plan->set->tasks[i].name,
				   plan->tasks[i].reason);
}

static void print_list(const char *head, char *const *list, size_t n)
{
	if (n > 0)
		printf("\n%s\n", head);
	for (size_t i = 0; i < n; i++)
		print_line(stdout, "- %s", list[i]);
}

/* Text of several lines: each is escaped by itself. */
static void print_lines(const char *head, char *text)
{
	char *line, *rest = text;

	if (!text)
		return;
	printf("\n%s\n", head);
	if (text[0] && text[strlen(text) - 1] == '\n')
		text[strlen(text) - 1] = '\0';
	while ((line = strsep(&rest, "\n")) != NULL)
		print_line(stdout, "%s", line);
}

static void print_way(const struct rt_gpu *gpu, const struct rt_plan *plan)
{
	_cleanup_(freep) char *daemon = rt_daemon_lines(plan), *tenants = rt_tenant_lines(plan);

	print_lines("gpuarbd.conf:", daemon);
	print_lines("tenants.d/50-realtime.conf:", tenants);
	printf("\n%s\n",
	       plan->layout.any_order ? "To start them:" : "To start them, in this order:");
	for (size_t n = 0; n < plan->layout.n; n++) {
		_cleanup_(freep) char *line = rt_run_line(plan, gpu, plan->layout.order[n]);

		print_line(stdout, "%s", line ? line : "");
	}
}

void rt_show_text(const struct command *command, const struct rt_gpu *gpu,
		  const struct rt_plan *plan)
{
	print_head(gpu, plan);
	if (!command->no_legend)
		printf("\nTimes are microseconds; what is not placed is judged on the most CUs that one "
		       "lease can have.\n");
	print_partitions(command, plan);
	putchar('\n');
	print_tasks(command, plan);
	if (command->no_legend)
		return;
	print_list("It rests on this:", plan->assumptions, plan->n_assumptions);
	if (plan->result != RT_REJECTED) {
		print_list("Conditional, because:", plan->conditions, plan->n_conditions);
		print_way(gpu, plan);
	}
}
