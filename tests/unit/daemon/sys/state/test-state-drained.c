/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state/state.h"

#include <errno.h>

#include "check.h"
#include "ledger-rig.h"
#include "state-rig.h"

/* An arbiter with two GPUs. */
static struct arbiter *two_gpus(void)
{
	struct gpu_info infos[] = { radeon_vii("0000:03:00.0"), radeon_vii("0000:04:00.0") };

	return arbiter_of(infos, 2);
}

static const char *file_text(const struct rig *rig)
{
	static char text[1024];
	FILE *file = fopen(scratch_at(&rig->scratch, "drained"), "re");

	if (!file)
		return NULL;
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

static int save_drained(struct state *state, const struct arbiter *arbiter)
{
	uint64_t drained = 0;

	for (size_t i = 0; i < arbiter->n_gpus; i++)
		drained |= (uint64_t)arbiter->gpus[i].draining << i;
	return state_save_drained(state, arbiter, drained);
}

TEST(drained_gpus_are_drained_after_a_restart)
{
	struct arbiter *old = two_gpus(), *new = two_gpus();
	struct rig *rig = state_rig_new();
	struct state *state = open_state(rig);

	state_load_drained(state, old, &rig->diagnostics); /* no file: no GPU is drained */
	CHECK(rig->diagnostics.n == 0 && !old->gpus[0].draining && !old->gpus[1].draining);
	CHECK(arbiter_drain(old, "0000:04:00.0", true) == 0);
	CHECK(save_drained(state, old) == 0);
	CHECK(strcmp(file_text(rig), "0000:04:00.0\n") == 0);
	state_close(state);

	state = open_again(rig);
	state_load_drained(state, new, &rig->diagnostics);
	CHECK(rig->diagnostics.n == 0 && !new->gpus[0].draining &&new->gpus[1].draining);
	CHECK(arbiter_drain(new, "0000:04:00.0", false) == 0);
	CHECK(save_drained(state, new) == 0 && !file_text(rig));
	CHECK(save_drained(state, new) == 0);
	state_close(state);
	state_rig_free(rig);
	arbiter_free(old);
	arbiter_free(new);
}

FIXTURE(struct rig, rig, rig = state_rig_new(), state_rig_free(rig));

TEST_WITH(absent_drained_gpu_stays_drained, struct rig *rig)
{
	_cleanup_(arbiter_freep) struct arbiter *arbiter = two_gpus();
	_cleanup_(state_closep) struct state *state = open_state(rig);

	scratch_write(&rig->scratch, "drained", "0000:05:00.0\n0000:03:00.0\n");
	state_load_drained(state, arbiter, &rig->diagnostics);
	CHECK(arbiter->gpus[0].draining && !arbiter->gpus[1].draining && rig->diagnostics.n == 1);
	CHECK(state_says(rig, "/drained: GPU 0000:05:00.0"));
	CHECK(save_drained(state, arbiter) == 0);
	CHECK(strcmp(file_text(rig), "0000:03:00.0\n0000:05:00.0\n") == 0);

	/* The GPU returns. */
	strcpy(arbiter->gpus[1].info.name, "0000:05:00.0");
	state_load_drained(state, arbiter, &rig->diagnostics);
	CHECK(arbiter->gpus[1].draining && rig->diagnostics.n == 1);
	CHECK(arbiter_drain(arbiter, "0000:05:00.0", false) == 0);
	CHECK(save_drained(state, arbiter) == 0);
	CHECK(strcmp(file_text(rig), "0000:03:00.0\n") == 0);
}

TEST_WITH(invalid_lines_are_reported_and_the_others_are_used, struct rig *rig)
{
	_cleanup_(arbiter_freep) struct arbiter *arbiter = two_gpus();
	_cleanup_(state_closep) struct state *state = open_state(rig);

	scratch_write(&rig->scratch, "drained",
		      "\n0\n 0000:03:00.0\nan-address-that-is-as-long-as-32-b\n\x1b[0m\n"
		      "0000:04:00.0"); /* no newline at the end */
	state_load_drained(state, arbiter, &rig->diagnostics);
	CHECK(!arbiter->gpus[0].draining && arbiter->gpus[1].draining);
	CHECK(rig->diagnostics.n == 5 && !diagnostics_have_errors(&rig->diagnostics));
	CHECK(state_says(rig, "/drained:1") && state_says(rig, "/drained:3"));
	CHECK(state_says(rig, "/drained:4") && state_says(rig, "/drained:5"));
	CHECK(state_says(rig, "/drained: GPU 0")); /* "0" is a name here, not an index */
}

TEST_WITH(more_than_64_absent_gpus_are_not_kept, struct rig *rig)
{
	_cleanup_(arbiter_freep) struct arbiter *arbiter = two_gpus();
	_cleanup_(state_closep) struct state *state = open_state(rig);
	char text[16 * (REQUEST_WANTS + 1)], *end = text;

	for (unsigned i = 0; i <= REQUEST_WANTS; i++)
		end += sprintf(end, "0000:%02x:00.0\n", 8 + i);
	scratch_write(&rig->scratch, "drained", text);
	state_load_drained(state, arbiter, &rig->diagnostics);
	CHECK(rig->diagnostics.n == REQUEST_WANTS + 1);
	CHECK(state_says(rig, "GPUs, 0000:48:00.0"));
	CHECK(arbiter_drain(arbiter, "0", true) == 0 && arbiter_drain(arbiter, "1", true) == 0);
	CHECK(save_drained(state, arbiter) == 0);
	CHECK(strstr(file_text(rig), "\n0000:47:00.0\n") && !strstr(file_text(rig), "0000:48"));
}

TEST_WITH(object_in_the_place_of_the_list_is_set_aside, struct rig *rig)
{
	_cleanup_(arbiter_freep) struct arbiter *arbiter = two_gpus();
	_cleanup_(state_closep) struct state *state = open_state(rig);

	scratch_mkdir(&rig->scratch, "drained");
	CHECK(arbiter_drain(arbiter, "0", true) == 0);
	CHECK(save_drained(state, arbiter) == -EISDIR);
	CHECK(arbiter_drain(arbiter, "0", false) == 0);
	CHECK(save_drained(state, arbiter) == -EISDIR);

	state_load_drained(state, arbiter, &rig->diagnostics);
	CHECK(state_says(rig, "/drained") && rig->diagnostics.n == 1);
	CHECK(save_drained(state, arbiter) == 0);
	scratch_put(&rig->scratch, "drained", "0000:03:00.0\n\0", 14);
	state_load_drained(state, arbiter, &rig->diagnostics);
	CHECK(!arbiter->gpus[0].draining && there(rig, "set-aside/drained.2"));
}
