/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Writes what amdkfd shows in sysfs into a directory, for --sysfs=DIR: a topology with a
 * CPU node and a node for each GPU, the module's parameters, and processes with queues.
 * Texts are those of node_show(), kfd_cache_show(), mem_show() in kfd_topology.c and
 * kfd_procfs_show(), kfd_procfs_queue_show() in kfd_process.c (Linux 6.12).
 *
 * All return 0 or a negative errno. Paths are below the directory.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/mask/gpu-info.h"

#define FAKE_TOPOLOGY "class/kfd/kfd/topology"
#define FAKE_NODES FAKE_TOPOLOGY "/nodes"
#define FAKE_PROC "class/kfd/kfd/proc"
#define FAKE_MODULE "module/amdgpu"
#define FAKE_PARAMETERS FAKE_MODULE "/parameters"

/* Node 0 is the CPU's with a link to each GPU and one back, which is what libhsakmt asks
 * for before it takes a topology; GPU i is node i + 1. A GPU's name says where it sits; without one it
 * gets the next bus from 0000:03:00.0 on. CUs that are fused off are taken from the middle
 * of their array. What was there before goes, and generation_id counts up. */
int fake_sysfs_build(const char *dir, const struct gpu_info *gpus, size_t n);

/* One of them, written in fake-sysfs-node.c; first_cu is its simd_id_base. */
int fake_sysfs_node(const char *dir, const struct gpu_info *info, size_t i, unsigned first_cu);

/* The n-th link that a node tells of: PCIe, from it to another. */
int fake_sysfs_link(const char *dir, unsigned from, unsigned n, unsigned to);

/* What nodes/i+1/gpu_id says: the one in info, or a made-up one. */
uint32_t fake_sysfs_gpu_id(const struct gpu_info *info, size_t i);

/* Processes: as after open("/dev/kfd"), then queues of internal type 0 (compute), 1 (SDMA)
 * or 4 (SDMA over XGMI). */
int fake_sysfs_process(const char *dir, pid_t pid);
int fake_sysfs_process_gone(const char *dir, pid_t pid);
int fake_sysfs_queue(const char *dir, pid_t pid, unsigned queue, uint32_t gpu_id, unsigned type);
int fake_sysfs_queue_gone(const char *dir, pid_t pid, unsigned queue);
int fake_sysfs_vram(const char *dir, pid_t pid, uint32_t gpu_id, uint64_t bytes);

/* Single files, for everything that a driver would not do. */
int fake_sysfs_write(const char *dir, const char *file, const void *data, size_t size);
int fake_sysfs_print(const char *dir, const char *file, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int fake_sysfs_mkdir(const char *dir, const char *path);
int fake_sysfs_remove(const char *dir, const char *path); /* trees too; -ENOENT is fine */

/* Replaces the line of a properties file; value NULL takes it out. */
int fake_sysfs_set(const char *dir, const char *file, const char *key, const char *value);
