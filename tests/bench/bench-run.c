/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What gpuarbctl run adds to the start of a program: the time from fork() to the first byte that the
 * program writes, and to its end. The floors are the same program without run; env, which does nothing but
 * execute the program; gpuarbctl --version, which does little but load the libraries that run needs; and
 * the first call of a new connection to the bus, for which gpuarbd looks up the caller. Together they
 * are what any program costs that asks gpuarbd first. Rounds of all alternate.
 *
 *	GPUARBCTL=… GPUARBD=… GPUARB_AGENT_DIR=… GPUARB_ROOT=… SERVICE_MANAGER=… bench-run
 */

#include <sys/wait.h>

#include "bench/client.h"

#define SAMPLES 200U

enum how {
	PLAIN,
	ENV,
	LOADED,
	FIXED,
	ADAPTABLE,
	N_HOW,
};

static const char *const names[N_HOW] = { "plain", "env", "libraries", "fixed", "adaptable" };

struct times {
	uint64_t first[SAMPLES], end[SAMPLES];
};

static _Noreturn void execute(enum how how)
{
	const char *ctl = getenv("GPUARBCTL");
	const char *mode = how == FIXED ? "--fixed" : "--adaptable";

	if (how == PLAIN)
		execl("/bin/echo", "echo", "begins", (char *)NULL);
	else if (how == ENV)
		execl("/usr/bin/env", "env", "/bin/echo", "begins", (char *)NULL);
	else if (how == LOADED)
		execl(ctl, "gpuarbctl", "--version", (char *)NULL);
	else
		execl(ctl, "gpuarbctl", "run", "--quiet", mode, "--cus=15", "--", "/bin/echo",
		      "begins", (char *)NULL);
	_exit(127);
}

static void time_run(enum how how, unsigned i, struct times *ret)
{
	uint64_t start = bench_nsec();
	int out[2], status;
	char byte;
	pid_t pid;

	CHECK(pipe2(out, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		dup2(out[1], STDOUT_FILENO);
		execute(how);
	}
	close(out[1]);
	CHECK(read(out[0], &byte, 1) == 1);
	ret->first[i] = bench_nsec() - start;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	ret->end[i] = bench_nsec() - start;
	close(out[0]);
}

static uint64_t time_connection(const struct rig *rig)
{
	uint64_t start = bench_nsec();
	sd_bus *bus = rig_connect(rig, getuid());

	CHECK(is_fine(call(call_new(bus, GPUARB_PATH, "org.freedesktop.DBus.Peer", "Ping"))));
	start = bench_nsec() - start;
	leave(bus);
	return start;
}

static double usec(uint64_t *samples, double part)
{
	return (double)bench_quantile(samples, SAMPLES, part) / 1e3;
}

int main(void)
{
	static struct times times[N_HOW];
	static uint64_t connections[SAMPLES];
	struct rig rig;

	if (rig_missing() || !getenv("GPUARBCTL")) {
		fprintf(stderr, "%s\n", rig_missing() ? rig_missing() : "no GPUARBCTL");
		return 1;
	}
	rig_new(&rig);
	client_start_daemon(&rig, "--simulate=radeon-vii", true);
	for (unsigned i = 0; i < SAMPLES; i++) {
		for (unsigned how = 0; how < N_HOW; how++)
			time_run(how, i, &times[how]);
		connections[i] = time_connection(&rig);
	}

	printf("%-10s %14s %10s %12s %10s\n", "", "first byte p50", "p99 us", "end p50", "p99 us");
	for (unsigned how = 0; how < N_HOW; how++)
		printf("%-10s %14.0f %10.0f %12.0f %10.0f\n", names[how],
		       usec(times[how].first, 0.5), usec(times[how].first, 0.99),
		       usec(times[how].end, 0.5), usec(times[how].end, 0.99));
	printf("%-10s %25s %12.0f %10.0f\n", "connection", "", usec(connections, 0.5),
	       usec(connections, 0.99));
	printf("\n{\"connection_p50_us\":%.0f,", usec(connections, 0.5));
	for (unsigned how = 0; how < N_HOW; how++)
		printf("%s\"%s\":{\"first_p50_us\":%.0f,\"first_p99_us\":%.0f,\"end_p50_us\":%.0f,"
		       "\"end_p99_us\":%.0f}",
		       how ? "," : "", names[how], usec(times[how].first, 0.5),
		       usec(times[how].first, 0.99), usec(times[how].end, 0.5),
		       usec(times[how].end, 0.99));
	printf("}\n");
	rig_done(&rig);
	return 0;
}
