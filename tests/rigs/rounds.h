/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How often a test tries what it draws at random, and how much of what there is:
 *
 *	GPUARB_ROUNDS unset   a tenth of the usual, while you edit
 *	GPUARB_ROUNDS=usual   tests/run
 *	GPUARB_ROUNDS=N       N times, and of other things a tenth
 *	GPUARB_LONG=1         thorough: tests/run --long, where GPUARB_ROUNDS has no number
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "check-cond.h"

/* Fewer than usual: what is rare need not happen. */
static inline bool rounds_are_few(void)
{
	const char *rounds = getenv("GPUARB_ROUNDS");

	return rounds ? strcmp(rounds, "usual") != 0 : !getenv("GPUARB_LONG");
}

/* For what chance brings in as many rounds as usual. */
#define CHECK_REACHED(cond) CHECK((cond) || rounds_are_few())

/* How many things a test has to do with. */
static inline unsigned check_size(unsigned usual, unsigned thorough)
{
	return getenv("GPUARB_LONG") ? thorough : rounds_are_few() ? (usual + 9) / 10 : usual;
}

/* A test tries one of so many of what there is. */
static inline unsigned check_one_in(unsigned usual, unsigned thorough)
{
	return getenv("GPUARB_LONG") ? thorough : rounds_are_few() ? usual * 10 : usual;
}

static inline unsigned check_rounds(unsigned usual, unsigned thorough)
{
	const char *rounds = getenv("GPUARB_ROUNDS");
	unsigned long n = rounds ? strtoul(rounds, NULL, 10) : 0;

	return n > 0 ? (unsigned)n : check_size(usual, thorough);
}
