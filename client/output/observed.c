/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/observed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/base.h"

#define GENERATIONS_MAX 32U

/* All rows, however many there are; they may grow while they are read. */
static int read_uses(struct hw *hw, struct seen *ret)
{
	for (;;) {
		int n = hw_kfd.use(hw, ret->uses, ret->n);
		struct hw_use *more;

		if (n < 0 || (size_t)n <= ret->n) {
			ret->n = n < 0 ? 0 : (size_t)n;
			return 0;
		}
		more = reallocarray(ret->uses, (size_t)n + 16, sizeof(*more));
		if (!more)
			return -ENOMEM;
		ret->uses = more;
		ret->n = (size_t)n + 16;
	}
}

int seen_read(const char *sys, const char *proc, struct seen *ret)
{
	struct diagnostics diagnostics = { 0 };
	struct seen seen = { 0 };
	struct hw *hw = NULL;
	int r;

	snprintf(seen.proc, sizeof(seen.proc), "%s", proc);
	r = hw_kfd.open(sys, &hw, &diagnostics);
	diagnostics_done(&diagnostics);
	r = r < 0 ? 0 : read_uses(hw, &seen);
	hw_kfd.close(hw);
	if (r < 0) {
		seen_done(&seen);
		return r;
	}
	*ret = seen;
	return 0;
}

void seen_done(struct seen *seen)
{
	free(seen->uses);
	seen->uses = NULL;
}

/* proc(5): "PID (COMMAND) STATE PPID …", where COMMAND may hold anything. 0: it is gone. */
static pid_t parent_of(const struct seen *seen, pid_t pid)
{
	char path[300], text[512];
	const char *end;
	ssize_t size;
	int fd, parent = 0;

	snprintf(path, sizeof(path), "%s/%d/stat", seen->proc, (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (size <= 0)
		return 0;

	text[size] = '\0';
	end = strrchr(text, ')');
	return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static const struct gpuarb_partition *part_on(const struct gpuarb_lease_info *lease,
					      const char *gpu)
{
	for (size_t i = 0; i < lease->n_partitions; i++)
		if (strcmp(lease->partitions[i].gpu, gpu) == 0)
			return &lease->partitions[i];
	return NULL;
}

/* How many leases on the GPU this process asked for; one of them is leases[*ret]. */
static unsigned owned(const struct gpuarb_lease_info *leases, size_t n, pid_t pid, const char *gpu,
		      size_t *ret)
{
	unsigned found = 0;

	for (size_t i = 0; i < n; i++) {
		if (leases[i].owner_pid != (uint32_t)pid || !part_on(&leases[i], gpu))
			continue;
		*ret = i;
		found++;
	}
	return found;
}

/* The lease of the nearest that asked for any; SIZE_MAX: of none that is known. */
static size_t lease_of(const struct seen *seen, const struct gpuarb_lease_info *leases, size_t n,
		       pid_t pid, const char *gpu)
{
	for (unsigned up = 0; pid > 1 && up < GENERATIONS_MAX; up++) {
		size_t lease = SIZE_MAX;
		unsigned found = owned(leases, n, pid, gpu, &lease);

		if (found > 0)
			return found == 1 ? lease : SIZE_MAX;
		pid = parent_of(seen, pid);
	}
	return SIZE_MAX;
}

bool seen_use(const struct seen *seen, const struct gpuarb_lease_info *leases, size_t n, size_t of,
	      size_t i, struct seen_use *ret)
{
	const struct gpuarb_partition *partition = &leases[of].partitions[i];
	pid_t owner = (pid_t)leases[of].owner_pid;
	struct seen_use use = { 0 };
	size_t any;

	if (partition->kfd_gpu_id == 0 || owner == 0 || parent_of(seen, owner) == 0 ||
	    owned(leases, n, owner, partition->gpu, &any) != 1)
		return false;

	for (size_t row = 0; row < seen->n; row++) {
		const struct hw_use *has = &seen->uses[row];

		if (has->kfd_gpu_id != partition->kfd_gpu_id ||
		    lease_of(seen, leases, n, has->pid, partition->gpu) != of)
			continue;
		use.queues += has->queues;
		use.sdma_queues += has->sdma_queues;
		use.processes += has->queues > 0;
	}
	*ret = use;
	return true;
}
