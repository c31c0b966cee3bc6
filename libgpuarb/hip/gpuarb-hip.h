/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * libgpuarb-hip: HIP streams inside a lease.
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
 * What a stream made here has: a hardware queue with the lease's CU mask, set before anything
 * can be submitted to it, and the priority class of the lease. Where that cannot be had there
 * is no stream: never one without a mask. HIP is told the mask, and then KFD by
 * gpuarb_lease_mask_queue(): so it is exact whatever HIP makes of its bits, which on gfx10 and
 * later were CUs once (HIP 5.2) and are WGPs today.
 *
 * What it has not: streams that the program makes by itself, and the null stream, have queues
 * of their own without a mask. The null stream's comes with hipMemcpy(), hipMemset(), a kernel
 * without a stream, and the first hipFree(). Mask them by gpuarb_lease_apply() after they have
 * come, or start the program by "gpuarbctl run", which masks each from its birth. A mask does
 * not hold a program that wants to get out of it.
 *
 * Queues: a stream made here takes a queue slot of its own, which HIP shares with no other
 * stream, and ROCr takes one more in each process for itself. Both count against the lease's
 * queues, divided by its processes; so does every compute queue that the program has on this
 * GPU otherwise. A lease that was asked for with want.streams has queues for so many, for
 * ROCr and for the null stream, and there are no more streams than that. Without it all queues
 * can be streams, and the null stream's may come on top. Plain streams that come later are
 * HIP's to bound, by GPU_MAX_HW_QUEUES (4, per priority).
 *
 * Priority: HIP makes masked streams with the normal priority only. For a lease of priority
 * 0..6 (low) or 11..15 (high) the stream is made by hipStreamCreateWithPriority(), which asks
 * the driver for HIP's own low or high (KFD 0 and 11, or 15 in older ones) and not for the
 * lease's number, and its queue is masked then. HIP shares the queues of such streams when
 * GPU_MAX_HW_QUEUES of them are there: a stream that got a shared one is handed out after
 * every queue of this process on the lease's GPUs was masked. What priority does is up to the
 * firmware.
 *
 * Changes: when the lease was resized, gpuarb_lease_apply() gives the queues of these streams
 * the new mask; a mask of its own that a stream has is narrowed to it, never widened. Each
 * function takes in what came by the holder, as gpuarb_lease_dispatch() without a callback
 * does: look at gpuarb_lease_generation() afterwards. When the lease is gone the functions
 * that create fail with what that says (-ENOENT …). Streams that are there keep working, on
 * compute units that may be another's by then: destroy them.
 *
 * Errors: as in gpuarb.h, the sentence by gpuarb_last_error(), and
 *
 *	-ENODEV      HIP does not see the lease's GPU, or saw another one in its place
 *	-EOPNOTSUPP  a simulated GPU; several devices of HIP that cannot be told apart;
 *		     queues that cannot be seen from inside of a PID namespace, where without
 *		     seeing them the mask would not be sure
 *	-EDQUOT      the lease's queues, or its streams, are used up
 *	-ERANGE      the two masks have no CU in common
 *	-EBADFD      the lease has no CUs now
 *	-EEXIST      HSA_CU_MASK or ROC_GLOBAL_CU_MASK in the environment, and not this
 *		     lease's. ROCr reduces a mask that goes beyond HSA_CU_MASK, and HIP
 *		     takes that for hipErrorOutOfMemory; one inside it works where HIP
 *		     sets the mask alone: normal priority, before gfx10
 *	-EBUSY       HIP got no queue, or has none that is this stream's alone
 *	-EAGAIN      other queues came at the same time: try again
 *	-EIO         HIP failed; the sentence has its own word for it
 *
 * Threads: those of the lease's handle; the current device of the calling thread stays what
 * it was. While a stream of low or high priority is made no other thread may make one on that
 * GPU: its queue is known by its coming. Close the lease after the streams are destroyed:
 * those that are left are the program's, which destroys them by hipStreamDestroy().
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
 * HIP's number for the GPU of partition i, by its PCI address: HIP_VISIBLE_DEVICES and
 * ROCR_VISIBLE_DEVICES are no matter. The partitions of one card (MI300 in CPX mode) have the
 * address in common, and are told apart by their order, unless those variables are set.
 */
int gpuarb_hip_device(struct gpuarb_lease *lease, size_t i, int *ret);

/* How many more streams partition i has room for in this process. */
int gpuarb_hip_streams(struct gpuarb_lease *lease, size_t i, unsigned *ret);

/* A stream with the lease's mask and priority on the GPU of partition i. */
int gpuarb_hip_stream_create(struct gpuarb_lease *lease, size_t i, hipStream_t *ret);

/*
 * The same with a mask of its own (KFD bit order, as gpuarb_lease_cu_mask()), of which only
 * what is inside the lease's counts. On gfx10 and later both CUs of a WGP or none. With low or
 * high priority HIP may later put streams that the program makes by itself on the same queue.
 */
int gpuarb_hip_stream_create_within(struct gpuarb_lease *lease, size_t i, const uint32_t *mask,
				    size_t words, hipStream_t *ret);

/* For a stream made with this lease; also when the lease is gone. May wait for what is in the
 * stream, as hipStreamDestroy() does. -EINVAL: it was not made with it. */
int gpuarb_hip_stream_destroy(struct gpuarb_lease *lease, hipStream_t stream);

#ifdef __cplusplus
}
#endif
