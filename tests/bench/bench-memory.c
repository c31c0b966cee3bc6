/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the daemon's resident memory is with 0 and with 1,000 leases, and again when they
 * are gone; the floor is the same daemon without a lease. Build it without sanitizers.
 *
 *	GPUARBD=… GPUARB_ROOT=… bench-memory [ROOT [LEASES]]
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/bench.h"
#include "check-cond.h"
#include "dbus/names.h"
#include "rig.h"

/* A lease that shares, of one CU: they all fit. */
static int reserve(sd_bus *bus)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	sd_bus_message *reply = NULL;
	const char *path;
	int fd, r;

	r = sd_bus_call_method(bus, GPUARB_BUS_NAME, GPUARB_PATH, GPUARB_INTERFACE, "Reserve",
			       &error, &reply, "aa{sv}a{sv}", 1, 3, "cus", "u", 1, "queues", "u", 1,
			       "isolation", "s", "shared", 1, "name", "s", "one of many");
	if (r < 0) {
		fprintf(stderr, "%s\n", error.message);
		exit(1);
	}
	CHECK(sd_bus_message_read(reply, "oh", &path, &fd) >= 0);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	CHECK(fd >= 0);
	sd_bus_message_unref(reply);
	return fd;
}

static void await_count(sd_bus *bus, size_t n)
{
	for (;;) {
		sd_bus_message *reply = NULL;
		sd_bus_error error = SD_BUS_ERROR_NULL;
		size_t leases = 0;

		CHECK(sd_bus_call_method(bus, GPUARB_BUS_NAME, GPUARB_PATH,
					 "org.freedesktop.DBus.ObjectManager", "GetManagedObjects",
					 &error, &reply, NULL) >= 0);
		CHECK(sd_bus_message_enter_container(reply, 'a', "{oa{sa{sv}}}") >= 0);
		while (sd_bus_message_enter_container(reply, 'e', "oa{sa{sv}}") > 0) {
			const char *path;

			CHECK(sd_bus_message_read(reply, "o", &path) > 0);
			leases += strstr(path, "/lease/") != NULL;
			CHECK(sd_bus_message_skip(reply, "a{sa{sv}}") > 0);
			sd_bus_message_exit_container(reply);
		}
		sd_bus_message_unref(reply);
		if (leases == n)
			return;
	}
}

int main(int argc, char *argv[])
{
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), errors = dup(STDERR_FILENO);
	struct rlimit files;
	unsigned empty, full, after;
	struct rig rig;
	sd_bus *bus;
	int *holders;

	if (rig_missing()) {
		fprintf(stderr, "%s\n", rig_missing());
		return 1;
	}
	/* The daemon raises its own; a user may have half of what it allows. */
	CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
	files.rlim_cur = files.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
	rig_new(&rig);
	rig_write(&rig, "gpuarbd.conf", "[daemon]\noversubscribe = besteffort\n");
	dup2(null, STDERR_FILENO); /* the daemon tells of every lease */
	rig_start(&rig, "--simulate=radeon-vii,mi300x-cpx");
	dup2(errors, STDERR_FILENO);
	bus = rig_connect(&rig, getuid());
	holders = calloc(n, sizeof(*holders));
	await_count(bus, 0);

	empty = (unsigned)rig_resident_kib(rig.daemon);
	for (size_t i = 0; i < n; i++)
		holders[i] = reserve(bus);
	await_count(bus, n);
	full = (unsigned)rig_resident_kib(rig.daemon);
	for (size_t i = 0; i < n; i++)
		close(holders[i]);
	await_count(bus, 0);
	after = (unsigned)rig_resident_kib(rig.daemon);

	printf("%-28s %9s\n", "gpuarbd", "RSS KiB");
	printf("%-28s %9u\n", "no lease (floor)", empty);
	printf("%zu %-*s %9u\n", n, n > 999 ? 23 : 24, "leases", full);
	printf("%-28s %9u\n", "all of them released", after);
	printf("%-28s %9.2f\n\n", "KiB a lease", n ? (double)(full - empty) / (double)n : 0);
	printf("{\"leases\":%zu,\"empty_kib\":%u,\"full_kib\":%u,\"after_kib\":%u}\n", n, empty,
	       full, after);
	free(holders);
	sd_bus_flush_close_unref(bus);
	rig_done(&rig);
	return 0;
}
