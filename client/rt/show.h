/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Prints a plan, and the lines of policy and of a shell that put it into effect. */

#include "client/options/options.h"
#include "client/rt/rt-plan.h"

void rt_show_text(const struct command *command, const struct rt_plan *plan);
void rt_show_json(const struct rt_plan *plan);
