/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state/state.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/fd.h"

/*
 * There is no fsync(): the runtime directory is a tmpfs, whose files last as long as the kernel
 * that the leases are about. The files only have to survive the end of this process at any moment,
 * and for that a rename is enough.
 */

#define ID_MAX (UINT64_C(1) << 53) /* JSON readers hold integers up to here */
#define ID_BLOCK 1024U
#define NEXT_ID "next-id"
#define DRAINED "drained"
#define FROZEN "frozen"
#define NEW_FILE ".new" /* the name of a file while it is written; a crash may leave it behind */
#define NAME_BYTES 32U
#define FILE_MAX (1024U * 1024U)
#define ASIDE_TRIES 1000U

struct state {
	char *path;
	int runtime, leases; /* directories; runtime is locked */
	uint64_t first_id;
	uint64_t reserved_until; /* ids below are reserved on disk */

	/* Drained GPUs that are not present: kept until they return. */
	char away[REQUEST_WANTS][GPU_NAME_MAX];
	size_t n_away;
};

/* ---- files --------------------------------------------------------------------------- */

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

/* Writes a file beside and renames it: after a failure the old file, if any, is unchanged. */
static int put_file(int directory, const char *name, const char *text)
{
	int fd, r;

	fd = openat(directory, NEW_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		    0600);
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

static int remove_file(int directory, const char *name)
{
	return unlinkat(directory, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int read_open(int fd, char **ret, size_t *ret_length)
{
	_cleanup_(freep) char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)FILE_MAX)
		return -EINVAL;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	n = read_to_end(fd, text, (size_t)st.st_size);
	if (n != st.st_size)
		return n < 0 ? (int)n : -EINVAL; /* the file became shorter since fstat() */
	text[n] = '\0';
	*ret = TAKE_PTR(text);
	*ret_length = (size_t)n;
	return 0;
}

/* Reads a regular file of up to FILE_MAX bytes and adds a NUL. -ENOENT; -ENOMEM, -EMFILE and
 * -ENFILE, after which it can be read later; -EINVAL for anything else. */
static int read_file(int directory, const char *name, char **ret, size_t *ret_length)
{
	/* O_NONBLOCK: opening a FIFO must not wait for its other end. */
	_cleanup_fd_ int fd = openat(directory, name,
				     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r = fd < 0 ? -errno : read_open(fd, ret, ret_length);

	if (r == 0 || r == -ENOENT || r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	return -EINVAL;
}

/* Never replaces a file that was set aside before. */
static int try_move_aside(const struct state *state, int directory, const char *name, char *to,
			  size_t size)
{
	if (mkdirat(state->runtime, "set-aside", 0700) < 0 && errno != EEXIST)
		return -errno;
	for (unsigned i = 1; i <= ASIDE_TRIES; i++) {
		if (i == 1)
			snprintf(to, size, "set-aside/%s", name);
		else
			snprintf(to, size, "set-aside/%s.%u", name, i);
		if (renameat2(directory, name, state->runtime, to, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* Moves a file of one of the two directories to RUNTIME/set-aside, where an administrator can read
 * it, and adds a diagnostic with the reason. */
static void move_aside(const struct state *state, int directory, const char *name, const char *why,
		       struct diagnostics *diagnostics)
{
	const char *below = directory == state->leases ? "leases/" : "";
	char to[NAME_MAX + 32];
	int r;

	r = try_move_aside(state, directory, name, to, sizeof(to));
	if (r == 0)
		diagnostics_add(diagnostics, false, "%s/%s%s: %s; moved to %s/%s", state->path,
				below, name, why, state->path, to);
	else
		diagnostics_add(diagnostics, false, "%s/%s%s: %s; cannot be moved to set-aside: %s",
				state->path, below, name, why, strerror(-r));
}

static void remove_new(const struct state *state, int directory, struct diagnostics *diagnostics)
{
	if (unlinkat(directory, NEW_FILE, 0) < 0 && errno == EISDIR)
		move_aside(state, directory, NEW_FILE, "prevents writing", diagnostics);
}

/* ---- names --------------------------------------------------------------------------- */

static void name_of_id(uint64_t id, char ret[static NAME_BYTES])
{
	snprintf(ret, NAME_BYTES, "%" PRIu64 ".json", id);
}

/* "17.json"; 0: not the name of a lease. */
static uint64_t id_of_name(const char *name)
{
	char again[NAME_BYTES];
	uint64_t id;

	if (sscanf(name, "%20" SCNu64, &id) != 1 || id >= ID_MAX)
		return 0;
	name_of_id(id, again);
	return strcmp(name, again) == 0 ? id : 0;
}

static DIR *list_leases(const struct state *state)
{
	return open_directory(openat(state->leases, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/* ---- ids: never used again, so they are reserved on disk in blocks before they are used  */

static uint64_t highest_id(const struct state *state)
{
	_cleanup_(closedirp) DIR *directory = list_leases(state);
	const struct dirent *entry;
	uint64_t id, highest = 0;

	if (!directory)
		return 0;
	while ((entry = readdir(directory))) {
		id = id_of_name(entry->d_name);
		if (id > highest)
			highest = id;
	}
	return highest;
}

/* The first id if the file does not tell: above all ids of a daemon that started this way earlier
 * in this boot, unless it made more than 2^10 leases a second all the time. Nothing that knows an
 * id survives a reboot, so the uptime is enough, and it keeps ids short. */
static uint64_t id_from_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return ((uint64_t)now.tv_sec << 10) + 1;
}

/* -ENOENT; -EINVAL if the file is damaged. */
static int read_next_id(const struct state *state, uint64_t *ret)
{
	_cleanup_(freep) char *text = NULL;
	char again[32];
	size_t length;
	uint64_t id;
	int r;

	r = read_file(state->runtime, NEXT_ID, &text, &length);
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

static void find_first_id(struct state *state, struct diagnostics *diagnostics)
{
	uint64_t highest = highest_id(state), clock = id_from_clock();
	int r;

	r = read_next_id(state, &state->first_id);
	if (r == 0 && state->first_id <= highest)
		r = -EINVAL;
	if (r < 0)
		state->first_id = clock > highest ? clock : highest + 1;
	state->reserved_until = state->first_id;
	/* If there is no saved lease either, this is a first start. */
	if (r == -EINVAL || (r == -ENOENT && highest > 0))
		diagnostics_add(diagnostics, false,
				"%s/" NEXT_ID
				": %s, so the last lease id is unknown; the next one is "
				"%" PRIu64,
				state->path, r == -ENOENT ? "missing" : "damaged", state->first_id);
}

uint64_t state_first_id(const struct state *state)
{
	return state->first_id;
}

int state_ids_until(struct state *state, uint64_t id)
{
	char text[32];
	int r;

	if (id < state->reserved_until)
		return 0;
	snprintf(text, sizeof(text), "%" PRIu64 "\n", id + ID_BLOCK);
	r = put_file(state->runtime, NEXT_ID, text);
	if (r == 0)
		state->reserved_until = id + ID_BLOCK;
	return r;
}

/* ---- opening ------------------------------------------------------------------------- */

struct state *state_close(struct state *state)
{
	if (!state)
		return NULL;

	close_fd(&state->leases);
	close_fd(&state->runtime);
	free(state->path);
	free(state);
	return NULL;
}

/* Opens the directory of leases, which only this user may read because leases have tokens. */
static int open_leases(struct state *state)
{
	_cleanup_fd_ int fd = openat(state->runtime, "leases",
				     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return -EPERM;
	if (fchmod(fd, 0700) < 0)
		return -errno;

	close_fd(&state->leases);
	state->leases = fd;
	fd = -1;
	return 0;
}

static int make_leases(struct state *state)
{
	if (mkdirat(state->runtime, "leases", 0700) < 0 && errno != EEXIST)
		return -errno;
	return open_leases(state);
}

/* Locks the directory: two daemons would each grant what the other has granted. */
static int open_runtime(struct state *state, struct diagnostics *diagnostics)
{
	int r;

	state->runtime = open(state->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (state->runtime < 0) {
		r = -errno;
		diagnostics_add(diagnostics, true, "%s: cannot use the runtime directory: %s",
				state->path, strerror(-r));
		return r;
	}
	if (flock(state->runtime, LOCK_EX | LOCK_NB) == 0)
		return 0;
	r = errno == EWOULDBLOCK ? -EBUSY : -errno;
	diagnostics_add(diagnostics, true, "%s: %s", state->path,
			r == -EBUSY ? "another gpuarbd uses it" : strerror(-r));
	return r;
}

int state_open(const char *runtime_directory, struct state **ret, struct diagnostics *diagnostics)
{
	_cleanup_(state_closep) struct state *state = calloc(1, sizeof(*state));
	int r;

	if (!state)
		return -ENOMEM;
	state->runtime = state->leases = -1;
	state->path = strdup(runtime_directory);
	if (!state->path)
		return -ENOMEM;

	r = open_runtime(state, diagnostics);
	if (r < 0)
		return r;
	r = make_leases(state);
	if (r < 0) {
		diagnostics_add(diagnostics, true, "%s/leases: cannot be used: %s",
				runtime_directory, strerror(-r));
		return r;
	}
	remove_new(state, state->runtime, diagnostics);
	remove_new(state, state->leases, diagnostics);
	find_first_id(state, diagnostics);

	*ret = TAKE_PTR(state);
	return 0;
}

/* ---- leases -------------------------------------------------------------------------- */

int state_save(struct state *state, const struct arbiter *arbiter, const struct lease *lease)
{
	_cleanup_(freep) char *text = NULL;
	char name[NAME_BYTES];
	int r;

	r = state_json_write(arbiter, lease, &text);
	if (r < 0)
		return r;
	name_of_id(lease->id, name);
	r = put_file(state->leases, name, text);
	/* The directory was removed and perhaps made again: open the new one. */
	if (r == -ENOENT && open_leases(state) == 0)
		r = put_file(state->leases, name, text);
	return r;
}

int state_forget(struct state *state, uint64_t id)
{
	char name[NAME_BYTES];

	name_of_id(id, name);
	return remove_file(state->leases, name);
}

void state_set_aside(struct state *state, uint64_t id, const char *why,
		     struct diagnostics *diagnostics)
{
	char name[NAME_BYTES];

	name_of_id(id, name);
	move_aside(state, state->leases, name, why, diagnostics);
}

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

/* Where readdir() does not tell the type, read_file() refuses all but regular files. */
static int list_one(const struct state *state, const struct dirent *entry, struct ids *ids,
		    struct diagnostics *diagnostics)
{
	uint64_t id = id_of_name(entry->d_name);

	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
		return 0;
	if (id > 0 && (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN))
		return add_id(ids, id);
	if (strcmp(entry->d_name, NEW_FILE) == 0)
		remove_new(state, state->leases, diagnostics);
	else
		move_aside(state, state->leases, entry->d_name, "not a saved lease", diagnostics);
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int list_all(const struct state *state, struct ids *ids, struct diagnostics *diagnostics)
{
	_cleanup_(closedirp) DIR *directory = list_leases(state);
	const struct dirent *entry;
	int r = 0;

	if (!directory)
		return -errno;
	while (r == 0 && (errno = 0, entry = readdir(directory)))
		r = list_one(state, entry, ids, diagnostics);
	return r < 0 ? r : -errno;
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

/* -EINVAL with a reason in why; other errors: it may be readable later. */
static int load(struct state *state, const struct arbiter *arbiter, uint64_t id, const char *name,
		struct state_lease *ret, char *why, size_t size)
{
	_cleanup_(freep) char *text = NULL;
	size_t length;
	int r;

	snprintf(why, size, "not a saved lease");
	r = read_file(state->leases, name, &text, &length);
	if (r < 0)
		return r == -ENOENT ? -EINVAL : r;
	r = state_json_read(arbiter, text, length, ret, why, size);
	if (r < 0 || ret->lease->id == id)
		return r;
	snprintf(why, size, "it is lease %" PRIu64, ret->lease->id);
	ret->lease = lease_free(ret->lease);
	return -EINVAL;
}

int state_load(struct state *state, const struct arbiter *arbiter, uint64_t id,
	       struct state_lease *ret, struct diagnostics *diagnostics)
{
	char name[NAME_BYTES], why[160];
	int r;

	name_of_id(id, name);
	r = load(state, arbiter, id, name, ret, why, sizeof(why));
	if (r == -EINVAL)
		state_set_aside(state, id, why, diagnostics);
	else if (r < 0)
		diagnostics_add(diagnostics, true, "%s/leases/%s: cannot be read now: %s",
				state->path, name, strerror(-r));
	return r;
}

/* ---- drained GPUs -------------------------------------------------------------------- */

#define DRAINED_TEXT (2 * REQUEST_WANTS * (GPU_NAME_MAX + 1)) /* present and absent GPUs */

/* By name only: ledger_find_gpu() also accepts a number. */
static const struct gpu *gpu_named(const struct arbiter *arbiter, const char *name)
{
	for (size_t i = 0; i < arbiter->n_gpus; i++)
		if (strcmp(arbiter->gpus[i].info.name, name) == 0)
			return &arbiter->gpus[i];
	return NULL;
}

int state_save_drained(struct state *state, const struct arbiter *arbiter, uint64_t drained)
{
	char text[DRAINED_TEXT] = "", *end = text;

	for (size_t i = 0; i < arbiter->n_gpus; i++)
		if (drained & UINT64_C(1) << i)
			end += sprintf(end, "%s\n", arbiter->gpus[i].info.name);
	for (size_t i = 0; i < state->n_away; i++)
		if (!gpu_named(arbiter, state->away[i]))
			end += sprintf(end, "%s\n", state->away[i]);

	return end > text ? put_file(state->runtime, DRAINED, text)
			  : remove_file(state->runtime, DRAINED);
}

static bool is_gpu_name(const char *line)
{
	size_t length = strlen(line);

	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)line[i]))
			return false;
	return length > 0 && length < GPU_NAME_MAX;
}

static void load_drained(struct state *state, struct arbiter *arbiter, const char *line,
			 unsigned number, struct diagnostics *diagnostics)
{
	if (!is_gpu_name(line)) {
		diagnostics_add(diagnostics, false, "%s/" DRAINED ":%u: not the name of a GPU",
				state->path, number);
	} else if (gpu_named(arbiter, line)) {
		arbiter_drain(arbiter, line, true);
	} else if (state->n_away < REQUEST_WANTS) {
		strcpy(state->away[state->n_away++], line);
		diagnostics_add(diagnostics, false,
				"%s/" DRAINED ": GPU %s is not present: it stays drained when it "
				"returns",
				state->path, line);
	} else {
		diagnostics_add(diagnostics, false,
				"%s/" DRAINED ":%u: too many GPUs, %s is ignored", state->path,
				number, line);
	}
}

void state_load_drained(struct state *state, struct arbiter *arbiter,
			struct diagnostics *diagnostics)
{
	_cleanup_(freep) char *text = NULL;
	unsigned number = 0;
	size_t length;
	int r;

	state->n_away = 0;
	r = read_file(state->runtime, DRAINED, &text, &length);
	if (r == -EINVAL || (r == 0 && strlen(text) != length)) {
		move_aside(state, state->runtime, DRAINED, "not a list of GPUs", diagnostics);
		return;
	}
	if (r < 0) {
		if (r != -ENOENT)
			diagnostics_add(diagnostics, true, "%s/" DRAINED ": cannot be read now: %s",
					state->path, strerror(-r));
		return;
	}
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		if (rest || line[0]) /* after the last newline there is no line */
			load_drained(state, arbiter, line, ++number, diagnostics);
}

/* ---- frozen units --------------------------------------------------------------------- */

int state_save_frozen(struct state *state, const char *lines)
{
	return lines[0] ? put_file(state->runtime, FROZEN, lines)
			: remove_file(state->runtime, FROZEN);
}

int state_load_frozen(struct state *state, char **ret)
{
	size_t length;

	return read_file(state->runtime, FROZEN, ret, &length);
}
