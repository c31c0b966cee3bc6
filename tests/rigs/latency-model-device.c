/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Replaces HIP in the program behind `gpuarbctl latency`. $LATENCY_MODEL names the failure, a word
 * of the table below. At the end the numbers of streams and games go to standard error.
 */

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "await.h"
#include "client/latency/compiler.h"
#include "client/latency/kernel.h"
#include "latency-model.h"

struct whole {
	struct model gpu;
	struct latency_model model;
	struct device inner;
	const struct stop *stop;
	bool blocks, blocks_together;
	char file[256]; /* in $LATENCY_BESIDE; "": none yet */
};

static const struct place strays = { 0, 1, 0, 2 }, slow = { 0, 2, 1, 4 };

static const struct scenario {
	const char *name;
	struct latency_model model;
	const char *problem;
} scenarios[] = {
	{ "", { 0 }, "" },
	{ "slow", { .slow = &slow }, "" },
	{ "slow-pair", { .slow_pair = 400 }, "" },
	{ "strays", { .strays = &strays, .strays_to = { 0, 3, 1, 6 } }, "" },
	{ "wanders", { .wanders = true }, "" },
	{ "no-queue", { .fail_at = 5, .fail_with = -EDQUOT }, "the budget is used up" },
	{ "no-slot", { .fail_at = 5, .fail_with = -EBUSY }, "HIP got no queue" },
	{ "no-first-slot", { .fail_at = 1, .fail_with = -EBUSY }, "HIP got no queue" },
	{ "no-memory", { .fail_at = 6, .fail_with = -ENOMEM }, "hipMalloc: out of memory" },
	{ "bad-mask", { .fail_at = 7, .fail_with = -ERANGE }, "no CU in common" },
	{ "silent", { .answer = STAYS_SILENT }, "" },
	{ "alone", { .answer = MEETS_NOBODY }, "" },
	{ "some-alone", { .answer = MEETS_NOBODY, .answer_from = 50, .answer_to = 51 }, "" },
	{ "no-mask", { .ignores_masks = true }, "" },
	{ "hangs",
	  { .fail_at = 1, .fail_with = -ETIMEDOUT },
	  "a kernel has not ended within 60 s" },
	{ "hangs-later",
	  { .fail_at = 7, .fail_with = -ETIMEDOUT },
	  "a kernel has not ended within 60 s" },
	{ "jumps", { .jumps = 2 }, "" },
	{ "warm", { .hot_from = 40, .hot_to = 60 }, "" },
	{ "hot", { .noise = 0.3 }, "" },
	{ "slots", { .slots = 24 }, "" },
	{ "stuck", { .slots = 24, .hangs_at = 27 }, "" },
	{ "no-pause", { .no_pause = true }, "" },
	{ "blocks", { 0 }, "" }, /* waits until there is a reason to stop */
	/* The same with several queues, which no neighbour has; and neighbours die after their first kernel. */
	{ "blocks-together", { 0 }, "" },
};

static int create(void *data, const uint32_t *mask, size_t words, void **ret)
{
	struct whole *whole = data;

	return whole->inner.calls->create(&whole->model, mask, words, ret);
}

static int create_raw(void *data, const uint32_t *mask, size_t words, void **ret)
{
	struct whole *whole = data;

	return whole->inner.calls->create_raw(&whole->model, mask, words, ret);
}

static void destroy(void *data, void *stream)
{
	struct whole *whole = data;

	whole->inner.calls->destroy(&whole->model, stream);
}

static int play(void *data, void *const streams[static 2], unsigned rules, unsigned lanes,
		struct outcome *ret)
{
	struct whole *whole = data;

	if (whole->blocks && whole->model.games == 3) {
		fprintf(stderr, "blocks\n");
		return whole->stop->wait(whole->stop->data, -1);
	}
	return whole->inner.calls->play(&whole->model, streams, rules, lanes, ret);
}

/* The processes of one calibration see each other by files in $LATENCY_BESIDE, named by kind and pid. */
static void look_beside(struct whole *whole, const struct work *work)
{
	const char *path = getenv("LATENCY_BESIDE");
	const struct timespec moment = { 0, 1000000 };
	char own[256];
	DIR *directory;
	struct dirent *entry;
	FILE *file;

	if (!path)
		return;
	snprintf(own, sizeof(own), "%s/%s.%d", path, neighbours_names[work->kind], getpid());
	if (!*whole->file) {
		file = fopen(own, "we");
		if (!file || fclose(file) != 0)
			abort();
		snprintf(whole->file, sizeof(whole->file), "%s", own);
	}
	whole->model.beside = 0;
	directory = opendir(path);
	while (directory && (entry = readdir(directory)))
		if (entry->d_name[0] != '.' && !strstr(whole->file, entry->d_name)) {
			whole->model.beside++;
			whole->model.beside_kind = entry->d_name[0] == 'm' ? NEIGHBOURS_MEMORY
									   : NEIGHBOURS_COMPUTE;
		}
	closedir(directory);
	nanosleep(&moment, NULL);
}

/* The second word of the command. */
static bool is_neighbour(void)
{
	char words[64] = "";
	FILE *file = fopen("/proc/self/cmdline", "re");

	if (!file || fread(words, 1, sizeof(words) - 1, file) == 0 || fclose(file) != 0)
		abort();
	return strcmp(words + strlen(words) + 1, "neighbour") == 0;
}

/* Has its neighbour, where it has one, ended? */
static bool is_alone(struct whole *whole, const struct work *work)
{
	siginfo_t child = { 0 };
	bool has_child = waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0;

	look_beside(whole, work);
	return whole->model.beside == 0 && (!has_child || child.si_pid != 0);
}

static int spin(void *data, void *stream, const struct work *work, struct wave *ret,
		struct spun *ret_spun)
{
	struct whole *whole = data;

	look_beside(whole, work);

	if (whole->blocks && whole->model.games == 3) {
		fprintf(stderr, "blocks\n");
		return whole->stop->wait(whole->stop->data, -1);
	}
	if (whole->blocks_together && whole->model.games == 1 && is_neighbour()) {
		close(STDIN_FILENO); /* the last word to the other process */
		close(STDOUT_FILENO);
		unlink(whole->file);
		_exit(EXIT_FAILURE);
	}
	if (whole->blocks_together && !is_neighbour())
		AWAIT_STATE(is_alone(whole, work));
	return whole->inner.calls->spin(&whole->model, stream, work, ret, ret_spun);
}

static int together(void *data, void *const *streams, unsigned n, const struct work *work,
		    double *ret_host_usec)
{
	struct whole *whole = data;

	look_beside(whole, work);
	if (whole->blocks_together) {
		fprintf(stderr, "blocks\n");
		return whole->stop->wait(whole->stop->data, -1);
	}
	return whole->inner.calls->together(&whole->model, streams, n, work, ret_host_usec);
}

static int change(void *data, const uint32_t *const masks[static 2], size_t words, unsigned times,
		  struct costs *ret)
{
	struct whole *whole = data;

	return whole->inner.calls->change(&whole->model, masks, words, times, ret);
}

static void close_whole(void *data)
{
	struct whole *whole = data;

	if (*whole->file)
		unlink(whole->file);

	fprintf(stderr, "model: %zu streams, %zu at most, %zu left, %zu games, %s\n",
		whole->model.made, whole->model.peak, whole->model.live, whole->model.games,
		whole->model.rules & GAME_SAME_LINE ? "one line" : "two lines");
	free(whole);
}

static const struct scenario *find(const char *name)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (strcmp(scenarios[i].name, name) == 0)
			return &scenarios[i];
	}
	fprintf(stderr, "no scenario %s\n", name);
	abort();
}

static void find_gpu(struct gpuarb *gpuarb, const char *name, struct model *ret)
{
	struct gpuarb_view *view;
	const struct gpuarb_gpu *gpus;
	char problem[256];
	size_t n;

	if (gpuarb_look(gpuarb, &view) < 0)
		abort();
	n = gpuarb_view_gpus(view, &gpus);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(gpus[i].name, name) == 0 &&
		    model_of_gpu(&gpus[i], ret, problem, sizeof(problem)) < 0)
			abort();
	}
	gpuarb_view_free(view);
}

/* The model runs no kernel. Some targets make the process of the compiler end. */
int kernel_compile(const char *target, char **ret_code, size_t *ret_size, char *buf, size_t size)
{
	if (strcmp(target, "gfx-crash") == 0)
		abort();
	if (strcmp(target, "gfx-leave") == 0)
		_exit(EXIT_FAILURE);
	if (strcmp(target, "gfx-interrupt") == 0)
		raise(SIGINT);
	if (strcmp(target, "gfx-unknown") == 0) {
		snprintf(buf, size, "the kernel was not compiled for %s: unknown", target);
		return -EIO;
	}
	*ret_code = strdup("code");
	*ret_size = 4;
	return *ret_code ? 0 : -ENOMEM;
}

int device_open(struct gpuarb *gpuarb, struct gpuarb_lease *lease, size_t partition,
		const struct stop *stop, struct device *ret)
{
	static const struct device_calls calls = { create, create_raw, destroy, play,
						   spin,   together,   change,  close_whole };
	const char *name = getenv("LATENCY_MODEL");
	const char *target = getenv("LATENCY_TARGET");
	const struct scenario *scenario = find(name ? name : "");
	struct whole *whole;
	char *code;
	size_t size;
	int r;

	r = compiler_run(target ? target : "gfx1030", &code, &size, ret->problem,
			 sizeof(ret->problem));
	if (r < 0)
		return r;
	free(code);
	whole = calloc(1, sizeof(*whole));
	if (!whole)
		abort();
	*whole = (struct whole){ .model = scenario->model, .stop = stop };
	find_gpu(gpuarb, gpuarb_lease_gpu(lease, partition), &whole->gpu);
	whole->model.gpu = &whole->gpu;
	whole->blocks = strcmp(scenario->name, "blocks") == 0;
	whole->blocks_together = strcmp(scenario->name, "blocks-together") == 0;
	latency_model_open(&whole->model, &whole->inner);
	*ret = (struct device){ .calls = &calls, .data = whole, .emulated = true };
	snprintf(ret->problem, sizeof(ret->problem), "%s", scenario->problem);
	return 0;
}
