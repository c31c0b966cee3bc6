/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a result rests on. Assumptions were made by who wrote the file, or by the model;
 * conditions are what nobody has stated. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/rt/rt-plan.h"

struct list {
	char ***list;
	size_t *n;
	int error;
};

static PRINTF_LIKE(2, 3) void say(struct list *list, const char *format, ...)
{
	char **more = reallocarray(*list->list, *list->n + 1, sizeof(*more)), *text;
	va_list args;
	int n;

	if (more)
		*list->list = more;
	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n >= 0 && more)
		(*list->list)[(*list->n)++] = text;
	else
		list->error = -ENOMEM;
	if (n >= 0 && !more)
		free(text);
}

static unsigned long long ull(uint64_t number)
{
	return number;
}

static size_t count_source(const struct rt_plan *plan, enum rt_source source)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->set->n_tasks; i++)
		n += plan->tasks[i].source == source;
	return n;
}

static void say_times(const struct rt_plan *plan, struct list *list)
{
	size_t modelled = count_source(plan, RT_MODELLED), kept = count_source(plan, RT_KEPT);

	say(list,
	    "Execution times are the longest there are, measured on masks with as many CUs in "
	    "each shader engine; %u %% are added for neighbours (up to 41 %% were measured) and for "
	    "the law of masks.",
	    plan->set->margin_percent);
	if (modelled > 0)
		say(list,
		    "Execution times of %zu task%s are modelled: taken from measurements on fewer "
		    "and on more CUs by the law of masks, which is %s for this GPU.",
		    modelled, modelled == 1 ? "" : "s",
		    plan->gpu->law_measured ? "measured" : "assumed");
	if (kept > 0)
		say(list,
		    "Execution times of %zu task%s are kept from fewer CUs: no measurement is for "
		    "so many, and more do not make it slower.",
		    kept, kept == 1 ? "" : "s");
}

static void say_changes(const struct rt_plan *plan, struct list *list)
{
	const struct rt_set *set = plan->set;

	if (!plan->preempts) {
		say(list,
		    "Changes of other queues' masks do not stop this GPU's other queues (MES).");
		return;
	}
	if (!set->borrowers)
		say(list, "No lease on the GPU borrows CUs: no mask changes while tasks run.");
	else
		say(list,
		    "Masks of borrowers grow at most once in %llu us; each such change is of up to "
		    "%llu queues, and each of these stops the GPU for up to %llu us.",
		    ull(set->daemon.activate_min_interval), ull(plan->changed_queues),
		    ull(set->preemption));
	if (set->borrowers && set->activations != RT_UNSET)
		say(list,
		    "At most %llu other lease%s granted or activated within one response time.",
		    ull(set->activations), set->activations == 1 ? " is" : "s are");
	else if (set->borrowers)
		say(list,
		    "Within one response time every other lease of this file that starts inactive "
		    "may be activated once, and nothing else is granted on the GPU.");
	if (set->queue_changes != RT_UNSET)
		say(list,
		    "Queues outside of the partition are created, masked or destroyed at most %llu "
		    "time%s within one response time.",
		    ull(set->queue_changes), set->queue_changes == 1 ? "" : "s");
}

static void say_activation(const struct rt_plan *plan, struct list *list)
{
	const struct rt_set *set = plan->set;

	for (size_t i = 0; i < set->n_partitions; i++) {
		const struct rt_partition *p = &set->partitions[i];

		if (!p->start_inactive)
			continue;
		if (p->activation == RT_UNSET)
			say(list,
			    "%s is active %llu us after it is activated: activate-grace, "
			    "enforce-delay and the kernel's preemption time-out; so only if every "
			    "tenant whose leases borrow has enforce = kill, and "
			    "gpuarb-enforce.socket is there.",
			    p->name, ull(plan->partitions[i].activation));
		else
			say(list, "%s is active %llu us after it is activated.", p->name,
			    ull(p->activation));
		if (p->waits_for_grant)
			say(list,
			    "%s releases its first job when it is granted, not when it asks to "
			    "be active.",
			    p->name);
	}
}

static void say_gpu(const struct rt_plan *plan, struct list *list)
{
	say(list,
	    "The GPU is planned as if nothing else were granted there; leases of other classes "
	    "get what is left.");
	if (plan->layout.n > 1)
		say(list, plan->layout.any_order
				  ? "The partitions fit in whatever order they start."
				  : "The partitions fit if they start in the order below.");
	if (!plan->gpu->harvest_known)
		say(list, "Which of the GPU's CUs are fused off is assumed.");
	say(list,
	    "The clock is as it was when times were measured; no reset, no page fault, no want "
	    "of memory that evicts queues, and no debugger stops the GPU.");
}

static void say_conditions(const struct rt_plan *plan, struct list *list)
{
	const struct rt_set *set = plan->set;

	if (!set->capped)
		say(list,
		    "Not stated that every client of the GPU is capped: queues of a program "
		    "without a lease may oversubscribe it (every-client-capped = yes states it).");
	if (!set->no_graphics)
		say(list, "Not stated that no graphics run on the GPU: they know no CU mask "
			  "(no-graphics = yes states it).");
	if (plan->preempts && set->queue_changes == RT_UNSET)
		say(list,
		    "Not stated how many queues of other programs come or go within one response "
		    "time, or get a mask: each stops the GPU (queue-changes = N states it).");
}

int rt_plan_assume(struct rt_plan *plan)
{
	struct list assumptions = { &plan->assumptions, &plan->n_assumptions, 0 };
	struct list conditions = { &plan->conditions, &plan->n_conditions, 0 };

	say(&assumptions, "Each partition runs one job at a time, in the order in which they are "
			  "submitted, and a task asks again only when its last job is done.");
	say_times(plan, &assumptions);
	say_changes(plan, &assumptions);
	say_activation(plan, &assumptions);
	say_gpu(plan, &assumptions);
	say_conditions(plan, &conditions);
	return assumptions.error < 0 ? assumptions.error : conditions.error;
}
