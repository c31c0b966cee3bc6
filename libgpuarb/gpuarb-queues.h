/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Part of gpuarb.h, which has what is said of all functions: queues that a program has already
 * follow its lease; and what libraries on top of this one need.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gpuarb_lease;

/*
 * Masks every compute queue that this process has on the lease's GPUs with the lease's CUs, by
 * this process's own /dev/kfd. For a program that keeps running when its lease changes: take in
 * the change (gpuarb_lease_dispatch(), gpuarb_lease_resize()), apply, then
 * gpuarb_lease_acknowledge(). Also after making queues, which have all CUs at first unless
 * HSA_CU_MASK was there. Queues of GPUs that are not the lease's are left alone, and so are SDMA
 * queues. Returns how many were masked: 0 for a process that has no queues there, which then does
 * not open /dev/kfd. A queue that goes away meanwhile is not counted, and is no failure.
 *
 * All or none: where one queue is refused, those that were done before get back what they had:
 * the mask that was set last with this lease, or what HSA_CU_MASK of this very lease says, or
 * every CU. KFD does not tell what mask a queue has. So a mask that the program has set by
 * itself (hipExtStreamCreateWithCUMask(), hsa_amd_queue_cu_set_mask()) is not known here, and
 * would become the lease's, which may be wider: say it with gpuarb_lease_mask_queue(), or make
 * the stream with gpuarb-hip.h. Of two leases for one GPU in one process the last one applied
 * counts.
 *
 * Does not ask the daemon. May block in the driver for as long as it takes to preempt the GPU,
 * for each queue: usually below a millisecond, seconds where it hangs; before gfx11 the queues
 * of all processes on the GPU are preempted. Nothing is sent while the masks change; what runs
 * goes on where the firmware puts it.
 *
 * -EBADFD: the lease is not granted, or has no CUs now. -EOPNOTSUPP: the GPU is simulated; or
 * the process is in a PID namespace of its own (a container's), where it cannot know which
 * queues are its own: start it with gpuarb_lease_environment() there. -EEXIST: HSA_CU_MASK or
 * ROC_GLOBAL_CU_MASK, other than this lease's own, masks the queues already. -ERANGE: a queue's
 * own mask leaves it no CU, or an XCC without one: nothing was changed. Of /dev/kfd's open():
 * -ENOENT, -EACCES, -EPERM (32-bit), -EMFILE and others. Of the driver: -EACCES: the queue was
 * reset, with its GPU. -EBUSY: a debugger has masks of its own there (gfx11). -EINVAL: no mask
 * for this GPU. -EFAULT: it does not know a queue that it shows. -EIO, -ETIME: the GPU does not
 * let go of its queues. -EIO also for files of KFD that are not understood.
 */
int gpuarb_lease_apply(struct gpuarb_lease *lease);

/*
 * KFD's ids of the compute queues that this process has on partition i's GPU, ascending; asks
 * sysfs, does not block. Returns how many there are, which may be more than max; ids may be
 * NULL with max 0. Among them are those of the runtime: ROCr makes one of its own before the
 * program's first. An id is given again when its queue is gone. Errors as far as
 * gpuarb_lease_apply() has them before it opens /dev/kfd; -EINVAL: no partition i.
 */
int gpuarb_lease_queue_ids(struct gpuarb_lease *lease, size_t i, uint32_t *ids, size_t max);

/*
 * Gives one queue of partition i a mask of its own: bit i % 32 of word i / 32 as in
 * gpuarb_lease_cu_mask(), copied; up to 32 words, and missing ones are 0. What it has in common
 * with the lease's is set now, and by each gpuarb_lease_apply() again, so that it follows the
 * lease and never has a CU more. mask NULL: forgotten, and the lease's is set. It is
 * forgotten, too, when the next call of these three finds the queue gone; say it again for
 * one that takes its place.
 *
 * Errors as gpuarb_lease_apply(), and nothing was changed; -ENOENT: this process has no such
 * compute queue on that GPU. -EINVAL: no partition i, no word or more than 32; from gfx10 on a
 * mask that has one CU of a pair (bits 2n and 2n + 1) alone. -ENODEV: KFD's topology does not
 * have the GPU, or twice.
 */
int gpuarb_lease_mask_queue(struct gpuarb_lease *lease, size_t i, uint32_t queue,
			    const uint32_t *mask, size_t words);

/*
 * Starts a thread that makes this process's queues follow the lease, which is what an adaptable
 * one (struct gpuarb_options) promises: whenever the lease changes it does what
 * gpuarb_lease_apply() does and then acknowledges the generation, never before every queue has its
 * mask. The first time is here and now: when this returns 0 all queues are masked.
 *
 * Queues that come later: those of gpuarb-hip.h are masked before they are handed out, and
 * gpuarb_lease_apply() masks all at once. KFD tells nobody of a new queue, so the thread looks for
 * others ten times a second: until then such a queue, as of a stream that the program makes by
 * itself, has all CUs, and so it may have at the moment when a change is acknowledged. A program
 * that cannot have that calls gpuarb_lease_apply() after it made a queue and before it uses it.
 *
 * From now on gpuarb_lease_apply(), gpuarb_lease_queue_ids() and gpuarb_lease_mask_queue() go by
 * what the agent knows, which may be newer than what the lease's other functions say: those say
 * what was dispatched, as ever. The holder is the program's, who may read it or not: it tells of a
 * revocation and of the end. A queue whose own mask has nothing in common with what the lease has
 * become gets the lease's until they meet again.
 *
 * gpuarb_lease_acknowledge() is not needed any more, and -EBUSY for what is not applied yet; but a
 * lease that is being revoked is taken when it is acknowledged, so the agent leaves that to the
 * program, who may say it at any time. When the lease has ended queues keep what they had, and
 * the thread is done.
 *
 * The thread has all signals blocked, a connection of its own to the bus, and no part in the
 * lease's handle, which is used as before. gpuarb_lease_close() and gpuarb_lease_release() stop it
 * and wait for it: for as long as the driver takes, if it is in there. A forked child has no agent:
 * the queues are its parent's, too.
 *
 * -EALREADY: the lease has an agent. -EINVAL: it is not adaptable; or it is for several processes
 * (want.processes), for all of which one would acknowledge. -EOPNOTSUPP: as gpuarb_lease_apply(),
 * or this process does not see KFD. -EAGAIN: no thread. -EMFILE. All others as
 * gpuarb_lease_apply() and gpuarb_lease_acknowledge(). After a failure there is no agent.
 */
int gpuarb_lease_start_agent(struct gpuarb_lease *lease);

/*
 * 0: the agent follows. Else what a change could not be applied for, as gpuarb_lease_apply(), with
 * its sentence: it was not acknowledged, the queues have what they had, and it is tried again with
 * the next change, by gpuarb_lease_apply(), and by and by. -ENOENT: the lease has ended.
 * -EBADFD: it has no agent. A daemon or a bus that is away is no error: they are waited for.
 */
int gpuarb_lease_agent_error(struct gpuarb_lease *lease);

/*
 * For a library on top of this one: one pointer that goes with the lease. done (or NULL) is
 * called with it when another takes its place, and before the lease is closed or released.
 */
void gpuarb_lease_attach(struct gpuarb_lease *lease, void *data, void (*done)(void *data));
void *gpuarb_lease_attached(const struct gpuarb_lease *lease); /* NULL: none */

/* For the same: forgets the last failure of the lease's handle and notes this sentence in its
 * place. Returns error, a negative errno, or -ENOMEM where it found no room. */
int gpuarb_lease_fail(struct gpuarb_lease *lease, int error, const char *sentence);

#ifdef __cplusplus
}
#endif
