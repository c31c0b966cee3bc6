/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rt-model.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check-cond.h"

#define STILL_MAX 7U /* 3 bits */

enum status { IDLE, RELEASED, READY, QUEUED, DONE };

/* 14 bits for each task and 20 for the rest: a state is one number. */
struct state {
	struct {
		unsigned since; /* the release; no more than the period while idle */
		enum status status;
		unsigned ran, host, place;
	} task[RT_MODEL_TASKS];
	unsigned told;                 /* since the last paced change, up to the interval */
	unsigned pending;              /* queues of it that are not changed yet */
	unsigned still;                /* steps that the server stands still */
	unsigned other[RT_MODEL_ONCE]; /* since each last was, up to the window */
	unsigned waits;                /* steps to the grant */
	bool active;
};

struct explorer {
	const struct rt_model *model;
	struct rt_seen *seen;
	uint64_t *set; /* hash table; 0 is none, so states are kept + 1 */
	size_t room;
	uint64_t *todo;
	size_t n_todo, todo_room;
};

static uint64_t pack(const struct rt_model *m, const struct state *s)
{
	uint64_t word = 0;

	for (size_t i = 0; i < m->n_tasks; i++) {
		word = word << 4 | s->task[i].since;
		word = word << 3 | s->task[i].status;
		word = word << 3 | s->task[i].ran;
		word = word << 2 | s->task[i].host;
		word = word << 2 | s->task[i].place;
	}
	word = word << 4 | s->told;
	word = word << 2 | s->pending;
	word = word << 3 | s->still;
	for (size_t i = 0; i < RT_MODEL_ONCE; i++)
		word = word << 4 | s->other[i];
	word = word << 2 | s->waits;
	return word << 1 | s->active;
}

static unsigned take(uint64_t *word, unsigned bits)
{
	unsigned value = (unsigned)(*word & ((UINT64_C(1) << bits) - 1));

	*word >>= bits;
	return value;
}

static void unpack(const struct rt_model *m, uint64_t word, struct state *s)
{
	memset(s, 0, sizeof(*s));
	s->active = take(&word, 1);
	s->waits = take(&word, 2);
	for (size_t i = RT_MODEL_ONCE; i-- > 0;)
		s->other[i] = take(&word, 4);
	s->still = take(&word, 3);
	s->pending = take(&word, 2);
	s->told = take(&word, 4);
	for (size_t i = m->n_tasks; i-- > 0;) {
		s->task[i].place = take(&word, 2);
		s->task[i].host = take(&word, 2);
		s->task[i].ran = take(&word, 3);
		s->task[i].status = take(&word, 3);
		s->task[i].since = take(&word, 4);
	}
}

/* ---- the set of states -------------------------------------------------------------------- */

static size_t slot_of(const uint64_t *set, size_t room, uint64_t kept)
{
	size_t at = (size_t)((kept * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (room - 1);

	while (set[at] && set[at] != kept)
		at = (at + 1) & (room - 1);
	return at;
}

static void grow(struct explorer *x)
{
	size_t room = x->room ? x->room * 2 : 1024;
	uint64_t *set = calloc(room, sizeof(*set));

	CHECK(set);
	for (size_t i = 0; i < x->room; i++)
		if (x->set[i])
			set[slot_of(set, room, x->set[i])] = x->set[i];
	free(x->set);
	x->set = set;
	x->room = room;
}

static void reach(struct explorer *x, const struct state *s)
{
	uint64_t kept = pack(x->model, s) + 1;
	size_t at;

	if (x->seen->states * 2 >= x->room)
		grow(x);
	at = slot_of(x->set, x->room, kept);
	if (x->set[at])
		return;
	x->set[at] = kept;
	x->seen->states++;
	if (x->n_todo == x->todo_room) {
		x->todo_room = x->todo_room * 2 + 1024;
		x->todo = reallocarray(x->todo, x->todo_room, sizeof(*x->todo));
		CHECK(x->todo);
	}
	x->todo[x->n_todo++] = kept - 1;
}

/* ---- what may happen at a moment ---------------------------------------------------------- */

static unsigned n_queued(const struct rt_model *m, const struct state *s)
{
	unsigned n = 0;

	for (size_t i = 0; i < m->n_tasks; i++)
		n += s->task[i].status == QUEUED;
	return n;
}

static void enqueue(struct explorer *x, struct state s, size_t i)
{
	const struct rt_model *m = x->model;

	s.task[i].place = n_queued(m, &s);
	s.task[i].status = QUEUED;
	if (!s.active) {
		s.active = true;
		for (s.waits = 0; s.waits < m->activation; s.waits++)
			reach(x, &s); /* who has to give way is quicker than he may be */
	}
	reach(x, &s);
}

static void finish(struct explorer *x, struct state s, size_t i)
{
	s.task[i].status = DONE;
	s.task[i].ran = 0;
	for (size_t j = 0; j < x->model->n_tasks; j++)
		if (s.task[j].status == QUEUED)
			s.task[j].place--;
	reach(x, &s);
}

static void notice(struct explorer *x, struct state s, size_t i)
{
	unsigned *worst = &x->seen->worst[i];

	if (s.task[i].since > *worst)
		*worst = s.task[i].since;
	s.task[i].status = IDLE;
	s.task[i].host = 0;
	reach(x, &s);
}

static void act_task(struct explorer *x, const struct state *s, size_t i)
{
	struct state next = *s;

	switch (s->task[i].status) {
	case IDLE:
		if (s->task[i].since < x->model->task[i].period)
			return;
		next.task[i].since = 0;
		next.task[i].status = RELEASED;
		reach(x, &next);
		return;
	case RELEASED:
		next.task[i].status = READY;
		reach(x, &next);
		return;
	case READY: enqueue(x, next, i); return;
	case QUEUED:
		if (s->task[i].place == 0 && s->task[i].ran > 0)
			finish(x, next, i);
		return;
	case DONE: notice(x, next, i); return;
	}
}

static bool all_idle(const struct rt_model *m, const struct state *s)
{
	for (size_t i = 0; i < m->n_tasks; i++)
		if (s->task[i].status != IDLE)
			return false;
	return true;
}

/* More than has room is cut off, which who asks is told: changes that come faster than they are
 * over. */
static void stand_still(struct explorer *x, struct state s)
{
	if (s.still == STILL_MAX)
		x->seen->cut = true;
	else
		s.still++;
	reach(x, &s);
}

static void act_others(struct explorer *x, const struct state *s)
{
	const struct rt_model *m = x->model;
	struct state next = *s;

	if (m->queues > 0 && s->told >= m->interval && s->pending == 0) {
		next.told = 0;
		next.pending = m->queues;
		reach(x, &next);
		next = *s;
	}
	if (s->pending > 0) {
		next.pending--;
		stand_still(x, next);
		next = *s;
	}
	for (size_t i = 0; i < m->once; i++) {
		if (s->other[i] < m->window)
			continue;
		next.other[i] = 0;
		stand_still(x, next);
		next = *s;
	}
	if (m->activation > 0 && s->active && s->waits == 0 && all_idle(m, s)) {
		next.active = false;
		reach(x, &next);
	}
}

/* ---- time --------------------------------------------------------------------------------- */

/* Something has to happen before time goes on. */
static bool is_due(const struct rt_model *m, const struct state *s)
{
	for (size_t i = 0; i < m->n_tasks; i++) {
		enum status status = s->task[i].status;

		if ((status == RELEASED && s->task[i].since >= m->task[i].jitter) ||
		    ((status == READY || status == DONE) && s->task[i].host >= m->host) ||
		    (status == QUEUED && s->task[i].ran >= m->task[i].longest))
			return true;
	}
	return false;
}

static unsigned up_to(unsigned now, unsigned most)
{
	return now < most ? now + 1 : most;
}

/* false: a deadline has passed. */
static bool tick_task(const struct rt_model *m, struct state *s, size_t i, bool runs)
{
	if (s->task[i].status == IDLE) {
		s->task[i].since = up_to(s->task[i].since, m->task[i].period);
		return true;
	}
	if (++s->task[i].since > m->task[i].deadline)
		return false;
	s->task[i].host += s->task[i].status == READY || s->task[i].status == DONE;
	s->task[i].ran += runs && s->task[i].status == QUEUED && s->task[i].place == 0;
	return true;
}

static void tick(struct explorer *x, struct state s)
{
	const struct rt_model *m = x->model;
	bool runs = s.active && s.still == 0 && s.waits == 0;

	if (is_due(m, &s))
		return;
	for (size_t i = 0; i < m->n_tasks; i++)
		if (!tick_task(m, &s, i, runs)) {
			x->seen->missed = true;
			return;
		}
	s.told = up_to(s.told, m->interval);
	for (size_t i = 0; i < m->once; i++)
		s.other[i] = up_to(s.other[i], m->window);
	s.still -= s.still > 0;
	s.waits -= s.waits > 0;
	reach(x, &s);
}

void rt_model_explore(const struct rt_model *model, struct rt_seen *ret)
{
	struct explorer x = { .model = model, .seen = ret };
	struct state s = { .told = model->interval, .active = model->activation == 0 };

	/* Every number has to fit its bits. */
	CHECK(model->n_tasks <= RT_MODEL_TASKS && model->interval <= 15 && model->window <= 15);
	CHECK(model->host <= 3 && model->queues <= 3 && model->activation <= 3);
	CHECK(model->once <= RT_MODEL_ONCE);
	for (size_t i = 0; i < model->once; i++)
		s.other[i] = model->window;
	*ret = (struct rt_seen){ 0 };
	for (size_t i = 0; i < model->n_tasks; i++) {
		CHECK(model->task[i].period <= RT_MODEL_TIME && model->task[i].longest <= 7);
		CHECK(model->task[i].deadline <= model->task[i].period);
		s.task[i].since = model->task[i].period;
	}
	reach(&x, &s);
	while (x.n_todo > 0 && !ret->missed) {
		unpack(model, x.todo[--x.n_todo], &s);
		for (size_t i = 0; i < model->n_tasks; i++)
			act_task(&x, &s, i);
		act_others(&x, &s);
		tick(&x, s);
	}
	free(x.set);
	free(x.todo);
}
