/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The tenant of a caller. */

#include "core/policy/request.h"
#include "core/policy/result.h"
#include "core/policy/settings.h"

/* The first tenant that matches the caller, or the named one if it matches. -ESRCH: no tenant has
 * this name; -EACCES: none matches, with the refusal. */
int tenant_find(const struct settings *settings, const struct caller *caller, const char *name,
		const struct tenant **ret, struct result *result);

/* NULL: no tenant has this name. */
const struct tenant *tenant_named(const struct settings *settings, const char *name);

/* Whether the tenant may match this user. The groups of a caller are not kept, so a tenant with
 * groups may match every user. */
bool tenant_may_match(const struct tenant *tenant, uid_t uid);

/* Whether it limits what a user holds of one GPU. */
bool tenant_bounds_parts(const struct tenant *tenant);
