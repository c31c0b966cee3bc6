/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "debugfs-text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The size of the first piece: whole lines, about half of the text. */
static size_t first_piece(const char *text, size_t size)
{
	const char *newline = size > 0 ? memchr(text + size / 2, '\n', size - size / 2) : NULL;

	return newline ? (size_t)(newline + 1 - text) : size;
}

static int parse(const char *text, size_t size, const struct gpu_info *gpus, size_t n_gpus,
		 bool slots, struct queue_text *ret, char *why, size_t why_size)
{
	_cleanup_(queue_parser_freep) struct queue_parser *parser = queue_parser_new(gpus, n_gpus,
										     slots);
	size_t first = first_piece(text, size);
	int r;

	if (!parser) {
		snprintf(why, why_size, "out of memory");
		return -ENOMEM;
	}
	r = queue_parser_feed(parser, text, first, why, why_size);
	if (r >= 0)
		r = queue_parser_feed(parser, text + first, size - first, why, why_size);
	return r < 0 ? r : queue_parser_end(parser, ret, why, why_size);
}

int kfd_mqds_parse(const char *text, size_t size, const struct gpu_info *gpus, size_t n_gpus,
		   struct observed_mask **ret, size_t *ret_n, char *why, size_t why_size)
{
	struct queue_text read = { .queues = *ret, .n_queues = *ret_n };
	int r = parse(text, size, gpus, n_gpus, false, &read, why, why_size);

	*ret = read.queues;
	*ret_n = read.n_queues;
	free(read.slots);
	return r;
}

int kfd_hqds_parse(const char *text, size_t size, const struct gpu_info *gpus, size_t n_gpus,
		   struct queue_slot **ret, size_t *ret_n, char *why, size_t why_size)
{
	struct queue_text read = { .slots = *ret, .n_slots = *ret_n };
	int r = parse(text, size, gpus, n_gpus, true, &read, why, why_size);

	*ret = read.slots;
	*ret_n = read.n_slots;
	free(read.queues);
	return r;
}
