/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gpuarb-enforce: the one program of gpuarb that runs as root. It kills and freezes for gpuarbd. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "util/base.h"
#include "helpers/enforce/server.h"
#include "util/log.h"

#define EXIT_USAGE 2
#define SECONDS_MAX 86400UL
#define IDLE_SECONDS 30UL
#define BUS_SECONDS 10UL

struct command_line {
	unsigned long idle, timeout; /* seconds */
	const char *sysfs;
	bool done;
};

static void print_help(void)
{
	printf("gpuarb-enforce [OPTION...]\n\n"
	       "Kills processes and freezes units that use AMD GPUs for gpuarbd, on the socket that\n"
	       "systemd passes (gpuarb-enforce.socket).\n\n"
	       "  --exit-idle-time=SECONDS  exit after SECONDS without a request (%lu)\n"
	       "  --sysfs=DIR               read DIR instead of /sys\n"
	       "  --timeout=SECONDS         give systemd SECONDS to freeze or thaw a unit (%lu)\n"
	       "  --help, --version\n\n"
	       "gpuarbd(8), HELPERS, says more.\n",
	       IDLE_SECONDS, BUS_SECONDS);
}

static int parse_seconds(const char *option, const char *text, unsigned long *ret)
{
	unsigned long seconds;
	char *end;

	errno = 0;
	seconds = strtoul(text, &end, 10);
	if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || seconds == 0 ||
	    seconds > SECONDS_MAX) {
		fprintf(stderr, "gpuarb-enforce: --%s=%s: a number of seconds from 1 to %lu\n",
			option, text, SECONDS_MAX);
		return -EINVAL;
	}
	*ret = seconds;
	return 0;
}

static int parse_option(int option, struct command_line *ret)
{
	switch (option) {
	case 'i': return parse_seconds("exit-idle-time", optarg, &ret->idle);
	case 's': ret->sysfs = optarg; return 0;
	case 't': return parse_seconds("timeout", optarg, &ret->timeout);
	case 'h':
		print_help();
		ret->done = true;
		return 0;
	case 'v':
		printf("gpuarb-enforce %s\n", GPUARB_VERSION);
		ret->done = true;
		return 0;
	default: return -EINVAL; /* getopt has said why */
	}
}

static int parse(int argc, char *argv[], struct command_line *ret)
{
	static const struct option options[] = {
		{ "exit-idle-time", required_argument, NULL, 'i' },
		{ "sysfs", required_argument, NULL, 's' },
		{ "timeout", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int option, r;

	while (!ret->done && (option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		r = parse_option(option, ret);
		if (r < 0)
			return r;
	}
	if (!ret->done && optind < argc) {
		fprintf(stderr, "gpuarb-enforce: unexpected argument '%s'\n", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

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
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	r = sd_event_add_signal(event, NULL, SIGTERM, on_signal, server);
	return r < 0 ? r : sd_event_add_signal(event, NULL, SIGINT, on_signal, server);
}

static int run(const struct command_line *line)
{
	_cleanup_(sd_event_unrefp) sd_event *event = NULL;
	_cleanup_(server_freep) struct server *server = NULL;
	const char *address = getenv("GPUARB_BUS_ADDRESS");
	int r, fd;

	fd = find_socket();
	if (fd < 0)
		return fd;
	if (address && setenv("DBUS_SYSTEM_BUS_ADDRESS", address, true) < 0)
		return -errno;
	r = sd_event_default(&event);
	if (r >= 0)
		r = server_new(event, fd, line->sysfs, line->timeout * 1000000,
			       line->idle * 1000000, &server);
	if (r >= 0)
		r = leave_on_signals(event, server);
	if (r >= 0)
		r = sd_event_loop(event);
	if (r < 0)
		log_error("gpuarb-enforce stops: %s", strerror(-r));
	return r;
}

int main(int argc, char *argv[])
{
	struct command_line line = { .idle = IDLE_SECONDS,
				     .timeout = BUS_SECONDS,
				     .sysfs = "/sys" };

	if (parse(argc, argv, &line) < 0)
		return EXIT_USAGE;
	if (line.done)
		return EXIT_SUCCESS;
	return run(&line) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
