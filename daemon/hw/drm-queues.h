/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * User queues of the graphics driver (AMDGPU_USERQ), which KFD does not know and no CU mask limits. From Linux
 * 6.17 on, debugfs has a directory of each DRM client, with one of each of its queues; fdinfo shows neither. The
 * text is what grep(1) prints of their files, those of clients first:
 *
 *	…/dri/client-7/device/name:amdgpu dev=0000:03:00.0 unique=0000:03:00.0
 *	…/dri/client-7/queue_1/mqd_info:queue_type: 1
 *	grep: …/dri/client-7/queue_2/mqd_info: Invalid argument
 *
 * (drm_debugfs_clients_add(), drm_name_info(); amdgpu_mqd_info_read(), which prints no colon in 6.17.)
 */

#include <stddef.h>

#include "core/mask/gpu-info.h"
#include "util/base.h"

#define DRM_QUEUE_DEVICES 64U
#define DRM_QUEUE_CLIENTS_MAX 65536U

/* A device with clients. */
struct drm_queues {
	char device[GPU_NAME_MAX]; /* PCI address */
	unsigned compute;          /* user queues that compute: AMDGPU_HW_IP_COMPUTE */
};

struct drm_queue_parser {
	struct drm_queues devices[DRM_QUEUE_DEVICES];
	size_t n_devices, n_clients, n_lines;
	size_t last; /* client that had a queue: they are in the same order */
	struct drm_queue_client {
		unsigned id, device;
	} * clients;
};

/* Parses a piece of whole lines. -EBADMSG with a sentence: not such a text, or it has more clients or devices than
 * there is room for; -ENOMEM. */
int drm_queues_feed(struct drm_queue_parser *parser, const char *text, size_t size, char *why,
		    size_t why_size);

/* Forgets what was parsed. */
void drm_queues_reset(struct drm_queue_parser *parser);
