/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* LD_PRELOAD into gpuarbd, which the service manager starts: memory that runs out. GPUARB_LACK is a file of
 * one long, which the test maps: how many allocations succeed until one fails; negative: none fails. */

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What these take the place of: the C library's own, or that of AddressSanitizer where it is loaded. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
__attribute__((weak)) void *__interceptor_malloc(size_t size);
__attribute__((weak)) void *__interceptor_calloc(size_t n, size_t size);
__attribute__((weak)) void *__interceptor_realloc(void *p, size_t size);

#define LACK_OWN(name) (__interceptor_##name ? __interceptor_##name : __libc_##name)

static atomic_long *left;

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("GPUARB_LACK");
	int fd = path && strcmp(program_invocation_short_name, "gpuarbd") == 0
			 ? open(path, O_RDWR | O_CLOEXEC)
			 : -1;
	void *map;

	if (fd < 0)
		return;
	getpwnam("root"); /* glibc 2.36 crashes where it has no memory for its first look-up */
	map = mmap(NULL, sizeof(*left), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		left = map;
}

static bool denied(void)
{
	if (!left || *left < 0 || (*left)-- > 0)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return denied() ? NULL : LACK_OWN(malloc)(size);
}

void *calloc(size_t n, size_t size)
{
	return denied() ? NULL : LACK_OWN(calloc)(n, size);
}

void *realloc(void *p, size_t size)
{
	return denied() ? NULL : LACK_OWN(realloc)(p, size);
}
