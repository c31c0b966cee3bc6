/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "kfdsim/driver/ioctl.h"

/* What ROCr tells the driver for debuggers, and the debugger's own requests. There is no debugger:
 * what it would be refused is refused so (kfd_ioctl_set_debug_trap(), Linux 6.12). */

#define MODE_ENABLE 1U
#define TRAP_ENABLE 0U

int ioctl_runtime_enable(const struct sim_call *call, void *argument)
{
	const struct sim_runtime_enable_args *args = argument;
	struct sim_process *process = call->process;

	if (!(args->mode_mask & MODE_ENABLE)) {
		process->runtime_enabled = false;
		return 0;
	}
	if (process->runtime_enabled)
		return -EBUSY;
	if (process->queues)
		return -EEXIST;
	process->runtime_enabled = true;
	return 0;
}

int ioctl_dbg_trap(const struct sim_call *call, void *argument)
{
	const struct sim_dbg_trap_args *args = argument;
	const struct sim_process *target;

	if (call->process->context != SIM_CONTEXT_PRIMARY)
		return -EOPNOTSUPP;
	target = sim_find_process(call->sim, (pid_t)args->pid);
	if (!target)
		return -ESRCH;
	if (target != call->process) /* and is not traced by it */
		return -EPERM;
	return args->op == TRAP_ENABLE ? -EOPNOTSUPP : -EINVAL; /* not enabled */
}
