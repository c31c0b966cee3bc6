#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# gpuarbctl doctor on a machine with GPUs, with a daemon and without.
set -u

if [ "${INSIDE:-}" != yes ]; then
	. "${0%/*}/rig.sh"
	rig_need jq dbus-daemon dbus-monitor
	play --gpu radeon-vii --gpu v620 --
	# A driver that was built outside of the kernel has a version.
	ends 1 kfdsim --gpu v620 --module-version 6.16.13 -- "$GPUARBCTL" doctor
	out_has "amdgpu 6.16.13 "
	rig_done
fi

. "$GPUARB_ROOT/tests/cli/ctl-rig.sh"
vii=0000:03:00.0 v620=0000:04:00.0
printf '[daemon]\nbackend = kfd\n' >"$dir/gpuarbd.conf"
mkdir "$dir/tenants.d"
unset HSA_CU_MASK ROC_GLOBAL_CU_MASK HSA_CU_MASK_SKIP_INIT GPU_MAX_HW_QUEUES GPUARB_LEASE

# found CHECK RESULT TEXT: one of the findings is that.
found()
{
	jq -e --arg check "$1" --arg result "$2" --arg text "$3" 'any(.[]; .check == $check and
		.result == $result and (.found | contains($text)))' "$dir/out" >/dev/null ||
		complain "$said: $1 is not $2 with '$3'"
}

# ---- no daemon: the machine is told of all the same ------------------------------------------
export GPUARB_BUS_ADDRESS="unix:path=$dir/no-bus"
ends 1 doctor --json
found kernel ok 'KFD has 2 GPUs'
found permissions ok '/dev/kfd and 2 render nodes'
found scheduler ok 'sched_policy=0'
found slots ok "$vii (gfx906): 24 queue slots, 8 process slots"
found slots note "$v620 (gfx1030): 8 queue slots"
found debugfs ok /sys/kernel/debug/kfd
found bus problem "$dir/no-bus"
found daemon problem 'without a bus'

rig_start_bus
ends 1 doctor --json
found bus note "$dir/bus"
found daemon problem ''
json_out '.[] | select(.check == "daemon") | .do | test("systemctl start gpuarbd")'

# ---- with one, nothing is wrong ----------------------------------------------------------------
rig_start_daemon --sysfs=/sys
prints 'all(.[]; .result != "problem")' doctor --json
json_out 'all(.[]; keys == ["check", "do", "found", "means", "result"] and .means != null)'
json_out 'all(.[]; .result == "ok" or .do != null)'
json_out '[.[].check] | unique == ["bus", "daemon", "debugfs", "environment", "helpers", "hip",
	"installed", "isolation", "kernel", "memory", "permissions", "policy", "scheduler", "slots", "unit"]'
found daemon ok "gpuarbd $("$GPUARBCTL" --version | cut -d' ' -f2) answers"
check 'the doctor left nothing open' \
	jq -e '.processes | all(.alive == false and .made == 0)' /sys/kernel/debug/kfdsim/state

ends 0 doctor
out_has "ok       kernel: amdgpu of Linux $(uname -r); KFD has 2 GPUs"
out_has "note     slots: $v620"
out_has '         do: Request --queues and --processes'
out_has ' 0 problems'
shows 'ok       kernel: ' doctor --no-legend
out_lacks 'means: '
out_lacks ' 0 problems'

# ---- variables of this shell ------------------------------------------------------------------
export HSA_CU_MASK=$'0:\e[31m'
ends 1 doctor
out_has 'problem  environment: HSA_CU_MASK=0:\x1b[31m'
unset HSA_CU_MASK
GPU_MAX_HW_QUEUES=2 ends 0 doctor --json
found environment note GPU_MAX_HW_QUEUES=2
ends 0 run --gpu "$vii" --cus 15 -- "$GPUARBCTL" doctor --json
found environment ok 'in lease '

# ---- the system bus, and a daemon that has fewer GPUs than the machine --------------------------
address=$GPUARB_BUS_ADDRESS
unset GPUARB_BUS_ADDRESS
DBUS_SYSTEM_BUS_ADDRESS=$address ends 0 doctor --json
found bus ok 'the system bus'
export GPUARB_BUS_ADDRESS=$address
rig_stop_daemon
printf '[daemon]\nbackend = simulated\n' >"$dir/gpuarbd.conf"
rig_start_daemon --simulate=radeon-vii
ends 1 doctor --json
found daemon problem 'gpuarbd has 1 GPU, but KFD has 2'
rig_stop_daemon

# ---- GPUs are gone ------------------------------------------------------------------------------
echo "gone:$v620" >/sys/kernel/debug/kfdsim/control
ends 1 doctor --json
found kernel ok 'KFD has 1 GPU'
echo "gone:$vii" >/sys/kernel/debug/kfdsim/control
ends 1 doctor --json
# A problem where the machine behind has one of AMD's on its bus, a note elsewhere.
json_out 'any(.[]; .check == "kernel" and (.found | test("KFD has no(ne| GPU)")))'
found slots note 'no GPU'
rig_done
