/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/program-variables.h"

#include <inttypes.h>

#include "daemon/util/base.h"

/* HSA_CU_MASK_SKIP_INIT leaves queues without a mask. The others contain indices into
 * ROCR_VISIBLE_DEVICES, which changes. */
static const char *const unset_variables[] = { "HSA_CU_MASK_SKIP_INIT", "HIP_VISIBLE_DEVICES",
					       "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL" };

/* "0x" and the mask as one number. ROCr reads every bit of this form. */
static void write_mask(const struct gpuarb_partition *partition, FILE *file)
{
	size_t words = partition->cu_mask_words;

	while (words > 1 && partition->cu_mask[words - 1] == 0)
		words--;
	fprintf(file, "0x%" PRIx32, words > 0 ? partition->cu_mask[words - 1] : 0);
	while (words-- > 1)
		fprintf(file, "%08" PRIx32, partition->cu_mask[words - 1]);
}

size_t variables_write(const struct gpuarb_partition *partitions, size_t n,
		       char (*items)[VARIABLES_NAME], uint64_t lease, uint32_t hip_queues,
		       FILE *file)
{
	fprintf(file, "ROCR_VISIBLE_DEVICES=");
	for (size_t i = 0; i < n; i++)
		fprintf(file, "%s%s", i > 0 ? "," : "", items[i]);
	fprintf(file, "%cHSA_CU_MASK=", '\0');
	for (size_t i = 0; i < n; i++) {
		fprintf(file, "%s%zu:", i > 0 ? ";" : "", i);
		write_mask(&partitions[i], file);
	}
	fprintf(file, "%cGPU_MAX_HW_QUEUES=%" PRIu32, '\0', hip_queues);
	fprintf(file, "%cGPUARB_LEASE=%" PRIu64, '\0', lease);
	fprintf(file, "%cGPUARB_EFFECTIVE_CUS=", '\0');
	for (size_t i = 0; i < n; i++)
		fprintf(file, "%s%" PRIu32, i > 0 ? "," : "", partitions[i].effective_cus);
	fputc('\0', file);
	for (size_t i = 0; i < ARRAY_SIZE(unset_variables); i++)
		fprintf(file, "%s%c", unset_variables[i], '\0');
	return 5 + ARRAY_SIZE(unset_variables);
}
