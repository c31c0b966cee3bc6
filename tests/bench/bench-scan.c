/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a client of one GPU waits for while another user's processes have many queues on another GPU: reads of a property, a Reserve
 * with its Release, and the removal of a lease after its holder was closed. The floor is the same without these processes.
 *
 *	GPUARBD=… GPUARB_ROOT=… bench-scan [ROOT [PROCESSES QUEUES]]
 */

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "bench/client.h"
#include "machine.h"
#include "util/base.h"

#define STRANGER_UID 4242U
#define READS 4000U
#define READ_PAUSE_USEC 1000U
#define RESERVES 150U
#define ENDS 50U

struct figures {
	unsigned processes, queues;           /* of each */
	uint64_t read[2], reserve[2], end[2]; /* median, p99; nanoseconds */
	double cpu;                           /* part of a core, while properties are read */
};

/* The figures of one call after another. */
static void note(uint64_t *samples, size_t n, uint64_t ret[2])
{
	ret[0] = bench_quantile(samples, n, 0.5);
	ret[1] = bench_quantile(samples, n, 0.99);
}

static void measure_reads(struct rig *rig, sd_bus *bus, struct figures *ret)
{
	static uint64_t samples[READS];
	uint64_t begin = bench_nsec(), cpu = bench_cpu_nsec(rig->daemon);

	for (unsigned i = 0; i < READS; i++) {
		uint64_t from = bench_nsec();

		gpu_number(bus, "CusFree");
		samples[i] = bench_nsec() - from;
		usleep(READ_PAUSE_USEC);
	}
	ret->cpu = (double)(bench_cpu_nsec(rig->daemon) - cpu) / (double)(bench_nsec() - begin);
	note(samples, READS, ret->read);
}

static struct live_lease take_lease(sd_bus *bus)
{
	return granted(call(ask_for(bus, "cus=4 queues=1; class=besteffort")));
}

static void measure_reserves(sd_bus *bus, struct figures *ret)
{
	static uint64_t samples[RESERVES];

	for (unsigned i = 0; i < RESERVES; i++) {
		uint64_t from = bench_nsec();
		struct live_lease lease = take_lease(bus);

		CHECK(is_fine(call(release(bus, lease.path))));
		close(lease.holder);
		samples[i] = bench_nsec() - from;
		usleep(READ_PAUSE_USEC * 21);
	}
	note(samples, RESERVES, ret->reserve);
}

static void measure_ends(sd_bus *bus, struct figures *ret)
{
	static uint64_t samples[ENDS];

	for (unsigned i = 0; i < ENDS; i++) {
		struct live_lease lease = take_lease(bus);
		uint64_t from = bench_nsec();

		close(lease.holder);
		while (lease_exists(bus, lease.path))
			usleep(READ_PAUSE_USEC);
		samples[i] = bench_nsec() - from;
	}
	note(samples, ENDS, ret->end);
}

/* A process of another user, in the tree only as long as it lives. */
static pid_t make_process(const struct machine *machine, unsigned queues)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
		CHECK(getuid() != 0 || setuid(STRANGER_UID) == 0);
		for (;;)
			pause();
	}
	machine_use(machine, pid, 1, queues);
	return pid;
}

static void measure(struct figures *ret)
{
	static struct machine machine;
	pid_t *pids = calloc(ret->processes + 1, sizeof(*pids));
	sd_bus *bus;

	CHECK(pids);
	machine_build(&machine, 2);
	rig_write(&machine.rig, "gpuarbd.conf", ""); /* scans as it is shipped */
	for (unsigned i = 0; i < ret->processes; i++)
		pids[i] = make_process(&machine, ret->queues);
	client_start_daemon(&machine.rig, machine.option, false);
	bus = rig_connect(&machine.rig, getuid());
	measure_reads(&machine.rig, bus, ret);
	measure_reserves(bus, ret);
	measure_ends(bus, ret);
	leave(bus);
	for (unsigned i = 0; i < ret->processes; i++)
		CHECK(kill(pids[i], SIGKILL) == 0 && waitpid(pids[i], NULL, 0) == pids[i]);
	rig_done(&machine.rig);
	free(pids);
}

static double msec(uint64_t nsec)
{
	return (double)nsec / 1e6;
}

static void print_json(const struct figures *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("%s{\"processes\":%u,\"queues\":%u,\"read_p50_ms\":%.3f,\"read_p99_ms\":%.3f,"
		       "\"reserve_p50_ms\":%.3f,\"reserve_p99_ms\":%.3f,\"end_p50_ms\":%.3f,"
		       "\"end_p99_ms\":%.3f,\"cpu\":%.3f}",
		       i ? "," : "{\"rows\":[", rows[i].processes,
		       rows[i].processes * rows[i].queues, msec(rows[i].read[0]),
		       msec(rows[i].read[1]), msec(rows[i].reserve[0]), msec(rows[i].reserve[1]),
		       msec(rows[i].end[0]), msec(rows[i].end[1]), rows[i].cpu);
	printf("]}\n");
}

int main(int argc, char *argv[])
{
	struct figures rows[] = {
		{ .processes = 0, .queues = 0 },    { .processes = 1, .queues = 4096 },
		{ .processes = 8, .queues = 4096 }, { .processes = 512, .queues = 64 },
		{ .processes = 1500, .queues = 0 },
	};
	size_t n = ARRAY_SIZE(rows);

	if (rig_missing()) {
		fprintf(stderr, "%s\n", rig_missing());
		return 1;
	}
	if (argc > 3) {
		rows[1] = (struct figures){ .processes = (unsigned)strtoul(argv[2], NULL, 10),
					    .queues = (unsigned)strtoul(argv[3], NULL, 10) };
		n = 2;
	}
	printf("%-28s %15s %17s %15s %6s\n", "milliseconds: median, p99", "read", "Reserve+Release",
	       "end", "CPU");
	for (size_t i = 0; i < n; i++) {
		char name[64] = "nobody else (floor)";

		if (i > 0)
			snprintf(name, sizeof(name), "%u processes, %u queues", rows[i].processes,
				 rows[i].processes * rows[i].queues);
		measure(&rows[i]);
		printf("%-28s %7.2f %7.2f %8.2f %8.2f %7.2f %7.2f %5.1f%%\n", name,
		       msec(rows[i].read[0]), msec(rows[i].read[1]), msec(rows[i].reserve[0]),
		       msec(rows[i].reserve[1]), msec(rows[i].end[0]), msec(rows[i].end[1]),
		       100 * rows[i].cpu);
		fflush(stdout);
	}
	print_json(rows, n);
	return 0;
}
