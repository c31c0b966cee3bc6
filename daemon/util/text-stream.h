/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Texts that are written to a stream. Without memory the stream has an error: one of open_memstream() has
 * none, and its text a gap. */

#include <stdio.h>

struct text_stream {
	FILE *out;
	char *text;
	size_t size;
};

FILE *text_stream_open(struct text_stream *stream); /* NULL: no memory */

/* Returns the text, which belongs to the caller; NULL: no memory, also when the stream was opened. */
char *text_stream_close(struct text_stream *stream);
