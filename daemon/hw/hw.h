/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the daemon reads from hardware: the GPUs, and their use by processes, as the kernel driver amdkfd shows
 * them in sysfs; or GPUs that are simulated, which no process uses. Nothing here writes to hardware, opens
 * /dev/kfd, or waits.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/mask/gpu-info.h"
#include "util/base.h"
#include "util/diagnostics.h"

struct hw;

/* The present use of one GPU by one process. */
struct hw_use {
	pid_t pid; /* in the initial pid namespace */
	uint32_t kfd_gpu_id;
	unsigned queues; /* compute queues: each needs a queue slot */
	unsigned sdma_queues, sdma_xgmi_queues;
	uint64_t vram; /* bytes */
};

/* A process; another one that has its pid has another inode. */
struct hw_pid {
	pid_t pid;
	uint64_t inode;
};

/* How far the processes are listed. */
struct hw_listing;

/* What is known of a process since it was read last: queues that are known are not read again. */
struct hw_process;

/* It has the device open, and uses nothing of the GPU. */
static inline bool hw_use_is_idle(const struct hw_use *use)
{
	return use->queues == 0 && use->sdma_queues == 0 && use->sdma_xgmi_queues == 0 &&
	       use->vram == 0;
}

/* sys: "/sys" or a directory to use instead. Succeeds also if there is no GPU or the driver is not
 * loaded yet: hw_list() reports that and finds GPUs that come later. A negative errno with a
 * diagnostic if it is not a directory. */
int hw_kfd_open(const char *sys, struct hw **ret, struct diagnostics *diagnostics);
#define HARVEST_DIR "/run/gpuarb-harvest"

/* Where gpuarb-harvest writes which CUs work, for GPUs whose caches do not show it. */
void hw_kfd_set_maps(struct hw *hw, const char *dir);

/* GPUs from profiles: card i has partitions[i] GPUs like cards[i] (1, or 8 for an MI300X in CPX
 * mode). Their names are 0000:03:00.0, 0000:04:00.0, … with /0 to /7 for partitions; their
 * kfd_gpu_id is 0. */
int hw_simulated_new(const struct gpu_info *cards, const unsigned *partitions, size_t n,
		     struct hw **ret);

bool hw_is_simulated(const struct hw *hw);
const char *hw_name(const struct hw *hw); /* "kfd", "simulated" */

/* Takes NULL. */
struct hw *hw_close(struct hw *hw);
DEFINE_CLEANUP(struct hw *, hw_close)

/* Fills gpus[] with up to max GPUs, sorted by name, and returns the number of all. Each
 * value that had to be assumed is a warning that names the file; a GPU with invalid values
 * is left out with an error. -EIO with a diagnostic if the whole tree is invalid. */
int hw_list(struct hw *hw, struct gpu_info *gpus, size_t max, struct diagnostics *diagnostics);

/* A number that changes whenever the result of hw_list() may change. Cheap: called at every
 * scan. UINT64_MAX: unknown. */
uint64_t hw_generation(struct hw *hw);

/* Lists the processes that have the device open, in parts. *listing: NULL at first and at the end,
 * and what the next call continues from. *steps: as for hw_read(). Returns how many there are in *ret,
 * which is the caller's, by pid. -EAGAIN: call again. */
int hw_processes(struct hw *hw, struct hw_listing **listing, unsigned *steps, struct hw_pid **ret);
void hw_end_listing(struct hw_listing *listing); /* before its end; takes NULL */

/* Reads one process, in parts. *process: NULL at first, and what the next call continues from.
 * *steps: about so many files are read at most; then how many were. Returns the number of rows
 * in *ret, one for each GPU that it has open, of zeros if it has neither queues nor memory there,
 * by GPU, and valid until the next call; 0 if it has ended. -EAGAIN: it is not read to its end, call again. */
int hw_read(struct hw *hw, pid_t pid, struct hw_process **process, unsigned *steps,
	    const struct hw_use **ret);
void hw_leave(struct hw_process *process);  /* closes its directories until the next call */
void hw_forget(struct hw_process *process); /* both take NULL */

/* Reads all processes at once: up to max such rows, by pid and GPU. Returns the number of all. A
 * process that ends meanwhile is left out. */
int hw_uses(struct hw *hw, struct hw_use *uses, size_t max);
