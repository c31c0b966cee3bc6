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

/* The level is searched in steps of this part of a share. */
#define PARTS 1024U

/* With at most so many leases, a layout is searched in which they keep more of their units. With more leases
 * this search takes too long. */
#define SETTLED 32U

/* The cost of a change of a mask, in units that a lease lacks. */
#define CHANGE 0x1000U

struct search {
	struct layout *layout;
	unsigned steps;
	bool stable;             /* leases keep what they have rather than fit */
	size_t *order;           /* the terms, the largest first */
	unsigned *levels, *best; /* of the present rectangles, and of the best ones so far */
	unsigned sum;            /* of the best ones */
	bool any;                /* are there any? */
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
	struct option at[2 * LAYOUT_COLUMNS + 1];
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

static void add_option(const struct layout *layout, const struct layout_term *term,
		       const struct rect *rect, struct options *options)
{
	for (size_t i = 0; i < options->n; i++)
		if (options->at[i].rect.columns == rect->columns &&
		    options->at[i].rect.height == rect->height)
			return;
	if (!rect->columns || !is_allowed(layout, term, rect))
		return;
	options->at[options->n++] = (struct option){ *rect, rect_area(rect) - term->want,
						     cost_of(term, rect) };
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

	ret->n = 0;
	if (s->stable && present.columns && rect_area(&present) >= term->want &&
	    has_room(room, &present))
		add_option(layout, term, &present, ret);
	for (unsigned k = 1; k <= layout->n_columns; k++) {
		struct rect rect = { 0, (term->want + k - 1) / k };

		for (int widest = 0; widest <= 1; widest++) {
			rect.columns = pick_columns(layout, term, room, k, rect.height, widest);
			add_option(layout, term, &rect, ret);
		}
	}
	qsort_r(ret->at, ret->n, sizeof(*ret->at), by_fit, s);
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

/* Finds a rectangle of this part of each share, the largest first. false: none was found within the
 * steps. */
static bool pack(struct search *s, unsigned part)
{
	struct layout *layout = s->layout;

	for (size_t i = 0; i < layout->n; i++) {
		struct layout_term *term = &layout->terms[i];
		uint64_t one = PARTS * LAYOUT_UNIT;
		uint64_t want = ((uint64_t)term->share * part + one - 1) / one;

		term->want = max_u(term->least, (unsigned)want);
		s->order[i] = i;
	}
	qsort_r(s->order, layout->n, sizeof(*s->order), by_size, s);
	s->steps = STEPS + (unsigned)layout->n;
	if (!pack_from(s, 0, layout->free))
		return false;
	for (size_t i = 0; i < layout->n; i++)
		layout->terms[i].rect = layout->terms[i].packed;
	return true;
}

/* ---- what is left ------------------------------------------------------------------------ */

static unsigned level_of(const struct layout_term *term)
{
	uint64_t area = (uint64_t)rect_area(&term->rect) * LAYOUT_UNIT * LAYOUT_WHOLE;

	return (unsigned)min_u64(area / max_u(term->share, 1), UINT_MAX);
}

/* Is there room for the rectangle instead of the one that the lease has? *ret_left: what is left in its
 * columns. */
static bool is_room(const struct layout_term *term, const struct rect *rect, const unsigned *left,
		    unsigned *ret_left)
{
	*ret_left = 0;
	for (size_t c = 0; c < LAYOUT_COLUMNS; c++) {
		unsigned has = term->rect.columns >> c & 1 ? term->rect.height : 0;

		if (!(rect->columns >> c & 1))
			continue;
		if (left[c] + has < rect->height)
			return false;
		*ret_left += left[c];
	}
	return rect_area(rect) <= max_u(term->least, term->most);
}

/* One more unit in each column, or one more column: the larger one of the two. false: there is no room. */
static bool find_extension(const struct layout *layout, const struct layout_term *term,
			   const unsigned *left, struct rect *ret)
{
	struct rect rect = { term->rect.columns, term->rect.height + 1 };
	unsigned room, most = 0;
	bool found = is_room(term, &rect, left, &room);

	*ret = rect;
	for (size_t c = 0; c < layout->n_columns; c++) {
		rect = (struct rect){ term->rect.columns | UINT32_C(1) << c, term->rect.height };
		if (rect.columns == term->rect.columns || !is_room(term, &rect, left, &room) ||
		    (found && rect_area(&rect) < rect_area(ret)) ||
		    (found && rect_area(&rect) == rect_area(ret) && room <= most))
			continue;
		*ret = rect;
		most = room;
		found = true;
	}
	return found;
}

/* The lease that is furthest below its share, of those that may have more; NULL. */
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

/* What is left becomes less: a lease that finds no room once finds none later. */
static void extend(struct layout *layout)
{
	unsigned left[LAYOUT_COLUMNS];
	struct layout_term *term;
	struct rect next;

	memcpy(left, layout->free, sizeof(left));
	for (size_t i = 0; i < layout->n; i++) {
		take(left, &layout->terms[i].rect, true);
		layout->terms[i].full = false;
	}
	while ((term = find_lowest(layout))) {
		term->full = !find_extension(layout, term, left, &next);
		if (term->full)
			continue;
		take(left, &term->rect, false);
		take(left, &next, true);
		term->rect = next;
	}
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

/* Extends the rectangles, and keeps them if they are the best ones so far. */
static void judge(struct search *s)
{
	struct layout *layout = s->layout;
	unsigned sum = 0;

	extend(layout);
	find_levels(layout, s->levels);
	for (size_t i = 0; i < layout->n; i++)
		sum += rect_area(&layout->terms[i].rect);
	if (s->any && (is_better(s->best, s->levels, layout->n) ||
		       (!is_better(s->levels, s->best, layout->n) && sum <= s->sum)))
		return;
	for (size_t i = 0; i < layout->n; i++)
		layout->terms[i].best = layout->terms[i].rect;
	memcpy(s->best, s->levels, layout->n * sizeof(*s->best));
	s->sum = sum;
	s->any = true;
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

/* Takes a layout in which leases keep more, if it is not clearly worse. */
static void settle(struct search *s, unsigned part)
{
	struct layout *layout = s->layout;
	unsigned cost;

	for (size_t i = 0; i < layout->n; i++)
		layout->terms[i].rect = layout->terms[i].best;
	cost = cost_of_all(layout);
	s->stable = true;
	if (!pack(s, part))
		return;
	extend(layout);
	if (cost_of_all(layout) >= cost)
		return;
	find_levels(layout, s->levels);
	if (layout_is_clearly_better(s->best, s->levels, layout->n))
		return;
	for (size_t i = 0; i < layout->n; i++)
		layout->terms[i].best = layout->terms[i].rect;
}

static void search(struct search *s)
{
	unsigned low = 0, high = PARTS;
	struct layout *layout = s->layout;

	if (!pack(s, low))
		return;
	judge(s);
	while (low < high) {
		unsigned middle = high - (high - low) / 2;

		if (pack(s, middle)) {
			judge(s);
			low = middle;
		} else {
			high = middle - 1;
		}
	}
	if (layout->n <= SETTLED)
		for (unsigned i = 0; i <= 4; i++)
			settle(s, low - low * i / (4 * LAYOUT_CLEARLY));
	for (size_t i = 0; i < layout->n; i++)
		layout->terms[i].rect = layout->terms[i].best;
	while (layout->n <= SETTLED && swap_all(layout))
		;
}

int layout_find(struct layout *layout)
{
	_cleanup_(freep) size_t *order = calloc(layout->n + 1, sizeof(*order));
	_cleanup_(freep) unsigned *levels = calloc(2 * layout->n + 1, sizeof(*levels));
	struct search s = { .layout = layout, .order = order, .levels = levels };

	if (!order || !levels)
		return -ENOMEM;
	s.best = &levels[layout->n];
	search(&s);
	return s.any;
}
