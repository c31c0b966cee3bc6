/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "latency-model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check-cond.h"
#include "sys/config/profile.h"

#define TICK_NS 10.0 /* 100 MHz, as most GPUs have it */

/* The GPU of a shipped profile. */
struct model latency_gpu(const char *name)
{
	struct diagnostics diagnostics = { 0 };
	struct profile profile;
	struct model model;
	char dir[4096];

	snprintf(dir, sizeof(dir), "%s/conf/gpus", getenv("GPUARB_SOURCE_ROOT"));
	CHECK(profile_load(dir, name, &profile, &diagnostics) == 0);
	diagnostics_done(&diagnostics);
	model_init(&model, &profile.info.geometry);
	return model;
}

/* CU 2 of every array is fused off: numbers from there on are one, or one WGP, higher. */
static unsigned hardware_cu(const struct model *gpu, unsigned cu)
{
	return cu < 2 ? cu : cu + geometry_step(&gpu->geometry);
}

/* Fields of HW_ID of gfx9 and of HW_ID1 of gfx10. */
static uint32_t hw_id_of(const struct model *gpu, const struct place *place)
{
	unsigned cu = hardware_cu(gpu, place->cu);

	if (gpu->geometry.wgp)
		return cu / 2 << 10 | place->array << 16 | place->engine << 18 | 0xa5;
	return cu << 8 | place->array << 12 | place->engine << 13 | 0xa5;
}

/* The first CU on each XCC that the stream may use. */
struct stream {
	struct place lane[CUSET_XCCS];
	struct cuset set;
};

static int create_raw(void *data, const uint32_t *mask, size_t words, void **ret)
{
	struct latency_model *model = data;
	struct stream *stream;
	struct cuset set;

	if (++model->made == model->fail_at || (model->fail_on && model->made > model->fail_at))
		return model->fail_with;

	codec_decode(&model->gpu->codec, mask, words, &set);
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		abort();
	geometry_occupied(&model->gpu->geometry, &set, &stream->set);
	for (unsigned xcc = 0; xcc < model->gpu->geometry.xccs; xcc++) {
		for (unsigned e = CUSET_ENGINES; e-- > 0;) {
			uint32_t word = set.pair[cuset_pair(xcc, e)];
			unsigned bit = word ? (unsigned)__builtin_ctz(word) : 0;

			if (word)
				stream->lane[xcc] = (struct place){ xcc, e, bit / CUSET_ARRAY_CUS,
								    bit % CUSET_ARRAY_CUS };
		}
	}
	if (++model->live > model->peak)
		model->peak = model->live;
	*ret = stream;
	return 0;
}

/* As the library: a mask without a bit on each XCC is refused. */
static int create(void *data, const uint32_t *mask, size_t words, void **ret)
{
	const struct latency_model *model = data;
	struct cuset set;

	codec_decode(&model->gpu->codec, mask, words, &set);
	return geometry_on_every_xcc(&model->gpu->geometry, &set)
		       ? create_raw(data, mask, words, ret)
		       : -EINVAL;
}

static void destroy(void *data, void *stream)
{
	struct latency_model *model = data;

	model->live--;
	free(stream);
}

/* xorshift64 */
static double uniform(struct latency_model *model)
{
	model->random ^= model->random << 13;
	model->random ^= model->random >> 7;
	model->random ^= model->random << 17;
	return (double)(model->random >> 11) / 0x1p53;
}

static double latency(struct latency_model *model, const struct place *a, const struct place *b)
{
	double ns = 150;

	if (place_equal(a, b))
		ns = 50;
	else if (a->engine == b->engine)
		ns = 100;
	ns += 30 * uniform(model);
	if (model->slow && (place_equal(a, model->slow) != place_equal(b, model->slow)))
		ns *= 1.5;
	if (model->slow_pair > 0 && a->engine + b->engine == 1 &&
	    a->array + b->array + a->cu + b->cu == 0)
		ns = model->slow_pair;
	return ns;
}

static struct place where(const struct latency_model *model, const struct stream *stream,
			  unsigned lane)
{
	struct place place = stream->lane[lane];

	if (model->ignores_masks)
		return (struct place){ .xcc = lane };
	if (model->strays && place_equal(&place, model->strays))
		place = model->strays_to;
	if (model->wanders && model->games % 2 == 0)
		place.engine ^= 1;
	return place;
}

static enum model_answer answer_now(const struct latency_model *model)
{
	if (model->answer_from > 0 &&
	    (model->games < model->answer_from || model->games > model->answer_to))
		return ANSWERS;
	return model->answer;
}

static enum report_state state_of(enum model_answer answer, unsigned player)
{
	switch (answer) {
	case MEETS_NOBODY: return player == 0 ? REPORT_ALONE : REPORT_NONE;
	case LEAVES: return player == 0 ? REPORT_LEFT : REPORT_CAME;
	case IS_CUT_OFF: return player == 0 ? REPORT_ENDED : REPORT_CAME;
	default: return REPORT_ENDED;
	}
}

static int play(void *data, void *const streams[static 2], unsigned rules, unsigned lanes,
		struct outcome *ret)
{
	struct latency_model *model = data;
	enum model_answer answer;

	memset(ret, 0, sizeof(*ret));
	ret->tick_ns = TICK_NS;
	model->games++;
	model->rules = rules;
	answer = answer_now(model);
	if (answer == STAYS_SILENT)
		return 0;

	for (unsigned lane = 0; lane < lanes; lane++) {
		struct place place[2];

		for (unsigned player = 0; player < 2; player++) {
			struct report *report = &ret->report[player][lane];

			place[player] = where(model, streams[player], lane);
			report->state = state_of(answer, player);
			report->hw_id = hw_id_of(model->gpu, &place[player]);
			report->xcc_id = place[player].xcc;
			report->rounds = GAME_ROUNDS;
		}
		for (unsigned round = 0; round < GAME_ROUNDS; round++)
			ret->report[0][lane].ticks[round] = (uint64_t)llround(
				latency(model, &place[0], &place[1]) * 2 * GAME_TRIPS / TICK_NS);
	}
	return 0;
}

#define SPIN_BLOCK_USEC 318.0 /* that of a Radeon VII; b is a tenth of the time on the whole GPU */

/* A kernel that reads memory has b = 40 %; each other process costs 25 % or 10 %. */
static double spin_usec(struct latency_model *model, const struct cuset *set,
			const struct work *work)
{
	const struct geometry *geometry = &model->gpu->geometry;
	unsigned whole = geometry_effective(geometry, &model->gpu->all);
	double noise = 1 + (model->noise > 0 ? model->noise * uniform(model) : 0);

	double b = work->kind == NEIGHBOURS_MEMORY ? 0.4 : 0.1;

	if (model->games >= model->hot_from && model->games <= model->hot_to)
		noise *= 1.3;
	noise *= 1 + model->beside * (model->beside_kind == NEIGHBOURS_MEMORY ? 0.25 : 0.1);
	return SPIN_BLOCK_USEC * work->groups * noise *
	       ((1 - b) / geometry_effective(geometry, set) + b / whole);
}

/* The places of a set's units. */
static unsigned list_places(const struct model *gpu, const struct cuset *set,
			    struct place places[static CUSET_PAIRS * 32])
{
	unsigned step = geometry_step(&gpu->geometry), n = 0;

	for (unsigned pair = 0; pair < CUSET_PAIRS; pair++)
		for (unsigned cu = 0; cu < 32 && set->pair[pair]; cu += step)
			if (set->pair[pair] >> cu & 1)
				places[n++] = (struct place){ pair / CUSET_ENGINES,
							      pair % CUSET_ENGINES,
							      cu / CUSET_ARRAY_CUS,
							      cu % CUSET_ARRAY_CUS };
	return n;
}

static int spin(void *data, void *on, const struct work *work, struct wave *ret,
		struct spun *ret_spun)
{
	struct latency_model *model = data;
	struct stream *stream = on;
	const struct cuset *set = model->ignores_masks ? &model->gpu->all : &stream->set;
	struct place places[CUSET_PAIRS * 32];
	unsigned n = list_places(model->gpu, set, places), groups = work->groups;
	double usec;
	uint64_t end;

	memset(ret, 0, groups * sizeof(*ret));
	model->games++;
	usec = spin_usec(model, set, work);
	*ret_spun = (struct spun){ TICK_NS, 0, usec + 20 };
	end = 1000 + (uint64_t)(usec * 1000 / TICK_NS);
	if (model->jumps > 0)
		end = model->jumps-- % 2 ? 0 : end * 1000;
	if (answer_now(model) == STAYS_SILENT)
		return 0;
	for (unsigned i = 0; i < groups; i++) {
		struct place place = places[i % n];

		ret[i] = (struct wave){
			.state = answer_now(model) == IS_CUT_OFF && i > 0 ? 7 : WAVE_ENDED,
			.hw_id = hw_id_of(model->gpu, &place),
			.xcc_id = place.xcc,
			.start = 1000,
			.end = end,
		};
	}
	return 0;
}

/* Each queue more costs 1 %, those beyond the slots much more; other processes on the same CUs take their
 * share. */
static int together(void *data, void *const *streams, unsigned n, const struct work *work,
		    double *ret_host_usec)
{
	struct latency_model *model = data;
	const struct stream *first = streams[0];
	const struct work all = { work->kind, work->groups * n, work->spins, work->threads };
	unsigned beside = model->beside, beyond = 0;

	if (model->hangs_at > 0 && n >= model->hangs_at)
		return -ETIMEDOUT;
	if (model->slots > 0 && n + 1 > model->slots)
		beyond = n + 1 - model->slots;
	model->beside = 0;
	*ret_host_usec = spin_usec(model, &first->set, &all) * (1 + 0.01 * (n - 1) + beyond) *
			 (beside + 1);
	model->beside = beside;
	return 0;
}

static int change(void *data, const uint32_t *const masks[static 2], size_t words, unsigned times,
		  struct costs *ret)
{
	const struct latency_model *model = data;
	struct cuset set[2];

	CHECK(times > 0);
	for (size_t i = 0; i < 2; i++)
		codec_decode(&model->gpu->codec, masks[i], words, &set[i]);
	CHECK(memcmp(&set[0], &set[1], sizeof(set[0])) != 0);
	*ret = (struct costs){ .create = 9300,
			       .change = 55,
			       .preemption = 41,
			       .pause = model->no_pause ? NAN : 48,
			       .resume = model->no_pause ? NAN : 33,
			       .paused = model->no_pause ? NAN : 97 };
	return model->change_with;
}

static void close_model(void *)
{
}

void latency_model_open(struct latency_model *model, struct device *ret)
{
	static const struct device_calls calls = { create, create_raw, destroy, play,
						   spin,   together,   change,  close_model };

	model->random = model->random ? model->random : 1;
	*ret = (struct device){ .calls = &calls, .data = model, .emulated = true };
	snprintf(ret->problem, sizeof(ret->problem), "the model's sentence");
}

int latency_model_stop(void *data, int)
{
	struct latency_model *model = data;

	return model->stop_at > 0 && --model->stop_at == 0 ? model->stop_with : 0;
}
