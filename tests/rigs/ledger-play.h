/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Random operations on an arbiter with four GPUs of different makes. */

#include "ledger-check.h"
#include "ledger-rig.h"

#define PLAY_GPUS 4U

struct play {
	struct arbiter *arbiter;
	unsigned seed;
	uint64_t now; /* us; a second passes at each step */
};

unsigned play_below(struct play *play, unsigned n);

bool play_chance(struct play *play, unsigned percent);

struct play play_new(unsigned seed);

void play_drain(const struct play *play);

void play_step(struct play *play);

/* When everything is released every GPU is as it was. */
void play_end(struct play *play);
