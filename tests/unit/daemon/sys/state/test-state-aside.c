/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Foreign and unusable files in the runtime directory, and its lock. */

#include "sys/state/state.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "check.h"
#include "state-rig.h"
#include "sys/state/state-json.h"

static struct state_lease read_lease;

static char *text_in(const struct rig *rig, const char *name)
{
	static char text[4096];
	FILE *file = fopen(scratch_at(&rig->scratch, name), "re");

	CHECK(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

static size_t count_list(struct rig *rig, struct state *state)
{
	uint64_t *ids = NULL;
	size_t n = 0;

	CHECK(state_list(state, &ids, &n, &rig->diagnostics) == 0);
	for (size_t i = 1; i < n; i++)
		CHECK(ids[i - 1] < ids[i]);
	free(ids);
	return n;
}

static void make_socket(const struct rig *rig, const char *name)
{
	close(scratch_bind(scratch_at(&rig->scratch, name), SOCK_STREAM));
}

FIXTURE(struct rig, rig, rig = state_rig_new(), state_rig_free(rig));

TEST_WITH(files_with_other_names_are_set_aside, struct rig *rig)
{
	static const char *const foreign[] = {
		"x.json",
		"007.json",
		"0.json",
		"-1.json",
		"+1.json",
		" 1.json",
		"17",
		"17.json~",
		"17.JSON",
		"9007199254740992.json",
		"99999999999999999999999.json",
		".x.json",
	};
	_cleanup_(state_closep) struct state *state = open_state(rig);
	char name[64];

	save(rig, state, 300);
	save(rig, state, 17);
	save(rig, state, 9);
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
		snprintf(name, sizeof(name), "leases/%s", foreign[i]);
		scratch_write(&rig->scratch, name, foreign[i]);
	}
	scratch_mkdir(&rig->scratch, "leases/18.json");
	scratch_write(&rig->scratch, "leases/18.json/inside", "");
	CHECK(mkfifo(scratch_at(&rig->scratch, "leases/19.json"), 0600) == 0);
	CHECK(symlink("17.json", scratch_at(&rig->scratch, "leases/20.json")) == 0);
	make_socket(rig, "leases/21.json");

	CHECK(count_list(rig, state) == 3 && rig->diagnostics.n == ARRAY_SIZE(foreign) + 4);
	CHECK(!diagnostics_have_errors(&rig->diagnostics));
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
		snprintf(name, sizeof(name), "/leases/%s: not a saved lease; moved", foreign[i]);
		CHECK(state_says(rig, name));
		snprintf(name, sizeof(name), "set-aside/%s", foreign[i]);
		CHECK(strcmp(text_in(rig, name), foreign[i]) == 0);
	}
	CHECK(there(rig, "set-aside/18.json/inside") && there(rig, "set-aside/19.json"));
	CHECK(there(rig, "set-aside/20.json") && there(rig, "set-aside/21.json"));
	CHECK(count_list(rig, state) == 3 && rig->diagnostics.n == ARRAY_SIZE(foreign) + 4);
}

TEST_WITH(object_in_the_place_of_a_lease_file_is_set_aside, struct rig *rig)
{
	_cleanup_(state_closep) struct state *state = open_state(rig);

	scratch_mkdir(&rig->scratch, "leases/17.json");
	CHECK(state_load(state, &rig->arbiter, 17, &read_lease, &rig->diagnostics) == -EINVAL);
	CHECK(symlink("/dev/zero", scratch_at(&rig->scratch, "leases/18.json")) == 0);
	CHECK(state_load(state, &rig->arbiter, 18, &read_lease, &rig->diagnostics) == -EINVAL);
	CHECK(mkfifo(scratch_at(&rig->scratch, "leases/19.json"), 0600) == 0);
	CHECK(state_load(state, &rig->arbiter, 19, &read_lease, &rig->diagnostics) == -EINVAL);
	CHECK(truncate(scratch_write(&rig->scratch, "leases/20.json", ""), 100 << 20) == 0);
	CHECK(state_load(state, &rig->arbiter, 20, &read_lease, &rig->diagnostics) == -EINVAL);
	CHECK(there(rig, "set-aside/17.json") && there(rig, "set-aside/18.json"));
	CHECK(there(rig, "set-aside/19.json") && there(rig, "set-aside/20.json"));

	diagnostics_done(&rig->diagnostics);
	CHECK(state_load(state, &rig->arbiter, 21, &read_lease, &rig->diagnostics) == -EINVAL);
	CHECK(state_says(rig, "/leases/21.json"));
}

TEST_WITH(file_of_another_lease_is_set_aside, struct rig *rig)
{
	_cleanup_(state_closep) struct state *state = open_state(rig);

	save(rig, state, 17);
	CHECK(rename(scratch_at(&rig->scratch, "leases/17.json"),
		     scratch_at(&rig->scratch, "leases/18.json")) == 0);
	CHECK(state_load(state, &rig->arbiter, 18, &read_lease, &rig->diagnostics) == -EINVAL);
	CHECK(state_says(rig, "/leases/18.json") && rig->diagnostics.n == 1);
	CHECK(there(rig, "set-aside/18.json") && count_list(rig, state) == 0);
}

TEST_WITH(files_of_other_versions_are_set_aside, struct rig *rig)
{
	_cleanup_(state_closep) struct state *state = open_state(rig);

	scratch_write(&rig->scratch, "leases/17.json", "{\"version\":3,\"lease\":{}}");
	scratch_write(&rig->scratch, "leases/18.json",
		      "{\"version\":1,\"id\":18,\"name\":\"\",\"tenant\":\"*\",\"owner\":0}");
	CHECK(state_load(state, &rig->arbiter, 17, &read_lease, &rig->diagnostics) == -EINVAL);
	CHECK(state_load(state, &rig->arbiter, 18, &read_lease, &rig->diagnostics) == -EINVAL);
	CHECK(state_says(rig, "/leases/17.json: version 3"));
	CHECK(state_says(rig, "/leases/18.json"));
	CHECK(!diagnostics_have_errors(&rig->diagnostics));
	CHECK(there(rig, "set-aside/17.json") && there(rig, "set-aside/18.json"));
}

TEST_WITH(file_that_was_set_aside_is_never_overwritten, struct rig *rig)
{
	_cleanup_(state_closep) struct state *state = open_state(rig);
	char text[16];

	for (unsigned i = 1; i <= 4; i++) {
		snprintf(text, sizeof(text), "number %u", i);
		scratch_write(&rig->scratch, "leases/17.json", text);
		state_set_aside(state, 17, "contradicts lease 9", &rig->diagnostics);
		CHECK(!there(rig, "leases/17.json"));
	}
	CHECK(state_says(rig, "/leases/17.json: contradicts lease 9"));
	CHECK(state_says(rig, "/set-aside/17.json") && state_says(rig, "/set-aside/17.json.4"));
	CHECK(strcmp(text_in(rig, "set-aside/17.json"), "number 1") == 0);
	CHECK(strcmp(text_in(rig, "set-aside/17.json.2"), "number 2") == 0);
	CHECK(strcmp(text_in(rig, "set-aside/17.json.3"), "number 3") == 0);
	CHECK(strcmp(text_in(rig, "set-aside/17.json.4"), "number 4") == 0);

	/* Neither a directory nor the target of a link is overwritten. */
	CHECK(symlink("gone", scratch_at(&rig->scratch, "set-aside/18.json")) == 0);
	scratch_mkdir(&rig->scratch, "set-aside/18.json.2");
	scratch_write(&rig->scratch, "leases/18.json", "eighteen");
	state_set_aside(state, 18, "so", &rig->diagnostics);
	CHECK(strcmp(text_in(rig, "set-aside/18.json.3"), "eighteen") == 0);
	CHECK(!there(rig, "set-aside/gone"));
}

TEST_WITH(at_most_1000_files_of_a_name_are_set_aside, struct rig *rig)
{
	_cleanup_(state_closep) struct state *state = open_state(rig);
	char name[64];

	scratch_mkdir(&rig->scratch, "set-aside");
	CHECK(symlink("x", scratch_at(&rig->scratch, "set-aside/17.json")) == 0);
	for (unsigned i = 2; i <= 1000; i++) {
		snprintf(name, sizeof(name), "set-aside/17.json.%u", i);
		CHECK(symlink("x", scratch_at(&rig->scratch, name)) == 0);
	}
	scratch_write(&rig->scratch, "leases/17.json", "");
	state_set_aside(state, 17, "so", &rig->diagnostics);
	CHECK(state_says(rig, "/leases/17.json"));
	CHECK(there(rig, "leases/17.json"));
}

TEST_WITH(rest_of_an_interrupted_write_is_removed, struct rig *rig)
{
	struct state *state = open_state(rig);

	scratch_write(&rig->scratch, ".new", "10");
	scratch_write(&rig->scratch, "leases/.new", "{\"version\":2,\"id\":1");
	state_close(state);
	state = open_again(rig);
	CHECK(!there(rig, ".new") && !there(rig, "leases/.new"));
	scratch_write(&rig->scratch, "leases/.new", "{");
	CHECK(count_list(rig, state) == 0 && !there(rig, "leases/.new"));
	scratch_write(&rig->scratch, "leases/.17.json", "{"); /* of a group that was not saved */
	CHECK(count_list(rig, state) == 0 && !there(rig, "leases/.17.json"));
	CHECK(rig->diagnostics.n == 0 && !there(rig, "set-aside"));
	state_close(state);
}

TEST_WITH(directory_that_prevents_writing_is_set_aside, struct rig *rig)
{
	struct state *state = open_state(rig);

	scratch_mkdir(&rig->scratch, ".new");
	scratch_mkdir(&rig->scratch, "leases/.new");
	CHECK(state_save(state, &rig->arbiter, &rig->lease) == -EISDIR);
	state_close(state);
	state = open_state(rig);
	CHECK(state_says(rig, "/.new") && state_says(rig, "/leases/.new"));
	CHECK(there(rig, "set-aside/.new") && there(rig, "set-aside/.new.2"));
	save(rig, state, 17);
	CHECK(state_ids_until(state, state_first_id(state)) == 0);
	state_close(state);
}

TEST_WITH(second_daemon_is_refused_until_the_first_ends, struct rig *rig)
{
	struct state *first = open_state(rig), *second = NULL;

	CHECK(state_open(rig->scratch.path, NULL, &second, &rig->diagnostics) == -EBUSY && !second);
	CHECK(diagnostics_have_errors(&rig->diagnostics) && state_says(rig, "another"));
	save(rig, first, 17);
	state_close(first);
	second = open_state(rig);
	CHECK(count_list(rig, second) == 1);
	state_close(second);
}

TEST_WITH(lock_of_a_killed_daemon_is_released, struct rig *rig)
{
	struct state *state = NULL;
	int ready[2], status;
	pid_t child;
	char byte;

	CHECK(pipe(ready) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		open_state(rig);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	CHECK(read(ready[0], &byte, 1) == 1);
	CHECK(state_open(rig->scratch.path, NULL, &state, &rig->diagnostics) == -EBUSY);
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
	state_close(open_state(rig));
	close(ready[0]);
	close(ready[1]);
}
