/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * gpuarbd's connection to gpuarb-fdinfo, which may read /proc/PID/fdinfo of every process: one request
 * at a time, each answered by a struct drm_scan (hw/drm-fdinfo.h). No function here blocks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "hw/drm-fdinfo.h"
#include "util/base.h"

#define FDINFO_SOCKET "/run/gpuarb-fdinfo.socket"

struct fdinfo;

/* The answer to one request: 0 and the scan, which is valid during the call; else with a sentence in
 * why: -ETIMEDOUT, no answer in time; -ECONNRESET, the helper ended before its answer; -EBADMSG, not a
 * scan. Called from the event loop, never from within fdinfo_ask(); must not free. */
typedef void fdinfo_done_t(void *userdata, int r, const struct drm_scan *scan, const char *why);

/* patience_usec: how long an answer may take. The helper need not be there: each request connects if
 * need be. */
int fdinfo_new(sd_event *event, const char *socket, uint64_t patience_usec, fdinfo_done_t *done,
	       void *userdata, struct fdinfo **ret);

/* Takes NULL. A request without an answer is forgotten, without a callback. */
struct fdinfo *fdinfo_free(struct fdinfo *fdinfo);
DEFINE_CLEANUP(struct fdinfo *, fdinfo_free)

/* all: read all processes, also those that seem to be the same as before. 0: done() will be called once. -EALREADY: for an earlier request it will. Else with a sentence in
 * why: -EOPNOTSUPP, there is no helper; and whatever else the kernel says. */
int fdinfo_ask(struct fdinfo *fdinfo, bool all, char *why, size_t size);
