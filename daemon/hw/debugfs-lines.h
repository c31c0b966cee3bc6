/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The lines of a text that the kernel prints in debugfs, which comes in pieces of whole lines. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/mask/gpu-info.h"
#include "util/base.h"

struct lines {
	const char *at, *end; /* the rest of the piece */
	const char *line;     /* the present line, without its newline */
	size_t length;
	size_t number; /* of the present line, from 1, in the whole text */

	const struct gpu_info *gpus; /* that the text may name */
	size_t n_gpus;

	const char *name; /* of the file, in sentences */
	char *why;
	size_t why_size;
};

/* Continues with the next piece; name: of the file; why: where the functions below write a sentence. */
void lines_feed(struct lines *lines, const char *text, size_t size, const char *name, char *why,
		size_t why_size);

/* Returns 0 at the end of the piece, and -EBADMSG if that is not the end of the line. */
int lines_next(struct lines *lines);

bool lines_start_with(const struct lines *lines, const char *word);

/* Parses a hexadecimal number of n digits, 1 to 8, in lower case. */
bool lines_hex(const char *text, size_t n, uint32_t *ret);

/* Parses a decimal number at *at, moves *at behind it. false: no digit, or above INT32_MAX. */
bool lines_decimal(const struct lines *lines, const char **at, uint32_t *ret);

/* Parses the line "Node N, gpu_id ID:", with an id of up to 8 hexadecimal digits. */
bool lines_node(const struct lines *lines, uint32_t *ret);

/* The GPU with this id; NULL: none, as 0 is no id. */
const struct gpu_info *lines_gpu(const struct lines *lines, uint32_t id);

/* Parses " WORD" as often as it follows, each of 8 digits, until the end of the line. */
bool lines_words(const struct lines *lines, const char *at, uint32_t *ret, unsigned max,
		 unsigned *ret_n);

/* Return -EBADMSG with a sentence: the file, the line number and the reason; the second also quotes
 * the line. */
int lines_refuse(const struct lines *lines, const char *format, ...) PRINTF_LIKE(2, 3);
int lines_refuse_line(const struct lines *lines, const char *what);
