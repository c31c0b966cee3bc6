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
#include <unistd.h>

#include "sys/state/lease-ids.h"
#include "sys/state/state-file.h"
#include "util/fd.h"
#include "util/grow.h"
#include "core/change/arbiter.h"
#include "sys/state/state-json.h"

#define DRAINED "drained"
#define USAGE "usage"
#define NAME_BYTES 32U
#define STAGED "." /* before the name of a lease: the next version of its file */
#define ASIDE_TRIES 1000U

struct state {
	char *path;
	int runtime, leases; /* directories; runtime is locked */
	int spare;           /* an fd that is closed for a file when there is no other one */
	struct lease_ids ids;
	uint64_t serial; /* of the last save of a lease */

	/* Drained GPUs that are not present: kept until they return. */
	char away[REQUEST_WANTS][GPU_NAME_MAX];
	size_t n_away;
};

/* ---- file descriptors ---------------------------------------------------------------- */

static bool lend_spare(struct state *state, int r)
{
	if ((r != -EMFILE && r != -ENFILE) || state->spare < 0)
		return false;
	close_fd(&state->spare);
	return true;
}

static int put(struct state *state, int directory, const char *name, const char *text)
{
	int r = state_file_put(directory, name, text, false);

	if (lend_spare(state, r)) {
		r = state_file_put(directory, name, text, false);
		state->spare = fcntl(directory, F_DUPFD_CLOEXEC, 0);
	}
	return r;
}

static int read_lease_file(struct state *state, const char *name, char **ret, size_t *ret_length)
{
	int r = state_file_read(state->leases, name, ret, ret_length);

	if (lend_spare(state, r)) {
		r = state_file_read(state->leases, name, ret, ret_length);
		state->spare = fcntl(state->leases, F_DUPFD_CLOEXEC, 0);
	}
	return r;
}

/* ---- setting aside ------------------------------------------------------------------- */

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
	if (unlinkat(directory, STATE_FILE_NEW, 0) < 0 && errno == EISDIR)
		move_aside(state, directory, STATE_FILE_NEW, "prevents writing", diagnostics);
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

/* ---- ids ----------------------------------------------------------------------------- */

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

uint64_t state_first_id(const struct state *state)
{
	return state->ids.first;
}

int state_ids_until(struct state *state, uint64_t id)
{
	return lease_ids_reserve(&state->ids, id);
}

void state_ids_end(struct state *state, uint64_t next_id)
{
	lease_ids_end(&state->ids, next_id);
}

/* ---- opening ------------------------------------------------------------------------- */

struct state *state_close(struct state *state)
{
	if (!state)
		return NULL;

	close_fd(&state->spare);
	close_fd(&state->leases);
	close_fd(&state->runtime);
	lease_ids_done(&state->ids);
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
	state->leases = take_fd(&fd);
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

int state_open(const char *runtime_directory, const char *state_directory, struct state **ret,
	       struct diagnostics *diagnostics)
{
	_cleanup_(state_closep) struct state *state = calloc(1, sizeof(*state));
	int r;

	if (!state)
		return -ENOMEM;
	state->runtime = state->leases = state->spare = state->ids.durable = -1;
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
	state->spare = fcntl(state->leases, F_DUPFD_CLOEXEC, 0);
	remove_new(state, state->runtime, diagnostics);
	remove_new(state, state->leases, diagnostics);
	lease_ids_init(&state->ids, runtime_directory, state->runtime, state_directory,
		       highest_id(state), diagnostics);

	*ret = TAKE_PTR(state);
	return 0;
}

/* ---- leases -------------------------------------------------------------------------- */

static int put_lease(struct state *state, const struct arbiter *arbiter, struct lease *lease,
		     const char *name)
{
	_cleanup_(freep) char *text = NULL;
	int r;

	lease->serial = ++state->serial;
	r = state_json_write(arbiter, lease, &text);
	if (r < 0)
		return r;
	r = put(state, state->leases, name, text);
	/* The directory was removed and perhaps made again: open the new one. */
	if (r == -ENOENT && open_leases(state) == 0)
		r = put(state, state->leases, name, text);
	return r;
}

int state_save(struct state *state, const struct arbiter *arbiter, struct lease *lease)
{
	char name[NAME_BYTES];

	name_of_id(lease->id, name);
	return put_lease(state, arbiter, lease, name);
}

/* To replace a file takes no room, so the first part alone can fail for lack of it. */
int state_save_group(struct state *state, const struct arbiter *arbiter, struct lease **leases,
		     size_t n)
{
	char name[NAME_BYTES + 1] = STAGED;
	size_t staged = 0;
	int r = 0;

	while (r == 0 && staged < n) {
		name_of_id(leases[staged]->id, name + 1);
		r = put_lease(state, arbiter, leases[staged], name);
		staged += r == 0;
	}
	for (size_t i = 0; i < staged; i++) {
		name_of_id(leases[i]->id, name + 1);
		if (r == 0 && renameat(state->leases, name, state->leases, name + 1) < 0)
			r = -errno;
		if (r < 0)
			(void)state_file_remove(state->leases, name);
	}
	return r;
}

int state_forget(struct state *state, uint64_t id)
{
	char name[NAME_BYTES];

	name_of_id(id, name);
	return state_file_remove(state->leases, name);
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
	size_t n;
};

static int add_id(struct ids *ids, uint64_t id)
{
	uint64_t *added = grow(&ids->list, &ids->n, sizeof(*added));

	if (!added)
		return -ENOMEM;
	*added = id;
	return 0;
}

/* Where readdir() does not tell the type, state_file_read() refuses all but regular files. */
static int list_one(const struct state *state, const struct dirent *entry, struct ids *ids,
		    struct diagnostics *diagnostics)
{
	uint64_t id = id_of_name(entry->d_name);

	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
		return 0;
	if (id > 0 && (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN))
		return add_id(ids, id);
	if (strcmp(entry->d_name, STATE_FILE_NEW) == 0)
		remove_new(state, state->leases, diagnostics);
	else if (entry->d_name[0] == STAGED[0] && id_of_name(entry->d_name + 1) > 0 &&
		 unlinkat(state->leases, entry->d_name, 0) == 0)
		return 0; /* left by a crash */
	else
		move_aside(state, state->leases, entry->d_name, "not a saved lease", diagnostics);
	return 0;
}

DEFINE_ORDER(compare_ids, uint64_t, )

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
	r = read_lease_file(state, name, &text, &length);
	if (r < 0)
		return r == -ENOENT ? -EINVAL : r;
	r = state_json_read(arbiter, text, length, ret, why, size);
	if (r < 0)
		return r;
	if (ret->lease->serial > state->serial && ret->lease->serial < UINT64_MAX / 2)
		state->serial = ret->lease->serial;
	if (ret->lease->id == id)
		return 0;
	snprintf(why, size, "it is lease %" PRIu64, ret->lease->id);
	ret->lease = lease_free(ret->lease);
	return -EINVAL;
}

int state_read(struct state *state, const struct arbiter *arbiter, uint64_t id,
	       struct state_lease *ret)
{
	char name[NAME_BYTES], why[160];

	name_of_id(id, name);
	return load(state, arbiter, id, name, ret, why, sizeof(why));
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

	return end > text ? put(state, state->runtime, DRAINED, text)
			  : state_file_remove(state->runtime, DRAINED);
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
	r = state_file_read(state->runtime, DRAINED, &text, &length);
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

/* ---- accounting ----------------------------------------------------------------------- */

static int usage_directory(const struct state *state)
{
	return state->ids.durable >= 0 ? state->ids.durable : state->runtime;
}

int state_save_usage(struct state *state, const char *text)
{
	return state_file_put(usage_directory(state), USAGE, text, false);
}

int state_load_usage(struct state *state, char **ret)
{
	size_t length;

	return state_file_read(usage_directory(state), USAGE, ret, &length);
}
