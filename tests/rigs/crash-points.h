/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Cuts off an operation at every point that others can see something of. */

#include "crash-stage.h"

#define MISSED_MAX 3

struct operation {
	const char *hardware;
	void (*before)(struct stage *stage);
	void (*run)(struct stage *stage);   /* may lose the daemon at any moment; NULL: only
					     * the start after a crash is cut off */
	void (*after)(struct stage *stage); /* with the next daemon */
};

static inline void set_up(struct stage *stage, const char *hardware)
{
	*stage = (struct stage){ .known = { { .lease.holder = -1 }, { .lease.holder = -1 } } };
	rig_new(&stage->rig);
	rig_start_managed(&stage->rig, hardware, "--store-max=64");
	stage->bus = rig_connect(&stage->rig, 0);
	CHECK(sd_bus_match_signal(stage->bus, NULL, "org.freedesktop.DBus", NULL,
				  "org.freedesktop.DBus", "NameOwnerChanged", on_owner,
				  stage) >= 0);
	listen_in(stage->bus, &stage->heard);
}

/* Says why not, if processes cannot be traced here. */
static inline bool arm(struct stage *stage, unsigned at)
{
	const char *why;

	rig_say(&stage->rig, "hold");
	rig_say(&stage->rig, "arm %u", at);
	why = rig_hear(&stage->rig, "armed");
	if (!*why)
		return true;
	printf("skipped: processes cannot be traced here (%s)\n", why);
	check_skipped = true;
	return false;
}

/* Whether it has been killed. */
static inline bool disarm(struct stage *stage, unsigned at)
{
	rig_say(&stage->rig, "disarm");
	return strtoul(rig_hear(&stage->rig, "count"), NULL, 10) >= at;
}

/* Whether this start was cut off, too. */
static inline bool start_next(struct stage *stage, unsigned at)
{
	bool killed = false;

	if (at > 0)
		CHECK(arm(stage, at));
	rig_say(&stage->rig, "go");
	rig_hear(&stage->rig, "ready");
	settle(stage->bus);
	if (at > 0)
		killed = disarm(stage, at); /* maybe after it was ready */
	rig_await_ready(&stage->rig);
	stage->gone = false;
	return killed;
}

static inline void run(struct stage *stage, const struct operation *operation)
{
	if (!operation->run)
		return;
	operation->run(stage);
	ping(stage);
}

/* Cuts off the operation, and then the start; 0: not that. Returns how often it did. */
static inline unsigned try_point(struct stage *stage, const struct operation *operation,
				 unsigned at, unsigned start_at)
{
	unsigned killed = 0;

	if (operation->before)
		operation->before(stage);
	ping(stage);
	stage->heard.removed = 0;
	if (at > 0 && !arm(stage, at))
		return 0;
	run(stage, operation);
	if (at == 0)
		rig_down(&stage->rig);
	if (at == 0 || disarm(stage, at))
		killed = 1 + start_next(stage, start_at);
	else
		rig_say(&stage->rig, "go");
	compare(stage);
	if (operation->after)
		operation->after(stage);
	let_go(stage);
	return killed;
}

static inline unsigned try_starts(struct stage *stage, const struct operation *operation,
				  unsigned at)
{
	unsigned start_at = 1;

	while (try_point(stage, operation, at, start_at) == 2)
		start_at++;
	return start_at - 1;
}

/* Signals may go out together or one by one: only several points that are not reached, one
 * after the other, are the end. */
static inline void try_all(const struct operation *operation)
{
	unsigned points = 0, starts = 0, missed = 0;
	static struct stage stage;

	set_up(&stage, operation->hardware);
	if (!operation->run)
		starts = try_starts(&stage, operation, 0);
	for (unsigned at = 1; operation->run && missed < MISSED_MAX && !check_skipped; at++) {
		if (try_point(&stage, operation, at, 0) == 0) {
			missed++;
			continue;
		}
		missed = 0;
		points++;
		if (getenv("GPUARB_LONG"))
			starts += try_starts(&stage, operation, at);
	}
	if (!check_skipped)
		printf("killed at %u points of it and %u of starts\n", points, starts);
	leave(stage.bus);
	rig_done(&stage.rig);
}
