/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/text-stream.h"

#include <errno.h>

#include "check.h"
#include "lack.h"

#define LINE "a line of a long text\n"
#define LINES 2000U /* more than a stream buffers */

/* Fails, or returns all lines. */
static int write_lines(long allocations)
{
	struct text_stream stream;
	char *text;
	FILE *out;

	lack_left = allocations;
	out = text_stream_open(&stream);
	for (unsigned i = 0; out && i < LINES; i++)
		fputs(LINE, out);
	text = text_stream_close(&stream);
	if (!text)
		return -ENOMEM;
	CHECK(strlen(text) == LINES * strlen(LINE) && stream.size == strlen(text));
	for (unsigned i = 0; i < LINES; i++)
		CHECK(strncmp(text + i * strlen(LINE), LINE, strlen(LINE)) == 0);
	free(text);
	return 0;
}

TEST(text_is_complete_or_there_is_none)
{
	CHECK(lack_each("text_stream", write_lines) >= 3);
}

TEST(stream_to_which_nothing_was_written_has_an_empty_text)
{
	struct text_stream stream;
	char *text;

	CHECK(text_stream_open(&stream));
	text = text_stream_close(&stream);
	CHECK(text && !*text);
	free(text);
}
