/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/margin.h"

#include <limits.h>
#include <stdio.h>

#include "util/base.h"

/*
 * The largest slowdown in tests/data/measured/interference.tsv of leases with own CUs, by card, kind and
 * number of neighbours; that of the Radeon VII is the worst single run beside one on other shader engines
 * (sharing.tsv). Left out are rows that the host side of one process explains.
 */
static const struct row {
	unsigned first, last; /* targets of its generation */
	unsigned target;      /* of the card */
	const char *card;
	enum neighbours kind;
	unsigned neighbours;
	unsigned slowdown; /* percent */
} rows[] = {
	{ 90000, 90009, 90006, "Radeon VII", NEIGHBOURS_MEMORY, 1, 141 },
	{ 90010, 90010, 90010, "MI250 GCD", NEIGHBOURS_MEMORY, 1, 136 },
	{ 90010, 90010, 90010, "MI250 GCD", NEIGHBOURS_MEMORY, 3, 151 },
	{ 90010, 90010, 90010, "MI250 GCD", NEIGHBOURS_MEMORY, 7, 225 },
	{ 90400, 90599, 90402, "MI300X", NEIGHBOURS_COMPUTE, 1, 117 },
	{ 90400, 90599, 90402, "MI300X", NEIGHBOURS_MEMORY, 1, 156 },
	{ 90500, 90599, 90500, "MI350X", NEIGHBOURS_MEMORY, 3, 216 },
	{ 90400, 90499, 90402, "MI325X", NEIGHBOURS_MEMORY, 3, 215 },
	{ 110000, 110599, 110001, "RX 7800 XT", NEIGHBOURS_COMPUTE, 1, 101 },
	{ 120000, 120099, 120001, "R9700", NEIGHBOURS_MEMORY, 1, 197 },
	{ 120000, 120099, 120001, "R9700", NEIGHBOURS_MEMORY, 3, 232 },
	{ 120000, 120099, 120001, "R9700", NEIGHBOURS_MEMORY, 7, 452 },
};

/* The slowdown of so many neighbours by this row: more were measured, or it grows in proportion. */
static unsigned scaled(const struct row *row, unsigned neighbours)
{
	unsigned more = row->slowdown - 100;

	if (neighbours <= row->neighbours)
		return row->slowdown;
	return 100 + (more * neighbours + row->neighbours - 1) / row->neighbours;
}

/* The row for so many neighbours of one target: with the fewest neighbours that are enough, else with the
 * most. NULL: none. */
static const struct row *find(const struct row *list, size_t n, unsigned target,
			      enum neighbours kind, unsigned neighbours)
{
	const struct row *best = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct row *row = &list[i];

		if (target < row->first || target > row->last || row->kind != kind)
			continue;
		if (!best ||
		    (best->neighbours < neighbours && row->neighbours > best->neighbours) ||
		    (row->neighbours >= neighbours && row->neighbours < best->neighbours))
			best = row;
	}
	return best;
}

/* The worst of all cards. */
static const struct row *find_worst(enum neighbours kind, unsigned neighbours)
{
	const struct row *worst = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = find(rows, ARRAY_SIZE(rows), rows[i].first, kind,
					     neighbours);

		if (row && (!worst || scaled(row, neighbours) > scaled(worst, neighbours)))
			worst = row;
	}
	return worst;
}

/* As find(); where only neighbours that use memory were measured, these: they cost more. */
static const struct row *find_own(const struct row *list, size_t n, unsigned target,
				  enum neighbours kind, unsigned neighbours)
{
	const struct row *row = find(list, n, target, kind, neighbours);

	if (!row && kind == NEIGHBOURS_COMPUTE)
		row = find(list, n, target, NEIGHBOURS_MEMORY, neighbours);
	return row;
}

static size_t rows_of(const struct gpu_info *gpu, struct row ret[static CALIBRATED_SLOWDOWNS])
{
	for (size_t i = 0; i < gpu->calibrated.n_slowdowns; i++) {
		const struct slowdown *s = &gpu->calibrated.slowdowns[i];

		ret[i] = (struct row){ 0,       UINT_MAX,      gpu->gfx_target, "this GPU",
				       s->kind, s->neighbours, s->percent };
	}
	return gpu->calibrated.n_slowdowns;
}

void margin_find(const struct gpu_info *gpu, enum neighbours kind, unsigned neighbours,
		 struct margin *ret)
{
	struct row measured[CALIBRATED_SLOWDOWNS];
	size_t n = rows_of(gpu, measured);
	const struct row *own = find_own(measured, n, gpu->gfx_target, kind, neighbours), *row;
	bool calibrated = own;

	if (!own)
		own = find_own(rows, ARRAY_SIZE(rows), gpu->gfx_target, kind, neighbours);
	row = own ? own : find_worst(kind, neighbours);

	*ret = (struct margin){ .slowdown = 100, .measured = true };
	snprintf(ret->row, sizeof(ret->row), "no neighbour");
	if (neighbours > 0) {
		ret->slowdown = scaled(row, neighbours);
		ret->measured = row->target == gpu->gfx_target && neighbours <= row->neighbours;
		snprintf(ret->row, sizeof(ret->row), "%u.%02u on %s beside %u, %s%s%s%s",
			 row->slowdown / 100, row->slowdown % 100, row->card, row->neighbours,
			 neighbours_names[row->kind],
			 neighbours > row->neighbours ? ", in proportion" : "",
			 calibrated ? ", calibrated "
			 : own      ? ""
				    : "; this GPU was not measured",
			 calibrated ? gpu->calibrated.date : "");
	}
	ret->percent = (ret->slowdown * (100 + MARGIN_LAW) + 99) / 100 - 100;
}

bool margin_row(size_t i, const char **ret_card, enum neighbours *ret_kind,
		unsigned *ret_neighbours, unsigned *ret_slowdown)
{
	if (i >= ARRAY_SIZE(rows))
		return false;
	*ret_card = rows[i].card;
	*ret_kind = rows[i].kind;
	*ret_neighbours = rows[i].neighbours;
	*ret_slowdown = rows[i].slowdown;
	return true;
}
