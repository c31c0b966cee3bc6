/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A plan, for people and for programs. */

#include "client/rt/rt-gpu.h"
#include "client/rt/rt-plan.h"

void rt_show_text(const struct command *command, const struct rt_gpu *gpu,
		  const struct rt_plan *plan);
void rt_show_json(const struct rt_gpu *gpu, const struct rt_plan *plan);
