/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/kfd-queues.h"

#include <stdlib.h>
#include <string.h>

#include "hw/kfd-queues-private.h"

struct queue_parser {
	bool in_slots; /* the descriptors follow */
	struct hqd_parser slots;
	struct mqd_parser queues;
	struct gpu_info gpus[];
};

static struct lines *lines_of(struct queue_parser *parser)
{
	return parser->in_slots ? &parser->slots.lines : &parser->queues.lines;
}

/* The descriptors begin with the first process behind the slots. */
static int end_slots(struct queue_parser *parser)
{
	int r = hqd_end_slot(&parser->slots);

	parser->in_slots = false;
	parser->queues.lines = parser->slots.lines;
	parser->queues.lines.name = "kfd/mqds";
	parser->queues.lines.number = 1;
	return r;
}

int queue_parser_feed(struct queue_parser *parser, const char *text, size_t size, char *why,
		      size_t why_size)
{
	int r;

	lines_feed(lines_of(parser), text, size, parser->in_slots ? "kfd/hqds" : "kfd/mqds", why,
		   why_size);
	while ((r = lines_next(lines_of(parser))) > 0) {
		if (parser->in_slots && lines_start_with(&parser->slots.lines, "Process "))
			r = end_slots(parser);
		if (r >= 0)
			r = parser->in_slots ? hqd_line(&parser->slots) : mqd_line(&parser->queues);
		if (r < 0)
			break;
	}
	return r;
}

int queue_parser_end(struct queue_parser *parser, struct queue_text *ret, char *why,
		     size_t why_size)
{
	int r = queue_parser_feed(parser, "", 0, why, why_size);

	if (r >= 0)
		r = parser->in_slots ? hqd_end_slot(&parser->slots) : mqd_end(&parser->queues);
	if (r < 0)
		return r;
	*ret = (struct queue_text){ .queues = TAKE_PTR(parser->queues.seen),
				    .slots = TAKE_PTR(parser->slots.slots),
				    .n_queues = parser->queues.n,
				    .n_slots = parser->slots.n };
	return 0;
}

struct queue_parser *queue_parser_new(const struct gpu_info *gpus, size_t n_gpus, bool slots)
{
	struct queue_parser *parser = calloc(1, sizeof(*parser) + n_gpus * sizeof(*gpus));

	if (!parser)
		return NULL;
	if (n_gpus > 0)
		memcpy(parser->gpus, gpus, n_gpus * sizeof(*gpus));
	parser->in_slots = parser->queues.sdma = slots;
	parser->slots.lines.gpus = parser->queues.lines.gpus = parser->gpus;
	parser->slots.lines.n_gpus = parser->queues.lines.n_gpus = n_gpus;
	return parser;
}

struct queue_parser *queue_parser_free(struct queue_parser *parser)
{
	if (!parser)
		return NULL;
	free(parser->queues.active);
	free(parser->queues.seen);
	free(parser->slots.slots);
	free(parser);
	return NULL;
}
