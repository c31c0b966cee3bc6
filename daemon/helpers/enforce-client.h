/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * gpuarbd's connection to gpuarb-enforce, which is root: kill a process, freeze and thaw a unit.
 * helpers/enforce-protocol.h has the protocol. No function here blocks.
 */

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "helpers/enforce-protocol.h"
#include "util/base.h"

#define ENFORCE_SOCKET "/run/gpuarb-enforce.socket"
#define ENFORCE_QUEUE 256U /* requests without an answer at the most */

struct enforce;

/*
 * One answer. r: 0, or what the helper says is wrong: -ESRCH, the process has ended already, or
 * the unit is not active; -EPERM, never allowed; -ENODEV, the process does not use a KFD device;
 * -ENOENT, no such unit is loaded; -EBUSY, the unit is being frozen or thawed; -EOPNOTSUPP, units cannot be frozen here; -ETIMEDOUT, the service manager,
 * or the helper, did not answer in time: a unit may be frozen all the same, or become so;
 * -ECONNRESET, the helper ended before its answer; -EBADMSG, that was none. sentence is "" where r
 * is 0. Called from the event loop, never from within a request; may make requests, and must
 * not free.
 */
typedef void enforce_done_t(void *userdata, uint64_t tag, const struct enforce_request *request,
			    int r, const char *sentence);

/* The connection has ended: the helper thaws what it froze, if it lives. Called after the answers of
 * the requests that were lost with it; may make requests, and must not free. */
typedef void enforce_lost_t(void *userdata);

/* patience_usec: how long the answer of one request may take; the helper gives the service
 * manager 10 s. The helper need not be there: each request connects if need be. */
int enforce_new(sd_event *event, const char *socket, uint64_t patience_usec, enforce_done_t *done,
		enforce_lost_t *on_lost, void *userdata, struct enforce **ret);

/* Makes a connection and ends it, so that a helper thaws what one before it froze and did not thaw, because it
 * was killed. */
void enforce_wake(struct enforce *enforce);

/* Takes NULL. Requests without an answer are forgotten, without a callback. */
struct enforce *enforce_free(struct enforce *enforce);
DEFINE_CLEANUP(struct enforce *, enforce_free)

/*
 * 0: done() will be called once with the tag. Requests are carried out in this order,
 * but that one does not wait for the end of those before. Else, with a sentence in why:
 * -EOPNOTSUPP, there is no helper; -ENOBUFS, ENFORCE_QUEUE of them wait; -EINVAL, no name of a unit;
 * -EPERM, one that is never frozen; -EBADF, no pidfd; and whatever else the kernel says.
 *
 * pidfd and start_time name the process to kill, and one process of the unit to freeze, and nothing for a thaw: the helper
 * takes a process and a unit only if the process uses a KFD device, and all of them belong to uid,
 * which is 0 where root bound the process. A copy of pidfd is kept until the request is sent. The text is the unit, or
 * written to the terminal of the process; "": nothing is.
 */
int enforce_ask(struct enforce *enforce, enum enforce_verb verb, int pidfd, uint64_t start_time,
		uid_t uid, const char *text, uint64_t tag, char *why, size_t size);
