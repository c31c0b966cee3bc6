/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/layout/layout.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"

/* Rectangles that one packing tries. With more, packing found no better layouts of random leases on random
 * columns. */
#define STEPS 400U

/* As much for one more unit of a lease. */
#define STEPS_MORE 32U

/* The level is searched in steps of this part of a share. */
#define PARTS 1024U

/* With more leases there is no time to pack all anew for one of them that gets more, nor to search a layout in
 * which they keep more of their units. */
#define SETTLED 32U

/* The cost of a change of a mask, in units that a lease lacks. */
#define CHANGE 0x1000U

struct search {
	struct layout *layout;
	unsigned steps;
	bool stable;                    /* leases keep what they have rather than fit */
	const struct layout_term *last; /* is packed last, the others where they are if they can */
	size_t *order;                  /* the terms, the largest first */
	unsigned *levels, *best;        /* of the present rectangles, and of the best ones so far */
};

/* Takes a rectangle from the units of each column, or puts it back. */
static void take(unsigned *units, const struct rect *rect, bool takes)
{
	for (size_t c = 0; c < LAYOUT_COLUMNS; c++)
		if (rect->columns >> c & 1)
			units[c] = takes ? units[c] - rect->height : units[c] + rect->height;
}

/* Are there k columns with as many of these units? */
static bool has_columns(const uint8_t units[static LAYOUT_COLUMNS], const struct rect *rect,
			unsigned k, unsigned height)
{
	unsigned n = 0;

	for (uint32_t left = rect->columns; left && n < k; left &= left - 1)
		n += units[__builtin_ctz(left)] >= height;
	return n >= k;
}

bool layout_has_least(const struct layout *layout, const struct layout_term *term,
		      const struct rect *rect)
{
	unsigned columns = (unsigned)__builtin_popcount(rect->columns);

	for (unsigned k = 1; k <= columns; k++) {
		size_t x = 0;

		if (term->least % k != 0 || term->least / k > rect->height)
			continue;
		while (x < layout->n_xccs && has_columns(term->own[x], rect, k, term->least / k))
			x++;
		if (x == layout->n_xccs)
			return true;
	}
	return false;
}

static bool is_allowed(const struct layout *layout, const struct layout_term *term,
		       const struct rect *rect)
{
	return rect_area(rect) <= max_u(term->least, term->most) &&
	       layout_has_least(layout, term, rect);
}

/* On all XCCs. */
static unsigned own_in(const struct layout *layout, const struct layout_term *term, size_t column)
{
	unsigned own = 0;

	for (size_t x = 0; x < layout->n_xccs; x++)
		own += term->own[x][column];
	return own;
}

static unsigned held_by(const struct layout_term *term)
{
	unsigned held = 0;

	for (size_t c = 0; c < LAYOUT_COLUMNS; c++)
		held += term->held[c];
	return held;
}

/* What it costs the lease to get the rectangle: how often its mask changes; of layouts with as many changes, the
 * units that it lacks in between of those that it has before and after. */
static unsigned cost_of(const struct layout_term *term, const struct rect *rect)
{
	unsigned kept = 0, held = held_by(term), area = rect_area(rect);

	for (size_t c = 0; c < LAYOUT_COLUMNS; c++)
		kept += rect->columns >> c & 1 ? min_u(term->held[c], rect->height) : 0;
	if (held == 0)
		return 0;
	return (unsigned)((kept < held) + (kept < area)) * CHANGE + min_u(held, area) - kept;
}

/* ---- packing ----------------------------------------------------------------------------- */

struct option {
	struct rect rect;
	unsigned spare, cost; /* spare: units beyond what is wanted */
};

struct options {
	struct option at[2 * LAYOUT_COLUMNS + 2];
	size_t n;
};

/* Sorts terms by the units that they want, or in a stable search by those that they hold: the largest first. */
static int by_size(const void *left, const void *right, void *search)
{
	size_t a = *(const size_t *)left, b = *(const size_t *)right;
	const struct search *s = search;
	const struct layout_term *terms = s->layout->terms;
	unsigned x = s->stable ? held_by(&terms[a]) : terms[a].want;
	unsigned y = s->stable ? held_by(&terms[b]) : terms[b].want;

	if (s->last == &terms[a] || s->last == &terms[b])
		return s->last == &terms[a] ? 1 : -1;
	return x != y ? (x < y) - (x > y) : (a > b) - (a < b);
}

static int by_fit(const void *left, const void *right, void *search)
{
	const struct option *a = left, *b = right;
	bool stable = ((const struct search *)search)->stable;

	if (a->cost != b->cost && (stable || a->spare == b->spare))
		return a->cost < b->cost ? -1 : 1;
	if (a->spare != b->spare)
		return a->spare < b->spare ? -1 : 1;
	return (a->rect.columns > b->rect.columns) - (a->rect.columns < b->rect.columns);
}

/* k columns with room for this height: first those that its least can be in, until there are enough; then those
 * that the lease has most of, then the fullest ones; widest: the emptiest ones, and, for a lease that begins, of these
 * the ones that its least cannot be in, so that others find theirs. 0: there are too few. */
static uint32_t pick_columns(const struct layout *layout, const struct layout_term *term,
			     const unsigned *room, unsigned k, unsigned height, bool widest)
{
	uint32_t picked = 0;
	bool begins = held_by(term) == 0;

	for (; k > 0; k--) {
		bool lacks = !layout_has_least(layout, term, &(struct rect){ picked, height });
		size_t best = layout->n_columns;
		unsigned best_rank = 0;

		for (size_t c = 0; c < layout->n_columns; c++) {
			unsigned own = min_u(own_in(layout, term, c), 0xff);
			unsigned kept = widest ? 0 : min_u(term->held[c], height);
			unsigned fit = widest ? room[c] : UINT16_MAX - room[c];
			unsigned rank = min_u(kept, 0xff) << 16 | fit;

			rank = lacks ? own << 24 | rank
				     : rank << 1 | (begins && widest && own == 0);
			if ((picked >> c & 1) || room[c] < height ||
			    (best < layout->n_columns && rank <= best_rank))
				continue;
			best = c;
			best_rank = rank;
		}
		if (best == layout->n_columns)
			return 0;
		picked |= UINT32_C(1) << best;
	}
	return picked;
}

/* false: the lease may not have this rectangle. */
static bool add_option(const struct layout *layout, const struct layout_term *term,
		       const struct rect *rect, struct options *options)
{
	for (size_t i = 0; i < options->n; i++)
		if (options->at[i].rect.columns == rect->columns &&
		    options->at[i].rect.height == rect->height)
			return true;
	if (!is_allowed(layout, term, rect))
		return false;
	options->at[options->n++] = (struct option){ *rect, rect_area(rect) - term->want,
						     cost_of(term, rect) };
	return true;
}

/* k columns, as high as it takes: there is room for the least in all of them, or in fewer if that is not allowed. */
static void add_columns(const struct layout *layout, const struct layout_term *term,
			const unsigned *room, unsigned k, bool widest, struct options *options)
{
	struct rect rect = { 0 };

	for (unsigned parts = k; parts > 0; parts--) {
		unsigned height = max_u((term->want + k - 1) / k, term->least / parts);

		if (term->least % parts != 0 || height == rect.height)
			continue;
		rect.height = height;
		rect.columns = pick_columns(layout, term, room, k, height, widest);
		if (!rect.columns || add_option(layout, term, &rect, options))
			return;
	}
}

/* What the lease has now. */
static struct rect present_of(const struct layout_term *term)
{
	struct rect rect = { 0, UINT_MAX };

	for (size_t c = 0; c < LAYOUT_COLUMNS; c++)
		if (term->held[c] > 0) {
			rect.columns |= UINT32_C(1) << c;
			rect.height = min_u(rect.height, term->held[c]);
		}
	return rect;
}

static bool has_room(const unsigned *room, const struct rect *rect)
{
	for (size_t c = 0; c < LAYOUT_COLUMNS; c++)
		if ((rect->columns >> c & 1) && room[c] < rect->height)
			return false;
	return true;
}

static void find_options(struct search *s, const struct layout_term *term, const unsigned *room,
			 struct options *ret)
{
	const struct layout *layout = s->layout;
	struct rect present = present_of(term);
	size_t first;

	ret->n = 0;
	if (s->last && s->last != term && has_room(room, &term->rect))
		add_option(layout, term, &term->rect, ret);
	first = ret->n;
	if (first > 0 && layout->n > SETTLED)
		return;
	if (s->stable && present.columns && rect_area(&present) >= term->want &&
	    has_room(room, &present))
		add_option(layout, term, &present, ret);
	for (unsigned k = 1; k <= layout->n_columns; k++)
		for (int widest = 0; widest <= 1; widest++)
			add_columns(layout, term, room, k, widest, ret);
	qsort_r(&ret->at[first], ret->n - first, sizeof(*ret->at), by_fit, s);
}

/* Is there room for what the leases from the i-th largest on want, whatever its shape? */
static bool is_enough(const struct search *s, size_t i, const unsigned *room)
{
	unsigned units = 0;

	for (size_t c = 0; c < s->layout->n_columns; c++)
		units += room[c];
	for (; i < s->layout->n; i++) {
		unsigned want = s->layout->terms[s->order[i]].want;

		if (want > units)
			return false;
		units -= want;
	}
	return true;
}

/* Packs the leases from the i-th largest on. */
static bool pack_from(struct search *s, size_t i, const unsigned *room)
{
	unsigned left[LAYOUT_COLUMNS];
	struct options options;
	struct layout_term *term;

	if (i == s->layout->n)
		return true;
	if (!is_enough(s, i, room))
		return false;
	term = &s->layout->terms[s->order[i]];
	find_options(s, term, room, &options);
	for (size_t j = 0; j < options.n && s->steps > 0; j++) {
		s->steps--;
		term->packed = options.at[j].rect;
		memcpy(left, room, sizeof(left));
		take(left, &term->packed, true);
		if (pack_from(s, i + 1, left))
			return true;
	}
	return false;
}

/* Finds a rectangle of what each lease wants, the largest first. false: none was found within the steps. */
static bool pack(struct search *s, unsigned steps)
{
	struct layout *layout = s->layout;

	for (size_t i = 0; i < layout->n; i++)
		s->order[i] = i;
	qsort_r(s->order, layout->n, sizeof(*s->order), by_size, s);
	s->steps = steps + (unsigned)layout->n;
	if (!pack_from(s, 0, layout->free))
		return false;
	for (size_t i = 0; i < layout->n; i++)
		layout->terms[i].rect = layout->terms[i].packed;
	return true;
}

/* Each wants this part of its share. */
static bool pack_part(struct search *s, unsigned part)
{
	for (size_t i = 0; i < s->layout->n; i++) {
		struct layout_term *term = &s->layout->terms[i];
		uint64_t one = PARTS * LAYOUT_UNIT;
		uint64_t want = ((uint64_t)term->share * part + one - 1) / one;

		term->want = max_u(term->least, (unsigned)want);
	}
	return pack(s, STEPS);
}

/* ---- what is left ------------------------------------------------------------------------ */

static unsigned level_of(const struct layout_term *term)
{
	uint64_t area = (uint64_t)rect_area(&term->rect) * LAYOUT_UNIT * LAYOUT_WHOLE;

	return (unsigned)min_u64(area / max_u(term->share, 1), UINT_MAX);
}

/* The lease that is furthest below its share, of those that can have more; NULL. */
static struct layout_term *find_lowest(const struct layout *layout)
{
	struct layout_term *lowest = NULL;

	for (size_t i = 0; i < layout->n; i++) {
		struct layout_term *term = &layout->terms[i];

		if (!term->full && (!lowest || level_of(term) < level_of(lowest)))
			lowest = term;
	}
	return lowest;
}

/* Can the lease have a unit more, and the others what they have? They are packed anew, or around it. */
static bool raise_term(struct search *s, struct layout_term *term)
{
	bool raised;

	for (size_t i = 0; i < s->layout->n; i++)
		s->layout->terms[i].want = rect_area(&s->layout->terms[i].rect);
	term->want++;
	if (term->want > (s->stable ? rect_area(&term->best) : term->most))
		return false;
	if (s->layout->n <= SETTLED && pack(s, STEPS_MORE))
		return true;
	s->last = term;
	raised = pack(s, STEPS_MORE);
	s->last = NULL;
	return raised;
}

/* The worst-off lease that can have more gets it; in a stable search, no more than in the best layout. */
static void extend(struct search *s)
{
	struct layout_term *term;

	for (size_t i = 0; i < s->layout->n; i++)
		s->layout->terms[i].full = false;
	while ((term = find_lowest(s->layout)))
		term->full = !raise_term(s, term);
}

/* ---- what is better ---------------------------------------------------------------------- */

static int by_level(const void *left, const void *right)
{
	const unsigned *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

void layout_sort_levels(unsigned *levels, size_t n)
{
	qsort(levels, n, sizeof(*levels), by_level);
}

/* Is the first level larger in which they differ? */
static bool is_better(const unsigned *a, const unsigned *b, size_t n)
{
	size_t i = 0;

	while (i < n && a[i] == b[i])
		i++;
	return i < n && a[i] > b[i];
}

bool layout_is_clearly_better(const unsigned *a, const unsigned *b, size_t n)
{
	size_t i = 0;

	while (i < n && a[i] < b[i] + max_u(b[i] / LAYOUT_CLEARLY, 1) &&
	       b[i] < a[i] + max_u(a[i] / LAYOUT_CLEARLY, 1))
		i++;
	return i < n && a[i] > b[i] && is_better(a, b, n);
}

static void find_levels(const struct layout *layout, unsigned *ret)
{
	for (size_t i = 0; i < layout->n; i++)
		ret[i] = min_u(level_of(&layout->terms[i]), LAYOUT_WHOLE);
	layout_sort_levels(ret, layout->n);
}

static void keep(struct layout *layout)
{
	for (size_t i = 0; i < layout->n; i++)
		layout->terms[i].best = layout->terms[i].rect;
}

/* ---- what is kept ------------------------------------------------------------------------ */

static unsigned cost_of_all(const struct layout *layout)
{
	unsigned cost = 0;

	for (size_t i = 0; i < layout->n; i++)
		cost += cost_of(&layout->terms[i], &layout->terms[i].rect);
	return cost;
}

static bool is_sound(const struct layout *layout)
{
	unsigned used[LAYOUT_COLUMNS] = { 0 };

	for (size_t i = 0; i < layout->n; i++) {
		if (!is_allowed(layout, &layout->terms[i], &layout->terms[i].rect))
			return false;
		take(used, &layout->terms[i].rect, false);
	}
	for (size_t c = 0; c < layout->n_columns; c++)
		if (used[c] > layout->free[c])
			return false;
	return true;
}

static void swap_columns(struct layout *layout, size_t a, size_t b)
{
	uint32_t both = UINT32_C(1) << a | UINT32_C(1) << b;

	for (size_t i = 0; i < layout->n; i++)
		if ((layout->terms[i].rect.columns & both) &&
		    (layout->terms[i].rect.columns & both) != both)
			layout->terms[i].rect.columns ^= both;
}

/* Swaps columns for which leases keep more. */
static bool swap_all(struct layout *layout)
{
	bool any = false;

	for (size_t a = 0; a < layout->n_columns; a++)
		for (size_t b = a + 1; b < layout->n_columns; b++) {
			unsigned cost = cost_of_all(layout);

			swap_columns(layout, a, b);
			if (cost_of_all(layout) < cost && is_sound(layout))
				any = true;
			else
				swap_columns(layout, a, b);
		}
	return any;
}

/* Takes a layout in which leases keep more, if it is not clearly worse. Each wants what it has in the best one, or a
 * little less, which is then extended. */
static void settle(struct search *s, bool less)
{
	struct layout *layout = s->layout;
	unsigned cost;

	for (size_t i = 0; i < layout->n; i++) {
		struct layout_term *term = &layout->terms[i];
		unsigned best = rect_area(&term->best);

		term->rect = term->best;
		term->want = max_u(term->least, less ? best - best / LAYOUT_CLEARLY : best);
	}
	cost = cost_of_all(layout);
	s->stable = true;
	if (cost == 0 || !pack(s, STEPS))
		return;
	extend(s);
	find_levels(layout, s->levels);
	if (cost_of_all(layout) < cost && !layout_is_clearly_better(s->best, s->levels, layout->n))
		keep(layout);
}

static bool search(struct search *s)
{
	unsigned low = 0, high = PARTS;
	struct layout *layout = s->layout;

	if (!pack_part(s, low))
		return false;
	while (low < high) {
		unsigned middle = high - (high - low) / 2;

		if (pack_part(s, middle))
			low = middle;
		else
			high = middle - 1;
	}
	extend(s);
	find_levels(layout, s->best);
	keep(layout);
	for (int less = 0; layout->n <= SETTLED && less <= 1; less++)
		settle(s, less);
	for (size_t i = 0; i < layout->n; i++)
		layout->terms[i].rect = layout->terms[i].best;
	while (layout->n <= SETTLED && swap_all(layout))
		;
	return true;
}

int layout_find(struct layout *layout)
{
	_cleanup_(freep) size_t *order = calloc(layout->n + 1, sizeof(*order));
	_cleanup_(freep) unsigned *levels = calloc(2 * layout->n + 1, sizeof(*levels));
	struct search s = { .layout = layout, .order = order, .levels = levels };

	if (!order || !levels)
		return -ENOMEM;
	s.best = &levels[layout->n];
	return search(&s);
}
