/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The user whom --user and --group name, as policy sees one. */

#include "client/options/options.h"
#include "core/policy/request.h"

/* Without --user, this one. Its groups are those of the user database, or those of --group. An exit code. */
int caller_find(const struct command *command, struct caller *ret);
