/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/observed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/output/lease-text.h"
#include "util/base.h"
#include "util/fd.h"

#define GENERATIONS_MAX 32U

/* Reads all rows; their number can grow while they are read. */
static int read_uses(struct hw *hw, struct observed *ret)
{
	for (;;) {
		int n = hw_uses(hw, ret->uses, ret->n);
		struct hw_use *more;

		if (n < 0 || (size_t)n <= ret->n) {
			ret->n = n < 0 ? 0 : (size_t)n;
			return n < 0 ? n : 0;
		}
		more = reallocarray(ret->uses, (size_t)n + 16, sizeof(*more));
		if (!more)
			return -ENOMEM;
		ret->uses = more;
		ret->n = (size_t)n + 16;
	}
}

int observed_read(const char *sys, const char *proc, struct observed *ret)
{
	struct diagnostics diagnostics = { 0 };
	struct observed observed = { 0 };
	struct hw *hw = NULL;
	int r;

	snprintf(observed.proc, sizeof(observed.proc), "%s", proc);
	r = hw_kfd_open(sys, &hw, &diagnostics);
	diagnostics_done(&diagnostics);
	if (r >= 0)
		r = read_uses(hw, &observed);
	hw_close(hw);
	if (r == -ENOMEM) {
		observed_done(&observed);
		return r;
	}
	*ret = observed;
	return 0;
}

void observed_done(struct observed *observed)
{
	free(observed->uses);
	observed->uses = NULL;
}

/* proc(5): "PID (COMMAND) STATE PPID …"; COMMAND can contain any byte. 0: the process has ended. */
static pid_t parent_of(const struct observed *observed, pid_t pid)
{
	char path[300], text[512];
	const char *end;
	int parent = 0;

	snprintf(path, sizeof(path), "%s/%d/stat", observed->proc, (int)pid);
	if (read_text_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	end = strrchr(text, ')');
	return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* How many leases on the GPU the process requested; leases[*ret] is one of them. */
static unsigned owned(const struct gpuarb_lease_info *leases, size_t n, pid_t pid, const char *gpu,
		      size_t *ret)
{
	unsigned found = 0;

	for (size_t i = 0; i < n; i++) {
		if (leases[i].owner_pid != (uint32_t)pid || !partition_on_gpu(&leases[i], gpu))
			continue;
		*ret = i;
		found++;
	}
	return found;
}

/* The lease of the process or of its nearest ancestor with one; SIZE_MAX: unknown. */
static size_t lease_of(const struct observed *observed, const struct gpuarb_lease_info *leases,
		       size_t n, pid_t pid, const char *gpu)
{
	for (unsigned up = 0; pid > 1 && up < GENERATIONS_MAX; up++) {
		size_t lease = SIZE_MAX;
		unsigned found = owned(leases, n, pid, gpu, &lease);

		if (found > 0)
			return found == 1 ? lease : SIZE_MAX;
		pid = parent_of(observed, pid);
	}
	return SIZE_MAX;
}

bool observed_use(const struct observed *observed, const struct gpuarb_lease_info *leases, size_t n,
		  size_t of, size_t i, struct observed_use *ret)
{
	const struct gpuarb_partition *partition = &leases[of].partitions[i];
	pid_t owner = (pid_t)leases[of].owner_pid;
	struct observed_use use = { 0 };
	size_t any;

	if (partition->kfd_gpu_id == 0 || owner == 0 || parent_of(observed, owner) == 0 ||
	    owned(leases, n, owner, partition->gpu, &any) != 1)
		return false;

	for (size_t row = 0; row < observed->n; row++) {
		const struct hw_use *has = &observed->uses[row];

		if (has->kfd_gpu_id != partition->kfd_gpu_id ||
		    lease_of(observed, leases, n, has->pid, partition->gpu) != of)
			continue;
		use.queues += has->queues;
		use.sdma_queues += has->sdma_queues;
		use.sdma_xgmi_queues += has->sdma_xgmi_queues;
		use.processes += has->queues > 0;
		use.vram += has->vram;
	}
	*ret = use;
	return true;
}
