/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Signals about leases and GPUs. While an answer to GetManagedObjects is built, changes are held: their
 * signals follow the answer, which does not have these changes.
 */

#include <search.h>
#include <stdlib.h>

#include "bus/bus-signals.h"

#define SIGNALS_OF_TURN 32U

struct held_signal {
	const struct bus_kind *kind;
	uint64_t number;
	unsigned changes; /* bits of enum bus_change */
	TAILQ_ENTRY(held_signal) link;
};

static int compare(const void *a, const void *b)
{
	const struct held_signal *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return ((uintptr_t)x->kind > (uintptr_t)y->kind) -
	       ((uintptr_t)x->kind < (uintptr_t)y->kind);
}

/* NULL: there is none, and no memory for one. */
static struct held_signal *find(struct bus *bus, const struct bus_kind *kind, uint64_t number,
				bool make)
{
	struct held_signal key = { .kind = kind, .number = number };
	_cleanup_(freep) struct held_signal *held = NULL;
	void *node = tfind(&key, &bus->held, compare);

	if (node)
		return *(struct held_signal **)node;
	held = make ? malloc(sizeof(*held)) : NULL;
	if (!held)
		return NULL;
	*held = key;
	if (!tsearch(held, &bus->held, compare))
		return NULL;
	TAILQ_INSERT_TAIL(&bus->held_signals, held, link);
	return TAKE_PTR(held);
}

static void drop(struct bus *bus, struct held_signal *held)
{
	tdelete(held, &bus->held, compare);
	TAILQ_REMOVE(&bus->held_signals, held, link);
	free(held);
}

/* After the answer an object may be signalled as removed that it does not have, or as added that it has. */
static unsigned merge(unsigned changes, enum bus_change change)
{
	if (change == CHANGE_REMOVED)
		return CHANGE_REMOVED;
	return changes & CHANGE_ADDED ? changes : changes | change;
}

/* Without memory a client that reads the answer may miss this change. */
void bus_signal(struct bus *bus, const struct bus_kind *kind, uint64_t number,
		enum bus_change change)
{
	struct held_signal *held = find(bus, kind, number, bus->holds_signals);

	if (held)
		held->changes = merge(held->changes, change);
	else
		bus_emit(bus, kind, number, change);
}

void bus_signals_hold(struct bus *bus, bool hold)
{
	bus->holds_signals = hold;
}

bool bus_signals_are_held(const struct bus *bus)
{
	return !TAILQ_EMPTY(&bus->held_signals);
}

bool bus_signals_release(struct bus *bus)
{
	for (unsigned i = 0; i < SIGNALS_OF_TURN && bus_signals_are_held(bus); i++) {
		struct held_signal *held = TAILQ_FIRST(&bus->held_signals);

		bus_emit(bus, held->kind, held->number, held->changes);
		drop(bus, held);
	}
	return bus_signals_are_held(bus);
}

void bus_signals_drop(struct bus *bus)
{
	while (bus_signals_are_held(bus))
		drop(bus, TAILQ_FIRST(&bus->held_signals));
}
