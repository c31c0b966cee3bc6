/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What Plan costs on the bus, beside a method of the same argument and reply types that
 * does nothing, on the same private dbus-daemon in the same run, all on one core. The
 * rounds alternate, so that whatever else the machine does meets both.
 *
 *	GPUARBD=… GPUARB_ROOT=… bench-plan
 */

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "check-cond.h"
#include "dbus/names.h"
#include "rig.h"

#define NOP_NAME "org.gpuarb.Bench1"
#define ROUNDS 20
#define CALLS 500

/* ---- the method that does nothing ---------------------------------------------------- */

/* Answers what gpuarbd answers to the same request, word for word. */
static int nop(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	sd_bus_message *template = userdata, *reply = NULL;
	int r;

	(void)error;
	r = sd_bus_message_new_method_return(m, &reply);
	if (r >= 0)
		r = sd_bus_message_rewind(template, true);
	if (r >= 0)
		r = sd_bus_message_copy(reply, template, true);
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	sd_bus_message_unref(reply);
	return r;
}

static const sd_bus_vtable nop_vtable[] = { SD_BUS_VTABLE_START(0),
					    SD_BUS_METHOD("Plan", "aa{sv}a{sv}", "saa{sv}aa{sv}",
							  nop, SD_BUS_VTABLE_UNPRIVILEGED),
					    SD_BUS_VTABLE_END };

static _Noreturn void serve(const struct rig *rig, sd_bus_message *template, int ready)
{
	sd_event *event = NULL;
	sd_bus *bus;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(sd_event_new(&event) >= 0);
	bus = rig_connect(rig, getuid());
	CHECK(sd_bus_add_object_vtable(bus, NULL, GPUARB_PATH, GPUARB_INTERFACE, nop_vtable,
				       template) >= 0);
	CHECK(sd_bus_request_name(bus, NOP_NAME, 0) >= 0);
	CHECK(sd_bus_attach_event(bus, event, 0) >= 0);
	CHECK(write(ready, "", 1) == 1);
	sd_event_loop(event);
	_exit(0);
}

/* ---- the client ---------------------------------------------------------------------- */

static sd_bus_message *call(sd_bus *bus, const char *name)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	sd_bus_message *reply = NULL;
	int r;

	r = sd_bus_call_method(bus, name, GPUARB_PATH, GPUARB_INTERFACE, "Plan", &error, &reply,
			       "aa{sv}a{sv}", 1, 3, "cus", "u", 30, "queues", "u", 4, "gpu", "s",
			       "0", 1, "name", "s", "bench");
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", name, error.message ? error.message : strerror(-r));
		exit(1);
	}
	return reply;
}

static void measure(sd_bus *bus, const char *name, uint64_t *samples)
{
	for (unsigned i = 0; i < CALLS; i++) {
		uint64_t start = bench_nsec();

		sd_bus_message_unref(call(bus, name));
		samples[i] = bench_nsec() - start;
	}
}

int main(void)
{
	static uint64_t nop_ns[ROUNDS * CALLS], plan_ns[ROUNDS * CALLS];
	sd_bus_message *template;
	double ratio, mean[2] = { 0 };
	uint64_t p[4];
	struct rig rig;
	int ready[2];
	sd_bus *bus;
	pid_t pid;
	char c;

	if (rig_missing()) {
		fprintf(stderr, "%s\n", rig_missing());
		return 1;
	}
	bench_pin();
	rig_new(&rig);
	rig_start(&rig, "--simulate=radeon-vii");
	bus = rig_connect(&rig, getuid());
	template = call(bus, GPUARB_BUS_NAME);
	CHECK(pipe(ready) == 0);
	pid = fork();
	if (pid == 0)
		serve(&rig, template, ready[1]);
	CHECK(pid > 0 && read(ready[0], &c, 1) == 1);

	for (unsigned i = 0; i < ROUNDS; i++) {
		measure(bus, NOP_NAME, &nop_ns[i * CALLS]);
		measure(bus, GPUARB_BUS_NAME, &plan_ns[i * CALLS]);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (unsigned i = 0; i < ROUNDS * CALLS; i++) {
		mean[0] += (double)nop_ns[i] / (ROUNDS * CALLS * 1000.0);
		mean[1] += (double)plan_ns[i] / (ROUNDS * CALLS * 1000.0);
	}
	p[0] = bench_quantile(nop_ns, ROUNDS * CALLS, 0.5);
	p[1] = bench_quantile(nop_ns, ROUNDS * CALLS, 0.99);
	p[2] = bench_quantile(plan_ns, ROUNDS * CALLS, 0.5);
	p[3] = bench_quantile(plan_ns, ROUNDS * CALLS, 0.99);
	ratio = (double)p[2] / (double)p[0];

	printf("%-24s %9s %9s %9s\n", "method", "p50 us", "p99 us", "mean us");
	printf("%-24s %9.1f %9.1f %9.1f\n", "no-op (floor)", (double)p[0] / 1e3, (double)p[1] / 1e3,
	       mean[0]);
	printf("%-24s %9.1f %9.1f %9.1f\n", "Plan", (double)p[2] / 1e3, (double)p[3] / 1e3,
	       mean[1]);
	printf("%-24s %9.2f\n\n", "ratio of the medians", ratio);
	printf("{\"nop_p50_ns\":%llu,\"plan_p50_ns\":%llu,\"nop_p99_ns\":%llu,\"plan_p99_ns\":%llu,"
	       "\"ratio\":%.3f}\n",
	       (unsigned long long)p[0], (unsigned long long)p[2], (unsigned long long)p[1],
	       (unsigned long long)p[3], ratio);
	sd_bus_message_unref(template);
	sd_bus_flush_close_unref(bus);
	rig_done(&rig);
	return 0;
}
