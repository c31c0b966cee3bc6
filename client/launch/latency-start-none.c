/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/fail.h"
#include "client/launch/latency-start.h"

int latency_start(const struct command *command)
{
	return fail(command, EXIT_FAILED,
		    "this gpuarb was built without HIP, which plays on the "
		    "GPU: install its development files (libamdhip64-dev on Debian) and build "
		    "gpuarb again");
}
