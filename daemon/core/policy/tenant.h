/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which row of policy a caller falls under. */

#include "core/policy/request.h"
#include "core/policy/result.h"
#include "core/policy/settings.h"

/* The tenant for this caller: the first that matches, or the one it names if that matches
 * too. -ESRCH if there is none of that name, -EACCES if none matches. */
int tenant_find(const struct settings *settings, const struct caller *caller, const char *name,
		const struct tenant **ret, struct result *result);

/* NULL: policy has none of this name. */
const struct tenant *tenant_named(const struct settings *settings, const char *name);

/* Might the tenant be this user's? Groups were those of the process that asked and are not
 * kept: a tenant that has some may. */
bool tenant_may_match(const struct tenant *tenant, uid_t uid);

/* Has it limits for parts of a GPU? Else what a user holds there is of no interest. */
bool tenant_bounds_parts(const struct tenant *tenant);
