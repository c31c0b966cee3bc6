/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/layout/layout.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"

/* How often one packing may try the rectangles of a lease. With 400, packing found hardly any better layouts of 24
 * random leases, and none of six. */
#define STEPS 128U

/* The same for a packing in which one lease gets a unit more. */
#define STEPS_MORE 32U

/* The level is searched in steps of this part of a share. */
#define PARTS 1024U

/* The cost of a change of a mask, in units that a lease lacks. */
#define CHANGE 0x1000U

/* The table of dead ends has 1 << DEAD_BITS entries. */
#define DEAD_BITS 8U

/* Shapes of a lease, at most: for each number of columns, a height for each number of these that hold its least. */
#define SHAPES (LAYOUT_COLUMNS * (LAYOUT_COLUMNS + 1) / 2)

/* ---- units of the columns, a byte each --------------------------------------------------- */

#define EACH UINT64_C(0x0101010101010101)
#define TOPS (EACH << 7)
#define UNITS_MAX 0x7fU /* of a column */

/* The top bit of each column in which a has as much as b. */
static uint64_t compare(uint64_t a, uint64_t b)
{
	return ((a | TOPS) - b) & TOPS;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	uint64_t all = (compare(a, b) >> 7) * UINT8_MAX;

	return (b & all) | (a & ~all);
}

static unsigned sum(uint64_t units)
{
	const uint64_t even = UINT64_C(0x00ff00ff00ff00ff);

	units = (units & even) + (units >> 8 & even);
	return (unsigned)(units * UINT64_C(0x0001000100010001) >> 48);
}

static unsigned in_column(uint64_t units, unsigned column)
{
	return units >> 8 * column & UINT8_MAX;
}

/* The columns with as many units (bits). */
static uint32_t columns_with(uint64_t units, unsigned height)
{
	if (height > UNITS_MAX)
		return 0;
	return (uint32_t)((compare(units, height * EACH) >> 7) * UINT64_C(0x0102040810204080) >>
			  56);
}

/* Units of a rectangle, which has no more than UNITS_MAX in a column. */
static uint64_t units_of(const struct rect *rect)
{
	uint64_t bits = rect->columns * EACH & UINT64_C(0x8040201008040201);

	return ((bits + UNITS_MAX * EACH) >> 7 & EACH) * rect->height;
}

static bool has_room(uint64_t room, const struct rect *rect)
{
	return compare(room, units_of(rect)) == TOPS;
}

/* ---- leases ------------------------------------------------------------------------------ */

struct shape {
	unsigned columns, height;
};

/* A term while it is laid out. */
struct item {
	const struct layout_term *term;
	uint64_t held, own; /* units; own: on all XCCs, UNITS_MAX at most */
	unsigned n_held;
	struct rect present; /* within what it has */

	/* The shapes that its least can have, and for each of them find_columns(). */
	struct shape leasts[LAYOUT_COLUMNS];
	uint64_t columns[LAYOUT_COLUMNS];
	size_t n_leasts;

	unsigned want, goal;
	struct shape shapes[SHAPES]; /* of what is wanted, the smallest first */
	size_t n_shapes;
	uint64_t smallest;      /* units of the smallest shape, somewhere; 0: unknown */
	uint64_t others;        /* units that leases hold that are packed later */
	struct rect first;      /* is tried before all shapes; or none */
	struct rect packed;     /* in the search */
	struct rect rect, best; /* found at last, and in the best layout */
	bool full;
};

/* The leases from the i-th one on have no packing in this room that costs less. */
struct dead_end {
	uint64_t room, packing;
	size_t i;
	unsigned cost;
};

struct search {
	const struct layout *layout;
	struct item *items, **order; /* order: in which they are packed */
	size_t n;
	uint64_t free;
	bool stable;             /* leases keep what they have rather than fit */
	const struct item *last; /* is packed last, the others where they are if they can */
	unsigned steps;
	unsigned cost;           /* of the best packing; UINT_MAX: there is none yet */
	unsigned *levels, *best; /* of the present rectangles, and of the best layout so far */
	uint64_t packing;        /* their number */
	struct dead_end dead[1U << DEAD_BITS];
};

/* The columns of each XCC in which the lease may have so many units: a byte of bits for each XCC. */
static uint64_t find_columns(const struct layout *layout, const struct layout_term *term,
			     unsigned height)
{
	uint64_t ret = UINT64_MAX;

	for (size_t x = 0; x < layout->n_xccs; x++)
		for (size_t c = 0; c < LAYOUT_COLUMNS; c++)
			if (term->own[x][c] < height)
				ret &= ~bit_u64(8 * x + c);
	return ret;
}

static void item_init(struct item *item, const struct layout *layout,
		      const struct layout_term *term)
{
	*item = (struct item){ .term = term, .present.height = UNITS_MAX };
	for (unsigned c = 0; c < layout->n_columns; c++) {
		unsigned own = 0;

		for (size_t x = 0; x < layout->n_xccs; x++)
			own += term->own[x][c];
		item->own |= (uint64_t)min_u(own, UNITS_MAX) << 8 * c;
		item->held |= (uint64_t)term->held[c] << 8 * c;
		item->n_held += term->held[c];
		if (term->held[c] == 0)
			continue;
		item->present.columns |= UINT32_C(1) << c;
		item->present.height = min_u(item->present.height, term->held[c]);
	}
	for (unsigned k = 1; k <= layout->n_columns; k++) {
		if (term->least % k != 0)
			continue;
		item->leasts[item->n_leasts] = (struct shape){ k, term->least / k };
		item->columns[item->n_leasts++] = find_columns(layout, term, term->least / k);
	}
}

/* Have all XCCs as many of these columns? */
static bool has_each(uint64_t columns, unsigned n)
{
	columns -= columns >> 1 & 0x55 * EACH;
	columns = (columns & 0x33 * EACH) + (columns >> 2 & 0x33 * EACH);
	columns = (columns + (columns >> 4)) & 0x0f * EACH;
	return compare(columns, n * EACH) == TOPS;
}

static bool has_least(const struct item *item, const struct rect *rect)
{
	for (size_t i = 0; i < item->n_leasts; i++)
		if (item->leasts[i].height <= rect->height &&
		    has_each(item->columns[i] & rect->columns * EACH, item->leasts[i].columns))
			return true;
	return false;
}

bool layout_has_least(const struct layout *layout, const struct layout_term *term,
		      const struct rect *rect)
{
	const struct rect within = { rect->columns & ((1U << layout->n_columns) - 1),
				     rect->height };
	struct item item;

	item_init(&item, layout, term);
	return has_least(&item, &within);
}

static bool is_allowed(const struct item *item, const struct rect *rect)
{
	return rect_area(rect) <= max_u(item->term->least, item->term->most) &&
	       has_least(item, rect);
}

/* What it costs the lease to get the rectangle: how often its mask changes; of layouts with as many changes, the
 * units that it lacks in between of those that it has before and after. */
static unsigned cost_of(const struct item *item, const struct rect *rect)
{
	unsigned kept = sum(lesser(item->held, units_of(rect))), area = rect_area(rect);

	if (item->n_held == 0)
		return 0;
	return (unsigned)((kept < item->n_held) + (kept < area)) * CHANGE +
	       min_u(item->n_held, area) - kept;
}

/* ---- packing ----------------------------------------------------------------------------- */

struct option {
	struct rect rect;
	unsigned cost;
};

struct options {
	struct option at[3 * SHAPES];
	size_t n;
};

/* The largest first, or in a stable search those that hold most. */
static bool is_before(const struct search *s, const struct item *a, const struct item *b)
{
	unsigned x = s->stable ? a->n_held : a->want, y = s->stable ? b->n_held : b->want;

	if (s->last == a || s->last == b)
		return s->last == b;
	return x != y ? x > y : a < b;
}

static void sort_items(struct search *s)
{
	for (size_t i = 1; i < s->n; i++)
		for (size_t j = i; j > 0 && is_before(s, s->order[j], s->order[j - 1]); j--) {
			struct item *item = s->order[j];

			s->order[j] = s->order[j - 1];
			s->order[j - 1] = item;
		}
}

static unsigned spare_of(const struct item *item, const struct shape *shape)
{
	return shape->columns * shape->height - item->want;
}

static void add_shape(struct item *item, struct shape shape)
{
	size_t at = item->n_shapes++;

	for (; at > 0 && spare_of(item, &item->shapes[at - 1]) > spare_of(item, &shape); at--)
		item->shapes[at] = item->shapes[at - 1];
	item->shapes[at] = shape;
}

/* Sets what the lease wants: so many columns, as high as it takes, or higher if the least is in fewer of them. */
static void set_want(const struct search *s, struct item *item, unsigned want)
{
	if (item->want == want && item->n_shapes > 0)
		return;
	item->want = want;
	item->n_shapes = 0;
	item->smallest = 0;
	for (unsigned k = 1; k <= s->layout->n_columns; k++)
		for (size_t i = item->n_leasts, last = 0; i-- > 0;) {
			unsigned height = max_u((want + k - 1) / k, item->leasts[i].height);

			if (item->leasts[i].columns > k || height == last)
				continue;
			add_shape(item, (struct shape){ k, height });
			last = height;
		}
}

/* Columns with room for this shape: first those that its least can be in, until there are enough; then those that
 * the lease has most of, then the fullest ones; widest: the emptiest ones, and, for a lease that begins, of these the
 * ones that its least cannot be in, so that others find theirs. 0: there are too few. */
static uint32_t pick_columns(const struct item *item, uint64_t room, const struct shape *shape,
			     bool widest)
{
	uint32_t left = columns_with(room, shape->height);
	unsigned ranks[LAYOUT_COLUMNS], n = cuset_count_word(left);
	struct rect picked = { 0, shape->height };
	bool lacks = true;

	if (n <= shape->columns)
		return n == shape->columns ? left : 0;
	for (uint32_t rest = left; rest; rest &= rest - 1) {
		unsigned c = (unsigned)__builtin_ctz(rest), units = in_column(room, c);
		unsigned kept = min_u(in_column(item->held, c), shape->height);
		bool begins = item->n_held == 0 && in_column(item->own, c) == 0;

		ranks[c] = widest ? units << 1 | begins : kept << 8 | (UINT8_MAX - units);
	}
	for (unsigned k = shape->columns; k > 0; k--) {
		unsigned best = 0, best_rank = 0;

		lacks = lacks && !has_least(item, &picked);
		for (uint32_t rest = left; rest; rest &= rest - 1) {
			unsigned c = (unsigned)__builtin_ctz(rest);
			unsigned rank = ranks[c] + 1 + (lacks ? in_column(item->own, c) << 16 : 0);

			if (rank <= best_rank)
				continue;
			best = c;
			best_rank = rank;
		}
		picked.columns |= UINT32_C(1) << best;
		left &= ~picked.columns;
	}
	return picked.columns;
}

/* The cheapest first, then those of the smallest shape. */
static void add_option(const struct item *item, const struct rect *rect, struct options *options)
{
	struct option option = { *rect, cost_of(item, rect) };
	size_t at = options->n;

	if (rect->columns == 0 || !is_allowed(item, rect))
		return;
	for (; at > 0 && option.cost < options->at[at - 1].cost; at--)
		options->at[at] = options->at[at - 1];
	options->at[at] = option;
	options->n++;
}

/* Finds rectangles for the shapes from the j-th one on that have the same area; in a stable search for all of them, and
 * first in what no lease holds that is packed later. Returns the next shape. */
static size_t find_options(const struct search *s, const struct item *item, uint64_t room,
			   unsigned slack, size_t j, struct options *ret)
{
	unsigned spare = s->stable ? slack : spare_of(item, &item->shapes[j]);

	ret->n = 0;
	for (; j < item->n_shapes && spare_of(item, &item->shapes[j]) <= spare; j++) {
		const struct shape *shape = &item->shapes[j];
		struct rect rect = { 0, shape->height };

		if (s->stable) {
			rect.columns = pick_columns(item, room - lesser(room, item->others), shape,
						    false);
			add_option(item, &rect, ret);
		}
		for (int widest = 0; widest <= 1; widest++) {
			rect.columns = pick_columns(item, room, shape, widest);
			add_option(item, &rect, ret);
		}
	}
	return j;
}

/* The fewest units above what it wants that the lease gets in any packing into this room; UINT_MAX: no shape fits. */
static unsigned find_spare(struct item *item, uint64_t room)
{
	if (item->smallest > 0 && compare(room, item->smallest) == TOPS)
		return spare_of(item, &item->shapes[0]);
	for (size_t j = 0; j < item->n_shapes; j++) {
		const struct shape *shape = &item->shapes[j];
		struct rect rect = { columns_with(room, shape->height), shape->height };

		if (cuset_count_word(rect.columns) < shape->columns || !has_least(item, &rect))
			continue;
		rect.columns = j == 0 ? pick_columns(item, room, shape, true) : 0;
		item->smallest = has_least(item, &rect) ? units_of(&rect) : 0;
		return spare_of(item, shape);
	}
	return UINT_MAX;
}

/* Would each lease from the i-th one on have a shape in this room, alone there, and all together at most slack units
 * above what they want? If not, no packing has. */
static bool may_fit(const struct search *s, size_t i, uint64_t room, unsigned slack)
{
	for (; i < s->n; i++) {
		unsigned spare = find_spare(s->order[i], room);

		if (spare > slack)
			return false;
		slack -= spare;
	}
	return true;
}

static bool pack_from(struct search *s, size_t i, uint64_t room, unsigned slack, unsigned cost);

static bool pack_one(struct search *s, size_t i, uint64_t room, unsigned slack, unsigned cost,
		     const struct rect *rect)
{
	struct item *item = s->order[i];
	unsigned spare = rect_area(rect) - item->want;

	if (s->stable)
		cost += cost_of(item, rect);
	item->packed = *rect;
	return spare <= slack && pack_from(s, i + 1, room - units_of(rect), slack - spare, cost);
}

static bool keep_packing(struct search *s, unsigned cost)
{
	for (size_t i = 0; i < s->n; i++)
		s->items[i].rect = s->items[i].packed;
	s->cost = cost;
	return !s->stable;
}

static struct dead_end *dead_end_of(struct search *s, size_t i, uint64_t room)
{
	uint64_t hash = (room ^ room >> 29 ^ i << 16) * UINT64_C(0x9e3779b97f4a7c15);

	return &s->dead[hash >> (64 - DEAD_BITS)];
}

/* Packs the leases from the i-th one on. slack: units of the room that nobody wants. cost: of the others. true: this
 * will do; in a stable search, never: cheaper packings are searched as long as there are steps. */
static bool pack_from(struct search *s, size_t i, uint64_t room, unsigned slack, unsigned cost)
{
	struct dead_end *dead = dead_end_of(s, i, room);
	struct options options;
	struct item *item;

	if (cost >= s->cost)
		return false;
	if (i == s->n)
		return keep_packing(s, cost);
	if (s->steps == 0 || !may_fit(s, i, room, slack) ||
	    (dead->packing == s->packing && dead->room == room && dead->i == i &&
	     dead->cost >= s->cost - cost))
		return false;
	s->steps--;
	item = s->order[i];
	if (item->first.columns && has_room(room, &item->first) &&
	    pack_one(s, i, room, slack, cost, &item->first))
		return true;
	for (size_t j = 0; j < item->n_shapes && spare_of(item, &item->shapes[j]) <= slack;) {
		j = find_options(s, item, room, slack, j, &options);
		for (size_t o = 0; o < options.n; o++)
			if (pack_one(s, i, room, slack, cost, &options.at[o].rect))
				return true;
	}
	*dead = (struct dead_end){ room, s->packing, i, s->cost - cost };
	return false;
}

static void start_packing(struct search *s, unsigned steps)
{
	sort_items(s);
	s->steps = steps;
	s->cost = UINT_MAX;
	s->packing++;
}

/* Sets what is tried first, and what is left to others. */
static void prepare(const struct search *s)
{
	uint64_t others = 0;

	for (size_t i = s->n; i-- > 0;) {
		struct item *item = s->order[i];
		const struct rect none = { 0 };

		item->others = others;
		others += item->held;
		item->first = s->last ? item->rect : s->stable ? item->present : none;
		if (item == s->last || rect_area(&item->first) < item->want ||
		    !is_allowed(item, &item->first))
			item->first = none;
	}
}

/* Finds a rectangle of what each lease wants, or more. false: none was found within the steps. */
static bool pack(struct search *s, unsigned steps)
{
	unsigned wanted = 0, units = sum(s->free);

	for (size_t i = 0; i < s->n; i++)
		wanted += s->items[i].want;
	if (wanted > units)
		return false;
	start_packing(s, steps + (unsigned)s->n);
	prepare(s);
	pack_from(s, 0, s->free, units - wanted, 0);
	return s->cost < UINT_MAX;
}

/* Each wants this part of its share. */
static bool pack_part(struct search *s, unsigned part)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct layout_term *term = s->items[i].term;
		uint64_t one = PARTS * LAYOUT_UNIT;
		uint64_t want = ((uint64_t)term->share * part + one - 1) / one;

		set_want(s, &s->items[i], max_u(term->least, (unsigned)want));
	}
	return pack(s, STEPS);
}

/* ---- what is left ------------------------------------------------------------------------ */

static unsigned level_of(const struct item *item)
{
	uint64_t area = (uint64_t)rect_area(&item->rect) * LAYOUT_UNIT * LAYOUT_WHOLE;

	return (unsigned)min_u64(area / max_u(item->term->share, 1), UINT_MAX);
}

/* The lease that is furthest below its share, of those that can have more; NULL. */
static struct item *find_lowest(const struct search *s)
{
	struct item *lowest = NULL;

	for (size_t i = 0; i < s->n; i++)
		if (!s->items[i].full && (!lowest || level_of(&s->items[i]) < level_of(lowest)))
			lowest = &s->items[i];
	return lowest;
}

/* Finds a rectangle of exactly what the last lease wants beside those of the others. */
static bool pack_last(struct search *s)
{
	uint64_t room = s->free;

	start_packing(s, 1);
	for (size_t i = 0; i + 1 < s->n; i++) {
		s->order[i]->packed = s->order[i]->rect;
		room -= units_of(&s->order[i]->rect);
	}
	s->order[s->n - 1]->first.columns = 0;
	pack_from(s, s->n - 1, room, 0, 0);
	return s->cost < UINT_MAX;
}

/* Gives the lease a unit more if the others can have areas as before: where they are, or all packed anew, or the lease
 * packed last. */
static bool raise_item(struct search *s, struct item *item)
{
	bool raised;

	for (size_t i = 0; i < s->n; i++)
		set_want(s, &s->items[i], rect_area(&s->items[i].rect) + (&s->items[i] == item));
	if (item->want > (s->stable ? item->goal : item->term->most))
		return false;
	s->last = item;
	raised = pack_last(s);
	s->last = NULL;
	if (raised || pack(s, STEPS_MORE))
		return true;
	s->last = item;
	raised = pack(s, STEPS_MORE);
	s->last = NULL;
	return raised;
}

/* The worst-off lease that can have more gets it; in a stable search, no more than in the best layout. */
static void extend(struct search *s)
{
	struct item *item;

	for (size_t i = 0; i < s->n; i++)
		s->items[i].full = false;
	while ((item = find_lowest(s)))
		item->full = !raise_item(s, item);
}

/* ---- what is better ---------------------------------------------------------------------- */

DEFINE_ORDER(by_level, unsigned, )

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

static void find_levels(const struct search *s, unsigned *ret)
{
	for (size_t i = 0; i < s->n; i++)
		ret[i] = min_u(level_of(&s->items[i]), LAYOUT_WHOLE);
	layout_sort_levels(ret, s->n);
}

static void keep(struct search *s)
{
	for (size_t i = 0; i < s->n; i++)
		s->items[i].best = s->items[i].rect;
}

/* ---- what is kept ------------------------------------------------------------------------ */

static unsigned cost_of_all(const struct search *s)
{
	unsigned cost = 0;

	for (size_t i = 0; i < s->n; i++)
		cost += cost_of(&s->items[i], &s->items[i].rect);
	return cost;
}

static bool is_equal(const struct layout_term *a, const struct layout_term *b)
{
	return a->share == b->share && a->least == b->least && a->most == b->most;
}

/* The areas of the best layout: of equal leases, the one that holds more has more. */
static void find_goals(struct search *s, bool swaps)
{
	for (size_t i = 0; i < s->n; i++) {
		struct item *a = &s->items[i];

		a->goal = rect_area(&a->best);
		for (size_t j = 0; swaps && j < i; j++) {
			struct item *b = &s->items[j];
			const unsigned goals[] = { min_u(a->goal, b->goal),
						   max_u(a->goal, b->goal) };

			if (!is_equal(a->term, b->term))
				continue;
			a->goal = goals[a->n_held >= b->n_held];
			b->goal = goals[a->n_held < b->n_held];
		}
	}
}

/* Takes a layout in which leases keep more, if it is not clearly worse. Each wants what it has in the best one, or a
 * little less, which is then extended. */
static void settle(struct search *s, bool less)
{
	unsigned cost;

	find_goals(s, less);
	for (size_t i = 0; i < s->n; i++) {
		struct item *item = &s->items[i];
		unsigned lack = less ? item->goal / LAYOUT_CLEARLY : 0;

		item->rect = item->best;
		set_want(s, item, max_u(item->term->least, item->goal - lack));
	}
	cost = cost_of_all(s);
	s->stable = true;
	if (cost == 0 || !pack(s, STEPS))
		return;
	extend(s);
	find_levels(s, s->levels);
	if (cost_of_all(s) < cost && !layout_is_clearly_better(s->best, s->levels, s->n))
		keep(s);
}

/* The largest part of the share with which all leases want what they want now; or with which one wants less. */
static unsigned last_part(const struct search *s, bool same)
{
	unsigned ret = same ? PARTS : 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct item *item = &s->items[i];
		uint64_t one = PARTS * LAYOUT_UNIT;
		unsigned share = max_u(item->term->share, 1);

		if (same)
			ret = (unsigned)min_u64(ret, item->want * one / share);
		else if (item->want > item->term->least)
			ret = (unsigned)max_u64(ret, (item->want - 1) * one / share);
	}
	return ret;
}

static bool search(struct search *s)
{
	unsigned low = 0, high = PARTS;

	if (!pack_part(s, low))
		return false;
	while (low < high) {
		unsigned middle = high - (high - low) / 2;

		if (pack_part(s, middle))
			low = min_u(last_part(s, true), high);
		else
			high = last_part(s, false);
	}
	extend(s);
	find_levels(s, s->best);
	keep(s);
	for (int less = 0; less <= 1; less++)
		settle(s, less);
	for (size_t i = 0; i < s->n; i++)
		s->items[i].rect = s->items[i].best;
	return true;
}

int layout_find(struct layout *layout)
{
	size_t n = layout->n;
	_cleanup_(freep) struct item *items = calloc(n + 1, sizeof(*items));
	_cleanup_(freep) struct item **order = calloc(n + 1, sizeof(*order));
	_cleanup_(freep) unsigned *levels = calloc(2 * n + 1, sizeof(*levels));
	struct search s = {
		.layout = layout, .n = n, .items = items, .order = order, .levels = levels
	};

	if (!items || !order || !levels)
		return -ENOMEM;
	s.best = &levels[n];
	for (unsigned c = 0; c < layout->n_columns; c++)
		s.free |= (uint64_t)layout->free[c] << 8 * c;
	for (size_t i = 0; i < n; i++) {
		order[i] = &items[i];
		item_init(&items[i], layout, &layout->terms[i]);
	}
	if (!search(&s))
		return 0;
	for (size_t i = 0; i < n; i++)
		layout->terms[i].rect = items[i].rect;
	return 1;
}
