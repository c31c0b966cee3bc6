/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An arbiter with GPUs made by hand, for tests of core. */

#include <stdio.h>
#include <string.h>

#include "check-cond.h"
#include "core/change/arbiter.h"
#include "core/policy/request.h"
#include "made-gpus.h"

struct arbiter *arbiter_of(const struct gpu_info *gpus, size_t n);

/* Adds a tenant for one uid before the others; returns it to be filled in. */
struct tenant *add_tenant(struct arbiter *arbiter, const char *name, uid_t uid,
			  enum lease_class lease_class);

struct request request_for(unsigned cus);

struct caller caller_of(uid_t uid);

/* Reserves with one holder; checks the promises. NULL and the verdict where it is refused. */
struct lease *reserve(struct arbiter *arbiter, uid_t uid, const struct request *request,
		      struct result *result);

/* Activates or deactivates: plan and commit. */
int set_active(struct arbiter *arbiter, const struct caller *caller, uint64_t id, bool active,
	       struct result *result);

/* arbiter_reason(), until the next call. */
const char *reason_of(const struct arbiter *arbiter, const struct lease *lease);

/* Closes the last holder and lets the hardware be free. */
void release(struct arbiter *arbiter, uint64_t id);
