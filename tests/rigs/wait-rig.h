/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Scenes in which leases wait. */

#include "ledger-check.h"
#include "scene.h"

/* Reserves with one holder, waiting at most a second. */
struct lease *ask(struct scene *s, uid_t uid, struct request request);

/* Reserves CUS of one GPU ("any": of any GPU), and checks that the lease waits. */
struct lease *wait_for(struct scene *s, uid_t uid, const char *gpu, unsigned cus);

struct lease *grant_on(struct scene *s, uid_t uid, const char *gpu, unsigned cus);

/* Grants waiting leases as the daemon does. Returns their number, and their ids in order in
 * ids[] unless that is NULL. */
size_t grant_waiting(struct scene *s, uint64_t *ids);

/* Returns all touched flags of a lease. If it was removed, *ret is a copy: use only its values,
 * not its pointers. */
unsigned touched_of(struct scene *s, uint64_t id, struct lease *ret);

void forget_touched(struct scene *s);
