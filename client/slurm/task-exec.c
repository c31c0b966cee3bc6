/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/slurm/task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/base.h"

/* task_init is nearly the last step before Slurm executes the command as well. Slurm runs TaskProlog after it. */
int task_wrap(spank_t spank, const char **words, size_t n)
{
	_cleanup_(freep) char **all = NULL;
	char **command, **environment;
	int count;

	if (spank_get_item(spank, S_JOB_ARGV, &count, &command) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS) {
		slurm_error("gpuarb: Slurm does not tell the command of the task");
		return -1;
	}
	all = calloc(n + (size_t)count + 1, sizeof(*all));
	if (!all) {
		slurm_error("gpuarb: out of memory");
		return -1;
	}
	memcpy(all, words, n * sizeof(*all));
	memcpy(all + n, command, (size_t)count * sizeof(*all));
	execve(all[0], all, environment);
	slurm_error("gpuarb: cannot start %s: %s", words[0], strerror(errno));
	return -1;
}
