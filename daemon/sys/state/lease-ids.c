/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state/lease-ids.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "sys/state/state-file.h"
#include "util/base.h"
#include "util/clock.h"
#include "util/fd.h"

#define NEXT_ID "next-id"
#define ID_BLOCK 64U           /* reserved at a time in the runtime directory */
#define ID_BLOCK_DURABLE 1024U /* and in the state directory */

/* For a directory whose next-id is lost: above all ids that any daemon of this boot can have used,
 * unless it made more than 2^10 leases a second all the time. */
static uint64_t id_from_clock(void)
{
	return (clock_usec(CLOCK_BOOTTIME) / 1000000 << 10) + 1;
}

/* -ENOENT; -EINVAL if the file is damaged. */
static int read_next_id(int directory, uint64_t *ret)
{
	_cleanup_(freep) char *text = NULL;
	char again[32];
	size_t length;
	uint64_t id;
	int r;

	r = directory < 0 ? -ENOENT : state_file_read(directory, NEXT_ID, &text, &length);
	if (r < 0)
		return r == -ENOENT ? -ENOENT : -EINVAL;
	if (sscanf(text, "%20" SCNu64, &id) != 1 || id == 0 || id >= ID_MAX)
		return -EINVAL;
	snprintf(again, sizeof(again), "%" PRIu64 "\n", id);
	if (strcmp(text, again) != 0)
		return -EINVAL;
	*ret = id;
	return 0;
}

static int write_next_id(int directory, uint64_t id, bool sync)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 "\n", id);
	return state_file_put(directory, NEXT_ID, text, sync);
}

/* Whether the directory has all that was written to it until a reboot empties it. */
static bool is_in_memory(int directory)
{
	struct statfs fs;

	return fstatfs(directory, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

/* The highest of what both directories and the saved leases tell; 1 on a machine that never had a
 * lease. The state directory is ahead of what was used. */
static void find_first(struct lease_ids *ids, const char *path, uint64_t highest,
		       struct diagnostics *diagnostics)
{
	uint64_t id = 0, kept = 0;
	int r = read_next_id(ids->runtime, &id), durable = read_next_id(ids->durable, &kept);

	if (r == 0 && id <= highest)
		r = -EINVAL;
	ids->first = max_u64(highest + 1, durable == 0 ? kept : 0);
	if (r == 0)
		ids->first = is_in_memory(ids->runtime) ? id : max_u64(ids->first, id);
	else if (durable != 0 && (r == -EINVAL || highest > 0 || durable == -EINVAL))
		ids->first = max_u64(ids->first, id_from_clock());
	ids->reserved_until = ids->durable_until = ids->first;
	/* If there is no saved lease either, this is a first start. */
	if (r == -EINVAL || (r == -ENOENT && highest > 0) || durable == -EINVAL)
		diagnostics_add(diagnostics, false,
				"%s/" NEXT_ID
				": %s, so the last lease id is unknown; the next one is "
				"%" PRIu64,
				path, r == -ENOENT && durable != -EINVAL ? "missing" : "damaged",
				ids->first);
}

/* Half a block ahead and without waiting for the disk: it has written the file long before the ids
 * are used. A failure does not prevent a grant: the next call tries again, and up to the end of this
 * boot the runtime directory keeps ids apart. */
static void reserve_durable(struct lease_ids *ids, uint64_t id)
{
	if (ids->durable >= 0 && id + ID_BLOCK_DURABLE / 2 >= ids->durable_until &&
	    write_next_id(ids->durable, id + ID_BLOCK_DURABLE, false) == 0)
		ids->durable_until = id + ID_BLOCK_DURABLE;
}

int lease_ids_reserve(struct lease_ids *ids, uint64_t id)
{
	int r;

	reserve_durable(ids, id);
	if (id < ids->reserved_until)
		return 0;
	r = write_next_id(ids->runtime, id + ID_BLOCK, false);
	if (r == 0)
		ids->reserved_until = id + ID_BLOCK;
	return r;
}

void lease_ids_end(struct lease_ids *ids, uint64_t next_id)
{
	if (ids->reserved_until > ids->first)
		(void)write_next_id(ids->runtime, next_id, false);
	if (ids->durable >= 0 && ids->durable_until > ids->first)
		(void)write_next_id(ids->durable, next_id, true);
}

/* The first block waits for the disk: this is the start, not a request. */
static int reserve_first(struct lease_ids *ids)
{
	int r = write_next_id(ids->durable, ids->first + ID_BLOCK_DURABLE, true);

	if (r == 0)
		ids->durable_until = ids->first + ID_BLOCK_DURABLE;
	return r;
}

void lease_ids_init(struct lease_ids *ids, const char *path, int runtime, const char *durable,
		    uint64_t highest, struct diagnostics *diagnostics)
{
	int r = 0;

	*ids = (struct lease_ids){ .runtime = runtime, .durable = -1 };
	if (durable) {
		ids->durable = open(durable, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = ids->durable < 0 ? -errno : 0;
	}
	find_first(ids, path, highest, diagnostics);
	if (ids->durable >= 0)
		r = reserve_first(ids);
	if (r < 0)
		diagnostics_add(
			diagnostics, false,
			"%s: cannot be used: %s; numbers of leases begin again at 1 after a "
			"reboot",
			durable, strerror(-r));
}

void lease_ids_done(struct lease_ids *ids)
{
	close_fd(&ids->durable);
}
