/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A sysfs tree of AMD GPUs for gpuarbd --sysfs=DIR, and processes that use them:
 *
 *   fake-sysfs DIR PROFILEDIR PROFILE…         builds it; prints a line NAME GPUID for each GPU
 *   fake-sysfs DIR --process PID GPUID QUEUES  PID has QUEUES compute queues on that GPU
 *   fake-sysfs DIR --gone PID                  PID has left
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake-sysfs.h"
#include "hw/hw.h"
#include "sys/config/profile.h"

#define CARDS 16U
#define GPUS (CARDS * 8U)

static int fail(const char *what, int error)
{
	fprintf(stderr, "fake-sysfs: %s: %s\n", what, strerror(-error));
	return EXIT_FAILURE;
}

static int number(const char *text, unsigned long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && *ret <= UINT32_MAX ? 0 : -EINVAL;
}

static int load(const char *profile_dir, char *names[], size_t n, struct gpu_info *cards,
		unsigned *partitions)
{
	struct diagnostics diagnostics = { 0 };
	struct profile profile;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		r = profile_load(profile_dir, names[i], &profile, &diagnostics);
		if (r < 0)
			break;
		cards[i] = profile.info;
		partitions[i] = profile.partitions;
	}
	for (size_t i = 0; i < diagnostics.n; i++)
		fprintf(stderr, "fake-sysfs: %s\n", diagnostics.list[i].text);
	diagnostics_done(&diagnostics);
	return r;
}

static int build(const char *dir, const char *profile_dir, char *names[], size_t n)
{
	struct gpu_info cards[CARDS], gpus[GPUS];
	unsigned partitions[CARDS];
	struct hw *hw;
	int n_gpus, r;

	if (n > CARDS)
		return fail("profiles", -E2BIG);
	r = load(profile_dir, names, n, cards, partitions);
	if (r < 0)
		return EXIT_FAILURE;
	r = hw_simulated_new(cards, partitions, n, &hw);
	if (r < 0)
		return fail("profiles", r);
	n_gpus = hw_list(hw, gpus, GPUS, NULL);
	hw_close(hw);

	r = fake_sysfs_build(dir, gpus, (size_t)n_gpus);
	if (r < 0)
		return fail(dir, r);
	for (size_t i = 0; i < (size_t)n_gpus; i++)
		printf("%s %u\n", gpus[i].name, fake_sysfs_gpu_id(&gpus[i], i));
	return EXIT_SUCCESS;
}

/* Queue ids start at what the GPU is, so that a process may be given several. */
static int use(const char *dir, const char *pid_text, const char *gpu_text, const char *queues_text)
{
	unsigned long pid, gpu_id, queues;
	int r;

	if (number(pid_text, &pid) < 0 || number(gpu_text, &gpu_id) < 0 ||
	    number(queues_text, &queues) < 0 || queues > 1000)
		return fail("--process PID GPUID QUEUES", -EINVAL);

	r = fake_sysfs_process(dir, (pid_t)pid);
	for (unsigned i = 0; i < queues && r == 0; i++)
		r = fake_sysfs_queue(dir, (pid_t)pid, (unsigned)gpu_id % 65536 * 1000 + i,
				     (uint32_t)gpu_id, 0);
	return r < 0 ? fail(dir, r) : EXIT_SUCCESS;
}

static int gone(const char *dir, const char *pid_text)
{
	unsigned long pid;
	int r;

	r = number(pid_text, &pid);
	if (r == 0)
		r = fake_sysfs_process_gone(dir, (pid_t)pid);
	return r < 0 ? fail("--gone PID", r) : EXIT_SUCCESS;
}

int main(int argc, char *argv[])
{
	if (argc == 6 && strcmp(argv[2], "--process") == 0)
		return use(argv[1], argv[3], argv[4], argv[5]);
	if (argc == 4 && strcmp(argv[2], "--gone") == 0)
		return gone(argv[1], argv[3]);
	if (argc >= 4 && argv[2][0] != '-')
		return build(argv[1], argv[2], argv + 3, (size_t)argc - 3);
	fprintf(stderr, "usage: fake-sysfs DIR PROFILEDIR PROFILE...\n"
			"       fake-sysfs DIR --process PID GPUID QUEUES\n"
			"       fake-sysfs DIR --gone PID\n");
	return 2;
}
