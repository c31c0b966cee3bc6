// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events of the first GPU that is not there, which the driver sends to those who subscribed: what is
 * written to /sys/module/amdgpu/parameters/raise happens. amdgpu calls the same functions of amdkfd.
 *	throttle       it is too hot
 *	evict PID      the queues of a process are taken off all GPUs
 *	restore PID    they come back
 *	reset          it is reset: queues that it has do not come back
 */
#include <linux/module.h>
#include <linux/sched/mm.h>

#include "amdgpu.h"
#include "amdgpu_amdkfd.h"
#include "amdgpu_dpm.h"
#include "fake.h"
#include "kfd_priv.h"

#define TOO_HOT 1 /* a bit for each reason */

static atomic64_t throttled;

uint64_t amdgpu_dpm_get_thermal_throttling_counter(struct amdgpu_device *adev)
{
	return atomic64_read(&throttled);
}

static int move_queues(int number, bool evict)
{
	struct pid *pid = find_get_pid(number);
	struct task_struct *task = get_pid_task(pid, PIDTYPE_PID);
	struct mm_struct *mm = task ? get_task_mm(task) : NULL;
	int r = -ESRCH;

	if (mm) {
		r = evict ? kgd2kfd_quiesce_mm(mm, KFD_QUEUE_EVICTION_TRIGGER_USERPTR) :
			    kgd2kfd_resume_mm(mm);
		mmput(mm);
	}
	if (task)
		put_task_struct(task);
	put_pid(pid);
	return r;
}

static int reset(struct kfd_dev *kfd)
{
	int r = kgd2kfd_pre_reset(kfd CAUSE);

	return r < 0 ? r : kgd2kfd_post_reset(kfd);
}

static int raise(const char *text, const struct kernel_param *parameter)
{
	struct kfd_dev *kfd = fake_card_first()->adev->kfd.dev;
	int pid;

	if (sysfs_streq(text, "throttle")) {
		atomic64_inc(&throttled);
		kgd2kfd_smi_event_throttle(kfd, TOO_HOT);
		return 0;
	}
	if (sysfs_streq(text, "reset"))
		return reset(kfd);
	if (sscanf(text, "evict %d", &pid) == 1)
		return move_queues(pid, true);
	if (sscanf(text, "restore %d", &pid) == 1)
		return move_queues(pid, false);
	return -EINVAL;
}

static const struct kernel_param_ops operations = { .set = raise };
module_param_cb(raise, &operations, NULL, 0200);
