/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What disturbs a lease from outside of all leases on its GPU: queues that cover CUs which no lease
 * grants them (ledger/cover.h), and processes that draw. A lease whose class promises its CUs is
 * neither granted nor activated beside them, unless policy ignores them.
 */

#include "core/ledger/cover.h"
#include "core/ledger/ledger.h"

/* Does a lease keep all others off the shader engines that it uses? */
bool disturbance_excludes(enum lease_class class, const struct partition *p);

/* The CUs of a GPU that such a partition of the lease may not have because queues cover them: for a realtime lease
 * with all CUs of their engines, unless it shares engines. */
void disturbance_find_cus(const struct arbiter *arbiter, const struct lease *lease,
			  const struct partition *p, struct cuset *ret);

/* Does policy refuse it the GPU because of processes that draw? Names them in the refusal. User queues of the graphics
 * driver that compute refuse it to realtime leases in any case, and so does their number if it is unknown. */
bool disturbance_draws(const struct arbiter *arbiter, unsigned gpu, const struct lease *lease,
		       struct refusal *refusal);

/* Does either disturb a partition that the lease has? Then *refusal says what and who. */
bool disturbance_refuses(const struct arbiter *arbiter, const struct lease *lease,
			 const struct partition *partition, struct refusal *refusal);
