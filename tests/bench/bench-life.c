/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From the death of what keeps a lease alive to its end as the bus tells it, from a lease's
 * end to the waking of who waited for it, and what saving has of the time of a Reserve.
 *
 * The floor is a process on the same bus that does nothing but watch: it says on the bus, and
 * on a socket, that what it watches has ended. Rounds of all alternate.
 *
 *	GPUARBD=… GPUARB_ROOT=… SERVICE_MANAGER=… bench-life
 */

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "bench/client.h"
#include "ledger-rig.h"
#include "sys/state/state.h"

#define SAMPLES 500

#define WATCHER "org.gpuarb.Bench1"

/* ---- who only watches ------------------------------------------------------------------- */

struct watched {
	sd_bus *bus;
	int answer;
};

static int on_end(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct watched *watched = userdata;

	(void)events;
	CHECK(send(watched->answer, "", 1, MSG_NOSIGNAL) == 1 || errno == EPIPE);
	CHECK(sd_bus_emit_signal(watched->bus, GPUARB_PATH, WATCHER, "Gone", "u", 1) >= 0);
	CHECK(sd_bus_flush(watched->bus) >= 0);
	sd_event_source_disable_unref(source);
	close(fd);
	close(watched->answer);
	free(watched);
	return 0;
}

static int watch(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct watched *watched = calloc(1, sizeof(*watched));
	int fd, answer;

	(void)error;
	CHECK(watched && sd_bus_message_read(m, "hh", &fd, &answer) >= 0);
	watched->bus = sd_bus_message_get_bus(m);
	watched->answer = fcntl(answer, F_DUPFD_CLOEXEC, 3);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	CHECK(sd_event_add_io(userdata, &(sd_event_source *){ NULL }, fd, EPOLLIN, on_end,
			      watched) >= 0);
	return sd_bus_reply_method_return(m, "");
}

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0), SD_BUS_METHOD("Watch", "hh", "", watch, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END
};

static _Noreturn void serve(const struct rig *rig, int ready)
{
	sd_event *event = NULL;
	sd_bus *bus;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(sd_event_new(&event) >= 0);
	bus = rig_connect(rig, getuid());
	CHECK(sd_bus_add_object_vtable(bus, NULL, GPUARB_PATH, WATCHER, vtable, event) >= 0);
	CHECK(sd_bus_request_name(bus, WATCHER, 0) >= 0);
	CHECK(sd_bus_attach_event(bus, event, 0) >= 0);
	CHECK(write(ready, "", 1) == 1);
	sd_event_loop(event);
	_exit(0);
}

static pid_t start_watcher(const struct rig *rig)
{
	int ready[2];
	pid_t pid;
	char c;

	CHECK(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		serve(rig, ready[1]);
	CHECK(read(ready[0], &c, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* ---- what is measured ------------------------------------------------------------------- */

struct bench {
	struct rig rig;
	sd_bus *bus;
	bool gone; /* told on the bus */
};

enum what {
	HOLDER_FLOOR,
	HOLDER,
	BOUND_FLOOR,
	BOUND,
	WAKE_FLOOR,
	WAKE,
	N_WHAT,
};

static int on_gone(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	(void)m, (void)error;
	((struct bench *)userdata)->gone = true;
	return 0;
}

/* A process that inherits all of our fds, and its pidfd. */
static pid_t start_process(int *ret_pidfd)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	*ret_pidfd = pidfd_open(pid, 0);
	CHECK(*ret_pidfd >= 0);
	return pid;
}

static void ask_to_watch(struct bench *bench, int fd, int answer)
{
	sd_bus_message *m;

	CHECK(sd_bus_message_new_method_call(bench->bus, &m, WATCHER, GPUARB_PATH, WATCHER,
					     "Watch") >= 0);
	CHECK(sd_bus_message_append(m, "hh", fd, answer) >= 0);
	sd_bus_message_unref(client_call(bench->bus, m));
}

/* Kills it and waits for the signal. */
static uint64_t time_death(struct bench *bench, pid_t pid, int pidfd)
{
	uint64_t start;

	bench->gone = false;
	start = bench_nsec();
	CHECK(kill(pid, SIGKILL) == 0);
	while (!bench->gone)
		client_turn(bench->bus);
	start = bench_nsec() - start;
	CHECK(waitpid(pid, NULL, 0) == pid);
	close(pidfd);
	return start;
}

static uint64_t time_holder(struct bench *bench, bool floor)
{
	struct client_lease lease = { .holder = -1 };
	int pair[2], answer[2], pidfd;
	pid_t pid;

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, answer) == 0);
	if (floor)
		ask_to_watch(bench, pair[1], answer[1]);
	else
		lease = client_reserve(bench->bus, 1, 15, 0);
	close(pair[1]);
	pid = start_process(&pidfd);
	close(pair[0]);
	close(answer[0]);
	close(answer[1]);
	if (!floor)
		close(lease.holder);
	return time_death(bench, pid, pidfd);
}

static uint64_t time_bound(struct bench *bench, bool floor)
{
	struct client_lease lease;
	int answer[2], pidfd;
	sd_bus_message *m;
	pid_t pid = start_process(&pidfd);

	if (floor) {
		CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, answer) == 0);
		ask_to_watch(bench, pidfd, answer[1]);
		close(answer[0]);
		close(answer[1]);
		return time_death(bench, pid, pidfd);
	}
	lease = client_reserve(bench->bus, 1, 15, 0);
	m = client_ask(bench->bus, lease.path, GPUARB_INTERFACE_LEASE, "Bind");
	CHECK(sd_bus_message_append(m, "h", pidfd) >= 0);
	sd_bus_message_unref(client_call(bench->bus, m));
	close(lease.holder);
	return time_death(bench, pid, pidfd);
}

static void await_gone(struct bench *bench)
{
	while (!bench->gone)
		client_turn(bench->bus);
	bench->gone = false;
}

static uint64_t time_wake(struct bench *bench, bool floor)
{
	struct client_lease all, next;
	int pair[2], answer[2];
	uint64_t start;

	bench->gone = false;
	if (floor) {
		CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
		CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, answer) == 0);
		ask_to_watch(bench, pair[1], answer[1]);
		close(pair[1]);
		close(answer[1]);
		all.holder = pair[0];
		next.holder = answer[0];
	} else {
		all = client_reserve(bench->bus, 1, 60, 0);
		next = client_reserve(bench->bus, 1, 60, UINT64_MAX);
	}
	start = bench_nsec();
	close(all.holder);
	client_await_input(next.holder);
	start = bench_nsec() - start;
	await_gone(bench);
	close(next.holder);
	if (!floor)
		await_gone(bench);
	return start;
}

static void measure(struct bench *bench, uint64_t samples[N_WHAT][SAMPLES])
{
	for (unsigned i = 0; i < SAMPLES; i++)
		for (unsigned floor = 0; floor < 2; floor++) {
			samples[floor ? HOLDER_FLOOR : HOLDER][i] = time_holder(bench, floor);
			samples[floor ? BOUND_FLOOR : BOUND][i] = time_bound(bench, floor);
			samples[floor ? WAKE_FLOOR : WAKE][i] = time_wake(bench, floor);
		}
}

/* ---- saving ------------------------------------------------------------------------------ */

/* What the daemon does, in this process and on the same file system. */
static void measure_saving(const struct rig *rig, uint64_t *samples)
{
	struct gpu_info gpu = radeon_vii("0000:03:00.0");
	_cleanup_(arbiter_freep) struct arbiter *arbiter = arbiter_of(&gpu, 1);
	struct request request = request_for(15);
	_cleanup_(result_done) struct result result = { 0 };
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	struct state *state;
	struct lease *lease;
	char dir[128];

	snprintf(dir, sizeof(dir), "%s/saving", rig->dir);
	CHECK(mkdir(dir, 0755) == 0 && state_open(dir, NULL, &state, &diagnostics) == 0);
	lease = reserve(arbiter, 1, &request, &result);
	for (unsigned i = 0; i < SAMPLES; i++) {
		uint64_t start = bench_nsec();

		CHECK(state_save(state, arbiter, lease) == 0);
		samples[i] = bench_nsec() - start;
		CHECK(state_forget(state, lease->id) == 0); /* each is a new one */
	}
	state_close(state);
}

static void measure_reserve(sd_bus *bus, uint64_t *samples)
{
	for (unsigned i = 0; i < SAMPLES; i++) {
		uint64_t start = bench_nsec();
		struct client_lease lease = client_reserve(bus, 1, 15, 0);

		samples[i] = bench_nsec() - start;
		client_release(bus, &lease);
	}
}

/* ---- the table ----------------------------------------------------------------------------- */

static void row(const char *name, uint64_t *samples)
{
	double p50 = (double)bench_quantile(samples, SAMPLES, 0.5) / 1e3;

	printf("%-44s %9.1f %9.1f\n", name, p50,
	       (double)bench_quantile(samples, SAMPLES, 0.99) / 1e3);
}

static void json(const char *name, uint64_t *samples, const char *end)
{
	printf("\"%s_p50_ns\":%llu,\"%s_p99_ns\":%llu%s", name,
	       (unsigned long long)bench_quantile(samples, SAMPLES, 0.5), name,
	       (unsigned long long)bench_quantile(samples, SAMPLES, 0.99), end);
}

int main(void)
{
	static const char *const rows[N_WHAT] = {
		[HOLDER_FLOOR] = "holder killed, who only watches (floor)",
		[HOLDER] = "holder killed, lease removed",
		[BOUND_FLOOR] = "bound process killed, who only watches (floor)",
		[BOUND] = "bound process killed, lease removed",
		[WAKE_FLOOR] = "one socket closed, another readable (floor)",
		[WAKE] = "lease closed, who waited is woken",
	};
	static const char *const keys[N_WHAT] = { "holder_floor", "holder",     "bound_floor",
						  "bound",        "wake_floor", "wake" };
	static uint64_t samples[N_WHAT][SAMPLES], saving[SAMPLES], kept[SAMPLES], plain[SAMPLES];
	struct bench bench = { 0 };
	pid_t watcher;

	if (rig_missing()) {
		fprintf(stderr, "%s\n", rig_missing());
		return 1;
	}
	bench_pin();
	rig_new(&bench.rig);
	client_start_daemon(&bench.rig, "--simulate=radeon-vii", true);
	watcher = start_watcher(&bench.rig);
	bench.bus = rig_connect(&bench.rig, getuid());
	measure_reserve(bench.bus, kept);
	CHECK(sd_bus_match_signal(bench.bus, NULL, GPUARB_BUS_NAME, GPUARB_PATH,
				  "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved",
				  on_gone, &bench) >= 0);
	CHECK(sd_bus_match_signal(bench.bus, NULL, WATCHER, GPUARB_PATH, WATCHER, "Gone", on_gone,
				  &bench) >= 0);
	measure(&bench, samples);
	measure_saving(&bench.rig, saving);
	leave(bench.bus);
	rig_stop(&bench.rig);
	client_start_daemon(&bench.rig, "--simulate=radeon-vii", false);
	bench.bus = rig_connect(&bench.rig, getuid());
	measure_reserve(bench.bus, plain);

	printf("%-44s %9s %9s\n", "", "p50 us", "p99 us");
	for (unsigned i = 0; i < N_WHAT; i++)
		row(rows[i], samples[i]);
	row("Reserve, nothing kept for a restart", plain);
	row("Reserve, its holder in the manager's store", kept);
	row("saving a lease, alone", saving);
	printf("%-44s %8.1f%%\n\n{", "saving's share of such a Reserve",
	       100.0 * (double)bench_quantile(saving, SAMPLES, 0.5) /
		       (double)bench_quantile(kept, SAMPLES, 0.5));
	for (unsigned i = 0; i < N_WHAT; i++)
		json(keys[i], samples[i], ",");
	json("reserve_plain", plain, ",");
	json("reserve_kept", kept, ",");
	json("saving", saving, "}\n");
	kill(watcher, SIGKILL);
	waitpid(watcher, NULL, 0);
	leave(bench.bus);
	rig_done(&bench.rig);
	return 0;
}
