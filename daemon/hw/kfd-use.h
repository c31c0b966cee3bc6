/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The use of GPUs by processes in sysfs: the members of struct hw_ops for hw_kfd. */

#include "hw/hw.h"
#include "hw/kfd-read.h"

/* AMD GPUs as the kernel driver amdkfd shows them in sysfs. /dev/kfd is never opened: a process
 * that has it open prevents changes of the partition mode. */
struct hw {
	struct kfd_dir sys;
	char maps[512]; /* what gpuarb-harvest wrote; "": nothing did */
};

int kfd_processes(struct hw *hw, struct hw_listing **listing, unsigned *steps, struct hw_pid **ret);
void kfd_end_listing(struct hw_listing *listing);
int kfd_read_process(struct hw *hw, pid_t pid, struct hw_process **process, unsigned *steps,
		     const struct hw_use **ret);
void kfd_leave_process(struct hw_process *process);
void kfd_forget_process(struct hw_process *process);
int kfd_use(struct hw *hw, struct hw_use *uses, size_t max);
