/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/text-stream.h"

#include <stdlib.h>
#include <string.h>

static ssize_t append(void *userdata, const char *text, size_t size)
{
	struct text_stream *stream = userdata;
	char *longer = realloc(stream->text, stream->size + size + 1);

	if (!longer)
		return 0;
	memcpy(longer + stream->size, text, size);
	stream->text = longer;
	stream->size += size;
	longer[stream->size] = '\0';
	return (ssize_t)size;
}

FILE *text_stream_open(struct text_stream *stream)
{
	stream->text = strdup("");
	stream->size = 0;
	stream->out = fopencookie(stream, "w", (cookie_io_functions_t){ .write = append });
	if (!stream->out) {
		free(stream->text);
		stream->text = NULL;
	}
	return stream->out;
}

char *text_stream_close(struct text_stream *stream)
{
	if (stream->out && !(ferror(stream->out) | (fclose(stream->out) != 0)))
		return stream->text;
	free(stream->text);
	return NULL;
}
