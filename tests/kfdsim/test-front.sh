#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# kfdsim as a program: its command line, its namespace, what it leaves behind. Arguments: test-kfd and
# under-listener.

kfd=$(realpath "$1") listener=$(realpath "$2")
cd "$GPUARB_ROOT/tests/kfdsim" || exit 1
# shellcheck source=tests/kfdsim/rig.sh
. ./rig.sh

# Wrong command lines say what is wrong, and need no privilege.
fails 2 'which GPUs? --gpu PROFILE' "$KFDSIM" -- true
fails 2 'no command' "$KFDSIM" --gpu mi210
fails 2 '--help lists' "$KFDSIM" --gpux mi210 -- true
many=()
for ((i = 0; i < 17; i++)); do many+=(--gpu mi210); done
fails 2 'many' "$KFDSIM" "${many[@]}" -- true
fails 2 '--kfd 1.12: wanted: 1.11' "$KFDSIM" --gpu mi210 --kfd 1.12 -- true
shows '--profiles DIR' "$KFDSIM" --help

rig_need setsid setpriv jq
rig_need_kfdsim
sim() { local code=$1; shift; ends "$code" kfdsim --gpu radeon-vii "$@"; }

# A program that opens /dev/kfd.
sim 0 -- "$kfd"

# Under another listener all but SMI events works.
ends 134 "$listener" "$KFDSIM" --gpu radeon-vii -- "$kfd" smi_events_come_by_a_descriptor
err_has AMDKFD_IOC_SMI_EVENTS
ends 0 "$listener" "$KFDSIM" --gpu radeon-vii -- "$kfd" every_thread_can_use_the_file

# Trouble with what was asked for.
fails 125 'radeon-vii' kfdsim --gpu radeon-viii -- true
sim 2 --fail nonsense -- true
err_has '--fail nonsense: '
ends 125 setpriv --reuid 65534 --regid 65534 --clear-groups \
	"$KFDSIM" --gpu radeon-vii -- true
err_has 'CAP_SYS_ADMIN'

# The command's end is kfdsim's.
sim 7 -- sh -c 'exit 7'
sim 137 -- sh -c 'kill -9 $$'
sim 127 -- "$dir/no-such-command"
err_has 'no-such-command'
sim 126 -- "$dir"
err_has 'Permission denied'

# The command stands where kfdsim stood, and reads its input.
cd "$dir" || exit 1
sim 0 -- pwd
out_is "$dir"
[ "$(echo hello | kfdsim --gpu radeon-vii -- cat)" = hello ] || complain 'standard input'

# What a program finds inside.
sim 0 -- sh -c 'ls /dev/dri; test -w /dev/kfd; ls /sys/class/kfd/kfd; ls /sys/class/net;
	cat /sys/devices/virtual/kfd/kfd/topology/nodes/1/name; lsmod;
	test -e /sys/devices/virtual/mem/null/dev; cat /sys/module/amdgpu/parameters/sched_policy;
	ls /sys/kernel/debug/kfdsim; cat /proc/self/mountinfo'
for name in renderD128 topology proc lo vega20 amdgpu control state; do
	out_has "$name"
done

# Linux 6.12 tells how large the area of a preempted queue is: here for 4 engines of 512 waves.
sim 0 --kfd 1.17 -- cat /sys/class/kfd/kfd/topology/nodes/1/properties
out_has 'ctl_stack_size 20480'

# Faults by the control file; a wrong one fails the write and says why.
sim 0 -- sh -c 'echo shift:1 >/sys/kernel/debug/kfdsim/control'
sim 1 -- sh -c 'echo nonsense >/sys/kernel/debug/kfdsim/control || exit 1'
err_has 'kfdsim: debug/kfdsim/control: '
sim 0 -- jq -es '.[0] | .timing == false and (.processes | length) == 0' /sys/kernel/debug/kfdsim/state

# Files that are not there, and directories that are none.
sim 0 -- sh -c '! cat /sys/class/kfd/kfd/nothing; ! ls /dev/kfd/x; ! touch /sys/class/kfd/kfd/x;
	! cat /sys/kernel/debug/kfd 2>/dev/null; ! mkdir /dev/dri/x; df /sys/class/kfd/kfd'

# Without a processor cache in sysfs libhsakmt finds no GPU: where the machine has none, kfdsim does.
sim 0 -- cat /sys/devices/system/cpu/cpu0/cache/index0/level /sys/devices/system/cpu/cpu0/topology/core_id

# Whoever the command leaves behind is ended.
sim 0 -- sh -c 'setsid sleep 1000 >/dev/null 2>&1 & echo $!'
! kill -0 "$(cat "$dir/out")" 2>/dev/null || complain 'a process was left behind'

# Programs that come and go leave no descriptor open in kfdsim.
# shellcheck disable=SC2016
sim 0 -- bash -c 'fds() { find /proc/$PPID/fd -type l | wc -l; }
	before=$(fds)
	for i in {1..50}; do (exec 3<>/dev/kfd); done
	. "$1"
	all_closed() { cat /sys/kernel/debug/kfdsim/state >/dev/null; [ "$(fds)" = "$before" ]; }
	await_so "kfdsim has closed the descriptors of the programs" all_closed' bash "$GPUARB_ROOT/tests/rigs/await.sh"

# SIGTERM and SIGINT end the command's group, and kfdsim after it. stop SIGNAL CODE TIMES SCRIPT
stop()
{
	local pid wanted=$2
	said="kfdsim, SIG$1 $3 times"
	coproc "$KFDSIM" --gpu radeon-vii -- sh -c "$4" 2>"$dir/err"
	pid=$COPROC_PID
	read -r _ <&"${COPROC[0]}"
	kill -s "$1" "$pid"
	[ "$3" = 1 ] || { read -r _ <&"${COPROC[0]}"; kill -s "$1" "$pid"; }
	wait "$pid"
	[ $? = "$wanted" ] || complain "$said: not $wanted"
}
: >"$dir/out"
stop TERM 143 1 'echo ready; exec sleep 1000'
stop INT 130 1 'echo ready; exec sleep 1000'
stop TERM 137 2 'trap "echo no" TERM; echo ready; while :; do sleep 0.01; done'

# Nothing of it is seen outside, neither now nor while it runs. Others mount beside it, elsewhere.
shopt -s nullglob
outside()
{
	awk '/kfdsim/ || $5 ~ "^/(dev|proc|sys)" && $5 !~ "^/dev/shm/"' /proc/self/mountinfo
	ls /sys/kernel/debug /dev
	ls -d /tmp/*kfdsim*
}
before=$(outside)
sim 0 -- sh -c 'nsenter -t '$$' -m -- cat /proc/self/mountinfo'
! grep -q kfdsim "$dir/out" || complain 'the mounts are seen outside'
diff <(echo "$before") <(outside) >"$dir/out" || complain 'something was left behind'
rig_done
