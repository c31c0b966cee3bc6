/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Turns the options of the command line into wants of a request. The functions print errors and
 * return the exit code; 0 is success. They ask the daemon only if the wants depend on its GPUs.
 */

#include "client/options/options.h"
#include "client/launch/session.h"

/* Whether a number of CUs or of shader engines was typed for it. */
bool want_has_cus(const struct typed_want *typed);

/* For run, reserve and plan. If no want has a number of CUs: best effort with as many CUs as
 * possible; and per process 5 queues more than masked streams, or fewer, so that the GPU has room for four
 * such programs, but at least 2. Opens the session. */
int want_resolve(struct command *command, struct gpuarb_want ret[static REQUEST_WANTS]);

/* The number of queues of wants that name neither that nor CUs: what is fair on the GPUs on which they are planned; NULL:
 * the fewest that HIP can work with. true: one has more queues than before. */
bool want_ask_queues(struct command *command, const struct gpuarb_partition *planned,
		     struct gpuarb_want wants[static REQUEST_WANTS]);

/* Takes one queue per process off these wants. false: there is none, or each has the fewest already. */
bool want_ask_less(const struct command *command, struct gpuarb_want wants[static REQUEST_WANTS]);

/* For a partition of want i that was granted with the number of queues that want_resolve() chose: how many
 * streams HIP can run at once, if they are fewer than it would use; else 0. */
unsigned want_lacks_queues(const struct command *command, size_t i,
			   const struct gpuarb_partition *partition);

/* For resize: what is not typed stays as the lease has it. */
int want_resolve_resize(struct command *command, const struct gpuarb_lease_info *lease,
			struct gpuarb_want ret[static REQUEST_WANTS]);
