/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/task-plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/output/json.h"
#include "client/output/print.h"
#include "client/output/table.h"
#include "core/policy/class.h"
#include "util/text-stream.h"

static const char *const result_names[] = {
	[RT_ACCEPTED] = "accepted",
	[RT_CONDITIONAL] = "conditional",
	[RT_REJECTED] = "rejected",
};

static const char *const source_names[] = {
	[RT_MEASURED] = "measured",
	[RT_MODELLED] = "modelled",
	[RT_KEPT] = "kept",
	[RT_UNKNOWN] = "unknown",
};

/* "": none. */
static const char *const offsets_names[] = {
	[RT_NO_OFFSETS] = "",
	[RT_OFFSETS_USED] = "used",
	[RT_OFFSETS_UNUSED] = "unused",
};

/* ---- lines of policy and of a shell --------------------------------------------------------- */

/* Whether a tenant before the n-th has the same user, who can only name the n-th. */
static bool is_named(const struct rt_plan *plan, size_t n)
{
	const char *user = plan->set->partitions[plan->layout.order[n]].user;

	while (n-- > 0) {
		const char *other = plan->set->partitions[plan->layout.order[n]].user;

		if (user == other || (user && other && strcmp(user, other) == 0))
			return true;
	}
	return false;
}

static void tenant(FILE *out, const struct rt_partition *partition, const struct rt_place *place,
		   bool named)
{
	fprintf(out, "[tenant %s]\n", partition->name);
	if (partition->user)
		fprintf(out, "match-user = %s\n", partition->user);
	else
		fprintf(out, "match-user = %u\n", getuid());
	fprintf(out, "%sclass = realtime\nmax-leases = 1\nmax-gpus = 1\n",
		named ? "open = yes\n" : "");
	fprintf(out, "max-cus = %u\n", max_u(place->ask.cus, place->cus));
	fprintf(out, "max-queues = %u\n", rt_partition_queues(partition));
	fprintf(out, "max-processes = %u\n", partition->processes);
	if (partition->priority > PRIORITY_NORMAL)
		fprintf(out, "priority = %u\n", partition->priority);
	if (partition->alone)
		fprintf(out, "alone = yes\n");
}

/* Whether an activation relies on the daemon's enforcement against borrowers. */
static bool needs_kill(const struct rt_set *set)
{
	for (size_t i = 0; i < set->n_partitions; i++)
		if (set->partitions[i].start_inactive && set->partitions[i].activation == RT_UNSET)
			return true;
	return false;
}

/* A file for tenants.d. Owned; NULL: out of memory. */
static char *tenant_lines(const struct rt_plan *plan)
{
	struct text_stream stream;
	FILE *out = text_stream_open(&stream);

	for (size_t n = 0; out && n < plan->layout.n; n++) {
		size_t i = plan->layout.order[n];

		if (n > 0)
			fputc('\n', out);
		tenant(out, &plan->set->partitions[i], &plan->layout.places[i], is_named(plan, n));
	}
	if (out && needs_kill(plan->set))
		fputs("\n# Every tenant whose leases borrow (adaptable) needs: enforce = kill\n",
		      out);
	return text_stream_close(&stream);
}

/* The command that starts a partition that is placed. Owned; NULL: out of memory. */
static char *run_line(const struct rt_plan *plan, size_t i)
{
	const struct rt_gpu *gpu = &rt_plan_gpu(plan, i)->gpu;
	const struct rt_partition *partition = &plan->set->partitions[i];
	const struct rt_ask *ask = &plan->layout.places[i].ask;
	struct text_stream stream;
	FILE *out = text_stream_open(&stream);

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
	if (rt_set_sdma_queues(plan->set, i) > 0)
		fprintf(out, " --sdma-queues=%u", rt_set_sdma_queues(plan->set, i));
	if (partition->processes > 1)
		fprintf(out, " --processes=%u", partition->processes);
	if (partition->priority != PRIORITY_NORMAL)
		fprintf(out, " --priority=%u", partition->priority);
	if (partition->start_inactive)
		fprintf(out, " --start-inactive");
	fprintf(out, " -- %s", partition->command ? partition->command : "COMMAND");
	return text_stream_close(&stream);
}

/* Writes a whole number with the largest unit. */
static void interval(FILE *out, const char *key, uint64_t usec)
{
	if (usec % 1000000 == 0)
		fprintf(out, "%s = %llus\n", key, (unsigned long long)usec / 1000000);
	else
		fprintf(out, "%s = %llums\n", key, (unsigned long long)usec / 1000);
}

/* Lines for gpuarbd.conf if its configuration differs from that of the plan; NULL: none, or out of
 * memory. */
static char *daemon_lines(const struct rt_plan *plan)
{
	const struct rt_daemon *daemon = &plan->set->daemon, *now = &plan->set->in_force;
	bool paced = false, graced;
	struct text_stream stream;
	FILE *out;

	for (size_t i = 0; i < plan->n_gpus; i++)
		paced |= plan->gpus[i].preempts && plan->gpus[i].n_partitions > 0;
	paced = paced && plan->set->borrowers &&
		daemon->activate_min_interval != now->activate_min_interval;
	graced = needs_kill(plan->set) && (daemon->activate_grace != now->activate_grace ||
					   daemon->enforce_delay != now->enforce_delay);
	if (!paced && !graced)
		return NULL;

	out = text_stream_open(&stream);
	if (!out)
		return NULL;
	fputs("[daemon]\n", out);
	if (paced)
		interval(out, "activate-min-interval", daemon->activate_min_interval);
	if (graced) {
		interval(out, "activate-grace", daemon->activate_grace);
		interval(out, "enforce-delay", daemon->enforce_delay);
	}
	return text_stream_close(&stream);
}

/* ---- text ----------------------------------------------------------------------------------- */

static void print_head(const struct rt_plan *plan)
{
	size_t tasks = plan->set->n_tasks, meet = 0;
	_cleanup_(freep) char *on = NULL;
	struct text_stream stream;
	FILE *out = text_stream_open(&stream);

	for (size_t i = 0; out && i < plan->n_gpus; i++) {
		const struct rt_gpu *gpu = &plan->gpus[i].gpu;

		fprintf(out, "%s%s (%s, %s, %u CUs)", i > 0 ? " and " : "",
			plan->n_gpus > 1 ? gpu->name : gpu->info.name, gpu->info.device,
			gpu->target, geometry_cus(&gpu->info.geometry));
	}
	on = text_stream_close(&stream);
	if (!on)
		return;
	for (size_t i = 0; i < tasks; i++)
		meet += plan->tasks[i].meets;
	if (plan->reason[0])
		print_line(stdout, "%s on %s: %s", result_names[plan->result], on, plan->reason);
	else
		print_line(stdout, "%s: %zu of %zu task%s deadline on %s",
			   result_names[plan->result], meet, tasks,
			   tasks == 1 ? " keeps its" : "s keep their", on);
}

/* Microseconds, or a number of CUs; "none" for BOUND_NONE. */
static void add_bound(struct table *table, uint64_t bound)
{
	if (bound == BOUND_NONE)
		table_add(table, "none");
	else
		table_add(table, "%" PRIu64, bound);
}

static size_t list_engines(const struct rt_place *place, uint32_t ret[static CUSET_ENGINES])
{
	size_t n = 0;

	for (unsigned e = 0; e < CUSET_ENGINES; e++)
		if (place->engines >> e & 1)
			ret[n++] = e;
	return n;
}

static void add_engines(struct table *table, const struct rt_plan *plan, size_t i)
{
	const struct rt_place *place = &plan->layout.places[i];
	const char *gpu = plan->n_gpus > 1 ? rt_plan_gpu(plan, i)->gpu.name : "";
	uint32_t engines[CUSET_ENGINES];
	size_t n = list_engines(place, engines);
	char ranges[64];

	print_ranges(engines, n, ranges, sizeof(ranges));
	if (place->effective == place->cus && n > 0)
		table_add(table, "%s%sSE %s x%zu", gpu, *gpu ? " " : "", ranges, place->cus / n);
	else
		table_add(table, "%s%sSE %s uneven", gpu, *gpu ? " " : "", ranges);
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

		TABLE_CELLS(&table, plan->set->partitions[i].name, p->effective);
		add_bound(&table, p->least > 0 ? p->least : BOUND_NONE);
		if (p->placed)
			add_engines(&table, plan, i);
		else
			table_add(&table, "not placed");
		add_bound(&table, p->work);
		add_bound(&table, p->margin);
		add_bound(&table, p->bound.host);
		add_bound(&table, p->standstill);
		if (p->activation == RT_UNSET)
			table_add(&table, "-");
		else
			table_add(&table, p->bound.latency > 0 ? "%" PRIu64 : "(%" PRIu64 ")",
				  p->activation);
		add_bound(&table, p->response);
	}
	table_print(&table, command, stdout);
}

static const char *const growth_limits[] = {
	[RT_GROWTH_DEADLINE] = "deadline",
	[RT_GROWTH_UTILISATION] = "utilisation",
	[RT_GROWTH_NO_BOUND] = "no-bound",
};

static bool has_growth(const struct rt_plan *plan, size_t i)
{
	return plan->partitions[plan->set->tasks[i].partition].passes &&
	       plan->tasks[i].growth != BOUND_NONE;
}

static void add_growth(struct table *table, const struct rt_plan *plan, size_t i)
{
	static const char *const then[] = {
		[RT_GROWTH_DEADLINE] = "",
		[RT_GROWTH_UTILISATION] = ", then utilisation above one",
		[RT_GROWTH_NO_BOUND] = ", then no bound",
	};
	const struct rt_task_plan *t = &plan->tasks[i];

	if (has_growth(plan, i))
		table_add(table, "%" PRIu64 " (%" PRIu64 "%%)%s", t->growth,
			  t->growth * 100 / t->wcet, then[t->growth_limit]);
	else
		table_add(table, "-");
}

static void add_task(struct table *table, const struct rt_plan *plan, size_t i)
{
	const struct rt_task *task = &plan->set->tasks[i];
	const struct rt_task_plan *t = &plan->tasks[i];

	TABLE_CELLS(table, task->name, plan->set->partitions[task->partition].name);
	add_bound(table, t->wcet);
	TABLE_CELLS(table, source_names[t->source]);
	add_bound(table, t->budget);
	add_bound(table, t->jitter);
	add_bound(table, t->bound);
	add_bound(table, task->deadline);
	if (t->bound == BOUND_NONE)
		table_add(table, "-");
	else
		table_add(table, "%" PRId64, t->slack);
	add_growth(table, plan, i);
}

static void print_tasks(const struct command *command, const struct rt_plan *plan)
{
	static const char *const heads[] = {
		"TASK",  "PARTITION", "WCET",  "HOW",         "BUDGET", "JITTER",
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

/* Prints text line by line, because print_line() escapes newlines. */
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

static void print_start(const struct rt_plan *plan)
{
	_cleanup_(freep) char *daemon = daemon_lines(plan), *tenants = tenant_lines(plan);

	print_lines("gpuarbd.conf:", daemon);
	print_lines("tenants.d/50-realtime.conf:", tenants);
	printf("\n%s\n",
	       plan->layout.any_order ? "To start them:" : "To start them, in this order:");
	for (size_t n = 0; n < plan->layout.n; n++) {
		_cleanup_(freep) char *line = run_line(plan, plan->layout.order[n]);

		print_line(stdout, "%s", line ? line : "");
	}
}

void rt_show_text(const struct command *command, const struct rt_plan *plan)
{
	print_head(plan);
	if (!command->no_legend)
		printf("\nTimes are microseconds. A partition that is not placed is judged on the "
		       "most CUs that one lease can have.\n");
	print_partitions(command, plan);
	putchar('\n');
	print_tasks(command, plan);
	if (command->no_legend)
		return;
	print_list("Assumptions:", plan->assumptions, plan->n_assumptions);
	if (plan->result != RT_REJECTED) {
		print_list("Conditions:", plan->conditions, plan->n_conditions);
		print_start(plan);
	}
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void time_or_null(struct json_object *map, const char *key, uint64_t usec)
{
	json_known(map, key, usec, BOUND_NONE); /* the value of RT_UNSET, too */
}

static void json_place(struct json_object *map, const struct rt_plan *plan, size_t i)
{
	_cleanup_(freep) char *run = NULL;
	uint32_t engines[CUSET_ENGINES];
	size_t n;

	if (!plan->partitions[i].placed || plan->result == RT_REJECTED) {
		json_null(map, "shader_engines");
		json_null(map, "run");
		return;
	}
	n = list_engines(&plan->layout.places[i], engines);
	json_numbers(map, "shader_engines", engines, n);
	run = run_line(plan, i);
	json_text(map, "run", run);
}

static void json_rt_partition(struct json_object *list, const struct rt_plan *plan, size_t i)
{
	const struct rt_partition *partition = &plan->set->partitions[i];
	const struct rt_partition_plan *p = &plan->partitions[i];
	struct json_object *map = json_map(list, NULL);

	JSON_FIELDS(map, ("name", partition->name), ("gpu", rt_plan_gpu(plan, i)->gpu.name));
	json_flag(map, "passes", p->passes);
	JSON_FIELDS(map, ("policy", rt_policy_names[partition->policy]),
		    ("offsets", offsets_names[p->offsets], ""),
		    ("isolation", isolation_names[partition->isolation]),
		    ("effective_cus", p->effective), ("least_cus", p->least, 0));
	time_or_null(map, "work_usec", p->work);
	time_or_null(map, "margin_usec", p->margin);
	json_number(map, "host_usec", p->bound.host);
	time_or_null(map, "mask_changes", p->changes);
	time_or_null(map, "standstill_usec", p->standstill);
	time_or_null(map, "activation_usec", p->activation);
	json_flag(map, "activation_counts", p->bound.latency > 0);
	time_or_null(map, "response_usec", p->response);
	json_known(map, "pipe_neighbours", partition->pipe_neighbours, RT_UNSET);
	json_place(map, plan, i);
}

static void json_task(struct json_object *list, const struct rt_plan *plan, size_t i)
{
	const struct rt_task *task = &plan->set->tasks[i];
	const struct rt_task_plan *t = &plan->tasks[i];
	struct json_object *map = json_map(list, NULL);

	JSON_FIELDS(map, ("name", task->name),
		    ("partition", plan->set->partitions[task->partition].name));
	json_flag(map, "meets", t->meets);
	JSON_FIELDS(map, ("period_usec", task->period), ("deadline_usec", task->deadline),
		    ("jitter_usec", t->jitter),
		    ("offset_usec", task->offset_line > 0 ? task->offset : RT_UNSET, RT_UNSET),
		    ("after", task->after_name, ""));
	time_or_null(map, "wcet_usec", t->wcet);
	time_or_null(map, "copies_usec", t->copies);
	json_text(map, "wcet_source", source_names[t->source]);
	time_or_null(map, "budget_usec", t->budget);
	time_or_null(map, "bound_usec", t->bound);
	if (t->bound == BOUND_NONE)
		json_null(map, "slack_usec");
	else
		json_signed(map, "slack_usec", t->slack);
	time_or_null(map, "growth_usec", has_growth(plan, i) ? t->growth : BOUND_NONE);
	JSON_FIELDS(map,
		    ("growth_limit", has_growth(plan, i) ? growth_limits[t->growth_limit] : "", ""),
		    ("reason", t->reason, ""));
}

static void json_start(struct json_object *map, const struct rt_plan *plan)
{
	bool way = plan->result != RT_REJECTED;
	_cleanup_(freep) char *tenants = way ? tenant_lines(plan) : NULL;
	_cleanup_(freep) char *daemon = way ? daemon_lines(plan) : NULL;
	struct json_object *order = json_list(map, "order");

	for (size_t n = 0; way && n < plan->layout.n; n++)
		json_text(order, NULL, plan->set->partitions[plan->layout.order[n]].name);
	json_flag(map, "any_order", way && plan->layout.any_order);
	JSON_FIELDS(map, ("tenants", tenants), ("daemon", daemon));
}

static void json_client_count(struct json_object *map, const char *key, const struct rt_gpu *gpu,
			      size_t n)
{
	json_known(map, key, gpu->here ? n : UINT64_MAX, UINT64_MAX);
}

static void json_rt_gpu(struct json_object *map, const struct rt_gpu_plan *plan)
{
	const struct gpu_info *info = &plan->gpu.info;

	JSON_FIELDS(map, ("gpu", info->name), ("device", info->device),
		    ("gfx_target", plan->gpu.target), ("law", law_names[info->law.basis]),
		    ("margin_percent", plan->margin.percent),
		    ("margin_source", plan->margin.row, ""), ("neighbours", plan->neighbours));
	json_client_count(map, "unmanaged_processes", &plan->gpu, plan->gpu.unmanaged);
	json_client_count(map, "uncapped_leases", &plan->gpu, plan->gpu.uncapped);
	json_client_count(map, "unverified_leases", &plan->gpu, plan->gpu.unverified);
}

void rt_show_json(const struct rt_plan *plan)
{
	struct json_object *map = json_map(NULL, NULL);
	struct json_object *list;

	JSON_FIELDS(map, ("verdict", result_names[plan->result]), ("reason", plan->reason, ""));
	json_rt_gpu(map, &plan->gpus[0]);
	list = json_list(map, "gpus");
	for (size_t i = 0; i < plan->n_gpus; i++) {
		struct json_object *gpu = json_map(list, NULL);

		json_text(gpu, "name", plan->gpus[i].gpu.name);
		json_rt_gpu(gpu, &plan->gpus[i]);
	}
	list = json_list(map, "partitions");
	for (size_t i = 0; i < plan->set->n_partitions; i++)
		json_rt_partition(list, plan, i);
	list = json_list(map, "tasks");
	for (size_t i = 0; i < plan->set->n_tasks; i++)
		json_task(list, plan, i);
	json_words(map, "assumptions", (const char *const *)plan->assumptions, plan->n_assumptions);
	json_words(map, "conditions", (const char *const *)plan->conditions, plan->n_conditions);
	json_start(map, plan);
	json_print(stdout, map);
}
