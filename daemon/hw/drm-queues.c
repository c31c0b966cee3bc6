/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/drm-queues.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hw/debugfs-lines.h"
#include "util/grow.h"

#define COMPUTE 1U /* AMDGPU_HW_IP_COMPUTE */
#define FAILURE "grep: "

static const char *find(const struct lines *lines, const char *from, const char *word)
{
	const char *at = memmem(from, (size_t)(lines->line + lines->length - from), word,
				strlen(word));

	return at ? at + strlen(word) : NULL;
}

static int find_device(struct drm_queue_parser *parser, const struct lines *lines, const char *name,
		       unsigned *ret)
{
	size_t length = strspn(name, "0123456789abcdef:."), i;

	if (length == 0 || length >= GPU_NAME_MAX)
		return lines_refuse_line(lines, "no device");
	for (i = 0; i < parser->n_devices; i++)
		if (strlen(parser->devices[i].device) == length &&
		    memcmp(parser->devices[i].device, name, length) == 0)
			break;
	if (i == DRM_QUEUE_DEVICES)
		return lines_refuse(lines, "more than %u devices", DRM_QUEUE_DEVICES);
	if (i == parser->n_devices)
		memcpy(parser->devices[parser->n_devices++].device, name, length);
	*ret = (unsigned)i;
	return 0;
}

static int add_client(struct drm_queue_parser *parser, const struct lines *lines, unsigned id,
		      const char *device)
{
	struct drm_queue_client *added;
	unsigned index = 0;
	int r = find_device(parser, lines, device, &index);

	if (r < 0)
		return r;
	if (parser->n_clients == DRM_QUEUE_CLIENTS_MAX)
		return lines_refuse(lines, "more than %u clients", DRM_QUEUE_CLIENTS_MAX);
	added = grow(&parser->clients, &parser->n_clients, sizeof(*added));
	if (!added)
		return -ENOMEM;
	*added = (struct drm_queue_client){ id, index };
	return 0;
}

/* The device of a client whose name cannot be read is unknown: its queue counts on each. */
static void add_queue(struct drm_queue_parser *parser, unsigned id)
{
	for (size_t i = 0; i < parser->n_clients; i++) {
		size_t k = (parser->last + i) % parser->n_clients;

		if (parser->clients[k].id != id)
			continue;
		parser->last = k;
		parser->devices[parser->clients[k].device].compute++;
		return;
	}
	for (size_t i = 0; i < parser->n_devices; i++)
		parser->devices[i].compute++;
}

/* A file that is gone, or goes while it is opened (EIO of debugfs_file_get()), has no queue any more. With any other
 * file that cannot be read, the queues are unknown. */
static int take_failure(const struct lines *lines)
{
	static const char *const gone[] = { ": No such file or directory", ": Input/output error" };

	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		if (lines->length > strlen(gone[i]) &&
		    memcmp(lines->line + lines->length - strlen(gone[i]), gone[i],
			   strlen(gone[i])) == 0)
			return 0;
	return lines_refuse_line(lines, "it cannot be read");
}

/* Clients of other drivers have none of these queues. */
static int take_line(struct drm_queue_parser *parser, const struct lines *lines)
{
	const char *at = find(lines, lines->line, "/dri/client-"), *name, *type;
	uint32_t id, number;

	if (lines_start_with(lines, FAILURE))
		return take_failure(lines);
	if (!at || !lines_decimal(lines, &at, &id))
		return lines_refuse_line(lines, "no client");
	name = find(lines, at, "/device/name:amdgpu dev=");
	if (name)
		return add_client(parser, lines, id, name);
	type = find(lines, at, "/mqd_info:queue_type");
	if (!type)
		return 0;
	type += strspn(type, ": ");
	if (!lines_decimal(lines, &type, &number))
		return lines_refuse_line(lines, "no type");
	if (number == COMPUTE)
		add_queue(parser, id);
	return 0;
}

int drm_queues_feed(struct drm_queue_parser *parser, const char *text, size_t size, char *why,
		    size_t why_size)
{
	struct lines lines = { .number = parser->n_lines };
	int r;

	lines_feed(&lines, text, size, "dri", why, why_size);
	while ((r = lines_next(&lines)) > 0) {
		r = take_line(parser, &lines);
		if (r < 0)
			break;
	}
	parser->n_lines = lines.number;
	return r;
}

void drm_queues_reset(struct drm_queue_parser *parser)
{
	free(parser->clients);
	*parser = (struct drm_queue_parser){ 0 };
}
