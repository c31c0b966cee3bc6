/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state/state.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sys/state/state-file.h"

#define ID_MAX (UINT64_C(1) << 53) /* JSON readers hold integers up to here */
#define ID_BLOCK 1024U
#define NEXT_ID "next-id"
#define DRAINED "drained"
#define NAME_BYTES 32U

struct state {
	char *path;
	int runtime, leases; /* directories; runtime is locked */
	uint64_t first_id;
	uint64_t reserved_until; /* ids below are reserved on disk */

	/* Drained GPUs that are not present: kept until they return. */
	char away[REQUEST_WANTS][GPU_NAME_MAX];
	size_t n_away;
};

static struct state_place leases_of(const struct state *state)
{
	return (struct state_place){ state->runtime, state->path, state->leases, "leases/" };
}

static struct state_place runtime_of(const struct state *state)
{
	return (struct state_place){ state->runtime, state->path, state->runtime, "" };
}

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

static DIR *open_list(const struct state *state)
{
	int fd = openat(state->leases, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;

	if (!directory && fd >= 0)
		close(fd);
	return directory;
}

/* ---- ids: never used again, so they are reserved on disk in blocks before they are used  */

static uint64_t highest_id(const struct state *state)
{
	DIR *directory = open_list(state);
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
	r = state_put_file(state->runtime, NEXT_ID, text);
	if (r == 0)
		state->reserved_until = id + ID_BLOCK;
	return r;
}

/* ---- opening ------------------------------------------------------------------------- */

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

/* Opens the directory of leases, which only this user may read because leases have tokens. */
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
	struct state_place place;
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
	place = runtime_of(state);
	state_remove_new(&place, diagnostics);
	place = leases_of(state);
	state_remove_new(&place, diagnostics);
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
	r = state_put_file(state->leases, name, text);
	/* The directory was removed and perhaps made again: open the new one. */
	if (r == -ENOENT && open_leases(state) == 0)
		r = state_put_file(state->leases, name, text);
	return r;
}

int state_forget(struct state *state, uint64_t id)
{
	char name[NAME_BYTES];

	name_of_id(id, name);
	if (unlinkat(state->leases, name, 0) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

void state_set_aside(struct state *state, uint64_t id, const char *why,
		     struct diagnostics *diagnostics)
{
	struct state_place place = leases_of(state);
	char name[NAME_BYTES];

	name_of_id(id, name);
	state_move_aside(&place, name, why, diagnostics);
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

/* Where readdir() does not tell the type, state_read_file() refuses all but regular files. */
static int list_one(const struct state *state, const struct dirent *entry, struct ids *ids,
		    struct diagnostics *diagnostics)
{
	struct state_place place = leases_of(state);
	uint64_t id = id_of_name(entry->d_name);

	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
		return 0;
	if (id > 0 && (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN))
		return add_id(ids, id);
	if (strcmp(entry->d_name, STATE_NEW_FILE) == 0)
		state_remove_new(&place, diagnostics);
	else
		state_move_aside(&place, entry->d_name, "not a saved lease", diagnostics);
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int list_all(const struct state *state, struct ids *ids, struct diagnostics *diagnostics)
{
	DIR *directory = open_list(state);
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

/* -EINVAL with a reason in why; other errors: it may be readable later. */
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

	if (end > text)
		return state_put_file(state->runtime, DRAINED, text);
	if (unlinkat(state->runtime, DRAINED, 0) < 0 && errno != ENOENT)
		return -errno;
	return 0;
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
	struct state_place place;
	unsigned number = 0;
	size_t length;
	int r;

	state->n_away = 0;
	r = state_read_file(state->runtime, DRAINED, &text, &length);
	if (r == -EINVAL || (r == 0 && strlen(text) != length)) {
		place = runtime_of(state);
		state_move_aside(&place, DRAINED, "not a list of GPUs", diagnostics);
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
