/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Texts of the kernel: debugfs, events of the driver, fdinfo, names. */

#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "hw/drm-fdinfo.h"
#include "hw/smi-event.h"
#include "kfd-mqd-rig.h"
#include "sys/cgroup.h"
#include "sys/liveness/holder.h"
#include "util/text.h"

static const struct gpu_info *gpu_of(uint32_t kfd_gpu_id)
{
	for (size_t i = 0; i < ARRAY_SIZE(gpus); i++)
		if (gpus[i].kfd_gpu_id == kfd_gpu_id && kfd_gpu_id != 0)
			return &gpus[i];
	abort();
}

/* sdma: with the queues of SDMA engines. */
static void parse_mqds(const char *text, size_t size, bool sdma)
{
	struct queue_parser *parser = queue_parser_new(gpus, ARRAY_SIZE(gpus), sdma);
	struct queue_text read = { 0 };
	char why[200] = "";
	int r;

	CHECK(parser);
	r = queue_parser_feed(parser, text, size, why, sizeof(why));
	if (r == 0)
		r = queue_parser_end(parser, &read, why, sizeof(why));
	queue_parser_free(parser);
	CHECK(r == 0 || (r == -EBADMSG && why[0] && !read.queues && !read.slots));
	CHECK(text_printable(why));
	for (size_t i = 0; i < read.n_queues; i++) {
		const struct observed_mask *rows = read.queues;
		struct cuset whole;

		geometry_all(&gpu_of(rows[i].kfd_gpu_id)->geometry, &whole);
		CHECK(cuset_within(&rows[i].cus, &whole) && rows[i].priority <= 15);
		CHECK(rows[i].pid > 0 && (sdma || !rows[i].sdma));
	}
	free(read.queues);
	free(read.slots);
}

FUZZ(mqds)
{
	char *text = fuzz_text(data, size);

	parse_mqds(text, size, false);
	parse_mqds(text, size, true);
	free(text);
}

FUZZ(hqds)
{
	struct queue_slot *slots = NULL;
	char *text = fuzz_text(data, size), why[200] = "";
	size_t n = 0;
	unsigned pipes, queues, without;
	int r = kfd_hqds_parse(text, size, gpus, ARRAY_SIZE(gpus), &slots, &n, why, sizeof(why));

	free(text);
	CHECK(r == 0 || (r == -EBADMSG && why[0] && !slots && n == 0));
	CHECK(text_printable(why));
	for (size_t i = 0; i < n; i++)
		CHECK(slots[i].xcc < gpu_of(slots[i].kfd_gpu_id)->geometry.xccs &&
		      slots[i].pipe < (slots[i].sdma ? 64 : 16) && slots[i].queue < 16);
	queue_slots_join(slots, n, NULL, 0);
	for (size_t i = 0; i < ARRAY_SIZE(gpus); i++) {
		if (queue_slots_shape(slots, n, gpus[i].kfd_gpu_id, &pipes, &queues))
			CHECK(pipes > 0 && queues > 0);
		queue_slots_count(slots, n, NULL, 0, gpus[i].kfd_gpu_id, &queues, &without);
		CHECK(without <= queues);
	}
	free(slots);
}

FUZZ(event)
{
	struct driver_event event;
	char *line = fuzz_text(data, size);
	int r = smi_event_parse(line, size, gpus[0].kfd_gpu_id, &event);

	CHECK(r == 0 || r == -EBADMSG);
	CHECK((r < 0) == (event.kind == DRIVER_UNKNOWN) && event.kind < DRIVER_EVENT_KINDS);
	CHECK(text_printable(event.text));
	CHECK(event.pid >= 0);
	free(line);
}

FUZZ(fdinfo)
{
	struct drm_client client = { .id = 4711 };
	char *text = fuzz_text(data, size);
	int r = drm_client_parse(text, &client);

	CHECK(r == 0 || client.id == 4711);
	CHECK(r == 0 || r == -ENODATA || (r == -EOPNOTSUPP && strstr(text, "vram mem:")));
	if (r == 0) {
		CHECK(client.use.clients == 1);
		CHECK(memchr(client.use.device, '\0', sizeof(client.use.device)));
		CHECK(text_printable(client.use.device));
	}
	free(text);
}

/* Names of cgroups and of stored descriptors. */
FUZZ(name)
{
	char *text = fuzz_text(data, size), *clean = malloc(size + 1), cgroup[64];
	struct stored_name name;
	int r;

	CHECK(clean);
	CHECK(text_printable(text_clean(clean, size + 1, text)));
	CHECK(text_printable(text_clean(cgroup, sizeof(cgroup), text)));
	if (text_printable(text))
		CHECK(strcmp(text, clean) == 0);
	r = unit_cgroup(text, "training.service", cgroup, sizeof(cgroup));
	CHECK(r == 0 || r == -ENODATA || r == -ENAMETOOLONG);
	if (r == 0)
		CHECK(strncmp(text, cgroup, strlen(cgroup)) == 0);
	if (stored_name_parse(text, &name))
		CHECK(name.lease > 0 && name.number > 0);
	free(clean);
	free(text);
}
