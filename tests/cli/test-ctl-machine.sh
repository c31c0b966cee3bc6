#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# gpuarbctl with unmanaged processes, with processes that draw, with an oversubscribed GPU, and without a
# GPU. Environment as for test-ctl.sh, and FAKE_SYSFS: fake-sysfs, FAKE_PROCFS: fake-procfs.
set -u
: "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"

rig_need dbus-daemon dbus-monitor jq
rig_start_bus
gpu_id=$("$FAKE_SYSFS" "$dir/sys" "$GPUARB_SOURCE_ROOT/conf/gpus" radeon-vii | cut -d' ' -f2)

# ---- an unmanaged process ----------------------------------------------------------------
"$FAKE_SYSFS" "$dir/sys" --process $$ "$gpu_id" 7
rig_start_daemon --sysfs="$dir/sys"
shows '17 of 24' status
out_has 'unmanaged'
out_has " $$ "
out_lacks OVERSUBSCRIBED
ends 0 gpus --json
json_out ".[0].unmanaged == [{pid: $$, uid: $(id -u), command: \"$(cat /proc/$$/comm)\", queues: 7}]"
json_out '.[0].oversubscribed == false'
prints '.partitions[0].queues == 5' plan --json
rig_stop_daemon

# ---- descriptors that cannot be read -----------------------------------------------------------
mkdir "$dir/debug"
rig_start_daemon --sysfs="$dir/sys" --debugfs="$dir/debug"
prints '.[0].masks_observed == null' gpus --json
unseen=$(jq -r '.[0].unseen' "$dir/out")
check 'the reason is told' grep -q mqds <<<"$unseen"
ends 0 status
out_has "0000:03:00.0: masks and priorities of queues are not observed: gpuarbd cannot read the hardware queue \
descriptors: $unseen"
hold reserve --cus=15
shows "hardware: $unseen" verify
ends 0 verify --json
json_out 'any(.[]; .check == "mask" and .result == "note" and (.found | endswith(": '"$unseen"'")))'
let_go TERM "$holder"
list_becomes 'length == 0'
rig_stop_daemon

# ---- a queue without a mask, of a process without a lease ---------------------------------------
"$FAKE_SYSFS" "$dir/sys" --gone $$
"$FAKE_SYSFS" "$dir/sys" --process $$ "$gpu_id" 1
mkdir "$dir/debug/kfd"
{
	printf 'Process %d PASID 0x8000:\n  Compute queue on device %x\n' $$ "$gpu_id"
	for ((row = 0; row < 64; row++)); do
		words=(00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000)
		[ "$row" != 2 ] || words[7]=ffffffff
		[ "$row" != 3 ] || words[0]=ffffffff words[2]=ffffffff words[3]=ffffffff
		printf '    %08x: %s\n' $((row * 32)) "${words[*]}"
	done
} >"$dir/debug/kfd/mqds"
printf '[daemon]\nunmasked = ignore\n' >"$dir/gpuarbd.conf"
printf '[tenant *]\nclass = guaranteed\n' >"$dir/tenants.d/10-all.conf"
rig_start_daemon --sysfs="$dir/sys" --debugfs="$dir/debug"
masks_are_observed() { "$GPUARBCTL" gpus --json | jq -en 'input | .[0].masks_observed != null' >/dev/null; }
await_so 'gpuarbd has read the masks' masks_are_observed
hold reserve --cus=15 --class=besteffort
shows "unmanaged: pid $$ (" verify
let_go TERM "$holder"
list_becomes 'length == 0'
hold reserve --cus=30 --class=guaranteed
ends 0 list --json
promised=$(jq '.[0].id' "$dir/out")
ends 9 verify --json
json_out 'map(select(.check == "unmanaged")) | map(.result) == ["note", "drift"]'
json_out ".[] | select(.result == \"drift\") | .lease == $promised and .gpu == \"0000:03:00.0\""
ends 9 verify "$promised"
out_has "unmanaged: pid $$ ("
out_has '30 of its CUs'
let_go TERM "$holder"
list_becomes 'length == 0'

# A plan assumes that no queue changes.
printf '[tenant p]\nmatch-user = %s\nclass = realtime\n' "$(id -u)" >"$dir/tenants.d/00-p.conf"
ends 0 reload
hold reserve --tenant=p --shader-engines=1
printf '%s\n' '[taskset]' 'preemption = 100us' 'activations = 0' 'queue-changes = 0' '[partition p]' \
	'[task t]' 'partition = p' 'period = 1s' 'wcet = 15:10ms' >"$dir/set.ini"
exec 7< <(exec timeout "$patience" "$GPUARBCTL" rt monitor "$dir/set.ini" --gpu=0 --json 2>"$dir/err")
monitor=$!
read -r -t "$patience" line <&7
check 'it watches' jq -e '.event == "watching"' <<<"$line"
"$FAKE_SYSFS" "$dir/sys" --process $$ "$gpu_id" 2
sed 1d "$dir/debug/kfd/mqds" >>"$dir/debug/kfd/mqds.queue"
cat "$dir/debug/kfd/mqds.queue" >>"$dir/debug/kfd/mqds"
cat <&7 >"$dir/out"
wait "$monitor"
check 'it ends with 9' test $? = 9
said='rt monitor'
json_out '.event == "violated" and .assumption == "queue-changes" and .bound == 0 and .observed == 1'
let_go TERM "$holder"
list_becomes 'length == 0'
rm "$dir/tenants.d/00-p.conf"
rig_stop_daemon
"$FAKE_SYSFS" "$dir/sys" --gone $$
"$FAKE_SYSFS" "$dir/sys" --process $$ "$gpu_id" 7
: >"$dir/gpuarbd.conf"
rm "$dir/tenants.d/10-all.conf"

# ---- processes that draw ---------------------------------------------------------------------
rig_start_daemon --sysfs="$dir/sys" --fdinfo="$dir/fdinfo.socket"
ends 0 status
prints '.[0].graphics == "unknown" and .[0].clients == []' gpus --json
rig_stop_daemon

mkfifo "$dir/ready"
"$FAKE_PROCFS" "$dir" "$$:5000000:2048" "$PPID:0:1024" >"$dir/ready" &
drawers=$!
read -r line <"$dir/ready"
check 'the processes draw' [ "$line" = ready ]
printf '[daemon]\ngraphics = refuse-realtime\n' >"$dir/gpuarbd.conf"
printf '[tenant *]\nclass = realtime\n' >"$dir/tenants.d/10-all.conf"
rig_start_daemon --sysfs="$dir/sys" --fdinfo="$dir/fdinfo.socket"
shows '0000:03:00.0  yes    0%   0%       0%   2.0M' status
out_has '0000:03:00.0  no     0%'
shows '0000:03:00.0  yes    0%' top
prints '.gpus[0].graphics == "drawn"' status --json
json_out ".gpus[0].clients[0] == {pid: $$, uid: $(id -u), command: \"$(cat /proc/$$/comm)\", lease: null,
	draws: true, gfx_share: 0, compute_share: 0, dma_share: 0, gfx_nsec: 5000000,
	compute_nsec: 0, dma_nsec: 0, vram: 2097152, gtt: 65536}"
json_out ".gpus[0].clients[1] | .pid == $PPID and (.draws | not)"
ends 3 plan --cus=15 --class=realtime --json
json_out '.refusals[0].reason == "graphics" and .refusals[0].processes[0].uid == '"$(id -u)"
ends 0 plan --cus=15 --class=besteffort
rig_stop_daemon
kill "$drawers"
wait "$drawers" 2>/dev/null
: >"$dir/gpuarbd.conf"
rm "$dir/tenants.d/10-all.conf"

# ---- default queues: half of the free ones, at most 5, at least 2 --------------------------
"$FAKE_SYSFS" "$dir/sys" --gone $$
"$FAKE_SYSFS" "$dir/sys" --process $$ "$gpu_id" 18
rig_start_daemon --sysfs="$dir/sys"
prints '.partitions[0].queues == 3' plan --json
prints '.partitions[0].queues == 4' plan --processes=2 --streams=0 --json
rig_stop_daemon

# ---- oversubscription ----------------------------------------------------------------------
"$FAKE_SYSFS" "$dir/sys" --gone $$
"$FAKE_SYSFS" "$dir/sys" --process $$ "$gpu_id" 30
rig_start_daemon --sysfs="$dir/sys"
shows 'OVERSUBSCRIBED' status
out_has '24 queue slots'
out_has "$$ ("
out_has '30 queues'
prints '.gpus[0].oversubscribed and .gpus[0].queue_slots_free == 0' status --json
ends 3 plan --cus=3
out_has 'oversubscribed'
rig_stop_daemon

# ---- several GPUs ----------------------------------------------------------------------------
rig_start_daemon --simulate=radeon-vii,rx7900xtx
ends 0 plan --cus=25% --json # a share is one of the GPU that is chosen
json_out '.partitions[0] | [.gpu, .cus] == ["0000:04:00.0", 24]'
prints '.partitions[0].cus == 24' plan --gpu=0000:04:00.0 --cus=25% --json
prints '[.partitions[].cus] == [30, 48]' plan --gpu=0 --cus=50% --gpu=1 --cus=50% --json
prints '[.partitions[].cus] | sort == [60, 96]' plan --gpu=any --gpu=any --json
ends 2 plan --gpu=0 --cus=3 --gpu=0 --cus=3
ends 3 plan --gpu=0 --cus=3 --gpu=1 --cus=3 --queues=20
out_has '0000:04:00.0  queues'
fails 0 '(0000:03:00.0 SE' run --gpu=0 --cus=10 --gpu=1 --cus=10 -- true
err_has '(0000:04:00.0 SE'
shows 'between shader arrays' map
out_has '........|........'
prints '.[0].gpu == "0000:04:00.0" and (.[0].rows | length == 12)' map 1 --json
rig_stop_daemon

# GPUs that refuse for the same reason, with the same numbers, are one line; --json has each of them.
rig_start_daemon --simulate="$(printf 'radeon-vii,%.0s' {1..10})rx7900xtx"
ends 3 plan --queues=30
out_has '  0000:03:00.0, 0000:04:00.0 and 8 more  queues: 30 asked, the GPU has 24'
out_has '  0000:0d:00.0  queues: 30 asked, the GPU has 8'
check 'each sentence is there once' [ "$(grep -c 'queues: 30 asked' "$dir/out")" = 2 ]
ends 3 plan --queues=30 --json
json_out '.refusals | length == 11'
fails 3 '  0000:03:00.0, 0000:04:00.0 and 8 more  queues: 30 asked' reserve --queues=30
ends 3 plan --gpu=0,1,2 --queues=30
out_has '  0000:03:00.0, 0000:04:00.0 and 0000:05:00.0  queues: 30 asked'
ends 3 plan --gpu=1,10,2 --queues=30
out_has '  0000:04:00.0 and 0000:05:00.0  queues: 30 asked'
rig_stop_daemon

# ---- no GPU --------------------------------------------------------------------------------
mkdir -p "$dir/none"
rig_start_daemon --sysfs="$dir/none"
shows 'No GPU' status
shows 'No GPU' gpus
prints '. == []' gpus --json
shows 'No GPU' map
fails 3 'no GPU' plan
ends 125 run -- true

rig_done
