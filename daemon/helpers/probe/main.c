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

#define NODES_MAX 1024U

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

/* ---- sending ------------------------------------------------------------------------- */

static int send_message(const struct probe_message *message, const int *fds, size_t n)
{
	return send_with_fds(STDIN_FILENO, message, sizeof(*message), 0, fds, n);
}

/* Sends the end, with the error and a sentence, which it also logs. Returns the error. */
PRINTF_LIKE(2, 3)
static int finish(int error, const char *format, ...)
{
	struct probe_message message = { .protocol = PROBE_PROTOCOL,
					 .kind = PROBE_END,
					 .error = error };
	va_list ap;

	va_start(ap, format);
	vsnprintf(message.text, sizeof(message.text), format, ap);
	va_end(ap);
	if (error < 0)
		log_warning("%s", message.text);
	send_message(&message, NULL, 0);
	return error;
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

static struct probe_message describe(const HsaNodeProperties *node, uint32_t gpu_id)
{
	const HSA_ENGINE_ID *engine = &node->EngineId;
	uint32_t per_engine = node->NumSdmaQueuesPerEngine;

	return (struct probe_message){
		.protocol = PROBE_PROTOCOL,
		.kind = PROBE_GPU,
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

static int send_gpu(int kfd, const HsaNodeProperties *node, uint32_t gpu_id)
{
	struct probe_message message = describe(node, gpu_id);
	size_t n = 0, most = can_switch(node) ? 0 : PROBE_FDS;
	int fds[PROBE_FDS], r = 0;

	for (; n < most && r >= 0; n += r >= 0) {
		r = subscribe(kfd, gpu_id, subscriptions[n]);
		if (r >= 0)
			fds[n] = r;
	}
	if (r >= 0)
		r = send_message(&message, fds, n);
	while (n > 0)
		close(fds[--n]);
	return r;
}

/* ---- all of them ------------------------------------------------------------------------ */

static int probe(int kfd, unsigned n_nodes)
{
	unsigned gpus = 0;

	for (unsigned i = 0; i < n_nodes && i < NODES_MAX; i++) {
		HsaNodeProperties node;
		uint32_t gpu_id;
		int r;

		if (hsaKmtGetNodeProperties(i, &node) != HSAKMT_STATUS_SUCCESS ||
		    node.NumFComputeCores == 0)
			continue;
		gpu_id = read_gpu_id(i);
		if (gpu_id == 0)
			continue;
		r = send_gpu(kfd, &node, gpu_id);
		if (r < 0)
			return finish(r == -ENOTTY ? -EOPNOTSUPP : r,
				      "GPU id %u: cannot subscribe to events of the driver: %s",
				      gpu_id, strerror(-r));
		gpus++;
	}
	return finish(0, "%u GPUs", gpus);
}

static int run(void)
{
	HsaSystemProperties system;
	_cleanup_fd_ int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	int r;

	if (kfd < 0) {
		r = errno == ENOENT || errno == ENODEV || errno == ENXIO ? -EOPNOTSUPP : -errno;
		return finish(r, "cannot open /dev/kfd: %s", strerror(errno));
	}
	r = (int)hsaKmtOpenKFD();
	if (r != HSAKMT_STATUS_SUCCESS)
		return finish(-EIO, "libhsakmt cannot open /dev/kfd: HSAKMT_STATUS %d", r);
	r = (int)hsaKmtAcquireSystemProperties(&system);
	r = r == HSAKMT_STATUS_SUCCESS
		    ? probe(kfd, system.NumNodes)
		    : finish(-EIO, "libhsakmt cannot read the topology: HSAKMT_STATUS %d", r);
	hsaKmtCloseKFD();
	return r;
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
