/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A Reserve and the Release of its lease, one after the other, and how many system calls gpuarbd makes for
 * both. The floors are a message to another process and back on a socket, and the same over the bus to
 * gpuarbd, which answers Ping without looking at anything. All run on one core, and rounds of all
 * alternate. System calls are counted in rounds of their own, because tracing takes time.
 *
 *	GPUARBD=… GPUARB_ROOT=… SERVICE_MANAGER=… bench-pair
 */

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "bench/client.h"

#define SAMPLES 1000U
#define TRACED 100U

enum what {
	SOCKET,
	PING,
	PAIR,
	N_WHAT,
};

static const char *const names[N_WHAT] = {
	[SOCKET] = "socket, there and back (floor)",
	[PING] = "Ping over the bus (floor)",
	[PAIR] = "Reserve and Release",
};

/* ---- floors ---------------------------------------------------------------------------------- */

/* A process that sends back each byte. */
static int start_echo(void)
{
	int pair[2];
	pid_t pid;
	char byte;

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		while (read(pair[1], &byte, 1) == 1)
			if (write(pair[1], &byte, 1) != 1)
				break;
		_exit(0);
	}
	close(pair[1]);
	return pair[0];
}

static void echo(int socket)
{
	char byte = 0;

	CHECK(write(socket, &byte, 1) == 1 && read(socket, &byte, 1) == 1);
}

static void ping(sd_bus *bus)
{
	sd_bus_message_unref(client_call(
		bus, client_ask(bus, GPUARB_PATH, "org.freedesktop.DBus.Peer", "Ping")));
}

static void pair(sd_bus *bus)
{
	struct client_lease lease = client_reserve(bus, 1, 15, 0);

	client_release(bus, &lease);
}

/* ---- system calls ------------------------------------------------------------------------------ */

static volatile sig_atomic_t enough;

static void on_enough(int signal)
{
	(void)signal;
	enough = 1;
}

/* Counts the system calls of the process until SIGTERM, and writes how many. */
static _Noreturn void trace(pid_t pid, int out)
{
	const struct sigaction action = { .sa_handler = on_enough };
	unsigned long stops = 0;
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGTERM, &action, NULL);
	CHECK(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD) == 0);
	CHECK(ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0);
	CHECK(waitpid(pid, &status, __WALL) == pid);
	CHECK(write(out, &stops, sizeof(stops)) == sizeof(stops));
	while (!enough) {
		if (ptrace(PTRACE_SYSCALL, pid, 0, 0) < 0 || waitpid(pid, &status, __WALL) < 0)
			break; /* EINTR by SIGTERM: this process ends, which ends the trace */
		stops += WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80);
	}
	CHECK(write(out, &stops, sizeof(stops)) == sizeof(stops));
	_exit(0);
}

/* For one pair; 0: processes cannot be traced here. */
static double count_calls(sd_bus *bus, pid_t daemon)
{
	unsigned long stops = 0;
	int fds[2], status;
	pid_t tracer;

	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	tracer = fork();
	CHECK(tracer >= 0);
	if (tracer == 0)
		trace(daemon, fds[1]);
	close(fds[1]);
	if (read(fds[0], &stops, sizeof(stops)) == sizeof(stops)) {
		for (unsigned i = 0; i < TRACED; i++)
			pair(bus);
		CHECK(kill(tracer, SIGTERM) == 0);
		CHECK(read(fds[0], &stops, sizeof(stops)) == sizeof(stops));
	}
	close(fds[0]);
	CHECK(waitpid(tracer, &status, 0) == tracer);
	return (double)stops / 2 / TRACED; /* each call stops at its begin and at its end */
}

/* ---- the table --------------------------------------------------------------------------------- */

/* Returns the CPU time of gpuarbd for one pair. */
static double measure(const struct rig *rig, sd_bus *bus, uint64_t samples[N_WHAT][SAMPLES])
{
	int socket = start_echo();
	uint64_t cpu = 0;

	for (unsigned i = 0; i < SAMPLES; i++)
		for (unsigned what = 0; what < N_WHAT; what++) {
			uint64_t before = bench_cpu_nsec(rig->daemon), start = bench_nsec();

			if (what == SOCKET)
				echo(socket);
			else if (what == PING)
				ping(bus);
			else
				pair(bus);
			samples[what][i] = bench_nsec() - start;
			if (what == PAIR)
				cpu += bench_cpu_nsec(rig->daemon) - before;
		}
	close(socket);
	return (double)cpu / 1e3 / SAMPLES;
}

static double usec(uint64_t *samples, double part)
{
	return (double)bench_quantile(samples, SAMPLES, part) / 1e3;
}

int main(void)
{
	static uint64_t samples[N_WHAT][SAMPLES];
	double cpu, calls;
	struct rig rig;
	sd_bus *bus;

	if (rig_missing()) {
		fprintf(stderr, "%s\n", rig_missing());
		return 1;
	}
	bench_pin();
	rig_new(&rig);
	client_start_daemon(&rig, "--simulate=radeon-vii", true);
	bus = rig_connect(&rig, getuid());
	pair(bus);
	cpu = measure(&rig, bus, samples);
	calls = count_calls(bus, rig.daemon);

	printf("%-34s %9s %9s %9s\n", "", "p50 us", "p99 us", "sockets");
	for (unsigned what = 0; what < N_WHAT; what++)
		printf("%-34s %9.1f %9.1f %9.1f\n", names[what], usec(samples[what], 0.5),
		       usec(samples[what], 0.99),
		       usec(samples[what], 0.5) / usec(samples[SOCKET], 0.5));
	printf("gpuarbd for a pair: %.0f us of CPU, %.0f system calls\n\n", cpu, calls);
	printf("{\"socket_p50_us\":%.1f,\"ping_p50_us\":%.1f,\"pair_p50_us\":%.1f,"
	       "\"pair_p99_us\":%.1f,\"cpu_us\":%.0f,\"calls\":%.0f}\n",
	       usec(samples[SOCKET], 0.5), usec(samples[PING], 0.5), usec(samples[PAIR], 0.5),
	       usec(samples[PAIR], 0.99), cpu, calls);
	leave(bus);
	rig_done(&rig);
	return 0;
}
