/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Scenes in which leases wait. */

#include "scene.h"

void check_promises(const struct scene *s);

/* Asks and would wait, with one holder. */
struct lease *ask(struct scene *s, uid_t uid, struct request request);

/* So many CUs of one GPU ("any": of whichever), and it has to wait. */
struct lease *wait_for(struct scene *s, uid_t uid, const char *gpu, unsigned cus);

struct lease *grant_on(struct scene *s, uid_t uid, const char *gpu, unsigned cus);

/* Grants what can be granted, as the daemon does; how many that were. Their ids, in order,
 * go to ids[] if there is one. */
size_t grant_waiting(struct scene *s, uint64_t *ids);

/* What became of a lease, all in all; of one that was removed *ret is a copy, to be read by
 * its plain values. */
unsigned touched_of(struct scene *s, uint64_t id, struct lease *ret);

void forget_touched(struct scene *s);
