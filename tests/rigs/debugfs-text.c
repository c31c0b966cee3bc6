/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "debugfs-text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The size of the first piece: whole lines, about half of the text. */
static size_t first_piece(const char *text, size_t size)
{
	const char *newline = size > 0 ? memchr(text + size / 2, '\n', size - size / 2) : NULL;

	return newline ? (size_t)(newline + 1 - text) : size;
}

static int no_memory(char *why, size_t why_size)
{
	snprintf(why, why_size, "out of memory");
	return -ENOMEM;
}

int kfd_mqds_parse(const char *text, size_t size, const struct gpu_info *gpus, size_t n_gpus,
		   struct observed_mask **ret, size_t *ret_n, char *why, size_t why_size)
{
	_cleanup_(mqd_parser_freep) struct mqd_parser *parser = mqd_parser_new(gpus, n_gpus, false);
	size_t first = first_piece(text, size);
	int r;

	if (!parser)
		return no_memory(why, why_size);
	r = mqd_parser_feed(parser, text, first, why, why_size);
	if (r >= 0)
		r = mqd_parser_feed(parser, text + first, size - first, why, why_size);
	return r < 0 ? r : mqd_parser_end(parser, ret, ret_n, why, why_size);
}

int kfd_hqds_parse(const char *text, size_t size, const struct gpu_info *gpus, size_t n_gpus,
		   struct queue_slot **ret, size_t *ret_n, char *why, size_t why_size)
{
	_cleanup_(hqd_parser_freep) struct hqd_parser *parser = hqd_parser_new(gpus, n_gpus);
	size_t first = first_piece(text, size);
	int r;

	if (!parser)
		return no_memory(why, why_size);
	r = hqd_parser_feed(parser, text, first, why, why_size);
	if (r >= 0)
		r = hqd_parser_feed(parser, text + first, size - first, why, why_size);
	return r < 0 ? r : hqd_parser_end(parser, ret, ret_n, why, why_size);
}
