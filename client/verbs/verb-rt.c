/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/output/fail.h"
#include "client/launch/model-load.h"
#include "client/output/print.h"
#include "client/rt/show.h"
#include "client/doctor/service-user.h"
#include "client/verbs/verb.h"
#include "util/text.h"

/* Prints each error on a line of its own; with --json as the lines of one string. */
static int fail_diagnostics(const struct command *command, const struct diagnostics *diagnostics,
			    int r)
{
	_cleanup_(freep) char *text = NULL;
	size_t size, last = diagnostics->n - 1;
	FILE *out = NULL;

	if (diagnostics->n == 0)
		return fail(command, EXIT_FAILED, "%s", strerror(-r));
	if (command->json)
		out = open_memstream(&text, &size);
	for (size_t i = 0; i < last; i++) {
		if (out)
			fprintf(out, "%s\n", diagnostics->list[i].text);
		else
			print_line(stderr, "gpuarbctl %s: %s", command->verb,
				   diagnostics->list[i].text);
	}
	if (out && fclose(out) != 0)
		return fail(command, EXIT_FAILED, "out of memory");
	return fail(command, EXIT_CONFIGURATION, "%s%s", text ? text : "",
		    diagnostics->list[last].text);
}

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
	return fail_diagnostics(command, &diagnostics, r);
}

static int load_set(const struct command *command, const char *file,
		    const struct settings *settings, struct rt_set **ret)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	int r = rt_set_load(file, settings, ret, &diagnostics);

	if (r < 0)
		return fail_diagnostics(command, &diagnostics, r);
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

/* The GPU without any lease. */
static void take_gpu(const struct command *command, const struct gpuarb_gpu *gpu,
		     const struct model *model, struct rt_gpu *ret)
{
	int scheduler = scheduler_from_name(gpu->scheduler);

	ret->here = true;
	ret->info = (struct gpu_info){
		.geometry = model->geometry,
		.harvest_known = gpu->harvest_known,
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
	take_calibration(gpuarb_view_calibration(command->view, (size_t)(gpu - command->gpus)),
			 &ret->info.calibrated);
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
	const struct gpu_settings *own;
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
	own = settings_gpu(settings, gpu->info.name);
	if (own)
		gpu->info.reserve_queues = own->reserve_queues;
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

static int plan_file(const struct command *command, const char *file, const struct gpus *gpus,
		     const struct settings *settings)
{
	_cleanup_(rt_plan_freep) struct rt_plan *plan = NULL;
	_cleanup_(rt_set_freep) struct rt_set *set = NULL;
	char problem[512];
	int r = load_set(command, file, settings, &set);

	if (r != EXIT_OK)
		return r;
	r = rt_plan_make(set, gpus->list, gpus->n, &plan, problem, sizeof(problem));
	if (r == -EINVAL)
		return fail(command, EXIT_CONFIGURATION, "%s: %s", file, problem);
	if (r < 0)
		return fail(command, EXIT_FAILED, "%s", strerror(-r));
	if (command->json)
		rt_show_json(plan);
	else
		rt_show_text(command, plan);
	return plan->result == RT_REJECTED ? EXIT_REFUSED : EXIT_OK;
}

int run_rt(struct command *command)
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
