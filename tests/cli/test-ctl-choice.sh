#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Which GPU programs get on simulated machines with several, and how many queues.
#
#	test-ctl-choice.sh GPUARBCTL
#
# GPUARBD, GPUARB_SOURCE_ROOT: the daemon, the source tree.
set -u
GPUARBCTL=${1:-${GPUARBCTL:?}}
: "${GPUARBD:?}" "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"
rig_need dbus-daemon dbus-monitor jq
rig_start_bus
printf '[tenant *]\nclass = realtime\n' >"$dir/tenants.d/all.conf"

# machine PROFILE,…: starts gpuarbd with these GPUs.
programs=()
trap 'kill "${programs[@]}" 2>/dev/null; rig_clean' EXIT
machine()
{
	rig_start_daemon --simulate="$1"
}

# program OPTION…: runs a program that stays; what run said is in $dir/err.
program()
{
	local line='' fd

	said="gpuarbctl run $*"
	exec {fd}< <(exec "$GPUARBCTL" run "$@" -- sh -c 'echo started; exec sleep 10000' 2>"$dir/err")
	programs+=("$!")
	read -r -t "$patience" line <&"$fd"
	exec {fd}<&-
	[ "$line" = started ] || complain "$said: it was not started"
}

# gpus: the number of leases on each GPU, by index.
gpus()
{
	local names
	names=$("$GPUARBCTL" gpus --json | jq -c 'map(.name)')
	"$GPUARBCTL" list --json | jq -c --argjson names "$names" \
		'[.[].partitions[].gpu] as $on | $names | map(. as $n | $on | map(select(. == $n)) | length)'
}

over()
{
	if [ ${#programs[@]} -gt 0 ]; then
		kill "${programs[@]}" 2>/dev/null
		wait "${programs[@]}" 2>/dev/null
	fi
	programs=()
	rig_stop_daemon
	rm -rf "$dir/run"
}

# planned: the GPU that the next plain program would get; next: the one that it gets.
planned()
{
	"$GPUARBCTL" plan --adaptable "$@" --json | jq -r '.partitions[0].gpu'
}
next()
{
	local wanted
	wanted=$(planned "$@")
	program "$@"
	check "plan shows the GPU that run gets: $wanted" test "$wanted" = \
		"$("$GPUARBCTL" list --json | jq -r 'max_by(.id).partitions[0].gpu')"
}
on() { check "$1 after: $said" test "$(gpus)" = "$1"; }

four=radeon-vii,radeon-vii,radeon-vii,radeon-vii

# ---- plain programs ------------------------------------------------------------------------
machine "$four"
for _ in 1 2 3 4; do next; done
on '[1,1,1,1]'
check 'each has a GPU' test "$("$GPUARBCTL" list --json | jq -c 'map(.partitions[0].cus)')" = '[60,60,60,60]'
for _ in 1 2 3 4; do program; done
on '[2,2,2,2]'
over

# ---- GPUs that are named ---------------------------------------------------------------------
printf '[daemon]\n[gpu 0000:03:00.0]\nany = no\n' >"$dir/gpuarbd.conf"
machine "$four"
shows 'only by' status
json=$("$GPUARBCTL" gpus --json | jq -c 'map(.named_only)')
check 'gpus --json has named_only' test "$json" = '[true,false,false,false]'
for _ in 1 2 3; do program; done
on '[0,1,1,1]'
program --gpu=0
program --gpu=2,3
on '[1,1,2,1]'
fails 1 "'9'" plan --gpu=0,9 --cus=15
ends 3 plan --gpu=any --cus=5 --gpu=any --cus=5 --gpu=any --cus=5 --gpu=any --cus=5
out_lacks '--gpu=0000:03:00.0 '
ends 3 plan --gpu=any --cus=5 --gpu=any --cus=5 --gpu=any --cus=5 --gpu=any --cus=5 --json
json_out '.refusals[0].reason == "absent" and .refusals[0].free == 3 and .refusals[0].total == 4'
json_out '.refusals[1].gpu == "0000:03:00.0" and .refusals[1].key == "any" and .refusals[1].fits == [5]'
ends 3 plan --gpu=all --cus=70
out_has '    --cus=60               fits an empty GPU'
for gpu in 1 2 3; do ends 0 drain "$gpu"; done
ends 3 plan --cus=5
out_has '--gpu=0000:03:00.0     fits now'
echo '[daemon]' >"$dir/gpuarbd.conf"
ends 0 reload
ends 0 status
out_lacks 'only by'
over

# ---- leases in the way of a request for both -----------------------------------------------------
machine radeon-vii,radeon-vii
hold reserve --gpu=0 --cus=60
first=$holder
hold reserve --gpu=1 --cus=60
ends 3 plan --gpu=all --cus=30
out_has 'cheaper'
json=$("$GPUARBCTL" list --json | jq -c 'map(.id)')
ends 3 plan --gpu=all --cus=30 --json
json_out ".refusals[0].end == $json"
let_go TERM "$holder"
let_go TERM "$first"
over

# ---- queues ------------------------------------------------------------------------------------
machine rx7900xtx
for _ in 1 2 3 4; do
	program
	err_has '1 queue'
done
on '[4]'
prints 'all(.[]; .partitions[0].queues == 2)' list --json
over

machine radeon-vii
program
err_lacks 'for HIP'
over
machine radeon-vii
export GPU_MAX_HW_QUEUES=1
program
err_lacks 'for HIP'
prints '.[0].partitions[0].queues == 2' list --json
export GPU_MAX_HW_QUEUES=2
program
prints '.[1].partitions[0].queues == 3' list --json
unset GPU_MAX_HW_QUEUES
over

# The GPU is chosen by CUs. Then it says how many queues.
machine radeon-vii,rx7900xtx
program
program
on '[1,1]'
prints 'map(.partitions[0] | [.gpu, .queues]) == [["0000:04:00.0", 2], ["0000:03:00.0", 5]]' list --json
over
machine mi210,rx7900xtx
prints '.partitions | map([.gpu, .queues]) | sort == [["0000:03:00.0", 5], ["0000:04:00.0", 2]]' \
	plan --adaptable --gpu=any --gpu=any --json
program
hold reserve --gpu=1 --cus=2 --queues=4
for wait in '' --wait; do
	prints '.partitions[0] | [.gpu, .queues] == ["0000:04:00.0", 2]' plan --adaptable $wait --json
done
program
on '[1,2]'
let_go TERM "$holder"
over

# As many as are fair may not fit beside a floor: the program is not sent to another GPU for them.
printf '[tenant floor]\nmatch-user = 65533\nreserved-queues = 4\nreserved-gpu = 0000:03:00.0\n' >"$dir/tenants.d/floor.conf"
machine mi210,radeon-vii
hold reserve --gpu=0 --cus=4 --queues=12
prints '.partitions[0] | [.gpu, .queues] == ["0000:03:00.0", 5]' plan --adaptable --json
let_go TERM "$holder"
list_becomes 'length == 0'
hold reserve --gpu=0 --cus=4 --queues=16
prints '.partitions[0] | [.gpu, .queues] == ["0000:03:00.0", 4]' plan --adaptable --json
let_go TERM "$holder"
rig_stop_daemon
rm "$dir/tenants.d/floor.conf"

# A floor keeps some of the free ones.
printf '[tenant floor]\nmatch-user = 65533\nreserved-queues = 4\n' >"$dir/tenants.d/floor.conf"
machine radeon-vii
hold reserve --cus=5 --queues=18
for wait in '' --wait; do
	prints '.verdict == "granted" and .partitions[0].queues == 2' plan --adaptable $wait --json
done
program
prints '.[1].partitions[0].queues == 2' list --json
let_go TERM "$holder"
over
rm "$dir/tenants.d/floor.conf"

# A GPU that grants nothing has no say, unless all do not. With --wait a program has no more queues than fit now.
machine radeon-vii,radeon-vii
ends 0 drain 0
ends 0 drain 1
follow reserve --adaptable --wait
waiter=$!
check "it waits: $line" test -n "$lease"
ends 0 undrain 1
list_becomes '.[0].partitions[0].queues == 5'
let_go TERM "$waiter"
ends 0 undrain 0
ends 0 drain 1
hold reserve --gpu=0 --cus=5 --queues=20
for wait in '' --wait; do
	prints '.verdict == "granted" and .partitions[0].queues == 2' plan --adaptable $wait --json
done
let_go TERM "$holder"

# Slots that are free do not make a request fit whose CUs are not.
rig_stop_daemon
machine v620
prints '.tenants[-1].gpus | map(.cus) == [72]' config explain "$dir/tenants.d" --json # 18 in each engine
hold reserve --class=besteffort --cus=60 --queues=6
ends 3 plan --class=besteffort --cus=20 --queues=4
out_has '    --queues=2             is free now, but the CUs may not fit'
ends 3 plan --class=besteffort --cus=20 --queues=2
out_has '    --cus=16               fits now'
let_go TERM "$holder"

# max-shader-engines counts shader engines, and leaves as many CUs here as the request needs engines.
rig_stop_daemon
echo 'max-shader-engines = 1' >>"$dir/tenants.d/all.conf"
machine radeon-vii
hold reserve --class=besteffort --cus=13
ends 3 plan --class=besteffort --cus=30
out_has '    --cus=2                is within the quota'
let_go TERM "$holder"

rig_done
