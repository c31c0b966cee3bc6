/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The plugin of Slurm: options of srun, sbatch and salloc, with which each task of a job starts under
 * `gpuarbctl run`. All tasks of a job on a node give the same token, so they share one lease.
 *
 * A failure of the hooks before task_init drains the node (Slurm 22.05, 24.11). Here it ends the task.
 */

#include <ctype.h>
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

#define PREFIX "gpuarb-"
#define PROCESSES "GPUARB_SLURM_PROCESSES"   /* JOB:N, for the steps that a batch script starts */
#define ADAPTABLE "GPUARB_SLURM_ADAPTABLE"   /* JOB, whose script has an adaptable lease */
#define TOKEN "GPUARB_SLURM_TOKEN"           /* JOB:NODE:TOKEN, of the lease around a step */
#define COMPONENTS "GPUARB_SLURM_COMPONENTS" /* " cus=15 queues=2: cus=30" of a heterogeneous job */
#define COMPONENTS_SIZE 4096
#define WORD 160
#define WORDS 16
#define VISIBLE 100   /* bytes of a list of GPUs in a token, which has 127 */
#define GPUS_MAX 1024 /* bytes of such a list of Slurm */

SPANK_PLUGIN(gpuarb, 1)

/* The names after PREFIX are those of gpuarbctl. */
enum { OPTION_CUS, OPTION_QUEUES, OPTION_PROCESSES, OPTION_CLASS, OPTION_WAIT, OPTION_ADAPTABLE };
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
	{ (char[]){ PREFIX "adaptable" }, NULL,
	  (char[]){ "the lease of a job of one task grows and shrinks with the CUs that are free" },
	  0, 0, NULL },
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
	snprintf(word, WORD, "--%s%s%.80s", name + strlen(PREFIX), value ? "=" : "",
		 value ? value : "");
}

/* NULL: none. What a batch script's job had without a value, its srun gets from the environment as "(null)". */
static const char *value_given(const char *value)
{
	return value && *value && strcmp(value, "(null)") != 0 ? value : NULL;
}

/* In srun, sbatch and salloc, where the user reads the error. gpuarbctl checks again on the node. */
static int option_check(int i, const char *value, int remote)
{
	const char *given = value_given(value);
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

/* ---- components of a heterogeneous job ------------------------------------------------------- */

#define GROUP \
	"het-group" /* of srun: the numbers of the components, "0,2-3"; without it they are counted */

/* The option that a word of the command line begins, which may be shortened; NULL: none. */
static const char *option_typed(const char *word)
{
	const char *name = word + strlen("--" PREFIX);
	size_t n;

	if (strncmp(word, "--" GROUP, strlen("--" GROUP)) == 0 ||
	    strncmp(word, "--pack-group", strlen("--pack-group")) == 0)
		return GROUP;
	if (strncmp(word, "--" PREFIX, strlen("--" PREFIX)) != 0)
		return NULL;
	n = strcspn(name, "=");
	for (size_t i = 0; n > 0 && i < ARRAY_SIZE(options); i++)
		if (strncmp(options[i].name + strlen(PREFIX), name, n) == 0)
			return options[i].name + strlen(PREFIX);
	return NULL;
}

/* Whether the next word is the value of this option. It is for an option that is not known here. */
static bool takes_word(const char *word, const char *name, bool allocates)
{
	/* --help of srun, sbatch and salloc in Slurm 22.05 and 24.11: without a value, or with one after "=" only. */
	static const char flags[] =
		" bcast bell compress contiguous disable-status exact exclusive get-user-env hold "
		"ignore-pbs immediate kill-command kill-on-bad-exit label multi-prog nice "
		"no-allocate no-bell no-kill no-requeue no-shell oom-kill-step overcommit overlap "
		"oversubscribe parsable preserve-env propagate pty quiet quit-on-interrupt reboot "
		"requeue resv-ports send-libs spread-job test-only unbuffered use-min-nodes "
		"verbose x11 ";
	const char *letter = word +
			     strspn(word, allocates ? "-EHIKOQVWXZhklsuv" : "-EHIKOQVXZhklsuv");
	char key[32];

	if (name)
		return strcmp(name, "wait") != 0 && strcmp(name, "adaptable") != 0;
	if (word[1] != '-')
		return isalpha((unsigned char)*letter) && !letter[1];
	snprintf(key, sizeof(key), " %s", word + strlen("--")); /* it may be shortened */
	return !strstr(flags, key) && !(allocates && strcmp(word, "--wait") == 0);
}

/* Writes " NAME=VALUE" for each option that was typed, and ":" between components. Returns how many options of the plugin.
 * Slurm has called option_check() for their values, so they have neither. */
static size_t components_read(FILE *f, bool allocates, char text[static COMPONENTS_SIZE])
{
	_cleanup_(freep) char *word = NULL;
	const char *name, *value;
	size_t size = 0, used = 0, n = 0;
	bool command = getdelim(&word, &size, '\0', f) <= 0; /* its words are no options */

	*text = '\0';
	while (used < COMPONENTS_SIZE - 1 && getdelim(&word, &size, '\0', f) > 0) {
		if (strcmp(word, ":") == 0) {
			used += (size_t)snprintf(text + used, COMPONENTS_SIZE - used, ":");
			command = false;
			continue;
		}
		command = command || *word != '-' || !word[1] || strcmp(word, "--") == 0;
		if (command)
			continue;
		name = option_typed(word);
		value = strchr(word, '=');
		if (value)
			value++;
		else if (takes_word(word, name, allocates))
			value = getdelim(&word, &size, '\0', f) > 0 ? word : NULL;
		if (name)
			used += (size_t)snprintf(text + used, COMPONENTS_SIZE - used, " %s=%s",
						 name, value ? value : "");
		n += name && strcmp(name, GROUP) != 0;
	}
	if (used >= COMPONENTS_SIZE)
		*text = '\0';
	return n;
}

/* After all options of srun, sbatch or salloc. Slurm keeps the value of an option that was typed last, for all components,
 * so the task finds its own in its environment. */
int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv)
{
	spank_context_t context = spank_context();
	char text[COMPONENTS_SIZE];
	size_t n;
	FILE *f;

	(void)spank;
	(void)argc;
	(void)argv;
	if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR)
		return 0;
	f = fopen("/proc/self/cmdline", "re");
	if (!f)
		return 0;
	n = components_read(f, context == S_CTX_ALLOCATOR, text);
	fclose(f);
	if (n > 0 && strchr(text, ':'))
		setenv(COMPONENTS, text, 1);
	else if (n > 0 || context == S_CTX_ALLOCATOR) /* what a surrounding job has left */
		unsetenv(COMPONENTS);
	return 0;
}

/* The number of the component with this job; -1: it is no component. Slurm has two names for the variables. */
static int component_find(spank_t spank, uint32_t job)
{
	static const char *const names[] = { "HET", "PACK" };
	char name[48], value[16];

	for (size_t n = 0; n < ARRAY_SIZE(names); n++)
		for (int i = 0;; i++) {
			snprintf(name, sizeof(name), "SLURM_JOB_ID_%s_GROUP_%d", names[n], i);
			if (spank_getenv(spank, name, value, sizeof(value)) != ESPANK_SUCCESS)
				break;
			if (strtoul(value, NULL, 10) == job)
				return i;
		}
	return -1;
}

/* ---- the options of a task ------------------------------------------------------------------ */

struct task {
	spank_t spank;
	uint32_t job, step;
	char typed[COMPONENTS_SIZE]; /* for all components */
	const char *own;             /* part of it, up to ":"; NULL: no component */
};

/* Whether "0,2-3" has the number. */
static bool list_has(const char *list, long number)
{
	char *end;

	for (;; list = end + 1) {
		long first = strtol(list, &end, 10), last = first;

		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		if (number >= first && number <= last)
			return true;
		if (*end != ',')
			return false;
	}
}

static void task_load_typed(struct task *task)
{
	int component = component_find(task->spank, task->job), place = 0;
	const char *own = task->typed, *group;

	task->own = NULL;
	if (component < 0 ||
	    spank_getenv(task->spank, COMPONENTS, task->typed, COMPONENTS_SIZE) != ESPANK_SUCCESS)
		return;
	for (;; own++, place++) {
		group = strstr(own, " " GROUP "=");
		if (group && group < own + strcspn(own, ":")
			    ? list_has(group + strlen(" " GROUP "="), component)
			    : place == component)
			break;
		own += strcspn(own, ":");
		if (!*own)
			break;
	}
	task->own = own;
}

/* 1: typed for this component; 0: for another one; -1: for none. The last one counts. */
static int typed_value(const struct task *task, const char *name, char value[static WORD])
{
	const char *found = task->typed, *end = task->own + strcspn(task->own, ":");
	char key[32];
	int r = -1;

	snprintf(key, sizeof(key), " %s=", name);
	while ((found = strstr(found, key))) {
		found += strlen(key);
		r = r > 0 ? r : 0;
		if (found < task->own || found > end)
			continue;
		snprintf(value, WORD, "%.*s", (int)strcspn(found, " :"), found);
		r = 1;
	}
	return r;
}

/* value: "" for none. */
static bool option_value(const struct task *task, size_t i, char value[static WORD])
{
	struct spank_option option = options[i];
	char *given = NULL;
	int typed;

	*value = '\0';
	typed = task->own ? typed_value(task, option.name + strlen(PREFIX), value) : -1;
	if (typed >= 0)
		return typed > 0;
	if (spank_option_getopt(task->spank, &option, option.has_arg ? &given : NULL) !=
	    ESPANK_SUCCESS)
		return false;
	snprintf(value, WORD, "%s", value_given(given) ? given : "");
	return true;
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
 * was submitted, whose number of queues is no limit here. */
static void leave_lease(const struct task *task, bool has_gpus)
{
	spank_t spank = task->spank;
	char job[16] = "";

	if (!has_variable(spank, "GPUARB_LEASE"))
		return;
	(void)spank_getenv(spank, PROCESSES, job, sizeof(job));
	if (strtoul(job, NULL, 10) != task->job)
		spank_unsetenv(spank, "GPU_MAX_HW_QUEUES");
	spank_unsetenv(spank, "GPUARB_LEASE");
	spank_unsetenv(spank, "GPUARB_EFFECTIVE_CUS");
	spank_unsetenv(spank, "HSA_CU_MASK");
	if (!has_gpus)
		spank_unsetenv(spank, "ROCR_VISIBLE_DEVICES");
}

/* ---- the token ----------------------------------------------------------------------------- */

static int append_gpus(const struct task *task, const char *name, char text[static 2 * GPUS_MAX])
{
	char *end = text + strlen(text);

	if (spank_getenv(task->spank, name, end, GPUS_MAX) != ESPANK_NOSPACE)
		return 0;
	slurm_error("gpuarb: %s=%.40s... has more than %d bytes", name, end, GPUS_MAX - 1);
	return -1;
}

/* The GPUs of the task: those of the step, and which of them it sees. With ConstrainDevices of cgroup.conf the latter are
 * counted within the step, so that they are the same numbers in two steps with different GPUs. A longer text than a
 * token takes is its hash (FNV-1a). */
static int write_gpus(const struct task *task, const char *of_step, char ret[static VISIBLE + 1])
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	char text[2 * GPUS_MAX] = "";

	if (append_gpus(task, of_step, text) < 0)
		return -1;
	strcat(text, "/");
	if (append_gpus(task, "ROCR_VISIBLE_DEVICES", text) < 0)
		return -1;
	if (strlen(text) <= VISIBLE) {
		snprintf(ret, VISIBLE + 1, "%.*s", VISIBLE, text);
		return 0;
	}
	for (const char *c = text; *c; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	snprintf(ret, VISIBLE + 1, "%016" PRIx64, hash);
	return 0;
}

/* The lease around a task, of the batch script, has all GPUs of the job on its node: the steps there share it, on all of
 * these GPUs or some. Other tasks with other GPUs than their neighbours have another lease. */
static void find_token(const struct task *task, const char *gpus, char token[static WORD])
{
	char node[WORD] = "", mine[WORD + 32], around[3 * WORD];

	snprintf(token, WORD, "slurm-%" PRIu32 "%s%s", task->job, *gpus ? "-gpu" : "", gpus);
	if (!*gpus)
		return;
	(void)spank_getenv(task->spank, "SLURMD_NODENAME", node, sizeof(node));
	snprintf(mine, sizeof(mine), "%" PRIu32 ":%s:", task->job, node);
	if (spank_getenv(task->spank, TOKEN, around, sizeof(around)) == ESPANK_SUCCESS &&
	    strncmp(around, mine, strlen(mine)) == 0) {
		snprintf(token, WORD, "%.127s", around + strlen(mine));
		return;
	}
	snprintf(around, sizeof(around), "%s%s", mine, token);
	spank_setenv(task->spank, TOKEN, around, 1);
}

/* Whether it shares no lease: an adaptable lease is for one command. gpuarbctl refuses one that has a token. */
static bool is_alone(const struct task *task, unsigned processes)
{
	char text[16];

	return processes == 1 &&
	       (task->step == SLURM_BATCH_SCRIPT ||
		spank_getenv(task->spank, ADAPTABLE, text, sizeof(text)) != ESPANK_SUCCESS ||
		strtoul(text, NULL, 10) != task->job);
}

static void ask_sharing(const struct task *task, const char *gpus, struct words *words)
{
	bool adaptable = option_value(task, OPTION_ADAPTABLE, (char[WORD]){ 0 });
	unsigned processes = find_processes(task->spank, task->job);
	char value[WORD], token[WORD];

	if (option_value(task, OPTION_PROCESSES, value))
		processes = (unsigned)strtoul(value, NULL, 10);
	else
		words_add(words, "--processes=%u", processes);
	if (!adaptable)
		words_add(words, "--fixed");
	if (adaptable && is_alone(task, processes)) {
		snprintf(value, sizeof(value), "%" PRIu32, task->job);
		if (task->step == SLURM_BATCH_SCRIPT)
			spank_setenv(task->spank, ADAPTABLE, value, 1);
		return;
	}
	find_token(task, gpus, token);
	words_add(words, "--token=%s", token);
}

/* of_step: the variable with the GPUs that Slurm gave; NULL: none. */
static int ask(const struct task *task, const char *of_step, struct words *words)
{
	char gpus[VISIBLE + 1] = "", value[WORD], word[WORD];

	if (of_step) {
		words_add(words, "--gpu=all");
		keep_first_list(task->spank);
		if (write_gpus(task, of_step, gpus) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (!option_value(task, i, value))
			continue;
		option_word(options[i].name, *value ? value : NULL, word);
		words_add(words, "%s", word);
	}
	ask_sharing(task, gpus, words);
	words_add(words, "--name=slurm-%" PRIu32, task->job);
	return 0;
}

/* gpuarbctl=PATH of plugstack.conf is for one that is not installed. */
static const char *find_program(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (strncmp(argv[i], "gpuarbctl=", strlen("gpuarbctl=")) == 0)
			return argv[i] + strlen("gpuarbctl=");
	return GPUARBCTL;
}

static int wrap(const struct task *task, int number, const char *program)
{
	struct words words = { .n = 0 };
	const char *of_step = task->step == SLURM_BATCH_SCRIPT ? "SLURM_JOB_GPUS"
							       : "SLURM_STEP_GPUS";

	if (!has_variable(task->spank, of_step))
		of_step = NULL;
	leave_lease(task, of_step != NULL);
	words_add(&words, "%s", program);
	words_add(&words, "run");
	if (ask(task, of_step, &words) < 0)
		return -1;
	if (number > 0)
		words_add(&words, "--quiet");
	words_add(&words, "--");
	return task_wrap(task->spank, words.word, words.n);
}

/* As the user of the job, in the process that becomes the task. */
int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
	struct task task = { .spank = spank };
	int number = 0;

	if (spank_get_item(spank, S_JOB_ID, &task.job) == ESPANK_SUCCESS &&
	    spank_get_item(spank, S_JOB_STEPID, &task.step) == ESPANK_SUCCESS &&
	    spank_get_item(spank, S_TASK_ID, &number) == ESPANK_SUCCESS) {
		task_load_typed(&task);
		return option_value(&task, OPTION_CUS, (char[WORD]){ 0 })
			       ? wrap(&task, number, find_program(argc, argv))
			       : 0;
	}
	slurm_error("gpuarb: Slurm does not tell the number of the job");
	return -1;
}
