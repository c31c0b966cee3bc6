/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What benchmarks do to the shipped daemon. */

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "bench/bench.h"
#include "check-cond.h"
#include "dbus/names.h"
#include "rig.h"

struct client_lease {
	char path[64];
	int holder;
};

/* An answer, which is the caller's; what goes wrong ends the benchmark. */
static inline sd_bus_message *client_call(sd_bus *bus, sd_bus_message *m)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	sd_bus_message *answer = NULL;

	if (sd_bus_call(bus, m, 0, &error, &answer) < 0) {
		fprintf(stderr, "%s: %s\n", error.name, error.message);
		exit(1);
	}
	sd_bus_message_unref(m);
	return answer;
}

static inline sd_bus_message *client_ask(sd_bus *bus, const char *path, const char *interface,
					 const char *member)
{
	sd_bus_message *m;

	CHECK(sd_bus_message_new_method_call(bus, &m, GPUARB_BUS_NAME, path, interface, member) >=
	      0);
	return m;
}

static inline sd_bus_message *client_ask_arbiter(sd_bus *bus, const char *member)
{
	return client_ask(bus, GPUARB_PATH, GPUARB_INTERFACE, member);
}

/* Out of the answer of Reserve, which it frees. */
static inline struct client_lease client_take(sd_bus_message *answer)
{
	struct client_lease lease;
	const char *path;

	CHECK(sd_bus_message_read(answer, "oh", &path, &lease.holder) >= 0);
	snprintf(lease.path, sizeof(lease.path), "%s", path);
	lease.holder = fcntl(lease.holder, F_DUPFD_CLOEXEC, 3);
	CHECK(lease.holder >= 0);
	sd_bus_message_unref(answer);
	return lease;
}

static inline void client_release(sd_bus *bus, struct client_lease *lease)
{
	sd_bus_message *m = client_ask(bus, lease->path, GPUARB_INTERFACE_LEASE, "Release");

	sd_bus_message_unref(client_call(bus, m));
	close(lease->holder);
}

/* The daemon under a service manager, or without; it tells of every lease, to nobody. */
static inline void client_start_daemon(struct rig *rig, const char *hardware, bool managed)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), errors = dup(STDERR_FILENO);
	struct rlimit files;

	CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
	files.rlim_cur = files.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
	dup2(null, STDERR_FILENO);
	if (managed)
		rig_start_managed(rig, hardware, "--store-max=4608");
	else
		rig_start(rig, hardware);
	dup2(errors, STDERR_FILENO);
	close(errors);
	close(null);
}
