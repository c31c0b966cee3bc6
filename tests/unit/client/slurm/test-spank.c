/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The plugin beside a stand-in for Slurm: the functions that Slurm offers to plugins. */

#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "util/base.h"

int slurm_spank_init(spank_t spank, int argc, char **argv);
int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv);
int slurm_spank_task_init(spank_t spank, int argc, char **argv);
spank_err_t spank_prepend_task_argv(spank_t spank, int argc, const char *argv[]);

static struct slurm {
	spank_context_t context;
	struct spank_option registered[16];
	int n_registered;
	char text[128], *options[8][2]; /* name and value of those of the job; value NULL: none */
	char *environment[32];
	uint32_t job, step;
	int task;
	bool silent; /* answers no question */
	char error[512];
} slurm;

static char *command[] = { (char[]){ "solve" }, (char[]){ "a b" }, NULL };

/* A job with these options: "gpuarb-cus=15 gpuarb-wait". */
static void slurm_options(const char *options)
{
	char *rest = slurm.text, *word;

	memset(slurm.options, 0, sizeof(slurm.options));
	snprintf(slurm.text, sizeof(slurm.text), "%s", options);
	for (size_t i = 0; (word = strsep(&rest, " ")); i++) {
		slurm.options[i][0] = strsep(&word, "=");
		slurm.options[i][1] = word;
	}
}

static void slurm_begin(const char *options)
{
	for (size_t i = 0; slurm.environment[i]; i++)
		free(slurm.environment[i]);
	slurm = (struct slurm){ .context = S_CTX_REMOTE, .job = 7 };
	slurm_options(options);
}

/* ---- what Slurm offers to plugins ------------------------------------------------------------ */

void slurm_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(slurm.error, sizeof(slurm.error), format, args);
	va_end(args);
}

spank_context_t spank_context(void)
{
	return slurm.context;
}

const char *spank_strerror(spank_err_t error)
{
	return error == ESPANK_SUCCESS ? "success" : "failure";
}

spank_err_t spank_option_register(spank_t, struct spank_option *option)
{
	slurm.registered[slurm.n_registered++] = *option;
	return ESPANK_SUCCESS;
}

spank_err_t spank_option_getopt(spank_t, struct spank_option *option, char **ret)
{
	for (size_t i = 0; slurm.options[i][0]; i++) {
		if (strcmp(slurm.options[i][0], option->name) != 0)
			continue;
		if (ret)
			*ret = slurm.options[i][1];
		return ESPANK_SUCCESS;
	}
	return ESPANK_ERROR;
}

spank_err_t spank_get_item(spank_t, spank_item_t item, ...)
{
	va_list args;

	if (slurm.silent)
		return ESPANK_ERROR;
	va_start(args, item);
	switch ((int)item) {
	case S_JOB_ID: *va_arg(args, uint32_t *) = slurm.job; break;
	case S_JOB_STEPID: *va_arg(args, uint32_t *) = slurm.step; break;
	case S_TASK_ID: *va_arg(args, int *) = slurm.task; break;
	case S_JOB_ARGV:
		*va_arg(args, int *) = 2;
		*va_arg(args, char ***) = command;
		break;
	case S_JOB_ENV: *va_arg(args, char ***) = slurm.environment; break;
	default: CHECK(!"known");
	}
	va_end(args);
	return ESPANK_SUCCESS;
}

static size_t find_variable(const char *name)
{
	size_t i = 0, n = strlen(name);

	while (slurm.environment[i] &&
	       (strncmp(slurm.environment[i], name, n) != 0 || slurm.environment[i][n] != '='))
		i++;
	return i;
}

spank_err_t spank_getenv(spank_t, const char *name, char *buf, int size)
{
	size_t i = find_variable(name);

	if (!slurm.environment[i])
		return ESPANK_ENV_NOEXIST;
	return snprintf(buf, (size_t)size, "%s", strchr(slurm.environment[i], '=') + 1) < size
		       ? ESPANK_SUCCESS
		       : ESPANK_NOSPACE;
}

spank_err_t spank_unsetenv(spank_t, const char *name)
{
	size_t i = find_variable(name);

	free(slurm.environment[i]);
	for (; slurm.environment[i]; i++)
		slurm.environment[i] = slurm.environment[i + 1];
	return ESPANK_SUCCESS;
}

spank_err_t spank_setenv(spank_t spank, const char *name, const char *value, int overwrite)
{
	CHECK(overwrite);
	spank_unsetenv(spank, name);
	CHECK(asprintf(&slurm.environment[find_variable(name)], "%s=%s", name, value) > 0);
	return ESPANK_SUCCESS;
}

/* Of Slurm 23.11 and later, which executes the words afterwards. */
spank_err_t spank_prepend_task_argv(spank_t, int argc, const char *argv[])
{
	char *all[32];

	if (slurm.silent || access(argv[0], X_OK) < 0)
		return ESPANK_ERROR;
	memcpy(all, argv, (size_t)argc * sizeof(*all));
	memcpy(all + argc, command, sizeof(command));
	execve(all[0], all, slurm.environment);
	return ESPANK_ERROR;
}

/* ---- a task ---------------------------------------------------------------------------------- */

/* What the task prints that stands for gpuarbctl: its words in brackets, then its environment. */
static const char *run_task(void)
{
	static char out[2048];
	char dir[] = "/tmp/gpuarb-test-XXXXXX", path[64], argument[80];
	char *argv[] = { argument, NULL };
	size_t used = 0;
	ssize_t n;
	int pipes[2], status;
	pid_t pid;
	FILE *script;

	CHECK(mkdtemp(dir) && pipe(pipes) == 0);
	snprintf(path, sizeof(path), "%s/gpuarbctl", dir);
	snprintf(argument, sizeof(argument), "gpuarbctl=%s", path);
	script = fopen(path, "w");
	CHECK(script &&
	      fputs("#!/bin/sh\nprintf '[%s]' \"$@\"\necho\nexec /usr/bin/env\n", script) > 0);
	CHECK(fclose(script) == 0 && chmod(path, 0755) == 0);
	pid = fork();
	if (pid == 0) {
		dup2(pipes[1], STDOUT_FILENO);
		_exit(slurm_spank_task_init(NULL, 1, argv) == 0 ? 90 : 91);
	}
	close(pipes[1]);
	while ((n = read(pipes[0], out + used, sizeof(out) - 1 - used)) > 0)
		used += (size_t)n;
	out[used] = '\0';
	close(pipes[0]);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	unlink(path);
	rmdir(dir);
	return out;
}

static bool has(const char *out, const char *text)
{
	if (strstr(out, text))
		return true;
	printf("no %s in: %s\n", text, out);
	return false;
}

TEST(task_starts_under_gpuarbctl_with_the_options_of_the_job)
{
	const char *out;

	slurm_begin("gpuarb-cus=25% gpuarb-queues=4 gpuarb-wait");
	spank_setenv(NULL, "SLURM_TASKS_PER_NODE", "2(x3),12,1", 1);
	out = run_task();
	CHECK(has(out,
		  "[run][--cus=25%][--queues=4][--wait][--processes=12][--fixed][--token=slurm-7]"
		  "[--name=slurm-7][--][solve][a b]\n"));
	CHECK(has(out, "GPUARB_SLURM_PROCESSES=7:12\n"));

	slurm.task = 1; /* one line for the step is enough */
	slurm_options("gpuarb-cus=25% gpuarb-queues=4 gpuarb-wait=5min gpuarb-processes=3 "
		      "gpuarb-class=guaranteed");
	CHECK(has(run_task(),
		  "[run][--cus=25%][--queues=4][--processes=3][--class=guaranteed][--wait=5min]"
		  "[--fixed][--token=slurm-7][--name=slurm-7][--quiet][--][solve]"));
}

TEST(step_asks_for_as_much_as_the_script_that_started_it)
{
	const char *out;

	slurm_begin("gpuarb-cus=15");
	spank_setenv(NULL, "SLURM_TASKS_PER_NODE", "1", 1);
	spank_setenv(NULL, "GPUARB_SLURM_PROCESSES", "7:4", 1);
	spank_setenv(NULL, "GPUARB_LEASE", "3", 1);
	spank_setenv(NULL, "GPUARB_EFFECTIVE_CUS", "15", 1);
	spank_setenv(NULL, "GPU_MAX_HW_QUEUES", "1", 1);
	spank_setenv(NULL, "HSA_CU_MASK", "0:0x7fff", 1);
	spank_setenv(NULL, "ROCR_VISIBLE_DEVICES", "1", 1);
	out = run_task();
	CHECK(has(out, "[--processes=4]"));
	CHECK(!strstr(out, "GPUARB_LEASE=") && !strstr(out, "HSA_CU_MASK="));
	CHECK(!strstr(out, "ROCR_VISIBLE_DEVICES=") && !strstr(out, "GPUARB_EFFECTIVE_CUS="));
	CHECK(has(out, "GPU_MAX_HW_QUEUES=1\n")); /* the user may have set it */

	/* A job that a task of another job has submitted. */
	slurm.job = 8;
	out = run_task();
	CHECK(has(out, "[--processes=1][--fixed][--token=slurm-8]"));
	CHECK(!strstr(out, "GPU_MAX_HW_QUEUES="));
	spank_setenv(NULL, "GPUARB_SLURM_PROCESSES", "nonsense", 1);
	CHECK(has(run_task(), "[--processes=1][--fixed][--token=slurm-8]"));
}

TEST(lease_has_all_gpus_that_slurm_gave)
{
	const char *out;

	slurm_begin("gpuarb-cus=15");
	spank_setenv(NULL, "SLURM_STEP_GPUS", "1,2", 1);
	spank_setenv(NULL, "ROCR_VISIBLE_DEVICES", "1,2", 1);
	spank_setenv(NULL, "CUDA_VISIBLE_DEVICES", "1,2", 1);
	spank_setenv(NULL, "GPU_DEVICE_ORDINAL", "1,2", 1);
	out = run_task();
	CHECK(has(out, "[run][--gpu=all][--cus=15]"));
	CHECK(has(out, "[--token=slurm-7-gpu1,2/1,2]"));
	CHECK(has(out, "ROCR_VISIBLE_DEVICES=1,2\n"));
	CHECK(!strstr(out, "CUDA_VISIBLE_DEVICES") && !strstr(out, "GPU_DEVICE_ORDINAL"));

	slurm.step = SLURM_BATCH_SCRIPT; /* Slurm has another variable for it */
	CHECK(!strstr(run_task(), "--gpu=all"));
	spank_setenv(NULL, "SLURM_JOB_GPUS", "1,2", 1);
	CHECK(has(run_task(), "[--gpu=all]"));
}

/* Slurm numbers what a step sees from 0 where it hides other GPUs from it. */
TEST(steps_on_different_gpus_have_different_leases_although_both_see_gpu_0)
{
	slurm_begin("gpuarb-cus=15");
	spank_setenv(NULL, "ROCR_VISIBLE_DEVICES", "0", 1);
	spank_setenv(NULL, "SLURM_STEP_GPUS", "0", 1);
	CHECK(has(run_task(), "[--token=slurm-7-gpu0/0]"));
	spank_setenv(NULL, "SLURM_STEP_GPUS", "1", 1);
	CHECK(has(run_task(), "[--token=slurm-7-gpu1/0]"));
}

TEST(tasks_on_the_node_of_their_script_share_its_lease)
{
	static const char script[] = "7:node0:slurm-7-gpu0,1/0,1";

	slurm_begin("gpuarb-cus=15");
	spank_setenv(NULL, "SLURMD_NODENAME", "node0", 1);
	slurm.step = SLURM_BATCH_SCRIPT;
	spank_setenv(NULL, "SLURM_JOB_GPUS", "0,1", 1);
	spank_setenv(NULL, "ROCR_VISIBLE_DEVICES", "0,1", 1);
	CHECK(has(run_task(), "GPUARB_SLURM_TOKEN=7:node0:slurm-7-gpu0,1/0,1\n"));

	slurm.step = 0;
	spank_setenv(NULL, "GPUARB_SLURM_TOKEN", script, 1);
	spank_setenv(NULL, "ROCR_VISIBLE_DEVICES", "1", 1);
	CHECK(has(run_task(), "[--token=slurm-7]")); /* without a GPU */
	spank_setenv(NULL, "SLURM_STEP_GPUS", "0,1", 1);
	CHECK(has(run_task(), "[--token=slurm-7-gpu0,1/0,1]"));
	slurm.job = 8;
	CHECK(has(run_task(), "[--token=slurm-8-gpu0,1/1]"));
	slurm.job = 7;
	spank_setenv(NULL, "SLURMD_NODENAME", "node1", 1);
	CHECK(has(run_task(), "[--token=slurm-7-gpu0,1/1]"));
}

TEST(tasks_with_other_gpus_have_another_lease_however_long_the_list_is)
{
	char list[1100], first[64], token[64];

	slurm_begin("gpuarb-cus=15");
	spank_setenv(NULL, "SLURM_STEP_GPUS", "1", 1);
	for (int last = 1; last <= 2; last++) {
		memset(list, '1', 300);
		snprintf(list + 300, sizeof(list) - 300, ",%d", last);
		spank_setenv(NULL, "ROCR_VISIBLE_DEVICES", list, 1);
		snprintf(token, sizeof(token), "%.38s", strstr(run_task(), "[--token=slurm-7-gpu"));
		CHECK(token[36] == ']');
		CHECK(last == 1 || strcmp(token, first) != 0);
		strcpy(first, token);
	}
	memset(list, '1', sizeof(list) - 1);
	list[sizeof(list) - 1] = '\0';
	spank_setenv(NULL, "ROCR_VISIBLE_DEVICES", list, 1);
	CHECK(slurm_spank_task_init(NULL, 0, NULL) == -1);
	CHECK(has(slurm.error, "ROCR_VISIBLE_DEVICES=1111") && has(slurm.error, "1023 bytes"));
}

TEST(lease_of_a_job_of_one_task_is_adaptable_if_it_asks_for_that)
{
	slurm_begin("gpuarb-cus=15 gpuarb-adaptable=(null)");
	CHECK(has(run_task(), "[run][--cus=15][--adaptable][--processes=1][--name=slurm-7][--]"));
	slurm.step = SLURM_BATCH_SCRIPT;
	CHECK(has(run_task(), "GPUARB_SLURM_ADAPTABLE=7\n"));
	/* gpuarbctl refuses what has a token: a step of a script that has such a lease, several tasks. */
	spank_setenv(NULL, "GPUARB_SLURM_ADAPTABLE", "7", 1);
	CHECK(has(run_task(), "[--adaptable][--processes=1][--name=slurm-7][--]"));
	slurm.step = 0;
	CHECK(has(run_task(), "[--adaptable][--processes=1][--token=slurm-7]"));
	slurm.job = 8;
	CHECK(has(run_task(), "[--adaptable][--processes=1][--name=slurm-8][--]"));
	spank_setenv(NULL, "SLURM_TASKS_PER_NODE", "2", 1);
	slurm.job = 9;
	CHECK(has(run_task(), "[--adaptable][--processes=2][--token=slurm-9]"));
}

/* This program as srun or sbatch: prints what the plugin leaves for the tasks. */
__attribute__((constructor)) static void be_srun(void)
{
	const char *context = getenv("TEST_CONTEXT"), *left;

	if (!context)
		return;
	slurm.context = (spank_context_t)atoi(context);
	CHECK(slurm_spank_init_post_opt(NULL, 0, NULL) == 0);
	left = getenv("GPUARB_SLURM_COMPONENTS");
	printf("%s", left ? left : "none");
	fflush(stdout);
	_exit(0);
}

/* What is left by a command with these words, of which one before left "before". */
static const char *left_by(spank_context_t context, const char *words)
{
	static char left[5000];
	_cleanup_(freep) char *command_line = NULL;
	FILE *out;

	CHECK(asprintf(&command_line,
		       "TEST_CONTEXT=%d GPUARB_SLURM_COMPONENTS=before exec /proc/%d/exe %s",
		       (int)context, (int)getpid(), words) > 0);
	out = popen(command_line, "r");
	CHECK(out);
	left[fread(left, 1, sizeof(left) - 1, out)] = '\0';
	CHECK(pclose(out) == 0);
	return left;
}

TEST(components_of_a_heterogeneous_job_have_their_own_options)
{
	char *many = calloc(1, 12000);

	CHECK(strcmp(left_by(S_CTX_LOCAL, "-n1 --gpuarb-cus=15 a : --gpuarb-q 4 --gpuarb-wait b"),
		     " cus=15: queues=4 wait=") == 0);
	CHECK(strcmp(left_by(S_CTX_ALLOCATOR, "a : --gpuarb-wait=5min : --gpuarb-adaptable"),
		     ": wait=5min: adaptable=") == 0);
	CHECK(strcmp(left_by(S_CTX_ALLOCATOR, "a : --gpuarb-cus"), ": cus=") == 0);
	CHECK(strcmp(left_by(S_CTX_LOCAL, "--het-group=1 --gpuarb-cus=5 a : --pack-group 0,2-3 b"),
		     " het-group=1 cus=5: het-group=0,2-3") == 0);
	CHECK(strcmp(left_by(S_CTX_LOCAL, "--het-group=1 a : --het-group=0 b"), "before") == 0);
	/* Words of the command are no options. */
	CHECK(strcmp(left_by(S_CTX_LOCAL,
			     "-lw n0 --gpuarb-cus=1 --overlap a --gpuarb-cus=2 -w : -K -N 1 -lu b "
			     "--het-group=0 c : --nodelist n1 -I6 -- --gpuarb-cus=3 : -n2 --gpuarb-cus=4"),
		     " cus=1::: cus=4") == 0);
	CHECK(strcmp(left_by(S_CTX_LOCAL, "-W 1 --gpuarb-cus=1 : --wait 2 --gpuarb-cus=2"),
		     " cus=1: cus=2") == 0);
	CHECK(strcmp(left_by(S_CTX_ALLOCATOR,
			     "--gpuarb-cus=1 : --exclu -W --wait srun --gpuarb-cus=2 --het-group=1"),
		     " cus=1:") == 0);
	CHECK(strcmp(left_by(S_CTX_LOCAL, "--bcast --gpuarb-cus=8 a : --x11 --gpuarb-cus=4 b"),
		     " cus=8: cus=4") == 0);
	CHECK(strcmp(left_by(S_CTX_ALLOCATOR, "--no-shell --gpuarb-cus=8 : a"), " cus=8:") == 0);
	/* A command without components, and one that leaves the options to those that surround it. */
	CHECK(strcmp(left_by(S_CTX_LOCAL, "--gpuarb-cus=15 --other=: a"), "none") == 0);
	CHECK(strcmp(left_by(S_CTX_LOCAL, "a : b"), "before") == 0);
	CHECK(strcmp(left_by(S_CTX_ALLOCATOR, "a : b"), "none") == 0);
	CHECK(strcmp(left_by(S_CTX_REMOTE, "--gpuarb-cus=15 a"), "before") == 0);
	/* More than there is room for: Slurm's values are taken. */
	strcpy(many, "a :");
	for (int i = 0; i < 700; i++)
		strcat(many, " --gpuarb-cus=1");
	CHECK(strcmp(left_by(S_CTX_LOCAL, many), "none") == 0);
	free(many);
}

TEST(task_takes_the_options_of_its_component)
{
	slurm_begin("gpuarb-cus=45 gpuarb-queues=8");
	spank_setenv(NULL, "GPUARB_SLURM_COMPONENTS", " cus=5 cus=15: cus=30 wait=", 1);
	CHECK(has(run_task(), "[run][--cus=45][--queues=8][--processes=1]")); /* no component */
	spank_setenv(NULL, "SLURM_JOB_ID_HET_GROUP_0", "7", 1);
	spank_setenv(NULL, "SLURM_JOB_ID_HET_GROUP_1", "8", 1);
	spank_setenv(NULL, "SLURM_JOB_ID_PACK_GROUP_0", "7", 1);
	spank_setenv(NULL, "SLURM_JOB_ID_PACK_GROUP_1", "8", 1);
	spank_setenv(NULL, "SLURM_JOB_ID_PACK_GROUP_2", "9", 1);
	CHECK(has(run_task(), "[run][--cus=15][--queues=8][--processes=1]"));
	slurm.job = 8;
	CHECK(has(run_task(), "[run][--cus=30][--queues=8][--wait][--processes=1]"));
	spank_setenv(NULL, "GPUARB_SLURM_COMPONENTS", " het-group=1 cus=5: het-group=0,2-3 cus=6",
		     1);
	CHECK(has(run_task(), "[run][--cus=5]"));
	slurm.job = 7;
	CHECK(has(run_task(), "[run][--cus=6]"));
	slurm.job = 9;
	CHECK(has(run_task(), "[run][--cus=6]"));
	spank_setenv(NULL, "GPUARB_SLURM_COMPONENTS", " het-group=1 cus=5: het-group=0 cus=6", 1);
	CHECK(slurm_spank_task_init(NULL, 0, NULL) == 0); /* nothing was typed for it */
	spank_setenv(NULL, "GPUARB_SLURM_COMPONENTS", " cus=5: cus=6", 1);
	CHECK(slurm_spank_task_init(NULL, 0, NULL) == 0 && !*slurm.error);
}

TEST(task_without_the_option_is_left_alone)
{
	slurm_begin("gpuarb-wait");
	CHECK(slurm_spank_task_init(NULL, 0, NULL) == 0);
	CHECK(!*slurm.error && !slurm.environment[0]);
}

TEST(task_fails_when_gpuarbctl_cannot_be_started)
{
	char *argv[] = { (char[]){ "gpuarbctl=/no/such/gpuarbctl" }, NULL };

	slurm_begin("gpuarb-cus=15");
	CHECK(slurm_spank_task_init(NULL, 1, argv) == -1);
	CHECK(has(slurm.error, "/no/such/gpuarbctl"));
	slurm.silent = true;
	CHECK(slurm_spank_task_init(NULL, 1, argv) == -1);
	CHECK(!strstr(slurm.error, "/no/such/gpuarbctl"));
}

/* ---- options --------------------------------------------------------------------------------- */

static int give(const char *name, const char *value, int remote)
{
	*slurm.error = '\0';
	for (int i = 0; i < slurm.n_registered; i++)
		if (strcmp(slurm.registered[i].name, name) == 0)
			return slurm.registered[i].cb(slurm.registered[i].val, value, remote);
	CHECK(!"registered");
	return -1;
}

TEST(option_of_a_job_is_checked_where_it_is_typed)
{
	static const char *const wrong[][2] = {
		{ "gpuarb-cus", "24x" },    { "gpuarb-cus", "0" },
		{ "gpuarb-cus", "" },       { "gpuarb-cus", "101%" },
		{ "gpuarb-queues", "0" },   { "gpuarb-queues", "9999" },
		{ "gpuarb-class", "gold" }, { "gpuarb-processes", "-1" },
		{ "gpuarb-wait", "soon" },  { "gpuarb-adaptable", "yes" },
	};
	char text[400], start[64];

	slurm_begin("");
	slurm.context = S_CTX_ALLOCATOR;
	CHECK(slurm_spank_init(NULL, 0, NULL) == 0 && slurm.n_registered == 6);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		CHECK(give(wrong[i][0], wrong[i][1], 0) != ESPANK_SUCCESS);
		snprintf(start, sizeof(start), "--%s=%s: ", wrong[i][0], wrong[i][1]);
		CHECK(has(slurm.error, start));
		CHECK(give(wrong[i][0], wrong[i][1], 1) ==
		      ESPANK_SUCCESS); /* gpuarbctl refuses it */
	}
	memset(text, '9', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CHECK(give("gpuarb-cus", text, 0) != ESPANK_SUCCESS && strlen(slurm.error) < 200);

	CHECK(give("gpuarb-cus", "24", 0) == ESPANK_SUCCESS && !*slurm.error);
	CHECK(give("gpuarb-cus", "25%", 0) == ESPANK_SUCCESS);
	CHECK(give("gpuarb-class", "realtime", 0) == ESPANK_SUCCESS);
	CHECK(give("gpuarb-wait", "5min", 0) == ESPANK_SUCCESS);
	CHECK(give("gpuarb-wait", NULL, 0) == ESPANK_SUCCESS);
	CHECK(give("gpuarb-wait", "", 0) == ESPANK_SUCCESS && !*slurm.error);
	CHECK(give("gpuarb-wait", "(null)", 0) == ESPANK_SUCCESS && !*slurm.error);
	CHECK(give("gpuarb-adaptable", "(null)", 0) == ESPANK_SUCCESS && !*slurm.error);
}

TEST(prolog_has_no_options)
{
	slurm_begin("");
	slurm.context = S_CTX_JOB_SCRIPT;
	CHECK(slurm_spank_init(NULL, 0, NULL) == 0 && slurm.n_registered == 0);
}
