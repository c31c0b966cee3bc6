/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the makers of texts share. All of them print what the emulated driver has at the moment;
 * none changes it. A stream that ran out of memory is found out by who opened it. */

#include <stdio.h>

#include "kfdsim/driver/internal.h"
#include "kfdsim/text/tree.h"

/* ---- mqd.c: a queue as memory and registers have it ---- */

#define MQD_WORDS 512U /* 2048 bytes: struct v9_mqd, v10_mqd, … in amd/include */
#define MQD_SDMA_WORDS 128U
#define MQD_REGISTERS 128U /* CP_MQD_BASE_ADDR: from here on registers are kept */

/* xcc: which of the node's XCCs this one is for. */
void mqd_compute(const struct sim_queue *queue, unsigned xcc, uint32_t words[MQD_WORDS]);
uint32_t mqd_vmid(const struct sim_queue *queue);
void mqd_sdma(const struct sim_queue *queue, uint32_t words[MQD_SDMA_WORDS]);

/* The doorbell as a number of 4-byte words on the BAR: processes have a slice of 2048 each. */
uint32_t mqd_doorbell(const struct sim_queue *queue);

uint32_t mqd_pasid(const struct sim_process *process);
uint64_t mqd_address(const struct sim_queue *queue); /* made up, no two alike */

/* Slots that are KFD's, in hqds[]: what is before *ret_first are the kernel's own rings. */
void slots_of(const struct gpu_info *info, unsigned *ret_first, unsigned *ret_end);

struct topology; /* below */

/* ---- debugfs.c, run-list.c: nodes are numbered as the topology has them ---- */
void debugfs_mqds(const struct sim *sim, FILE *out);
void debugfs_hqds(const struct sim *sim, const struct topology *topology, FILE *out);
void debugfs_rls(const struct sim *sim, const struct topology *topology, FILE *out);

/* seq_hex_dump() as kfd_debugfs.c calls it: 8 words a line behind their offset. */
void debugfs_dump(FILE *out, const char *indent, const uint32_t *words, size_t n);

/* ---- state-json.c ---- */

/* debug/kfdsim/state. -ENOMEM. */
int state_print(const struct sim *sim, FILE *out);

/* ---- dispatches.c: debug/kfdsim/dispatches ---- */
void dispatches_print(const struct sim *sim, FILE *out);

/* ---- tree-proc.c, tree-topology.c: paths below theirs, "" for themselves ---- */

typedef int tree_each_t(const char *name, enum tree_kind kind, void *userdata);

enum tree_kind proc_find(const struct sim *sim, const char *path);
int proc_each(const struct sim *sim, const char *path, tree_each_t *each, void *userdata);
int proc_print(const struct sim *sim, const char *path, FILE *out); /* -ENOENT */

int topology_new(const char *path, struct topology **ret);
struct topology *topology_free(struct topology *topology);
int topology_update(struct topology *topology, const struct sim *sim); /* after a GPU has gone */
enum tree_kind topology_find(const struct topology *topology, const char *path);
int topology_each(const struct topology *topology, const char *path, tree_each_t *each,
		  void *userdata);
unsigned topology_node(const struct topology *topology, uint32_t gpu_id);
int topology_print(const struct topology *topology, const char *path, FILE *out);
