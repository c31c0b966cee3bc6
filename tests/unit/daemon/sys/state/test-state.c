/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state/state.h"

#include <json-c/json.h>
#include <limits.h>
#include <time.h>

#include "check.h"
#include "state-rig.h"
#include "sys/state/state-json.h"

static const char *text_at(struct json_object *object, const char *key)
{
	struct json_object *value;

	CHECK(json_object_object_get_ex(object, key, &value));
	return json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
}

FIXTURE(struct rig, rig, rig = state_rig_new(), state_rig_free(rig));

TEST_WITH(saved_lease_has_every_member, struct rig *rig)
{
	_cleanup_(state_closep) struct state *state = open_state(rig);
	struct json_object *file, *list, *row;
	struct stat st;

	save(rig, state, 17);
	CHECK(stat(scratch_at(&rig->scratch, "leases/17.json"), &st) == 0);
	CHECK((st.st_mode & 0777) == 0600);
	CHECK(stat(scratch_at(&rig->scratch, "leases"), &st) == 0 && (st.st_mode & 0777) == 0700);
	CHECK(!there(rig, "leases/.new"));

	file = json_object_from_file(scratch_at(&rig->scratch, "leases/17.json"));
	CHECK(file && strcmp(text_at(file, "version"), "2") == 0);
	CHECK(strcmp(text_at(file, "id"), "17") == 0);
	CHECK(strcmp(text_at(file, "name"), "\"trainer \\\"\xc3\xa9\\\"\"") == 0);
	CHECK(strcmp(text_at(file, "tenant"), "\"students\"") == 0);
	CHECK(strcmp(text_at(file, "class"), "\"guaranteed\"") == 0);
	CHECK(strcmp(text_at(file, "token"), "\"again\"") == 0);
	CHECK(strcmp(text_at(file, "unit"), "\"x.service\"") == 0);
	CHECK(strcmp(text_at(file, "owner"), "1000") == 0);
	CHECK(strcmp(text_at(file, "generation"), "3") == 0);
	CHECK(strcmp(text_at(file, "acknowledged"), "2") == 0);
	CHECK(strcmp(text_at(file, "state"), "\"granted\"") == 0);
	CHECK(strcmp(text_at(file, "deadline_usec"), "18446744073709551615") == 0);
	CHECK(!json_object_object_get_ex(file, "bound",
					 NULL)); /* the names in the fd store have them */

	CHECK(json_object_object_get_ex(file, "partitions", &list));
	row = json_object_array_get_idx(list, 0);
	CHECK(row && strcmp(text_at(row, "gpu"), "\"0000:03:00.0\"") == 0);
	/* Bits go to the engines in turn: CU 0 and 1 of engines 0 and 1, CU 2 of engine 0. */
	CHECK(strcmp(text_at(row, "cu_mask"), "\"0x00000033,0x00000000\"") == 0);
	CHECK(strcmp(text_at(row, "occupied"), "\"0x00000133,0x00000000\"") == 0);
	CHECK(strcmp(text_at(row, "granted"), "{\"queues\":2,\"processes\":1,\"sdma_queues\":0,"
					      "\"cooperative\":0,\"vram\":1048576}") == 0);
	CHECK(strcmp(text_at(row, "isolation"), "\"cu\"") == 0);
	CHECK(strcmp(text_at(row, "alone"), "true") == 0);

	CHECK(json_object_object_get_ex(file, "request", &row));
	CHECK(strcmp(text_at(row, "wait_usec"), "18446744073709551615") == 0);
	CHECK(json_object_object_get_ex(row, "wants", &list) &&
	      json_object_array_length(list) == 1);
	CHECK(!json_object_object_get_ex(row, "class", NULL)); /* of the tenant */
	json_object_put(file);
}

static void read_saved(const struct rig *rig, char *buf, size_t size)
{
	FILE *file = fopen(scratch_at(&rig->scratch, "leases/17.json"), "r");
	size_t n;

	CHECK(file);
	n = fread(buf, 1, size - 1, file);
	fclose(file);
	buf[n] = '\0';
}

static void write_saved(const struct rig *rig, const char *text)
{
	FILE *file = fopen(scratch_at(&rig->scratch, "leases/17.json"), "w");

	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static bool loads_name(struct rig *rig, struct state *state, const char *name)
{
	static struct state_lease read;
	bool same;

	CHECK(state_load(state, &rig->arbiter, 17, &read, &rig->diagnostics) == 0);
	same = strcmp(read.lease->name, name) == 0;
	lease_free(read.lease);
	return same;
}

/* json-c 0.18 refuses bytes above 0x7f in strict mode. */
TEST_WITH(saved_lease_is_ascii_whatever_its_name, struct rig *rig)
{
	static const char name[] = "\u00e9t\u00e9 \u6f22 \U0001f600";
	_cleanup_(state_closep) struct state *state = open_state(rig);
	char text[8192];

	strcpy(rig->lease.name, name);
	save(rig, state, 17);
	read_saved(rig, text, sizeof(text));
	for (const char *c = text; *c; c++)
		CHECK((unsigned char)*c < 0x80);
	CHECK(strstr(text, "\"\\u00e9t\\u00e9 \\u6f22 \\ud83d\\ude00\""));
	CHECK(loads_name(rig, state, name));
}

TEST_WITH(text_that_is_not_utf8_is_saved_with_question_marks, struct rig *rig)
{
	_cleanup_(state_closep) struct state *state = open_state(rig);

	/* A sentence may be truncated within a character. */
	strcpy(rig->lease.name, "a\xff"
				"b\xc3");
	save(rig, state, 17);
	CHECK(loads_name(rig, state, "a?b?"));
}

TEST_WITH(lease_that_an_older_daemon_saved_as_utf8_is_read, struct rig *rig)
{
	_cleanup_(state_closep) struct state *state = open_state(rig);
	char text[8192], old[8192], *at;

	strcpy(rig->lease.name, "\u6f22");
	save(rig, state, 17);
	read_saved(rig, text, sizeof(text));
	at = strstr(text, "\\u6f22");
	CHECK(at);
	snprintf(old, sizeof(old), "%.*s\u6f22%s", (int)(at - text), text, at + strlen("\\u6f22"));
	write_saved(rig, old);
	CHECK(loads_name(rig, state, "\u6f22"));
	CHECK(rig->diagnostics.n == 0);
}

TEST_WITH(forgotten_lease_leaves_no_file, struct rig *rig)
{
	_cleanup_(state_closep) struct state *state = open_state(rig);

	save(rig, state, 17);
	CHECK(state_forget(state, 17) == 0 && !there(rig, "leases/17.json"));
	CHECK(state_forget(state, 17) == 0);
}

/* Returns the number of saved leases that can be loaded. */
static unsigned load_all(struct rig *rig, struct state *state)
{
	static struct state_lease saved;
	_cleanup_(freep) uint64_t *ids = NULL;
	unsigned good = 0;
	size_t n = 0;

	CHECK(state_list(state, &ids, &n, &rig->diagnostics) == 0);
	for (size_t i = 0; i < n; i++) {
		if (state_load(state, &rig->arbiter, ids[i], &saved, &rig->diagnostics) < 0)
			continue;
		lease_free(saved.lease);
		good++;
	}
	return good;
}

TEST_WITH(damaged_and_foreign_files_are_set_aside, struct rig *rig)
{
	_cleanup_(state_closep) struct state *state = open_state(rig);
	const char *path;

	save(rig, state, 17);
	path = scratch_at(&rig->scratch, "leases/17.json");
	CHECK(truncate(path, 40) == 0);
	scratch_write(&rig->scratch, "leases/18.json", "");
	scratch_write(&rig->scratch, "leases/19.json",
		      "{\"id\":20,\"owner\":0,\"name\":\"\","
		      "\"tenant\":\"*\"}"); /* of another lease */
	scratch_write(&rig->scratch, "leases/20.json", "[1,2]");
	scratch_write(&rig->scratch, "leases/21.json", "{\"id\":\"21\",\"owner\":0}");
	scratch_write(&rig->scratch, "leases/notes.txt", "mine");
	scratch_mkdir(&rig->scratch, "leases/22.json");
	CHECK(truncate(scratch_write(&rig->scratch, "leases/23.json", ""), 100 << 20) == 0);
	CHECK(mkfifo(scratch_at(&rig->scratch, "leases/24.json"), 0600) == 0);
	CHECK(symlink("17.json", scratch_at(&rig->scratch, "leases/25.json")) == 0);
	scratch_write(&rig->scratch, "leases/.new", "half a le"); /* of an interrupted write */

	diagnostics_done(&rig->diagnostics);
	CHECK(load_all(rig, state) == 0 && rig->diagnostics.n == 10);
	CHECK(!diagnostics_have_errors(&rig->diagnostics));
	CHECK(state_says(rig, "/leases/17.json: "));
	CHECK(there(rig, "set-aside/17.json") && there(rig, "set-aside/notes.txt"));
	CHECK(there(rig, "set-aside/22.json") && there(rig, "set-aside/25.json"));
	CHECK(!there(rig, "leases/.new") && !there(rig, "set-aside/.new"));
	CHECK(rmdir(scratch_at(&rig->scratch, "leases")) == 0); /* nothing is left */
}

TEST_WITH(file_that_cannot_be_set_aside_does_not_prevent_the_start, struct rig *rig)
{
	_cleanup_(state_closep) struct state *state = open_state(rig);

	scratch_write(&rig->scratch, "set-aside", "in the way");
	scratch_write(&rig->scratch, "leases/x", "");
	CHECK(load_all(rig, state) == 0);
	CHECK(state_says(rig, "/leases/x"));
}

TEST_WITH(ids_continue_after_a_restart, struct rig *rig)
{
	struct state *state = open_state(rig);
	uint64_t first = state_first_id(state);

	CHECK(first == 1 && rig->diagnostics.n == 0); /* a first start is not reported */
	CHECK(!there(rig, "next-id"));
	state_close(state);
	state = open_state(rig); /* nor is a start after a daemon that granted nothing */
	first = state_first_id(state);
	CHECK(rig->diagnostics.n == 0);
	CHECK(state_ids_until(state, first) == 0 && there(rig, "next-id"));
	CHECK(unlink(scratch_at(&rig->scratch, "next-id")) == 0);
	CHECK(state_ids_until(state, first + 63) == 0 && !there(rig, "next-id"));
	CHECK(state_ids_until(state, first + 64) == 0 && there(rig, "next-id"));
	state_close(state);

	state = open_state(rig);
	CHECK(state_first_id(state) == first + 128 && rig->diagnostics.n == 0);
	CHECK(state_ids_until(state, first + 128) == 0);
	state_ids_end(state, first + 129); /* a daemon that ends leaves no gap */
	state_close(state);
	state = open_state(rig);
	CHECK(state_first_id(state) == first + 129 && rig->diagnostics.n == 0);
	state_close(state);
}

/* The first id of a daemon whose runtime directory is new, after a reboot. */
static struct state *open_after_reboot(struct rig *rig)
{
	struct state *state;
	char command[PATH_MAX + 32];

	snprintf(command, sizeof(command), "rm -rf %s", scratch_at(&rig->scratch, "run"));
	CHECK(system(command) == 0);
	scratch_mkdir(&rig->scratch, "run");
	CHECK(state_open(scratch_at(&rig->scratch, "run"), scratch_at(&rig->scratch, "lib"), &state,
			 &rig->diagnostics) == 0);
	return state;
}

TEST_WITH(ids_continue_after_a_reboot, struct rig *rig)
{
	struct state *state;

	scratch_mkdir(&rig->scratch, "lib");
	state = open_after_reboot(rig);
	CHECK(state_first_id(state) == 1);
	CHECK(state_ids_until(state, 1) == 0 && state_ids_until(state, 2) == 0);
	state_ids_end(state, 3);
	state_close(state);

	state = open_after_reboot(rig);
	CHECK(state_first_id(state) == 3);
	for (uint64_t id = 3; id < 4000; id++)
		CHECK(state_ids_until(state, id) == 0);
	state_close(state); /* as after a power failure: no state_ids_end() */

	state = open_after_reboot(rig);
	CHECK(state_first_id(state) >= 4000 && state_first_id(state) < 4000 + 1024);
	CHECK(rig->diagnostics.n == 0);
	state_close(state);
}

TEST_WITH(a_next_id_of_an_older_daemon_is_continued, struct rig *rig)
{
	struct state *state;

	scratch_mkdir(&rig->scratch, "lib");
	scratch_mkdir(&rig->scratch, "run");
	scratch_mkdir(&rig->scratch, "run/leases");
	scratch_write(&rig->scratch, "run/leases/2255873.json", "{}");
	scratch_write(&rig->scratch, "run/next-id", "2256897\n");
	CHECK(state_open(scratch_at(&rig->scratch, "run"), scratch_at(&rig->scratch, "lib"), &state,
			 &rig->diagnostics) == 0);
	CHECK(state_first_id(state) == 2256897 && rig->diagnostics.n == 0);
	state_close(state);
}

TEST_WITH(a_damaged_next_id_is_replaced_by_that_of_the_state_directory, struct rig *rig)
{
	struct state *state;

	scratch_mkdir(&rig->scratch, "lib");
	scratch_mkdir(&rig->scratch, "run");
	scratch_write(&rig->scratch, "lib/next-id", "700\n");
	scratch_write(&rig->scratch, "run/next-id", "x\n");
	CHECK(state_open(scratch_at(&rig->scratch, "run"), scratch_at(&rig->scratch, "lib"), &state,
			 &rig->diagnostics) == 0);
	CHECK(state_first_id(state) == 700 && state_says(rig, "/next-id: "));
	state_close(state);
}

TEST_WITH(a_state_directory_that_cannot_be_used_does_not_prevent_the_start, struct rig *rig)
{
	struct state *state;

	CHECK(state_open(rig->scratch.path, scratch_at(&rig->scratch, "none"), &state,
			 &rig->diagnostics) == 0);
	CHECK(state_says(rig, "/none: ") && !diagnostics_have_errors(&rig->diagnostics));
	CHECK(state_first_id(state) == 1 && state_ids_until(state, 1) == 0);
	state_close(state);
}

/* Opens with this next-id beside lease 99; NULL: without the file. */
static uint64_t first_id_with(const char *next_id, bool *ret_told)
{
	struct rig *rig = state_rig_new();
	struct state *state;
	uint64_t id;

	scratch_mkdir(&rig->scratch, "leases");
	scratch_write(&rig->scratch, "leases/99.json", "{}");
	scratch_write(&rig->scratch, "leases/18446744073709551615.json", "{}");
	if (next_id)
		scratch_write(&rig->scratch, "next-id", next_id);
	state = open_state(rig);
	id = state_first_id(state);
	*ret_told = state_says(rig, "/next-id: ");
	CHECK(!diagnostics_have_errors(&rig->diagnostics));
	state_close(state);
	state_rig_free(rig);
	return id;
}

TEST(damaged_next_id_is_replaced_by_the_uptime)
{
	static const char *const wrong[] = {
		NULL,
		"",
		"0\n",
		"50\n",
		"99\n",
		"1025",
		"1025\n1\n",
		"-1\n",
		"x\n",
		" 1025\n",
		"9007199254740992\n",
		"18446744073709551616\n",
		"99999999999999999999999999999999\n",
	};
	uint64_t clock, id;
	struct timespec now;
	bool told;

	clock_gettime(CLOCK_BOOTTIME, &now);
	clock = (uint64_t)now.tv_sec << 10;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		id = first_id_with(wrong[i], &told);
		CHECK(told && id >= clock && id < UINT64_C(1) << 53);
	}
	CHECK(first_id_with("100\n", &told) == 100 && !told);
}

TEST_WITH(ids_are_above_every_saved_lease, struct rig *rig)
{
	struct state *state;

	scratch_mkdir(&rig->scratch, "leases");
	scratch_write(&rig->scratch, "leases/9007199254740000.json", "{}");
	state = open_state(rig);
	CHECK(state_first_id(state) == UINT64_C(9007199254740001));
	state_close(state);
}
