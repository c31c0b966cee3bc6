/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Ids are never used again: they are set aside on disk in blocks, before they are used. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sys/state/state-internal.h"

#define ID_BLOCK 1024U
#define NEXT_ID "next-id"

static uint64_t highest_id(const struct state *state)
{
	DIR *directory = state_open_list(state);
	const struct dirent *entry;
	uint64_t id, highest = 0;

	if (!directory)
		return 0;
	while ((entry = readdir(directory))) {
		id = state_id_of_name(entry->d_name);
		if (id > highest)
			highest = id;
	}
	closedir(directory);
	return highest;
}

/* What is left to count from where the file does not say: above all ids of a daemon that
 * was started earlier this way, unless it made more than 2^10 leases a second all along.
 * Nothing that knows an id outlives a boot, so the uptime will do and keeps them short. */
static uint64_t id_from_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return ((uint64_t)now.tv_sec << 10) + 1;
}

/* -ENOENT; -EINVAL for what cannot be believed. */
static int read_next_id(const struct state *state, uint64_t *ret)
{
	int fd = openat(state->runtime, NEXT_ID, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[32] = "", again[32];
	uint64_t id;
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : -EINVAL;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0 || sscanf(text, "%20" SCNu64, &id) != 1 || id == 0 || id >= STATE_ID_MAX)
		return -EINVAL;
	snprintf(again, sizeof(again), "%" PRIu64 "\n", id);
	if (strcmp(text, again) != 0)
		return -EINVAL;
	*ret = id;
	return 0;
}

void state_find_first_id(struct state *state, struct diagnostics *diagnostics)
{
	uint64_t highest = highest_id(state), clock = id_from_clock();
	int r;

	r = read_next_id(state, &state->first_id);
	if (r == 0 && state->first_id <= highest)
		r = -EINVAL;
	if (r < 0)
		state->first_id = clock > highest ? clock : highest + 1;
	state->set_aside = state->first_id;
	/* Without a lease there may never have been one, and so no file. */
	if (r == -EINVAL || (r == -ENOENT && highest > 0))
		diagnostics_add(
			diagnostics, false,
			"%s/" NEXT_ID ": %s, so which lease ids were used is not known; they go "
			"on at %" PRIu64,
			state->path, r == -ENOENT ? "is not there" : "is damaged", state->first_id);
}

uint64_t state_first_id(const struct state *state)
{
	return state->first_id;
}

int state_ids_until(struct state *state, uint64_t id)
{
	char text[32];
	int r;

	if (id < state->set_aside)
		return 0;
	snprintf(text, sizeof(text), "%" PRIu64 "\n", id + ID_BLOCK);
	r = state_put_file(state->runtime, NEXT_ID, text);
	if (r == 0)
		state->set_aside = id + ID_BLOCK;
	return r;
}
