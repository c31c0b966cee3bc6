/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a scan of gpuarb-fdinfo costs, of all processes and of those that may have changed, beside a
 * floor that opens and reads the files of all processes and parses nothing: for 10, 100 and 1000 processes with 20 descriptors each in a pid namespace of their own,
 * none of them a DRM client; and for a directory with as many processes with one client each.
 *
 *	bench-fdinfo
 *
 * The first part needs root.
 */

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "bench/bench.h"
#include "check-cond.h"
#include "fake-procfs.h"
#include "hw/drm-fdinfo.h"
#include "scratch.h"

#define ROUNDS 10
#define AGAIN 60 /* scans: each process is read again twice */
#define DESCRIPTORS 20
#define INTERVAL_USEC 2000000.0 /* the default of audit-interval */

struct figures {
	double floor_usec, all_usec, scan_usec; /* of the last: the mean */
	unsigned clients;
};

static void read_file(int dir, const char *name)
{
	char text[4096];
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!read(fd, text, sizeof(text));
	close(fd);
}

/* Reads every file in DIR/PID/fdinfo. */
static void floor_scan(const char *procfs)
{
	DIR *all = opendir(procfs);
	const struct dirent *process, *entry;

	CHECK(all);
	while ((process = readdir(all))) {
		char path[280];
		int fd;
		DIR *dir;

		if (process->d_name[0] < '0' || process->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "%s/fdinfo", process->d_name);
		fd = openat(dirfd(all), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		dir = fd < 0 ? NULL : fdopendir(fd);
		if (!dir)
			continue;
		while ((entry = readdir(dir)))
			if (entry->d_name[0] != '.')
				read_file(dirfd(dir), entry->d_name);
		closedir(dir);
	}
	closedir(all);
}

static struct figures measure(const char *procfs)
{
	static struct drm_scan scan;
	uint64_t all[ROUNDS], floors[ROUNDS], sum = 0;
	struct drm_reader *reader;

	CHECK(drm_reader_new(procfs, &reader) == 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t start = bench_thread_nsec();

		floor_scan(procfs);
		floors[i] = bench_thread_nsec() - start;
		CHECK(drm_scan_read(reader, true, DRM_SCAN_USEC, &scan) == 0);
		all[i] = scan.cpu_usec;
	}
	for (unsigned i = 0; i < AGAIN; i++) {
		CHECK(drm_scan_read(reader, false, DRM_SCAN_USEC, &scan) == 0);
		sum += scan.cpu_usec;
	}
	drm_reader_free(reader);
	return (struct figures){ (double)bench_quantile(floors, ROUNDS, 0.5) / 1000,
				 (double)bench_quantile(all, ROUNDS, 0.5), (double)sum / AGAIN,
				 scan.n };
}

static void row(const char *what, unsigned n, const struct figures *f)
{
	double interval = f->scan_usec * 100 > INTERVAL_USEC ? f->scan_usec * 100 : INTERVAL_USEC;

	printf("%-22s %9u %8u %9.0f %9.0f %6.2f %9.0f %6.2f %7.1f %7.3f\n", what, n, f->clients,
	       f->floor_usec, f->all_usec, f->all_usec / f->floor_usec, f->scan_usec,
	       f->scan_usec / f->floor_usec, interval / 1e6, 100 * f->scan_usec / interval);
	printf("{\"tree\":\"%s\",\"processes\":%u,\"clients\":%u,\"floor_us\":%.0f,"
	       "\"all_us\":%.0f,\"scan_us\":%.0f,\"interval_s\":%.1f,\"cpu_percent\":%.3f}\n",
	       what, n, f->clients, f->floor_usec, f->all_usec, f->scan_usec, interval / 1e6,
	       100 * f->scan_usec / interval);
	fflush(stdout);
}

static void spawn(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid > 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (unsigned k = 3; k < DESCRIPTORS; k++)
			open("/dev/null", O_RDONLY);
		for (;;)
			pause();
	}
}

/* Is process 1 of a pid namespace: all others die with it. */
static _Noreturn void measure_real(const struct scratch *scratch, unsigned n)
{
	struct figures figures;

	CHECK(mount("proc", scratch->path, "proc", 0, NULL) == 0);
	spawn(n);
	figures = measure(scratch->path);
	row("proc, no client", n, &figures);
	_exit(0);
}

static void run_real(unsigned n)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	pid_t outer = fork(), inner;
	int status;

	CHECK(outer >= 0);
	if (outer == 0) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(77);
		inner = fork();
		CHECK(inner >= 0);
		if (inner == 0)
			measure_real(&scratch, n);
		CHECK(waitpid(inner, &status, 0) == inner);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	CHECK(waitpid(outer, &status, 0) == outer);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		fprintf(stderr, "no namespaces: the real /proc is not measured\n");
	else
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void run_fake(unsigned n)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	struct fake_procfs procfs;
	struct figures figures;

	procfs_new(scratch.path, &procfs);
	for (unsigned i = 1; i <= n; i++) {
		procfs_process(&procfs, (pid_t)i, 500);
		procfs_client(&procfs, (pid_t)i, 5,
			      &(struct procfs_client){ .id = i, .gfx_nsec = i });
	}
	figures = measure(procfs.dir);
	row("tmpfs, 1 client each", n, &figures);
}

int main(void)
{
	static const unsigned sizes[] = { 10, 100, 1000 };

	bench_pin();
	printf("%-22s %9s %8s %9s %9s %6s %9s %6s %7s %7s\n", "", "processes", "clients",
	       "floor us", "all us", "ratio", "again us", "ratio", "every s", "CPU %");
	fflush(stdout);
	for (size_t i = 0; i < 3; i++)
		run_real(sizes[i]);
	for (size_t i = 0; i < 3; i++)
		run_fake(sizes[i]);
	return 0;
}
