/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What puts a plan into effect: lines of policy, and of a shell. */

#include "client/rt/rt-gpu.h"
#include "client/rt/rt-plan.h"

/* A file for tenants.d, as gpuarb-tenants(5) wants it; and the command that starts one
 * partition. Owned; NULL without memory. Only for partitions that have a place. */
char *rt_tenant_lines(const struct rt_plan *plan);
char *rt_run_line(const struct rt_plan *plan, const struct rt_gpu *gpu, size_t partition);

/* What gpuarbd.conf has to say where the set is not for what is in force; NULL: nothing, or no
 * memory. */
char *rt_daemon_lines(const struct rt_plan *plan);
