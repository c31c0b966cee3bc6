/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Part of gpuarb.h, whose rules for errors, blocking and threads apply here, too: masks for the
 * queues of a running program, and functions for libraries that are built on this one.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gpuarb_lease;

/*
 * Gives every compute queue of this process on the GPUs of the lease the CU mask and the priority of
 * the lease, by this process's own /dev/kfd. Returns the number of queues; 0 for a process without queues there,
 * which does not open /dev/kfd.
 *
 * Call it after you created queues: they have all CUs unless HSA_CU_MASK is set. Call it when the
 * lease has changed: gpuarb_lease_dispatch() or gpuarb_lease_resize(), then gpuarb_lease_apply(),
 * then gpuarb_lease_acknowledge(). Queues on other GPUs and SDMA queues are not touched. A queue
 * that is destroyed meanwhile is not counted and is not an error.
 *
 * Priorities: a queue for which the program asked a lower priority by itself keeps that, and none
 * has more than the lease. To set a priority the library must know the ring of the queue: it
 * replaces ioctl() and sees the queues that the program creates. It does not see them if another
 * library with ioctl(), such as the C library, comes first in the order of symbols, as when
 * libgpuarb is loaded by dlopen(). While an adaptable lease is paused on a GPU (struct
 * gpuarb_partition), its queues there are taken off the run list in the same way.
 *
 * It masks all queues or none: if one queue is refused, the queues before it get their previous
 * masks again: the mask that was set last with this lease, or that of HSA_CU_MASK if this lease set
 * the variable, or all CUs. KFD has no call to read a mask, so a mask that the program has set by
 * itself (hipExtStreamCreateWithCUMask(), hsa_amd_queue_cu_set_mask()) is unknown here and is
 * replaced by the mask of the lease, which may be wider. Declare such masks with
 * gpuarb_lease_mask_queue(), or create the streams with gpuarb-hip.h. If a process has two leases
 * on one GPU, the last call wins.
 *
 * Does not call the daemon. May block in the driver while it preempts the GPU, once for each queue:
 * usually below a millisecond, seconds if the GPU hangs. Before gfx11 this preempts the queues of
 * all processes on the GPU. Work that is running continues after the change where the firmware puts
 * it.
 *
 *	-EBADFD      the lease is not granted, or has no CUs at the moment
 *	-EOPNOTSUPP  the GPU is simulated; or the queues have their masks, but one cannot get the
 *		     priority, because the library did not see how it was created; or, for the same
 *		     reason, one cannot be paused; or this process is in a PID namespace of its own (a
 *		     container), where it cannot find its queues: start it with the variables of
 *		     gpuarb_lease_environment() instead
 *	-EEXIST      HSA_CU_MASK or ROC_GLOBAL_CU_MASK is set, and not by this lease
 *	-ERANGE      the own mask of a queue has no CU of the lease, or none on one XCC: no queue
 *		     was changed
 *	-ENOENT, -EACCES, -EPERM (32-bit program), -EMFILE and others: /dev/kfd cannot be opened
 *	-EACCES      the queue was reset together with its GPU
 *	-EBUSY       a debugger has set masks on this GPU (gfx11)
 *	-EINVAL      the driver rejects the mask for this GPU
 *	-EFAULT      the driver lists a queue that it does not know, as after exec
 *	-EIO, -ETIME the GPU did not preempt its queues. -EIO also: a file of KFD is malformed
 */
int gpuarb_lease_apply(struct gpuarb_lease *lease);

/*
 * Writes KFD's ids of the compute queues of this process on the GPU of partition i (from 0) to
 * ids[max], ascending. Returns how many queues there are, which may be more than max; ids may be
 * NULL if max is 0. Reads sysfs and does not block.
 *
 * The queues of the runtime are among them: ROCr creates one before the first queue of the program.
 * KFD gives the id of a destroyed queue to a later one. Errors: those of gpuarb_lease_apply() that
 * do not need /dev/kfd; -EINVAL: no partition i.
 */
int gpuarb_lease_queue_ids(struct gpuarb_lease *lease, size_t i, uint32_t *ids, size_t max);

/*
 * Gives one queue of partition i a mask of its own: bit i % 32 of word i / 32, as in
 * gpuarb_lease_cu_mask(). The mask is copied; it has 1 to 32 words, and missing words are 0. Sets
 * the CUs that are in both masks, now and in every later gpuarb_lease_apply(): so the queue follows
 * the lease and never has a CU outside of it. With mask NULL the queue has the mask of the lease
 * again. The queue gets the priority of the lease, too, if that can be set. A mask is forgotten when a later call of these three functions finds that its queue was
 * destroyed.
 *
 * Errors: those of gpuarb_lease_apply(), without a change of any queue, and
 *
 *	-ENOENT      this process has no compute queue with this id on the GPU
 *	-EINVAL      no partition i; no words or more than 32; from gfx10 on: one CU of a pair
 *		     (bits 2n and 2n + 1) without the other
 *	-ENODEV      the topology of KFD lists the GPU not at all or twice
 */
int gpuarb_lease_mask_queue(struct gpuarb_lease *lease, size_t i, uint32_t queue,
			    const uint32_t *mask, size_t words);

/*
 * Pauses one queue of partition i, together with the SDMA queues of this process on the GPU, or lets it run
 * again: its waves are saved and it frees its hardware queue. HIP and ROCr have no call for that. The queue
 * runs again at the latest when the next gpuarb_lease_apply() or an agent changes it, or the lease is
 * closed. While the lease is paused on the GPU, it stays paused. May block in the driver as
 * gpuarb_lease_apply().
 *
 * Errors: those of gpuarb_lease_apply(), without a change of the queue, and
 *
 *	-ENOENT      this process has no compute queue with this id on the GPU
 *	-EINVAL      no partition i
 */
int gpuarb_lease_pause_queue(struct gpuarb_lease *lease, size_t i, uint32_t queue, int paused);

/*
 * Starts an agent: a thread that makes the queues of this process follow an adaptable lease (struct
 * gpuarb_options). Whenever the lease changes, the agent changes the queues as gpuarb_lease_apply()
 * does, but only those that are not right yet, and then acknowledges the generation. The first time it does so before this function
 * returns: after 0 all existing queues are masked.
 *
 * New queues have their mask before the program gets them: the library replaces ioctl() and masks
 * each queue that the program creates by it; if that fails, the queue is destroyed and ioctl() fails
 * with the error. A mask that the program sets by itself is narrowed to the lease, as by
 * gpuarb_lease_mask_queue(). For queues that the library does not see (gpuarb_lease_apply()) the
 * agent searches ten times a second. Until it finds it, such a queue has all CUs, even if the agent
 * acknowledges a change meanwhile. To avoid that call gpuarb_lease_apply() after creating a queue
 * and before using it. A priority that cannot be set is no failure of the agent.
 *
 * With an agent gpuarb_lease_apply(), gpuarb_lease_queue_ids() and gpuarb_lease_mask_queue() use
 * the newest state of the lease that the agent knows. All other functions return the state that the
 * program dispatched, as always. The program may read the holder or ignore it; it reports
 * revocation and end. A queue whose own mask has none of the CUs of the lease gets the mask of the
 * lease until the two overlap again.
 *
 * Do not call gpuarb_lease_acknowledge() for changes: it returns -EBUSY for a generation that the
 * agent has not applied. A revocation is different: acknowledging it ends the lease, so the agent
 * does not, and the program may at any time. After the end of the lease the queues keep their
 * masks, paused queues run again, and the thread ends.
 *
 * The thread blocks all signals, has its own connection to the bus, and does not use the handle of
 * the program. gpuarb_lease_close() and gpuarb_lease_release() stop it and wait for it, which may
 * take as long as a call of the driver. A forked child has no agent: the queues are its parent's.
 *
 *	-EALREADY    the lease has an agent
 *	-EINVAL      the lease is not adaptable; or it is for several processes (want.processes),
 *		     and an agent would acknowledge for all of them
 *	-EOPNOTSUPP  as of gpuarb_lease_apply(); or this process does not see KFD
 *	-EAGAIN      the thread cannot be created
 *	-EMFILE      no file descriptor is left
 *
 * and the errors of gpuarb_lease_apply() and gpuarb_lease_acknowledge(). After a failure there is
 * no agent.
 */
int gpuarb_lease_start_agent(struct gpuarb_lease *lease);

/*
 * 0: the agent follows the lease, or waits for a daemon or a bus that is away. Otherwise the error
 * of gpuarb_lease_apply(), with its sentence, for a change that the agent could not apply: it was
 * not acknowledged, the queues have their previous masks, and the agent tries again at the next
 * change, at gpuarb_lease_apply(), and at growing intervals of up to 10 seconds. -ENOENT: the lease
 * has ended. -EBADFD: the lease has no agent. Does not block except for a call of the driver that
 * the agent makes.
 */
int gpuarb_lease_agent_error(struct gpuarb_lease *lease);

/*
 * For libraries that are built on this one: attaches one pointer to the lease. done() (NULL: none)
 * is called with it when another pointer replaces it, and before the lease is closed or released.
 */
void gpuarb_lease_attach(struct gpuarb_lease *lease, void *data, void (*done)(void *data));
void *gpuarb_lease_attached(const struct gpuarb_lease *lease); /* NULL: nothing is attached */

/* For the same libraries: replaces the last failure of the lease's handle by this sentence, which
 * is copied. Returns error, a negative errno, or -ENOMEM. -EINVAL: lease or sentence is NULL. */
int gpuarb_lease_fail(struct gpuarb_lease *lease, int error, const char *sentence);

#ifdef __cplusplus
}
#endif
