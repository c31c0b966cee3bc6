#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# AMD's user space, unmodified, on the emulated driver. Arguments: the client programs.

clients=()
for path; do clients+=("$(realpath "$path")"); done
cd "$GPUARB_ROOT/tests/kfdsim" || exit 1
# shellcheck source=tests/kfdsim/rig.sh
. ./rig.sh
rig_need jq
rig_need_kfdsim
state=/sys/kernel/debug/kfdsim/state

# The client of that layer; nothing where it was not built.
client()
{
	local path
	for path in "${clients[@]}"; do
		[ "${path##*/}" != "client-$1" ] || echo "$path"
	done
}

# leaves CODE PROFILE COMMAND…: what the emulated driver says after it is in $dir/out, what the
# command printed in $dir/err.
leaves()
{
	local code=$1 profile=$2
	shift 2
	# shellcheck disable=SC2016 # of the inner shell
	ends "$code" kfdsim --gpu "$profile" -- sh -c '
		"$@" >&2; code=$?; cat '$state'; exit $code' sh "$@"
}

# Profile, target, CUs, what HIP counts, and what ROCr has to be told.
profiles='radeon-vii gfx906 60 60 -
vega10 gfx900 64 64 -
mi210 gfx90a 104 104 -
v620 gfx1030 72 36 -
rx6900xt gfx1030 80 40 -
mi300x-cpx gfx90a 38 38 HSA_OVERRIDE_GFX_VERSION=9.0.10'
# The other front end is slower, and the driver behind it the same.
[ "$front" = fuse ] || profiles=$(head -n 1 <<<"$profiles")

thunk=$(client thunk)
hsa=$(client hsa)
hip=$(client hip)
[ -n "$thunk$hsa$hip" ] || { echo 'skipped: neither libhsakmt nor ROCr nor HIP'; exit 77; }

# libhsakmt: a masked queue among others, and what each had.
thunk_works()
{
	leaves 0 "$1" "$thunk" --streams 1 --masked 0x3ff00ff --high
	err_has 'device 0: node 1, '
	json '.processes | length == 1'
	json '.processes[0] | .made == 3 and .peak == 3 and .alive == false'
	json '.processes[0].queues | map(.type) == ["compute", "compute", "compute"]'
	json '.processes[0].queues | map(.mask) == [null, "0x3ff00ff", null]'
	json '.processes[0].queues | map(.priority) == [7, 7, 15]'
	json '.gpus[0] | .peak_queues == 3 and .compute_queues == 0'
}

# ROCr: its own utility queue comes first; packets retire; who sleeps on a signal is woken.
hsa_works()
{
	leaves 0 "$1" env "$4" "$hsa" --streams 1 --masked 0x3ff00ff --high --work
	err_has "$2, $3 CUs"
	json '.processes[0] | .made == 4 and .alive == false'
	json '.processes[0].queues | map(.mask) == [null, null, "0x3ff00ff", null]'
	json '.processes[0].queues[3].priority | . == 15 or . == 11' # 11 from ROCr 6.4 on
	json '.processes[0].queues[1:] | all(.packets >= 1)'
}

# An invalid packet stops its queue; ROCr calls the queue's callback back.
hsa_is_told()
{
	leaves 0 "$1" env "$2" "$hsa" --broken
	err_has 'queue error: 0x1009' # HSA_STATUS_ERROR_INVALID_PACKET_FORMAT
	json '[.processes[0].queues[] | select(.stopped) | .note] == ["AQL packet of type 47"]'
}

rocminfo_works()
{
	shows "$2" kfdsim --gpu "$1" -- env "$4" rocminfo
	out_has "Compute Unit:            $3"
}

# HIP: streams of all kinds, and memory that comes back as it was. Beside the four there are the
# utility queue and the one of the null stream. It counts WGPs where there are such.
hip_works()
{
	leaves 0 "$1" env "$4" "$hip" --streams 2 --masked 0x3ff00ff --high --work --copy
	err_has "$2"
	err_has "$5 CUs"
	err_has 'copy: the same'
	json '.processes[0].queues | map(select(.type == "compute")) | length == 6'
	# A bit of a stream's mask is a WGP from HIP 5.7 on.
	json '[.processes[0].queues[] | select(.mask == "0x3ff00ff" or .mask == "'"$6"'")] | length == 1'
	json '[.processes[0].queues[] | select(.type == "compute" and .priority >= 11)]
		| length == 1'
	json '[.processes[0].queues[] | .copied] | add >= 2097152'
	json '.gpus[0] | .compute_queues == 0 and .sdma_queues == 0 and .processes == 0'
}

while read -r profile target cus counted override; do
	[ "$override" != - ] || override=NOTHING=
	[ -z "$thunk" ] || thunk_works "$profile" "$target" "$cus"
	[ -z "$hsa" ] || hsa_works "$profile" "$target" "$cus" "$override"
	[ -z "$hsa" ] || hsa_is_told "$profile" "$override"
	[ "$cus" = "$counted" ] && mask=0x3ff00ff || mask=0xfffff0000ffff
	[ -z "$hip" ] || hip_works "$profile" "$target" "$cus" "$override" "$counted" "$mask"
	! command -v rocminfo >/dev/null || rocminfo_works "$profile" "$target" "$cus" "$override"
done <<<"$profiles"

# The driver of Linux 6.12 looks at every buffer of a queue.
kfd_1_17=(kfdsim --kfd 1.17 --gpu mi210 --)
[ -z "$thunk" ] || ends 0 "${kfd_1_17[@]}" "$thunk" --streams 1 --masked 0x3ff00ff --high
[ -z "$hip" ] || ends 0 "${kfd_1_17[@]}" "$hip" --streams 1 --masked 0x3ff00ff --work --copy

# Two GPUs: each program's queues are where it asked for them.
if [ -n "$hip" ]; then
	# shellcheck disable=SC2016
	ends 0 kfdsim --gpu radeon-vii --gpu mi210 -- sh -c '
		"$1" --streams 1 --device 1 --work >&2 && cat '$state sh "$hip"
	json '.processes[0].queues | all(.gpu == "0000:04:00.0")'
	json '.processes[0].peaks == {"0000:03:00.0": 0, "0000:04:00.0": 2}'

	# Eight at once, each with a mask of its own.
	# shellcheck disable=SC2016
	ends 0 kfdsim --gpu radeon-vii -- bash -c '
		for i in {0..7}; do
			"$1" --masked "$(printf 0x%x $((0xff << i * 4)))" --work --copy >&2 &
			pids+=($!)
		done
		for pid in "${pids[@]}"; do wait "$pid" || exit 1; done
		cat '$state sh "$hip"
	json '.processes | length == 8 and all(.alive == false)'
	json '[.processes[].queues[] | select(.mask) | .mask] | unique | length == 8'
	json '.gpus[0] | .peak_processes >= 2 and .processes == 0'
fi

# A client that is killed leaves nothing as soon as it is gone, or what it had stays for as long
# as was asked for.
await=$GPUARB_ROOT/tests/rigs/await.sh
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
for program in $thunk $hsa $hip; do
	ends 0 kfdsim --gpu radeon-vii -- bash -c "$killed" sh "$program" true "$await"
	json '.gpus[0] | .compute_queues == 0 and .peak_queues >= 2'
	ends 0 kfdsim --gpu radeon-vii --teardown 50 -- bash -c "$killed" sh "$program" true "$await"
	json '.gpus[0].compute_queues == 0'
	ends 0 kfdsim --gpu radeon-vii --teardown 600000 -- bash -c "$killed" sh "$program" false "$await"
	json '.gpus[0].compute_queues >= 2'
done
rig_done
