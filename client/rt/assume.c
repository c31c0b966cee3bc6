/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The assumptions and conditions of a plan, as sentences. */

#include "client/rt/task-plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/base.h"
#include "util/grow.h"

/* Assumptions come from the file or the model. Conditions are what the file does not state. */
struct list {
	char ***list;
	size_t *n;
	const char *gpu; /* that sentences are of; NULL: of all */
	int error;
};

static PRINTF_LIKE(2, 3) void say(struct list *list, const char *format, ...)
{
	_cleanup_(freep) char *sentence = NULL, *text = NULL;
	char **added;
	va_list args;
	int r;

	va_start(args, format);
	r = vasprintf(&sentence, format, args);
	va_end(args);
	if (r < 0)
		sentence = NULL;
	if (!sentence ||
	    asprintf(&text, "%s%s%s", list->gpu ?: "", list->gpu ? ": " : "", sentence) < 0)
		text = NULL;
	added = text ? grow(list->list, list->n, sizeof(*added)) : NULL;
	if (added)
		*added = TAKE_PTR(text);
	else
		list->error = -ENOMEM;
}

static size_t count_source(const struct rt_plan *plan, const struct rt_gpu_plan *gpu,
			   enum rt_source source)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->set->n_tasks; i++)
		n += plan->tasks[i].source == source &&
		     rt_plan_gpu(plan, plan->set->tasks[i].partition) == gpu;
	return n;
}

static void say_times(const struct rt_plan *plan, const struct rt_gpu_plan *gpu, struct list *list)
{
	size_t modelled = count_source(plan, gpu, RT_MODELLED);
	size_t kept = count_source(plan, gpu, RT_KEPT);

	if (*gpu->margin.row)
		say(list,
		    "%u %% are added: a slowdown of %u.%02u beside %u lease%s (measured: %s), and "
		    "%u %% for errors of the law of masks.",
		    gpu->margin.percent, gpu->margin.slowdown / 100, gpu->margin.slowdown % 100,
		    gpu->neighbours, gpu->neighbours == 1 ? "" : "s", gpu->margin.row, MARGIN_LAW);
	else
		say(list,
		    "%u %% are added for interference by neighbours: the number was given by the file, "
		    "gpuarbd.conf or --margin.",
		    gpu->margin.percent);
	if (modelled > 0)
		say(list,
		    "Execution times of %zu task%s are modelled: computed from measurements on "
		    "fewer and on more CUs by the law of masks, which is %s for this GPU.",
		    modelled, modelled == 1 ? "" : "s", law_names[gpu->gpu.info.law.basis]);
	if (modelled > 0 && !*gpu->margin.row)
		say(list,
		    "%u %% are added to modelled execution times for errors of the law of masks.",
		    MARGIN_LAW);
	if (kept > 0)
		say(list,
		    "Execution times of %zu task%s are those on fewer CUs: there is no measurement "
		    "on so many, and more CUs do not make a task slower.",
		    kept, kept == 1 ? "" : "s");
}

/* "3 times within one response time", or by rates. */
static const char *often_text(const struct rt_often *often, const char *noun, char ret[static 128])
{
	size_t n = 0;

	if (often->rates.n == 0)
		snprintf(ret, 128, "%llu %s%s within one response time", ull(often->number), noun,
			 often->number == 1 ? "" : "s");
	for (size_t i = 0; i < often->rates.n && n < 100; i++)
		n += (size_t)snprintf(ret + n, 128 - n, "%s%llu in any %llu us", i > 0 ? ", " : "",
				      ull(often->rates.list[i].count),
				      ull(often->rates.list[i].usec));
	return ret;
}

static void say_activations(const struct rt_set *set, struct list *list)
{
	char often[128];

	if (set->activations.rates.n > 0)
		say(list,
		    "Other leases are granted or activated at most %s, and a borrower may answer an "
		    "earlier activation late.",
		    often_text(&set->activations, "", often));
	else if (set->activations.number != RT_UNSET)
		say(list,
		    "At most %llu other lease%s granted or activated within one response time%s.",
		    ull(set->activations.number), set->activations.number == 1 ? " is" : "s are",
		    set->activations.number > 0
			    ? ", and a borrower may answer an earlier activation within it"
			    : "");
	else
		say(list,
		    "Within one response time each other lease of this file that starts inactive "
		    "may be activated once, and no other lease is granted on the GPU.");
}

static void say_changes(const struct rt_plan *plan, const struct rt_gpu_plan *gpu,
			struct list *list)
{
	const struct rt_set *set = plan->set;
	const struct calibrated *calibrated = &gpu->gpu.info.calibrated;
	bool measured = gpu->preemption > 0 && gpu->preemption == calibrated->preemption_usec;

	if (!gpu->preempts) {
		say(list, "A change of the mask of one queue does not stop other queues (MES).");
		return;
	}
	if (!set->borrowers)
		say(list, "No lease on the GPU borrows CUs, so no mask changes while tasks run.");
	else
		say(list,
		    "Masks of borrowers grow at most once in %llu us. Each such change is for up "
		    "to %llu queues, and each of these stops the GPU for up to %llu us%s%s.",
		    ull(set->daemon.activate_min_interval), ull(gpu->changed_queues),
		    ull(gpu->preemption), measured ? " on this GPU, calibrated " : "",
		    measured ? calibrated->date : "");
	if (set->borrowers)
		say_activations(set, list);
	if (rt_often_is_stated(&set->queue_changes)) {
		char often[128];

		say(list, "Other programs create, mask or destroy queues at most %s.",
		    often_text(&set->queue_changes, "time", often));
	}
}

static bool set_times_out(const struct rt_set *set)
{
	return set->preemption_timeout != RT_UNSET && set->preemption_timeout > 0;
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
			    "%s is active %llu us after its activation (activate-grace, "
			    "enforce-delay and %s), provided that every tenant whose leases borrow "
			    "has enforce = kill, and that gpuarb-enforce.socket is active.",
			    p->name, ull(plan->partitions[i].activation),
			    set_times_out(set) ? "the preemption time-out of the kernel"
					       : "the removal of a killed borrower's queues");
		else
			say(list, "%s is active %llu us after its activation.", p->name,
			    ull(p->activation));
		if (p->waits_for_grant)
			say(list,
			    "%s releases its first job when the activation has completed, not when "
			    "it is requested.",
			    p->name);
	}
}

static void say_gpus(const struct rt_plan *plan, struct list *list)
{
	bool times_out = set_times_out(plan->set);

	say(list, "The plan uses the GPU as if no other lease were granted on it. Leases of other "
		  "classes get the CUs that are left.");
	if (plan->layout.n > 1)
		say(list, plan->layout.any_order
				  ? "The partitions fit in any order of their start."
				  : "The partitions fit if they start in the order below.");
	if (times_out)
		say(list,
		    "One preemption times out within a response, in each partition: the GPU stands "
		    "still for %llu us.",
		    ull(plan->set->preemption_timeout));
	say(list,
	    "The GPU clock is the one of the measurements. No %sreset, no page fault, no lack of "
	    "memory that evicts queues, and no debugger stops the GPU.",
	    !times_out ? "preemption that times out, no " : "");
}

/* CP runs one queue of a pipe at a time, and neither the driver nor a program chooses the pipe. The
 * queues of one partition do not compete: it runs one job at a time. */
static void say_pipes(const struct rt_plan *plan, const struct rt_gpu_plan *gpu, struct list *list)
{
	uint64_t own = gpu->queues, all = own + gpu->changed_queues;
	unsigned pipes = max_u(gpu->gpu.info.pipes, 1);

	if (plan->set->own_pipes && gpu->n_partitions > 1 && own > pipes)
		say(list,
		    "This set has %llu queues on %u pipes: own-pipes = yes is true only as long as the "
		    "firmware puts no queues but those of one partition on a pipe (gpuarbctl rt "
		    "monitor observes it).",
		    ull(own), pipes);
	if (!plan->set->own_pipes)
		say(list,
		    "The file does not state that no other queue shares a pipe with those of a "
		    "partition: a pipe runs one queue at a time, and the firmware places %llu "
		    "queues of this set and up to %llu others on %u pipes, at least %llu on one of "
		    "them (see gpuarbctl slots; own-pipes = yes).",
		    ull(own), ull(gpu->changed_queues), pipes, ull((all + pipes - 1) / pipes));
}

/* What the file states, and gpuarbd does not observe. */
static void say_not_observed(const struct rt_plan *plan, const struct rt_gpu_plan *gpu,
			     struct list *list)
{
	for (size_t i = 0; plan->set->own_pipes && gpu->gpu.here && i < plan->set->n_partitions;
	     i++)
		if (rt_plan_gpu(plan, i) == gpu &&
		    plan->set->partitions[i].pipe_neighbours == RT_UNSET)
			say(list,
			    "own-pipes = yes was not compared with the queue slots for %s: it has no "
			    "lease with queues now, or gpuarbd cannot read them (gpuarbctl slots).",
			    plan->set->partitions[i].name);
}

/* What gpuarbd observes now, and the file states otherwise. */
static void say_contradicted(const struct rt_plan *plan, const struct rt_gpu_plan *gpu,
			     struct list *list)
{
	const struct rt_set *set = plan->set;
	const struct rt_gpu *now = &gpu->gpu;

	for (size_t i = 0; set->own_pipes && i < set->n_partitions; i++) {
		const struct rt_partition *p = &set->partitions[i];

		if (rt_plan_gpu(plan, i) == gpu && p->pipe_neighbours != RT_UNSET &&
		    p->pipe_neighbours > 0)
			say(list,
			    "own-pipes = yes is not true now: queues of others are on pipes with queues "
			    "of %s (%llu; see gpuarbctl slots).",
			    p->name, ull(p->pipe_neighbours));
	}
	if (set->capped && now->uncapped + now->unmanaged > 0)
		say(list,
		    "every-client-capped = yes is not observed now: leases on the GPU that are not "
		    "capped (%zu; see gpuarbctl show LEASE), processes on it without a lease (%zu).",
		    now->uncapped, now->unmanaged);
	if (set->masked && now->unverified + now->unmanaged > 0)
		say(list,
		    "every-client-masked = yes is not observed now: leases on the GPU that are not "
		    "verified (%zu; see gpuarbctl verify), processes on it without a lease (%zu).",
		    now->unverified, now->unmanaged);
}

/* Whether it matters that jobs are submitted while others run. */
static bool overlaps_host(const struct rt_partition *p)
{
	return !rt_partition_dispatches(p) && p->n_tasks > 1 && p->host_submission != RT_UNSET &&
	       p->host_submission > 0;
}

static void say_unstated_partitions(const struct rt_plan *plan, struct list *list)
{
	const struct rt_set *set = plan->set;

	for (size_t i = 0; i < set->n_partitions; i++) {
		const struct rt_partition *p = &set->partitions[i];

		if (p->host_submission == RT_UNSET)
			say(list,
			    "The file does not state how long the program of %s takes to submit a "
			    "job and to learn of its end: it counts as 0 (host-submission = TIME).",
			    p->name);
		if (overlaps_host(p) && !p->dispatcher_stated)
			say(list,
			    "The file does not state that jobs of %s are submitted while others of it "
			    "run, which libgpuarb-rt does not do (dispatcher = no; with yes, "
			    "host-submission counts for each job).",
			    p->name);
		if (p->start_inactive && !p->waits_for_grant && p->activation == RT_UNSET &&
		    set->borrowers)
			say(list,
			    "The file does not state how long an activation of %s takes: it counts "
			    "as %llu us, which needs enforce = kill for every tenant whose leases "
			    "borrow, and gpuarb-enforce.socket (activation-latency = TIME).",
			    p->name, ull(plan->partitions[i].activation));
	}
}

static bool preempts(const struct rt_plan *plan)
{
	for (size_t i = 0; i < plan->n_gpus; i++)
		if (plan->gpus[i].preempts && plan->gpus[i].n_partitions > 0)
			return true;
	return false;
}

/* On how many GPUs jobs copy. */
static size_t copying_gpus(const struct rt_plan *plan)
{
	bool copies[RT_GPUS_MAX] = { false };
	size_t n = 0;

	for (size_t i = 0; i < plan->set->n_partitions; i++)
		copies[plan->partitions[i].gpu] |= plan->partitions[i].copies;
	for (size_t i = 0; i < plan->n_gpus; i++)
		n += copies[i];
	return n;
}

static void say_unstated_copies(const struct rt_plan *plan, struct list *list)
{
	size_t gpus = copying_gpus(plan);

	if (gpus > 0 && !plan->set->own_copies)
		say(list,
		    "The file does not state that no other program copies with the SDMA engines of the "
		    "GPU: a copy can wait for theirs (own-copies = yes).");
	if (gpus > 1 && !plan->set->independent_copies)
		say(list,
		    "The file does not state that copies of different GPUs do not slow each other: they "
		    "can share a link or the memory of the host (independent-copies = yes).");
}

static void say_unstated_margin(const struct rt_plan *plan, const struct rt_gpu_plan *gpu,
				struct list *list)
{
	const struct rt_set *set = plan->set;

	if (*gpu->margin.row && !gpu->margin.measured)
		say(list,
		    "The margin was not measured on a GPU of this target beside as many leases: %s "
		    "(gpuarbctl calibrate, or margin = SHARE).",
		    gpu->margin.row);
	if (*gpu->margin.row && set->neighbours == RT_UNSET && set->borrowers)
		say(list,
		    "The file does not state how many other leases run at the same time: of those that "
		    "borrow CUs, the margin is for one (neighbours = N).");
}

/* Worst of tests/data/measured/law_mi300x.tsv between two neighbouring rows: persistent, 4096, E = 224. */
static void say_unstated_law(const struct rt_plan *plan, const struct rt_gpu_plan *gpu,
			     struct list *list)
{
	if (!plan->set->law_stated && count_source(plan, gpu, RT_MODELLED) > 0)
		say(list,
		    "The file does not state that kernels with modelled times have many more "
		    "work-groups than run at once: a persistent kernel took 20 %% longer than "
		    "modelled (law = yes; or measure on these CUs, or law = no).");
}

static void say_conditions(const struct rt_plan *plan, struct list *list)
{
	const struct rt_set *set = plan->set;

	if (!set->capped)
		say(list,
		    "The file does not state that every program on the GPU has a lease: queues of "
		    "unmanaged processes could oversubscribe it (every-client-capped = yes).");
	if (!set->masked)
		say(list,
		    "The file does not state that every client keeps its CU mask: a program can set "
		    "another one, or none (every-client-masked = yes).");
	if (!set->no_graphics)
		say(list,
		    "The file does not state that no graphics run on the GPU: graphics ignore "
		    "CU masks (no-graphics = yes).");
	if (preempts(plan) && !rt_often_is_stated(&set->queue_changes))
		say(list,
		    "The file does not state how many queues other programs create, destroy or "
		    "mask within one response time: each such change stops the GPU (queue-changes "
		    "= N).");
	if (preempts(plan) && set->borrowers && !rt_often_is_stated(&set->activations))
		say(list,
		    "The file does not state how many other leases are granted or activated within "
		    "one response time: only those that start inactive in this file are counted "
		    "(activations = N).");
	if (set->preemption_timeout == RT_UNSET)
		say(list,
		    "The file does not state whether a preemption can time out: none is counted "
		    "(preemption-timeout = TIME, or 0 for never).");
	say_unstated_copies(plan, list);
	for (size_t i = 0; i < plan->n_gpus; i++) {
		list->gpu = plan->n_gpus > 1 ? plan->gpus[i].gpu.name : NULL;
		if (plan->gpus[i].n_partitions == 0)
			continue;
		say_pipes(plan, &plan->gpus[i], list);
		say_contradicted(plan, &plan->gpus[i], list);
		say_unstated_margin(plan, &plan->gpus[i], list);
		say_unstated_law(plan, &plan->gpus[i], list);
	}
	list->gpu = NULL;
	say_unstated_partitions(plan, list);
}

static void say_offsets(const struct rt_plan *plan, struct list *list)
{
	for (size_t i = 0; i < plan->set->n_partitions; i++) {
		const char *name = plan->set->partitions[i].name;

		if (plan->partitions[i].offsets == RT_OFFSETS_USED)
			say(list,
			    "Tasks of %s with an offset are released at it and then each period, by one "
			    "clock.",
			    name);
		else if (plan->partitions[i].offsets == RT_OFFSETS_UNUSED)
			say(list,
			    "The bounds of %s hold for any offsets: the analysis with offsets does not "
			    "show more, takes too long, or needs one for each task.",
			    name);
	}
}

static void say_copies(const struct rt_plan *plan, struct list *list)
{
	if (copying_gpus(plan) > 0)
		say(list,
		    "A job copies in, executes and copies out, one after the other. Times of copies are "
		    "the longest possible ones while nothing else copies; all copies share one SDMA "
		    "engine, in any order.");
}

static void say_policies(const struct rt_set *set, struct list *list)
{
	bool fifo = false, dispatched = false;

	for (size_t i = 0; i < set->n_partitions; i++) {
		const struct rt_partition *p = &set->partitions[i];

		fifo |= p->policy == RT_FIFO;
		if (overlaps_host(p))
			say(list,
			    "Jobs of %s are submitted while others of it run: host-submission counts "
			    "once for all jobs that wait.",
			    p->name);
		if (p->policy == RT_FIFO && p->dispatcher)
			say(list,
			    "%s submits a job when the one before it has ended (libgpuarb-rt); "
			    "host-submission counts for each job.",
			    p->name);
		dispatched |= p->policy != RT_FIFO;
		if (p->policy != RT_FIFO)
			say(list,
			    "%s runs one job at a time, to its end, and then the waiting job %s "
			    "(libgpuarb-rt); host-submission counts for each job.",
			    p->name,
			    p->policy == RT_NP_EDF ? "with the earliest deadline"
						   : "of the task with the shortest deadline");
	}
	if (dispatched)
		say(list,
		    "What happens at most so often within one response time happens so often within "
		    "the longest deadline of a partition whose policy is not fifo.");
	if (fifo)
		say(list,
		    "Each partition%s runs one job at a time, in the order of submission, and a "
		    "task submits a job only after the end of its previous one.",
		    dispatched ? " with the policy fifo" : "");
}

static void say_gpu(const struct rt_plan *plan, const struct rt_gpu_plan *gpu, struct list *list)
{
	list->gpu = plan->n_gpus > 1 ? gpu->gpu.name : NULL;
	say_times(plan, gpu, list);
	say_changes(plan, gpu, list);
	say_not_observed(plan, gpu, list);
	if (!gpu->gpu.info.harvest_known)
		say(list, "It is assumed which CUs of the GPU are fused off.");
	list->gpu = NULL;
}

int rt_plan_assume(struct rt_plan *plan)
{
	struct list assumptions = { &plan->assumptions, &plan->n_assumptions, NULL, 0 };
	struct list conditions = { &plan->conditions, &plan->n_conditions, NULL, 0 };

	say_policies(plan->set, &assumptions);
	say_offsets(plan, &assumptions);
	say_copies(plan, &assumptions);
	say(&assumptions,
	    "Execution times are the longest possible ones, measured with masks that have the same "
	    "number of CUs in each shader engine.");
	for (size_t i = 0; i < plan->n_gpus; i++)
		if (plan->gpus[i].n_partitions > 0)
			say_gpu(plan, &plan->gpus[i], &assumptions);
	say_activation(plan, &assumptions);
	say_gpus(plan, &assumptions);
	say_conditions(plan, &conditions);
	return assumptions.error < 0 ? assumptions.error : conditions.error;
}
