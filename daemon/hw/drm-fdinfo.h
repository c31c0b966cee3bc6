/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The clients of the amdgpu DRM driver: /proc/PID/fdinfo of each descriptor of a render or card node
 * (Documentation/gpu/drm-usage-stats.rst, Linux 5.19 and later). They are what graphics, Vulkan, video
 * and a program of ROCm have open; KFD shows nothing of their work.
 *
 * Reading fdinfo of processes of other users takes CAP_SYS_PTRACE, so gpuarb-fdinfo scans and sends a
 * struct drm_scan to gpuarbd.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/mask/gpu-info.h"
#include "core/policy/subuid.h"
#include "util/base.h"

#define DRM_USES_MAX 512U /* in one scan */
#define DRM_SCAN_USEC UINT64_C(2000000)
#define DRM_VERSION 2U

/* What one process has open on one GPU. A client that several descriptors or processes share counts
 * once, for the process that started last: systemd-logind opens cards for compositors. Where there is no
 * room for one process each, those of a user with the most on a GPU that have the least memory are one. */
struct drm_use {
	uint64_t start_time; /* 22nd field of /proc/PID/stat; 0: of several processes */
	uint64_t gfx_nsec, compute_nsec,
		dma_nsec;   /* of the engines, since the clients were opened */
	uint64_t vram, gtt; /* bytes that are resident */
	int32_t pid;        /* 0: several processes of this uid, or of several if that is -1 */
	uint32_t uid;       /* -1: unknown */
	uint32_t processes; /* one, or how many of them are summed */
	uint32_t clients;
	char device[GPU_NAME_MAX]; /* PCI address, "0000:03:00.0" */
};

/* Both a result and the packet that gpuarb-fdinfo sends, of which only n uses are sent. */
struct drm_scan {
	uint32_t version;
	uint32_t n;
	uint32_t unread; /* processes whose descriptors could not be read, all or some */
	uint32_t late;   /* processes left out because their users have too many descriptors … */
	uint32_t late_uid;                 /* … and one of these users */
	uint64_t cpu_usec;                 /* CPU time of the scan */
	uint64_t skipped;                  /* processes that were not read again */
	struct drm_use uses[DRM_USES_MAX]; /* by pid, uid and device */
};

/* One descriptor. */
struct drm_client {
	uint64_t id;
	struct drm_use use; /* of this client alone */
};

/* Parses the text of one fdinfo file: client id, device, engines and memory. Ignores keys that it
 * does not know and repeated ones; a number that is too large becomes UINT64_MAX. -ENODATA: not a
 * client of amdgpu. -EOPNOTSUPP: one of Linux 5.14 to 5.18, whose amdgpu_show_fdinfo() tells neither the
 * client nor the time of its work. */
int drm_client_parse(const char *text, struct drm_client *ret);

/*
 * Reads all processes below procfs, "/proc" or a directory to use instead, again and again. Where the
 * kernel tells how many descriptors a process has (Linux 6.2 and later), a process without a client
 * is not read again while that number stays the same, but for every 30th scan.
 *
 * A scan has a time. The processes of users other than root who have more than 8,192 descriptors
 * are read last: what is left then is theirs, and does not make the scan incomplete for others.
 */
struct drm_reader;

/* subuids: stays in use; subordinate uids are told as their owner. -ENOMEM, or what open(2) says of procfs. */
int drm_reader_new(const char *procfs, const struct subuids *subuids, struct drm_reader **ret);
struct drm_reader *drm_reader_free(struct drm_reader *reader);
DEFINE_CLEANUP(struct drm_reader *, drm_reader_free)

/* all: reads all processes. After usec, the rest is unread or late. A process that ends meanwhile is left out. -ENOMEM, or what opendir(3)
 * says. */
int drm_scan_read(struct drm_reader *reader, bool all, uint64_t usec, struct drm_scan *ret);

/* The bytes of a packet with this scan. */
size_t drm_scan_size(const struct drm_scan *scan);

/* Checks a received packet of length bytes. -EBADMSG: not a scan of this version. */
int drm_scan_check(const struct drm_scan *scan, size_t length);
