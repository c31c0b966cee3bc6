/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a daemon before left. Nothing that is found here stops a start. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/state/state-internal.h"
#include "sys/state/state-json.h"

static void set_aside(const struct state *state, const char *name, const char *why,
		      struct diagnostics *diagnostics)
{
	state_move_aside(state, state->leases, "leases/", name, why, diagnostics);
}

void state_set_aside(struct state *state, uint64_t id, const char *why,
		     struct diagnostics *diagnostics)
{
	char name[STATE_NAME_MAX];

	state_name_of_id(id, name);
	set_aside(state, name, why, diagnostics);
}

/* ---- which there are ---------------------------------------------------------------- */

struct ids {
	uint64_t *list;
	size_t n, room;
};

static int add_id(struct ids *ids, uint64_t id)
{
	uint64_t *more;

	if (ids->n == ids->room) {
		ids->room = ids->room ? ids->room * 2 : 64;
		more = reallocarray(ids->list, ids->room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		ids->list = more;
	}
	ids->list[ids->n++] = id;
	return 0;
}

/* Whether it is a regular file shows when it is read, where readdir() does not say. */
static int list_one(const struct state *state, const struct dirent *entry, struct ids *ids,
		    struct diagnostics *diagnostics)
{
	uint64_t id = state_id_of_name(entry->d_name);

	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
		return 0;
	if (id > 0 && (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN))
		return add_id(ids, id);
	if (strcmp(entry->d_name, STATE_NEW_FILE) == 0)
		state_remove_new(state, state->leases, "leases/", diagnostics);
	else
		set_aside(state, entry->d_name, "not a saved lease", diagnostics);
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int list_all(const struct state *state, struct ids *ids, struct diagnostics *diagnostics)
{
	DIR *directory = state_open_list(state);
	const struct dirent *entry;
	int r = 0;

	if (!directory)
		return -errno;
	while (r == 0) {
		errno = 0;
		entry = readdir(directory);
		if (!entry) {
			r = -errno;
			break;
		}
		r = list_one(state, entry, ids, diagnostics);
	}
	closedir(directory);
	return r;
}

int state_list(struct state *state, uint64_t **ret, size_t *ret_n, struct diagnostics *diagnostics)
{
	struct ids ids = { 0 };
	int r;

	r = list_all(state, &ids, diagnostics);
	if (r < 0) {
		free(ids.list);
		diagnostics_add(diagnostics, true, "%s/leases: cannot be read: %s", state->path,
				strerror(-r));
		return r;
	}
	if (ids.n > 0)
		qsort(ids.list, ids.n, sizeof(*ids.list), compare_ids);
	*ret = ids.list;
	*ret_n = ids.n;
	return 0;
}

/* ---- to go on with ------------------------------------------------------------------ */

/* -EINVAL with a sentence, and then *ret holds nothing; others: there is no room now. */
static int load(struct state *state, const struct arbiter *arbiter, uint64_t id, const char *name,
		struct state_lease *ret, char *why, size_t size)
{
	_cleanup_(freep) char *text = NULL;
	size_t length;
	int r;

	snprintf(why, size, "not a saved lease");
	r = state_read_file(state->leases, name, &text, &length);
	if (r < 0)
		return r == -ENOENT ? -EINVAL : r;
	r = state_json_read(arbiter, text, length, ret, why, size);
	if (r < 0 || ret->lease->id == id)
		return r;
	snprintf(why, size, "it is about lease %" PRIu64, ret->lease->id);
	ret->lease = lease_free(ret->lease);
	return -EINVAL;
}

int state_load(struct state *state, const struct arbiter *arbiter, uint64_t id,
	       struct state_lease *ret, struct diagnostics *diagnostics)
{
	char name[STATE_NAME_MAX], why[160];
	int r;

	state_name_of_id(id, name);
	r = load(state, arbiter, id, name, ret, why, sizeof(why));
	if (r == -EINVAL)
		set_aside(state, name, why, diagnostics);
	else if (r < 0)
		diagnostics_add(diagnostics, true, "%s/leases/%s: cannot be read now: %s",
				state->path, name, strerror(-r));
	return r;
}
