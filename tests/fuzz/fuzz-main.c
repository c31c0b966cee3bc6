/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What libFuzzer calls, and what all targets use. */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

static struct fuzz_target *first;
static const struct fuzz_target *chosen;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void fuzz_add(struct fuzz_target *target)
{
	target->next = first;
	first = target;
}

const struct fuzz_target *fuzz_find(const char *name)
{
	const struct fuzz_target *target = first;

	while (target && strcmp(target->name, name) != 0)
		target = target->next;
	return target;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *name = *argc > 0 ? strrchr((*argv)[0], '-') : NULL;

	chosen = name ? fuzz_find(name + 1) : NULL;
	if (chosen)
		return 0;
	fprintf(stderr, "%s: no target has this name: call it fuzz-NAME, with one of:\n",
		(*argv)[0]);
	for (const struct fuzz_target *target = first; target; target = target->next)
		fprintf(stderr, "%s\n", target->name);
	exit(EXIT_FAILURE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	chosen->run(data, size);
	return 0;
}

/* ---- what targets use -------------------------------------------------------------------- */

uint64_t fuzz_number(struct fuzz_input *input, size_t bytes)
{
	uint64_t number = 0;

	for (size_t i = 0; i < bytes && input->at < input->end; i++)
		number |= (uint64_t)*input->at++ << 8 * i;
	return number;
}

unsigned fuzz_below(struct fuzz_input *input, unsigned n)
{
	return (unsigned)fuzz_number(input, n > 256 ? 2 : 1) % n;
}

char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	CHECK(text);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

const char *fuzz_file(const uint8_t *data, size_t size)
{
	static char path[32];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("input", MFD_CLOEXEC);
		CHECK(fd >= 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	CHECK(ftruncate(fd, 0) == 0);
	CHECK(pwrite(fd, data, size, 0) == (ssize_t)size);
	return path;
}
