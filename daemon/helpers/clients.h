/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* gpuarbd's side of the helpers that an asker asks: what an answer of each is, and how its request is made. */

#include "helpers/asker.h"
#include "helpers/budget-protocol.h"
#include "helpers/enforce-protocol.h"
#include "helpers/probe-protocol.h"
#include "hw/drm-fdinfo.h"

#define BUDGET_SOCKET "/run/gpuarb-budget.socket"
#define ENFORCE_SOCKET "/run/gpuarb-enforce.socket"
#define FDINFO_SOCKET "/run/gpuarb-fdinfo.socket"
#define DRIVER_PROBE_SOCKET "/run/gpuarb-probe.socket"

#define ENFORCE_QUEUE 256U /* requests to gpuarb-enforce without an answer at the most */

/*
 *	helper		request					answer
 *	budget_helper	struct budget_request			struct budget_answer
 *	enforce_helper	enforce_ask()				struct enforce_answer
 *	fdinfo_helper	a byte; 1: reads all processes, also	struct drm_scan
 *			those that seem to be as before
 *	probe_helper	any byte				struct probe_answer
 */
extern const struct asker_helper budget_helper, enforce_helper, fdinfo_helper, probe_helper;

/* Sorts the rows by cgroup, and writes one row for each cgroup into the request: its first lease and the sum of the
 * limits. Returns how many cgroups, those with the highest ids, had no room. */
size_t budget_request_fill(struct budget_request *request, struct budget_row *rows, size_t n);

/* The state of the cgroup in the answer to such a request; NULL: the request had no row for it. */
const struct budget_state *budget_state_of(const struct budget_request *request,
					   const struct budget_answer *answer, uint64_t cgroup);

/*
 * Asks gpuarb-enforce, which is root, to kill a process, or to freeze or thaw a unit. Requests are carried out in
 * this order, but that one does not wait for the end of those before. As asker_ask(), and with a sentence in why:
 * -EINVAL, no name of a unit; -EPERM, one that is never frozen; -EBADF, no pidfd.
 *
 * pidfd and start_time name the process to kill, and one process of the unit to freeze, and nothing for a thaw: the
 * helper takes a process and a unit only if the process uses a KFD device, and all of them belong to uid,
 * which is 0 where root bound the process. The text is the unit, or written to the terminal of the process; "":
 * nothing is.
 *
 * enforce_helper answers with a struct enforce_answer. Its r: 0, or what the helper says is wrong: -ESRCH, the process
 * has ended already, or the unit is not active; -EPERM, never allowed; -ENODEV, the process does not use a KFD device;
 * -ENOENT, no such unit is loaded; -EBUSY, the unit is being frozen or thawed; -EOPNOTSUPP, units cannot be frozen
 * here; -ETIMEDOUT, the service manager did not answer in time, for which it has 10 s. After a time-out, of the helper
 * as well, a unit may be frozen all the same, or become so.
 */
int enforce_ask(struct asker *asker, enum enforce_verb verb, int pidfd, uint64_t start_time,
		uid_t uid, const char *text, uint64_t tag, char *why, size_t size);
