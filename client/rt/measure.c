/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* rt measure: execution times of the kernels of a command on partitions of a GPU, alone and beside itself or another one. */

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/launch/agent-start.h"
#include "client/launch/session.h"
#include "client/launch/child.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/print.h"
#include "client/rt/measure.h"
#include "client/rt/set.h"
#include "util/base.h"
#include "util/fd.h"
#include "util/number.h"
#include "util/text.h"

#define RT_SIZES_MAX 32U
#define RT_KERNELS_MAX 256U
#define RT_KERNEL_NAME 200U

struct rt_times {
	uint64_t count, longest; /* nanoseconds */
};

struct rt_kernel {
	char name[RT_KERNEL_NAME];
	struct rt_times alone[RT_SIZES_MAX], beside[RT_SIZES_MAX];
};

/* Where the command beside the measured one runs. */
enum rt_beside_on {
	RT_BESIDE_ENGINES, /* on the other shader engines */
	RT_BESIDE_SHARED,  /* both have CUs of their own of every engine */
	RT_BESIDE_ALL,     /* on all CUs */
};

struct rt_measurement {
	const char *gpu;
	char *const *command; /* NULL after the last word */
	const char
		*beside; /* the command of the shell that runs beside it; NULL: the same command */
	unsigned runs;
	enum rt_beside_on on;
	unsigned engines; /* of the GPU */
	unsigned height;  /* CUs of its smallest engine */
	unsigned unit;    /* CUs that a mask cannot tell apart */

	unsigned sizes[RT_SIZES_MAX]; /* shader engines, ascending */
	unsigned cus[RT_SIZES_MAX];   /* effective CUs of the leases */
	size_t n_sizes;
	struct rt_kernel *kernels; /* room for RT_KERNELS_MAX */
	size_t n_kernels;
	struct rt_times host;
	uint64_t neighbour; /* kernels of the command beside the measured ones */
};

#define WORDS_MAX 1024U
#define FIRST_KERNEL_MS 60000

/* A shell that starts the command, its arguments, again and again: until this program has ended, and with
 * it the file descriptor that the path names. */
#define AGAIN "while [ -e \"$GPUARB_KERNEL_TIMES\" ] && \"$@\"; do :; done"

static const char *const shell[] = { "sh", "-c", NULL };

static const char *const rt_beside_on_names[] = { "engines", "shared", "all", NULL };
static const char *const rt_beside_places[] = { "the other shader engines",
						"other CUs of the same shader engines", "all CUs" };

/* Where the preloaded library writes. */
struct record {
	int fd;
	off_t read; /* so far */
};

/* ---- programs ------------------------------------------------------------------------------- */

/* The options of a partition of so many whole engines, or of as many CUs of every engine; or of what runs beside
 * it. Returns their number. */
static size_t choose_cus(const struct rt_measurement *m, unsigned size, bool beside,
			 char want[2][40], const char **words)
{
	unsigned engines = beside ? m->engines - size : size;
	unsigned units = m->height / m->unit, own = max_u(units * size / m->engines, 1);
	size_t n = 0;

	if (m->on == RT_BESIDE_SHARED) {
		snprintf(want[1], sizeof(want[1]), "--cus=%u",
			 (beside ? units - own : own) * m->unit * m->engines);
		words[n++] = want[1];
		words[n++] = "--isolation=cu";
	} else if (m->on == RT_BESIDE_ALL) {
		words[n++] = "--class=besteffort";
		words[n++] = "--isolation=shared";
	}
	if (m->on == RT_BESIDE_SHARED || (m->on == RT_BESIDE_ALL && beside))
		engines = m->engines;
	snprintf(want[0], sizeof(want[0]), "--shader-engines=%u", engines);
	words[n++] = want[0];
	return n;
}

/* gpuarbctl run, whose standard output is the standard error of this program. again: in a process group
 * of its own. */
static int start(const struct rt_measurement *m, unsigned size, const struct record *record,
		 bool again, pid_t *ret)
{
	const char *words[WORDS_MAX] = {
		"gpuarbctl", "run", "--quiet", "--fixed", "--gpu", m->gpu
	};
	const struct process_fd out = { STDOUT_FILENO, STDERR_FILENO };
	const char *const *command = again && m->beside ? shell : (const char *const *)m->command;
	char path[64], want[2][40], program[PATH_MAX];
	size_t n = 6;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), record->fd);
	n += choose_cus(m, size, again, want, words + n);
	words[n++] = "--";
	if (again) {
		words[n++] = "sh";
		words[n++] = "-c";
		words[n++] = AGAIN;
		words[n++] = "sh";
	}
	for (const char *const *word = command; *word; word++) {
		if (n + 2 == WORDS_MAX)
			return -E2BIG;
		words[n++] = *word;
	}
	if (again && m->beside)
		words[n++] = m->beside;
	if (setenv("GPUARB_KERNEL_TIMES", path, 1) < 0)
		return -errno;
	return process_spawn(sibling_find("gpuarbctl", GPUARB_CTL, program), words, again, &out, 1,
			     ret);
}

/* Until the program has ended a kernel. -ECHILD: it has ended instead; -ETIMEDOUT. */
static int await_kernel(const struct record *record, pid_t pid)
{
	for (int waited = 0; waited < FIRST_KERNEL_MS; waited += 10) {
		if (lseek(record->fd, 0, SEEK_END) > 0)
			return 0;
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return -ECHILD;
		poll(NULL, 0, 10);
	}
	return -ETIMEDOUT;
}

/* ---- records -------------------------------------------------------------------------------- */

static void add_time(struct rt_times *times, uint64_t nsec)
{
	times->count++;
	times->longest = max_u64(times->longest, nsec);
}

static struct rt_kernel *find_kernel(struct rt_measurement *m, const char *name)
{
	struct rt_kernel *kernel;

	for (size_t i = 0; i < m->n_kernels; i++)
		if (strcmp(m->kernels[i].name, name) == 0)
			return &m->kernels[i];
	if (m->n_kernels == RT_KERNELS_MAX)
		return NULL;
	kernel = &m->kernels[m->n_kernels++];
	snprintf(kernel->name, sizeof(kernel->name), "%s", name);
	return kernel;
}

/* -EBADMSG: a kernel without times; -ENOSPC: too many kernels. */
static int read_line(struct rt_measurement *m, const char *line, size_t i, bool beside)
{
	char name[RT_KERNEL_NAME];
	struct rt_kernel *kernel;
	uint64_t nsec;

	if (sscanf(line, "kernel %" SCNu64 " %u %199s", &nsec, &m->cus[i], name) == 3) {
		kernel = find_kernel(m, name);
		if (!kernel)
			return -ENOSPC;
		add_time(beside ? &kernel->beside[i] : &kernel->alone[i], nsec);
		return 0;
	}
	if (sscanf(line, "host %" SCNu64, &nsec) == 1) {
		add_time(&m->host, nsec);
		return 0;
	}
	return -EBADMSG;
}

/* Reads what has been added. Returns the number of lines. */
static int read_record(struct rt_measurement *m, struct record *record, size_t i, bool beside)
{
	_cleanup_(freep) char *line = NULL;
	FILE *file;
	size_t size = 0;
	int r = 0, n = 0, fd = dup(record->fd);

	file = fd < 0 ? NULL : fdopen(fd, "re");
	if (!file)
		return -errno;
	if (fseeko(file, record->read, SEEK_SET) < 0)
		r = -errno;
	while (r >= 0 && getline(&line, &size, file) > 0) {
		n++;
		r = read_line(m, line, i, beside);
	}
	record->read = ftello(file);
	fclose(file);
	return r < 0 ? r : n;
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* The command on so many shader engines, as often as wanted. */
static int measure_size(struct rt_measurement *m, struct record *record, size_t i, bool beside,
			char *problem, size_t size)
{
	int r = 0, lines = 0;

	for (unsigned run = 0; run < m->runs && r >= 0; run++) {
		pid_t pid;

		r = start(m, m->sizes[i], record, false, &pid);
		if (r < 0)
			return refuse(problem, size, r, "cannot start gpuarbctl run: %s",
				      strerror(-r));
		r = process_wait(pid);
		if (r != 0)
			return refuse(problem, size, -ECHILD,
				      "%s ended with %d on %u shader engines", m->command[0], r,
				      m->sizes[i]);
		r = read_record(m, record, i, beside);
		lines += r > 0 ? r : 0;
	}
	if (r == -EBADMSG || (r >= 0 && lines == 0))
		return refuse(problem, size, -EOPNOTSUPP, "%s: %s", strerror(EOPNOTSUPP),
			      r < 0 ? "HIP has no times of a kernel (hipEventElapsedTime)"
				    : "the command launched no kernel by hipLaunchKernel() or "
				      "hipModuleLaunchKernel(), or waited for none");
	if (r == -ENOSPC)
		return refuse(problem, size, r, "the command has more than %u kernels",
			      RT_KERNELS_MAX);
	return r < 0 ? refuse(problem, size, r, "%s", strerror(-r)) : 0;
}

/* Beside another command, which starts again whenever it ends. */
static int measure_beside(struct rt_measurement *m, struct record *record, size_t i, char *problem,
			  size_t size)
{
	struct record other = { .fd = memfd_create("neighbour", MFD_CLOEXEC) };
	_cleanup_fd_ int fd = other.fd;
	struct rt_measurement sink = *m;
	pid_t pid;
	int r;

	if (fd < 0)
		return refuse(problem, size, -errno, "%s", strerror(errno));
	r = start(m, m->sizes[i], &other, true, &pid);
	if (r < 0)
		return refuse(problem, size, r, "cannot start gpuarbctl run: %s", strerror(-r));
	r = await_kernel(&other, pid);
	if (r < 0)
		refuse(problem, size, r, "%s launched no kernel on %s, beside %u shader engines",
		       m->beside ? m->beside : m->command[0], rt_beside_places[m->on], m->sizes[i]);
	else
		r = measure_size(m, record, i, true, problem, size);
	kill(-pid, SIGTERM);
	(void)process_wait(pid);
	if (r < 0)
		return r;
	sink.n_kernels = 0;
	sink.kernels = calloc(RT_KERNELS_MAX, sizeof(*sink.kernels));
	if (!sink.kernels)
		return refuse(problem, size, -ENOMEM, "%s", strerror(ENOMEM));
	(void)read_record(&sink, &other, i, true);
	for (size_t k = 0; k < sink.n_kernels; k++)
		m->neighbour += sink.kernels[k].beside[i].count;
	free(sink.kernels);
	return 0;
}

/* Runs the command on each size. library: what is preloaded into it. -EOPNOTSUPP: its kernels have no times;
 * -ECHILD: a command has failed; -ENOSPC: too many kernels; others of the system. problem has a sentence. */
static int measure(struct rt_measurement *m, const char *library, char *problem, size_t size)
{
	struct record record = { .fd = memfd_create("kernel-times", MFD_CLOEXEC) };
	_cleanup_fd_ int fd = record.fd;
	int r = 0;

	if (fd < 0 || setenv("LD_PRELOAD", library, 1) < 0)
		return refuse(problem, size, -errno, "%s", strerror(errno));
	for (size_t i = 0; i < m->n_sizes && r >= 0; i++) {
		r = measure_size(m, &record, i, false, problem, size);
		if (r >= 0 && (m->sizes[i] < m->engines || m->on == RT_BESIDE_ALL))
			r = measure_beside(m, &record, i, problem, size);
	}
	unsetenv("LD_PRELOAD");
	return r;
}

/* ---- results -------------------------------------------------------------------------------- */

/* The longest time of the kernel alone on this size or a larger one: a time that does not grow with CUs. Where it
 * ran only beside the other program, that time. 0: it ran on none of them. */
static uint64_t rt_kernel_wcet(const struct rt_measurement *m, const struct rt_kernel *kernel,
			       size_t i)
{
	uint64_t longest = 0;

	for (size_t k = i; k < m->n_sizes; k++) {
		bool alone = kernel->alone[k].count > 0;
		const struct rt_times *times = alone ? &kernel->alone[k] : &kernel->beside[k];

		if (times->count > 0)
			longest = max_u64(longest, max_u64(times->longest, 1));
	}
	return longest;
}

/* In percent, rounded up: how much longer any kernel took beside another program. */
static unsigned rt_measured_margin(const struct rt_measurement *m)
{
	uint64_t worst = 100;

	for (size_t k = 0; k < m->n_kernels; k++)
		for (size_t i = 0; i < m->n_sizes; i++) {
			const struct rt_kernel *kernel = &m->kernels[k];
			uint64_t alone = rt_kernel_wcet(m, kernel, i);

			if (alone > 0)
				worst = max_u64(worst, (kernel->beside[i].longest * 100 + alone -
							1) / alone);
		}
	return (unsigned)min_u64(worst - 100, 1000);
}

/* ---- the command line ----------------------------------------------------------------------- */

#define RUNS 3U /* without --runs */
#define LIBRARY "libgpuarb-kernel-times.so"
#define EMULATOR "/sys/kernel/debug/kfdsim/state"

static bool is_emulated(void)
{
	return access(EMULATOR, F_OK) == 0;
}

static int find_library(const struct command *command, char *ret, size_t size)
{
	snprintf(ret, size, "%s/" LIBRARY, agent_dir(GPUARB_AGENT_LIBRARY_DIR));
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

	JSON_FIELDS(row, ("count", times->count), ("longest_nsec", times->longest, 0));
}

static void print_json(const struct rt_measurement *m, uint64_t preemption)
{
	struct json_object *map = json_map(NULL, NULL), *list, *row, *sizes, *size;

	JSON_FIELDS(map, ("gpu", m->gpu), ("emulated", is_emulated()), ("runs", m->runs),
		    ("margin_percent", m->neighbour > 0 ? rt_measured_margin(m) : UINT64_MAX,
		     UINT64_MAX),
		    ("preemption_usec", preemption, 0));
	json_times(map, "host_submission", &m->host);
	JSON_FIELDS(map, ("beside", m->beside), ("beside_on", rt_beside_on_names[m->on]),
		    ("neighbour_kernels", m->neighbour));
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
	r = kernels ? measure(&m, library, problem, sizeof(problem)) : -ENOMEM;
	if (r < 0)
		return fail(command, EXIT_FAILED, "%s", *problem ? problem : strerror(-r));
	if (command->json)
		print_json(&m, preemption);
	else
		print_text(&m, preemption);
	return EXIT_OK;
}
