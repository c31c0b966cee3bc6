/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The seccomp filter of a capped lease: gpuarbd answers each call that creates a queue. */

#include <errno.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dbus/names.h"
#include "libgpuarb/connection/call.h"
#include "libgpuarb/lease/lease-calls.h"
#include "libgpuarb/lease/lease-handle.h"

/* 0: this architecture has no filter here. */
#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0U
#endif

#define IOCTL_32 54U        /* ioctl() of 32-bit x86 and ARM */
#define X32_BIT 0x40000000U /* in the number of a call of the x32 architecture */

/* AMDKFD_IOC_CREATE_QUEUE. KFD uses the number alone: a call with another type creates a queue, too.
 * It needs the first 40 bytes of its argument, which end with the GPU; ioctls of terminals and
 * sockets have no size. */
#define NUMBER 0x02U
#define TYPE 0x4b00U
#define SIZE_MIN (40U << 16)
#define NUMBER_BITS 0xffU
#define TYPE_BITS 0xff00U
#define SIZE_BITS 0x3fff0000U

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define AND(bits) BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits)
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define IF_LEAST(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, value, yes, no)
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)

/* The second argument of ioctl() is an unsigned int: the kernel ignores the upper half. */
static const struct sock_filter program[] = {
	LOAD(arch),
	IF_EQUAL(ARCHITECTURE, 4, 0),
	LOAD(nr), /* another architecture: KFD has the same calls for it */
	IF_EQUAL(IOCTL_32, 0, 1),
	RETURN(SECCOMP_RET_ERRNO | ENOSYS),
	RETURN(SECCOMP_RET_ALLOW),

	LOAD(nr),
	IF_LEAST(X32_BIT, 0, 1),
	RETURN(SECCOMP_RET_ERRNO | ENOSYS),
	IF_EQUAL(__NR_ioctl, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),

	LOAD(args[1]),
	AND(NUMBER_BITS),
	IF_EQUAL(NUMBER, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	LOAD(args[1]),
	AND(TYPE_BITS),
	IF_EQUAL(TYPE, 4, 0),
	LOAD(args[1]),
	AND(SIZE_BITS),
	IF_LEAST(SIZE_MIN, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	RETURN(SECCOMP_RET_USER_NOTIF),
};

/* Linux 5.19: once gpuarbd has read a call, only a deadly signal ends its wait. */
static int install(void)
{
	struct sock_filter copy[ARRAY_SIZE(program)];
	const struct sock_fprog filter = { ARRAY_SIZE(copy), copy };
	const unsigned flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	long fd;

	if (ARCHITECTURE == 0)
		return -EOPNOTSUPP;
	memcpy(copy, program, sizeof(copy));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		     flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &filter);
	if (fd < 0 && errno == EINVAL)
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
	return fd < 0 ? -errno : (int)fd;
}

static int fail_install(struct gpuarb_lease *lease, int r)
{
	if (r == -EBUSY)
		return fail(lease->gpuarb, r,
			    "lease %" PRIu64 ": this process is under a seccomp filter that has a "
			    "listener already, of another gpuarbctl run --cap or of a container "
			    "runtime: Linux allows one",
			    lease->info.id);
	if (r == -EINVAL || r == -ENOSYS)
		r = -EOPNOTSUPP;
	return fail(lease->gpuarb, r,
		    "lease %" PRIu64 ": cannot install a seccomp filter with a listener: %s",
		    lease->info.id, strerror(-r));
}

/* gpuarbd answers this call when the service manager keeps the listener, too. */
static int prove(struct gpuarb_lease *lease)
{
	if (syscall(SYS_ioctl, -1, SIZE_MIN | TYPE | NUMBER, NULL) < 0 && errno == EBADF)
		return 0;
	return fail(lease->gpuarb, -EIO, "lease %" PRIu64 ": gpuarbd does not cap its queues: %s",
		    lease->info.id,
		    errno == EPERM ? "this process is not bound to the lease"
				   : "it stopped while the lease was being capped");
}

static int cap(struct gpuarb_lease *lease)
{
	int listener = install(), r;

	if (listener < 0)
		return fail_install(lease, listener);
	r = call_simple(lease->gpuarb, lease_path(lease->info.id).text, GPUARB_INTERFACE_LEASE,
			"Cap", DBUS_TYPE_UNIX_FD, &listener);
	/* A listener of its own would let this process wait for itself. */
	close_fd(&listener);
	if (r >= 0)
		r = prove(lease);
	lease->capped = r >= 0;
	return r;
}

/* The lease was not granted in the answer to Reserve. An older daemon has no such property, and caps no
 * lease. */
static int ask(struct gpuarb_lease *lease, bool *ret)
{
	_cleanup_(free_message) DBusMessage *reply = NULL;
	dbus_bool_t wanted = FALSE;
	int r;

	r = call_property(lease->gpuarb, lease_path(lease->info.id).text, GPUARB_INTERFACE_LEASE,
			  "Cap", DBUS_TYPE_BOOLEAN, &reply, &wanted);
	*ret = r >= 0 && wanted;
	return r == -EOPNOTSUPP ? 0 : r;
}

GPUARB_EXPORT int gpuarb_lease_cap(struct gpuarb_lease *lease, bool always)
{
	bool wanted;
	int r = 0;

	HANDLE_BEGIN(lease, lease->gpuarb);
	wanted = always || lease->terms.cap;
	if (!always && !lease->terms_known)
		r = ask(lease, &wanted);
	if (r >= 0 && wanted)
		r = cap(lease);
	return handle_end(lease->gpuarb, r < 0 ? r : wanted);
}
