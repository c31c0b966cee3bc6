/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The shipped daemon with leases that lend and borrow. */

#include "book.h"

#define LEND_GPU "--simulate=radeon-vii"
#define LEND_CUS 60U
#define LEND_LEAST 4U
#define HOUR_USEC UINT64_C(3600000000)
#define GROW_SOON "grow-delay = 1ms\nactivate-min-interval = 1ms\n"
#define GROW_NEVER "grow-delay = 1h\n"

/* Root is realtime; what it asks for may be of any class. enforce: of who borrows, who is the
 * user STRANGER. */
void lend_configure(const struct rig *rig, const char *daemon, const char *enforce);

/* ---- calls ---- */

/* Never less CUs than least, and up to most, which may be borrowed. */
sd_bus_message *ask_to_borrow(sd_bus *bus, unsigned least, unsigned most, uint64_t wait_usec);

/* All that is idle. */
struct live_lease borrow(sd_bus *bus);

struct live_lease keep_inactive(sd_bus *bus, unsigned cus);

sd_bus_message *activate(sd_bus *bus, const struct live_lease *lease);

sd_bus_message *deactivate(sd_bus *bus, const struct live_lease *lease);

sd_bus_message *acknowledge(sd_bus *bus, const struct live_lease *lease, uint64_t generation);

sd_bus_message *take_away(sd_bus *bus, const struct live_lease *lease, uint64_t usec,
			  const char *reason);

/* ---- what is seen of them ---- */

bool is_in_state(sd_bus *bus, const struct live_lease *lease, const char *state);

uint64_t lease_number(sd_bus *bus, const struct live_lease *lease, const char *name);

/* The record of this generation, or a later one, of those that come. */
struct live_record await_generation(int holder, uint64_t generation);

/* Follows what it is told until it has so many CUs. Returns the generation. */
uint64_t follow_until(sd_bus *bus, const struct live_lease *lease, unsigned cus);

struct book_part part_of(sd_bus *bus, const struct live_lease *lease);

bool same_part(const struct book_part *a, const struct book_part *b);

bool apart(const struct book_part *a, const struct book_part *b);
