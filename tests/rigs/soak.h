/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "live.h"

/* Starts the daemon without what it says of each lease, and without AddressSanitizer's keeping
 * of what is freed, which would hide what is not. */
static inline void start_quietly(struct rig *rig, void (*start)(struct rig *rig))
{
	const char *options = getenv("ASAN_OPTIONS");
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int errors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	char text[256];

	snprintf(text, sizeof(text), "%s:quarantine_size_mb=1", options ? options : "");
	CHECK(setenv("ASAN_OPTIONS", text, 1) == 0);
	CHECK(null >= 0 && errors >= 0 && dup2(null, STDERR_FILENO) >= 0);
	rig_new(rig);
	start(rig);
	CHECK(dup2(errors, STDERR_FILENO) >= 0);
	close(errors);
	close(null);
}
