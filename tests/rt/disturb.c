/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What stops a GPU before gfx11: a change of one queue's mask, and a queue that another program
 * creates or destroys. gpuarbd gives new masks to borrowers: larger ones at most once in an
 * interval, which it keeps over a restart, and smaller ones when a lease is activated. A borrower
 * gets a larger mask only after it has answered; it answers a larger mask when it likes, a
 * smaller one within the grace. It makes one change at a time and always sets the newest mask. A
 * borrower that has queues on several GPUs is late on one while it changes those of another.
 */

#include "adversary.h"

#include <stdlib.h>

#define EVENTS_MAX 2000U
#define BORROWERS_MAX 3U
#define GROUPS_MAX 100
#define BEFORE (-3) /* ticks: a change begins, then an activation comes, then jobs are ready */

struct mask_event {
	int64_t time;
	bool activation; /* else a round of growth */
};

struct scene {
	const struct set *set;
	bool lagging;
	int64_t from, to, window;
	int64_t preemption; /* ticks, as all times here */
	struct mask_event events[EVENTS_MAX];
	size_t n_events;
	int64_t *starts; /* of preemptions */
	size_t n_starts;
};

static void preempt(struct scene *s, int64_t time)
{
	if (s->n_starts < STILLS_MAX && time >= s->from && time < s->to)
		s->starts[s->n_starts++] = time;
}

static void add_event(struct scene *s, int64_t time, bool activation)
{
	if (s->n_events < EVENTS_MAX)
		s->events[s->n_events++] = (struct mask_event){ time, activation };
}

/* At most N in any window: groups of N, a window apart, one of them at `middle`. */
static void groups(struct scene *s, unsigned n, int64_t window, int64_t middle, int64_t spread,
		   void (*add)(struct scene *s, int64_t time))
{
	int64_t first = -(middle - s->from) / window, last = (s->to - middle) / window;

	if (first < -GROUPS_MAX)
		first = -GROUPS_MAX;
	for (int64_t i = first; i <= last && i <= GROUPS_MAX; i++)
		for (unsigned k = 0; k < n; k++)
			add(s, middle + i * window + (int64_t)k * spread / (int64_t)n);
}

static void add_activation(struct scene *s, int64_t time)
{
	add_event(s, time, true);
}

/* A lease is activated while a change is under way; then come jobs, and as many activations as may. */
static void lag(struct scene *s)
{
	int64_t change = s->set->changed_queues * s->preemption;

	if (s->set->activations > 0)
		add_activation(s, BEFORE + 1);
	for (unsigned k = 0; k < s->set->activations; k++)
		add_activation(s, (k + 1) * change + 1);
}

/* gpuarbd grows masks as often as it may, from some time on; now and then it is restarted, and is
 * away for a time. */
static void add_rounds(struct scene *s)
{
	int64_t interval = s->set->interval * TICKS, restart = s->from + below(s->to - s->from);
	int64_t away = one_in(3) ? below(2 * interval) : 0;
	int64_t change = s->set->changed_queues * s->preemption;
	int64_t time = one_in(2)   ? change
		       : one_in(2) ? -below(2 * interval)
				   : below(s->window / 4 + 1);

	/* The borrower answers the round before late, and the others at once. */
	if (s->lagging)
		time = (s->set->activations + 2) * change + below(s->window / 4 + 1);
	add_event(s, (time < BEFORE ? time : BEFORE) - interval - below(interval), false);
	while (time < s->to && s->n_events < EVENTS_MAX) {
		if (time >= restart && time < restart + away)
			time = restart + away;
		add_event(s, time, false);
		time += interval + (one_in(4) ? below(interval) : 0);
	}
}

static int by_time(const void *left, const void *right)
{
	const struct mask_event *a = left, *b = right;

	return a->time < b->time ? -1 : a->time > b->time;
}

/* When a change begins that may begin from `from` on and has to be over by `by`. */
static int64_t choose(const struct scene *s, int64_t from, int64_t by, int64_t length)
{
	int64_t latest = by - length;

	if (s->lagging)
		return from <= BEFORE && latest >= BEFORE ? BEFORE : from;
	if (latest <= from || one_in(4))
		return from;
	/* The last moment before which it would not be in the victim's response. */
	if (from <= 0 && latest >= 0 && !one_in(3))
		return 0;
	return one_in(2) ? latest : from + below(latest - from);
}

/* The changes of one borrower with so many queues. */
static void borrow(struct scene *s, unsigned queues)
{
	int64_t interval = s->set->interval * TICKS;
	int64_t length = (int64_t)queues * s->preemption, grace = s->set->grace * TICKS;
	int64_t free_at = s->from; /* the end of its present change */
	size_t i = 0;

	while (i < s->n_events) {
		const struct mask_event *event = &s->events[i];
		int64_t by = event->activation ? event->time + grace
					       : event->time + 4 * s->window + 4 * interval;
		int64_t from = event->time > free_at ? event->time : free_at;
		int64_t start = choose(s, from, by, length);

		i++;
		/* A round that comes before it has answered is not for it. An activation before it
		 * begins is, and the last of them gives the newest mask; each has its own grace. */
		for (; i < s->n_events && s->events[i].time <= start; i++)
			if (s->events[i].activation && s->events[i].time + grace - length < start)
				start = s->events[i].time + grace - length > from
						? s->events[i].time + grace - length
						: from;
		for (unsigned q = 0; q < queues; q++)
			preempt(s, start + (int64_t)q * s->preemption);
		free_at = start + length;
		while (i < s->n_events && !s->events[i].activation && s->events[i].time < free_at)
			i++;
	}
}

static void draw_borrowers(struct scene *s)
{
	const struct set *set = s->set;
	int64_t window = set->activation_window > 0 ? set->activation_window * TICKS : s->window;
	unsigned left = set->changed_queues, n = (unsigned)below(BORROWERS_MAX);

	if (!set->borrowers)
		return;
	if (s->lagging)
		lag(s);
	else
		groups(s, set->activations, window, one_in(2) ? below(window / 2 + 1) : 0,
		       below(window / 4 + 1), add_activation);
	add_rounds(s);
	qsort(s->events, s->n_events, sizeof(s->events[0]), by_time);
	for (; n > 0 && left > 1; n--) {
		unsigned queues = 1 + (unsigned)below(left - 1);

		borrow(s, queues);
		left -= queues;
	}
	borrow(s, left);
}

static int by_number(const void *left, const void *right)
{
	const int64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* Preemptions wait for each other. A time-out is one that takes longer. */
static size_t line_up(struct scene *s, int64_t timeout_at, struct still *ret)
{
	int64_t timeout = s->set->timeout * TICKS;
	size_t n = 0;

	qsort(s->starts, s->n_starts, sizeof(s->starts[0]), by_number);
	for (size_t i = 0; i < s->n_starts; i++) {
		int64_t from = s->starts[i], length = s->preemption;

		if (timeout > 0 && from >= timeout_at) {
			length += timeout;
			timeout_at = from + (s->window > length ? s->window : length);
		}
		if (n > 0 && from <= ret[n - 1].to)
			ret[n - 1].to += length;
		else
			ret[n++] = (struct still){ from, from + length };
	}
	return n;
}

void disturb_draw(const struct set *set, bool lagging, int64_t window, int64_t from, int64_t to,
		  struct stills *ret)
{
	static int64_t starts[STILLS_MAX];
	struct scene s = {
		.set = set,
		.lagging = lagging && set->activation_window == 0,
		.from = from,
		.to = to,
		.window = window * TICKS,
		.preemption = set->preemption * TICKS,
		.starts = starts,
	};

	int64_t changes, middle;

	ret->n = 0;
	if (!set->preempts)
		return;
	draw_borrowers(&s);
	/* Those that begin just before can reach into what is looked at. */
	changes = set->change_window > 0 ? set->change_window * TICKS : s.window;
	middle = set->change_window > 0 ? -below(set->queue_changes * s.preemption + 1)
					: below(changes / 2 + 1);
	groups(&s, set->queue_changes, changes, one_in(3) ? 0 : middle,
	       one_in(2) ? 0 : below(changes / 4 + 1), preempt);
	ret->n = line_up(&s, one_in(2) ? 0 : below(s.window), ret->list);
}
