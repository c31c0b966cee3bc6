/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/environment.h"

#include <errno.h>

#include "check.h"
#include "lack.h"
#include "libgpuarb/lease/visible.h"
#include "rocr-mask-parser.h"
#include "seed.h"

/* ---- a fake process ------------------------------------------------------------------- */

struct variable {
	const char *name, *value;
};

static const char *lookup(void *userdata, const char *name)
{
	for (const struct variable *v = userdata; v && v->name; v++)
		if (strcmp(v->name, name) == 0)
			return v->value;
	return NULL;
}

/* The value of a variable in the result; NULL if it is missing or to be unset. */
static const char *value_of(char **environment, const char *name)
{
	size_t length = strlen(name);

	for (; *environment; environment++)
		if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

static bool takes_out(char **environment, const char *name)
{
	for (; *environment; environment++)
		if (strcmp(*environment, name) == 0)
			return true;
	return false;
}

static const uint32_t low_half[] = { 0x3fffffff, 0 };

static const struct topology_gpu four_gpus[] = {
	{ .kfd_gpu_id = 1001, .unique_id = 0x1111222233334444 },
	{ .kfd_gpu_id = 1002, .unique_id = 0x1111222233335555 },
	{ .kfd_gpu_id = 1003, .unique_id = 0x0000000000000001 },
	{ .kfd_gpu_id = 1004 },
};

static struct topology four(void)
{
	struct topology topology = { NULL, 4 };

	topology.gpus = malloc(sizeof(four_gpus));
	CHECK(topology.gpus);
	memcpy(topology.gpus, four_gpus, sizeof(four_gpus));
	return topology;
}

static struct gpuarb_partition partition_on(uint32_t kfd_gpu_id)
{
	return (struct gpuarb_partition){ .gpu = "0000:03:00.0",
					  .kfd_gpu_id = kfd_gpu_id,
					  .cu_mask = low_half,
					  .cu_mask_words = 2,
					  .cus = 30,
					  .queues = 5,
					  .processes = 1,
					  .tier = "cooperative" };
}

/* Of the last make(): the environment, or the sentence of a failure. */
static char **made;
static char why[256];

/* Makes the environment of a process with these variables for partitions on the four GPUs. */
static int make(const struct gpuarb_partition *partitions, size_t n, struct variable *variables)
{
	struct gpuarb gpuarb = { .references = 1 };
	struct topology topology = four();
	const struct gpuarb_lease_info lease = { .id = 7,
						 .partitions = partitions,
						 .n_partitions = n };
	struct environment environment = { .gpuarb = &gpuarb,
					   .lease = &lease,
					   .topology = &topology,
					   .get = lookup,
					   .userdata = variables };
	int r;

	free(TAKE_PTR(made));
	r = environment_make(&environment, &made);
	snprintf(why, sizeof(why), "%s", gpuarb_last_error(&gpuarb));
	handle_begin(&gpuarb);
	free(topology.gpus);
	return r;
}

/* ---- tests ---------------------------------------------------------------------------- */

static void check_hip_queues(const char *of_user, const char *expected)
{
	struct variable variables[] = { { "GPU_MAX_HW_QUEUES", of_user }, { NULL, NULL } };
	struct gpuarb_partition partition = partition_on(1003);

	CHECK(make(&partition, 1, variables) == 0);
	CHECK(strcmp(value_of(made, "GPU_MAX_HW_QUEUES"), expected) == 0);
}

/* The lease has 5 queues, of which one is ROCr's. */
TEST(hip_gets_the_smaller_of_the_queues_of_user_and_lease)
{
	check_hip_queues("1", "1");
	check_hip_queues("3", "3");
	check_hip_queues("4", "4");
	check_hip_queues("9", "4");
	check_hip_queues("0", "4");
	check_hip_queues("-1", "4");
	check_hip_queues("2x", "4");
	check_hip_queues("", "4");
	check_hip_queues("99999999999999999999", "4");
}

TEST(only_the_gpu_of_the_lease_is_visible_and_masked)
{
	struct gpuarb_partition partition = partition_on(1003);

	CHECK(make(&partition, 1, NULL) == 0);
	CHECK(strcmp(value_of(made, "ROCR_VISIBLE_DEVICES"), "2") == 0);
	CHECK(strcmp(value_of(made, "HSA_CU_MASK"), "0:0x3fffffff") == 0);
	CHECK(strcmp(value_of(made, "GPU_MAX_HW_QUEUES"), "4") == 0);
	CHECK(strcmp(value_of(made, "GPUARB_LEASE"), "7") == 0);
	CHECK(takes_out(made, "HSA_CU_MASK_SKIP_INIT"));
	CHECK(takes_out(made, "HIP_VISIBLE_DEVICES"));
	CHECK(takes_out(made, "CUDA_VISIBLE_DEVICES"));
	CHECK(takes_out(made, "GPU_DEVICE_ORDINAL"));
}

TEST(a_capped_lease_leaves_one_queue_for_sdma_queues)
{
	struct gpuarb_partition partition = partition_on(1003);
	struct topology topology = four();
	struct gpuarb gpuarb = { .references = 1 };
	const struct gpuarb_lease_info lease = { .id = 7,
						 .partitions = &partition,
						 .n_partitions = 1 };
	const struct environment asked = { .gpuarb = &gpuarb,
					   .lease = &lease,
					   .topology = &topology,
					   .capped = true,
					   .get = lookup };
	static const struct {
		uint32_t queues, processes;
		const char *hip;
	} rows[] = { { 5, 1, "3" }, { 3, 1, "1" }, { 2, 1, "1" }, { 6, 2, "1" }, { 7, 2, "2" } };
	char **environment;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		partition.queues = rows[i].queues;
		partition.processes = rows[i].processes;
		CHECK(environment_make(&asked, &environment) == 0);
		CHECK(strcmp(value_of(environment, "GPU_MAX_HW_QUEUES"), rows[i].hip) == 0);
		free(environment);
	}
	free(topology.gpus);
}

TEST(indices_of_masks_follow_the_visible_list)
{
	static const uint32_t wide[] = { 0x5, 0x0, 0xa0000001 };
	struct gpuarb_partition partitions[2] = { partition_on(1004), partition_on(1001) };

	partitions[1].cu_mask = wide;
	partitions[1].cu_mask_words = 3;
	CHECK(make(partitions, 2, NULL) == 0);
	CHECK(strcmp(value_of(made, "ROCR_VISIBLE_DEVICES"), "3,0") == 0);
	CHECK(strcmp(value_of(made, "HSA_CU_MASK"), "0:0x3fffffff;1:0xa00000010000000000000005") ==
	      0);
}

TEST(simulated_gpus_are_numbered_in_the_order_of_the_lease)
{
	struct gpuarb_partition partitions[2] = { partition_on(0), partition_on(0) };
	char **environment;

	CHECK(make(partitions, 2, NULL) == -ENODEV);

	struct gpuarb gpuarb = { .references = 1 };
	struct topology_gpu none[2] = { { .kfd_gpu_id = 0 }, { .kfd_gpu_id = 0 } };
	struct topology topology = { none, 2 };
	const struct gpuarb_lease_info lease = { .partitions = partitions, .n_partitions = 2 };
	struct environment asked = {
		.gpuarb = &gpuarb, .lease = &lease, .topology = &topology, .get = lookup
	};

	CHECK(environment_make(&asked, &environment) == 0);
	CHECK(strcmp(value_of(environment, "ROCR_VISIBLE_DEVICES"), "0,1") == 0);
	free(environment);
}

TEST(the_gpu_with_the_fewest_queues_limits_hip)
{
	struct gpuarb_partition partitions[2] = { partition_on(1001), partition_on(1002) };

	partitions[0].queues = 24;
	partitions[0].processes = 4; /* 6 each, less 1 and 2: 3 */
	partitions[0].streams = 2;
	partitions[1].queues = 9;
	partitions[1].processes = 2; /* 4 each, less 1: 3 */
	CHECK(make(partitions, 2, NULL) == 0);
	CHECK(strcmp(value_of(made, "GPU_MAX_HW_QUEUES"), "3") == 0);

	partitions[1].queues = 5;
	CHECK(make(partitions, 2, NULL) == 0);
	CHECK(strcmp(value_of(made, "GPU_MAX_HW_QUEUES"), "1") == 0);
}

TEST(too_few_queues_are_refused_with_the_number_to_request)
{
	struct gpuarb_partition partition = partition_on(1001);

	partition.queues = 8;
	partition.processes = 2;
	partition.streams = 3;
	CHECK(make(&partition, 1, NULL) == -ERANGE);
	CHECK(strstr(why, " 10 "));

	partition.queues = UINT32_MAX;
	partition.streams = UINT32_MAX;
	partition.processes = 1;
	CHECK(make(&partition, 1, NULL) == -ERANGE);
}

TEST(an_inherited_mask_is_a_conflict)
{
	static const char *const names[] = { "HSA_CU_MASK", "ROC_GLOBAL_CU_MASK" };
	struct gpuarb_partition partition = partition_on(1001);

	/* The last four are masks that ROCr or the hardware drops without an error. */
	static const char *const values[] = { "0:0xff", "0:304-400", "GPU-0123456789abcdef:0-29",
					      "0:0-14", "0:0" };

	for (size_t i = 0; i < ARRAY_SIZE(names) * ARRAY_SIZE(values); i++) {
		struct variable set[] = { { names[i % 2], values[i / 2] }, { NULL, NULL } };
		struct variable empty[] = { { names[i % 2], "" }, { NULL, NULL } };

		CHECK(make(&partition, 1, set) == -EEXIST);
		CHECK(strstr(why, names[i % 2]));
		CHECK(make(&partition, 1, empty) == 0);
	}
}

TEST(a_visible_list_that_hides_a_gpu_of_the_lease_is_refused)
{
	static const struct {
		const char *value;
		bool shows[4];
	} lists[] = {
		{ "0", { true } },
		{ "2,0", { true, false, true } },
		{ " 3 , 1 ", { false, true, false, true } },
		{ "0x2,01", { false, true, true } },
		{ "", { false } },     /* empty: no GPU is visible */
		{ "0,4,1", { true } }, /* an unknown GPU ends the list */
		{ "0,-1,1", { true } },
		{ "1,1,0", { false, true } }, /* a repeated GPU ends the list */
		{ "0,x,1", { true } },
		{ "0,,1", { true } },
		{ "1,0junk", { false, true } },
		{ "GPU-1111222233334444", { true } },
		{ "gpu-1111222233335555,0", { true, true } },
		{ "GPU-11112222", { false } }, /* the beginning of two ids */
		{ "GPU-11112222333355", { false, true } },
		{ "GPU-0000000000000001", { false, false, true } },
		{ "GPU-1", { false } },
		{ "GPU-", { false } },
		{ "GPU-11112222333344445", { false } }, /* too long */
		{ "GPU-ffff,0", { false } },
		{ "99999999999999999999,0", { false } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (uint32_t gpu = 0; gpu < 4; gpu++) {
			struct variable set[] = { { "ROCR_VISIBLE_DEVICES", lists[i].value },
						  { NULL, NULL } };
			struct gpuarb_partition partition = partition_on(1001 + gpu);
			char index[4];
			int r = make(&partition, 1, set);

			if (r != (lists[i].shows[gpu] ? 0 : -EEXIST))
				fprintf(stderr, "list \"%s\", GPU %u: %s\n", lists[i].value, gpu,
					why);
			CHECK(r == (lists[i].shows[gpu] ? 0 : -EEXIST));
			if (r < 0)
				continue;
			snprintf(index, sizeof(index), "%u", gpu);
			CHECK(strcmp(value_of(made, "ROCR_VISIBLE_DEVICES"), index) == 0);
		}
}

TEST(a_gpu_that_the_process_does_not_see_is_refused)
{
	struct gpuarb_partition partition = partition_on(4711);

	CHECK(make(&partition, 1, NULL) == -ENODEV);
	CHECK(strstr(why, "0000:03:00.0"));
}

TEST(a_gpu_listed_twice_is_refused)
{
	struct topology_gpu twins[] = { { .kfd_gpu_id = 1001 }, { .kfd_gpu_id = 1001 } };
	struct gpuarb_partition partition = partition_on(1001);
	struct topology topology = { twins, 2 };
	struct gpuarb gpuarb = { .references = 1 };
	const struct gpuarb_lease_info lease = { .partitions = &partition, .n_partitions = 1 };
	struct environment asked = {
		.gpuarb = &gpuarb, .lease = &lease, .topology = &topology, .get = lookup
	};
	char **environment;

	CHECK(environment_make(&asked, &environment) == -ENODEV);
	CHECK(strstr(gpuarb_last_error(&gpuarb), "0000:03:00.0"));
	handle_begin(&gpuarb);

	partition.kfd_gpu_id = 0; /* a simulated GPU is not in the topology */
	CHECK(environment_make(&asked, &environment) == -ENODEV);
	handle_begin(&gpuarb);
}

TEST(an_empty_mask_is_refused)
{
	static const uint32_t none[] = { 0, 0 };
	struct gpuarb_partition partition = partition_on(1001);

	partition.cu_mask = none;
	CHECK(make(&partition, 1, NULL) == -EBADFD);
	partition.cu_mask_words = 0;
	CHECK(make(&partition, 1, NULL) == -EBADFD);
	CHECK(make(&partition, 0, NULL) == -EBADFD);
}

/* ---- the parser of ROCr --------------------------------------------------------------- */

TEST(rocr_ignores_malformed_masks_silently)
{
	static const struct {
		const char *value;
		unsigned sets; /* GPUs that get a mask nevertheless */
		bool ignored;
	} values[] = {
		{ "0:0xf", 1, false },
		{ "0:0-15,32-47", 1, false },
		{ " 0 : 0 x f ; 1 : 3 ", 2, false },
		{ "0,2-3:0x337F", 3, false },
		{ "0:0xf;", 1, false },
		{ "", 0, false },
		{ "0xf", 0, true }, /* without a GPU */
		{ "0:", 0, true },
		{ ":0xf", 0, true },
		{ "0:f", 0, true },
		{ "0:0x", 0, true },
		{ "0:0x0", 0, true }, /* an empty mask */
		{ "0:1x3", 0, true },
		{ "0:0xg", 0, true },
		{ "0:0xf;0:0xf0", 1, true },
		{ "0,0:0xf", 0, true },
		{ "0:1,1", 0, true },
		{ "0:3-1", 0, true },
		{ "0:0-1-2", 0, true },
		{ "9:0xf", 0, true }, /* an unknown GPU */
		{ "0:999", 0, true }, /* an unknown CU */
		{ "0:0xf:1:0xf", 0, true },
		{ "0:0xf,1:0xf", 0, true },
		{ "0:0xf;;1:0xf", 1, true },
		{ "0:0xf;1:zz;2:0xf", 1, true },
		{ "GPU-1111:0xf", 0, true },
		{ "0:0x10000000000000000000000000", 0, true }, /* beyond the last CU */
	};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		struct rocr_masks masks;
		unsigned sets = 0;

		rocr_parse_masks(values[i].value, 4, 60, &masks);
		for (size_t k = 0; k < ROCR_GPUS; k++)
			sets += masks.set[k];
		if (sets != values[i].sets || masks.ignored != values[i].ignored)
			fprintf(stderr, "\"%s\": %u sets, ignored %d\n", values[i].value, sets,
				masks.ignored);
		CHECK(sets == values[i].sets && masks.ignored == values[i].ignored);
	}
}

#define CU_WORDS 32U

static unsigned random_grant(struct gpuarb_partition *partitions, uint32_t words[][CU_WORDS],
			     struct topology *topology)
{
	unsigned n = 1 + (unsigned)rand() % 8;

	for (unsigned i = 0; i < 16; i++) {
		topology->gpus[i].kfd_gpu_id = 100 + i;
		topology->gpus[i].unique_id = (uint64_t)rand();
	}
	topology->n = 8 + (unsigned)rand() % 9;
	for (unsigned i = 0; i < n; i++) {
		unsigned n_words = 1 + (unsigned)rand() % 10;

		memset(words[i], 0, sizeof(words[i]));
		for (unsigned k = 0; k < n_words; k++)
			if (rand() % 4)
				words[i][k] = (uint32_t)rand() << 8 ^ (uint32_t)rand();
		words[i][(unsigned)rand() % n_words] |= UINT32_C(1) << rand() % 32;
		partitions[i] = partition_on(100 + (i * 3) % 8);
		partitions[i].cu_mask = words[i];
		partitions[i].cu_mask_words = n_words;
		partitions[i].processes = 1 + (unsigned)rand() % 4;
		partitions[i].streams = (unsigned)rand() % 3;
		partitions[i].queues = partitions[i].processes *
				       (2 + partitions[i].streams + (unsigned)rand() % 4);
	}
	return n;
}

TEST(rocr_reads_every_written_mask)
{
	unsigned seed = SEED_OF_RUN("SEED");
	struct gpuarb gpuarb = { .references = 1 };

	seed_rand(seed);
	for (int round = 0; round < 5000; round++) {
		struct topology_gpu gpus[16];
		struct topology topology = { gpus, 0 };
		struct gpuarb_partition partitions[8];
		uint32_t words[8][CU_WORDS];
		struct gpuarb_lease_info lease = { .partitions = partitions };
		struct environment asked = {
			.gpuarb = &gpuarb, .lease = &lease, .topology = &topology, .get = lookup
		};
		struct rocr_masks masks;
		char **environment;
		size_t order[16];

		lease.n_partitions = random_grant(partitions, words, &topology);
		CHECK(environment_make(&asked, &environment) == 0);
		rocr_parse_masks(value_of(environment, "HSA_CU_MASK"), (unsigned)lease.n_partitions,
				 320, &masks);
		CHECK(!masks.ignored);
		for (size_t i = 0; i < ROCR_GPUS; i++)
			CHECK(masks.set[i] == (i < lease.n_partitions));
		for (size_t i = 0; i < lease.n_partitions; i++)
			CHECK(memcmp(masks.word[i], words[i], sizeof(words[i])) == 0);

		CHECK(visible_parse(value_of(environment, "ROCR_VISIBLE_DEVICES"), &topology,
				    order) == lease.n_partitions);
		for (size_t i = 0; i < lease.n_partitions; i++)
			CHECK(order[i] == partitions[i].kfd_gpu_id - 100);
		free(environment);
	}
	handle_begin(&gpuarb);
}

#define MANY 96U /* GPUs of which the environment has more bytes than a stream buffers */

static char visible[4 * MANY]; /* each GPU */

/* Fails, or makes the environment of all GPUs. */
static int make_without_memory(long allocations)
{
	static const uint32_t words[MASK_WORDS] = { [MASK_WORDS - 1] = 1 };
	const struct variable all[] = { { "ROCR_VISIBLE_DEVICES", visible }, { NULL, NULL } };
	struct gpuarb_partition partitions[MANY];
	struct topology_gpu gpus[MANY];
	struct topology topology = { gpus, MANY };
	struct gpuarb gpuarb = { .references = 1 };
	const struct gpuarb_lease_info lease = { .partitions = partitions, .n_partitions = MANY };
	struct environment environment = {
		.gpuarb = &gpuarb,
		.lease = &lease,
		.topology = &topology,
		.get = lookup,
		.userdata = (void *)(uintptr_t)all,
	};
	char **ret = NULL;
	struct mask mask;
	int r;

	for (uint32_t i = 0; i < MANY; i++) {
		partitions[i] = partition_on(i + 1);
		partitions[i].cu_mask = words;
		partitions[i].cu_mask_words = MASK_WORDS;
		gpus[i] = (struct topology_gpu){ .kfd_gpu_id = i + 1 };
	}
	lack_left = allocations;
	r = environment_make(&environment, &ret);
	CHECK((r == 0) == (ret != NULL));
	for (size_t i = 0; ret && i < MANY; i++)
		CHECK(environment_mask(value_of(ret, "HSA_CU_MASK"), i, &mask) &&
		      memcmp(mask.word, words, sizeof(words)) == 0);
	CHECK(!ret || takes_out(ret, "GPU_DEVICE_ORDINAL"));
	free(ret);
	handle_begin(&gpuarb);
	return r;
}

TEST(the_environment_is_made_whole_or_not)
{
	for (unsigned i = 0, n = 0; i < MANY; i++)
		n += (unsigned)sprintf(visible + n, "%s%u", i ? "," : "", i);
	CHECK(lack_each("environment_make", make_without_memory) >= 2);
}
