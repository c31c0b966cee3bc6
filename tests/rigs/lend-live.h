/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The shipped daemon with leases that lend and borrow. */

#include "book.h"
#include "enforce-rig.h"

#define LEND_GPU "--simulate=radeon-vii"
#define LEND_CUS 60U
#define LEND_LEAST 4U
#define HOUR_USEC UINT64_C(3600000000)
#define GROW_SOON "grow-delay = 1ms\nactivate-min-interval = 1ms\n"
#define GROW_NEVER "grow-delay = 1h\n"

/* Writes tenants: root may ask for any class up to realtime; the user STRANGER borrows, with the
 * given enforce key. */
void lend_configure(const struct rig *rig, const char *daemon, const char *enforce);

/* A daemon that lends, the connections of root and of STRANGER, and what root is told. */
struct lend {
	struct rig rig;
	sd_bus *bus, *crowd;
	struct told told;
	struct live_lease rt, borrower, lease; /* of the test */
};

/* Starts a daemon with that configuration, under a manager that stores what it is given, and connects. */
void lend_start(struct lend *ret, const char *daemon, const char *enforce);

/* The same with gpuarb-enforce, which the caller stops. */
void lend_start_helped(struct lend *ret, struct helper *helper, const char *daemon,
		       const char *enforce);

/* The same on a rig that exists, with further options of the daemon. */
void lend_begin(struct lend *lend, const char *daemon, const char *enforce, const char *options);

/* ---- calls ---- */

/* A Reserve call for an adaptable lease of LEAST to MOST CUs, which may be borrowed ones. */
sd_bus_message *ask_to_borrow(sd_bus *bus, unsigned least, unsigned most, uint64_t wait_usec);

/* Reserves an adaptable lease of all idle CUs. */
struct live_lease borrow(sd_bus *bus);

struct live_lease keep_inactive(sd_bus *bus, unsigned cus);

sd_bus_message *activate(sd_bus *bus, const struct live_lease *lease);

sd_bus_message *deactivate(sd_bus *bus, const struct live_lease *lease);

sd_bus_message *acknowledge(sd_bus *bus, const struct live_lease *lease, uint64_t generation);

sd_bus_message *take_away(sd_bus *bus, const struct live_lease *lease, uint64_t usec,
			  const char *reason);

/* ---- state ---- */

bool is_in_state(sd_bus *bus, const struct live_lease *lease, const char *state);

uint64_t lease_number(sd_bus *bus, const struct live_lease *lease, const char *name);

/* Reads records until one has this generation or a later one. */
struct live_record await_generation(int holder, uint64_t generation);

/* Acknowledges records until the lease has CUS. Returns the generation. */
uint64_t follow_until(sd_bus *bus, const struct live_lease *lease, unsigned cus);

struct book_part part_of(sd_bus *bus, const struct live_lease *lease);

bool same_part(const struct book_part *a, const struct book_part *b);

bool apart(const struct book_part *a, const struct book_part *b);
