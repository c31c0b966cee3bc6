/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What leases cost: resident memory, and the time until the next daemon is ready, and until it has
 * answered, when a daemon with leases is killed. The floor is the same without a lease. Build it
 * without sanitizers.
 *
 *	GPUARBD=… GPUARB_ROOT=… SERVICE_MANAGER=… bench-restart [ROOT [LEASES]]
 */

#include <signal.h>

#include "bench/client.h"

#define ROUNDS 20

struct figures {
	uint64_t ready[ROUNDS], answer[ROUNDS];
};

static void measure(struct rig *rig, sd_bus *bus, struct figures *ret)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t start = bench_nsec();

		CHECK(kill(rig->daemon, SIGKILL) == 0);
		rig_hear(rig, "died");
		rig_hear(rig, "ready");
		ret->ready[i] = bench_nsec() - start;
		gpu_number(bus, "CusFree");
		ret->answer[i] = bench_nsec() - start;
	}
}

/* Of one CU that they share: they all fit. */
static double msec(uint64_t *samples, double q)
{
	return (double)bench_quantile(samples, ROUNDS, q) / 1e6;
}

static void row(const char *name, uint64_t *samples)
{
	printf("%-36s %9.1f %9.1f\n", name, msec(samples, 0.5), msec(samples, 1));
}

int main(int argc, char *argv[])
{
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
	static struct figures none, full;
	int *holders = calloc(n, sizeof(*holders));
	struct rig rig;
	unsigned before, empty, resident;
	sd_bus *bus;

	if (rig_missing()) {
		fprintf(stderr, "%s\n", rig_missing());
		return 1;
	}
	rig_new(&rig);
	rig_write(&rig, "gpuarbd.conf", "[daemon]\noversubscribe = besteffort\n");
	client_start_daemon(&rig, "--simulate=radeon-vii", true);
	bus = rig_connect(&rig, getuid());
	measure(&rig, bus, &none);
	empty = (unsigned)rig_resident_kib(rig.daemon);
	for (size_t i = 0; i < n; i++)
		holders[i] = granted(call(ask_for(bus, "cus=1 queues=1 isolation=shared"))).holder;
	before = gpu_number(bus, "CusFree");
	resident = (unsigned)rig_resident_kib(rig.daemon);
	measure(&rig, bus, &full);
	CHECK(gpu_number(bus, "CusFree") == before);

	printf("%-36s %9s %9s\n", "SIGKILL to", "p50 ms", "max ms");
	row("ready, no lease (floor)", none.ready);
	row("first answer, no lease (floor)", none.answer);
	printf("%zu leases:\n", n);
	row("ready", full.ready);
	row("first answer", full.answer);
	printf("resident: %u KiB, without a lease %u KiB\n", resident, empty);
	printf("\n{\"leases\":%zu,\"empty_kib\":%u,\"full_kib\":%u,\"floor_ready_ms\":%.2f,\"floor_answer_ms\":%.2f,"
	       "\"ready_ms\":%.2f,\"answer_ms\":%.2f,\"answer_max_ms\":%.2f}\n",
	       n, empty, resident, msec(none.ready, 0.5), msec(none.answer, 0.5),
	       msec(full.ready, 0.5), msec(full.answer, 0.5), msec(full.answer, 1));
	for (size_t i = 0; i < n; i++)
		close(holders[i]);
	free(holders);
	leave(bus);
	rig_done(&rig);
	return 0;
}
