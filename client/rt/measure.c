/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/measure.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/launch/sibling.h"
#include "util/fd.h"

#define WORDS_MAX 1024U
#define FIRST_KERNEL_MS 60000

/* A shell that starts the command, its arguments, again and again: until this program has ended, and with
 * it the file descriptor that the path names. */
#define AGAIN "while [ -e \"$GPUARB_KERNEL_TIMES\" ] && \"$@\"; do :; done"

static const char *const shell[] = { "sh", "-c", NULL };

const char *const rt_beside_on_names[] = { "engines", "shared", "all", NULL };
const char *const rt_beside_places[] = { "the other shader engines",
					 "other CUs of the same shader engines", "all CUs" };

extern char **environ;

/* Where the preloaded library writes. */
struct record {
	int fd;
	off_t read; /* so far */
};

PRINTF_LIKE(4, 5)
static int failed(char *problem, size_t size, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(problem, size, format, args);
	va_end(args);
	return error;
}

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
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	const char *const *command = again && m->beside ? shell : (const char *const *)m->command;
	char path[64], want[2][40], program[PATH_MAX];
	size_t n = 6;
	int r;

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
	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return -r;
	r = posix_spawnattr_init(&attributes);
	if (r == 0) {
		posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
		posix_spawnattr_setflags(&attributes, again ? POSIX_SPAWN_SETPGROUP : 0);
		/* posix_spawn() does not write to the words. */
		r = posix_spawn(ret, sibling_find("gpuarbctl", GPUARB_CTL, program), &actions,
				&attributes, (char *const *)(uintptr_t)words, environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int finish(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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
			return failed(problem, size, r, "cannot start gpuarbctl run: %s",
				      strerror(-r));
		r = finish(pid);
		if (r != 0)
			return failed(problem, size, -ECHILD,
				      "%s ended with %d on %u shader engines", m->command[0], r,
				      m->sizes[i]);
		r = read_record(m, record, i, beside);
		lines += r > 0 ? r : 0;
	}
	if (r == -EBADMSG || (r >= 0 && lines == 0))
		return failed(problem, size, -EOPNOTSUPP, "%s: %s", strerror(EOPNOTSUPP),
			      r < 0 ? "HIP has no times of a kernel (hipEventElapsedTime)"
				    : "the command launched no kernel by hipLaunchKernel() or "
				      "hipModuleLaunchKernel(), or waited for none");
	if (r == -ENOSPC)
		return failed(problem, size, r, "the command has more than %u kernels",
			      RT_KERNELS_MAX);
	return r < 0 ? failed(problem, size, r, "%s", strerror(-r)) : 0;
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
		return failed(problem, size, -errno, "%s", strerror(errno));
	r = start(m, m->sizes[i], &other, true, &pid);
	if (r < 0)
		return failed(problem, size, r, "cannot start gpuarbctl run: %s", strerror(-r));
	r = await_kernel(&other, pid);
	if (r < 0)
		failed(problem, size, r, "%s launched no kernel on %s, beside %u shader engines",
		       m->beside ? m->beside : m->command[0], rt_beside_places[m->on], m->sizes[i]);
	else
		r = measure_size(m, record, i, true, problem, size);
	kill(-pid, SIGTERM);
	(void)finish(pid);
	if (r < 0)
		return r;
	sink.n_kernels = 0;
	sink.kernels = calloc(RT_KERNELS_MAX, sizeof(*sink.kernels));
	if (!sink.kernels)
		return failed(problem, size, -ENOMEM, "%s", strerror(ENOMEM));
	(void)read_record(&sink, &other, i, true);
	for (size_t k = 0; k < sink.n_kernels; k++)
		m->neighbour += sink.kernels[k].beside[i].count;
	free(sink.kernels);
	return 0;
}

int rt_measure(struct rt_measurement *m, const char *library, char *problem, size_t size)
{
	struct record record = { .fd = memfd_create("kernel-times", MFD_CLOEXEC) };
	_cleanup_fd_ int fd = record.fd;
	int r = 0;

	if (fd < 0 || setenv("LD_PRELOAD", library, 1) < 0)
		return failed(problem, size, -errno, "%s", strerror(errno));
	for (size_t i = 0; i < m->n_sizes && r >= 0; i++) {
		r = measure_size(m, &record, i, false, problem, size);
		if (r >= 0 && (m->sizes[i] < m->engines || m->on == RT_BESIDE_ALL))
			r = measure_beside(m, &record, i, problem, size);
	}
	unsetenv("LD_PRELOAD");
	return r;
}

/* ---- results -------------------------------------------------------------------------------- */

uint64_t rt_kernel_wcet(const struct rt_measurement *m, const struct rt_kernel *kernel, size_t i)
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

unsigned rt_measured_margin(const struct rt_measurement *m)
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
