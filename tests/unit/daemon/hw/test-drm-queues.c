/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/drm-queues.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define DRI "/sys/kernel/debug/dri/client-"
#define FIRST "amdgpu dev=0000:03:00.0 unique=0000:03:00.0\n"
#define SECOND "amdgpu dev=0000:c4:00.0 unique=0000:c4:00.0\n"

static struct drm_queue_parser parser;
static char why[256];

static int feed(const char *text)
{
	return drm_queues_feed(&parser, text, strlen(text), why, sizeof(why));
}

static bool counts(size_t i, const char *device, unsigned compute)
{
	return i < parser.n_devices && strcmp(parser.devices[i].device, device) == 0 &&
	       parser.devices[i].compute == compute;
}

TEST(queues_that_compute_are_counted_on_the_device_of_their_client)
{
	CHECK(feed(DRI "10/device/name:" FIRST DRI "11/device/name:i915 dev=0000:00:02.0\n") == 0);
	CHECK(feed(DRI "12/device/name:" SECOND DRI "9/device/name:" FIRST) == 0);
	CHECK(feed(DRI "10/queue_1/mqd_info:queue_type: 0\n" DRI
		       "10/queue_1/mqd_info:mqd_gpu_address: 0x8000\n") == 0);
	CHECK(counts(0, "0000:03:00.0", 0) && counts(1, "0000:c4:00.0", 0) &&
	      parser.n_devices == 2);
	CHECK(feed(DRI "10/queue-2/mqd_info:queue_type 1\n" DRI
		       "12/queue_1/mqd_info:queue_type: 1\n" DRI
		       "12/queue_2/mqd_info:queue_type: 2\n" DRI
		       "9/queue_1/mqd_info:queue_type: 1\n") == 0);
	CHECK(counts(0, "0000:03:00.0", 2) && counts(1, "0000:c4:00.0", 1));
	CHECK(feed(DRI "77/queue_1/mqd_info:queue_type: 1\n") == 0); /* of an unknown device */
	CHECK(counts(0, "0000:03:00.0", 3) && counts(1, "0000:c4:00.0", 2));
	/* Those that have just ended, and a pattern of the shell that nothing matches. */
	CHECK(feed("grep: " DRI "9/queue_1/mqd_info: No such file or directory\n"
		   "grep: " DRI "9/queue_2/mqd_info: Input/output error\n"
		   "grep: " DRI "*/queue*/mqd_info: No such file or directory\n") == 0);
	CHECK(counts(0, "0000:03:00.0", 3) && counts(1, "0000:c4:00.0", 2));
	drm_queues_reset(&parser);
	CHECK(parser.n_devices == 0 && feed("") == 0);
}

TEST(other_texts_are_refused_with_the_line)
{
	static const char *const texts[] = {
		"cat: cannot open\n",
		DRI "x/device/name:" FIRST,
		DRI "99999999999/device/name:" FIRST,
		DRI "1/device/name:amdgpu dev=zero\n",
		DRI
		"1/device/name:amdgpu dev=0123456789abcdef0123456789abcdef0123456789abcdef0123\n",
		DRI "1/queue_1/mqd_info:queue_type: compute\n",
		"grep: " DRI "1/queue_1/mqd_info: Invalid argument\n",
		"grep: " DRI "1/device/name: Operation not permitted\n",
		"grep: " DRI "1/device/name: binary file matches\n",
		DRI "1/device/name:amdgpu dev=0000:03:00.0",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CHECK(feed(DRI "1/device/name:" FIRST) == 0);
		CHECK(feed(texts[i]) == -EBADMSG && strstr(why, "dri, line 2: "));
		drm_queues_reset(&parser);
	}
}

TEST(clients_and_devices_without_number_are_refused)
{
	char line[128];
	int r = 0;

	for (unsigned i = 0; i <= DRM_QUEUE_DEVICES; i++) {
		snprintf(line, sizeof(line), DRI "%u/device/name:amdgpu dev=0000:%02x:00.0\n", i,
			 i);
		r = feed(line);
		CHECK((r == 0) == (i < DRM_QUEUE_DEVICES));
	}
	CHECK(r == -EBADMSG && strstr(why, "more than 64 devices"));
	drm_queues_reset(&parser);
	for (unsigned i = 0; i <= DRM_QUEUE_CLIENTS_MAX; i++) {
		snprintf(line, sizeof(line), DRI "%u/device/name:" FIRST, i);
		r = feed(line);
		CHECK((r == 0) == (i < DRM_QUEUE_CLIENTS_MAX));
	}
	CHECK(r == -EBADMSG && strstr(why, "more than 65536 clients"));
	drm_queues_reset(&parser);
}
