/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * gpuarb-fdinfo: tells gpuarbd which processes have DRM clients of amdgpu open. It has CAP_SYS_PTRACE,
 * with which the kernel lets it read /proc/PID/fdinfo of every process.
 *
 * Each packet on its standard input, a SOCK_SEQPACKET socket, is a request, whose one byte is not 0 if
 * all processes are to be read; the answer is a struct drm_scan.
 */

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hw/drm-fdinfo.h"
#include "util/base.h"

#define EXIT_USAGE 2
#define SECONDS_MAX 86400UL
#define IDLE_SECONDS 30UL

struct command_line {
	unsigned long idle; /* seconds */
	const char *procfs;
	bool done;
};

static void print_help(void)
{
	printf("gpuarb-fdinfo [OPTION...]\n\n"
	       "Tells gpuarbd which processes draw on AMD GPUs, on the connection that systemd passes\n"
	       "as standard input (gpuarb-fdinfo.socket).\n\n"
	       "  --exit-idle-time=SECONDS  exit after SECONDS without a request (%lu)\n"
	       "  --procfs=DIR              read DIR instead of /proc\n"
	       "  --help, --version\n\n"
	       "gpuarbd(8), HELPERS, says more.\n",
	       IDLE_SECONDS);
}

static int parse_seconds(const char *text, unsigned long *ret)
{
	unsigned long seconds;
	char *end;

	errno = 0;
	seconds = strtoul(text, &end, 10);
	if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || seconds == 0 ||
	    seconds > SECONDS_MAX) {
		fprintf(stderr,
			"gpuarb-fdinfo: --exit-idle-time=%s: a number of seconds from 1 to %lu\n",
			text, SECONDS_MAX);
		return -EINVAL;
	}
	*ret = seconds;
	return 0;
}

static int parse_option(int option, struct command_line *ret)
{
	switch (option) {
	case 'i': return parse_seconds(optarg, &ret->idle);
	case 'p': ret->procfs = optarg; return 0;
	case 'h': print_help(); break;
	case 'v': printf("gpuarb-fdinfo %s\n", GPUARB_VERSION); break;
	default: return -EINVAL; /* getopt_long() has printed why */
	}
	ret->done = true;
	return 0;
}

static int parse(int argc, char *argv[], struct command_line *ret)
{
	static const struct option options[] = {
		{ "exit-idle-time", required_argument, NULL, 'i' },
		{ "procfs", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int option, r = 0;

	while (r >= 0 && !ret->done && (option = getopt_long(argc, argv, "", options, NULL)) >= 0)
		r = parse_option(option, ret);
	if (r >= 0 && !ret->done && optind < argc) {
		fprintf(stderr, "gpuarb-fdinfo: unexpected argument \"%s\": see --help\n",
			argv[optind]);
		return -EINVAL;
	}
	return r;
}

static bool is_connection(int fd)
{
	socklen_t size = sizeof(int);
	int type;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

/* Returns 1: a request was received; 0: gpuarbd has hung up, or asks no more. */
static int next_request(unsigned long idle, bool *ret_all)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned char all = 0;
	int r = poll(&in, 1, (int)(idle * 1000));

	if (r <= 0)
		return r < 0 ? -errno : 0;
	r = (int)recv(STDIN_FILENO, &all, sizeof(all), 0);
	*ret_all = all;
	return r < 0 ? -errno : r;
}

static int serve(const struct command_line *line)
{
	_cleanup_(drm_reader_freep) struct drm_reader *reader = NULL;
	_cleanup_(freep) struct drm_scan *scan = malloc(sizeof(*scan));
	bool all = false;
	int r;

	if (!scan)
		return -ENOMEM;
	r = drm_reader_new(line->procfs, &reader);
	if (r < 0)
		return r;
	while ((r = next_request(line->idle, &all)) > 0) {
		r = drm_scan_read(reader, all, scan);
		if (r < 0)
			return r;
		if (send(STDIN_FILENO, scan, drm_scan_size(scan), MSG_NOSIGNAL) < 0)
			return errno == EPIPE ? 0 : -errno;
	}
	return r == -ECONNRESET ? 0 : r;
}

int main(int argc, char *argv[])
{
	struct command_line line = { .idle = IDLE_SECONDS, .procfs = "/proc" };
	int r;

	if (parse(argc, argv, &line) < 0)
		return EXIT_USAGE;
	if (line.done)
		return EXIT_SUCCESS;
	if (!is_connection(STDIN_FILENO)) {
		fprintf(stderr, "gpuarb-fdinfo: standard input is not a connection of "
				"gpuarbd: start gpuarb-fdinfo.socket\n");
		return EXIT_USAGE;
	}
	r = serve(&line);
	if (r < 0)
		fprintf(stderr, "gpuarb-fdinfo: %s: %s\n", line.procfs, strerror(-r));
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
