/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * masks NODE N SEED: gives queues of the GPU of this node N random CU masks by SET_CU_MASK, and compares
 * the registers COMPUTE_STATIC_THREAD_MGMT_SEn in their descriptors, which debugfs shows, with core's
 * codec for the geometry that the daemon reads from sysfs. Says how many words differ, and the first
 * that does. Needs root for debugfs. Exits with 1 if a word differs.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/mask/codec.h"
#include "hw/hw.h"
#include "queue-memory.h"

#define MQDS "/sys/kernel/debug/kfd/mqds"
#define QUEUES_MAX 8
#define DESCRIPTOR_WORDS 512
#define REGISTERS_END (0xc0 / 4) /* the registers are before it */

struct tried {
	unsigned id, words;
	uint32_t mask[CODEC_WORDS];
};

static struct tried tried[QUEUES_MAX]; /* in the order of creation */
static unsigned n_tried;
static unsigned long compared, differ;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static unsigned below(unsigned n)
{
	return (unsigned)(lrand48() % n);
}

/* The GPU as gpuarbd reads it. */
static struct gpu_info info_read(uint32_t id)
{
	struct diagnostics diagnostics = { 0 };
	struct gpu_info gpus[16];
	struct hw *hw = NULL;
	int n = hw_kfd_open("/sys", &hw, &diagnostics);

	n = n < 0 ? n : hw_list(hw, gpus, 16, &diagnostics);
	hw_close(hw);
	for (int i = 0; i < n && i < 16; i++)
		if (gpus[i].kfd_gpu_id == id) {
			diagnostics_done(&diagnostics);
			return gpus[i];
		}
	diagnostics_done(&diagnostics);
	fprintf(stderr, "gpuarbd would not find the GPU %u\n", id);
	exit(1);
}

static void make_queues(int kfd, const struct gpu_node *node, unsigned slots)
{
	char path[32];
	struct kfd_ioctl_acquire_vm_args vm = { .gpu_id = node->id };

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", node->minor);
	vm.drm_fd = (uint32_t)open(path, O_RDWR | O_CLOEXEC);
	if (ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &vm) < 0)
		die("ACQUIRE_VM");
	for (n_tried = 0; n_tried < QUEUES_MAX && n_tried < slots; n_tried++) {
		struct kfd_ioctl_create_queue_args args = queue_args_new(node);

		if (queue_args_map(kfd, &args, node, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) < 0 ||
		    ioctl(kfd, AMDKFD_IOC_CREATE_QUEUE, &args) < 0)
			die("CREATE_QUEUE");
		tried[n_tried].id = args.queue_id;
	}
}

/* Of any density and length, in whole words; with WGPs in whole pairs, as the driver wants them. */
static void set_random_mask(int kfd, struct tried *queue, bool wgp)
{
	unsigned density = 1 + below(16);
	struct kfd_ioctl_set_cu_mask_args args = {
		.queue_id = queue->id,
		.cu_mask_ptr = (uintptr_t)queue->mask,
	};

	queue->words = 1 + below(CODEC_WORDS);
	if (below(2))
		queue->words = 1 + below(4);
	args.num_cu_mask = queue->words * 32;
	memset(queue->mask, 0, sizeof(queue->mask));
	for (unsigned bit = 0; bit < queue->words * 32; bit += wgp ? 2 : 1)
		if (below(16) < density)
			queue->mask[bit / 32] |= (wgp ? 3U : 1U) << bit % 32;
	if (ioctl(kfd, AMDKFD_IOC_SET_CU_MASK, &args) < 0)
		die("SET_CU_MASK");
}

/* Where the register of an engine is in a descriptor, in words: v9_structs.h, v11_structs.h. */
static unsigned register_of(unsigned engine, unsigned gfx_target)
{
	static const uint8_t first[4] = { 0x5c / 4, 0x60 / 4, 0x68 / 4, 0x6c / 4 };

	if (engine < 4)
		return first[engine];
	return (gfx_target < 110000 ? 0x9c : 0xb0) / 4 + engine - 4;
}

static void compare(const uint32_t *descriptor, unsigned xcc, const struct tried *queue,
		    const struct gpu_info *info, const struct cuset *set)
{
	for (unsigned engine = 0; engine < info->geometry.engines; engine++) {
		uint32_t kernel = descriptor[register_of(engine, info->gfx_target)];
		uint32_t codec = set->pair[cuset_pair(xcc, engine)];

		compared++;
		if (kernel == codec || differ++ > 0)
			continue;
		printf("XCC %u engine %u: the driver has 0x%08x, the codec 0x%08x; the mask is",
		       xcc, engine, kernel, codec);
		for (unsigned i = 0; i < queue->words; i++)
			printf(" %08x", queue->mask[i]);
		printf("\n");
	}
}

/* A line of a descriptor: "    00000040: 8 words". Returns its offset in words, or -1. */
static int read_line(const char *line, uint32_t *descriptor)
{
	char *end;
	unsigned long at = strtoul(line, &end, 16) / 4;

	if (*end != ':' || strncmp(line, "    ", 4) != 0 || at > DESCRIPTOR_WORDS - 8)
		return -1;
	for (int i = 0; i < 8 && at < REGISTERS_END; i++)
		descriptor[at + i] = (uint32_t)strtoul(end + 1, &end, 16);
	return (int)at;
}

/* The newest queue is the first; a descriptor for each XCC. */
static void compare_all(FILE *mqds, const struct gpu_info *info, const struct codec *codec)
{
	unsigned queue = n_tried, xcc = 0, found = 0;
	uint32_t descriptor[DESCRIPTOR_WORDS];
	struct cuset set;
	char line[256];

	while (fgets(line, sizeof(line), mqds)) {
		int at = read_line(line, descriptor);

		if (strncmp(line, "  Compute", 9) == 0 && queue > 0) {
			queue--;
			xcc = 0;
			codec_decode(codec, tried[queue].mask, tried[queue].words, &set);
		}
		if (at != DESCRIPTOR_WORDS - 8 || queue == n_tried || xcc >= info->geometry.xccs)
			continue;
		compare(descriptor, xcc++, &tried[queue], info, &set);
		found++;
	}
	if (found == n_tried * info->geometry.xccs)
		return;
	printf("debugfs has %u descriptors of %u queues\n", found, n_tried);
	exit(1);
}

int main(int argc, char *argv[])
{
	struct gpu_node node = gpu_node_read(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	struct gpu_info info = info_read(node.id);
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	static char buffer[1 << 16];
	struct codec codec;
	char name[16];

	if (kfd < 0 || n == 0)
		die("/dev/kfd, or no number of masks");
	srand48(argc > 3 ? atol(argv[3]) : 1);
	codec_init(&codec, &info.geometry);
	make_queues(kfd, &node, info.queue_slots);
	for (unsigned long i = 0; i < n; i += n_tried) {
		FILE *mqds = fopen(MQDS, "re");

		if (!mqds)
			die(MQDS);
		setvbuf(mqds, buffer, _IOFBF, sizeof(buffer));
		for (unsigned queue = 0; queue < n_tried; queue++)
			set_random_mask(kfd, &tried[queue], info.geometry.wgp);
		compare_all(mqds, &info, &codec);
		fclose(mqds);
	}
	gpu_info_target_name(info.gfx_target, name, sizeof(name));
	printf("%s of %u XCCs, %u CUs%s: %lu masks, %lu words, %lu differ\n", name,
	       info.geometry.xccs, geometry_cus(&info.geometry),
	       info.harvest_known ? "" : " spread evenly", n, compared, differ);
	return differ > 0;
}
