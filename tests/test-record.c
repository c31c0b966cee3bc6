/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <time.h>

#include "check.h"
#include "dbus/record.h"
#include "libgpuarb/internal.h"

#define PARTITIONS 3U

/* A datagram with room for what newer daemons may add. */
struct datagram {
	struct gpuarb_record record;
	struct gpuarb_record_partition partitions[PARTITIONS];
	unsigned char more[256];
};

static const uint32_t old_mask[] = { 0xff, 0 };
static const uint32_t engines[] = { 0, 1 };
static const char *const gaps[] = { "power" };
static const struct gpuarb_partition known_partition = {
	.gpu = "0000:03:00.0", .kfd_gpu_id = 4711, .cu_mask = old_mask, .cu_mask_words = 2,
	.cus = 8, .cus_asked = 9, .shader_engines = engines, .n_shader_engines = 2,
	.vram = 1 << 20, .tier = "verified", .gaps = gaps, .n_gaps = 1,
};
static const struct gpuarb_lease_info known = {
	.id = 5, .state = "granted", .reason = "", .generation = 1, .deadline = UINT64_MAX,
	.partitions = &known_partition, .n_partitions = 1,
};
static const struct gpuarb_lease_info waiting = { .id = 5, .state = "waiting", .reason = "" };

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
		.reason = "resized",
	} };
	for (unsigned i = 0; i < PARTITIONS; i++)
		ret->partitions[i] = (struct gpuarb_record_partition){
			.gpu = "0000:03:00.0", .cus = 4, .effective_cus = 3, .queues = 5,
			.streams = 1, .processes = 2, .priority = 11, .n_words = 2,
			.cu_mask = { 0x0f, 0 },
		};
	return sizeof(ret->record) + n * sizeof(ret->partitions[0]);
}

TEST(a_record_says_what_the_lease_is_now)
{
	struct gpuarb_lease_info info;
	struct pool pool = { NULL };
	struct datagram datagram;
	size_t size = datagram_init(&datagram, 1);

	CHECK(record_read(&datagram, size, &known, &pool, &info) == 1);
	CHECK(info.id == 5 && info.generation == 2 && info.deadline == 1000);
	CHECK(strcmp(info.state, "granted") == 0 && strcmp(info.reason, "resized") == 0);
	CHECK(info.n_partitions == 1 && info.partitions[0].cus == 4);
	CHECK(info.partitions[0].effective_cus == 3 && info.partitions[0].queues == 5);
	CHECK(info.partitions[0].streams == 1 && info.partitions[0].processes == 2);
	CHECK(info.partitions[0].priority == 11 && info.partitions[0].cu_mask_words == 2);
	CHECK(info.partitions[0].cu_mask[0] == 0x0f);
	pool_clear(&pool);
}

TEST(what_records_do_not_carry_stays_known)
{
	struct gpuarb_lease_info info;
	struct pool pool = { NULL };
	struct datagram datagram;
	size_t size = datagram_init(&datagram, 1);

	CHECK(record_read(&datagram, size, &known, &pool, &info) == 1);
	CHECK(info.partitions[0].kfd_gpu_id == 4711 && info.partitions[0].cus_asked == 9);
	CHECK(info.partitions[0].vram == 1 << 20 && info.partitions[0].n_gaps == 1);
	CHECK(strcmp(info.partitions[0].tier, "verified") == 0);
	pool_clear(&pool);
}

TEST(shader_engines_are_known_only_of_the_same_mask)
{
	struct gpuarb_lease_info info;
	struct pool pool = { NULL };
	struct datagram datagram;
	size_t size = datagram_init(&datagram, 1);

	CHECK(record_read(&datagram, size, &known, &pool, &info) == 1);
	CHECK(!info.partitions[0].shader_engines && info.partitions[0].n_shader_engines == 0);

	datagram.partitions[0].cu_mask[0] = 0xff;
	CHECK(record_read(&datagram, size, &known, &pool, &info) == 1);
	CHECK(info.partitions[0].n_shader_engines == 2);
	pool_clear(&pool);
}

TEST(a_lease_that_waited_has_its_partitions_from_the_record)
{
	struct gpuarb_lease_info info;
	struct pool pool = { NULL };
	struct datagram datagram;
	size_t size = datagram_init(&datagram, 3);

	CHECK(record_read(&datagram, size, &waiting, &pool, &info) == 1);
	CHECK(info.n_partitions == 3 && strcmp(info.partitions[2].gpu, "0000:03:00.0") == 0);
	CHECK(strcmp(info.partitions[2].tier, "") == 0 && info.partitions[2].kfd_gpu_id == 0);
	pool_clear(&pool);
}

TEST(records_may_grow_in_both_parts)
{
	struct gpuarb_lease_info info;
	struct pool pool = { NULL };
	struct datagram from;
	size_t size = datagram_init(&from, 2), header = sizeof(struct gpuarb_record) + 24,
	       each = sizeof(struct gpuarb_record_partition) + 5;
	unsigned char *grown = calloc(1, header + 2 * each);

	CHECK(grown && size > 0);
	from.record.header_size = (uint32_t)header;
	from.record.partition_size = (uint32_t)each;
	memcpy(from.partitions[1].gpu, "0000:04:00.0", 13);
	memcpy(grown, &from.record, sizeof(from.record));
	memcpy(grown + header, &from.partitions[0], sizeof(from.partitions[0]));
	memcpy(grown + header + each, &from.partitions[1], sizeof(from.partitions[1]));

	CHECK(record_read(grown, header + 2 * each, &known, &pool, &info) == 1);
	CHECK(info.n_partitions == 2 && strcmp(info.partitions[1].gpu, "0000:04:00.0") == 0);
	pool_clear(&pool);
	free(grown);
}

TEST(a_record_of_another_version_is_skipped)
{
	struct gpuarb_lease_info info = known;
	struct pool pool = { NULL };
	uint32_t version = GPUARB_RECORD_VERSION + 1;

	CHECK(record_read(&version, sizeof(version), &known, &pool, &info) == 0);
	CHECK(memcmp(&info, &known, sizeof(info)) == 0 && !pool.blocks);
}

TEST(what_does_not_hold_together_is_refused)
{
	struct gpuarb_lease_info info = known;
	struct pool pool = { NULL };
	struct datagram good, bad;
	size_t size = datagram_init(&good, 2);

	for (size_t cut = 0; cut < size; cut++) {
		unsigned char *exact = malloc(cut + 1); /* ASan sees a step beyond it */

		CHECK(exact);
		memcpy(exact, &good, cut);
		CHECK(record_read(exact, cut, &known, &pool, &info) == -EPROTO);
		free(exact);
	}

	bad = good;
	bad.record.header_size--;
	CHECK(record_read(&bad, size, &known, &pool, &info) == -EPROTO);
	bad.record.header_size = UINT32_MAX;
	CHECK(record_read(&bad, size, &known, &pool, &info) == -EPROTO);
	bad = good;
	bad.record.partition_size--;
	CHECK(record_read(&bad, size, &known, &pool, &info) == -EPROTO);
	bad.record.partition_size = UINT32_MAX;
	CHECK(record_read(&bad, size, &known, &pool, &info) == -EPROTO);
	bad = good;
	bad.record.n_partitions = UINT32_MAX;
	CHECK(record_read(&bad, size, &known, &pool, &info) == -EPROTO);
	bad = good;
	bad.record.state = GPUARB_RECORD_ENDING + 1;
	CHECK(record_read(&bad, size, &known, &pool, &info) == -EPROTO);
	bad = good;
	memset(bad.record.reason, 'x', sizeof(bad.record.reason));
	CHECK(record_read(&bad, size, &known, &pool, &info) == -EPROTO);
	bad = good;
	memset(bad.partitions[1].gpu, 'x', sizeof(bad.partitions[1].gpu));
	CHECK(record_read(&bad, size, &known, &pool, &info) == -EPROTO);
	bad = good;
	bad.partitions[1].n_words = GPUARB_RECORD_WORDS + 1;
	CHECK(record_read(&bad, size, &known, &pool, &info) == -EPROTO);
	CHECK(memcmp(&info, &known, sizeof(info)) == 0);
	pool_clear(&pool);
}

TEST(no_bytes_lead_beyond_the_datagram)
{
	unsigned seed = (unsigned)time(NULL);

	printf("seed %u\n", seed);
	srand(seed);
	for (int round = 0; round < 20000; round++) {
		struct gpuarb_lease_info info;
		struct pool pool = { NULL };
		struct datagram good;
		size_t size = datagram_init(&good, (unsigned)rand() % (PARTITIONS + 1));
		unsigned char *bytes;

		size = rand() % 2 ? size : (size_t)rand() % (size + 1);
		bytes = malloc(size + 1);
		CHECK(bytes);
		memcpy(bytes, &good, size);
		for (int k = rand() % 6; k > 0 && size > 4; k--)
			bytes[4 + (size_t)rand() % (rand() % 2 && size > 60 ? 56 : size - 4)] =
				(unsigned char)rand();
		record_read(bytes, size, rand() % 2 ? &known : &waiting, &pool, &info);
		pool_clear(&pool);
		free(bytes);
	}
}
