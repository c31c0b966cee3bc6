/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * queues N [NODE]: makes N compute queues on the GPU of KFD's node NODE (1), by ioctls alone. Says
 * "made N", or how many there were when the driver refused, and why. Then, by lines on standard input:
 *	make N       N more: says the same, of all that there are
 *	drop N       destroys the last N of those: says how many are left, as "made N"
 *	sdma N       N more of SDMA on the engines for PCIe: says the same of those
 *	xgmi N       N more of SDMA on the engines for XGMI
 *	mask WORD…   masks all compute queues (hexadecimal, 32 bits each): says "masked"
 *	close        closes /dev/kfd: says "closed"
 *	context N    N queues in a secondary context (Linux 7.2): says "made N"
 *	leave        closes the file of that context: says "left"
 * The end of it is the end.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "queue-memory.h"

#define MOST 64
#define WORDS 8
#define CREATE_PROCESS _IO('K', 0x27) /* since Linux 7.2 */

static void must(int condition, const char *what)
{
	if (condition)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

/* The queues of one type. */
struct made {
	const char *name;
	unsigned type, memory;
	int n;
	unsigned ids[MOST];
};

static int make(int kfd, const struct gpu_node *node, struct made *made)
{
	struct kfd_ioctl_create_queue_args args = queue_args_new(node);

	args.queue_type = made->type;
	must(queue_args_map(kfd, &args, node, made->memory) == 0, "memory");
	if (ioctl(kfd, AMDKFD_IOC_CREATE_QUEUE, &args) < 0)
		return -errno;
	made->ids[made->n++] = args.queue_id;
	return 0;
}

/* So many more, or until the driver refuses. */
static void make_more(int kfd, const struct gpu_node *node, struct made *made, int more)
{
	int r = 0;

	must(made->n + more <= MOST, "so many");
	for (; more > 0 && r == 0; more--)
		r = make(kfd, node, made);
	printf("made %d%s%s\n", made->n, r < 0 ? ": " : "", r < 0 ? strerror(-r) : "");
}

static void drop(int kfd, struct made *made, int less)
{
	for (; made->n > 0 && less > 0; less--) {
		struct kfd_ioctl_destroy_queue_args args = { .queue_id = made->ids[--made->n] };

		must(ioctl(kfd, AMDKFD_IOC_DESTROY_QUEUE, &args) == 0, "drop");
	}
	printf("made %d\n", made->n);
}

static void mask(int kfd, const struct made *made, char *line)
{
	__u32 words[WORDS];
	struct kfd_ioctl_set_cu_mask_args args = { .cu_mask_ptr = (__u64)words };

	for (char *word = strtok(line + 4, " \n"); word && args.num_cu_mask < WORDS * 32;
	     word = strtok(NULL, " \n")) {
		words[args.num_cu_mask / 32] = (__u32)strtoul(word, NULL, 16);
		args.num_cu_mask += 32;
	}
	for (int i = 0; i < made->n; i++) {
		args.queue_id = made->ids[i];
		must(ioctl(kfd, AMDKFD_IOC_SET_CU_MASK, &args) == 0, "mask");
	}
	puts("masked");
}

static struct made all[] = {
	{ "make", KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR, 0, { 0 } },
	{ "sdma", KFD_IOC_QUEUE_TYPE_SDMA, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR, 0, { 0 } },
	{ "xgmi", KFD_IOC_QUEUE_TYPE_SDMA_XGMI, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR, 0, { 0 } },
};

static int context_kfd = -1;

static void acquire(int kfd, const struct gpu_node *node)
{
	struct kfd_ioctl_acquire_vm_args vm = { .gpu_id = node->id };
	char path[64];

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", node->minor);
	vm.drm_fd = (__u32)open(path, O_RDWR | O_CLOEXEC);
	must(ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &vm) == 0, "vm");
}

/* Its memory is the kernel's: the driver takes none of the process's own there. */
static void make_context(const struct gpu_node *node, int n)
{
	struct made made = { .type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
			     .memory = KFD_IOC_ALLOC_MEM_FLAGS_GTT };

	context_kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	must(context_kfd >= 0, "/dev/kfd");
	must(ioctl(context_kfd, CREATE_PROCESS) == 0, "context");
	acquire(context_kfd, node);
	make_more(context_kfd, node, &made, n);
}

static void obey(int kfd, const struct gpu_node *node, char *line)
{
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strncmp(line, all[i].name, 4) == 0)
			make_more(kfd, node, &all[i], atoi(line + 4));
	if (strncmp(line, "drop", 4) == 0)
		drop(kfd, &all[0], atoi(line + 4));
	if (strncmp(line, "mask", 4) == 0)
		mask(kfd, &all[0], line);
	if (strncmp(line, "close", 5) == 0) {
		must(close(kfd) == 0, "close");
		puts("closed");
	}
	if (strncmp(line, "context", 7) == 0)
		make_context(node, atoi(line + 7));
	if (strncmp(line, "leave", 5) == 0) {
		must(close(context_kfd) == 0, "leave");
		puts("left");
	}
}

int main(int argc, char *argv[])
{
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	struct gpu_node node = gpu_node_read(argc > 2 ? (unsigned)atoi(argv[2]) : 1);
	char line[256];

	setvbuf(stdout, NULL, _IOLBF, 0);
	must(kfd >= 0, "/dev/kfd");
	acquire(kfd, &node);
	make_more(kfd, &node, &all[0], argc > 1 ? atoi(argv[1]) : 1);
	while (fgets(line, sizeof(line), stdin))
		obey(kfd, &node, line);
	return 0;
}
