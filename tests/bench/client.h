/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The shipped daemon of benchmarks. */

#include <sys/resource.h>

#include "bench/bench.h"
#include "check-cond.h"
#include "live.h"

/* Without a service manager, or under one; it tells of every lease, to nobody. */
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
