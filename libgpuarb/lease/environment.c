/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/environment.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/text-stream.h"
#include "libgpuarb/lease/lease-handle.h"
#include "libgpuarb/lease/program-variables.h"
#include "libgpuarb/lease/visible.h"

static unsigned digit(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

/* Parses hexadecimal digits up to the end of the item. */
static bool parse_hex(const char *text, struct mask *ret)
{
	size_t digits = strspn(text, "0123456789abcdefABCDEF");
	struct mask mask = { .words = (digits + 7) / 8 };

	if (digits == 0 || digits > MASK_WORDS * 8 || (text[digits] && text[digits] != ';'))
		return false;

	for (size_t i = 0; i < digits; i++) {
		size_t place = digits - 1 - i;

		mask.word[place / 8] |= (uint32_t)digit(text[i]) << place % 8 * 4;
	}
	*ret = mask;
	return true;
}

bool environment_mask(const char *value, size_t i, struct mask *ret)
{
	struct mask mask;
	bool found = false;

	for (const char *item = value; item; item = strchr(item, ';')) {
		unsigned long gpu;
		char *end;

		item += *item == ';';
		if (!isdigit((unsigned char)*item))
			return false;
		gpu = strtoul(item, &end, 10);
		if (strncmp(end, ":0x", 3) != 0 || !parse_hex(end + 3, &mask))
			return false;
		if (gpu == i && !found) {
			*ret = mask;
			found = true;
		}
	}
	return found;
}

/* The runtime would combine an inherited mask with that of the lease. */
static const char *const mask_variables[] = { "HSA_CU_MASK", "ROC_GLOBAL_CU_MASK" };

static int check_masks(const struct environment *environment)
{
	for (size_t i = 0; i < ARRAY_SIZE(mask_variables); i++) {
		const char *value = environment->get(environment->userdata, mask_variables[i]);

		if (value && *value)
			return fail(environment->gpuarb, -EEXIST,
				    "%s=%s is set already: unset it, and do not ask for a lease "
				    "inside another one",
				    mask_variables[i], value);
	}
	return 0;
}

/* Finds the indices of the lease's GPUs among those that this process sees. Simulated GPUs have no
 * id; for them the topology is the list of the lease. */
static int find_gpus(const struct environment *environment, size_t *indices)
{
	const struct topology *topology = environment->topology;

	for (size_t i = 0; i < environment->lease->n_partitions; i++) {
		const struct gpuarb_partition *partition = &environment->lease->partitions[i];
		const struct topology_gpu *gpu = NULL;

		if (partition->kfd_gpu_id != 0)
			gpu = topology_find(topology, partition->kfd_gpu_id);
		else if (i < topology->n && topology->gpus[i].kfd_gpu_id == 0)
			gpu = &topology->gpus[i];
		if (!gpu)
			return fail(environment->gpuarb, -ENODEV,
				    "this process sees GPU %s (KFD id %" PRIu32
				    ") not at all or twice: give it access to /dev/kfd and to the "
				    "GPU's /dev/dri/renderD*",
				    partition->gpu, partition->kfd_gpu_id);
		indices[i] = (size_t)(gpu - topology->gpus);
	}
	return 0;
}

static bool holds(const size_t *list, size_t n, size_t number)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == number)
			return true;
	return false;
}

static int check_visible(const struct environment *environment, const size_t *indices)
{
	const char *value = environment->get(environment->userdata, ROCR_VISIBLE);
	size_t *order, n;
	int r = 0;

	if (!value || environment->lease->partitions[0].kfd_gpu_id == 0)
		return 0;

	order = calloc(environment->topology->n, sizeof(*order));
	if (!order)
		return -ENOMEM;
	n = visible_parse(value, environment->topology, order);
	for (size_t i = 0; i < environment->lease->n_partitions && r == 0; i++)
		if (!holds(order, n, indices[i]))
			r = fail(environment->gpuarb, -EEXIST,
				 ROCR_VISIBLE
				 "=%.80s hides GPU %s of the lease, which has index %zu: unset "
				 "it, or ask for a visible GPU",
				 value, environment->lease->partitions[i].gpu, indices[i]);
	free(order);
	return r;
}

/*
 * The queues of one process. While a capped lease has all its compute queues the kernel refuses SDMA
 * queues as well, because a call does not tell the type: one queue is left unused, if it can be
 * spared.
 */
static uint64_t queues_of_process(const struct environment *environment,
				  const struct gpuarb_partition *partition)
{
	uint64_t processes = partition->processes ? partition->processes : 1;
	uint64_t each = partition->queues / processes;
	uint64_t spared = partition->queues > 0 ? (partition->queues - 1) / processes : 0;

	return environment->capped && spared > 1ULL + partition->streams ? spared : each;
}

/* The limit of the user; UINT32_MAX: none. */
static uint32_t queues_of_user(const struct environment *environment)
{
	const char *value = environment->get(environment->userdata, "GPU_MAX_HW_QUEUES");
	unsigned long number;
	char *end;

	if (!value || !isdigit((unsigned char)*value))
		return UINT32_MAX;
	number = strtoul(value, &end, 10);
	return !*end && number > 0 && number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

/* How many queues each process may use for HIP streams without a mask: one queue is ROCr's, and
 * each masked stream has its own. */
static int count_hip_queues(const struct environment *environment, uint32_t *ret)
{
	uint32_t least = queues_of_user(environment);

	for (size_t i = 0; i < environment->lease->n_partitions; i++) {
		const struct gpuarb_partition *partition = &environment->lease->partitions[i];
		uint64_t processes = partition->processes ? partition->processes : 1;
		uint64_t each = queues_of_process(environment, partition);
		uint64_t other = 1ULL + partition->streams;

		if (each <= other)
			return fail(environment->gpuarb, -ERANGE,
				    "too few queues for HIP on GPU %s: %" PRIu32 ", and %" PRIu64
				    " (number of processes: %" PRIu64
				    ", masked streams of each: %" PRIu32 ") are needed",
				    partition->gpu, partition->queues, processes * (other + 1),
				    processes, partition->streams);
		if (each - other < least)
			least = (uint32_t)(each - other);
	}
	*ret = least;
	return 0;
}

static int check_cus(const struct environment *environment)
{
	for (size_t i = 0; i < environment->lease->n_partitions; i++) {
		const struct gpuarb_partition *partition = &environment->lease->partitions[i];
		uint32_t any = 0;

		for (size_t w = 0; w < partition->cu_mask_words; w++)
			any |= partition->cu_mask[w];
		if (!any)
			return fail(environment->gpuarb, -EBADFD,
				    "the lease has no CUs on GPU %s at the moment", partition->gpu);
	}
	return 0;
}

/* Copies n strings and an array of pointers to them into one allocation. */
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

static int write_all(const struct environment *environment, const size_t *indices, char ***ret)
{
	const struct gpuarb_lease_info *lease = environment->lease;
	_cleanup_(freep) char(*items)[VARIABLES_NAME] = calloc(lease->n_partitions, sizeof(*items));
	_cleanup_(freep) char *text = NULL;
	struct text_stream stream;
	uint32_t hip_queues = 0;
	FILE *file;
	size_t n;
	int r = items ? count_hip_queues(environment, &hip_queues) : -ENOMEM;

	if (r >= 0)
		r = check_cus(environment);
	if (r < 0)
		return r;
	for (size_t i = 0; i < lease->n_partitions; i++)
		snprintf(items[i], sizeof(items[i]), "%zu", indices[i]);
	file = text_stream_open(&stream);
	if (!file)
		return -ENOMEM;
	n = variables_write(lease->partitions, lease->n_partitions, items, lease->id, hip_queues,
			    file);
	text = text_stream_close(&stream);
	return text ? pack(text, stream.size, n, ret) : -ENOMEM;
}

int environment_make(const struct environment *environment, char ***ret)
{
	size_t *indices;
	int r;

	if (environment->lease->n_partitions == 0)
		return fail(environment->gpuarb, -EBADFD, "lease %" PRIu64 " is not granted yet",
			    environment->lease->id);

	indices = calloc(environment->lease->n_partitions, sizeof(*indices));
	if (!indices)
		return -ENOMEM;

	r = check_masks(environment);
	if (r >= 0)
		r = find_gpus(environment, indices);
	if (r >= 0)
		r = check_visible(environment, indices);
	if (r >= 0)
		r = write_all(environment, indices, ret);
	free(indices);
	return r;
}

/* ---- this process ------------------------------------------------------------------------ */

/* KFD does not know simulated GPUs, so the GPUs of the lease are taken for the topology. */
static int read_topology(const struct gpuarb_lease_info *lease, struct topology *ret)
{
	if (lease->n_partitions == 0 || lease->partitions[0].kfd_gpu_id != 0)
		return topology_read("/sys", "/dev", ret);

	ret->gpus = calloc(lease->n_partitions, sizeof(*ret->gpus));
	ret->n = lease->n_partitions;
	return ret->gpus ? 0 : -ENOMEM;
}

/* The lease with only the partitions that the program asked for. Free partitions. */
static int narrow(const struct gpuarb_lease *lease, struct gpuarb_lease_info *ret,
		  struct gpuarb_partition **ret_partitions)
{
	struct gpuarb_partition *partitions;
	size_t n = 0;

	partitions = calloc(lease->info.n_partitions + 1, sizeof(*partitions));
	if (!partitions)
		return -ENOMEM;
	for (size_t i = 0; i < lease->info.n_partitions; i++)
		if (!lease->asked || (i < LEASE_PARTITIONS && lease->asked >> i & 1))
			partitions[n++] = lease->info.partitions[i];
	*ret = lease->info;
	ret->partitions = *ret_partitions = partitions;
	ret->n_partitions = n;
	return 0;
}

static int make_for_this_process(struct gpuarb_lease *lease, const struct gpuarb_lease_info *info,
				 char ***ret)
{
	struct topology topology = { NULL, 0 };
	const struct environment environment = {
		.gpuarb = lease->gpuarb,
		.lease = info,
		.topology = &topology,
		.capped = lease->capped,
		.get = visible_variable,
	};
	int r = read_topology(info, &topology);

	if (r == -ENODEV)
		return fail(lease->gpuarb, r,
			    "this process sees no AMD GPU: /sys/class/kfd/kfd/topology/nodes does "
			    "not exist");
	if (r >= 0)
		r = environment_make(&environment, ret);
	free(topology.gpus);
	return r;
}

GPUARB_EXPORT int gpuarb_lease_environment(struct gpuarb_lease *lease, char ***ret)
{
	_cleanup_(freep) struct gpuarb_partition *partitions = NULL;
	struct gpuarb_lease_info info;
	int r;

	HANDLE_BEGIN(lease && ret, lease->gpuarb);
	if (lease_is(lease, "waiting") || lease_is(lease, "ending"))
		r = fail(lease->gpuarb, -EBADFD, "lease %" PRIu64 " is %s, not granted",
			 lease->info.id, lease->info.state);
	else
		r = narrow(lease, &info, &partitions);
	if (r >= 0)
		r = make_for_this_process(lease, &info, ret);
	return handle_end(lease->gpuarb, r);
}
