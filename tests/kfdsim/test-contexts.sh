#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-contexts.sh QUEUES: gpuarbd counts the queues of all contexts that a process has in the driver of
# Linux 7.2, and reads their masks from the descriptors as that driver prints them.
set -u

if [ "${INSIDE:-}" != yes ]; then
	. "${0%/*}/rig.sh"
	rig_need jq dbus-daemon
	play --kfd 1.23 --gpu radeon-vii -- "$@"
	ends 1 kfdsim --kfd 1.17 --gpu radeon-vii -- sh -c 'echo context 1 | "$0" 0' "$(realpath "$1")"
	out_has 'context: Inappropriate ioctl'
	rig_done
fi

queues=$1
. "$GPUARB_ROOT/tests/kfdsim/stage.sh"
printf '[daemon]\nbackend = kfd\naudit-interval = 100ms\n' >"$dir/gpuarbd.conf"
start --sysfs=/sys --debugfs=/sys/kernel/debug

# says LINE ANSWER: what the program answers to the line.
says()
{
	local answer=
	echo "$1" >&"${in[made]}"
	read -r -t "$patience" answer <&"${from[made]}"
	[ "$answer" = "$2" ] || complain "$1: '$answer', not '$2'"
}

# has JQ: until gpuarbd sees that of the GPU.
has()
{
	said='gpuarbctl status --json'
	await_so "$1" gpu_has "$1"
}
gpu_has() { "$GPUARBCTL" status --json 2>"$dir/err" | tee "$dir/out" | jq -en "input | .gpus[0] | $1" >/dev/null 2>&1; }
uses() { has ".unmanaged | length == 1 and .[0].pid == ${pid[made]} and .[0].queues == $1"; }

begin made "$queues" 1
read -r -t "$patience" _ <&"${from[made]}"
uses 1
says 'context 2' 'made 2'
uses 3
[ "$(cd /sys/class/kfd/kfd/proc/"${pid[made]}" && echo context_*/queues/*)" = \
	'context_0/queues/0 context_0/queues/1' ] || complain 'sysfs does not have the queues of the context'
driver '[.processes[] | select(.alive) | [.queues[] | select(.alive).id]] == [[0], [0, 1]]'
driver '.gpus[0].processes == 2'
says 'mask 000000ff 00000000' masked
ends 0 slots "$vii" --json
json_out '[.[0].pipe_list[].slots[] | select(.active) | .pid] | length == 3'
says leave left
[ ! -e /sys/class/kfd/kfd/proc/"${pid[made]}"/context_0 ] || complain "the context is still there"
uses 1
leave made
has '.unmanaged == []'
finish
