/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/packet/packet.h"

#include <inttypes.h>
#include <string.h>

/*
 * The packets that user space sends to SDMA 4 and 5 (Linux, vega10_sdma_pkt_open.h and
 * navi10_sdma_pkt_open.h). Addresses are two words, low one first; counts are less one.
 * Others are not guessed: the queue stops, and says at what.
 */
#define WORDS_MAX 13U
#define CHUNK 65536U
#define NEVER_RUNG UINT64_MAX

#define ATOMIC_ADD64 47U
#define COUNT_MASK 0x3fffffffU /* 22 bits up to SDMA 5.0, 30 after it; reserved before */
#define COPY_BROADCAST (1U << 27)
#define POLL_MEMORY (1U << 31)

enum compare { ALWAYS, LESS, LESS_OR_EQUAL, EQUAL, NOT_EQUAL, NOT_LESS, GREATER };

struct sdma_kind {
	uint8_t op, sub_op;
	unsigned words;
	int (*run)(struct sim_queue *queue, const uint32_t *words, struct packet_step *step);
};

static uint64_t address(const uint32_t *words)
{
	return words[0] | (uint64_t)words[1] << 32;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* 1: nothing to do, or only for the client's eyes. */
static int run_nothing(struct sim_queue *queue, const uint32_t *words, struct packet_step *step)
{
	(void)queue;
	(void)words;
	(void)step;
	return 1;
}

static int move(struct sim_queue *queue, uint64_t to, uint64_t from, uint64_t size)
{
	uint8_t buf[CHUNK];
	int r;

	for (uint64_t done = 0, n; done < size; done += n) {
		n = smaller(size - done, sizeof(buf));
		r = packet_get(queue, from + done, buf, n);
		if (r == 0)
			r = packet_put(queue, to + done, buf, n);
		if (r < 0)
			return r;
	}
	queue->copied += size;
	return 0;
}

static int run_copy(struct sim_queue *queue, const uint32_t *words, struct packet_step *step)
{
	uint64_t size = (words[1] & COUNT_MASK) + 1ULL;
	uint64_t n = smaller(size - queue->progress, step->bytes);

	int r;

	if (words[0] & COPY_BROADCAST)
		return packet_stop(queue, "SDMA copy to two places");
	r = move(queue, address(words + 5) + queue->progress, address(words + 3) + queue->progress,
		 n);
	if (r < 0)
		return r;
	queue->progress += n;
	step->bytes -= n;
	return queue->progress == size;
}

/* One side of a copy of a rectangle: where a row of it starts. Elements are powers of two. */
static uint64_t row_address(const uint32_t *words, unsigned shift, uint64_t y, uint64_t z)
{
	uint64_t pitch = (words[3] >> 13) + 1ULL, slice = (words[4] & 0xfffffff) + 1ULL;

	y += words[2] >> 16 & 0x3fff;
	z += words[3] & 0x1fff;
	return address(words) + (((words[2] & 0x3fff) + y * pitch + z * slice) << shift);
}

/* progress counts rows here. A short row costs as much as a page does. */
static int run_copy_rect(struct sim_queue *queue, const uint32_t *words, struct packet_step *step)
{
	unsigned shift = words[0] >> 29;
	uint64_t row = ((words[11] & 0x3fff) + 1ULL) << shift;
	uint64_t rows = (words[11] >> 16 & 0x3fff) + 1ULL;
	uint64_t all = rows * ((words[12] & 0x1fff) + 1ULL);
	int r;

	while (queue->progress < all && step->bytes > 0) {
		uint64_t y = queue->progress % rows, z = queue->progress / rows;

		r = move(queue, row_address(words + 6, shift, y, z),
			 row_address(words + 1, shift, y, z), row);
		if (r < 0)
			return r;
		queue->progress++;
		step->bytes -= smaller(step->bytes, row < 4096 ? 4096 : row);
	}
	return queue->progress == all;
}

/* The pattern is one, two or four bytes; the count is of bytes, cut to whole patterns. */
static int run_fill(struct sim_queue *queue, const uint32_t *words, struct packet_step *step)
{
	unsigned unit = 1U << (words[0] >> 30);
	uint64_t size = ((words[4] & COUNT_MASK) / unit + 1ULL) * unit;
	uint8_t buf[CHUNK];
	int r;

	if (unit > sizeof(uint32_t))
		return packet_stop(queue, "SDMA fill with %u bytes at a time", unit);
	for (size_t i = 0; i < sizeof(buf); i += unit)
		memcpy(buf + i, &words[3], unit);
	while (queue->progress < size && step->bytes > 0) {
		uint64_t n = smaller(smaller(size - queue->progress, sizeof(buf)), step->bytes);

		r = packet_put(queue, address(words + 1) + queue->progress, buf, n);
		if (r < 0)
			return r;
		queue->progress += n;
		step->bytes -= n;
	}
	return queue->progress == size;
}

static int run_fence(struct sim_queue *queue, const uint32_t *words, struct packet_step *step)
{
	int r = packet_put(queue, address(words + 1), &words[3], sizeof(words[3]));

	(void)step;
	return r < 0 ? r : 1;
}

static int run_trap(struct sim_queue *queue, const uint32_t *words, struct packet_step *step)
{
	(void)step;
	sim_raise(queue->process, words[1] & 0xfffffff);
	return 1;
}

/* Of registers there is but the one that tells of a flush of the host's writes: it is done. */
static int run_poll(struct sim_queue *queue, const uint32_t *words, struct packet_step *step)
{
	uint32_t value, against = words[3] & words[4];
	int r;

	(void)step;
	if (!(words[0] & POLL_MEMORY))
		return 1;
	r = packet_get(queue, address(words + 1), &value, sizeof(value));
	if (r < 0)
		return r;
	value &= words[4];

	switch (words[0] >> 28 & 7) {
	case ALWAYS: return 1;
	case LESS: return value < against;
	case LESS_OR_EQUAL: return value <= against;
	case EQUAL: return value == against;
	case NOT_EQUAL: return value != against;
	case NOT_LESS: return value >= against;
	case GREATER: return value > against;
	default: return packet_stop(queue, "SDMA poll with function 7");
	}
}

/* Nobody else may write the value meanwhile: it is the host's to read, and engines' to count. */
static int run_atomic(struct sim_queue *queue, const uint32_t *words, struct packet_step *step)
{
	uint64_t value;
	int r;

	(void)step;
	if (words[0] >> 25 != ATOMIC_ADD64)
		return packet_stop(queue, "SDMA atomic operation %u", words[0] >> 25);
	r = packet_get(queue, address(words + 1), &value, sizeof(value));
	if (r < 0)
		return r;
	value += address(words + 3);
	r = packet_put(queue, address(words + 1), &value, sizeof(value));
	return r < 0 ? r : 1;
}

static int run_timestamp(struct sim_queue *queue, const uint32_t *words, struct packet_step *step)
{
	int r = packet_put(queue, address(words + 1), &step->now_ns, sizeof(step->now_ns));

	return r < 0 ? r : 1;
}

/* A NOP says itself how many words follow it. */
static const struct sdma_kind kinds[] = {
	{ 0, 0, 1, run_nothing },  { 1, 0, 7, run_copy },  { 1, 4, 13, run_copy_rect },
	{ 5, 0, 4, run_fence },    { 6, 0, 2, run_trap },  { 8, 0, 6, run_poll },
	{ 10, 0, 8, run_atomic },  { 11, 0, 5, run_fill }, { 13, 2, 3, run_timestamp },
	{ 17, 0, 5, run_nothing }, /* caches, SDMA 5 and later: the kernel's, */
	{ 17, 1, 5, run_nothing }, /* and user space's (ROCR-Runtime, sdma_registers.h) */
};

static const struct sdma_kind *find_kind(uint32_t header)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].op == (header & 0xff) && kinds[i].sub_op == (header >> 8 & 0xff))
			return &kinds[i];
	return NULL;
}

/* Packets may go round the end of the ring. */
static int fetch(struct sim_queue *queue, uint32_t *words, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t at = (queue->read_index + 4ULL * i) % queue->ring_size;

		int r = packet_get(queue, queue->ring_base + at, &words[i], sizeof(words[i]));

		if (r < 0)
			return r;
	}
	return 0;
}

/* How many bytes are there to be read; the doorbell counts bytes and does not wrap. */
static int waiting(struct sim_queue *queue, uint64_t *ret)
{
	uint64_t value = sim_doorbell(queue);

	if (value == NEVER_RUNG)
		value = queue->read_index;
	if (queue->ring_size < 4 || value % 4 != 0 || value < queue->read_index ||
	    value - queue->read_index > queue->ring_size)
		return packet_stop(queue, "SDMA: write pointer 0x%" PRIx64 " at 0x%" PRIx64, value,
				   queue->read_index);
	*ret = value - queue->read_index;
	return 0;
}

int sdma_step(struct sim_queue *queue, struct packet_step *step)
{
	uint32_t words[WORDS_MAX] = { 0 };
	const struct sdma_kind *kind;
	uint64_t there = 0, size;
	int r = waiting(queue, &there);

	if (r < 0 || there == 0)
		return r;
	r = fetch(queue, words, 1);
	if (r < 0)
		return r;
	kind = find_kind(words[0]);
	if (!kind)
		return packet_stop(queue, "SDMA packet 0x%08x", words[0]);
	size = 4ULL * kind->words;
	if (kind->op == 0)
		size += 4ULL * (words[0] >> 16 & 0x3fff);
	if (there < size)
		return 0;
	r = fetch(queue, words, kind->words);
	if (r < 0)
		return r;
	packet_begin(queue, step->now_ns);

	r = kind->run(queue, words, step);
	if (r <= 0)
		return r;
	r = packet_retire(queue, size, step->now_ns);
	return r < 0 ? r : 1;
}
