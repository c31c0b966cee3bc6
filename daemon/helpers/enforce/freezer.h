/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Freezes and thaws units with FreezeUnit and ThawUnit of org.freedesktop.systemd1. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "util/base.h"

struct freezer;
struct freezer_call;

/* r: 0, or a negative errno with a sentence. The call was freed before. */
typedef void freezer_done_t(void *userdata, int r, const char *sentence);

/* address: of the bus; NULL for the system bus. A call without an answer fails with -ETIMEDOUT after
 * timeout_usec. */
int freezer_new(sd_event *event, const char *address, uint64_t timeout_usec, struct freezer **ret);

/* Takes NULL. No call may be under way. */
struct freezer *freezer_free(struct freezer *freezer);
DEFINE_CLEANUP(struct freezer *, freezer_free)

/* Connects to the bus if need be and sends the call; the event loop calls done(). Returns a negative
 * errno with a sentence in why when the call cannot be sent. */
int freezer_start(struct freezer *freezer, bool freeze, const char *unit, freezer_done_t *done,
		  void *userdata, struct freezer_call **ret, char *why, size_t size);

/* Cancels the wait for the answer; systemd carries the call out all the same. Takes NULL. */
struct freezer_call *freezer_call_free(struct freezer_call *call);
DEFINE_CLEANUP(struct freezer_call *, freezer_call_free)
