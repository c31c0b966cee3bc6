/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lend-live.h"

#include "check-cond.h"

void lend_configure(const struct rig *rig, const char *daemon, const char *enforce)
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

void lend_begin(struct lend *lend, const char *daemon, const char *enforce, const char *options)
{
	char hardware[256];

	snprintf(hardware, sizeof(hardware), LEND_GPU " %s", options);
	lend_configure(&lend->rig, daemon, enforce);
	rig_start_managed(&lend->rig, hardware, "--store-max=4096");
	lend->bus = rig_connect(&lend->rig, 0);
	lend->crowd = rig_connect(&lend->rig, STRANGER);
	listen_in(lend->bus, &lend->told);
}

void lend_start(struct lend *ret, const char *daemon, const char *enforce)
{
	rig_new(&ret->rig);
	lend_begin(ret, daemon, enforce, "");
}

void lend_start_helped(struct lend *ret, struct helper *helper, const char *daemon,
		       const char *enforce)
{
	char option[128];

	memset(helper, 0, sizeof(*helper));
	helper_listen(helper);
	helper_start(helper, NULL, NULL, -1);
	rig_new(&ret->rig);
	snprintf(option, sizeof(option), "--enforce=%s", helper->path);
	lend_begin(ret, daemon, enforce, option);
}

sd_bus_message *ask_to_borrow(sd_bus *bus, unsigned least, unsigned most, uint64_t wait_usec)
{
	return ask_for(
		bus,
		"cus=%u cus-min=%u cus-max=%u queues=2; class=besteffort adaptable=1 wait-usec=%" PRIu64,
		least, least, most, wait_usec);
}

static sd_bus_message *ask_inactive(sd_bus *bus, unsigned cus)
{
	return ask_for(bus, "cus=%u queues=2; start-inactive=1", cus);
}

struct live_lease borrow(sd_bus *bus)
{
	return granted(call(ask_to_borrow(bus, LEND_LEAST, LEND_CUS, 0)));
}

struct live_lease keep_inactive(sd_bus *bus, unsigned cus)
{
	return reserved(call(ask_inactive(bus, cus)), "inactive");
}

sd_bus_message *activate(sd_bus *bus, const struct live_lease *lease)
{
	return call(call_lease(bus, lease->path, "Activate"));
}

sd_bus_message *deactivate(sd_bus *bus, const struct live_lease *lease)
{
	return call(call_lease(bus, lease->path, "Deactivate"));
}

sd_bus_message *acknowledge(sd_bus *bus, const struct live_lease *lease, uint64_t generation)
{
	return call(with(call_lease(bus, lease->path, "Acknowledge"), "t", generation));
}

sd_bus_message *take_away(sd_bus *bus, const struct live_lease *lease, uint64_t usec,
			  const char *reason)
{
	return call(with(call_lease(bus, lease->path, "Revoke"), "ts", usec, reason));
}

bool is_in_state(sd_bus *bus, const struct live_lease *lease, const char *state)
{
	return lease_says(bus, lease->path, "State", state);
}

uint64_t lease_number(sd_bus *bus, const struct live_lease *lease, const char *name)
{
	return number_of(bus, lease->path, GPUARB_INTERFACE_LEASE, name);
}

struct live_record await_generation(int holder, uint64_t generation)
{
	struct live_record record;

	do
		CHECK(next_record(holder, &record));
	while (record.record.generation < generation);
	return record;
}

uint64_t follow_until(sd_bus *bus, const struct live_lease *lease, unsigned cus)
{
	struct live_record record;

	do {
		CHECK(next_record(lease->holder, &record));
		CHECK(is_fine(acknowledge(bus, lease, record.record.generation)));
	} while (record.partitions[0].cus != cus);
	return record.record.generation;
}

struct book_part part_of(sd_bus *bus, const struct live_lease *lease)
{
	static struct book book;

	book_read(bus, &book);
	CHECK(book_find(&book, lease->id) && book_find(&book, lease->id)->n_parts == 1);
	return book_find(&book, lease->id)->parts[0];
}

bool same_part(const struct book_part *a, const struct book_part *b)
{
	return memcmp(a->mask, b->mask, sizeof(a->mask)) == 0 && a->cus == b->cus;
}

bool apart(const struct book_part *a, const struct book_part *b)
{
	for (unsigned w = 0; w < BOOK_WORDS; w++)
		if (a->mask[w] & b->mask[w])
			return false;
	return true;
}
