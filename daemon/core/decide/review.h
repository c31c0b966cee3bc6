/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "core/ledger/ledger.h"

/* Would the present policy grant this lease? Checks tenant, user, class, priority and quotas. A
 * quota is exceeded by the latest leases of the user, not by the earlier ones. A tenant with
 * groups may match any user: the groups of the process that asked are not stored. false: and in
 * reason why not. */
bool review_lease(const struct arbiter *arbiter, const struct lease *lease, char *reason,
		  size_t size);
