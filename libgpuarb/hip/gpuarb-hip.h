/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * libgpuarb-hip: HIP streams with the CU mask and priority of a lease.
 *
 *	struct gpuarb_want want = GPUARB_WANT_INIT;
 *	hipStream_t stream;
 *
 *	want.cus = 30;
 *	want.streams = 2;
 *	r = gpuarb_reserve(gpuarb, &want, 1, NULL, &lease);
 *	if (r >= 0)
 *		r = gpuarb_hip_device(lease, 0, &device);
 *	if (r >= 0 && hipSetDevice(device) == hipSuccess)
 *		r = gpuarb_hip_stream_create(lease, 0, &stream);
 *	if (r < 0)
 *		fprintf(stderr, "%s\n", gpuarb_last_error(gpuarb));
 *
 * Streams of this library: each has a hardware queue with the CU mask of the lease, set before the
 * program can submit work, and the priority class of the lease. If the mask cannot be set, no
 * stream is created. The mask is passed to HIP and, exactly, to KFD (gpuarb_lease_mask_queue()):
 * the bits of HIP's masks on gfx10 and later are WGPs, and were CUs in HIP 5.2.
 *
 * Other streams: streams that the program creates by itself, and the null stream, use queues
 * without a mask. The queue of the null stream appears with hipMemcpy(), hipMemset(), a kernel
 * without a stream, and the first hipFree(). Mask these queues with gpuarb_lease_apply() after they
 * appeared, or start the program by "gpuarbctl run", which masks every queue when it is created. In a
 * process that had another lease before, ROCr's queue has the mask of that one until
 * gpuarb_lease_apply(). A mask does not confine a program that wants to escape it.
 *
 * Queues: each stream of this library takes one queue slot, which HIP does not share with other
 * streams, and ROCr takes one more in each process. They count against the queues of the lease,
 * divided by its processes, as do all other compute queues of the process on the GPU. A lease that
 * was requested with want.streams has queues for that many streams, for ROCr and for the null
 * stream, and allows no more streams. Without want.streams every queue can be used for a stream;
 * the queue of the null stream may then exceed the budget. HIP itself limits the queues of other
 * streams to GPU_MAX_HW_QUEUES (4 by default) per priority.
 *
 * Destroyed streams: newer versions of HIP keep queues until the process ends: 5.7 those with a
 * mask, 5.7 and 6.4 those with a priority. There gpuarb_hip_stream_destroy() keeps the stream
 * instead, and the next one that is created uses it and its queue again. That is so after
 * gpuarb_lease_close(), too, for the next lease of this process on the same GPU. Until then these
 * queues are idle, have the mask of the closed lease, and count as unmanaged queues of this process.
 *
 * Priority: HIP creates masked streams with normal priority only. For a lease of priority 0 to 6
 * (low) or 11 to 15 (high) the stream is created by hipStreamCreateWithPriority(), and its queue is
 * masked afterwards. HIP then requests its own low or high priority from KFD (0 or 11; 15 in older
 * versions); libgpuarb lowers it to that of the lease if that is less. HIP shares the queues of such streams when there are
 * GPU_MAX_HW_QUEUES of them; a stream on a shared queue is returned after all queues of the process
 * on the GPU were masked. The firmware decides what a priority means.
 *
 * Changes: after a resize gpuarb_lease_apply() gives the queues of these streams the new mask. A
 * stream's own mask is narrowed to the lease's, never widened. Each function below first reads the
 * changes that the holder reported, like gpuarb_lease_dispatch() without a callback: compare
 * gpuarb_lease_generation() afterwards. When the lease has ended the functions that create fail
 * with the error of gpuarb_lease_dispatch(). Existing streams continue to work on CUs that may
 * belong to another lease by then: destroy them.
 *
 * Errors: as in gpuarb.h, with the sentence in gpuarb_last_error(), and
 *
 *	-ENODEV      HIP does not see the GPU of the lease, or sees another GPU in its place
 *	-EOPNOTSUPP  the GPU is simulated; or several HIP devices cannot be told apart; or this
 *		     process is in a PID namespace of its own, where its queues cannot be found, and
 *		     the mask would not be certain without finding them
 *	-EDQUOT      all queues or streams of the lease are in use
 *	-ERANGE      the mask has none of the CUs of the lease
 *	-EBADFD      the lease has no CUs at the moment
 *	-EEXIST      HSA_CU_MASK or ROC_GLOBAL_CU_MASK is set, and not by this lease. ROCr narrows a
 *		     mask with CUs outside of HSA_CU_MASK, and HIP then reports
 *		     hipErrorOutOfMemory. A mask within HSA_CU_MASK works where HIP alone sets it:
 *		     with normal priority, before gfx10
 *	-EBUSY       HIP got no queue, or no queue for this stream alone
 *	-EAGAIN      other queues appeared at the same time: try again
 *	-EIO         a call of HIP failed; the sentence has the name of HIP's error
 *
 * Threads: as for the handle of the lease. The current device of the calling thread does not
 * change. While a stream of low or high priority is created no other thread may create a stream on
 * that GPU, because its queue is found by its appearance. Destroy the streams before you close the
 * lease; streams that are left belong to the program, which destroys them with hipStreamDestroy().
 *
 * Link with pkg-config gpuarb-hip. The header is for HIP on AMD: -D__HIP_PLATFORM_AMD__.
 */

#include <stddef.h>
#include <stdint.h>

#include <hip/hip_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gpuarb_lease;

/*
 * Finds HIP's device number for the GPU of partition i (from 0), by PCI address. It is correct with
 * any HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES that show the GPU. The partitions of one card
 * (MI300 in CPX mode) share an address: they are identified by their order, so -EOPNOTSUPP if these
 * variables are set. -EINVAL: no partition i.
 */
int gpuarb_hip_device(struct gpuarb_lease *lease, size_t i, int *ret);

/* Sets *ret to the number of streams that this process can still create on partition i. */
int gpuarb_hip_streams(struct gpuarb_lease *lease, size_t i, unsigned *ret);

/* Creates a stream with the mask and priority of the lease on the GPU of partition i. Destroy it
 * with gpuarb_hip_stream_destroy(). May block in the driver, as hipStreamCreate() does. */
int gpuarb_hip_stream_create(struct gpuarb_lease *lease, size_t i, hipStream_t *ret);

/*
 * The same with a mask of the stream's own, in KFD bit order as of gpuarb_lease_cu_mask(), which is
 * copied; CUs outside of the lease are ignored. On gfx10 and later both CUs of a WGP must be set or
 * neither: else -EINVAL. With low or high priority HIP may later put streams that the program
 * creates by itself on the same queue.
 */
int gpuarb_hip_stream_create_within(struct gpuarb_lease *lease, size_t i, const uint32_t *mask,
				    size_t words, hipStream_t *ret);

/* Destroys a stream that was created with this lease; also after the end of the lease. Waits for the
 * work in the stream if HIP would keep its queue, otherwise as hipStreamDestroy() does. -EINVAL: it
 * was not created with this lease. */
int gpuarb_hip_stream_destroy(struct gpuarb_lease *lease, hipStream_t stream);

#ifdef __cplusplus
}
#endif
