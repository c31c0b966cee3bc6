/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sequences of requests, deaths, observations and restarts, whose promises are checked after each. */

#include "arbiter-model.h"
#include "bus/bus-read.h"
#include "fuzz.h"
#include "ledger-play.h"
#include "messages.h"
#include "util/text.h"

#define STEPS 400U

static struct model model_new(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "0000:03:00.0", "0000:04:00.0", "0000:05:00.0/0",
					     "0000:05:00.0/1" };
	struct model model = { .input = data, .input_end = data + size };
	unsigned first = model_below(&model, PLAY_SHAPES), n = 1 + model_below(&model, 4);

	for (unsigned i = 0; i < n; i++) {
		model.infos[i] = play_gpu(names[i], (first + i) % PLAY_SHAPES);
		model.infos[i].kfd_gpu_id = i + 1;
	}
	model.arbiter = arbiter_of(model.infos, n);
	model.oversubscribe = model_chance(&model, 20);
	model.arbiter->verifies = model_chance(&model, 50);
	model_set_policy(&model);
	return model;
}

static void model_done(struct model *model)
{
	model_end(model);
	arbiter_free(model->arbiter);
}

FUZZ(model)
{
	struct model model;

	if (size == 0)
		return;
	model = model_new(data, size);
	for (unsigned i = 0; i < STEPS && model.input < model.input_end; i++)
		model_step(&model);
	model_done(&model);
}

/* ---- arguments of Reserve -------------------------------------------------------------------- */

static const char *const keys[] = {
	"gpu",
	"cus",
	"shader-engines",
	"cus-min",
	"cus-max",
	"exact",
	"shape",
	"queues",
	"streams",
	"processes",
	"sdma-queues",
	"sdma-xgmi-queues",
	"vram",
	"cooperative",
	"priority",
	"isolation",
	"class",
	"name",
	"tenant",
	"token",
	"wait-usec",
	"start-inactive",
	"adaptable",
	"requeue",
	"exclusive",
	"process",
	"",
};
static const char *const words[] = {
	"any",       "0",        "1",          "3",          "0000:03:00.0",  "0000:05:00.0/1",
	"rectangle", "low",      "normal",     "high",       "shader-engine", "cu",
	"shared",    "realtime", "guaranteed", "besteffort", "active",        "lab",
	"vr",        "",         "\x1b[31m",   "\xc3\xa9",
};
static const uint64_t numbers[] = { 0, 1, 2, 15, 16, 60, 64, 65535, 65536, UINT32_MAX, UINT64_MAX };
static const char types[] = "sssuuutbbhxdoqi";

static void add_entry(struct model *model, sd_bus_message *m)
{
	unsigned key = model_below(model, ARRAY_SIZE(keys) + 4);
	char type[2] = { types[model_below(model, sizeof(types) - 1)] }, text[8] = "";
	unsigned which = model_below(model, ARRAY_SIZE(numbers) + 6);
	uint64_t number = which < ARRAY_SIZE(numbers) ? numbers[which] : model_below(model, 256);

	for (size_t i = 0; i + 1 < sizeof(text) && key >= ARRAY_SIZE(keys); i++)
		text[i] = (char)model_below(model, 128);
	append_entry(m, key < ARRAY_SIZE(keys) ? keys[key] : text, type, number,
		     words[model_below(model, ARRAY_SIZE(words))]);
}

static void add_entries(struct model *model, sd_bus_message *m)
{
	CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
	for (unsigned n = model_below(model, 6); n > 0; n--)
		add_entry(model, m);
	CHECK(sd_bus_message_close_container(m) >= 0);
}

static sd_bus_message *any_arguments(struct model *model)
{
	sd_bus_message *m = message();
	unsigned wants = model_chance(model, 80) ? 1 : model_below(model, REQUEST_WANTS + 3);

	CHECK(sd_bus_message_open_container(m, 'a', "a{sv}") >= 0);
	while (wants-- > 0)
		add_entries(model, m);
	CHECK(sd_bus_message_close_container(m) >= 0);
	add_entries(model, m);
	return sealed(m);
}

static void reserve_by_message(struct model *model)
{
	struct caller caller = caller_of(model_below(model, 4));
	struct result result = { 0 };
	struct request request;
	sd_bus_message *m = any_arguments(model);
	int fd;

	if (bus_read_request(m, &request, &fd, &result) < 0) {
		CHECK(result.kind == RESULT_INVALID_REQUEST);
		CHECK(result.sentence[0] && text_printable(result.sentence));
	} else if (!ledger_find_token(model->arbiter, caller.uid, request.token)) {
		model_reserve(model, &caller, &request);
		model_check(model);
		model_settle(model);
	}
	result_done(&result);
	sd_bus_message_unref(m);
}

FUZZ(reserve)
{
	struct model model;

	if (size == 0)
		return;
	model = model_new(data, size);
	for (unsigned i = 0; i < STEPS && model.input < model.input_end; i++) {
		reserve_by_message(&model);
		if (model_chance(&model, 50))
			model_step(&model);
	}
	model_done(&model);
}
