/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What one user's flood costs another: the latency of a property read of user 2 while 0, 1, 8 and 64
 * connections of user 1 keep 128 property reads each under way; of gpuarbd, and of a service on the
 * same bus that answers at once and has no limits: what it suffers is the load of dbus-daemon, which
 * walks through all calls under way for each new one. The worst call of the first two seconds, while the
 * flood fills the bus, has a column of its own.
 *
 *	GPUARBD=… GPUARB_ROOT=… bench-flood
 */

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "bench/client.h"

#define NOP_NAME "org.gpuarb.Bench1"
#define ATTACKER 1
#define VICTIM 2
#define CONNECTIONS_MAX 64
#define OUTSTANDING 128
#define SAMPLES 2000
#define PAUSE_USEC 1000 /* between calls of user 2, which stays below max-calls-per-user */
#define BEGIN_NSEC UINT64_C(2000000000)
#define LONGEST_NSEC UINT64_C(10000000000) /* of one measurement */

static const unsigned connections[] = { 0, 1, 8, CONNECTIONS_MAX };
static const char *const services[] = { GPUARB_BUS_NAME, NOP_NAME };
static const char *const titles[] = { "gpuarbd", "no limits" };

/* ---- the service without limits ------------------------------------------------------------- */

static int get_cus(sd_bus *, const char *, const char *, const char *, sd_bus_message *reply,
		   void *, sd_bus_error *)
{
	return sd_bus_message_append(reply, "u", 60);
}

static const sd_bus_vtable vtable[] = { SD_BUS_VTABLE_START(0),
					SD_BUS_PROPERTY("CusFree", "u", get_cus, 0, 0),
					SD_BUS_VTABLE_END };

static _Noreturn void serve(const struct rig *rig, int ready)
{
	sd_event *event = NULL;
	sd_bus *bus;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(sd_event_new(&event) >= 0);
	bus = rig_connect(rig, getuid());
	CHECK(sd_bus_add_object_vtable(bus, NULL, GPUARB_PATH_GPU "/0", GPUARB_INTERFACE_GPU,
				       vtable, NULL) >= 0);
	CHECK(sd_bus_request_name(bus, NOP_NAME, 0) >= 0);
	CHECK(sd_bus_attach_event(bus, event, 0) >= 0);
	CHECK(write(ready, "", 1) == 1);
	sd_event_loop(event);
	_exit(0);
}

/* ---- the flood --------------------------------------------------------------------------------- */

static sd_bus_message *read_cus(sd_bus *bus, const char *service)
{
	sd_bus_message *m;

	CHECK(sd_bus_message_new_method_call(bus, &m, service, GPUARB_PATH_GPU "/0",
					     "org.freedesktop.DBus.Properties", "Get") >= 0);
	CHECK(sd_bus_message_append(m, "ss", GPUARB_INTERFACE_GPU, "CusFree") >= 0);
	return m;
}

static int again(sd_bus_message *answer, void *userdata, sd_bus_error *)
{
	sd_bus *bus = sd_bus_message_get_bus(answer);
	sd_bus_message *m = read_cus(bus, userdata);

	CHECK(sd_bus_call_async(bus, NULL, m, again, userdata, UINT64_MAX) >= 0);
	sd_bus_message_unref(m);
	return 0;
}

static _Noreturn void flood(const struct rig *rig, const char *service, unsigned n, int ready)
{
	sd_event *event = NULL;
	sd_bus *buses[CONNECTIONS_MAX];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(sd_event_new(&event) >= 0);
	for (unsigned i = 0; i < n; i++) {
		buses[i] = rig_connect(rig, ATTACKER);
		CHECK(sd_bus_attach_event(buses[i], event, 0) >= 0);
		for (unsigned j = 0; j < OUTSTANDING; j++) {
			sd_bus_message *m = read_cus(buses[i], service);

			CHECK(sd_bus_call_async(buses[i], NULL, m, again,
						(void *)(uintptr_t)service, UINT64_MAX) >= 0);
			sd_bus_message_unref(m);
		}
	}
	CHECK(write(ready, "", 1) == 1);
	sd_event_loop(event);
	_exit(0);
}

/* ---- the other user ------------------------------------------------------------------------------ */

struct latency {
	unsigned n;
	double p50, p99, begin; /* us */
};

static uint64_t time_call(sd_bus *bus, const char *service)
{
	uint64_t start = bench_nsec();

	CHECK(is_fine(call(read_cus(bus, service))));
	return bench_nsec() - start;
}

static struct latency measure(sd_bus *bus, const char *service)
{
	static uint64_t samples[SAMPLES];
	uint64_t begin = bench_nsec(), worst = 0, took;
	unsigned n = 0;

	do {
		took = time_call(bus, service);
		worst = took > worst ? took : worst;
		usleep(PAUSE_USEC);
	} while (bench_nsec() - begin < BEGIN_NSEC);
	begin = bench_nsec();
	do {
		samples[n++] = time_call(bus, service);
		usleep(PAUSE_USEC);
	} while (n < SAMPLES && bench_nsec() - begin < LONGEST_NSEC);
	return (struct latency){ n, (double)bench_quantile(samples, n, 0.5) / 1e3,
				 (double)bench_quantile(samples, n, 0.99) / 1e3,
				 (double)worst / 1e3 };
}

static struct latency measure_under(const struct rig *rig, const char *service, unsigned n)
{
	sd_bus *victim = rig_connect(rig, VICTIM);
	struct latency latency;
	int ready[2];
	pid_t pid;
	char c;

	CHECK(pipe(ready) == 0);
	pid = fork();
	if (pid == 0)
		flood(rig, service, n, ready[1]);
	CHECK(pid > 0 && read(ready[0], &c, 1) == 1);
	latency = measure(victim, service);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]), close(ready[1]);
	leave(victim);
	return latency;
}

int main(void)
{
	struct latency latency[2][4];
	int ready[2];
	struct rig rig;
	pid_t nop;
	char c;

	if (rig_missing()) {
		fprintf(stderr, "%s\n", rig_missing());
		return 1;
	}
	rig_new(&rig);
	client_start_daemon(&rig, "--simulate=radeon-vii", true);
	CHECK(pipe(ready) == 0);
	nop = fork();
	if (nop == 0)
		serve(&rig, ready[1]);
	CHECK(nop > 0 && read(ready[0], &c, 1) == 1);
	printf("%-12s %12s %8s %12s %12s %10s %10s %12s\n", "service", "connections", "calls",
	       "p50 us", "p99 us", "p50/idle", "p99/idle", "begin us");
	for (unsigned s = 0; s < 2; s++)
		for (unsigned i = 0; i < 4; i++) {
			struct latency *l = &latency[s][i];

			*l = measure_under(&rig, services[s], connections[i]);
			printf("%-12s %12u %8u %12.1f %12.1f %10.2f %10.2f %12.1f\n", titles[s],
			       connections[i], l->n, l->p50, l->p99, l->p50 / latency[s][0].p50,
			       l->p99 / latency[s][0].p99, l->begin);
			fflush(stdout);
		}
	printf("\n[");
	for (unsigned i = 0; i < 8; i++)
		printf("%s{\"service\":\"%s\",\"connections\":%u,\"calls\":%u,\"p50_us\":%.1f,\"p99_us\":%.1f,"
		       "\"begin_us\":%.1f}",
		       i ? "," : "", titles[i / 4], connections[i % 4], latency[i / 4][i % 4].n,
		       latency[i / 4][i % 4].p50, latency[i / 4][i % 4].p99,
		       latency[i / 4][i % 4].begin);
	printf("]\n");
	kill(nop, SIGKILL);
	waitpid(nop, NULL, 0);
	rig_done(&rig);
	return 0;
}
