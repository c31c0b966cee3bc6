/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Fuzz targets: each passes bytes that anybody may have written to the code that reads them, and
 * aborts when a promise of that code is broken. One program has all of them. With libFuzzer
 * (-Dfuzz=…) its name selects the target: fuzz-NAME. Without, its first argument does, and it runs
 * the files of the other arguments.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check-cond.h"

struct fuzz_target {
	const char *name;
	void (*run)(const uint8_t *data, size_t size);
	struct fuzz_target *next;
};

/* Defines and registers a target: FUZZ(name) { … } */
#define FUZZ(id)                                                             \
	static void fuzz_##id(const uint8_t *data, size_t size);             \
	__attribute__((constructor)) static void fuzz_add_##id(void)         \
	{                                                                    \
		static struct fuzz_target target = { #id, fuzz_##id, NULL }; \
		fuzz_add(&target);                                           \
	}                                                                    \
	static void fuzz_##id(const uint8_t *data, size_t size)

void fuzz_add(struct fuzz_target *target);

/* The target of this name; NULL: there is none. */
const struct fuzz_target *fuzz_find(const char *name);

/* Input that is consumed as numbers: zeros follow its end. */
struct fuzz_input {
	const uint8_t *at, *end;
};

uint64_t fuzz_number(struct fuzz_input *input, size_t bytes); /* 1 to 8 */
unsigned fuzz_below(struct fuzz_input *input, unsigned n);

/* A copy of the input with a NUL behind it, for free(). */
char *fuzz_text(const uint8_t *data, size_t size);

/* The path of a file with this content, until the next call. */
const char *fuzz_file(const uint8_t *data, size_t size);
