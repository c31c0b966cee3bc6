#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-drift.sh STORY CLIENT-RAW CLIENT-HIP: unmodified HIP programs that use more than their lease, as gpuarbd
# observes it in the descriptors of the emulated driver, and what follows. STORY is one of those at
# the end.
set -u

if [ "${INSIDE:-}" != yes ]; then
	[ $# -gt 2 ] || [ "$1" = silent ] || { echo 'skipped: no HIP (libamdhip64-dev)'; exit 77; }
	. "${0%/*}/rig.sh"
	rig_need jq dbus-daemon setsid
	[ "$1" != kill ] || rig_need systemd-socket-activate
	play --gpu "$([ "$1" = silent ] && echo mi300x-spx || echo radeon-vii)" -- "$@"
	rig_done
fi

raw=$2 hip=${3:-}
# shellcheck source=tests/kfdsim/stage.sh
. "$GPUARB_ROOT/tests/kfdsim/stage.sh"

# policy ON-DRIFT [KEY…]: of the only tenant; "": the default.
policy()
{
	printf '[daemon]\nbackend = kfd\naudit-interval = 100ms\ndrift-grace = 200ms\n%s\n' \
		"activate-grace = 100ms" >"$dir/gpuarbd.conf"
	printf 'enforce-delay = 100ms\n' >>"$dir/gpuarbd.conf"
	printf '[tenant all]\nmatch-user = %s\nclass = realtime\npriority = 15\n%s\n' "$(id -un)" \
		"${1:+on-drift = $1}" >"$dir/tenants.d/all.conf"
}

# A realtime lease whose program has its mask; its number is in $vr.
honest()
{
	program vr "${run[@]}" --class realtime --gpu "$vii" --shader-engines 1 --queues 4 \
		--name vr -- "$hip" --streams 1 --work --hold
	settles "$(named vr) | .tier == \"verified\" and .drift == []"
}
# Run with --fixed: without an agent, which would set its mask.
wide=(env HSA_CU_MASK_SKIP_INIT=1 "$hip" --streams 1 --work --hold)
logged() { said='the log of gpuarbd'; cp "$dir/daemon.err" "$dir/err"; err_has "$1"; }
id_of() { jq "$(named "$1") | .id" "$dir/out"; }

# A program that takes all CUs, over an honest realtime lease.
story_mask()
{
	policy report
	start --debugfs=/sys/kernel/debug
	honest
	program wide "${run[@]}" --gpu "$vii" --fixed --cus 15 --queues 4 --name wide -- "${wide[@]}"
	driver "[$(of wide) | $compute | .mask] | length > 0 and all(. == null)"
	settles "$(named wide) | .drift | length == 1"
	json_out "$(named wide) | .drift[0] | .kind == \"mask\" and .gpu == \"$vii\" and
		.granted == 15 and .observed == 60 and .pid == ${pid[wide]}"
	json_out "$(named wide) | .state == \"granted\" and .tier == \"cooperative\""
	json_out "$(named vr) | .drift == [] and .tier == \"verified\""
	wide_id=$(id_of wide)
	ends 9 verify
	ends 9 verify --json
	json_out "any(.[]; .lease == $wide_id and .check == \"mask\" and .result == \"drift\")"
	logged "lease $wide_id of uid $(id -u) uses more than it was granted"

	# Nothing that is promised is granted on the CUs that its queues cover.
	ends 3 plan --json --class realtime --gpu "$vii" --shader-engines 1
	json_out ".refusals[0] | .reason == \"unmasked\" and .leases == [$wide_id] and
		(.processes | length == 1 and .[0].pid == ${pid[wide]})"
	ends 3 reserve --class realtime --gpu "$vii" --shader-engines 1
	ends 3 reserve --class guaranteed --gpu "$vii" --cus 15
	leave wide
	settles "[.leases[].name] == [\"vr\"]"
	ends 0 plan --class realtime --gpu "$vii" --shader-engines 1
	leave vr
}

# Nine queues on a grant of two.
story_queues()
{
	policy report
	start --debugfs=/sys/kernel/debug
	program many "${run[@]}" --gpu "$vii" --cus 15 --queues 2 --name many -- \
		env GPU_MAX_HW_QUEUES=8 "$hip" --streams 8 --work --hold
	settles "$(named many) | .drift | length == 1"
	json_out "$(named many) | .drift[0] | .kind == \"queues\" and .granted == 2 and .observed == 9"
	ends 9 verify
	logged "queues on $vii (granted: 2)" # their number is that of when they were first too many
	leave many
}

verifies() { "$GPUARBCTL" verify >"$dir/out" 2>"$dir/err"; }

# What policy says follows: the lease ends and its program is killed, and the honest one stays.
story_kill()
{
	policy kill
	systemd-socket-activate --seqpacket -l "$dir/enforce" "$GPUARB_ENFORCE" 2>"$dir/enforce.err" &
	helper=$!
	start --debugfs=/sys/kernel/debug --enforce="$dir/enforce"
	honest
	begin wide "${run[@]}" --gpu "$vii" --fixed --cus 15 --queues 4 --name wide -- "${wide[@]}"
	wait "${pid[wide]}" 2>/dev/null
	check 'it was killed' test $? = 137
	settles '[.leases[].name] == ["vr"]'
	logged 'uses more than it was granted'
	logged "of uid $(id -u) ends within"
	settles "$(named vr) | .state == \"granted\" and .tier == \"verified\""
	await_so 'what was killed has left the GPU' verifies # the kernel takes a moment for its queues
	leave vr
	kill "$helper"
}

# Without a policy, drift into the CUs of a realtime lease is revoked, and other drift is reported.
story_default()
{
	policy ''
	start --debugfs=/sys/kernel/debug
	program wide "${run[@]}" --gpu "$vii" --fixed --cus 15 --queues 4 --name wide -- "${wide[@]}"
	settles "$(named wide) | .state == \"granted\" and .drift[0].kind == \"mask\""
	leave wide
	settles '.leases == []'
	honest
	program wide "${run[@]}" --gpu "$vii" --fixed --cus 15 --queues 4 --name wide -- "${wide[@]}"
	settles "$(named wide) | .state == \"ending\" and (.reason | test(\"outside the mask\"))"
	json_out "$(named vr) | .state == \"granted\""
	leave wide
	settles '[.leases[].name] == ["vr"]'
	leave vr
}

# A program whose queues come and go as fast as they can, one after the other. The agent gives each
# its mask, so nothing drifts; gpuarbd reads the descriptors meanwhile, and serves others.
story_churn()
{
	policy report
	start --debugfs=/sys/kernel/debug
	honest
	program churn "${run[@]}" --adaptable --gpu "$vii" --cus 15 --cus-min 15 --queues 2 \
		--name churn -- "$raw"
	tell churn churn
	ends 0 status --json
	for _ in 1 2 3; do
		read_at=$(jq '.gpus[0].masks_observed' "$dir/out")
		settles ".gpus[0].masks_observed > $read_at"
		json_out "$(named churn) | .state == \"granted\""
		json_out "$(named vr) | .tier == \"verified\" and .drift == []"
	done
	ends 0 plan --gpu "$vii" --cus 15 --json
	tell churn still # a hundred queues or more came and went
	# Each read may have seen another queue before it had its mask. No queue is left.
	settles "$(named churn) | .drift == []"
	leave churn
	settles '[.leases[].name] == ["vr"]'
	leave vr
}

# Masks that are lost without an error, on a GPU with eight XCCs. Bits past the last CU, a list of GPUs that is
# no decimal index and half a WGP have one effect: the queue has no mask. A mask without a bit on an XCC leaves
# that XCC unmasked.
story_silent()
{
	policy report
	start --debugfs=/sys/kernel/debug
	program lost "${run[@]}" --gpu "$vii" --fixed --cus 72 --queues 4 --name lost -- "$raw"
	tell lost queue
	settles "$(named lost) | .drift | length == 1"
	json_out "$(named lost) | .drift[0] | .kind == \"mask\" and .granted == 72 and .observed == 304"
	ends 9 verify
	tell lost 'mask 1'
	settles "$(named lost) | .drift | length == 1 and .[0].observed == 267"
	ends 9 verify --json
	json_out "any(.[]; .check == \"mask\" and .result == \"drift\")"
	leave lost
	settles '.leases == []'
}

case $1 in
churn) story_churn ;;
mask) story_mask ;;
kill) story_kill ;;
default) story_default ;;
queues) story_queues ;;
silent) story_silent ;;
esac
finish
