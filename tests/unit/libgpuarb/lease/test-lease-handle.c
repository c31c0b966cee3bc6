/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "check.h"
#include "dbus/record.h"
#include "lack.h"
#include "libgpuarb/lease/lease-handle.h"
#include "seed.h"

#define PARTITIONS 3U

/* A datagram with room for additional members of newer daemons. */
struct datagram {
	struct gpuarb_record record;
	struct gpuarb_record_partition partitions[PARTITIONS];
	unsigned char more[256];
};

static const struct gpuarb_lease_info known = { .id = 4, .state = "granted", .reason = "" };

static size_t datagram_init(struct datagram *ret, unsigned n)
{
	*ret = (struct datagram){ .record = {
					  .version = GPUARB_RECORD_VERSION,
					  .header_size = sizeof(struct gpuarb_record),
					  .partition_size = sizeof(struct gpuarb_record_partition),
					  .n_partitions = n,
					  .lease = 5,
					  .generation = 2,
					  .deadline_usec = 1000,
					  .state = GPUARB_RECORD_GRANTED,
					  .cause = GPUARB_RECORD_SHUTDOWN,
					  .reason = "resized",
				  } };
	for (unsigned i = 0; i < PARTITIONS; i++)
		ret->partitions[i] = (struct gpuarb_record_partition){
			.gpu = "0000:03:00.0",
			.tier = "verified",
			.gaps = "power reset",
			.vram = 1 << 20,
			.kfd_gpu_id = 4711,
			.cus = 4,
			.cus_asked = 5,
			.effective_cus = 3,
			.shader_engines = 0x80000005,
			.queues = 6,
			.streams = 1,
			.processes = 2,
			.sdma_queues = 3,
			.sdma_xgmi_queues = 9,
			.priority = 11,
			.n_words = 2,
			.cu_mask = { 0x0f, 0 },
		};
	return sizeof(ret->record) + n * sizeof(ret->partitions[0]);
}

/* A datagram of three partitions, and what is read from it. */
struct reading {
	struct datagram datagram;
	size_t size;
	struct gpuarb_lease_info info;
	struct record_facts facts;
	struct arena arena;
};

static int reading_read(struct reading *r)
{
	return record_read(&r->datagram, r->size, &r->arena, &r->info, &r->facts);
}

FIXTURE(struct reading, r, r->size = datagram_init(&r->datagram, 3), arena_clear(&r->arena));

TEST_WITH(a_record_has_the_state_of_the_lease, struct reading *r)
{
	CHECK(reading_read(r) == 1);
	CHECK(r->info.id == 5 && r->info.generation == 2 && r->info.deadline == 1000);
	CHECK(strcmp(r->info.state, "granted") == 0 && strcmp(r->info.reason, "resized") == 0);
	CHECK(r->facts.cause == GPUARB_RECORD_SHUTDOWN && r->info.n_partitions == 3);
	CHECK(strcmp(r->info.partitions[2].gpu, "0000:03:00.0") == 0);
}

TEST_WITH(a_record_has_all_values_of_a_partition, struct reading *r)
{
	const struct gpuarb_partition *partition;

	CHECK(reading_read(r) == 1);
	partition = r->info.partitions;
	CHECK(partition->cus == 4 && partition->cus_asked == 5 && partition->effective_cus == 3);
	CHECK(partition->queues == 6 && partition->streams == 1 && partition->processes == 2);
	CHECK(partition->sdma_queues == 3 && partition->priority == 11);
	CHECK(partition->sdma_xgmi_queues == 9);
	CHECK(partition->kfd_gpu_id == 4711 && partition->vram == 1 << 20);
	CHECK(partition->cu_mask_words == 2 && partition->cu_mask[0] == 0x0f);
	CHECK(partition->n_shader_engines == 3 && partition->shader_engines[0] == 0);
	CHECK(partition->shader_engines[1] == 2 && partition->shader_engines[2] == 31);
	CHECK(strcmp(partition->tier, "verified") == 0 && partition->n_gaps == 2);
	CHECK(strcmp(partition->gaps[0], "power") == 0 && strcmp(partition->gaps[1], "reset") == 0);
}

TEST_WITH(a_record_has_the_paused_flag_and_unknown_flags_are_ignored, struct reading *r)
{
	r->datagram.partitions[1].flags = UINT32_MAX;
	r->datagram.partitions[2].flags = UINT32_MAX - GPUARB_RECORD_PAUSED;
	CHECK(reading_read(r) == 1);
	CHECK(r->info.partitions[0].paused == 0 && r->info.partitions[1].paused == 1);
	CHECK(r->info.partitions[2].paused == 0);
}

TEST_WITH(a_record_tells_who_is_disturbed_and_who_is_alone, struct reading *r)
{
	struct gpuarb_record_partition *partitions = r->datagram.partitions;

	partitions[1].disturbed_cus = 12;
	partitions[1].flags |= GPUARB_RECORD_RESETTING;
	partitions[1].resets = 3;
	partitions[0].flags = partitions[2].flags = GPUARB_RECORD_ALONE;
	CHECK(reading_read(r) == 1);
	CHECK(r->facts.resetting && r->facts.resets == 3);
	CHECK(!r->facts.alone && r->facts.disturbed_cus[0] == 0 && r->facts.disturbed_cus[1] == 12);
	partitions[1].flags = GPUARB_RECORD_ALONE | GPUARB_RECORD_PAUSED;
	CHECK(reading_read(r) == 1 && r->facts.alone && r->info.partitions[1].paused);
}

TEST(header_and_partitions_of_a_record_may_be_longer)
{
	struct gpuarb_lease_info info;
	struct arena arena = { NULL };
	struct datagram from;
	size_t size = datagram_init(&from, 2), header = sizeof(struct gpuarb_record) + 24,
	       each = sizeof(struct gpuarb_record_partition) + 5;
	unsigned char *grown = calloc(1, header + 2 * each);
	struct record_facts facts;

	CHECK(grown && size > 0);
	from.record.header_size = (uint32_t)header;
	from.record.partition_size = (uint32_t)each;
	memcpy(from.partitions[1].gpu, "0000:04:00.0", 13);
	memcpy(grown, &from.record, sizeof(from.record));
	memcpy(grown + header, &from.partitions[0], sizeof(from.partitions[0]));
	memcpy(grown + header + each, &from.partitions[1], sizeof(from.partitions[1]));

	CHECK(record_read(grown, header + 2 * each, &arena, &info, &facts) == 1);
	CHECK(info.n_partitions == 2 && strcmp(info.partitions[1].gpu, "0000:04:00.0") == 0);
	arena_clear(&arena);
	free(grown);
}

TEST_WITH(record_of_a_daemon_without_xgmi_queues_is_read, struct reading *r)
{
	const size_t each = GPUARB_RECORD_PARTITION_0_1;
	struct datagram *from = &r->datagram;

	datagram_init(from, 2);
	from->record.partition_size = (uint32_t)each;
	memcpy(from->partitions[1].gpu, "0000:04:00.0", 13);
	memmove((unsigned char *)from->partitions + each, &from->partitions[1], each);
	r->size = sizeof(from->record) + 2 * each;
	CHECK(reading_read(r) == 1 && r->info.n_partitions == 2);
	CHECK(strcmp(r->info.partitions[1].gpu, "0000:04:00.0") == 0);
	CHECK(r->info.partitions[0].sdma_queues == 3 &&
	      r->info.partitions[0].sdma_xgmi_queues == 0);
	CHECK(r->info.partitions[1].sdma_xgmi_queues == 0);
}

TEST(a_record_of_another_version_is_skipped)
{
	struct gpuarb_lease_info info = known;
	struct arena arena = { NULL };
	uint32_t version = GPUARB_RECORD_VERSION + 1;
	struct record_facts facts;

	CHECK(record_read(&version, sizeof(version), &arena, &info, &facts) == 0);
	CHECK(memcmp(&info, &known, sizeof(info)) == 0 && !arena.blocks);
}

TEST(an_inconsistent_record_is_rejected)
{
	struct gpuarb_lease_info info = known;
	_cleanup_(arena_clear) struct arena arena = { NULL };
	struct datagram good, bad;
	size_t size = datagram_init(&good, 2);
	struct record_facts facts;

	for (size_t cut = 0; cut < size; cut++) {
		unsigned char *exact = malloc(cut + 1); /* ASan detects reads behind it */

		CHECK(exact);
		memcpy(exact, &good, cut);
		CHECK(record_read(exact, cut, &arena, &info, &facts) == -EPROTO);
		free(exact);
	}

	bad = good;
	bad.record.header_size--;
	CHECK(record_read(&bad, size, &arena, &info, &facts) == -EPROTO);
	bad.record.header_size = UINT32_MAX;
	CHECK(record_read(&bad, size, &arena, &info, &facts) == -EPROTO);
	bad = good;
	bad.record.partition_size = GPUARB_RECORD_PARTITION_0_1 - 1;
	CHECK(record_read(&bad, size, &arena, &info, &facts) == -EPROTO);
	bad.record.partition_size = UINT32_MAX;
	CHECK(record_read(&bad, size, &arena, &info, &facts) == -EPROTO);
	bad = good;
	bad.record.n_partitions = UINT32_MAX;
	CHECK(record_read(&bad, size, &arena, &info, &facts) == -EPROTO);
	bad = good;
	bad.record.state = GPUARB_RECORD_ENDING + 1;
	CHECK(record_read(&bad, size, &arena, &info, &facts) == -EPROTO);
	bad = good;
	memset(bad.record.reason, 'x', sizeof(bad.record.reason));
	CHECK(record_read(&bad, size, &arena, &info, &facts) == -EPROTO);
	bad = good;
	memset(bad.partitions[1].gpu, 'x', sizeof(bad.partitions[1].gpu));
	CHECK(record_read(&bad, size, &arena, &info, &facts) == -EPROTO);
	bad = good;
	memset(bad.partitions[1].tier, 'x', sizeof(bad.partitions[1].tier));
	CHECK(record_read(&bad, size, &arena, &info, &facts) == -EPROTO);
	bad = good;
	memset(bad.partitions[1].gaps, 'x', sizeof(bad.partitions[1].gaps));
	CHECK(record_read(&bad, size, &arena, &info, &facts) == -EPROTO);
	bad = good;
	bad.partitions[1].n_words = GPUARB_RECORD_WORDS + 1;
	CHECK(record_read(&bad, size, &arena, &info, &facts) == -EPROTO);
	CHECK(memcmp(&info, &known, sizeof(info)) == 0);
}

TEST(random_records_are_read_within_their_size)
{
	unsigned seed = SEED_OF_RUN("SEED");

	seed_rand(seed);
	for (int round = 0; round < 20000; round++) {
		struct gpuarb_lease_info info;
		struct arena arena = { NULL };
		struct datagram good;
		size_t size = datagram_init(&good, (unsigned)rand() % (PARTITIONS + 1));
		unsigned char *bytes;
		struct record_facts facts;

		size = rand() % 2 ? size : (size_t)rand() % (size + 1);
		bytes = malloc(size + 1);
		CHECK(bytes);
		memcpy(bytes, &good, size);
		for (int k = rand() % 6; k > 0 && size > 4; k--)
			bytes[4 + (size_t)rand() % (rand() % 2 && size > 60 ? 56 : size - 4)] =
				(unsigned char)rand();
		record_read(bytes, size, &arena, &info, &facts);
		arena_clear(&arena);
		free(bytes);
	}
}

static int read_without_memory(long allocations)
{
	struct gpuarb_lease_info info = known;
	struct arena arena = { NULL };
	struct datagram datagram;
	size_t size = datagram_init(&datagram, 2);
	struct record_facts facts = { 0 };
	int r;

	lack_left = allocations;
	r = record_read(&datagram, size, &arena, &info, &facts);
	CHECK(r == 1 ? info.id == 5 && info.n_partitions == 2 : info.id == 4 && facts.cause == 0);
	arena_clear(&arena);
	return r < 0 ? r : 0;
}

TEST(a_record_is_read_whole_or_not)
{
	CHECK(lack_each("record_read", read_without_memory) >= 12);
}
