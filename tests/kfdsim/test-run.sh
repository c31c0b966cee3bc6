#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-run.sh CLIENT-HIP: what `gpuarbctl run` makes of programs that know nothing of it: the
# masks and the number of queues that arrived at the driver, as the emulated one recorded them.
# Then the traps of AMD's runtime that gpuarbctl(1) warns of, each as it is. HIP_MAJOR: of the program; 5.
set -u

if [ "${INSIDE:-}" != yes ]; then
	[ $# -gt 0 ] || { echo 'skipped: no HIP (libamdhip64-dev)'; exit 77; }
	. "${0%/*}/rig.sh"
	rig_need jq dbus-daemon dbus-monitor rocminfo
	play --gpu radeon-vii --gpu mi210 --gpu v620 -- "$@"
	rig_done
fi

hip=$1
. "$GPUARB_ROOT/tests/cli/ctl-rig.sh"
printf '[daemon]\nbackend = kfd\n' >"$dir/gpuarbd.conf"
mkdir "$dir/tenants.d"
rig_start_bus
rig_start_daemon --sysfs=/sys
vii=0000:03:00.0 mi210=0000:04:00.0 v620=0000:05:00.0

# runs CODE COMMAND…: what it printed is in $dir/err, what the driver recorded in $dir/out.
runs()
{
	local wanted=$1 code
	shift
	said="$*"
	timeout "$patience" "$@" >"$dir/err" 2>&1 </dev/null
	code=$?
	cat /sys/kernel/debug/kfdsim/state >"$dir/out"
	[ "$code" = "$wanted" ] || complain "$said: ended with $code, not $wanted"
}
last='[.processes[] | select(.made > 0)] | last' # process with a queue
compute="$last | [.queues[] | select(.type == \"compute\")]"
half=0x333333333333333 quarter=0x111111111111111 # SE 0 and 1, SE 0 of the Radeon VII
ctl=("$GPUARBCTL" run --isolation shared)

# ---- rocminfo: the GPU of the lease is all that it sees --------------------------------------
runs 0 "${ctl[@]}" --gpu "$mi210" --cus 26 --queues 4 -- rocminfo
err_has 'gfx90a'
err_lacks 'gfx906'
err_lacks 'gfx1030'

# ---- plain streams: HIP pools them in what the budget leaves, ROCr's own queue is in it ------
runs 0 "${ctl[@]}" --gpu "$vii" --cus 30 --queues 4 -- "$hip" --streams 13 --work
json_out "$compute | length == 4"
json_out "$compute | all(.mask == \"$half\" and .priority == 7)"
json_out "$last | .peak == 4 and .peaks[\"$vii\"] == 4"
runs 0 "${ctl[@]}" --gpu "$v620" --cus 18 --queues 2 -- "$hip" --streams 3 --work
json_out "$compute | length == 2 and (map(.mask) | unique | length) == 1"
json_out "$compute | all(.engines[0] | map(select(. != \"0x00000000\")) | length == 1)"

# ---- streams that the program masks itself -----------------------------------------------------
# Within the grant (SE 0 and 1: bits 0 1, 4 5, …): its own mask, in a queue of its own.
runs 0 "${ctl[@]}" --gpu "$vii" --cus 30 --queues 4 --streams 1 -- "$hip" --streams 2 \
	--masked 0x33 --work
json_out "$compute | map(select(.masks[-1] == \"0x33\")) | length == 1"
json_out "$last | .peak <= 4"

# With a bit outside of it: ROCr reduces the mask, which HIP before 7 takes for a failure. No queue is left
# that has more than the grant.
if [ "${HIP_MAJOR:-5}" -lt 7 ]; then
	runs 1 "${ctl[@]}" --gpu "$vii" --cus 30 --queues 4 --streams 1 -- "$hip" --masked 0xff
	err_has 'hipExtStreamCreateWithCUMask: hipErrorOutOfMemory'
else
	runs 0 "${ctl[@]}" --gpu "$vii" --cus 30 --queues 4 --streams 1 -- "$hip" --masked 0xff
fi
json_out "$compute | all(.masks[-1] == \"$half\" or .masks[-1] == \"0x33\")"

# ---- two GPUs, and ROCR_VISIBLE_DEVICES that had them the other way round ------------------------
runs 0 env ROCR_VISIBLE_DEVICES=1,0 "${ctl[@]}" --gpu "$vii" --cus 15 --queues 3 \
	--gpu "$mi210" --cus 52 --queues 3 -- "$hip" --device 0 --streams 2 --work
json_out "$compute | all(.gpu == \"$vii\" and .mask == \"$quarter\")"
runs 0 env ROCR_VISIBLE_DEVICES=1,0 "${ctl[@]}" --gpu "$mi210" --cus 52 --queues 3 \
	--gpu "$vii" --cus 15 --queues 3 -- "$hip" --device 0 --streams 2 --work
json_out "$compute | all(.gpu == \"$mi210\")"
json_out "$compute | all(.engines[0] | map(select(. != \"0x00000000\")) | length == 4)"
runs 125 env ROCR_VISIBLE_DEVICES=1 "${ctl[@]}" --gpu "$vii" --cus 15 -- "$hip" --streams 1
err_has 'ROCR_VISIBLE_DEVICES=1 hides GPU'

# ---- Slurm, containers and users choose the GPUs of a want that names none ------------------------
# sees VARIABLE… GPU: the program has its queues there.
sees() { runs 0 env "${@:1:$#-1}" "${ctl[@]}" --cus 18 --queues 3 -- "$hip" --streams 1 --work
	json_out "$compute | length > 0 and all(.gpu == \"${!#}\" and .mask != null)"; }
sees ROCR_VISIBLE_DEVICES=1 "$mi210"
err_has 'gpuarbctl run: lease '
sees HIP_VISIBLE_DEVICES=2 "$v620"
err_has 'gpuarbctl run: HIP_VISIBLE_DEVICES=2 '
sees CUDA_VISIBLE_DEVICES=1 "$mi210"
sees GPU_DEVICE_ORDINAL=1 "$mi210"
sees ROCR_VISIBLE_DEVICES=2,1 HIP_VISIBLE_DEVICES=1 "$mi210"
err_has 'gpuarbctl run: ROCR_VISIBLE_DEVICES=2,1 becomes 1'
uuid=$(printf 'GPU-%016x' "$(awk '$1 == "unique_id" { print $2 }' /sys/class/kfd/kfd/topology/nodes/3/properties)")
sees "ROCR_VISIBLE_DEVICES=$uuid" "$v620"
sees "HIP_VISIBLE_DEVICES=$uuid" "$v620"
for none in ROCR_VISIBLE_DEVICES= ROCR_VISIBLE_DEVICES=99 HIP_VISIBLE_DEVICES=-1 CUDA_VISIBLE_DEVICES= \
	ROCR_VISIBLE_DEVICES=GPU-123; do
	runs 125 env "$none" "${ctl[@]}" --cus 18 -- "$hip" --streams 1
	err_has "${none%=*}"
	err_lacks 'lease '
done
runs 125 env ROCR_VISIBLE_DEVICES=1 CUDA_VISIBLE_DEVICES=1 "${ctl[@]}" --cus 18 -- "$hip" --streams 1
err_has 'CUDA_VISIBLE_DEVICES=1 '
# A GPU that is named is taken, and a variable of HIP that hides it is removed.
runs 0 env HIP_VISIBLE_DEVICES=2 "${ctl[@]}" --gpu "$vii" --cus 15 --queues 3 -- "$hip" --streams 1 --work
json_out "$compute | all(.gpu == \"$vii\")"

# ---- the traps: first as they are without gpuarb, then what run makes of them ---------------------
# A string that ROCr does not understand is no mask at all, without a word.
runs 0 env HSA_CU_MASK=0:none-of-this "$hip" --streams 1 --work
json_out "$compute | all(.mask == null)"
runs 125 env HSA_CU_MASK=0:none-of-this "${ctl[@]}" --cus 4 -- "$hip" --streams 1
err_has 'HSA_CU_MASK=0:none-of-this'

# HSA_CU_MASK_SKIP_INIT undoes it; run takes it out.
runs 0 env HSA_CU_MASK=0:0-15 HSA_CU_MASK_SKIP_INIT=1 "$hip" --streams 1 --work
json_out "$compute | all(.mask == null)"
runs 0 env HSA_CU_MASK_SKIP_INIT=1 "${ctl[@]}" --gpu "$vii" --cus 15 -- "$hip" --streams 1 --work
json_out "$compute | length >= 2 and all(.mask == \"$quarter\")"

# ROC_GLOBAL_CU_MASK leaves ROCr's own queue, which is in every process, without a mask.
runs 0 env ROC_GLOBAL_CU_MASK=0xffff "$hip" --streams 1 --work
json_out "$compute | map(.mask) | sort == [null, \"0xffff\"]"
runs 125 env ROC_GLOBAL_CU_MASK=0xffff "${ctl[@]}" --cus 4 -- "$hip" --streams 1
err_has 'ROC_GLOBAL_CU_MASK=0xffff'

# A mask that the driver refuses is no mask at all either.
echo set-cu-mask:1:EBUSY >/sys/kernel/debug/kfdsim/control
runs 0 "${ctl[@]}" --gpu "$vii" --cus 15 --queues 3 -- "$hip" --streams 1 --work
json_out "$compute | map(.mask) | sort == [null, \"$quarter\"]"

# multiProcessorCount does not follow the mask, and counts WGPs on RDNA.
# shellcheck disable=SC2016
blocks=(sh -c 'echo "$GPUARB_EFFECTIVE_CUS effective"; exec "$0" --streams 1' "$hip")
runs 0 "${ctl[@]}" --gpu "$vii" --cus 30 -- "${blocks[@]}"
err_has '30 effective'
err_has ', 60 CUs'
runs 0 "${ctl[@]}" --gpu "$v620" --cus 18 -- "${blocks[@]}"
err_has '18 effective'
err_has ', 36 CUs'

# The user's number of queues is taken if it is smaller.
runs 0 env GPU_MAX_HW_QUEUES=1 "${ctl[@]}" --gpu "$vii" --cus 15 -- "$hip" --streams 6 --work
json_out "$compute | length == 2"
err_lacks GPU_MAX_HW_QUEUES
runs 0 env GPU_MAX_HW_QUEUES=9 "${ctl[@]}" --gpu "$vii" --cus 15 --queues 3 -- "$hip" --streams 6 --work
json_out "$compute | length == 3"
err_has 'gpuarbctl run: GPU_MAX_HW_QUEUES=9 becomes 2'

# GPU_MAX_HW_QUEUES is for each priority: a stream of another one has a queue more.
runs 0 env GPU_MAX_HW_QUEUES=1 "$hip" --streams 3 --high --work
json_out "$compute | length == 3 and (map(.priority) | sort | . == [7, 7, 15] or . == [7, 7, 11])"

# ---- several programs at once under one daemon ------------------------------------------------------
# Each has a shader engine of its own; all are there before the first one leaves. In tests/run --long all eight engines.
n=3
[ -z "${GPUARB_LONG:-}" ] || n=8
pids=() ins=()
for ((i = 0; i < n; i++)); do
	mkfifo "$dir/in$i" "$dir/out$i"
	"$GPUARBCTL" run --gpu "$mi210" --shader-engines 1 --queues 3 -- "$hip" --streams 4 --work \
		--copy --hold <"$dir/in$i" >"$dir/out$i" 2>"$dir/err$i" &
	pids+=($!)
	exec {in}>"$dir/in$i" {out}<"$dir/out$i"
	ins+=("$in") outs+=("$out")
done
for ((i = 0; i < n; i++)); do
	check "program $i gets to work" await_line "${outs[i]}" ready
done
said='several at once'
cp "$dir/err0" "$dir/err"
jq --arg gpu "$mi210" '{gpu: .gpus[] | select(.name == $gpu),
	masks: [.processes[] | select(.alive) | [.queues[] | select(.type == "compute") |
		.engines[0]] | unique]}' /sys/kernel/debug/kfdsim/state >"$dir/out"
json_out ".gpu | .processes == $n and .compute_queues == $((3 * n)) and .oversubscriptions == 0"
json_out ".masks | length == $n and all(length == 1) and (unique | length) == $n"
json_out '[.masks[][0] | map(select(. != "0x00000000")) | length] | all(. == 1)'
kill "${pids[@]}"
wait "${pids[@]}"
rig_done
