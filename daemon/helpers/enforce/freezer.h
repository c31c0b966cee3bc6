/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Has systemd freeze and thaw units: FreezeUnit and ThawUnit of org.freedesktop.systemd1. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "util/base.h"

struct freezer;
struct freezer_call;

/* r: 0, or a negative errno with a sentence. The call is no more by then. */
typedef void freezer_done_t(void *userdata, int r, const char *sentence);

/* address: NULL for the system bus. A call that has no answer after timeout_usec has failed. */
int freezer_new(sd_event *event, const char *address, uint64_t timeout_usec, struct freezer **ret);

/* Takes NULL. Without a call that is under way. */
struct freezer *freezer_free(struct freezer *freezer);
DEFINE_CLEANUP(struct freezer *, freezer_free)

/* Asks, connecting if need be; done() is called from the event loop. A negative errno with a
 * sentence in why where it cannot be asked. */
int freezer_start(struct freezer *freezer, bool freeze, const char *unit, freezer_done_t *done,
		  void *userdata, struct freezer_call **ret, char *why, size_t size);

/* Waits no more for its answer; systemd goes on. Takes NULL. */
struct freezer_call *freezer_call_free(struct freezer_call *call);
DEFINE_CLEANUP(struct freezer_call *, freezer_call_free)
