/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The plugin of Slurm: options of srun, sbatch and salloc, with which each task of a job starts under
 * `gpuarbctl run`. All tasks of a job on a node give the same token, so they share one lease.
 *
 * A failure of the hooks before task_init drains the node (Slurm 22.05, 24.11). Here it ends the task.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>

#include "client/options/options.h"
#include "client/slurm/task.h"
#include "util/base.h"
#include "util/number.h"

#define PREFIX "gpuarb-"
#define PROCESSES "GPUARB_SLURM_PROCESSES" /* JOB:N, for the steps that a batch script starts */
#define WORD 160
#define WORDS 16

SPANK_PLUGIN(gpuarb, 1)

/* The names after PREFIX are those of gpuarbctl. */
static const struct spank_option options[] = {
	{ (char[]){ PREFIX "cus" }, (char[]){ "N|N%" },
	  (char[]){
		  "compute units of each GPU of the job, or a share of it, for a lease of gpuarbd" },
	  1, 0, NULL },
	{ (char[]){ PREFIX "queues" }, (char[]){ "N" },
	  (char[]){ "hardware queues of all tasks on a node (2 per process)" }, 1, 0, NULL },
	{ (char[]){ PREFIX "processes" }, (char[]){ "N" },
	  (char[]){ "tasks on a node that use the lease (the most tasks of the first step)" }, 1, 0,
	  NULL },
	{ (char[]){ PREFIX "class" }, (char[]){ "CLASS" },
	  (char[]){ "realtime, guaranteed or besteffort (as the tenant)" }, 1, 0, NULL },
	{ (char[]){ PREFIX "wait" }, (char[]){ "TIME" },
	  (char[]){ "the first task waits until the lease is granted, for TIME or without limit" },
	  2, 0, NULL },
};

/* The words before the command of a task. */
struct words {
	char text[WORDS][WORD];
	const char *word[WORDS + 1];
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void words_add(struct words *words, const char *format,
							    ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(words->text[words->n], WORD, format, args);
	va_end(args);
	words->word[words->n] = words->text[words->n];
	words->n++;
}

static bool has_variable(spank_t spank, const char *name)
{
	char value[2];

	return spank_getenv(spank, name, value, sizeof(value)) != ESPANK_ENV_NOEXIST;
}

/* ---- options ------------------------------------------------------------------------------- */

static void option_word(const char *name, const char *value, char word[static WORD])
{
	snprintf(word, WORD, "--%s%s%s", name + strlen(PREFIX), value ? "=" : "",
		 value ? value : "");
}

/* In srun, sbatch and salloc, where the user reads the error. gpuarbctl checks again on the node. */
static int option_check(int i, const char *value, int remote)
{
	const char *given = value && *value ? value : NULL;
	_cleanup_(freep) struct command *command = NULL;
	char word[WORD];
	char *argv[] = { word, NULL };

	if (remote)
		return ESPANK_SUCCESS;
	if (given && strlen(given) >= WORD / 2) {
		slurm_error("--%s=%.40s...: is too long", options[i].name, given);
		return ESPANK_BAD_ARG;
	}
	command = calloc(1, sizeof(*command));
	if (!command)
		return ESPANK_ERROR;
	command_init(command);
	option_word(options[i].name, options[i].has_arg == 1 && !given ? "" : given, word);
	if (options_parse(command, OPTIONS_WANT | OPTIONS_LEASE, true, 1, argv) >= 0)
		return ESPANK_SUCCESS;
	slurm_error("--" PREFIX "%s", command->problem + strlen("--"));
	return ESPANK_BAD_ARG;
}

static int option_register(spank_t spank, int i)
{
	struct spank_option option = options[i];

	option.val = i;
	option.cb = option_check;
	return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : -1;
}

/* sbatch and salloc know only options that are registered here, and not a table spank_options. */
int slurm_spank_init(spank_t spank, int argc, char **argv)
{
	int r = 0;

	(void)argc;
	(void)argv;
	if (spank_context() == S_CTX_JOB_SCRIPT)
		return 0;
	for (int i = 0; r == 0 && i < (int)ARRAY_SIZE(options); i++)
		r = option_register(spank, i);
	return r;
}

static bool option_value(spank_t spank, size_t i, char **ret)
{
	struct spank_option option = options[i];

	*ret = NULL;
	if (spank_option_getopt(spank, &option, ret) != ESPANK_SUCCESS)
		return false;
	if (*ret && !**ret)
		*ret = NULL;
	return true;
}

static bool option_find_value(spank_t spank, const char *name, char **ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (strcmp(options[i].name + strlen(PREFIX), name) == 0)
			return option_value(spank, i, ret);
	return false;
}

/* ---- the request --------------------------------------------------------------------------- */

/* The largest number of "4", "2(x3),1": tasks on each node. */
static unsigned most_tasks(const char *text)
{
	unsigned most = 1;

	while (*text) {
		most = max_u(most, (unsigned)strtoul(text, NULL, 10));
		text += strcspn(text, ",");
		text += *text == ',';
	}
	return most;
}

/* Each task has to ask for the same. A step of a batch script may have fewer tasks than the job, so what the script
 * asked for is in its environment, which the step inherits. */
static unsigned find_processes(spank_t spank, uint32_t job)
{
	char text[256], before[32];
	unsigned of_job, processes;

	if (spank_getenv(spank, PROCESSES, text, sizeof(text)) == ESPANK_SUCCESS &&
	    sscanf(text, "%u:%u", &of_job, &processes) == 2 && of_job == job)
		return processes;
	processes = spank_getenv(spank, "SLURM_TASKS_PER_NODE", text, sizeof(text)) ==
				    ESPANK_SUCCESS
			    ? most_tasks(text)
			    : 1;
	snprintf(before, sizeof(before), "%" PRIu32 ":%u", job, processes);
	spank_setenv(spank, PROCESSES, before, 1);
	return processes;
}

/* Slurm numbers the same GPUs in three variables, and the runtimes apply them one after the other. ROCR_VISIBLE_DEVICES
 * is the first. */
static void keep_first_list(spank_t spank)
{
	if (!has_variable(spank, "ROCR_VISIBLE_DEVICES"))
		return;
	spank_unsetenv(spank, "CUDA_VISIBLE_DEVICES");
	spank_unsetenv(spank, "GPU_DEVICE_ORDINAL");
}

/* What a surrounding lease has set: that of this job, which the token finds again, or that of a job from which this one
 * was submitted. */
static void leave_lease(spank_t spank, bool has_gpus)
{
	if (!has_variable(spank, "GPUARB_LEASE"))
		return;
	spank_unsetenv(spank, "GPUARB_LEASE");
	spank_unsetenv(spank, "HSA_CU_MASK");
	if (!has_gpus)
		spank_unsetenv(spank, "ROCR_VISIBLE_DEVICES");
}

static void ask(spank_t spank, uint32_t job, bool has_gpus, struct words *words)
{
	char visible[64] = "", *value, word[WORD];

	if (has_gpus) {
		words_add(words, "--gpu=all");
		keep_first_list(spank);
		spank_getenv(spank, "ROCR_VISIBLE_DEVICES", visible, sizeof(visible));
	}
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (!option_value(spank, i, &value))
			continue;
		option_word(options[i].name, value, word);
		words_add(words, "%s", word);
	}
	if (!option_find_value(spank, "processes", &value))
		words_add(words, "--processes=%u", find_processes(spank, job));
	/* Tasks that have other GPUs than their neighbours have another lease. */
	words_add(words, "--token=slurm-%" PRIu32 "%s%.*s", job, *visible ? "-gpu" : "",
		  (int)sizeof(visible), visible);
	words_add(words, "--name=slurm-%" PRIu32, job);
}

/* gpuarbctl=PATH of plugstack.conf is for one that is not installed. */
static const char *find_program(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (strncmp(argv[i], "gpuarbctl=", strlen("gpuarbctl=")) == 0)
			return argv[i] + strlen("gpuarbctl=");
	return GPUARBCTL;
}

/* As the user of the job, in the process that becomes the task. */
int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
	struct words words = { .n = 0 };
	uint32_t job = 0, step = 0;
	int task = 0;
	bool has_gpus;
	char *cus;

	if (!option_find_value(spank, "cus", &cus))
		return 0;
	if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS) {
		slurm_error("gpuarb: Slurm does not tell the number of the job");
		return -1;
	}
	has_gpus = has_variable(spank,
				step == SLURM_BATCH_SCRIPT ? "SLURM_JOB_GPUS" : "SLURM_STEP_GPUS");
	leave_lease(spank, has_gpus);
	words_add(&words, "%s", find_program(argc, argv));
	words_add(&words, "run");
	ask(spank, job, has_gpus, &words);
	words_add(&words, "--fixed");
	if (task > 0)
		words_add(&words, "--quiet");
	words_add(&words, "--");
	return task_wrap(spank, words.word, words.n);
}
