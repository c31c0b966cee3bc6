/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuarb/lease/environment.h"

#define VISIBLE "ROCR_VISIBLE_DEVICES"

/* Inherited masks that would be combined with ours, or undo it. */
static const char *const masks[] = { "HSA_CU_MASK", "ROC_GLOBAL_CU_MASK" };

/* HSA_CU_MASK_SKIP_INIT leaves queues without a mask; the others count GPUs after
 * ROCR_VISIBLE_DEVICES, which is another one now. */
static const char *const taken_out[] = { "HSA_CU_MASK_SKIP_INIT", "HIP_VISIBLE_DEVICES",
					 "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL" };

static int check_masks(struct gpuarb *gpuarb, const struct environment *environment)
{
	for (size_t i = 0; i < ARRAY_SIZE(masks); i++) {
		const char *value = environment->get(environment->userdata, masks[i]);

		if (value && *value)
			return fail(gpuarb, -EEXIST,
				    "%s=%s is in the environment already: unset it, or do not ask "
				    "for a lease inside another one",
				    masks[i], value);
	}
	return 0;
}

/* Indices of the lease's GPUs among those that this process sees. Simulated ones have no id:
 * there the topology is the lease's own list. */
static int find_gpus(struct gpuarb *gpuarb, const struct environment *environment, size_t *indices)
{
	const struct topology *topology = environment->topology;

	for (size_t i = 0; i < environment->n; i++) {
		const struct gpuarb_partition *partition = &environment->partitions[i];
		const struct topology_gpu *gpu = NULL;

		if (partition->kfd_gpu_id != 0)
			gpu = topology_find(topology, partition->kfd_gpu_id);
		else if (i < topology->n && topology->gpus[i].kfd_gpu_id == 0)
			gpu = &topology->gpus[i];
		if (!gpu)
			return fail(gpuarb, -ENODEV,
				    "this process does not see GPU %s (KFD's %" PRIu32
				    "), or sees it twice: give it /dev/kfd and the GPU's "
				    "/dev/dri/renderD*",
				    partition->gpu, partition->kfd_gpu_id);
		indices[i] = (size_t)(gpu - topology->gpus);
	}
	return 0;
}

static int check_visible(struct gpuarb *gpuarb, const struct environment *environment,
			 const size_t *indices)
{
	const char *value = environment->get(environment->userdata, VISIBLE);
	bool *visible;
	int r = 0;

	if (!value)
		return 0;

	visible = calloc(environment->topology->n, sizeof(*visible));
	if (!visible)
		return -ENOMEM;
	visible_parse(value, environment->topology, visible);
	for (size_t i = 0; i < environment->n && r == 0; i++)
		if (!visible[indices[i]])
			r = fail(gpuarb, -EEXIST,
				 VISIBLE "=%s hides GPU %s of the lease, which is number %zu here: "
					 "unset it, or ask for a GPU that it shows",
				 value, environment->partitions[i].gpu, indices[i]);
	free(visible);
	return r;
}

/* What is left for HIP's own queues: ROCr makes one more in each process, and a stream with
 * a mask of its own has its own. */
static int count_hip_queues(struct gpuarb *gpuarb, const struct environment *environment,
			    uint32_t *ret)
{
	uint32_t least = UINT32_MAX;

	for (size_t i = 0; i < environment->n; i++) {
		const struct gpuarb_partition *partition = &environment->partitions[i];
		uint64_t processes = partition->processes ? partition->processes : 1;
		uint64_t each = partition->queues / processes, other = 1ULL + partition->streams;

		if (each <= other)
			return fail(gpuarb, -ERANGE,
				    "%" PRIu32 " queues on GPU %s leave HIP none: %" PRIu64
				    " processes with %" PRIu32 " masked streams each need at "
				    "least %" PRIu64,
				    partition->queues, partition->gpu, processes,
				    partition->streams, processes * (other + 1));
		if (each - other < least)
			least = (uint32_t)(each - other);
	}
	*ret = least;
	return 0;
}

/* "0x" and the mask as one number, the form of which ROCr ignores nothing. */
static int write_mask(struct gpuarb *gpuarb, FILE *file, const struct gpuarb_partition *partition)
{
	size_t words = partition->cu_mask_words;

	while (words > 0 && partition->cu_mask[words - 1] == 0)
		words--;
	if (words == 0)
		return fail(gpuarb, -EBADFD, "the lease has no CU on GPU %s now", partition->gpu);

	fprintf(file, "0x%" PRIx32, partition->cu_mask[words - 1]);
	while (--words > 0)
		fprintf(file, "%08" PRIx32, partition->cu_mask[words - 1]);
	return 0;
}

/* All settings one after the other, each with its NUL; *ret_n is their number. */
static int write_settings(struct gpuarb *gpuarb, FILE *file, const struct environment *environment,
			  const size_t *indices, uint32_t hip_queues, size_t *ret_n)
{
	int r = 0;

	fprintf(file, VISIBLE "=");
	for (size_t i = 0; i < environment->n; i++)
		fprintf(file, "%s%zu", i > 0 ? "," : "", indices[i]);

	fprintf(file, "%cHSA_CU_MASK=", '\0');
	for (size_t i = 0; i < environment->n && r >= 0; i++) {
		fprintf(file, "%s%zu:", i > 0 ? ";" : "", i);
		r = write_mask(gpuarb, file, &environment->partitions[i]);
	}

	fprintf(file, "%cGPU_MAX_HW_QUEUES=%" PRIu32, '\0', hip_queues);
	fprintf(file, "%cGPUARB_LEASE=%" PRIu64 "%c", '\0', environment->lease, '\0');
	for (size_t i = 0; i < ARRAY_SIZE(taken_out); i++)
		fprintf(file, "%s%c", taken_out[i], '\0');

	*ret_n = 4 + ARRAY_SIZE(taken_out);
	return r;
}

/* Puts n strings and the pointers to them in one allocation. */
static int pack(const char *text, size_t size, size_t n, char ***ret)
{
	size_t pointers = (n + 1) * sizeof(char *);
	char **list = malloc(pointers + size), *p;

	if (!list)
		return -ENOMEM;

	p = (char *)list + pointers;
	memcpy(p, text, size);
	for (size_t i = 0; i < n; i++) {
		list[i] = p;
		p += strlen(p) + 1;
	}
	list[n] = NULL;
	*ret = list;
	return 0;
}

static int write_all(struct gpuarb *gpuarb, const struct environment *environment,
		     const size_t *indices, char ***ret)
{
	_cleanup_(free_charp) char *text = NULL;
	size_t size = 0, n = 0;
	uint32_t hip_queues = 0;
	FILE *file;
	int r;

	r = count_hip_queues(gpuarb, environment, &hip_queues);
	if (r < 0)
		return r;

	file = open_memstream(&text, &size);
	if (!file)
		return -ENOMEM;
	r = write_settings(gpuarb, file, environment, indices, hip_queues, &n);
	if (ferror(file) && r >= 0)
		r = -ENOMEM;
	if (fclose(file) != 0 && r >= 0)
		r = -ENOMEM;
	return r < 0 ? r : pack(text, size, n, ret);
}

int environment_make(struct gpuarb *gpuarb, const struct environment *environment, char ***ret)
{
	size_t *indices;
	int r;

	if (environment->n == 0)
		return fail(gpuarb, -EBADFD, "lease %" PRIu64 " is not granted yet",
			    environment->lease);

	indices = calloc(environment->n, sizeof(*indices));
	if (!indices)
		return -ENOMEM;

	r = check_masks(gpuarb, environment);
	if (r >= 0)
		r = find_gpus(gpuarb, environment, indices);
	if (r >= 0)
		r = check_visible(gpuarb, environment, indices);
	if (r >= 0)
		r = write_all(gpuarb, environment, indices, ret);
	free(indices);
	return r;
}
