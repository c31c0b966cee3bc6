/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the core's own files ask of each other, and nobody else does. */

#include "kfdsim/driver/internal.h"

/* ---- arena.c ---- */
int sim_arena_new(struct sim *sim);
void sim_arena_free(struct sim *sim);

/* A place of whole pages, all zero; large ones at a multiple of 2 MiB. -ENOMEM. */
int sim_arena_take(struct sim *sim, uint64_t size, uint64_t *ret);

/* From the far end, at a multiple of 4 GiB where the arena is large: libhsakmt drops the low 32
 * bits of the offset of its first queue's doorbell. */
int sim_arena_take_slice(struct sim *sim, uint64_t *ret);
void sim_arena_put(struct sim *sim, uint64_t place, uint64_t size); /* place 0: nothing */

/* Doorbells of the process on the GPU, registers of the GPU. -ENOMEM. */
int sim_slice(struct sim_process *process, const struct sim_gpu *gpu, uint64_t *ret);
int sim_mmio(struct sim *sim, const struct sim_gpu *gpu, uint64_t *ret);
void sim_slices_free(struct sim_process *process);

/* ---- core.c ---- */
struct sim_gpu *sim_known_gpu(struct sim *sim, uint32_t gpu_id); /* also when it is gone */

/* ---- queue.c ---- */

/* A queue was changed: its GPU is told, with a run list where the driver sends one. Active is
 * what it is to be from now on, as it has to be asked of sim_queue_wanted(). -ENOMEM. */
int sim_queue_changed(struct sim_queue *queue, bool active, uint64_t now_ns);
bool sim_queue_wanted(const struct sim_queue *queue); /* has a ring and a percentage */

/* Queues of the process stop, on every GPU, or run again. */
int sim_queues_evict(struct sim_process *process, bool evicted, uint64_t now_ns);

/* Takes all queues of a process away, each GPU's run list sent once. */
void sim_queues_free(struct sim_process *process, uint64_t now_ns);

/* ---- gpu.c ---- */
int sim_gpu_init(struct sim *sim, size_t index, const struct gpu_info *info, unsigned minor);

void sim_gpu_count(struct sim_gpu *gpu);     /* the counts alone: nothing is sent */
void sim_gpu_leave(struct sim_queue *queue); /* its slot is free */

/* Queues reset, slots free: what is left of them is for processes to destroy. */
void sim_gpu_reset(struct sim_gpu *gpu, uint64_t now_ns);

/* The same, and the GPU is no more. */
void sim_gpu_gone(struct sim *sim, struct sim_gpu *gpu, uint64_t now_ns);

/* What a process has on a GPU. */
unsigned sim_count_queues(const struct sim_process *process, const struct sim_gpu *gpu);
struct sim_queue *sim_find_gws(struct sim_process *process, const struct sim_gpu *gpu);

/* Dispatches that have ended by now retire; when the next one will. True if any did. */
bool sim_gpu_work(struct sim_gpu *gpu, uint64_t now_ns, uint64_t *next_ns);

/* ---- memory.c ---- */
struct sim_buffer *sim_find_buffer(const struct sim_process *process, uint64_t handle);
void sim_buffers_free(struct sim_process *process);
void sim_files_free(struct sim_process *process); /* of ACQUIRE_VM */

/* ---- event.c ---- */
#define SIM_EVENT_SLOTS_MAX 4096U /* KFD_SIGNAL_EVENT_LIMIT */
struct sim_event *sim_find_event(const struct sim_process *process, uint32_t id);
void sim_event_set(struct sim_process *process, struct sim_event *event);
void sim_events_free(struct sim_process *process);
void sim_events_of_reset(struct sim *sim, const struct sim_gpu *gpu);

/* ---- event-wait.c ---- */
struct sim_wait;

/* Whoever waits for it has it now, and is answered if that was all; true if there was one. */
bool sim_waits_wake(struct sim_process *process, struct sim_event *event);
void sim_waits_fail(struct sim_process *process, uint32_t event_id);       /* destroyed: -EIO */
void sim_waits_work(struct sim *sim, uint64_t now_ns, uint64_t *next_ns);  /* time-outs */
void sim_waits_forget(struct sim *sim, const struct sim_process *process); /* NULL: of all */

/* ---- smi.c ---- */

/* Tells a line, "EVENT FORMAT", to those who subscribed to that event of the GPU: of the process pid,
 * or of the whole GPU where that is 0. */
__attribute__((format(printf, 4, 5))) void sim_smi_event(const struct sim_gpu *gpu, pid_t pid,
							 unsigned event, const char *format, ...);
void sim_smi_reset(const struct sim_gpu *gpu, bool after);
void sim_smis_free(struct sim *sim);

/* ---- fault.c ---- */

/* The errno that was asked for, negative; 0: none. */
int sim_fault_ioctl(struct sim *sim, unsigned nr);
void sim_faults_free(struct sim *sim);
