/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sys/state-json.h"

/*
 * No fsync: the runtime directory is a tmpfs, whose files last as long as the kernel that
 * the leases are about. What has to be survived is the end of this process at any moment,
 * and for that a rename is enough.
 */

#define ID_BLOCK 1024U
#define ID_MAX   (UINT64_C(1) << 53) /* JSON readers hold integers up to here */
#define NEXT_ID  "next-id"
#define NEW_FILE ".new" /* what is written before it is renamed; left by a crash, it is nothing */

struct state {
	char *path;
	int runtime, leases;  /* directories */
	uint64_t first_id;
	uint64_t set_aside;   /* the first id that is not set aside on disk */
};

struct state *state_close(struct state *state)
{
	if (!state)
		return NULL;

	if (state->leases >= 0)
		close(state->leases);
	if (state->runtime >= 0)
		close(state->runtime);
	free(state->path);
	free(state);
	return NULL;
}

static int write_all(int fd, const char *text)
{
	size_t size = strlen(text);
	ssize_t n;

	while (size > 0) {
		n = write(fd, text, size);
		if (n < 0)
			return -errno;
		text += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Puts a file in place, or leaves what was there and nothing else. */
static int put_file(int directory, const char *name, const char *text)
{
	int fd, r;

	fd = openat(directory, NEW_FILE,
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;

	r = write_all(fd, text);
	if (close(fd) < 0 && r == 0)
		r = -errno;
	if (r == 0 && renameat(directory, NEW_FILE, directory, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(directory, NEW_FILE, 0);
	return r;
}

/* The id in "17.json"; 0 if it is no name of ours. */
static uint64_t id_of_name(const char *name)
{
	char again[32];
	uint64_t id;

	if (sscanf(name, "%20" SCNu64, &id) != 1 || id >= ID_MAX)
		return 0;
	snprintf(again, sizeof(again), "%" PRIu64 ".json", id);
	return strcmp(name, again) == 0 ? id : 0;
}

static DIR *list(const struct state *state)
{
	int fd = openat(state->leases, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;

	if (!directory && fd >= 0)
		close(fd);
	return directory;
}

static uint64_t highest_id(const struct state *state)
{
	DIR *directory = list(state);
	const struct dirent *entry;
	uint64_t id, highest = 0;

	if (!directory)
		return 0;
	while ((entry = readdir(directory))) {
		id = id_of_name(entry->d_name);
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
	if (n <= 0 || sscanf(text, "%20" SCNu64, &id) != 1 || id == 0 || id >= ID_MAX)
		return -EINVAL;
	snprintf(again, sizeof(again), "%" PRIu64 "\n", id);
	if (strcmp(text, again) != 0)
		return -EINVAL;
	*ret = id;
	return 0;
}

/* fresh: the directory of leases was just made, so that no file is no wonder. */
static void find_first_id(struct state *state, bool fresh, struct notes *notes)
{
	uint64_t highest = highest_id(state), clock = id_from_clock();
	int r;

	r = read_next_id(state, &state->first_id);
	if (r == 0 && state->first_id <= highest)
		r = -EINVAL;
	if (r < 0)
		state->first_id = clock > highest ? clock : highest + 1;
	state->set_aside = state->first_id;
	if (r == -EINVAL || (r == -ENOENT && !fresh))
		notes_add(notes, false,
			  "%s/" NEXT_ID ": %s, so which lease ids were used is not known; they go "
			  "on at %" PRIu64, state->path,
			  r == -ENOENT ? "is not there" : "is damaged", state->first_id);
}

/* Opens the directory of leases. It holds tokens, so it is nobody else's. */
static int open_leases(struct state *state)
{
	struct stat st;
	int fd, r = 0;

	fd = openat(state->runtime, "leases", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		r = -errno;
	else if (st.st_uid != geteuid())
		r = -EPERM;
	else if (fchmod(fd, 0700) < 0)
		r = -errno;
	if (r < 0) {
		if (fd >= 0)
			close(fd);
		return r;
	}

	if (state->leases >= 0)
		close(state->leases);
	state->leases = fd;
	return 0;
}

static int make_leases(struct state *state, bool *ret_fresh)
{
	bool fresh = mkdirat(state->runtime, "leases", 0700) == 0;
	int r;

	if (!fresh && errno != EEXIST)
		return -errno;
	r = open_leases(state);
	if (r < 0)
		return r;
	*ret_fresh = fresh;
	return 0;
}

int state_open(const char *runtime_directory, struct state **ret, struct notes *notes)
{
	_cleanup_(state_closep) struct state *state = calloc(1, sizeof(*state));
	bool fresh = false;
	int r;

	if (!state)
		return -ENOMEM;
	state->runtime = state->leases = -1;
	state->path = strdup(runtime_directory);
	if (!state->path)
		return -ENOMEM;

	state->runtime = open(runtime_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (state->runtime < 0) {
		r = -errno;
		notes_add(notes, true, "%s: cannot use the runtime directory: %s",
			  runtime_directory, strerror(-r));
		return r;
	}
	r = make_leases(state, &fresh);
	if (r < 0) {
		notes_add(notes, true, "%s/leases: cannot be used as a directory of this user: %s",
			  runtime_directory, strerror(-r));
		return r;
	}
	find_first_id(state, fresh, notes);

	*ret = TAKE_PTR(state);
	return 0;
}

int state_save(struct state *state, const struct arbiter *arbiter, const struct lease *lease)
{
	_cleanup_(freep) char *text = NULL;
	char name[32];
	int r;

	r = state_json_write(arbiter, lease, &text);
	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "%" PRIu64 ".json", lease->id);
	r = put_file(state->leases, name, text);
	/* Somebody may have removed the directory, and made it again: it is another one then. */
	if (r == -ENOENT && open_leases(state) == 0)
		r = put_file(state->leases, name, text);
	return r;
}

int state_forget(struct state *state, uint64_t id)
{
	char name[32];

	snprintf(name, sizeof(name), "%" PRIu64 ".json", id);
	if (unlinkat(state->leases, name, 0) < 0 && errno != ENOENT)
		return -errno;
	return 0;
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
	r = put_file(state->runtime, NEXT_ID, text);
	if (r == 0)
		state->set_aside = id + ID_BLOCK;
	return r;
}

/* A file that is not one of ours, or not whole, goes where a person can look at it. */
static void set_file_aside(const struct state *state, const char *name, struct notes *notes)
{
	_cleanup_(freep) char *to = NULL;

	if (asprintf(&to, "set-aside/%s", name) < 0)
		to = NULL;
	if (to && (mkdirat(state->runtime, "set-aside", 0700) == 0 || errno == EEXIST) &&
	    renameat(state->leases, name, state->runtime, to) == 0)
		notes_add(notes, false, "%s/leases/%s: not a saved lease; it is in %s/set-aside now",
			  state->path, name, state->path);
	else
		notes_add(notes, false, "%s/leases/%s: not a saved lease, and cannot be moved: %s",
			  state->path, name, strerror(errno));
}

static void tell_end(const struct state_obituary *dead, struct notes *notes)
{
	notes_add(notes, false,
		  "lease %" PRIu64 " (%s%s%sof uid %u, tenant %s) ended with the daemon before",
		  dead->id, *dead->name ? "\"" : "", dead->name, *dead->name ? "\" " : "",
		  dead->owner, dead->tenant);
}

/* Returns whether the name was a lease. */
static bool clear_one(struct state *state, const char *name, struct notes *notes)
{
	struct state_obituary dead = {0};
	int fd, r = -EINVAL;

	fd = openat(state->leases, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0) {
		r = state_json_read(fd, &dead);
		close(fd);
	}
	if (r < 0 || dead.id != id_of_name(name)) {
		set_file_aside(state, name, notes);
		return false;
	}

	tell_end(&dead, notes);
	r = state_forget(state, dead.id);
	if (r < 0)
		notes_add(notes, false, "%s/leases/%s: cannot be removed: %s", state->path, name,
			  strerror(-r));
	return true;
}

int state_clear(struct state *state, struct notes *notes)
{
	DIR *directory = list(state);
	const struct dirent *entry;
	int ended = 0;

	if (!directory) {
		notes_add(notes, false, "%s/leases: cannot be read: %s", state->path,
			  strerror(errno));
		return 0;
	}
	while ((entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (strcmp(entry->d_name, NEW_FILE) == 0)
			unlinkat(state->leases, NEW_FILE, 0);
		else if (clear_one(state, entry->d_name, notes))
			ended++;
	}
	closedir(directory);
	return ended;
}
