/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gpuarb-enforce: runs as root, and kills processes and freezes units for gpuarbd. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "util/base.h"
#include "util/fd.h"
#include "helpers/enforce/server.h"
#include "helpers/helper-program.h"
#include "util/log.h"

/* The one socket that there is to serve. */
static int find_socket(void)
{
	int n = sd_listen_fds(true), fd = SD_LISTEN_FDS_START, flags;

	if (n != 1 || sd_is_socket_unix(fd, SOCK_SEQPACKET, 1, NULL, 0) <= 0) {
		log_error(
			"no listening SOCK_SEQPACKET socket was passed: start gpuarb-enforce.socket");
		return -EINVAL;
	}
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return fd;
}

static int on_signal(sd_event_source *, const struct signalfd_siginfo *, void *userdata)
{
	server_leave(userdata);
	return 0;
}

static int leave_on_signals(sd_event *event, struct server *server)
{
	int r = sd_event_add_signal(event, NULL, SIGTERM | SD_EVENT_SIGNAL_PROCMASK, on_signal,
				    server);

	return r < 0 ? r
		     : sd_event_add_signal(event, NULL, SIGINT | SD_EVENT_SIGNAL_PROCMASK,
					   on_signal, server);
}

static int run(const struct helper_program *program)
{
	_cleanup_(sd_event_unrefp) sd_event *event = NULL;
	_cleanup_(server_freep) struct server *server = NULL;
	const char *address = getenv("GPUARB_BUS_ADDRESS"), *runtime = getenv("RUNTIME_DIRECTORY");
	_cleanup_fd_ int records = -1;
	int r, fd;

	fd = find_socket();
	if (fd < 0)
		return fd;
	if (runtime) {
		records = open(runtime, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (records < 0)
			return -errno;
	}
	if (address && setenv("DBUS_SYSTEM_BUS_ADDRESS", address, true) < 0)
		return -errno;
	r = sd_event_default(&event);
	if (r >= 0)
		r = server_new(event, fd, program->directory, records, program->timeout * 1000000,
			       program->idle * 1000000, &server);
	if (r >= 0)
		r = leave_on_signals(event, server);
	return r < 0 ? r : sd_event_loop(event);
}

int main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "exit-idle-time", required_argument, NULL, HELPER_IDLE },
		{ "sysfs", required_argument, NULL, HELPER_DIRECTORY },
		{ "timeout", required_argument, NULL, HELPER_TIMEOUT },
		HELPER_OPTIONS,
	};
	struct helper_program program = {
		.name = "gpuarb-enforce",
		.task = "Kills processes and freezes units that use AMD GPUs for gpuarbd, on the socket that\n"
			"systemd passes (gpuarb-enforce.socket).",
		.help = "  --exit-idle-time=SECONDS  exit after SECONDS without a request (30)\n"
			"  --sysfs=DIR               read DIR instead of /sys\n"
			"  --timeout=SECONDS         give systemd SECONDS to freeze or thaw a unit (10)\n",
		.options = options,
		.run = run,
		.idle = 30,
		.timeout = 10,
		.directory = "/sys",
	};

	return helper_program_main(&program, argc, argv);
}
