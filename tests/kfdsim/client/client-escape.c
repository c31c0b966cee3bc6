/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A static program that speaks to /dev/kfd of the first GPU, and tries to get queues past a cap. It
 * prints "ready" at first and after each line of standard input, and the line with the outcome, 0 or
 * the name of an errno, on standard error:
 *
 *	queue     one more
 *	sdma      one more SDMA queue
 *	destroy   the last one goes
 *	invalid   a call that the driver refuses
 *	thread    one more, by a thread that ends then
 *	reopen    one more, through /dev/kfd opened again
 *	fork      a child, which lives as long as this one, makes one of its own
 *	inherited a child makes one through this process's file, and ends
 *	high      one more, with bits in the upper half of the number
 *	type      one more, with the number of the call and another type
 *	compat    one more, by the 32-bit system call
 *	x32       one more, by the x32 system call
 *	uring     one more, by io_uring
 *	setuid    whether exec() gives rights: no_new_privs
 *	flood N   N calls
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/kfd_ioctl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RING 65536U
#define GPU_ID "/sys/class/kfd/kfd/topology/nodes/1/gpu_id"
#define RENDER "/dev/dri/renderD128"
#define X32_IOCTL (0x40000000L + 514)

struct state {
	int kfd;
	uint32_t gpu_id, last;
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
	int render = open(RENDER, O_RDWR | O_CLOEXEC);

	state->kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	must(state->kfd >= 0 && render >= 0, "open");
	args.drm_fd = (uint32_t)render;
	must(ioctl(state->kfd, AMDKFD_IOC_ACQUIRE_VM, &args) == 0 || errno == EBUSY, "vm");
}

static void read_gpu_id(struct state *state)
{
	FILE *file = fopen(GPU_ID, "re");

	must(file && fscanf(file, "%u", &state->gpu_id) == 1, GPU_ID);
	fclose(file);
}

/* ---- ways to make the call: 0 or an errno ------------------------------------------------- */

typedef long (*call_t)(int fd, unsigned long request, void *args);

static long by_ioctl(int fd, unsigned long request, void *args)
{
	return syscall(SYS_ioctl, fd, request, args);
}

static long by_high_bits(int fd, unsigned long request, void *args)
{
	return syscall(SYS_ioctl, fd, request | UINT64_C(1) << 40, args);
}

static long by_type(int fd, unsigned long request, void *args)
{
	return syscall(SYS_ioctl, fd, (request & ~0xff00UL) | 'V' << 8, args);
}

static long by_x32(int fd, unsigned long request, void *args)
{
	return syscall(X32_IOCTL, fd, request, args);
}

static long call_compat(int fd, unsigned long request, void *args)
{
	long r = -ENOSYS;
#ifdef __x86_64__
	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(54L), "b"((long)fd), "c"((long)(uint32_t)request), "d"(args)
			 : "memory", "r8", "r9", "r10", "r11");
#endif
	return (int)r;
}

static sigjmp_buf no_compat;

static void on_fault(int)
{
	siglongjmp(no_compat, 1);
}

/* All arguments have 32 bits: the memory of args is low. EOPNOTSUPP: to this kernel (without IA32_EMULATION) the
 * instruction is a fault. */
static long by_compat(int fd, unsigned long request, void *args)
{
	struct sigaction catch = { .sa_handler = on_fault }, before;
	volatile long r = -ENOSYS;

	must(sigaction(SIGSEGV, &catch, &before) == 0, "sigaction");
	if (sigsetjmp(no_compat, 1) == 0)
		r = call_compat(fd, request, args);
	else
		r = -EOPNOTSUPP;
	must(sigaction(SIGSEGV, &before, NULL) == 0, "sigaction");
	if (r >= 0)
		return r;
	errno = (int)-r;
	return -1;
}

/* The only requests of io_uring that reach a driver are those of IORING_OP_URING_CMD. */
static long by_uring(int fd, unsigned long request, void *args)
{
	struct io_uring_params params = { 0 };
	int ring = (int)syscall(SYS_io_uring_setup, 1, &params);
	struct io_uring_sqe *sqe;
	char *sq, *cq;
	int result;

	if (ring < 0)
		return -1;
	sq = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	cq = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
	sqe = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	must(sq != MAP_FAILED && cq != MAP_FAILED && sqe != MAP_FAILED, "uring");
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->off = (uint32_t)request;
	sqe->addr = (uintptr_t)args;
	*(uint32_t *)(void *)(sq + params.sq_off.array) = 0;
	*(uint32_t *)(void *)(sq + params.sq_off.tail) += 1;
	must(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1,
	     "uring");
	result = ((struct io_uring_cqe *)(void *)(cq + params.cq_off.cqes))->res;
	close(ring);
	errno = result < 0 ? -result : 0;
	return result < 0 ? -1 : 0;
}

static int make(struct state *state, call_t call, uint32_t type)
{
	struct kfd_ioctl_create_queue_args *args;
	char *memory = mmap(NULL, RING + 8192, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	char *ring = memory + 4096;

	must(memory != MAP_FAILED, "memory");
	args = (void *)memory;
	*args = (struct kfd_ioctl_create_queue_args){
		.gpu_id = state->gpu_id,
		.ring_size = type == UINT32_MAX ? 1000 : RING, /* 1000 is no power of two */
		.queue_type = type == UINT32_MAX ? 0 : type,
		.queue_percentage = 100,
		.queue_priority = 7,
		.ring_base_address = (uintptr_t)ring,
		.read_pointer_address = (uintptr_t)ring + RING,
		.write_pointer_address = (uintptr_t)ring + RING + 64,
	};
	if (call(state->kfd, AMDKFD_IOC_CREATE_QUEUE, args) < 0)
		return errno;
	state->last = args->queue_id;
	return 0;
}

/* ---- commands ------------------------------------------------------------------------------- */

#define AQL KFD_IOC_QUEUE_TYPE_COMPUTE_AQL

static int queue(struct state *state)
{
	return make(state, by_ioctl, AQL);
}

static int sdma(struct state *state)
{
	return make(state, by_ioctl, KFD_IOC_QUEUE_TYPE_SDMA);
}

static int invalid(struct state *state)
{
	return make(state, by_ioctl, UINT32_MAX);
}

static int destroy(struct state *state)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = state->last };

	return ioctl(state->kfd, AMDKFD_IOC_DESTROY_QUEUE, &args) < 0 ? errno : 0;
}

static void *in_thread(void *state)
{
	return (void *)(intptr_t)queue(state);
}

static int thread(struct state *state)
{
	pthread_t id;
	void *r;

	must(pthread_create(&id, NULL, in_thread, state) == 0, "thread");
	must(pthread_join(id, &r) == 0, "join");
	return (int)(intptr_t)r;
}

static int reopen(struct state *state)
{
	open_kfd(state);
	return queue(state);
}

static int child(struct state *state, bool own)
{
	int answer[2], r;

	must(pipe(answer) == 0, "pipe");
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (own)
			open_kfd(state);
		r = queue(state);
		must(write(answer[1], &r, sizeof(r)) == sizeof(r), "answer");
		for (; own;)
			pause();
		_exit(0);
	}
	close(answer[1]);
	must(read(answer[0], &r, sizeof(r)) == sizeof(r), "the child");
	close(answer[0]);
	return r;
}

static int forked(struct state *state)
{
	return child(state, true);
}

static int inherited(struct state *state)
{
	return child(state, false);
}

static int high(struct state *state)
{
	return make(state, by_high_bits, AQL);
}

static int type(struct state *state)
{
	return make(state, by_type, AQL);
}

static int compat(struct state *state)
{
	return make(state, by_compat, AQL);
}

static int x32(struct state *state)
{
	return make(state, by_x32, AQL);
}

static int uring(struct state *state)
{
	return make(state, by_uring, AQL);
}

static int no_new_privs(struct state *)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? EPERM : 0;
}

static const struct command {
	const char *name;
	int (*run)(struct state *state);
} commands[] = {
	{ "queue", queue },     { "sdma", sdma },           { "invalid", invalid },
	{ "destroy", destroy }, { "thread", thread },       { "reopen", reopen },
	{ "fork", forked },     { "inherited", inherited }, { "high", high },
	{ "type", type },       { "compat", compat },       { "x32", x32 },
	{ "uring", uring },     { "setuid", no_new_privs },
};

static int step(struct state *state, const char *line)
{
	unsigned n;
	int r = 0;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(line, commands[i].name) == 0)
			return commands[i].run(state);
	must(sscanf(line, "flood %u", &n) == 1, line);
	while (n-- > 0)
		r = queue(state);
	return r;
}

int main(void)
{
	struct state state = { 0 };
	char line[64];
	int r;

	read_gpu_id(&state);
	open_kfd(&state);
	do {
		puts("ready");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return EXIT_SUCCESS;
		line[strcspn(line, "\n")] = '\0';
		r = step(&state, line);
		fprintf(stderr, "%s %s\n", line, r ? strerrorname_np(r) : "0");
	} while (true);
}
