/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* bind LEASE [PID]: binds a process, or else this one, to a lease. Says the name of the error. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

int main(int argc, char *argv[])
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	sd_bus *bus = NULL;
	char path[128];
	int pidfd = (int)syscall(SYS_pidfd_open, argc > 2 ? atoi(argv[2]) : getpid(), 0);

	snprintf(path, sizeof(path), "/org/gpuarb/Arbiter1/lease/%s", argc > 1 ? argv[1] : "");
	if (pidfd < 0 || sd_bus_open_system(&bus) < 0)
		return 2;
	if (sd_bus_call_method(bus, "org.gpuarb.Arbiter1", path, "org.gpuarb.Arbiter1.Lease",
			       "Bind", &error, NULL, "h", pidfd) >= 0)
		return 0;
	fprintf(stderr, "%s: %s\n", error.name, error.message);
	return 1;
}
