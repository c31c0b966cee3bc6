#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-slots.sh CLIENT-HIP: gpuarbctl slots shows the queues of unmodified HIP programs in the hardware
# queue slots, as the emulated driver placed them, and says so where it cannot.
set -u

if [ "${INSIDE:-}" != yes ]; then
	[ $# -gt 0 ] || { echo 'skipped: no HIP (libamdhip64-dev)'; exit 77; }
	. "${0%/*}/rig.sh"
	rig_need jq dbus-daemon dbus-monitor python3
	play --gpu radeon-vii --gpu mi210 --gpu v620 -- "$@"
	rig_done
fi

hip=$1
. "${0%/*}/stage.sh"
printf '[daemon]\nbackend = kfd\n' >"$dir/gpuarbd.conf"
printf '[tenant lane]\nmatch-user = %s\nclass = realtime\npriority = high\n[tenant *]\nopen = yes\npriority = 11\n' "$(id -u)" >"$dir/tenants.d/all.conf"
run+=(--tenant '*')
start --sysfs=/sys --debugfs=/sys/kernel/debug

# in_slots: the queues in slots of GPU as "pipe queue pid", sorted: of the emulated driver, of gpuarbctl.
driver_slots()
{
	jq -r ".gpus[] | select(.name == \"$1\") | .slots[] | \"\(.pipe) \(.queue) \(.pid)\"" \
		/sys/kernel/debug/kfdsim/state | sort
}
shown_slots()
{
	jq -r '.[0].pipe_list[] | .pipe as $p | .slots[] | select(.active) | "\($p) \(.queue) \(.pid)"' \
		"$dir/out" | sort
}

# gpuarbd reads the slots once in a second, and answers with that reading meanwhile: on a quick machine programs
# come and go within it. So what was read is waited for.
# shows JQ ARGUMENT…: until gpuarbctl prints that.
shows() { said="gpuarbctl ${*:2}"; await_so "$1" prints "$@"; }
prints() { "$GPUARBCTL" "${@:2}" 2>"$dir/err" | tee "$dir/out" | jq -en "input | $1" >/dev/null 2>&1; }

# ---- an idle GPU: every slot is free ----------------------------------------------------------
ends 0 gpus --json
json_out '.[0].pipes == 4 and .[0].queues_per_pipe == 8 and .[0].pipes_source == "table"'
ends 0 slots "$vii" --json
json_out '.[0].pipe_list | length == 4 and all(.queues == 0 and (.slots | length) == 6)'
json_out '[.[0].pipe_list[].slots[].active] | any | not'
json_out '.[0].sdma == "visible" and (.[0].sdma_list | length == 2 and all(.queues == 0 and (.slots | length) == 8))'
json_out '.[0].pipes_source == "observed" and .[0].pipes == 4 and .[0].queues_per_pipe == 8'
ends 0 gpus --json
json_out 'map(.pipes_source) == ["observed", "observed", "observed"]'
json_out '.[2].pipes == 4 and .[2].queues_per_pipe == 4'

# ---- two programs with leases, and one without -----------------------------------------------
program serve "${run[@]}" --name serve --gpu "$vii" --cus 15 --queues 3 --priority high -- \
	"$hip" --streams 2 --work --hold
program train "${run[@]}" --name "train-$(printf 'train\xd7\x90%.0s' {1..15})" --gpu "$vii" --cus 30 --queues 5 -- \
	"$hip" --streams 4 --work --copy --hold
program stranger "$hip" --streams 1 --work --hold
shows '[.[0].pipe_list[].queues] | add == 10' slots "$vii" --json
check 'every queue is where the driver placed it' test "$(shown_slots)" = "$(driver_slots "$vii")"
json_out '.[0].queues == 10 and .[0].queues_without_slot == 0'
json_out '[.[0].pipe_list[].slots[] | select(.active)] | group_by(.lease) | map(length) | sort == [2, 3, 5]'
json_out "[.[0].pipe_list[].slots[] | select(.pid == ${pid[stranger]})] |
	length == 2 and all(.lease == null and .command == \"client-hip\" and .vmid >= 8)"
json_out "[.[0].pipe_list[].slots[] | select(.active) | .pid] | unique | length == 3"
"$GPUARBCTL" list --json >"$dir/leases"
serve=$(jq '.[] | select(.name == "serve").id' "$dir/leases")
json_out "[.[0].pipe_list[].slots[] | select(.lease == $serve).priority] | length == 3 and any(. == 11)"

# The queues of SDMA engines, and the processes that the driver made them for.
jq -r ".processes[] | .pid as \$p | .queues[] | select(.alive and .active and .type == \"sdma\") | \$p" \
	/sys/kernel/debug/kfdsim/state | sort >"$dir/sdma"
check 'a program copies by SDMA' test -s "$dir/sdma"
check 'every SDMA queue is in a slot' test "$(jq -r '.[0].sdma_list[].slots[] | select(.active).pid' "$dir/out" | sort)" = \
	"$(cat "$dir/sdma")"
json_out "[.[0].sdma_list[].slots[] | select(.active)] | all(.lease != null and .vmid >= 8 and .command == \"client-hip\")"

ends 0 slots "$vii"
out_has 'SDMA 0  '
out_has '10 of 24 '
out_has '(observed)'
out_has 'pipe 0  '
out_has "lease $serve serve"
ends 0 slots "$mi210"
out_has ' 0 of 24 '
ends 0 slots --svg="$dir/slots.svg"
check 'the drawing is XML' is_xml "$dir/slots.svg"
check 'the drawing names the lease' grep -q "lease $serve serve" "$dir/slots.svg"

# ---- pipes that a plan relies on ---------------------------------------------------------------
leave serve
leave train
leave stranger
settles ".leases == [] and ($(gpu "$vii") | .unmanaged == [])"
shows '[.[0].pipe_list[].queues] | add == 0' slots "$vii" --json
printf '%s\n' '[taskset]' 'borrowers = no' 'neighbours = 1' 'own-pipes = yes' 'preemption = 1us' 'preemption-timeout = 0' \
	'activations = 100/1s' 'queue-changes = 100/1s' 'every-client-masked = yes' 'no-graphics = yes' '[partition lane]' 'host-submission = 0' \
	'[task t]' 'partition = lane' 'period = 1s' 'wcet = 15:1ms' >"$dir/set.ini"
plans=(rt plan "$dir/set.ini" --gpu "$vii" --config=/dev/null --json)
pipes_of() { jq -c "[.gpus[] | select(.name == \"$vii\") | .slots[] | select(.pid == $1).pipe]" \
	/sys/kernel/debug/kfdsim/state; }

ends 0 "${plans[@]}"
json_out '.partitions[0].pipe_neighbours == null and .unmanaged_processes == 0'
program idle "$GPUARBCTL" run --tenant lane --gpu "$vii" --shader-engines 1 --queues 2 -- sh -c 'echo ready; cat >/dev/null'
ends 0 "${plans[@]}"
json_out '.partitions[0].pipe_neighbours == null and
	(.assumptions | any(test("own-pipes = yes was not compared")))'
leave idle
settles '.leases == []'
program lane "$GPUARBCTL" run --tenant lane --gpu "$vii" --shader-engines 1 --queues 2 -- "$hip" --streams 1 --work --hold
settles '[.leases[].verified] == [true]'
check 'its queues have the highest priority of its tenant' jq -e "[.processes[] | select(.pid == ${pid[lane]}).queues[] |
	select(.alive and .type == \"compute\").priority] | length > 0 and all(. == 11)" /sys/kernel/debug/kfdsim/state
shows '.partitions[0].pipe_neighbours != null' "${plans[@]}"
json_out '.partitions[0].pipe_neighbours == 0 and .uncapped_leases == 1 and .unverified_leases == 0 and
	(.conditions | length) == 1'
exec 8< <(exec timeout "$patience" "$GPUARBCTL" rt monitor "$dir/set.ini" --gpu "$vii" --config=/dev/null --json 2>"$dir/err")
monitor=$!
said='gpuarbctl rt monitor'
read -r -t "$patience" event <&8
check 'it watches' jq -e '.event == "watching"' <<<"$event"
program other "${run[@]}" --gpu "$vii" --cus 15 --queues 5 -- "$hip" --streams 4 --work --hold
settles '[.leases[].verified] == [true, true]'
shows '.partitions[0].pipe_neighbours > 0' "${plans[@]}"
cp "$dir/out" "$dir/planned"
others=$(jq -n "$(pipes_of "${pid[lane]}") as \$own | $(pipes_of "${pid[other]}") |
	map(select(IN(\$own[]))) | length")
check 'the driver puts queues of both on one pipe' test "$others" -gt 0
said='gpuarbctl rt plan'
cp "$dir/planned" "$dir/out"
json_out '(.conditions | length) == 2'
said='gpuarbctl rt monitor'
cat <&8 >"$dir/out"
wait "$monitor"
check 'rt monitor ends with 9' test $? = 9
json_out '[.event, .assumption, .partition, .bound, .observed > 0] ==
	["violated", "pipe-neighbours", "lane", 0, true]'

# The partition is on one GPU of the set: a lease of its tenant on the other one is not its lease.
program elsewhere "$GPUARBCTL" run --tenant lane --gpu "$mi210" --shader-engines 1 --queues 2 -- "$hip" --streams 1 --work --hold
settles '[.leases[].verified] == [true, true, true]'
sed 's/^\[partition lane\]$/&\ngpu = left/' "$dir/set.ini" >"$dir/house.ini"
ends 0 rt plan "$dir/house.ini" --gpu "left=$vii,right=$mi210" --config=/dev/null --json
json_out '.partitions[0].pipe_neighbours > 0'
leave elsewhere
leave other

# ---- what cannot be read is refused ----------------------------------------------------------
ends 1 slots 0000:0f:00.0
leave lane
control "gone:$mi210"
settles "[.gpus[].name] == [\"$vii\", \"$v620\"]"
ends 1 slots "$mi210"
err_has "there is no GPU '$mi210'"
ends 0 slots "$v620"
finish
