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
static inline void lend_configure(const struct rig *rig, const char *daemon, const char *enforce)
{
	char text[256];

	snprintf(text, sizeof(text), "[daemon]\n%s", daemon);
	rig_write(rig, "gpuarbd.conf", text);
	rig_write(rig, "tenants.d/10-urgent.conf",
		  "[tenant urgent]\nmatch-user = root\nclass = realtime\n");
	snprintf(text, sizeof(text),
		 "[tenant crowd]\nmatch-user = daemon\nclass = besteffort\n"
		 "enforce = %s\n",
		 enforce);
	rig_write(rig, "tenants.d/20-crowd.conf", text);
}

/* ---- calls ---- */

/* Never less CUs than least, and up to most, which may be borrowed. */
static inline sd_bus_message *ask_to_borrow(sd_bus *bus, unsigned least, unsigned most,
					    uint64_t wait_usec)
{
	return with(call_arbiter(bus, "Reserve"), "aa{sv}a{sv}", 1, 4, "cus", "u", least, "cus-min",
		    "u", least, "cus-max", "u", most, "queues", "u", 2, 3, "class", "s",
		    "besteffort", "adaptable", "b", 1, "wait-usec", "t", wait_usec);
}

static inline sd_bus_message *ask_inactive(sd_bus *bus, unsigned cus)
{
	return with(call_arbiter(bus, "Reserve"), "aa{sv}a{sv}", 1, 2, "cus", "u", cus, "queues",
		    "u", 2, 1, "start-inactive", "b", 1);
}

/* All that is idle. */
static inline struct live_lease borrow(sd_bus *bus)
{
	return granted(call(ask_to_borrow(bus, LEND_LEAST, LEND_CUS, 0)));
}

static inline struct live_lease keep_inactive(sd_bus *bus, unsigned cus)
{
	return reserved(call(ask_inactive(bus, cus)), "inactive");
}

static inline sd_bus_message *activate(sd_bus *bus, const struct live_lease *lease)
{
	return call(call_lease(bus, lease->path, "Activate"));
}

static inline sd_bus_message *deactivate(sd_bus *bus, const struct live_lease *lease)
{
	return call(call_lease(bus, lease->path, "Deactivate"));
}

static inline sd_bus_message *acknowledge(sd_bus *bus, const struct live_lease *lease,
					  uint64_t generation)
{
	return call(with(call_lease(bus, lease->path, "Acknowledge"), "t", generation));
}

static inline sd_bus_message *take_away(sd_bus *bus, const struct live_lease *lease, uint64_t usec,
					const char *reason)
{
	return call(with(call_lease(bus, lease->path, "Revoke"), "ts", usec, reason));
}

/* ---- what is seen of them ---- */

static inline bool is_in_state(sd_bus *bus, const struct live_lease *lease, const char *state)
{
	return lease_says(bus, lease->path, "State", state);
}

static inline uint64_t lease_number(sd_bus *bus, const struct live_lease *lease, const char *name)
{
	return number_of(bus, lease->path, GPUARB_INTERFACE_LEASE, name);
}

/* The record of this generation, or a later one, of those that come. */
static inline struct live_record await_generation(int holder, uint64_t generation)
{
	struct live_record record;

	do
		CHECK(next_record(holder, &record));
	while (record.record.generation < generation);
	return record;
}

/* Follows what it is told until it has so many CUs. Returns the generation. */
static inline uint64_t follow_until(sd_bus *bus, const struct live_lease *lease, unsigned cus)
{
	struct live_record record;

	do {
		CHECK(next_record(lease->holder, &record));
		CHECK(is_fine(acknowledge(bus, lease, record.record.generation)));
	} while (record.partitions[0].cus != cus);
	return record.record.generation;
}

static inline struct book_part part_of(sd_bus *bus, const struct live_lease *lease)
{
	static struct book book;

	book_read(bus, &book);
	CHECK(book_find(&book, lease->id) && book_find(&book, lease->id)->n_parts == 1);
	return book_find(&book, lease->id)->parts[0];
}

static inline bool same_part(const struct book_part *a, const struct book_part *b)
{
	return memcmp(a->mask, b->mask, sizeof(a->mask)) == 0 && a->cus == b->cus;
}

static inline bool apart(const struct book_part *a, const struct book_part *b)
{
	for (unsigned w = 0; w < BOOK_WORDS; w++)
		if (a->mask[w] & b->mask[w])
			return false;
	return true;
}
