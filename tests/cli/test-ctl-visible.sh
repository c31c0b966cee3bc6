#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The variables of Slurm, containers and users that choose GPUs, for requests that name none.
#
#	test-ctl-visible.sh GPUARBCTL
set -u
GPUARBCTL=${1:-${GPUARBCTL:?}}
: "${GPUARBD:?}" "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"
rig_need dbus-daemon dbus-monitor jq
unset ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES GPU_DEVICE_ORDINAL
rig_start_bus
rig_start_daemon --simulate=radeon-vii,mi210,v620
vii=0000:03:00.0 mi210=0000:04:00.0 v620=0000:05:00.0

# planned GPU ARGUMENT…: the plan is for this GPU.
planned() { ends 0 plan "${@:2}" --json; json_out ".partitions[0].gpu == \"$1\""; }

planned "$vii" --cus=18
for name in ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES GPU_DEVICE_ORDINAL; do
	export "$name=1"
	planned "$mi210" --cus=18
	planned "$mi210" --gpu=any --cus=18
	planned "$mi210" --cus=50%
	json_out '.partitions[0].cus == 52'
	planned "$mi210"
	json_out '.partitions[0].cus == 104'
	planned "$v620" --gpu="$v620" --cus=18
	unset "$name"
done
ROCR_VISIBLE_DEVICES=2,1 HIP_VISIBLE_DEVICES=0 planned "$v620" --cus=18

# Of several visible GPUs one that has room.
ROCR_VISIBLE_DEVICES=0,2 planned "$vii" --cus=18
ROCR_VISIBLE_DEVICES=0,2 planned "$v620" --cus=50%
json_out '.partitions[0].cus == 36'
# Also for a program: the one where it gets most.
ROCR_VISIBLE_DEVICES=0,2 planned "$v620" --adaptable
ROCR_VISIBLE_DEVICES=1,1 planned "$mi210" --cus=50%

# All of them: a want for each.
ends 0 plan --gpu=all --cus=18 --queues=4 --json
json_out '[.partitions[] | "\(.gpu) \(.cus) \(.queues)"] == ["0000:03:00.0 18 4", "0000:04:00.0 18 4", "0000:05:00.0 18 4"]'
ROCR_VISIBLE_DEVICES=2,1 ends 0 plan --gpu=all --cus=25% --json
json_out "[.partitions[].gpu] == [\"$mi210\", \"$v620\"]"
fails 2 '--gpu=all' plan --gpu=all --gpu=0 --cus=18
ends 2 plan --gpu=0 --cus=18 --gpu=all --cus=18
ROCR_VISIBLE_DEVICES=99 ends 1 plan --gpu=all --cus=18

# Values that show no GPU.
for value in '' -1 99 x GPU-0123456789abcdef; do
	ROCR_VISIBLE_DEVICES=$value ends 1 plan --cus=18
	err_has 'ROCR_VISIBLE_DEVICES'
	CUDA_VISIBLE_DEVICES=$value ends 1 reserve --cus=18
	err_has 'CUDA_VISIBLE_DEVICES'
	HIP_VISIBLE_DEVICES=$value ends 125 run --cus=18 -- true
	err_has 'HIP_VISIBLE_DEVICES'
done
ROCR_VISIBLE_DEVICES=$(printf '9%.0s' {1..100000}) ends 1 plan --cus=18
check 'a long value is quoted in part' test "$(wc -c <"$dir/err")" -lt 400

# A program gets the GPU, and each variable that changes has a line.
# shellcheck disable=SC2016
ROCR_VISIBLE_DEVICES=0,1 HIP_VISIBLE_DEVICES=1 GPU_MAX_HW_QUEUES=2 ends 0 run --cus=18 --queues=5 -- \
	sh -c '"$GPUARBCTL" list --json; echo "${HIP_VISIBLE_DEVICES-none} $GPU_MAX_HW_QUEUES" >&2'
json_out ".[0].partitions[0].gpu == \"$mi210\""
err_has 'gpuarbctl run: HIP_VISIBLE_DEVICES=1 '
err_has 'gpuarbctl run: ROCR_VISIBLE_DEVICES=0,1 becomes 0'
err_has 'none 2'
err_lacks 'GPU_MAX_HW_QUEUES'
GPU_MAX_HW_QUEUES=8 ends 0 run --cus=18 --queues=5 -- true
err_has 'gpuarbctl run: GPU_MAX_HW_QUEUES=8 becomes 4'
GPU_MAX_HW_QUEUES=8 ends 0 run --quiet --cus=18 --queues=5 -- true
check 'with --quiet nothing is printed' test ! -s "$dir/err"

# A program that sees some of the GPUs of a lease shares it by its token, and has the variables of those GPUs.
hold reserve --gpu="$mi210" --cus=16
shared=(run --fixed --quiet --name=job --token=job --gpu=all --cus=16 --processes=3 --queues=6)
ROCR_VISIBLE_DEVICES=0,1 "$GPUARBCTL" "${shared[@]}" -- sleep 1000 2>"$dir/whole.err" &
whole=$!
is_held() { "$GPUARBCTL" list --json | jq -e 'any(.[]; .name == "job")' >/dev/null; }
await_so 'the lease is granted' is_held
for gpu in 0 1; do
	# shellcheck disable=SC2016
	ROCR_VISIBLE_DEVICES=$gpu ends 0 "${shared[@]}" -- sh -c '"$GPUARBCTL" list --json |
		jq --arg mask "$HSA_CU_MASK" --arg cus "$GPUARB_EFFECTIVE_CUS" "{mask: \$mask, cus: \$cus, leases: .}"'
	json_out ".cus == \"16\" and (.leases | length == 2) and
		.mask == \"0:\" + (.leases[] | select(.name == \"job\").partitions[$gpu].cu_mask)"
done
json_out '[.leases[] | select(.name == "job").partitions[].cu_mask] | unique | length == 2'
ROCR_VISIBLE_DEVICES=0 fails 125 token "${shared[@]}" --cus=18 -- true
ROCR_VISIBLE_DEVICES=1,2 fails 125 token "${shared[@]}" -- true
ROCR_VISIBLE_DEVICES=2 fails 125 token "${shared[@]}" -- true
kill "$whole"
let_go TERM "$holder"

# A mask of the user is refused before a lease is waited for.
exec 7< <(exec "$GPUARBCTL" reserve --gpu="$vii" --cus=60)
holder=$!
read -r -t "$patience" _ <&7 # it is granted
for name in HSA_CU_MASK ROC_GLOBAL_CU_MASK; do
	export "$name=0:0-3"
	fails 125 "$name=0:0-3 " run --gpu="$vii" --cus=60 --wait=600 -- true
	unset "$name"
done
kill "$holder"
holder=
rig_done
