/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 *	client-raw [N]
 *
 * A program that speaks to /dev/kfd of the first GPU, or the N-th one, without any library, and does what no
 * library would. It prints "ready" at first and after each line of standard input:
 *
 *	queue      one more
 *	hidden     one more, by syscall()
 *	destroy    the last one that it made goes
 *	mask HEX   32 bits for the last one
 *	update P N percentage P and priority N for the last one; "hidden N": the priority by syscall()
 *	bad        masks that the driver does not take: what came of each is printed
 *	close      every fd but the first three is closed, and KFD opened again
 *	churn      queues come and go as fast as they can until the next line, and at least a hundred
 *	still      nothing
 *	fork       a child, which lives as long as this one, makes one of its own
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/kfd_ioctl.h>

#define RING 65536U
#define GPU_ID "/sys/class/kfd/kfd/topology/nodes/%d/gpu_id"
#define RENDER "/dev/dri/renderD%d"

struct state {
	int gpu, kfd, render;
	uint32_t gpu_id, last;
	uint64_t ring; /* of the last one */
	bool churns;
};

static void must(bool so, const char *what)
{
	if (so)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	_exit(1);
}

static void open_kfd(struct state *state)
{
	struct kfd_ioctl_acquire_vm_args args = { .gpu_id = state->gpu_id };
	char path[64];

	snprintf(path, sizeof(path), RENDER, 127 + state->gpu);
	state->kfd = open("/dev/kfd", O_RDWR);
	state->render = open(path, O_RDWR);
	must(state->kfd >= 0 && state->render >= 0, "open");
	args.drm_fd = (uint32_t)state->render;
	must(ioctl(state->kfd, AMDKFD_IOC_ACQUIRE_VM, &args) == 0 || errno == EBUSY, "vm");
}

static void read_gpu_id(struct state *state)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), GPU_ID, state->gpu);
	file = fopen(path, "re");
	must(file && fscanf(file, "%u", &state->gpu_id) == 1, path);
	fclose(file);
}

static void make(struct state *state, bool hidden)
{
	struct kfd_ioctl_create_queue_args args = {
		.gpu_id = state->gpu_id,
		.ring_size = RING,
		.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.queue_percentage = 100,
		.queue_priority = 7,
	};
	char *ring = aligned_alloc(4096, RING + 4096);
	long r;

	must(ring, "memory");
	memset(ring, 0, RING + 4096);
	args.ring_base_address = (uintptr_t)ring;
	args.read_pointer_address = (uintptr_t)ring + RING;
	args.write_pointer_address = (uintptr_t)ring + RING + 64;
	r = hidden ? syscall(SYS_ioctl, state->kfd, AMDKFD_IOC_CREATE_QUEUE, &args)
		   : ioctl(state->kfd, AMDKFD_IOC_CREATE_QUEUE, &args);
	must(r == 0, "queue");
	state->last = args.queue_id;
	state->ring = args.ring_base_address;
}

static void update(const struct state *state, uint32_t percentage, uint32_t priority, bool hidden)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = state->ring,
		.queue_id = state->last,
		.ring_size = RING,
		.queue_percentage = percentage,
		.queue_priority = priority,
	};
	long r = hidden ? syscall(SYS_ioctl, state->kfd, AMDKFD_IOC_UPDATE_QUEUE, &args)
			: ioctl(state->kfd, AMDKFD_IOC_UPDATE_QUEUE, &args);

	must(r == 0, "update");
}

static void destroy(const struct state *state)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = state->last };

	must(ioctl(state->kfd, AMDKFD_IOC_DESTROY_QUEUE, &args) == 0, "destroy");
}

static int set_mask(const struct state *state, uint32_t queue, uint32_t bits, const void *mask)
{
	struct kfd_ioctl_set_cu_mask_args args = {
		.queue_id = queue,
		.num_cu_mask = bits,
		.cu_mask_ptr = (uintptr_t)mask,
	};

	return ioctl(state->kfd, AMDKFD_IOC_SET_CU_MASK, &args) == 0 ? 0 : errno;
}

static void bad(const struct state *state)
{
	uint32_t mask = 1;

	printf("nowhere: %s\n", strerrorname_np(set_mask(state, state->last, 32, (void *)64)));
	printf("no bits: %s\n", strerrorname_np(set_mask(state, state->last, 0, &mask)));
	printf("33 bits: %s\n", strerrorname_np(set_mask(state, state->last, 33, &mask)));
	printf("no such queue: %s\n", strerrorname_np(set_mask(state, 1000, 32, &mask)));
	errno = 0;
	printf("no arguments: %d ", ioctl(state->kfd, AMDKFD_IOC_SET_CU_MASK, NULL));
	printf("%s\n", strerrorname_np(errno));
}

static void fork_one(struct state *state)
{
	int ready[2];
	char c;

	must(pipe(ready) == 0, "pipe");
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		open_kfd(state);
		make(state, false);
		must(write(ready[1], "", 1) == 1, "ready");
		for (;;)
			pause();
	}
	close(ready[1]);
	must(read(ready[0], &c, 1) == 1, "the child");
	close(ready[0]);
}

static void churn(struct state *state)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	for (unsigned n = 0; n < 100 || poll(&input, 1, 0) == 0; n++) {
		make(state, false);
		destroy(state);
		free((void *)(uintptr_t)state->ring);
	}
	state->churns = false;
}

static void step(struct state *state, char *line)
{
	uint32_t mask, percentage, priority;

	line[strcspn(line, "\n")] = '\0';
	if (strcmp(line, "queue") == 0 || strcmp(line, "hidden") == 0) {
		make(state, *line == 'h');
	} else if (strcmp(line, "destroy") == 0) {
		destroy(state);
	} else if (sscanf(line, "mask %x", &mask) == 1) {
		must((errno = set_mask(state, state->last, 32, &mask)) == 0, "mask");
	} else if (sscanf(line, "update %u %u", &percentage, &priority) == 2) {
		update(state, percentage, priority, false);
	} else if (sscanf(line, "hidden %u", &priority) == 1) {
		update(state, 100, priority, true);
	} else if (strcmp(line, "bad") == 0) {
		bad(state);
	} else if (strcmp(line, "close") == 0) {
		must(syscall(SYS_close_range, 3, ~0U, 0) == 0, "close");
		open_kfd(state);
	} else if (strcmp(line, "churn") == 0) {
		state->churns = true;
	} else if (strcmp(line, "still") == 0) {
		return;
	} else if (strcmp(line, "fork") == 0) {
		fork_one(state);
	} else {
		must(false, line);
	}
}

int main(int argc, char **argv)
{
	struct state state = { .gpu = argc > 1 ? atoi(argv[1]) : 1 };
	char line[64];

	read_gpu_id(&state);
	open_kfd(&state);
	do {
		puts("ready");
		fflush(stdout);
		if (state.churns)
			churn(&state);
		if (!fgets(line, sizeof(line), stdin))
			return EXIT_SUCCESS;
		step(&state, line);
	} while (true);
}
