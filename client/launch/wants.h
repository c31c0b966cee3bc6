/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What was typed into what is asked. Both say what is wrong and return the exit code; 0
 * is success. They look at the machine only if the answer depends on it.
 */

#include "client/options/options.h"
#include "client/launch/session.h"

/* For run, reserve and plan. Where no want says how many CUs: best effort, all that can be
 * had; for each process 5 queues beside the streams that it masks, or its part of half the
 * free ones where that is less, and never below 2. */
int want_resolve(struct command *command, struct session *session,
		 struct gpuarb_want ret[static REQUEST_WANTS]);

/* After a refusal for queues or a quota: a queue less for each process, where their number
 * was left to us. false: nobody left it to us, or there are as few as HIP can live with. */
bool want_ask_less(const struct command *command, const struct gpuarb *gpuarb,
		   struct gpuarb_want wants[static REQUEST_WANTS]);

/* For resize: what is not named stays as the lease has it. */
int want_resolve_resize(const struct command *command, struct session *session,
			const struct gpuarb_lease_info *lease,
			struct gpuarb_want ret[static REQUEST_WANTS]);
