/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Files that an earlier daemon saved, and reports that root installed. */

#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "ledger-check.h"
#include "ledger-play.h"
#include "ledger-rig.h"
#include "sys/state/calibration-file.h"
#include "sys/state/state-json.h"
#include "sys/state/state.h"
#include "scratch.h"
#include "util/text.h"

/* What was read is written so that it is read again. */
static void write_again(const struct arbiter *arbiter, const struct lease *lease)
{
	static struct state_lease again;
	char *text, why[256] = "";

	CHECK(state_json_write(arbiter, lease, &text) == 0);
	if (state_json_read(arbiter, text, strlen(text), &again, why, sizeof(why)) < 0) {
		fprintf(stderr, "%s\n%s\n", why, text);
		abort();
	}
	CHECK(again.lease->id == lease->id && again.lease->state == lease->state);
	lease_free(again.lease);
	free(text);
}

static void adopt(struct arbiter *arbiter, const char *text, size_t size)
{
	static struct state_lease saved;
	char why[256] = "";
	int r = state_json_read(arbiter, text, size, &saved, why, sizeof(why));

	CHECK(r == 0 || (r == -EINVAL && why[0] && text_printable(why)));
	if (r < 0)
		return;
	r = arbiter_adopt(arbiter, saved.lease, saved.lost, why, sizeof(why));
	CHECK(r == 0 || ((r == -EINVAL || r == -EEXIST) && why[0] && text_printable(why)));
	if (r < 0) {
		lease_free(saved.lease);
	} else {
		arbiter_add_holder(arbiter, saved.lease->id);
		write_again(arbiter, saved.lease);
	}
	check_promises(arbiter);
}

/* Leases, one in each line: the second may contradict the first. The ledger then serves as any other. */
FUZZ(lease)
{
	struct play play = play_new(1);
	const char *text = (const char *)data, *end = text + size;

	while (text < end) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((eol ? eol : end) - text);
		char *line = fuzz_text((const uint8_t *)text, length);

		adopt(play.arbiter, line, length);
		free(line);
		text += length + 1;
	}
	arbiter_adopted(play.arbiter, play.now);
	check_promises(play.arbiter);
	play_drain(&play);
	for (unsigned i = 0; i < 4; i++) {
		play_step(&play);
		check_promises(play.arbiter);
	}
	play_end(&play);
}

/* The file of drained GPUs, and that of the ids. */
FUZZ(drained)
{
	static struct scratch scratch;
	struct diagnostics diagnostics = { 0 };
	struct play play = play_new(1);
	struct state *state;

	if (!scratch.path[0])
		scratch = scratch_new();
	scratch_put(&scratch, "drained", data, size);
	scratch_put(&scratch, "next-id", data, size);
	CHECK(state_open(scratch.path, NULL, &state, &diagnostics) == 0);
	CHECK(state_first_id(state) > 0);
	state_load_drained(state, play.arbiter, &diagnostics);
	check_promises(play.arbiter);
	for (size_t i = 0; i < diagnostics.n; i++)
		CHECK(text_printable(diagnostics.list[i].text));
	diagnostics_done(&diagnostics);
	state_close(state);
	arbiter_free(play.arbiter);
}

/* What a report promises of a GPU, whether it was believed or not. */
static void check_calibrated(const struct gpu_info *gpu)
{
	const struct calibrated *c = &gpu->calibrated;

	CHECK(text_printable(c->problem) && (c->date[0] == '\0' || c->problem[0] == '\0'));
	CHECK(gpu->law.constant <= 100 && c->n_slowdowns <= CALIBRATED_SLOWDOWNS);
	for (size_t i = 0; i < c->n_slowdowns; i++)
		CHECK(c->slowdowns[i].percent >= 100 && c->slowdowns[i].neighbours > 0);
	CHECK((c->date[0] != '\0') == (strncmp(gpu->law.source, "calibrated ", 11) == 0));
}

/* The report of calibrate that root installed. */
FUZZ(calibration)
{
	static struct scratch scratch;
	struct diagnostics diagnostics = { 0 };
	struct gpu_info gpu = radeon_vii("0000:03:00.0");
	const struct trust own = { { geteuid() } };

	if (!scratch.path[0]) {
		scratch = scratch_new();
		scratch_mkdir(&scratch, "calibration");
	}
	scratch_put(&scratch, "calibration/0000:03:00.0.json", data, size);
	calibration_load(scratch.path, &own, &gpu, &diagnostics);
	CHECK(diagnostics.n == (gpu.calibrated.problem[0] != '\0'));
	check_calibrated(&gpu);
	diagnostics_done(&diagnostics);
}
