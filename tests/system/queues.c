/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * queues N: makes N compute queues on the GPU of KFD's node 1, by ioctls alone. Says "made N", or
 * how many there were when the driver refused, and why. Then, by lines on standard input:
 *	make N       N more: says the same, of all that there are
 *	drop N       destroys the last N: says how many are left, as "made N"
 *	mask WORD…   masks all of them (hexadecimal, 32 bits each): says "masked"
 * The end of it is the end.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "queue-memory.h"

#define MOST 64
#define WORDS 8

static void must(int condition, const char *what)
{
	if (condition)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static int make(int kfd, const struct gpu_node *node, unsigned *ret)
{
	struct kfd_ioctl_create_queue_args args = queue_args_new(node);

	must(queue_args_map(kfd, &args, node) == 0, "memory");
	if (ioctl(kfd, AMDKFD_IOC_CREATE_QUEUE, &args) < 0)
		return -errno;
	*ret = args.queue_id;
	return 0;
}

/* Until there are n, or the driver refuses. Returns how many there are. */
static int make_up_to(int kfd, const struct gpu_node *node, unsigned *ids, int n, int wanted)
{
	int r = 0;

	must(wanted <= MOST, "so many");
	for (; n < wanted && r == 0; n += r == 0)
		r = make(kfd, node, &ids[n]);
	printf("made %d%s%s\n", n, r < 0 ? ": " : "", r < 0 ? strerror(-r) : "");
	return n;
}

/* Returns how many are left. */
static int drop(int kfd, const unsigned *ids, int n, int less)
{
	for (; n > 0 && less > 0; n--, less--) {
		struct kfd_ioctl_destroy_queue_args args = { .queue_id = ids[n - 1] };

		must(ioctl(kfd, AMDKFD_IOC_DESTROY_QUEUE, &args) == 0, "drop");
	}
	printf("made %d\n", n);
	return n;
}

static void mask(int kfd, const unsigned *ids, int n, char *line)
{
	__u32 words[WORDS];
	struct kfd_ioctl_set_cu_mask_args args = { .cu_mask_ptr = (__u64)words };

	for (char *word = strtok(line + 4, " \n"); word && args.num_cu_mask < WORDS * 32;
	     word = strtok(NULL, " \n")) {
		words[args.num_cu_mask / 32] = (__u32)strtoul(word, NULL, 16);
		args.num_cu_mask += 32;
	}
	for (int i = 0; i < n; i++) {
		args.queue_id = ids[i];
		must(ioctl(kfd, AMDKFD_IOC_SET_CU_MASK, &args) == 0, "mask");
	}
	puts("masked");
}

int main(int argc, char *argv[])
{
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC), n;
	struct gpu_node node = gpu_node_read(1);
	struct kfd_ioctl_acquire_vm_args vm = { .gpu_id = node.id };
	unsigned ids[MOST];
	char line[256];

	setvbuf(stdout, NULL, _IOLBF, 0);
	must(kfd >= 0, "/dev/kfd");
	vm.drm_fd = (__u32)open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
	must(ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &vm) == 0, "vm");
	n = make_up_to(kfd, &node, ids, 0, argc > 1 ? atoi(argv[1]) : 1);
	while (fgets(line, sizeof(line), stdin)) {
		if (strncmp(line, "make", 4) == 0)
			n = make_up_to(kfd, &node, ids, n, n + atoi(line + 4));
		if (strncmp(line, "drop", 4) == 0)
			n = drop(kfd, ids, n, atoi(line + 4));
		if (strncmp(line, "mask", 4) == 0)
			mask(kfd, ids, n, line);
	}
	return 0;
}
