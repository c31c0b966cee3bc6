// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events of the first GPU that is not there, which the driver sends to those who subscribed: what is
 * written to /sys/module/amdgpu/parameters/raise happens. amdgpu calls the same functions of amdkfd.
 *	throttle       it is too hot
 *	evict PID      the queues of a process are taken off all GPUs
 *	restore PID    they come back
 *	fault PID      work of a process has accessed memory that it does not have
 *	reset          it is reset: queues that it has do not come back
 */
#include <linux/module.h>
#include <linux/sched/mm.h>

#include "amdgpu.h"
#include "amdgpu_amdkfd.h"
#include "amdgpu_dpm.h"
#include "fake.h"
#include "amdgpu_vm.h"
#include "kfd_priv.h"
#include "kfd_smi_events.h"

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

/* The process by its address space on the GPU. */
struct amdgpu_task_info *amdgpu_vm_get_task_info_pasid(struct amdgpu_device *adev, u32 pasid)
{
	struct kfd_process *process = kfd_lookup_process_by_pasid(pasid);
	struct amdgpu_task_info *info = process ? kzalloc(sizeof(*info), GFP_KERNEL) : NULL;

	if (info) {
		info->pid = process->lead_thread->pid;
		info->tgid = process->lead_thread->tgid;
		get_task_comm(info->task_name, process->lead_thread);
	}
	if (process)
		kfd_unref_process(process);
	return info;
}

void amdgpu_vm_put_task_info(struct amdgpu_task_info *info)
{
	kfree(info);
}

/* The driver's handler of the interrupt calls the same. */
static int fault(struct kfd_dev *kfd, int number)
{
	struct pid *pid = find_get_pid(number);
	struct kfd_process *process = pid ? kfd_lookup_process_by_pid(pid) : NULL;

	put_pid(pid);
	if (!process)
		return -ESRCH;
	kfd_smi_event_update_vmfault(FIRST_NODE(kfd), process->pasid);
	kfd_unref_process(process);
	return 0;
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
	if (sscanf(text, "fault %d", &pid) == 1)
		return fault(kfd, pid);
	if (sscanf(text, "evict %d", &pid) == 1)
		return move_queues(pid, true);
	if (sscanf(text, "restore %d", &pid) == 1)
		return move_queues(pid, false);
	return -EINVAL;
}

static const struct kernel_param_ops operations = { .set = raise };
module_param_cb(raise, &operations, NULL, 0200);
