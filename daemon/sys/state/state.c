/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/state/state-internal.h"
#include "sys/state/state-json.h"

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

static int make_leases(struct state *state)
{
	if (mkdirat(state->runtime, "leases", 0700) < 0 && errno != EEXIST)
		return -errno;
	return open_leases(state);
}

/* Two daemons on one directory would each give away what the other has granted. */
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
		diagnostics_add(diagnostics, true,
				"%s/leases: cannot be used as a directory of this user: %s",
				runtime_directory, strerror(-r));
		return r;
	}
	state_remove_new(state, state->runtime, "", diagnostics);
	state_remove_new(state, state->leases, "leases/", diagnostics);
	state_find_first_id(state, diagnostics);

	*ret = TAKE_PTR(state);
	return 0;
}

int state_save(struct state *state, const struct arbiter *arbiter, const struct lease *lease)
{
	_cleanup_(freep) char *text = NULL;
	char name[STATE_NAME_MAX];
	int r;

	r = state_json_write(arbiter, lease, &text);
	if (r < 0)
		return r;
	state_name_of_id(lease->id, name);
	r = state_put_file(state->leases, name, text);
	/* Somebody may have removed the directory, and made it again: it is another one then. */
	if (r == -ENOENT && open_leases(state) == 0)
		r = state_put_file(state->leases, name, text);
	return r;
}

int state_forget(struct state *state, uint64_t id)
{
	char name[STATE_NAME_MAX];

	state_name_of_id(id, name);
	if (unlinkat(state->leases, name, 0) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}
