/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the filter of a capped lease costs a program: calls that create a queue, with as many queues as
 * the row tells, and other ioctls. The floor is the same call without a filter, and a listener that
 * allows every call at once. The calls go to /dev/null: the driver's own time is not in them.
 *
 *	GPUARBD=… GPUARB_ROOT=… bench-cap
 */

#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include "bench/bench.h"
#include "check-cond.h"
#include "machine.h"
#include "filtered.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#define SYNC_WAKE_UP 1UL

/* Allows each call, until no process is under the filter. */
static void *allow_all(void *listener)
{
	union {
		struct seccomp_notif report;
		char room[512];
	} u;
	struct seccomp_notif_resp response = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	struct pollfd ready = { .fd = *(int *)listener, .events = POLLIN };

	(void)ioctl(ready.fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP);
	while (poll(&ready, 1, -1) == 1 && !(ready.revents & POLLHUP)) {
		memset(&u, 0, sizeof(u));
		if (ioctl(ready.fd, SECCOMP_IOCTL_NOTIF_RECV, &u) < 0)
			continue;
		response.id = u.report.id;
		(void)ioctl(ready.fd, SECCOMP_IOCTL_NOTIF_SEND, &response);
	}
	return NULL;
}

struct row {
	const char *name, *key;
	double p50, p99; /* microseconds */
};
static struct row rows[16];
static size_t n_rows;

static void add(const char *name, const char *key, const struct filtered *process,
		enum filtered_command command, int wanted)
{
	uint64_t *nsec = process->shared->nsec;

	CHECK(filtered_after(process, command) == wanted);
	rows[n_rows++] = (struct row){ name, key,
				       (double)bench_quantile(nsec, FILTERED_SAMPLES, 0.5) / 1e3,
				       (double)bench_quantile(nsec, FILTERED_SAMPLES, 0.99) / 1e3 };
}

static void measure_floors(void)
{
	struct filtered process = filtered_start(false);
	pthread_t thread;
	int listener;

	add("create a queue, no filter (floor)", "create_plain", &process, FILTERED_MEASURE,
	    ENOTTY);
	add("another ioctl, no filter (floor)", "other_plain", &process, FILTERED_OTHER, ENOTTY);
	filtered_end(&process);

	process = filtered_start(true);
	listener = process.listener;
	CHECK(pthread_create(&thread, NULL, allow_all, &listener) == 0);
	add("create a queue, all allowed (floor)", "create_allow_all", &process, FILTERED_MEASURE,
	    ENOTTY);
	process.listener = -1;
	filtered_end(&process);
	CHECK(pthread_join(thread, NULL) == 0);
	close(listener);
}

static struct filtered start_capped(struct machine *machine, unsigned queues)
{
	struct filtered process = filtered_start(true);
	struct live_lease lease = granted(
		call(with(call_arbiter(machine->bus, "Reserve"), "aa{sv}a{sv}", 1, 2, "cus", "u",
			  15, "queues", "u", queues, 1, "process", "h", process.pidfd)));

	CHECK(is_fine(
		call(with(call_lease(machine->bus, lease.path, "Cap"), "h", process.listener))));
	close(process.listener);
	process.listener = -1;
	CHECK(filtered_after(&process, FILTERED_PROVE) == EBADF);
	close(lease.holder);
	return process;
}

static void measure_caps(struct machine *machine)
{
	_cleanup_(filtered_end) struct filtered process = start_capped(machine, 8);

	add("another ioctl, capped", "other_capped", &process, FILTERED_OTHER, ENOTTY);
	add("create a queue, capped, 0 of 8", "create_0", &process, FILTERED_MEASURE, ENOTTY);
	machine_use(machine, process.pid, 0, 4);
	add("create a queue, capped, 4 of 8", "create_4", &process, FILTERED_MEASURE, ENOTTY);
	machine_use(machine, process.pid, 0, 8);
	add("create a queue, capped, 8 of 8: refused", "create_8", &process, FILTERED_MEASURE,
	    ENOMEM);
}

static void print(void)
{
	printf("%-42s %9s %9s\n", "", "p50 us", "p99 us");
	for (size_t i = 0; i < n_rows; i++)
		printf("%-42s %9.2f %9.2f\n", rows[i].name, rows[i].p50, rows[i].p99);
	printf("\n{");
	for (size_t i = 0; i < n_rows; i++)
		printf("%s\"%s\":{\"p50_us\":%.3f,\"p99_us\":%.3f}", i ? "," : "", rows[i].key,
		       rows[i].p50, rows[i].p99);
	printf("}\n");
}

int main(void)
{
	struct machine machine;
	int errors = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (rig_missing()) {
		fprintf(stderr, "%s\n", rig_missing());
		return 1;
	}
	measure_floors();
	machine_build(&machine, 1);
	dup2(null, STDERR_FILENO); /* gpuarbd tells of each lease */
	machine_boot(&machine);
	dup2(errors, STDERR_FILENO);
	close(errors);
	close(null);
	measure_caps(&machine);
	machine_halt(&machine);
	print();
	return 0;
}
