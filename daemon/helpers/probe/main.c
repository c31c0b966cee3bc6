/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * gpuarb-probe: subscribes to the events of the driver for gpuarbd, and sends it what libhsakmt says of
 * the GPUs. It is started for each connection to its socket, which is its standard input.
 *
 * It opens /dev/kfd, which nobody but it does for gpuarbd: while a process has it open, the partition mode
 * of no GPU can be changed. The event descriptors outlive it and are not bound to a process, so there are
 * none of a card whose mode can be changed: daemon/observe/driver-events.c has the reason. To receive
 * events of all processes they must be made with CAP_SYS_ADMIN (kfd_smi_event_open()).
 */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include HSAKMT_HEADER

#include "helpers/probe-protocol.h"
#include "util/base.h"
#include "util/fd.h"
#include "util/log.h"

/* Of <linux/kfd_ioctl.h>, which includes a header of libdrm. */
struct smi_events_args {
	uint32_t gpu_id;
	uint32_t fd; /* is returned */
};
#define IOC_SMI_EVENTS _IOWR('K', 0x1f, struct smi_events_args)

/* Event n is bit n - 1 of what is subscribed. */
enum {
	VM_FAULT = 1,
	THROTTLE = 2,
	PRE_RESET = 3,
	POST_RESET = 4,
	MIGRATE_START = 5,
	EVICTION = 9,
	RESTORE = 10,
	ALL_PROCESSES = 64
};
#define EVENT(n) (UINT64_C(1) << ((n)-1))

/* A full buffer of the driver drops events silently: resets have one of their own. */
static const uint64_t subscriptions[PROBE_FDS] = {
	EVENT(THROTTLE) | EVENT(PRE_RESET) | EVENT(POST_RESET) | EVENT(ALL_PROCESSES),
	EVENT(VM_FAULT) | EVENT(EVICTION) | EVENT(RESTORE) | EVENT(MIGRATE_START) |
		EVENT(ALL_PROCESSES),
};

/* The answer, so far. */
struct probe {
	int kfd;
	struct probe_answer answer;
	int fds[PROBE_GPUS * PROBE_FDS];
	size_t n_fds;
};

/* The answer is the error and a sentence, which is logged, too. Returns the error. */
PRINTF_LIKE(3, 4)
static int fail(struct probe *probe, int error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(probe->answer.text, sizeof(probe->answer.text), format, ap);
	va_end(ap);
	log_warning("%s", probe->answer.text);
	probe->answer.n = 0;
	probe->n_fds = 0;
	return probe->answer.error = error;
}

/* ---- one GPU --------------------------------------------------------------------------- */

/* libhsakmt 5.2 does not tell the id by which the driver knows a node. 0: the node is gone. */
static uint32_t read_gpu_id(unsigned node)
{
	_cleanup_fd_ int fd = -1;
	char path[80], text[16];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/topology/nodes/%u/gpu_id", node);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return (uint32_t)strtoul(text, NULL, 10);
}

/* Returns an event descriptor of the GPU. */
static int subscribe(int kfd, uint32_t gpu_id, uint64_t events)
{
	struct smi_events_args args = { .gpu_id = gpu_id };

	if (ioctl(kfd, IOC_SMI_EVENTS, &args) < 0)
		return -errno;
	if (write((int)args.fd, &events, sizeof(events)) != (ssize_t)sizeof(events)) {
		int r = -errno;

		close((int)args.fd);
		return r;
	}
	return (int)args.fd;
}

static struct probe_gpu describe(const HsaNodeProperties *node, uint32_t gpu_id)
{
	const HSA_ENGINE_ID *engine = &node->EngineId;
	uint32_t per_engine = node->NumSdmaQueuesPerEngine;

	return (struct probe_gpu){
		.kfd_gpu_id = gpu_id,
		.gfx_target = engine->ui32.Major * 10000U + engine->ui32.Minor * 100U +
			      engine->ui32.Stepping,
		.cus = node->NumSIMDPerCU > 0 ? node->NumFComputeCores / node->NumSIMDPerCU : 0,
		.queue_slots = node->NumCpQueues,
		.sdma_queues = node->NumSdmaEngines * per_engine,
		.sdma_xgmi_queues = node->NumSdmaXgmiEngines * per_engine,
	};
}

/* The lowest bits of the location are the number of the partition. */
static bool can_switch(const HsaNodeProperties *node)
{
	char path[96];

	snprintf(path, sizeof(path),
		 "/sys/bus/pci/devices/%04x:%02x:%02x.0/available_compute_partition", node->Domain,
		 node->LocationId >> 8 & 0xff, node->LocationId >> 3 & 0x1f);
	return access(path, F_OK) == 0 || errno != ENOENT;
}

static int add_gpu(struct probe *probe, const HsaNodeProperties *node, uint32_t gpu_id)
{
	struct probe_gpu gpu = describe(node, gpu_id);

	gpu.subscribed = !can_switch(node);
	for (size_t i = 0; gpu.subscribed && i < PROBE_FDS; i++) {
		int r = subscribe(probe->kfd, gpu_id, subscriptions[i]);

		if (r < 0)
			return fail(probe, r == -ENOTTY ? -EOPNOTSUPP : r,
				    "GPU id %u: cannot subscribe to events of the driver: %s",
				    gpu_id, strerror(-r));
		probe->fds[probe->n_fds++] = r;
	}
	probe->answer.gpus[probe->answer.n++] = gpu;
	return 0;
}

/* ---- all of them ------------------------------------------------------------------------ */

static void add_gpus(struct probe *probe, unsigned n_nodes)
{
	int r = 0;

	for (unsigned i = 0; i < n_nodes && r >= 0 && probe->answer.n < PROBE_GPUS; i++) {
		HsaNodeProperties node;
		uint32_t gpu_id;

		if (hsaKmtGetNodeProperties(i, &node) != HSAKMT_STATUS_SUCCESS ||
		    node.NumFComputeCores == 0)
			continue;
		gpu_id = read_gpu_id(i);
		if (gpu_id != 0)
			r = add_gpu(probe, &node, gpu_id);
	}
}

static void find_gpus(struct probe *probe)
{
	HsaSystemProperties system;
	int r;

	if (probe->kfd < 0) {
		r = errno == ENOENT || errno == ENODEV || errno == ENXIO ? -EOPNOTSUPP : -errno;
		fail(probe, r, "cannot open /dev/kfd: %s", strerror(errno));
		return;
	}
	r = (int)hsaKmtOpenKFD();
	if (r != HSAKMT_STATUS_SUCCESS) {
		fail(probe, -EIO, "libhsakmt cannot open /dev/kfd: HSAKMT_STATUS %d", r);
		return;
	}
	r = (int)hsaKmtAcquireSystemProperties(&system);
	if (r == HSAKMT_STATUS_SUCCESS)
		add_gpus(probe, system.NumNodes);
	else
		fail(probe, -EIO, "libhsakmt cannot read the topology: HSAKMT_STATUS %d", r);
	hsaKmtCloseKFD();
}

static int run(void)
{
	struct probe probe = { .answer.protocol = PROBE_PROTOCOL };
	ssize_t n = recv(STDIN_FILENO, &(char){ 0 }, 1, 0);
	int r;

	if (n <= 0)
		return n < 0 ? -errno : 0; /* 0: gpuarbd has hung up */
	probe.kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	find_gpus(&probe);
	r = send_with_fds(STDIN_FILENO, &probe.answer, sizeof(probe.answer), 0, probe.fds,
			  probe.n_fds);
	return r < 0 ? r : probe.answer.error;
}

int main(int argc, char *argv[])
{
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		puts("gpuarb-probe " GPUARB_VERSION);
		return EXIT_SUCCESS;
	}
	if (argc == 1 && !isatty(STDIN_FILENO))
		return run() < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	fprintf(stderr,
		"gpuarb-probe: systemd starts it for each connection to gpuarb-probe.socket; see "
		"gpuarbd(8)\n");
	return 2;
}
