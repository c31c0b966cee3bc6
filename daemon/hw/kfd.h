/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the files of the kfd backend share: bounded reading of sysfs, one node of the
 * topology, and what follows from a gfx target.
 *
 * Sentences name the file. Nothing is read at greater length than the kernel could have
 * written, and no number is taken that is not one from end to end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/base.h"
#include "core/mask/gpu-info.h"
#include "util/diagnostics.h"
#include "hw/hw.h"

#define KFD_TEXT 65537U /* a sysfs attribute is one page, 64 KiB at the most, and a NUL */
#define KFD_NODES 256U
#define KFD_ENTRIES 16384U /* in one directory */

/* kfd-read.c: a directory that is open, with its path for sentences. */
struct kfd_dir {
	int fd;
	char path[512];
};

int kfd_dir_open(const struct kfd_dir *parent, const char *name, struct kfd_dir *ret);
void kfd_dir_close(struct kfd_dir *dir);

/* A zero-initialised kfd_dir would close fd 0: start with KFD_DIR_NONE. */
/* clang-format off */
#define KFD_DIR_NONE { .fd = -1 }
/* clang-format on */
#define _cleanup_dir_ _cleanup_(kfd_dir_close)

/* Calls each() with every name but . and .. until it returns a negative errno.
 * -E2BIG past KFD_ENTRIES. */
int kfd_dir_each(const struct kfd_dir *dir, int (*each)(const char *name, void *userdata),
		 void *userdata);

/* Names that are decimal numbers up to INT32_MAX as the kernel writes them, ascending;
 * returns how many, -E2BIG for more than max. Others are passed over. */
int kfd_dir_numbers(const struct kfd_dir *dir, unsigned *numbers, size_t max);

/* The whole file and a NUL. -EFBIG where buf is too small for it, -EBADMSG where it is not
 * text or no file, or what open and read say. */
int kfd_read(const struct kfd_dir *dir, const char *name, char *buf, size_t size);

/* A file that holds one number and perhaps a newline. As kfd_read, -EBADMSG where it is no
 * number, -ERANGE above max. */
int kfd_read_number(const struct kfd_dir *dir, const char *name, uint64_t max, uint64_t *ret);

/* The decimal number in text[0..length): -EBADMSG, -ERANGE above max. */
int kfd_number(const char *text, size_t length, uint64_t max, uint64_t *ret);

/* The value on the line "key value" of a properties file; -ENODATA if there is no such
 * line. Not NUL-terminated. */
int kfd_property(const char *text, const char *key, const char **ret, size_t *ret_length);
int kfd_property_number(const char *text, const char *key, uint64_t max, uint64_t *ret);

const char *kfd_trouble(int error); /* what these errors mean, in words */

/* kfd-node.c: the numbers of nodes/N/properties that are of use here. */
enum kfd_key {
	KFD_SIMD_COUNT,
	KFD_SIMD_PER_CU,
	KFD_SIMD_ID_BASE,
	KFD_ARRAY_COUNT,
	KFD_ARRAYS_PER_ENGINE,
	KFD_CU_PER_ARRAY,
	KFD_XCCS,
	KFD_TARGET,
	KFD_VENDOR,
	KFD_DEVICE,
	KFD_LOCATION,
	KFD_DOMAIN,
	KFD_SDMA_ENGINES,
	KFD_SDMA_XGMI_ENGINES,
	KFD_SDMA_QUEUES,
	KFD_CP_QUEUES,
	KFD_KEYS,
};

struct kfd_node {
	uint32_t gpu_id;
	char name[32];  /* nodes/N/name, "" if unknown */
	char path[512]; /* for sentences */
	unsigned partition;
	bool partitioned; /* its PCI device has, or had, several nodes */
	bool has[KFD_KEYS];
	uint64_t value[KFD_KEYS];
};

/* Returns 1 for a GPU, 0 for a node without one, a negative errno with a note. */
int kfd_node_read(const struct kfd_dir *dir, struct kfd_node *ret, struct diagnostics *diagnostics);

/* Do both sit in one PCI device? Only true of parts that can be split. */
bool kfd_node_same_device(const struct kfd_node *a, const struct kfd_node *b);

/* The name for gpu_info: "0000:03:00.0", with "/2" where partitioned. */
void kfd_node_name(const struct kfd_node *node, char *buf, size_t size);

/* kfd-target.c: what follows from a gfx target as KFD writes it, 90006 for gfx906. */
unsigned kfd_target_from_name(const char *name); /* of nodes/N/name; 0: not known */
unsigned kfd_target_queue_slots(unsigned target);
unsigned kfd_target_pipes(unsigned target);
unsigned kfd_target_queues_per_pipe(unsigned target);
unsigned kfd_target_process_slots(unsigned target, bool cpx);
bool kfd_target_splits(unsigned target); /* compute partitions are possible */
bool kfd_target_wgp(unsigned target);
bool kfd_target_mes(unsigned target);

/* kfd-parameters.c: module/amdgpu/parameters. */
struct kfd_parameters {
	enum scheduler scheduler;
	unsigned max_processes;   /* hws_max_conc_proc; UINT_MAX: not limited */
	unsigned preemption_msec; /* queue_preemption_timeout_ms; 0: not known */
};

void kfd_parameters_read(const struct kfd_dir *sys, struct kfd_parameters *ret,
			 struct diagnostics *diagnostics);

/* kfd-caches.c: fills active[] of a geometry whose shape is set from the level 1 caches,
 * each of which names the CUs that share it. A negative errno with a sentence in why
 * where they are missing, make no sense or name another number of CUs than cus. */
int kfd_caches_read(const struct kfd_dir *node, uint64_t first_id, unsigned cus,
		    struct geometry *geometry, char *why, size_t size);

/* kfd-gpu.c: what is said of one GPU, all but its name and how it is scheduled. A negative
 * errno with a note where it has to be left out. */
int kfd_gpu_read(const struct kfd_dir *dir, const struct kfd_node *node, struct gpu_info *ret,
		 struct diagnostics *diagnostics);

/* The rest, once it is known whether the node is a partition. */
void kfd_gpu_finish(const struct kfd_node *node, const struct kfd_parameters *parameters,
		    struct gpu_info *info);

/* kfd-topology.c, kfd-use.c: the questions of struct hw_ops. */
int kfd_topology_list(const struct kfd_dir *sys, struct gpu_info *gpus, size_t max,
		      struct diagnostics *diagnostics);
uint64_t kfd_topology_generation(const struct kfd_dir *sys);
int kfd_use_read(const struct kfd_dir *sys, struct hw_use *uses, size_t max);
