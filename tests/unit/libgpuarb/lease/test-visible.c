/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/visible.h"

#include <errno.h>

#include "check.h"
#include "lack.h"

#define GPUS 4U

/* The first two share the beginning of their UUIDs, and the last has none. */
static struct topology_gpu gpus[GPUS] = {
	{ .kfd_gpu_id = 1001, .unique_id = 0x1111222233334444 },
	{ .kfd_gpu_id = 1002, .unique_id = 0x1111222233335555 },
	{ .kfd_gpu_id = 1003, .unique_id = 0x0000000000000001 },
	{ .kfd_gpu_id = 1004 },
};

static const char *const names[] = { "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
				     "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL" };

static const char *lookup(void *userdata, const char *name)
{
	const char *const *values = userdata;

	for (size_t i = 0; i < 4; i++)
		if (strcmp(names[i], name) == 0)
			return values[i];
	return NULL;
}

static char problem[400];

/* The result of these values, and the GPUs that are shown as bits. NULL: the variable is not set. */
static int find(const char *rocr, const char *hip, const char *cuda, const char *ordinal,
		unsigned *ret_bits)
{
	const char *values[] = { rocr, hip, cuda, ordinal };
	const struct topology topology = { gpus, GPUS };
	struct gpuarb gpuarb = { .references = 1 };
	const struct visible visible = { &gpuarb, &topology, lookup, values };
	bool shown[GPUS] = { false };
	int r = visible_find(&visible, shown);

	*ret_bits = 0;
	for (unsigned i = 0; i < GPUS; i++)
		*ret_bits |= (unsigned)shown[i] << i;
	snprintf(problem, sizeof(problem), "%s", gpuarb_last_error(&gpuarb));
	handle_begin(&gpuarb);
	return r;
}

static bool shows(const char *rocr, const char *hip, const char *cuda, const char *ordinal,
		  unsigned bits)
{
	unsigned found;

	return find(rocr, hip, cuda, ordinal, &found) == 1 && found == bits;
}

static bool shows_none(const char *rocr, const char *hip, const char *cuda, const char *ordinal,
		       const char *why)
{
	unsigned found;

	return find(rocr, hip, cuda, ordinal, &found) == -ENODEV && found == 0 &&
	       strstr(problem, why);
}

TEST(without_a_variable_nothing_is_restricted)
{
	unsigned bits;

	CHECK(find(NULL, NULL, NULL, NULL, &bits) == 0);
	CHECK(find(NULL, NULL, NULL, "", &bits) == 0); /* OpenCL reads it as not set */
}

TEST(indices_and_uuids_show_gpus)
{
	CHECK(shows("1", NULL, NULL, NULL, 2));
	CHECK(shows("3,0", NULL, NULL, NULL, 9));
	CHECK(shows(" 1 , 2 ", NULL, NULL, NULL, 6));
	CHECK(shows("GPU-1111222233335555", NULL, NULL, NULL, 2));
	CHECK(shows("GPU-0", NULL, NULL, NULL, 4));
	CHECK(shows(NULL, "gpu-1111222233334444,3", NULL, NULL, 9));
	CHECK(shows(NULL, NULL, "2", NULL, 4));
	CHECK(shows(NULL, NULL, NULL, "0,2", 5));
}

TEST(an_invalid_item_ends_the_list)
{
	CHECK(shows("1,99,0", NULL, NULL, NULL, 2));
	CHECK(shows("1,1,0", NULL, NULL, NULL, 2));
	CHECK(shows("2,-1,0", NULL, NULL, NULL, 4));
	CHECK(shows("0,x", NULL, NULL, NULL, 1));
}

TEST(numbers_of_hip_count_inside_those_of_rocr)
{
	CHECK(shows("2,1", "0", NULL, NULL, 4));
	CHECK(shows("2,1", "1", NULL, NULL, 2));
	CHECK(shows("3,1,0", NULL, "1,2", NULL, 3));
	CHECK(shows("2,1", "GPU-1111222233335555", NULL, NULL, 2));
	CHECK(shows_none("1", "1", NULL, NULL, "HIP_VISIBLE_DEVICES=1"));
	CHECK(shows_none("1", "GPU-0", NULL, NULL, "HIP_VISIBLE_DEVICES=GPU-0"));
}

TEST(the_first_variable_of_hip_that_is_not_empty_counts)
{
	CHECK(shows(NULL, "1", "2", "3", 2));
	CHECK(shows(NULL, "", "2", "3", 4));
	CHECK(shows(NULL, NULL, "2", "3", 4));
	CHECK(shows(NULL, "", "", "3", 8));
}

TEST(values_that_hide_every_gpu_are_named)
{
	CHECK(shows_none("", NULL, NULL, NULL, "ROCR_VISIBLE_DEVICES"));
	CHECK(shows_none(NULL, "", NULL, NULL, "HIP_VISIBLE_DEVICES"));
	CHECK(shows_none(NULL, NULL, "", NULL, "CUDA_VISIBLE_DEVICES"));
	CHECK(shows_none(NULL, NULL, "-1", NULL, "CUDA_VISIBLE_DEVICES=-1"));
	CHECK(shows_none("99", NULL, NULL, NULL, "ROCR_VISIBLE_DEVICES=99"));
	CHECK(shows_none("GPU-ffff", NULL, NULL, NULL, "UUID"));
	CHECK(shows_none("GPU-1111", NULL, NULL, NULL, "UUID of one GPU")); /* of two */
	CHECK(shows_none("", "0", NULL, NULL, "ROCR_VISIBLE_DEVICES"));
}

TEST(two_gpus_with_one_uuid_are_found_by_index_only)
{
	uint64_t before = gpus[1].unique_id;

	gpus[1].unique_id = gpus[0].unique_id;
	CHECK(shows_none("GPU-1111222233334444", NULL, NULL, NULL, "UUID of one GPU"));
	CHECK(shows("1", NULL, NULL, NULL, 2));
	gpus[1].unique_id = before;
}

TEST(a_value_of_100_kb_is_read_and_quoted_in_part)
{
	size_t size = 100000;
	char *value = malloc(size + 1);

	CHECK(value);
	memset(value, '9', size);
	value[size] = '\0';
	CHECK(shows_none(value, NULL, NULL, NULL, "99999"));
	CHECK(strlen(problem) < 300);
	for (size_t i = 0; i < size; i++)
		value[i] = i % 2 ? ',' : '1';
	CHECK(shows(NULL, value, NULL, NULL, 2));
	free(value);
}

static int find_once(long allocations)
{
	unsigned bits;
	int r;

	lack_left = allocations;
	r = find("1,2", "0", NULL, NULL, &bits);
	return r == 1 ? 0 : r;
}

TEST(lack_of_memory_is_reported)
{
	CHECK(lack_each("visible_find", find_once) > 0);
}
