/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* rt measure, one of the actions of rt. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/print.h"
#include "client/rt/measure-command.h"
#include "client/rt/measure.h"
#include "client/rt/set.h"
#include "util/number.h"
#include "util/text.h"

#define RUNS 3U /* without --runs */
#define LIBRARY "libgpuarb-kernel-times.so"
#define EMULATOR "/sys/kernel/debug/kfdsim/state"

static bool is_emulated(void)
{
	return access(EMULATOR, F_OK) == 0;
}

/* GPUARB_AGENT_DIR is for a gpuarb that is not installed. */
static int find_library(const struct command *command, char *ret, size_t size)
{
	const char *dir = getenv("GPUARB_AGENT_DIR");

	snprintf(ret, size, "%s/" LIBRARY, dir && *dir ? dir : GPUARB_AGENT_LIBRARY_DIR);
	if (*ret == '/' && !strpbrk(ret, " :") && access(ret, R_OK) == 0)
		return EXIT_OK;
	return fail(
		command, EXIT_FAILED,
		"%s: kernels have no times without %s, which is built with HIP; on Debian it is in "
		"the package gpuarb-latency",
		strerror(EOPNOTSUPP), ret);
}

static int choose_gpu(struct command *command, const struct gpuarb_gpu **ret)
{
	int r = session_snapshot(command);

	if (r != EXIT_OK)
		return r;
	if (command->gpu)
		return session_gpu(command, command->gpu, ret);
	if (command->n_gpus != 1)
		return fail(command, EXIT_USAGE, "there are %zu GPUs: name one with --gpu=GPU",
			    command->n_gpus);
	*ret = command->gpus;
	return EXIT_OK;
}

/* Numbers of whole shader engines: all of them, or those of --sizes. */
static int choose_sizes(const struct command *command, struct rt_measurement *m)
{
	const char *text = command->sizes;
	uint64_t engines, last = 0;

	for (unsigned i = 1; !text && i <= m->engines && m->n_sizes < RT_SIZES_MAX; i++)
		m->sizes[m->n_sizes++] = i;
	while (text && *text) {
		if (number_take(&text, &engines) < 0 || engines <= last || engines > m->engines ||
		    m->n_sizes == RT_SIZES_MAX || (*text && *text++ != ','))
			return fail(
				command, EXIT_USAGE,
				"--sizes=%s: must be ascending numbers of shader engines from 1 to %u, "
				"such as 1,2,%u",
				command->sizes, m->engines, max_u(m->engines, 3));
		m->sizes[m->n_sizes++] = (unsigned)engines;
		last = engines;
	}
	return EXIT_OK;
}

/* ---- output --------------------------------------------------------------------------------- */

/* The end of the name of the kernel, which is what differs most, and an index from the second on. */
static void name_task(const struct rt_kernel *kernel, unsigned index, char ret[static RT_NAME_MAX])
{
	char suffix[16] = "";
	size_t length = strlen(kernel->name), n;

	if (index > 1)
		snprintf(suffix, sizeof(suffix), ".%u", index);
	n = RT_NAME_MAX - 1 - strlen(suffix);
	snprintf(ret, RT_NAME_MAX, "%s%s", kernel->name + (length > n ? length - n : 0), suffix);
	for (char *c = ret; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._@",
			    *c))
			*c = '_';
}

static bool is_named(char (*names)[RT_NAME_MAX], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], names[n]) == 0)
			return true;
	return false;
}

static void print_task(const struct rt_measurement *m, const struct rt_kernel *kernel,
		       const char *name)
{
	printf("\n[task %s]\npartition = measured\n", name);
	print_line(stdout, "# %s", kernel->name);
	for (size_t i = 0; i < m->n_sizes; i++) {
		const struct rt_times *alone = &kernel->alone[i], *beside = &kernel->beside[i];

		printf("# %u CUs: %llu times alone, at most %llu us", m->cus[i], ull(alone->count),
		       ull((alone->longest + 999) / 1000));
		if (beside->count > 0)
			printf("; %llu times beside another program, at most %llu us",
			       ull(beside->count), ull((beside->longest + 999) / 1000));
		if (beside->count > 0 && alone->count == 0)
			fputs(", which is taken for wcet", stdout);
		putchar('\n');
	}
	fputs("# period = TIME\nwcet =", stdout);
	for (size_t i = 0; i < m->n_sizes && rt_kernel_wcet(m, kernel, i) > 0; i++)
		printf(" %u:%llu", m->cus[i], ull((rt_kernel_wcet(m, kernel, i) + 999) / 1000));
	putchar('\n');
}

static void print_text(const struct rt_measurement *m, uint64_t preemption)
{
	char names[RT_KERNELS_MAX][RT_NAME_MAX];

	printf("# %s, %u runs on each partition%s\n", m->gpu, m->runs,
	       is_emulated() ? "; emulated clock" : "");
	puts("[taskset]");
	if (m->neighbour > 0)
		printf("# The worst beside %s on %s, which ran %llu kernels\n"
		       "margin = %u%%\n",
		       m->beside ? m->beside : "the same command", rt_beside_places[m->on],
		       ull(m->neighbour), rt_measured_margin(m));
	if (preemption > 0)
		printf("# By gpuarbctl calibrate\npreemption = %lluus\n", ull(preemption));
	else
		puts("# preemption = TIME: gpuarbctl calibrate measures it");
	puts("\n[partition measured]");
	if (m->host.count > 0)
		printf("# The longest of %llu, by the clock of the host\nhost-submission = %lluus\n",
		       ull(m->host.count), ull((m->host.longest + 999) / 1000));
	for (size_t k = 0; k < m->n_kernels; k++) {
		unsigned index = 0;

		do
			name_task(&m->kernels[k], ++index, names[k]);
		while (is_named(names, k));
		print_task(m, &m->kernels[k], names[k]);
	}
}

static void json_times(struct json_object *map, const char *key, const struct rt_times *times)
{
	struct json_object *row = json_map(map, key);

	json_number(row, "count", times->count);
	json_known(row, "longest_nsec", times->longest, 0);
}

static void print_json(const struct rt_measurement *m, uint64_t preemption)
{
	struct json_object *map = json_map(NULL, NULL), *list, *row, *sizes, *size;

	json_text(map, "gpu", m->gpu);
	json_flag(map, "emulated", is_emulated());
	json_number(map, "runs", m->runs);
	json_known(map, "margin_percent", m->neighbour > 0 ? rt_measured_margin(m) : UINT64_MAX,
		   UINT64_MAX);
	json_known(map, "preemption_usec", preemption, 0);
	json_times(map, "host_submission", &m->host);
	json_text(map, "beside", m->beside);
	json_text(map, "beside_on", rt_beside_on_names[m->on]);
	json_number(map, "neighbour_kernels", m->neighbour);
	list = json_list(map, "kernels");
	for (size_t k = 0; k < m->n_kernels; k++) {
		row = json_map(list, NULL);
		json_text(row, "name", m->kernels[k].name);
		sizes = json_list(row, "sizes");
		for (size_t i = 0; i < m->n_sizes; i++) {
			size = json_map(sizes, NULL);
			json_number(size, "effective_cus", m->cus[i]);
			json_times(size, "alone", &m->kernels[k].alone[i]);
			json_times(size, "beside", &m->kernels[k].beside[i]);
		}
	}
	json_print(stdout, map);
}

int rt_measure_command(struct command *command)
{
	_cleanup_(freep) struct rt_kernel *kernels = calloc(RT_KERNELS_MAX, sizeof(*kernels));
	struct rt_measurement m = { .command = command->rest + 1, .kernels = kernels };
	const struct gpuarb_calibration *calibration;
	const struct gpuarb_gpu *gpu;
	char library[4096], problem[512] = "";
	uint64_t preemption;
	int r = find_library(command, library, sizeof(library));

	if (r == EXIT_OK)
		r = choose_gpu(command, &gpu);
	if (r != EXIT_OK)
		return r;
	m.gpu = gpu->name;
	m.engines = gpu->xccs * gpu->shader_engines;
	m.runs = command->runs > 0 ? command->runs : RUNS;
	m.beside = command->beside;
	if (command->beside_on)
		m.on = (enum rt_beside_on)text_index(rt_beside_on_names, command->beside_on);
	m.unit = gpu->wgp_mode ? 2 : 1;
	m.height = gpu->cus;
	for (unsigned e = 0; e < m.engines; e++)
		m.height = min_u(m.height, gpu->cus_per_shader_engine
						   ? gpu->cus_per_shader_engine[e]
						   : gpu->cus / m.engines);
	if (m.on == RT_BESIDE_SHARED && m.height < 2 * m.unit)
		return fail(
			command, EXIT_USAGE,
			"--beside-on=shared: a shader engine of %s cannot be shared, because it has "
			"%u CUs that are granted together: use --beside-on=all",
			gpu->name, m.unit);
	calibration = gpuarb_view_calibration(command->view, (size_t)(gpu - command->gpus));
	preemption = calibration ? calibration->preemption_usec : 0;
	r = choose_sizes(command, &m);
	if (r != EXIT_OK)
		return r;
	r = kernels ? rt_measure(&m, library, problem, sizeof(problem)) : -ENOMEM;
	if (r < 0)
		return fail(command, EXIT_FAILED, "%s", *problem ? problem : strerror(-r));
	if (command->json)
		print_json(&m, preemption);
	else
		print_text(&m, preemption);
	return EXIT_OK;
}
