// SPDX-License-Identifier: LGPL-2.1-or-later
/* amdgpu's parameters that amdkfd reads, and names. */
#include <linux/module.h>

#include "amdgpu.h"
#include "amdgpu_amdkfd.h"

int sched_policy = KFD_SCHED_POLICY_NO_HWS;
module_param(sched_policy, int, 0444);
int hws_max_conc_proc = -1;
module_param(hws_max_conc_proc, int, 0444);
int max_num_of_queues_per_device = 128;
module_param(max_num_of_queues_per_device, int, 0444);

int cwsr_enable = 1;
int send_sigterm;
int ignore_crat;
int halt_if_hws_hang;
int queue_preemption_timeout_ms = 9000;
int debug_largebar;
int amdgpu_exp_hw_support;
int amdgpu_use_xgmi_p2p;
int amdgpu_no_queue_eviction_on_vm_fault;
int amdgpu_emu_mode;
uint amdgpu_sdma_phase_quantum = 32;
bool hws_gws_support;
bool debug_evictions;

const char *amdgpu_asic_name[CHIP_LAST + 1] = { [0 ... CHIP_LAST] = "FAKE" };
