/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whole measurements on the device of latency-model.h. */

#include <errno.h>
#include <math.h>
#include <stdint.h>

#include "check.h"
#include "client/latency/matrix.h"
#include "client/latency/unit.h"
#include "latency-model.h"

struct run {
	struct model gpu;
	struct latency_model model;
	struct device device;
	struct stop stop;
	struct units units;
	struct matrix matrix;
	char problem[320];
};

static void prepare(struct run *run, const char *name)
{
	uint32_t mask[CODEC_WORDS];

	memset(run, 0, sizeof(*run));
	memset(mask, 0xff, sizeof(mask));
	run->gpu = latency_gpu(name);
	run->model.gpu = &run->gpu;
	CHECK(units_init(&run->gpu, mask, codec_words(&run->gpu.codec), &run->units) == 0);
	CHECK(matrix_init(run->units.n, &run->matrix) == 0);
	latency_model_open(&run->model, &run->device);
	run->stop = (struct stop){ latency_model_stop, &run->model };
}

static int play(struct run *run, unsigned rules)
{
	const struct measurement measurement = {
		.device = &run->device,
		.stop = &run->stop,
		.units = &run->units,
		.target = run->gpu.geometry.wgp        ? "gfx1030"
			  : run->gpu.geometry.xccs > 1 ? "gfx942"
						       : "gfx906",
		.rules = rules,
	};
	int r = matrix_measure(&measurement, &run->matrix, run->problem, sizeof(run->problem));

	CHECK(run->model.live == 0 && run->model.peak <= 2);
	return r;
}

static void done(struct run *run)
{
	matrix_done(&run->matrix);
	units_done(&run->units);
}

TEST(all_pairs_are_measured_with_two_streams_at_a_time)
{
	static const struct {
		const char *gpu;
		size_t units;
	} rows[] = { { "radeon-vii", 60 }, { "rx6900xt", 40 }, { "mi300x-spx", 38 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct run run;

		prepare(&run, rows[i].gpu);
		CHECK(play(&run, 0) == 0);
		CHECK(run.units.n == rows[i].units);
		CHECK(run.model.games == pairs_count(rows[i].units));
		CHECK(run.model.made == 2 * run.model.games && run.model.peak == 2);
		CHECK(run.model.rules == 0 && run.matrix.unmet == 0);
		done(&run);
	}
}

TEST(the_matrix_is_symmetric)
{
	_cleanup_(done) struct run run;

	prepare(&run, "rx6900xt");
	CHECK(play(&run, GAME_SAME_LINE | GAME_SWAP) == 0 && run.model.rules == 3);
	for (size_t a = 0; a < 40; a++) {
		for (size_t b = 0; b < 40; b++) {
			double ns = matrix_get(&run.matrix, a, b);

			CHECK(ns == matrix_get(&run.matrix, b, a));
			CHECK(a == b ? ns >= 50 && ns <= 120 : ns >= 100 && ns <= 200);
		}
	}
}

FIXTURE(struct run, run, , done(run));

TEST_WITH(units_that_move_between_games_are_marked, struct run *run)
{
	prepare(run, "mi300x-spx");
	run->model.wanders = true;
	CHECK(play(run, 0) == 0);
	for (size_t i = 0; i < 38; i++)
		CHECK(run->matrix.ran[i].known && run->matrix.ran[i].moved);
}

TEST(a_failed_stream_ends_the_measurement_without_a_leak)
{
	static const int errors[] = { -EDQUOT, -EBUSY, -ENOMEM, -EINVAL, -ENOENT };

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		for (size_t at = 1; at <= 6; at++) {
			struct run run;

			prepare(&run, "radeon-vii");
			run.model.fail_at = at;
			run.model.fail_with = errors[i];
			CHECK(play(&run, 0) == errors[i]);
			CHECK(strcmp(run.problem, "the model's sentence") == 0);
			CHECK(run.model.games == (at - 1) / 2);
			done(&run);
		}
	}
}

TEST_WITH(a_kernel_that_writes_nothing_is_an_error, struct run *run)
{
	prepare(run, "radeon-vii");
	run->model.answer = STAYS_SILENT;
	CHECK(play(run, 0) == -ENODATA && run->model.games == 1);
	CHECK(strstr(run->problem, "run"));
	CHECK(isnan(matrix_get(&run->matrix, 0, 0)) && !run->matrix.ran[0].known);
	done(run);

	prepare(run, "radeon-vii");
	run->model.answer = IS_CUT_OFF;
	CHECK(play(run, 0) == -EPROTO);
	CHECK(strstr(run->problem, "cut"));
}

TEST_WITH(the_measurement_ends_after_three_games_without_a_meeting, struct run *run)
{
	prepare(run, "radeon-vii");
	run->model.answer = MEETS_NOBODY;
	CHECK(play(run, 0) == -EAGAIN && run->model.games == 3);
	CHECK(strstr(run->problem, "meet") && strstr(run->problem, "3 times"));
	done(run);

	prepare(run, "radeon-vii");
	run->model.answer = LEAVES;
	CHECK(play(run, 0) == -EAGAIN && run->model.games == 3);
}

TEST(a_pair_that_did_not_meet_is_unknown)
{
	_cleanup_(done) struct run run;

	prepare(&run, "radeon-vii");
	run.model.answer = MEETS_NOBODY;
	run.model.answer_from = 61; /* after 60 with themselves: 0 and 1, 1 and 2 */
	run.model.answer_to = 62;
	CHECK(play(&run, 0) == 0);
	CHECK(run.matrix.unmet == 2 && run.model.games == pairs_count(60));
	CHECK(isnan(matrix_get(&run.matrix, 0, 1)) && isnan(matrix_get(&run.matrix, 2, 1)));
}

TEST(a_stop_takes_effect_before_the_next_pair)
{
	static const int reasons[] = { -EINTR, -ENOENT, -ESTALE };

	for (size_t i = 0; i < 3; i++) {
		struct run run;

		prepare(&run, "radeon-vii");
		run.model.stop_at = 8;
		run.model.stop_with = reasons[i];
		CHECK(play(&run, 0) == reasons[i] && run.model.games == 7);
		done(&run);
	}
}
