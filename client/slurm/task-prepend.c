/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/slurm/task.h"

int task_wrap(spank_t spank, const char **words, size_t n)
{
	spank_err_t error = spank_prepend_task_argv(spank, (int)n, words);

	if (error == ESPANK_SUCCESS)
		return 0;
	slurm_error("gpuarb: cannot start the task with %s: %s", words[0], spank_strerror(error));
	return -1;
}
