/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/output/fail.h"
#include "client/launch/model-load.h"
#include "client/output/json.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"
#include "client/rt/command.h"
#include "client/rt/measure.h"
#include "client/rt/task-plan.h"
#include "client/rt/watch.h"
#include "client/doctor/service.h"
#include "util/log.h"
#include "util/text.h"

/* Defaults for keys that the file leaves out: for a GPU of this machine its gpuarbd.conf, for a
 * model those of gpuarbd without a configuration. */
static int load_settings(const struct command *command, struct settings **ret)
{
	const struct config_files files = { .trust = service_trust() };
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	int r;

	if (command->config)
		r = config_load_file(command->config, ret, &diagnostics);
	else if (command->gpu)
		r = service_load_config(&files, ret, &diagnostics);
	else
		r = settings_new(ret);
	if (r >= 0)
		return EXIT_OK;
	if (command->gpu && !command->config)
		diagnostics_add(
			&diagnostics, true,
			"the configuration of this machine is not valid; --config=FILE reads "
			"another one, --config=/dev/null the defaults of gpuarbd");
	return fail_diagnostics(command, EXIT_CONFIGURATION, &diagnostics, r);
}

static int load_set(const struct command *command, const char *file,
		    const struct settings *settings, struct rt_set **ret)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	int r = rt_set_load(file, settings, ret, &diagnostics);

	if (r < 0)
		return fail_diagnostics(command, EXIT_CONFIGURATION, &diagnostics, r);
	if (command->margin_given)
		(*ret)->margin_percent = command->margin_percent;
	return EXIT_OK;
}

static int load_profile(const struct command *command, struct rt_gpu *ret)
{
	struct profile profile;
	int r = model_load_profile(command, &profile);

	if (r != EXIT_OK)
		return r;
	ret->info = profile.info;
	snprintf(ret->info.name, sizeof(ret->info.name), "%s", command->profile);
	gpu_info_target_name(ret->info.gfx_target, ret->target, sizeof(ret->target));
	return EXIT_OK;
}

/* NULL: the daemon does not tell. Kinds of neighbours that are new here are left out. */
static void take_calibration(const struct gpuarb_calibration *from, struct calibrated *ret)
{
	size_t n = from ? from->n_slowdowns : 0;

	if (!from)
		return;
	snprintf(ret->date, sizeof(ret->date), "%s", from->date);
	ret->preemption_usec = from->preemption_usec;
	for (size_t i = 0; i < n && ret->n_slowdowns < CALIBRATED_SLOWDOWNS; i++) {
		const struct gpuarb_slowdown *row = &from->slowdowns[i];
		int kind = row->kind ? text_index(neighbours_names, row->kind) : -EINVAL;

		if (kind >= 0 && row->slowdown >= 100)
			ret->slowdowns[ret->n_slowdowns++] = (struct slowdown){
				(enum neighbours)kind, max_u(row->neighbours, 1), row->slowdown
			};
	}
}

/* What the statements of a set about all clients are compared with. */
static void count_clients(const struct command *command, const struct gpuarb_gpu *gpu,
			  struct rt_gpu *ret)
{
	const struct gpuarb_lease_info *leases;
	size_t n = gpuarb_view_leases(command->view, &leases);

	ret->unmanaged = gpu->n_unmanaged;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < leases[i].n_partitions; k++) {
			if (strcmp(leases[i].partitions[k].gpu, gpu->name) != 0 ||
			    strcmp(leases[i].state, "waiting") == 0)
				continue;
			ret->uncapped += !gpuarb_view_capped(command->view, i);
			ret->unverified += !gpuarb_view_verified(command->view, i);
		}
}

/* The GPU without any lease. */
static void take_gpu(const struct command *command, const struct gpuarb_gpu *gpu,
		     const struct model *model, struct rt_gpu *ret)
{
	int scheduler = scheduler_from_name(gpu->scheduler);

	ret->here = true;
	ret->info = (struct gpu_info){
		.geometry = model->geometry,
		.harvest_known = gpu->harvest_known,
		.guessed = !gpu->harvest_known && gpu->kfd_gpu_id != 0,
		.gfx_target = gpu_info_target_from_name(gpu->gfx_target),
		.law = model->law,
		.queue_slots = gpu->queue_slots,
		.process_slots = gpu->process_slots,
		.pipes = gpu->pipes,
		.queues_per_pipe = gpu->queues_per_pipe,
		.sdma_queues = gpu->sdma_queues,
		.sdma_xgmi_queues = gpu->sdma_xgmi_queues,
		.vram_bytes = gpu->vram_bytes,
		.scheduler = scheduler < 0 ? SCHEDULER_UNKNOWN : (enum scheduler)scheduler,
	};
	snprintf(ret->info.name, sizeof(ret->info.name), "%s", gpu->name);
	snprintf(ret->info.device, sizeof(ret->info.device), "%s", gpu->device);
	snprintf(ret->target, sizeof(ret->target), "%s", gpu->gfx_target);
	snprintf(ret->memory, sizeof(ret->memory), "%s",
		 gpuarb_view_memory(command->view, (size_t)(gpu - command->gpus)));
	take_calibration(gpuarb_view_calibration(command->view, (size_t)(gpu - command->gpus)),
			 &ret->info.calibrated);
	count_clients(command, gpu, ret);
}

static int load_live_gpu(struct command *command, struct rt_gpu *ret)
{
	const struct gpuarb_gpu *gpu;
	struct model model;
	int r = model_find_gpu(command, &gpu, &model);

	if (r == EXIT_OK)
		take_gpu(command, gpu, &model, ret);
	return r;
}

/* The GPUs of a set. */
struct gpus {
	struct rt_gpu list[RT_GPUS_MAX];
	size_t n;
};

/* "GPU", or "NAME=GPU" with the name that the file uses. */
static int load_gpu(struct command *command, char *word, const struct settings *settings,
		    struct gpus *ret)
{
	char *equals = strchr(word, '=');
	const char *which = equals ? equals + 1 : word;
	struct rt_gpu *gpu = &ret->list[ret->n];
	const char **field = command->gpu ? &command->gpu : &command->profile, *all = *field;
	int r;

	if (ret->n == RT_GPUS_MAX)
		return fail(command, EXIT_USAGE, "more than %u GPUs", RT_GPUS_MAX);
	if (equals)
		*equals = '\0';
	if (!*word || !*which || strlen(word) >= RT_GPU_NAME_MAX)
		return fail(command, EXIT_USAGE, "invalid GPU '%s%s%s': use GPU or NAME=GPU", word,
			    equals ? "=" : "", equals ? which : "");
	for (size_t i = 0; i < ret->n; i++)
		if (strcmp(ret->list[i].name, word) == 0)
			return fail(command, EXIT_USAGE,
				    "%s is in the set twice: give each a name, as left=%s,right=%s",
				    word, which, which);
	*gpu = (struct rt_gpu){ 0 };
	strcpy(gpu->name, word);
	*field = which;
	r = command->gpu ? load_live_gpu(command, gpu) : load_profile(command, gpu);
	*field = all;
	if (r != EXIT_OK)
		return r;
	for (size_t i = 0; gpu->here && i < ret->n; i++)
		if (strcmp(ret->list[i].info.name, gpu->info.name) == 0)
			return fail(command, EXIT_USAGE, "%s and %s are the same GPU, %s",
				    ret->list[i].name, gpu->name, gpu->info.name);
	gpu->info.reserve_queues = settings_reserve_queues(settings, &gpu->info);
	ret->n++;
	return EXIT_OK;
}

static int load(struct command *command, struct gpus *gpus, struct settings **ret)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;
	_cleanup_(freep) char *words = NULL;
	char *word, *rest;
	int r;

	r = model_names_gpu(command);
	if (r == EXIT_OK)
		r = load_settings(command, &settings);
	if (r != EXIT_OK)
		return r;
	words = rest = strdup(command->gpu ? command->gpu : command->profile);
	if (!words)
		return fail(command, EXIT_FAILED, "out of memory");
	while (r == EXIT_OK && (word = strsep(&rest, ",")))
		r = load_gpu(command, word, settings, gpus);
	if (r == EXIT_OK)
		*ret = TAKE_PTR(settings);
	return r;
}

/* On which pipes the queues of its partitions are, as far as there are leases, and gpuarbd can read it. */
static void observe_pipes(const struct command *command, const struct gpus *gpus,
			  struct rt_set *set)
{
	for (size_t g = 0; set->own_pipes && g < gpus->n; g++) {
		const char *gpu = gpus->list[g].info.name;
		struct gpuarb_slots *slots;

		if (!gpus->list[g].here || gpuarb_read_slots(command->gpuarb, gpu, &slots) < 0)
			continue;
		for (size_t i = 0; i < set->n_partitions; i++) {
			struct rt_partition *p = &set->partitions[i];

			if (rt_gpu_find(gpus->list, gpus->n, p->gpu) == g)
				p->pipe_neighbours = rt_pipe_neighbours(command->view, slots,
									p->name, gpu);
		}
		gpuarb_slots_free(slots);
	}
}

/* *ret_set must outlive the plan. */
static int make_plan(const struct command *command, const char *file, const struct gpus *gpus,
		     const struct settings *settings, struct rt_set **ret_set, struct rt_plan **ret)
{
	char problem[512];
	int r = load_set(command, file, settings, ret_set);

	if (r != EXIT_OK)
		return r;
	observe_pipes(command, gpus, *ret_set);
	r = rt_plan_make(*ret_set, gpus->list, gpus->n, ret, problem, sizeof(problem));
	if (r == -EINVAL)
		return fail(command, EXIT_CONFIGURATION, "%s: %s", file, problem);
	return r < 0 ? fail(command, EXIT_FAILED, "%s", strerror(-r)) : EXIT_OK;
}

static int plan_file(const struct command *command, const char *file, const struct gpus *gpus,
		     const struct settings *settings)
{
	_cleanup_(rt_set_freep) struct rt_set *set = NULL;
	_cleanup_(rt_plan_freep) struct rt_plan *plan = NULL;
	int r = make_plan(command, file, gpus, settings, &set, &plan);

	if (r != EXIT_OK)
		return r;
	if (command->json)
		rt_show_json(plan);
	else
		rt_show_text(command, plan);
	return plan->result == RT_REJECTED ? EXIT_REFUSED : EXIT_OK;
}

static int plan(struct command *command)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;
	struct gpus gpus = { 0 };
	int r, worst = EXIT_OK;

	r = load(command, &gpus, &settings);
	for (size_t i = 1; r == EXIT_OK && i < command->n_rest; i++) {
		if (i > 1 && !command->json)
			putchar('\n');
		r = plan_file(command, command->rest[i], &gpus, settings);
		if (r == EXIT_REFUSED) {
			worst = r;
			r = EXIT_OK;
		}
	}
	return r == EXIT_OK ? worst : r;
}

/* ---- monitor ------------------------------------------------------------------------------ */

#define SNAPSHOT_USEC UINT64_C(1000000)  /* queues change without a signal of the daemon */
#define SLOTS_AGE_USEC UINT64_C(2000000) /* gpuarbd answers with a reading that is younger */

struct monitor {
	struct command *command;
	const char *file;
	const struct rt_plan *plan;
	struct rt_watch *watch;
	struct rt_violation violation;
	bool violated, told;
	bool changed;             /* since the queue slots were read */
	uint64_t changed_usec;    /* when that was noticed */
	bool unread[RT_GPUS_MAX]; /* its queue slots could not be read, and that was told */
	int error;
};

static void describe(const struct monitor *monitor, char *ret, size_t size)
{
	const struct rt_violation *v = &monitor->violation;

	if (v->assumption == RT_PIPES)
		snprintf(
			ret, size,
			"plan %s: pipes with queues of lease %llu of partition %s on GPU %s have queues "
			"of others: %llu, and the plan assumes none",
			monitor->file, ull(v->lease), v->partition, v->gpu, ull(v->observed));
	else if (v->assumption == RT_CUS)
		snprintf(
			ret, size,
			"plan %s: lease %llu of partition %s has %llu effective CUs on GPU %s, and the "
			"plan assumes %llu",
			monitor->file, ull(v->lease), v->partition, ull(v->observed), v->gpu,
			ull(v->bound));
	else if (v->assumption == RT_NEIGHBOURS)
		snprintf(
			ret, size,
			"plan %s: %llu leases and programs use the memory of GPU %s beside lease %llu of "
			"partition %s, and the plan assumes at most %llu",
			monitor->file, ull(v->observed), v->gpu, ull(v->lease), v->partition,
			ull(v->bound));
	else
		snprintf(
			ret, size,
			"plan %s: %s beside lease %llu of partition %s on GPU %s: %llu within %llu us, "
			"and the plan assumes at most %llu",
			monitor->file, rt_assumption_names[v->assumption], ull(v->lease),
			v->partition, v->gpu, ull(v->observed), ull(v->within_usec), ull(v->bound));
}

static void report(const struct monitor *monitor, const char *message)
{
	const struct rt_violation *v = &monitor->violation;
	struct journal_entry entry = { 0 };

	journal_add(&entry, "MESSAGE", "%s", message);
	journal_add(&entry, "MESSAGE_ID", "%s", LOG_EVENT_VIOLATED);
	journal_add(&entry, "PRIORITY", "%d", LOG_ERR);
	journal_add(&entry, "SYSLOG_IDENTIFIER", "gpuarbctl");
	journal_add(&entry, "GPUARB_PLAN", "%s", monitor->file);
	journal_add(&entry, "GPUARB_PARTITION", "%s", v->partition);
	journal_add(&entry, "GPUARB_LEASE", "%llu", ull(v->lease));
	journal_add(&entry, "GPUARB_GPU", "%s", v->gpu);
	journal_add(&entry, "GPUARB_ASSUMPTION", "%s", rt_assumption_names[v->assumption]);
	journal_add(&entry, "GPUARB_BOUND", "%llu", ull(v->bound));
	journal_add(&entry, "GPUARB_OBSERVED", "%llu", ull(v->observed));
	journal_add(&entry, "GPUARB_WITHIN_USEC", "%llu", ull(v->within_usec));
	(void)journal_send(JOURNAL_SOCKET, &entry); /* there may be no journal */
}

static struct json_object *event_of(const struct monitor *monitor, const char *kind)
{
	struct json_object *event = json_map(NULL, NULL);

	JSON_FIELDS(event, ("event", kind), ("plan", monitor->file));
	return event;
}

/* Prints the event with --json, else its sentence. Owns the event. */
PRINTF_LIKE(3, 4)
static void print_event(const struct monitor *monitor, struct json_object *event,
			const char *format, ...)
{
	char sentence[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	if (monitor->command->json) {
		json_print_line(stdout, event);
		return;
	}
	print_line(stdout, "%s", sentence);
	fflush(stdout);
	json_object_put(event);
}

static void print_violation(const struct monitor *monitor)
{
	const struct rt_violation *v = &monitor->violation;
	struct json_object *event = event_of(monitor, "violated");
	char message[512];

	describe(monitor, message, sizeof(message));
	report(monitor, message);
	JSON_FIELDS(event, ("gpu", v->gpu), ("partition", v->partition), ("lease", v->lease),
		    ("assumption", rt_assumption_names[v->assumption]), ("bound", v->bound),
		    ("observed", v->observed), ("within_usec", v->within_usec, 0));
	print_event(monitor, event, "%s", message);
}

static void print_no_lease(const struct monitor *monitor, size_t i)
{
	const char *name = monitor->plan->set->partitions[i].name;
	const char *gpu = rt_plan_gpu(monitor->plan, i)->gpu.info.name;
	struct json_object *event = event_of(monitor, "no-lease");

	JSON_FIELDS(event, ("gpu", gpu), ("partition", name), ("tenant", name));
	print_event(
		monitor, event,
		"no lease of tenant %s on GPU %s yet: partition %s is watched from its lease on",
		name, gpu, name);
}

static void print_watching(struct monitor *monitor)
{
	if (monitor->told)
		return;
	monitor->told = true;
	print_event(monitor, event_of(monitor, "watching"), "watching plan %s", monitor->file);
	for (size_t i = 0; i < monitor->plan->set->n_partitions; i++)
		if (!rt_watch_had_lease(monitor->watch, i))
			print_no_lease(monitor, i);
}

static void print_not_observed(const struct monitor *monitor, const char *gpu)
{
	const char *name = rt_assumption_names[RT_PIPES];
	const char *reason = gpuarb_last_error(monitor->command->gpuarb);
	struct json_object *event = event_of(monitor, "not-observed");

	JSON_FIELDS(event, ("gpu", gpu), ("assumption", name), ("reason", reason));
	print_event(monitor, event, "%s of GPU %s are not watched: %s", name, gpu, reason);
}

/* Reads the queue slots after a change, as reading them disturbs the GPU; gpuarbd does so once in a second
 * at most: the answer may be older than the change. */
static bool shares_pipe(struct monitor *monitor)
{
	struct command *command = monitor->command;
	uint64_t begin = lease_clock_usec();
	bool shares = false;

	for (size_t g = 0; !shares && g < monitor->plan->n_gpus; g++) {
		const char *gpu = monitor->plan->gpus[g].gpu.info.name;
		struct gpuarb_slots *slots;

		if (gpuarb_read_slots(command->gpuarb, gpu, &slots) < 0) {
			if (!monitor->unread[g])
				print_not_observed(monitor, gpu);
			monitor->unread[g] = true;
			continue;
		}
		shares = rt_watch_pipes(monitor->watch, command->view, slots, g,
					&monitor->violation);
		gpuarb_slots_free(slots);
	}
	monitor->changed = begin < monitor->changed_usec + SLOTS_AGE_USEC;
	return shares;
}

static void take_snapshot(const char *kind, const char *what, void *userdata)
{
	struct monitor *monitor = userdata;
	uint64_t begin = lease_clock_usec();
	int r;

	(void)what;
	if (strcmp(kind, "daemon-gone") == 0) {
		rt_watch_forget(monitor->watch);
		return;
	}
	r = session_refresh(monitor->command);
	if (r >= 0)
		r = rt_watch_compare(monitor->watch, monitor->command->view, begin,
				     lease_clock_usec(), &monitor->violation);
	else
		rt_watch_forget(monitor->watch);
	if (r == -ENOMEM)
		monitor->error = r;
	monitor->violated = r > 0;
	if (r >= 0)
		print_watching(monitor);
	/* Each call of gpuarb_watch() begins with "watching". */
	if (strcmp(kind, "watching") != 0 || rt_watch_moved(monitor->watch)) {
		monitor->changed = true;
		monitor->changed_usec = begin;
	}
	if (r == 0 && monitor->plan->set->own_pipes && monitor->changed &&
	    strcmp(kind, "watching") == 0)
		monitor->violated = shares_pipe(monitor);
	if (monitor->violated || monitor->error < 0)
		gpuarb_watch_stop(monitor->command->gpuarb);
}

static int follow(struct monitor *monitor)
{
	int r = 0;

	while (r >= 0 && !monitor->violated && monitor->error == 0)
		r = gpuarb_watch(monitor->command->gpuarb, SNAPSHOT_USEC, take_snapshot, monitor);
	if (r < 0)
		return fail_asked(monitor->command, r);
	if (monitor->error < 0)
		return fail(monitor->command, EXIT_FAILED, "%s", strerror(-monitor->error));
	print_violation(monitor);
	return EXIT_DRIFT;
}

static int monitor(struct command *command)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;
	_cleanup_(rt_set_freep) struct rt_set *set = NULL;
	_cleanup_(rt_plan_freep) struct rt_plan *plan = NULL;
	_cleanup_(rt_watch_freep) struct rt_watch *watch = NULL;
	struct monitor monitor = { .command = command, .file = command->rest[1], .changed = true };
	struct gpus gpus = { 0 };
	int r;

	if (!command->gpu || command->n_rest > 2)
		return fail(command, EXIT_USAGE, "rt monitor takes one FILE and --gpu=GPU");
	r = load(command, &gpus, &settings);
	if (r == EXIT_OK)
		r = make_plan(command, monitor.file, &gpus, settings, &set, &plan);
	if (r != EXIT_OK)
		return r;
	if (plan->result == RT_REJECTED)
		return fail(command, EXIT_REFUSED,
			    "%s: the plan is rejected; rt plan has the reasons", monitor.file);
	if (rt_watch_new(plan, &watch) < 0)
		return fail(command, EXIT_FAILED, "%s", strerror(ENOMEM));
	monitor.plan = plan;
	monitor.watch = watch;
	return follow(&monitor);
}

int rt_run(struct command *command)
{
	const char *action = command->rest[0];

	if (strcmp(action, "measure") == 0)
		return rt_measure_command(command);
	return strcmp(action, "monitor") == 0 ? monitor(command) : plan(command);
}
