/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What one request of each kind costs gpuarbd in CPU time, with 64 GPUs and many leases: the promise is 5 ms
 * for a decision. The floor is Ping: the scan of the hardware that every call brings with it, and an answer.
 *
 *	GPUARBD=… GPUARB_ROOT=… SERVICE_MANAGER=… bench-requests [ROOT [LEASES [adaptable]]]
 */

#include "bench/client.h"
#include "util/base.h"

#define RUNS 9U
#define GPUS 64U
#define KIND_OBJECTS 9U

/* Makes one request of `different` wants, each of other CUs, then the same again; on any GPU. */
static sd_bus_message *ask_many(sd_bus *bus, const char *path, const char *interface,
				const char *method, unsigned wants, unsigned different,
				unsigned cus, bool fits, bool adaptable)
{
	sd_bus_message *m = call_new(bus, path, interface, method);

	CHECK(sd_bus_message_open_container(m, 'a', "a{sv}") >= 0);
	for (unsigned i = 0; i < wants; i++)
		CHECK(sd_bus_message_append(m, "a{sv}", 4, "cus", "u", cus + i % different,
					    "queues", "u", 1, "shape", "s",
					    fits ? "rectangle" : "any", "exact", "b", !fits) >= 0);
	CHECK(sd_bus_message_close_container(m) >= 0);
	if (strcmp(method, "Resize") == 0)
		CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
	else
		CHECK(sd_bus_message_append(m, "a{sv}", 1, "adaptable", "b", adaptable) >= 0);
	return m;
}

static sd_bus_message *plan(sd_bus *bus, unsigned wants, unsigned different, unsigned cus,
			    bool fits)
{
	return ask_many(bus, GPUARB_PATH, GPUARB_INTERFACE, "Plan", wants, different, cus, fits,
			fits);
}

static sd_bus_message *make(sd_bus *bus, unsigned kind, const char *lease)
{
	switch (kind) {
	case 0: return call_new(bus, GPUARB_PATH, "org.freedesktop.DBus.Peer", "Ping");
	case 1: return plan(bus, 1, 1, 200, false);
	case 2: return plan(bus, GPUS, 1, 200, false);
	case 3: return plan(bus, GPUS, 8, 200, false);
	case 4: return plan(bus, 1, 1, 304, true);
	case 5: return plan(bus, GPUS, 1, 4, true);
	case 6: return plan(bus, GPUS, 8, 4, true);
	case 7: return ask_many(bus, lease, GPUARB_INTERFACE_LEASE, "Resize", 1, 1, 8, true, false);
	case 8: return call_arbiter(bus, "ReadLimits");
	case KIND_OBJECTS:
		return call_new(bus, GPUARB_PATH, "org.freedesktop.DBus.ObjectManager",
				"GetManagedObjects");
	default: return NULL;
	}
}

static const char *const names[] = {
	"Ping (floor)",
	"Plan, 1 want, any shape",
	"Plan, 64 equal wants, any shape",
	"Plan, 64 wants of 8 kinds, any shape",
	"Plan, 1 want, the whole GPU",
	"Plan, 64 equal wants, adaptable",
	"Plan, 64 wants of 8 kinds, adaptable",
	"Resize",
	"ReadLimits",
	"GetManagedObjects",
};

/* The most CPU time that gpuarbd uses until it answers the read of a property, while it answers
 * GetManagedObjects to another connection. */
static uint64_t read_beside_objects(const struct rig *rig, sd_bus *bus, sd_bus *other)
{
	struct answer objects;
	uint64_t longest = 0;

	usleep(30000);
	call_send(make(other, KIND_OBJECTS, NULL), &objects);
	CHECK(sd_bus_flush(other) >= 0);
	while (!objects.came) {
		uint64_t start = bench_cpu_nsec(rig->daemon);

		CHECK(is_fine(call(get(bus, GPUARB_PATH, GPUARB_INTERFACE, "Version"))));
		start = bench_cpu_nsec(rig->daemon) - start;
		longest = start > longest ? start : longest;
		CHECK(sd_bus_process(other, NULL) >= 0);
	}
	CHECK(is_fine(objects.m));
	return longest;
}

int main(int argc, char *argv[])
{
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 1900;
	char gpus[GPUS * sizeof("mi300x-spx,")] = "--simulate=mi300x-spx";
	struct live_lease *leases = calloc(n, sizeof(*leases));
	double us[ARRAY_SIZE(names)];
	bool adaptable = argc > 3 && strcmp(argv[3], "adaptable") == 0;
	uint64_t beside[RUNS];
	sd_bus *bus, *other;
	struct rig rig;

	if (rig_missing()) {
		fprintf(stderr, "%s\n", rig_missing());
		return 1;
	}
	for (unsigned i = 1; i < GPUS; i++)
		strcat(gpus, ",mi300x-spx");
	bench_pin();
	rig_new(&rig);
	rig_write(&rig, "gpuarbd.conf",
		  "[daemon]\noversubscribe = besteffort\nmax-leases = 4096\n"
		  "max-leases-per-user = 4096\n");
	client_start_daemon(&rig, gpus, true);
	bus = rig_connect(&rig, getuid());
	for (size_t i = 0; i < n; i++)
		leases[i] = granted(call(ask_many(bus, GPUARB_PATH, GPUARB_INTERFACE, "Reserve", 1,
						  1, 4, true, adaptable)));
	printf("%zu leases on %u GPUs, reserved in %.1f s of CPU time\n%-40s %10s %10s\n", n, GPUS,
	       (double)bench_cpu_nsec(rig.daemon) / 1e9, "request", "p50 us", "most us");
	for (unsigned kind = 0; make(bus, kind, leases[0].path); kind++) {
		uint64_t samples[RUNS];

		for (unsigned i = 0; i < RUNS; i++) {
			uint64_t start;

			usleep(30000);
			start = bench_cpu_nsec(rig.daemon);
			sd_bus_message_unref(call(make(bus, kind, leases[i].path)));
			samples[i] = bench_cpu_nsec(rig.daemon) - start;
		}
		us[kind] = (double)bench_quantile(samples, RUNS, 0.5) / 1e3;
		printf("%-40s %10.0f %10.0f\n", names[kind], us[kind],
		       (double)bench_quantile(samples, RUNS, 1) / 1e3);
		fflush(stdout);
	}
	other = rig_connect(&rig, getuid());
	for (unsigned i = 0; i < RUNS; i++)
		beside[i] = read_beside_objects(&rig, bus, other);
	printf("%-40s %10.0f %10.0f\n", "a read beside GetManagedObjects",
	       (double)bench_quantile(beside, RUNS, 0.5) / 1e3,
	       (double)bench_quantile(beside, RUNS, 1) / 1e3);
	printf("\n{\"leases\":%zu,\"ping_us\":%.0f,\"plan_us\":%.0f,\"objects_us\":%.0f,"
	       "\"read_beside_us\":%.0f}\n",
	       n, us[0], us[3], us[KIND_OBJECTS], (double)bench_quantile(beside, RUNS, 0.5) / 1e3);
	leave(other);
	leave(bus);
	rig_done(&rig);
	free(leases);
	return 0;
}
