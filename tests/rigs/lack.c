/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <link.h>
#include <sanitizer/lsan_interface.h>
#include <sys/auxv.h>
#endif

#include "check-cond.h"
#include "lack.h"

/* What these take the place of, and whether this thread has memory in any case: the sanitizer cannot
 * start a thread without. */
/* Runs before the sanitizer has begun, too. */
#define UNSANITIZED __attribute__((no_sanitize("address")))

#if defined(__SANITIZE_ADDRESS__)
#define LACK_OWN(name) __interceptor_##name
#define LACK_SPARED (gettid() != getpid())
#else
#define LACK_OWN(name) __libc_##name
#define LACK_SPARED false
#endif

void *LACK_OWN(malloc)(size_t size);
void *LACK_OWN(calloc)(size_t n, size_t size);
void *LACK_OWN(realloc)(void *p, size_t size);

atomic_long lack_left = -1;

UNSANITIZED static bool denied(void)
{
	if (lack_left < 0 || LACK_SPARED || lack_left-- > 0)
		return false;
	errno = ENOMEM;
	return true;
}

#if defined(__SANITIZE_ADDRESS__)
/* LeakSanitizer leaves out what the dynamic loader itself allocates. Here it would take these functions for
 * the ones that do. */
UNSANITIZED static bool is_loader(const void *caller)
{
	uintptr_t base = getauxval(AT_BASE), at = (uintptr_t)caller;
	const ElfW(Ehdr) *header = (const void *)base;
	const ElfW(Phdr) * part;

	if (base == 0 || at < base)
		return false;
	part = (const void *)(base + header->e_phoff);
	for (unsigned i = 0; i < header->e_phnum; i++)
		if (part[i].p_type == PT_LOAD &&
		    at - base < (uintptr_t)(part[i].p_vaddr + part[i].p_memsz))
			return true;
	return false;
}

UNSANITIZED static void *lack_given(void *p, const void *caller)
{
	if (p && is_loader(caller))
		__lsan_ignore_object(p);
	return p;
}
#else
UNSANITIZED static void *lack_given(void *p, const void *caller)
{
	(void)caller;
	return p;
}
#endif

UNSANITIZED void *malloc(size_t size)
{
	return denied() ? NULL : lack_given(LACK_OWN(malloc)(size), __builtin_return_address(0));
}

UNSANITIZED void *calloc(size_t n, size_t size)
{
	return denied() ? NULL : lack_given(LACK_OWN(calloc)(n, size), __builtin_return_address(0));
}

UNSANITIZED void *realloc(void *p, size_t size)
{
	return denied() ? NULL
			: lack_given(LACK_OWN(realloc)(p, size), __builtin_return_address(0));
}

/* The C library's call malloc(), the sanitizer's do not. */
#if defined(__SANITIZE_ADDRESS__)
void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, bytes);
}
#endif

bool lack_spares_strings;

char *strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = lack_spares_strings ? LACK_OWN(malloc)(size) : malloc(size);

	return copy ? memcpy(copy, text, size) : NULL;
}

unsigned lack_each(const char *what, int (*once)(long allocations))
{
	unsigned failures = 0;

	for (long i = 0; i < LACK_MOST; i++) {
		int r = once(i);
		bool enough = lack_left >= 0;

		lack_left = -1;
		CHECK(r == 0 || (r == -ENOMEM && !enough));
		failures += r != 0;
		if (enough) {
			printf("%s: %ld allocations, %u failures\n", what, i, failures);
			fflush(stdout);
			return failures;
		}
	}
	CHECK(!"unbounded");
	return 0;
}
