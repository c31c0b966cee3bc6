/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A plan, for people and for programs. */

#include "client/rt/rt-gpu.h"
#include "client/rt/rt-plan.h"

void rt_show_text(const struct command *command, const struct rt_gpu *gpu,
		  const struct rt_plan *plan);
void rt_show_json(const struct rt_gpu *gpu, const struct rt_plan *plan);

/* What puts a plan into effect: lines of policy, and of a shell. */

/* A file for tenants.d, as gpuarb-tenants(5) wants it; and the command that starts one
 * partition. Owned; NULL without memory. Only for partitions that have a place. */
char *rt_tenant_lines(const struct rt_plan *plan);
char *rt_run_line(const struct rt_plan *plan, const struct rt_gpu *gpu, size_t partition);

/* What gpuarbd.conf has to say where the set is not for what is in force; NULL: nothing, or no
 * memory. */
char *rt_daemon_lines(const struct rt_plan *plan);
