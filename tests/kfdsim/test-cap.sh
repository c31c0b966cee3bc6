#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-cap.sh CLIENT-ESCAPE CLIENT-HIP: leases whose queues are capped in the kernel. HIP goes on with
# the queues that it gets; a program that tries every way to the driver gets no more; a gpuarbd that is
# killed changes nothing.
set -u

if [ "${INSIDE:-}" != yes ]; then
	[ $# -gt 1 ] || { echo 'skipped: no HIP (libamdhip64-dev)'; exit 77; }
	. "${0%/*}/rig.sh"
	rig_need jq dbus-daemon
	play --no-smi --gpu radeon-vii --gpu mi210 -- "$@"
	rig_done
fi

escape=$1 hip=$2
# shellcheck source=tests/kfdsim/stage.sh
. "$GPUARB_ROOT/tests/kfdsim/stage.sh"
printf '[daemon]\nbackend = kfd\naudit-interval = 1h\n' >"$dir/gpuarbd.conf"
printf '[tenant *]\nclass = guaranteed\n' >"$dir/tenants.d/all.conf"
start
cap=("${run[@]}" --cap --gpu "$vii" --cus 15 --queues 4)

# says NAME OUTCOME: what the last command of the program came to.
says() { [ "$(tail -n 1 "$dir/$1.err")" = "$2" ] || { tail -n 3 "$dir/$1.err"; complain "$said: not '$2'"; }; }
try() { tell "$1" "$2"; says "$1" "$2 $3"; } # NAME COMMAND OUTCOME
queues() { driver "[$(of "$1") | $compute] | length == $2"; }

# shares_or_fails NAME: of 9 streams each works, or fails with one error that a program can handle. HIP 5.2
# shares its queues if it gets no more. Later releases share when they have GPU_MAX_HW_QUEUES of them
# (getQueueFromPool() of rocclr/device/rocm/rocdevice.cpp), and fail otherwise.
shares_or_fails()
{
	local made failed status=0

	grep ': hip' "$dir/$1.lines" >"$dir/out"
	made=$(grep -cx 'hipStreamCreate: hipSuccess' "$dir/out")
	failed=$(grep -cx 'hipStreamCreate: hipErrorOutOfMemory' "$dir/out")
	leave "$1" || status=$?
	case $made:$failed:$status in
	9:0:0 | 3:6:1) ;;
	*) complain "HIP made $made streams, $failed were refused, exit code $status" ;;
	esac
	[ "$failed" = "$(grep -cv ': hipSuccess$' "$dir/out")" ] || complain "$1: another call failed"
}

# ---- HIP: 9 streams on a grant of 4 ---------------------------------------------------------------
# Without a cap the program takes what it wants.
program greedy "${run[@]}" --gpu "$vii" --cus 15 --queues 4 -- \
	env GPU_MAX_HW_QUEUES=9 "$hip" --streams 9 --work --hold
driver "[$(of greedy) | $compute] | length > 4"
leave greedy
settles '.leases == []'
# With the environment of run, one queue of the grant is left: SDMA queues can be created.
program copies "${cap[@]}" --name copies -- "$hip" --streams 9 --work --copy --hold
driver "$(of copies) | (.peak == 3) and any(.queues[]; .type == \"sdma\")"
leave copies || complain 'HIP failed under the environment of run'
settles '.leases == []'
# Without it, HIP asks for more.
for environment in '--ignore-environment' 'HSA_CU_MASK_SKIP_INIT=1 GPU_MAX_HW_QUEUES=9'; do
	# shellcheck disable=SC2086
	program nine "${cap[@]}" --name nine -- env $environment "$hip" --streams 9 --work --hold
	driver "$(of nine) | .peak == 4"
	settles "$(named nine) | .capped and .tier == \"capped\" and .partitions[0].tier == \"capped\""
	shares_or_fails nine
	settles '.leases == []'
done
program nine "${cap[@]}" --name nine -- env GPU_MAX_HW_QUEUES=9 "$hip" --streams 9 --work --hold
ends 0 status --json
json_out "$(named nine) | .queue_refusals > 0"
leave nine

# ---- every way to the driver --------------------------------------------------------------------
program raw "${cap[@]}" --name raw -- "$escape"
try raw setuid EPERM
for way in queue thread reopen fork; do try raw "$way" 0; done
try raw queue ENOMEM
for way in thread reopen fork high type sdma; do try raw "$way" ENOMEM; done
try raw x32 ENOSYS
tell raw compat
if grep -qx 'compat EOPNOTSUPP' "$dir/raw.err"; then
	echo 'skipped: the 32-bit system call: this kernel has none (IA32_EMULATION)'
else
	says raw 'compat ENOSYS'
fi
tell raw uring
grep -qxE 'uring (EOPNOTSUPP|EINVAL|EPERM|ENOSYS)' "$dir/raw.err" || complain 'io_uring'
# KFD refuses a file of another process, but the cap comes first.
try raw inherited ENOMEM
try raw destroy 0
try raw inherited EBADF
# A call that fails gives its queue back.
try raw invalid EINVAL
try raw queue 0
try raw queue ENOMEM
driver '[.processes[] | select(.alive) | .queues[] | select(.alive)] | length == 4'

# ---- a flood stops nobody ---------------------------------------------------------------------
echo 'flood 1000' >&"${in[raw]}"
ends 0 plan --gpu "$mi210" --cus 4
is_ready raw
says raw 'flood 1000 ENOMEM'

# ---- the next gpuarbd answers what the last one left ------------------------------------------
kill -KILL "$gpuarbd"
try raw queue ENOMEM
gpuarbd_is ready
settles "$(named raw) | .tier == \"capped\""
try raw destroy 0
try raw queue 0
try raw queue ENOMEM

# ---- one filter with a listener ---------------------------------------------------------------
ends 125 run --cap --cus 4 -- env -u HSA_CU_MASK -u ROC_GLOBAL_CU_MASK "$GPUARBCTL" run --cap --cus 4 -- true
err_has 'Linux allows one'
ends 125 run --cap --no-cap --cus 4 -- true
err_has '--no-cap'

# ---- the policy asks for it -----------------------------------------------------------------------
printf '[tenant *]\nclass = guaranteed\ncap = yes\n' >"$dir/tenants.d/all.conf"
ends 0 reload
for options in '' --requeue --no-cap; do
	# shellcheck disable=SC2086
	program policy "${run[@]}" $options --name policy --gpu "$mi210" --cus 4 --queues 2 -- sh -c \
		'echo ready; read -r line'
	settles "$(named policy) | .tier == \"capped\" | . == $([ "$options" = --no-cap ] && echo false || echo true)"
	leave policy
	settles "[$(named policy)] == []"
done

# ---- nobody listens any more: no queue, and nothing hangs -----------------------------------
try raw destroy 0
echo stop >&5
wait "$manager_pid"
try raw queue ENOSYS
try raw thread ENOSYS
leave raw
rig_done
