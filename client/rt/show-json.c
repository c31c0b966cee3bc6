/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/json.h"
#include "client/rt/lines.h"
#include "client/rt/show.h"

static void time_or_null(struct json_object *map, const char *key, uint64_t usec)
{
	if (usec == BOUND_NONE) /* RT_UNSET, too */
		json_null(map, key);
	else
		json_number(map, key, usec);
}

static void text_or_null(struct json_object *map, const char *key, const char *text)
{
	json_text(map, key, text && text[0] ? text : NULL);
}

static void add_place(struct json_object *map, const struct rt_plan *plan, const struct rt_gpu *gpu,
		      size_t i)
{
	const struct rt_place *place = &plan->layout.places[i];
	_cleanup_(freep) char *run = NULL;
	struct json_object *list;

	if (!plan->partitions[i].placed || plan->result == RT_REJECTED) {
		json_null(map, "shader_engines");
		json_null(map, "run");
		return;
	}
	list = json_list(map, "shader_engines");
	for (unsigned e = 0; e < CUSET_ENGINES; e++)
		if (place->engines >> e & 1)
			json_number(list, NULL, e);
	run = rt_run_line(plan, gpu, i);
	json_text(map, "run", run);
}

static void add_partition(struct json_object *list, const struct rt_plan *plan,
			  const struct rt_gpu *gpu, size_t i)
{
	const struct rt_partition *partition = &plan->set->partitions[i];
	const struct rt_partition_plan *p = &plan->partitions[i];
	struct json_object *map = json_map(list, NULL);
	bool bounded = p->response != BOUND_NONE;

	json_text(map, "name", partition->name);
	json_flag(map, "passes", p->passes);
	json_text(map, "isolation", isolation_name(partition->isolation));
	json_number(map, "effective_cus", p->effective);
	if (p->least > 0)
		json_number(map, "least_cus", p->least);
	else
		json_null(map, "least_cus");
	time_or_null(map, "work_usec", p->work);
	time_or_null(map, "margin_usec",
		     p->work == RT_UNSET ? BOUND_NONE : bound_margin(&p->bound, p->work));
	json_number(map, "host_usec", p->bound.host);
	time_or_null(map, "mask_changes",
		     bounded ? bound_changes(&p->bound, p->response) : BOUND_NONE);
	time_or_null(map, "standstill_usec",
		     bounded ? bound_standstill(&p->bound, p->response) : BOUND_NONE);
	time_or_null(map, "activation_usec", p->activation);
	json_flag(map, "activation_counts", p->bound.latency > 0);
	time_or_null(map, "response_usec", p->response);
	add_place(map, plan, gpu, i);
}

static void add_task(struct json_object *list, const struct rt_plan *plan, size_t i)
{
	const struct rt_task *task = &plan->set->tasks[i];
	const struct rt_task_plan *t = &plan->tasks[i];
	struct json_object *map = json_map(list, NULL);

	json_text(map, "name", task->name);
	json_text(map, "partition", plan->set->partitions[task->partition].name);
	json_flag(map, "meets", t->meets);
	json_number(map, "period_usec", task->period);
	json_number(map, "deadline_usec", task->deadline);
	json_number(map, "jitter_usec", task->jitter);
	time_or_null(map, "wcet_usec", t->wcet);
	json_text(map, "wcet_source", rt_source_name(t->source));
	time_or_null(map, "bound_usec", t->bound);
	if (t->bound == BOUND_NONE)
		json_null(map, "slack_usec");
	else
		json_signed(map, "slack_usec", t->slack);
	if (plan->partitions[task->partition].passes)
		json_number(map, "growth_usec", t->growth);
	else
		json_null(map, "growth_usec");
	text_or_null(map, "reason", t->reason);
}

static void add_texts(struct json_object *map, const char *key, char *const *texts, size_t n)
{
	struct json_object *list = json_list(map, key);

	for (size_t i = 0; i < n; i++)
		json_text(list, NULL, texts[i]);
}

static void add_way(struct json_object *map, const struct rt_plan *plan)
{
	bool way = plan->result != RT_REJECTED;
	_cleanup_(freep) char *tenants = way ? rt_tenant_lines(plan) : NULL;
	_cleanup_(freep) char *daemon = way ? rt_daemon_lines(plan) : NULL;
	struct json_object *order = json_list(map, "order");

	for (size_t n = 0; way && n < plan->layout.n; n++)
		json_text(order, NULL, plan->set->partitions[plan->layout.order[n]].name);
	json_flag(map, "any_order", way && plan->layout.any_order);
	json_text(map, "tenants", tenants);
	json_text(map, "daemon", daemon);
}

void rt_show_json(const struct rt_gpu *gpu, const struct rt_plan *plan)
{
	_cleanup_(json_freep) struct json_object *map = json_map(NULL, NULL);
	struct json_object *list;

	json_text(map, "verdict", rt_result_name(plan->result));
	text_or_null(map, "reason", plan->reason);
	json_text(map, "gpu", gpu->info.name);
	json_text(map, "device", gpu->info.device);
	json_text(map, "gfx_target", gpu->target);
	json_text(map, "law", gpu->info.law_measured ? "measured" : "assumed");
	json_number(map, "margin_percent", plan->set->margin_percent);
	list = json_list(map, "partitions");
	for (size_t i = 0; i < plan->set->n_partitions; i++)
		add_partition(list, plan, gpu, i);
	list = json_list(map, "tasks");
	for (size_t i = 0; i < plan->set->n_tasks; i++)
		add_task(list, plan, i);
	add_texts(map, "assumptions", plan->assumptions, plan->n_assumptions);
	add_texts(map, "conditions", plan->conditions, plan->n_conditions);
	add_way(map, plan);
	json_print(stdout, map);
}
