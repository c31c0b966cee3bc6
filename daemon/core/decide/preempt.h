/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Preemption: a request that does not fit may fit without leases of lower classes that policy allows
 * to revoke (preempt = revoke of their tenants). It becomes a waiting lease, and
 * arbiter_make_room() revokes the cheapest set of them with notice.
 */

#include "core/decide/advice.h"

/* arbiter_plan(), but where only such leases are in the way, *ret waits for them even if the request
 * may not wait. */
int preempt_plan(const struct arbiter *arbiter, const struct caller *caller,
		 const struct request *request, struct lease **ret, struct result *result);
