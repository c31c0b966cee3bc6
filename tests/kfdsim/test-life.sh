#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-life.sh CLIENT-HIP: how leases of real programs live and end: queues that the driver tears
# down late, GPUs that go, programs that take more than they were granted or hold no lease at all,
# a gpuarbd that is killed, and programs that fork.
set -u

if [ "${INSIDE:-}" != yes ]; then
	[ $# -gt 0 ] || { echo 'skipped: no HIP (libamdhip64-dev)'; exit 77; }
	. "${0%/*}/rig.sh"
	rig_need jq dbus-daemon setsid
	play --gpu radeon-vii --gpu mi210 --gpu v620 -- "$@"
	play --gpu mi300x-cpx -- "$@" partitions
	rig_done
fi

hip=$1
# shellcheck source=tests/kfdsim/stage.sh
. "$GPUARB_ROOT/tests/kfdsim/stage.sh"
printf '[tenant *]\nclass = guaranteed\n' >"$dir/tenants.d/all.conf"

# look TIME: how often gpuarbd looks by itself.
look() { printf '[daemon]\nbackend = kfd\naudit-interval = %s\n' "$1" >"$dir/gpuarbd.conf"; }
look_again() { look "$1"; ends 0 reload; }

# ---- partitions of one card ---------------------------------------------------------------------
# ROCr 5.2.3 does not know gfx942 and is told that it is gfx90a.
partitions()
{
	local zero=$vii/0 one=$vii/1

	export HSA_OVERRIDE_GFX_VERSION=9.0.10
	look 100ms
	start
	program zero "${run[@]}" --name zero --gpu "$zero" --cus 10 --queues 3 -- \
		"$hip" --streams 4 --work --hold
	program one "${run[@]}" --name one --gpu "$one" --cus 38 --queues 5 -- \
		"$hip" --streams 6 --work --hold
	settles "$(named one) | .partitions | length == 1 and .[0].gpu == \"$one\" and .[0].cus == 38"
	json_out "$(named zero) | .partitions[0] | .gpu == \"$zero\" and .cus == 10"
	json_out "$(gpu "$zero") | .cus_free == 28 and .queue_slots_free == 21"
	json_out "$(gpu "$one") | .cus_free == 0 and .queue_slots_free == 19"
	json_out '[.gpus[2:][] | select(.cus_free != 38 or .queue_slots_free != 24)] == []'
	json_out '.gpus | all(.unmanaged == [] and (.oversubscribed | not))'
	driver "[$(of zero) | $compute] | length == 3 and all(.gpu == \"$zero\" and .mask != null)"
	driver "[$(of one) | $compute] | length == 5 and all(.gpu == \"$one\" and .mask != null)"
	driver "[$(of zero) | $compute | .engines[0] | map(select(. != \"0x00000000\")) | length] |
		all(. == 1)"
	leave zero
	settles '[.leases[].name] == ["one"]'
	json_out "$(gpu "$one") | .cus_free == 0 and .queue_slots_free == 19"
	json_out "$(gpu "$zero") | .cus_free == 38 and .queue_slots_free == 24"
	leave one
	finish
}
[ "${2:-}" != partitions ] || partitions

# ---- queues of a dead program stay until the driver has torn them down ----------------------------
# gpuarbd looks by itself once an hour: it is not by that that it learns of the end.
look 1h
start
control teardown:600000
program first "${run[@]}" --name first --gpu "$vii" --cus 60 --queues 20 -- "$hip" --streams 1 --hold
crash first
settles "$(named first) | .state == \"ending\" and .reason == \"the last bound process is gone\""
"$GPUARBCTL" reserve --name second --gpu "$vii" --cus 60 --wait >/dev/null 2>&1 &
holder=$!
settles "$(named second) | .state == \"waiting\""
ends 3 plan --gpu "$vii" --cus 1
out_has 'cus: 1 asked, 0 of '
ends 3 plan --class besteffort --isolation shared --gpu "$vii" --cus 1 --queues 5
out_has 'queues: 5 asked'
driver ".gpus[0].compute_queues == 2 and ($(of first) | .alive | not)"
check 'sysfs has it still' [ -d "/sys/class/kfd/kfd/proc/${pid[first]}" ]
control teardown:now
settles "([.leases[].name] == [\"second\"]) and ($(named second) | .state == \"granted\")"
driver '.gpus[0].compute_queues == 0'
let_go TERM "$holder"
control teardown:0

# ---- a program takes more than its lease has -------------------------------------------------------
look_again 100ms
program greedy "${run[@]}" --name greedy --gpu "$v620" --cus 18 --queues 2 -- \
	sh -c 'unset GPU_MAX_HW_QUEUES; exec "$@"' sh "$hip" --streams 8 --work --hold
await lease-changed # nobody asked
settles "$(named greedy) | .reason | test(\"5 queues on $v620\")"
json_out "$(gpu "$v620") | .queue_slots_free == 3 and .unmanaged == [] and (.oversubscribed | not)"
ends 3 plan --gpu "$v620" --cus 4 --queues 4
out_has 'queues: 4 asked'
ends 9 verify --json
json_out 'any(.[]; .check == "queues" and .result == "drift" and .found == "2 granted, 5 observed")'
ends 0 plan --gpu "$v620" --cus 4 --queues 3
driver '.gpus[2] | .compute_queues == 5 and .oversubscriptions == 0'
driver "[$(of greedy) | $compute | .mask] | unique | length == 1 and .[0] != null"
leave greedy
settles ".leases == [] and ($(gpu "$v620") | .queue_slots_free == 8)"

# ---- programs without a lease ------------------------------------------------------------------------
program stranger "$hip" --streams 4 --work --hold --device 2
settles "$(gpu "$v620") | .unmanaged[0].queues == 5"
json_out "$(gpu "$v620") | .unmanaged | length == 1 and .[0].pid == ${pid[stranger]} and
	.[0].command == \"client-hip\" and .[0].uid == $(id -u)"
json_out "$(gpu "$v620") | .queue_slots_free == 3 and .process_slots_free == 7 and .cus_free == 72"
ends 3 plan --gpu "$v620" --cus 4 --queues 4
out_has 'unmanaged: 4 '
program another "$hip" --streams 4 --work --hold --device 2
settles "$(gpu "$v620") | .oversubscribed and ([.unmanaged[].queues] == [5, 5])"
ends 3 plan --gpu "$v620" --cus 4 --queues 2
out_has 'oversubscribed: '
shows "$v620" status
out_has "${pid[stranger]} (client-hip, 5 queues)"
out_has "${pid[another]} (client-hip, 5 queues)"
driver '.gpus[2] | .oversubscribed and .reasons == ["queues"]'
leave stranger
settles "$(gpu "$v620") | (.oversubscribed | not) and (.unmanaged | length) == 1"
leave another
settles "$(gpu "$v620") | .unmanaged == [] and .queue_slots_free == 8"

# ---- programs that fork, and that lose their parent ----------------------------------------------------
# As daemons do: the parent, of another session, ends when it is told to. The program was seen while
# it had one, and so stays its lease's.
mkfifo "$dir/parent"
# shellcheck disable=SC2016 # expanded there
program forks "${run[@]}" --name forks --gpu "$vii" --cus 15 --queues 3 -- sh -c '
	exec 3<&0
	setsid sh -c '\''"$@" <&3 & read -r _ <"$0"'\'' "$0" "$@" &
	read -r _' "$dir/parent" "$hip" --streams 1 --work --hold
settles "$(named forks) | .state == \"granted\""
json_out "$(gpu "$vii") | .unmanaged == []"
child=$(jq '.processes[] | select(.alive and .made > 0) | .pid' /sys/kernel/debug/kfdsim/state)
parent=$(cut -d' ' -f4 "/proc/$child/stat")
echo >"$dir/parent"
has_new_parent() { [ "$(cut -d' ' -f4 "/proc/$child/stat")" != "$parent" ]; }
await_so 'the program has lost its parent' has_new_parent
settles "$(named forks) | .state == \"granted\""
json_out "$(gpu "$vii") | .unmanaged == [] and .queue_slots_free == 21 and .process_slots_free == 7"
leave forks
settles '.leases == []'

# One that nobody has seen before it lost its parent: only its systemd unit says whose it is, where
# there is one; else it has no lease. Its mask is the lease's all the same.
# shellcheck disable=SC2016
program lost "${run[@]}" --name lost --gpu "$vii" --cus 15 --queues 3 -- \
	sh -c 'exec 3<&0; setsid -f "$@" <&3; read -r _' sh "$hip" --streams 1 --work --hold
settles "($(gpu "$vii") | .unmanaged | length) == if ($(named lost) | .owner.unit) then 0 else 1 end"
driver "[.processes[] | select(.alive) | $compute | .mask] | unique == [\"0x111111111111111\"]"
leave lost
settles ".leases == [] and ($(gpu "$vii") | .unmanaged == [])"

# ---- gpuarbd dies: what was granted stays, and nobody's queues are touched ------------------------------
held='[.leases[] | {id, name, state, generation, partitions, reason}]'
queues='[.processes[] | select(.alive) | {pid, queues}], .gpus[0].run_lists'
program vr "${run[@]}" --name vr --gpu "$vii" --cus 15 --queues 4 -- "$hip" --streams 3 --work --hold
program ml "${run[@]}" --name ml --gpu "$vii" --cus 30 --queues 4 --gpu "$v620" --cus 18 --queues 3 \
	-- "$hip" --streams 3 --work --hold
settles '.leases | length == 2'
jq -c "$held" "$dir/out" >"$dir/held"
jq -c "$queues" /sys/kernel/debug/kfdsim/state >"$dir/queues"
check 'there are masks' grep -q '0x111111111111111' "$dir/queues"
kill -KILL "$gpuarbd"
await daemon-gone
gpuarbd_is ready
await daemon-back
settles '.leases | length == 2'
jq -c "$held" "$dir/out" | check 'leases are the same' diff - "$dir/held"
jq -c "$queues" /sys/kernel/debug/kfdsim/state | check 'queues are the same' diff - "$dir/queues"
json_out '.gpus | all(.unmanaged == [])'
leave vr
settles '[.leases[].name] == ["ml"]'
leave ml
settles '.leases == []'

# ---- a GPU that goes takes with it what was on it, and a gang as a whole ----------------------------
program stays "${run[@]}" --name stays --gpu "$v620" --cus 18 --queues 3 -- \
	"$hip" --streams 2 --work --hold
program goes "${run[@]}" --name goes --gpu "$mi210" --cus 52 --queues 3 -- "$hip" --streams 2 --hold
program gang "${run[@]}" --name gang --gpu "$vii" --cus 15 --queues 3 --gpu "$mi210" --cus 26 \
	--queues 3 -- "$hip" --device 0 --streams 2 --hold
control "gone:$mi210"
settles "[.gpus[].name] == [\"$vii\", \"$v620\"] and ([.leases[].state] == [\"granted\", \"ending\",
	\"ending\"])"
json_out "$(named stays) | .state == \"granted\" and .reason == \"\""
json_out "[.leases[1:][] | .reason == \"$mi210 is gone\"] == [true, true]"
json_out "$(gpu "$vii") | .cus_free == 45"
driver '.gpus | map(.gone) == [false, true, false]'
crash goes # HIP waits for ever for a GPU that has gone
crash gang
settles '[.leases[].name] == ["stays"]'
json_out "$(gpu "$vii") | .cus_free == 60"
driver "[$(of stays) | $compute | .mask] | length == 3 and all(. != null)"
leave stays
settles '.leases == []'
finish
