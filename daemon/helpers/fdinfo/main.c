/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * gpuarb-fdinfo: tells gpuarbd which processes have DRM clients of amdgpu open. It has CAP_SYS_PTRACE,
 * with which the kernel lets it read /proc/PID/fdinfo of every process.
 *
 * Each packet on its standard input, a SOCK_SEQPACKET socket, is a request, whose one byte is not 0 if
 * all processes are to be read; the answer is a struct drm_scan.
 */

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers/helper-program.h"
#include "hw/drm-fdinfo.h"
#include "sys/subuid-file.h"
#include "util/base.h"

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

static int serve(const struct helper_program *program)
{
	_cleanup_(drm_reader_freep) struct drm_reader *reader = NULL;
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	_cleanup_(subuids_done) struct subuids subuids = { 0 };
	_cleanup_(freep) struct drm_scan *scan = malloc(sizeof(*scan));
	bool all = false;
	int r;

	if (!scan)
		return -ENOMEM;
	(void)subuid_load(&subuids, NULL, &diagnostics); /* gpuarbd has told what it left out */
	r = drm_reader_new(program->directory, &subuids, &reader);
	if (r < 0)
		return r;
	while ((r = next_request(program->idle, &all)) > 0) {
		r = drm_scan_read(reader, all, DRM_SCAN_USEC, scan);
		if (r < 0)
			return r;
		if (send(STDIN_FILENO, scan, drm_scan_size(scan), MSG_NOSIGNAL) < 0)
			return errno == EPIPE ? 0 : -errno;
	}
	return r == -ECONNRESET ? 0 : r;
}

int main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "exit-idle-time", required_argument, NULL, HELPER_IDLE },
		{ "procfs", required_argument, NULL, HELPER_DIRECTORY },
		HELPER_OPTIONS,
	};
	struct helper_program program = {
		.name = "gpuarb-fdinfo",
		.task = "Tells gpuarbd which processes draw on AMD GPUs, on the connection that systemd "
			"passes\nas standard input (gpuarb-fdinfo.socket).",
		.help = "  --exit-idle-time=SECONDS  exit after SECONDS without a request (30)\n"
			"  --procfs=DIR              read DIR instead of /proc\n",
		.options = options,
		.run = serve,
		.needs_connection = true,
		.idle = 30,
		.directory = "/proc",
	};

	return helper_program_main(&program, argc, argv);
}
