/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/subuid.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/number.h"

/* OWNER:FIRST:COUNT. (uid_t) -1 is no uid. */
static bool parse_line(char *line, subuid_owner_t *owner, void *userdata, struct subuid_range *ret)
{
	const char *name = strsep(&line, ":"), *first_text = strsep(&line, ":"), *count_text = line;
	uint64_t first, count;

	if (!first_text || !count_text ||
	    number_parse(first_text, SUBUID_FIRST, UINT32_MAX - 1, &first) < 0 ||
	    number_parse(count_text, 1, UINT32_MAX - first, &count) < 0 || !name[0] ||
	    !owner(userdata, name, &ret->owner))
		return false;
	ret->first = (uid_t)first;
	ret->last = (uid_t)(first + count - 1);
	if (ret->owner == 0)
		ret->owner = ret->first;
	return true;
}

DEFINE_ORDER(by_first, struct subuid_range, .first)
DEFINE_ORDER(by_owner, struct subuid_range, .owner)

/* Merges ranges that overlap if they have one owner; otherwise leaves all of them out. */
static int merge(struct subuids *subuids)
{
	size_t kept = 0;
	int left_out = 0;

	for (size_t i = 0, next; i < subuids->n; i = next) {
		struct subuid_range all = subuids->ranges[i];
		bool one = true;

		for (next = i + 1; next < subuids->n && subuids->ranges[next].first <= all.last;
		     next++) {
			one &= subuids->ranges[next].owner == all.owner;
			if (subuids->ranges[next].last > all.last)
				all.last = subuids->ranges[next].last;
		}
		if (one)
			subuids->ranges[kept++] = all;
		else
			left_out += (int)(next - i);
	}
	subuids->n = kept;
	return left_out;
}

/* A range that contains the uid of another owner was given out by mistake. owners: of all lines. */
static int drop_owned(struct subuids *subuids, struct subuid_range *owners, size_t n_owners)
{
	size_t kept = 0, all = subuids->n, n = 0, at;

	qsort(owners, n_owners, sizeof(*owners), by_owner);
	for (size_t i = 0; i < n_owners; i++)
		if (n == 0 || owners[i].owner != owners[n - 1].owner)
			owners[n++] = owners[i];
	for (size_t i = 0, k = 0; i < all; i++) {
		const struct subuid_range range = subuids->ranges[i];

		while (k < n && owners[k].owner < range.first)
			k++;
		at = k + (k < n && owners[k].owner == range.owner);
		if (at == n || owners[at].owner > range.last)
			subuids->ranges[kept++] = range;
	}
	subuids->n = kept;
	return (int)(all - kept);
}

int subuids_parse(char *text, subuid_owner_t *owner, void *userdata, struct subuids *ret)
{
	struct subuids subuids = { 0 };
	_cleanup_(freep) struct subuid_range *owners = NULL;
	int left_out = 0;
	size_t lines = 1, n;

	for (const char *at = text; (at = strchr(at, '\n')) && lines < SUBUID_RANGES_MAX; at++)
		lines++;
	subuids.ranges = calloc(lines, sizeof(*subuids.ranges));
	owners = calloc(lines, sizeof(*owners));
	if (!subuids.ranges || !owners) {
		free(subuids.ranges);
		return -ENOMEM;
	}
	for (char *line; (line = strsep(&text, "\n"));) {
		if (line[0] == '\0' || line[0] == '#')
			continue;
		if (subuids.n < lines &&
		    parse_line(line, owner, userdata, &subuids.ranges[subuids.n]))
			subuids.n++;
		else
			left_out++;
	}
	n = subuids.n;
	memcpy(owners, subuids.ranges, n * sizeof(*owners));
	qsort(subuids.ranges, n, sizeof(*subuids.ranges), by_first);
	left_out += merge(&subuids);
	left_out += drop_owned(&subuids, owners, n);
	*ret = subuids;
	return left_out;
}

void subuids_done(struct subuids *subuids)
{
	free(subuids->ranges);
	*subuids = (struct subuids){ 0 };
}

static int compare(const void *key, const void *element)
{
	const uid_t *uid = key;
	const struct subuid_range *range = element;

	return (*uid > range->last) - (*uid < range->first);
}

uid_t subuids_user(const struct subuids *subuids, uid_t uid)
{
	const struct subuid_range *range = subuids->n == 0
						   ? NULL
						   : bsearch(&uid, subuids->ranges, subuids->n,
							     sizeof(*range), compare);

	return range ? range->owner : uid;
}
