#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-stack.sh CLIENT-HIP: AMD's user space, unmodified, on the emulated driver: HIP, and with it ROCr and libhsakmt.

[ $# = 1 ] || { echo 'skipped: no HIP (libamdhip64-dev)'; exit 77; }
hip=$(realpath "$1")
cd "$GPUARB_ROOT/tests/kfdsim" || exit 1
# shellcheck source=tests/kfdsim/rig.sh
. ./rig.sh
rig_need jq
rig_need_kfdsim
state=/sys/kernel/debug/kfdsim/state

# leaves GPU… -- SCRIPT: what the emulated driver says after the script, in which $1 is the client, is in
# $dir/out; what it printed in $dir/err.
leaves()
{
	local gpus=()
	while [ "$1" != -- ]; do gpus+=(--gpu "$1"); shift; done
	ends 0 kfdsim "${gpus[@]}" -- bash -c "{ $2; } >&2 && cat $state" sh "$hip"
}

# Profile, target, what HIP counts, and what ROCr has to be told.
profiles='radeon-vii gfx906 60 NOTHING=
vega10 gfx900 64 NOTHING=
mi210 gfx90a 104 NOTHING=
v620 gfx1030 36 NOTHING=
rx6900xt gfx1030 40 NOTHING=
mi300x-cpx gfx90a 38 HSA_OVERRIDE_GFX_VERSION=9.0.10'
# The other front end is slower, and the driver behind it the same.
[ "$front" = fuse ] || profiles=$(head -n 1 <<<"$profiles")

# Streams of all kinds, and memory that comes back as it was. Beside the four there are the
# utility queue and the one of the null stream. HIP counts WGPs where there are such, and from HIP 5.7 on a bit
# of a stream's mask is a WGP.
# shellcheck disable=SC2016 # of the inner shell
while read -r profile target counted override; do
	leaves "$profile" -- "env $override"' "$1" --streams 2 --masked 0x3ff00ff --high --work --copy'
	err_has "$target"
	err_has "$counted CUs"
	err_has 'copy: the same'
	json_out '.processes | length == 1 and .[0].alive == false'
	json_out '.processes[0].queues | map(select(.type == "compute")) | length == 6'
	json_out '[.processes[0].queues[] | select(.mask == "0x3ff00ff" or .mask == "0xfffff0000ffff")] | length == 1'
	json_out '[.processes[0].queues[] | select(.type == "compute" and .priority >= 11)]
		| length == 1'
	json_out '[.processes[0].queues[] | .copied] | add >= 2097152'
	json_out '.gpus[0] | .compute_queues == 0 and .sdma_queues == 0 and .processes == 0'
	! command -v rocminfo >/dev/null || shows "$target" kfdsim --gpu "$profile" -- env "$override" rocminfo
done <<<"$profiles"

# The driver of Linux 6.12 looks at every buffer of a queue.
ends 0 kfdsim --kfd 1.17 --gpu mi210 -- "$hip" --streams 1 --masked 0x3ff00ff --work --copy

# Two GPUs: each program's queues are where it asked for them.
# shellcheck disable=SC2016
leaves radeon-vii mi210 -- '"$1" --streams 1 --device 1 --work'
json_out '.processes[0].queues | all(.gpu == "0000:04:00.0")'
json_out '.processes[0].peaks == {"0000:03:00.0": 0, "0000:04:00.0": 2}'

# Eight at once, each with a mask of its own.
# shellcheck disable=SC2016
leaves radeon-vii -- 'for i in {0..7}; do
		"$1" --masked "$(printf 0x%x $((0xff << i * 4)))" --work --copy &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || exit 1; done'
json_out '.processes | length == 8 and all(.alive == false)'
json_out '[.processes[].queues[] | select(.mask) | .mask] | unique | length == 8'
json_out '.gpus[0] | .peak_processes >= 2 and .processes == 0'

# A client that is killed leaves nothing as soon as it is gone, or what it had stays for as long
# as was asked for.
# shellcheck disable=SC2016
killed='
	coproc "$1" --streams 2 --hold
	pid=$COPROC_PID
	. "$3"
	await_line "${COPROC[0]}" ready
	test -d /sys/class/kfd/kfd/proc/$pid/queues/0 || exit 1
	kill -9 $pid
	wait $pid
	is_gone() { jq -e ".processes[0].alive == false and (.gpus[0].processes == 0) == $1" '$state' >/dev/null; }
	await_so "the program is gone" is_gone "$2"
	[ $2 = true ] || test -e /sys/class/kfd/kfd/proc/$pid/queues/0 || exit 1
	cat '$state
for teardown in 0 50 600000; do
	gone=$([ $teardown != 600000 ] && echo true || echo false)
	ends 0 kfdsim --gpu radeon-vii --teardown $teardown -- bash -c "$killed" sh "$hip" "$gone" \
		"$GPUARB_ROOT/tests/rigs/await.sh"
	json_out ".gpus[0] | .peak_queues >= 2 and (.compute_queues == 0) == $gone"
done
rig_done
