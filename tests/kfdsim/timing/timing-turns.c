/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Turns: with more queues than slots or more processes than VMIDs the run list is chained to
 * itself and the scheduler goes round it (pm_calc_rlib_size()). What is mapped keeps its place
 * for a quantum whether it has work or not.
 */

#include "kfdsim/timing/timing-internal.h"

/* process_quantum of MAP_PROCESS is 10; the firmware's unit is commonly read as ms. 1 ms, a
 * queue's quantum, fits the oversubscribed rows worse. */
#define QUANTUM_NS UINT64_C(10000000)

static bool oversubscribed(const struct timing *t)
{
	const struct timing_queue *before = NULL;
	unsigned queues = 0, processes = 0;

	for (const struct timing_queue *q = t->queues; q; before = q, q = q->next) {
		queues++;
		processes += !before || before->process != q->process;
	}
	return (t->queue_slots > 0 && queues > t->queue_slots) ||
	       (t->process_slots > 0 && processes > t->process_slots);
}

static struct timing_queue *after(const struct timing *t, const struct timing_queue *queue)
{
	return queue->next ? queue->next : t->queues;
}

/* Chooses whom the next turn is for: from the cursor on, round the list, as many as there are
 * slots and VMIDs. */
static void choose(struct timing *t)
{
	struct timing_queue *first = t->cursor ? t->cursor : t->queues, *q = first;
	unsigned queues = 0, processes = 0;
	uint64_t last = 0;

	for (struct timing_queue *i = t->queues; i; i = i->next)
		i->chosen = false;
	do {
		bool other = processes == 0 || (q->process != last && q->process != first->process);

		if ((t->queue_slots > 0 && queues == t->queue_slots) ||
		    (t->process_slots > 0 && other && processes == t->process_slots))
			break;
		processes += other;
		queues++;
		last = q->process;
		q->chosen = true;
		q = after(t, q);
	} while (q != first);
	t->cursor = q;
}

/* Those that leave go first: their blocks make room. */
static void carry_out(struct timing *t)
{
	for (struct timing_queue *q = t->queues; q; q = q->next) {
		if (!q->mapped || q->chosen)
			continue;
		q->mapped = false;
		timing_leave(t, q);
	}
	for (struct timing_queue *q = t->queues; q; q = q->next) {
		if (q->mapped || !q->chosen)
			continue;
		q->mapped = true;
		timing_enter(t, q);
	}
	timing_deal(t, TIMING_ALL(t));
}

void timing_turn_next(struct timing *t)
{
	t->turn_end = t->now + QUANTUM_NS;
	timing_stop(t, NULL, TIMING_SWITCH_NS);
	choose(t);
	carry_out(t);
}

void timing_turns_changed(struct timing *t)
{
	if (oversubscribed(t)) {
		if (t->turn_end == TIMING_NEVER)
			timing_turn_next(t);
		return;
	}
	t->turn_end = TIMING_NEVER;
	t->cursor = NULL;
	for (struct timing_queue *q = t->queues; q; q = q->next)
		q->chosen = true;
	carry_out(t);
}

void timing_cursor_skip(struct timing *t, const struct timing_queue *queue)
{
	if (t->cursor == queue)
		t->cursor = queue->next;
}
