/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Processes that draw, for gpuarbd --fdinfo=DIR/fdinfo.socket, in demonstrations and shell tests:
 *
 *   GPUARB_FDINFO=… fake-procfs DIR PID:GFX-NSEC:VRAM-KIB…
 *
 * makes DIR/proc with one DRM client of 0000:03:00.0 for each process, which must exist, starts
 * gpuarb-fdinfo for each connection, prints "ready", and runs until it is killed.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake-procfs.h"

int main(int argc, char *argv[])
{
	struct fake_procfs procfs;

	if (argc < 2 || !getenv("GPUARB_FDINFO")) {
		fprintf(stderr,
			"usage: GPUARB_FDINFO=FILE fake-procfs DIR PID:GFX-NSEC:VRAM-KIB…\n");
		return 2;
	}
	procfs_new(argv[1], &procfs);
	for (int i = 2; i < argc; i++) {
		struct procfs_client client = { .id = (unsigned)i };
		int pid;

		if (sscanf(argv[i], "%d:%" SCNu64 ":%" SCNu64, &pid, &client.gfx_nsec,
			   &client.vram) != 3) {
			fprintf(stderr, "fake-procfs: %s is not PID:GFX-NSEC:VRAM-KIB\n", argv[i]);
			return 2;
		}
		procfs_process(&procfs, pid, 0);
		procfs_client(&procfs, pid, 3, &client);
	}
	procfs_serve(&procfs, NULL, NULL);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
