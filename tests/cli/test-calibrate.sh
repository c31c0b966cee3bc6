#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# gpuarbctl calibrate with the shipped gpuarbd and a modelled GPU (tests/rigs/latency-model.h).
#
#	test-calibrate.sh GPUARBCTL WITHOUT PROGRAM
#
# WITHOUT is a gpuarbctl that was built without HIP, PROGRAM what GPUARBCTL starts.
set -u
GPUARBCTL=$1
without=$2
program=$3
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"
rig_need dbus-daemon jq

no_lease() { check 'no lease is left' test "$("$GPUARBCTL" list --json)" = '[]'; }

# calibrates SCENARIO CODE ARGUMENT…
calibrates()
{
	local scenario=$1 code=$2
	shift 2
	LATENCY_MODEL=$scenario ends "$code" calibrate --quick "$@"
	no_lease
}

# ---- usage -----------------------------------------------------------------------------
rig_start_bus
printf '[tenant everything]\nmatch-user = %s\n' "$(id -un)" >"$dir/tenants.d/10-all.conf"
ends 2 calibrate 0
ends 2 calibrate --same-line
ends 2 calibrate --json --html=-
ends 2 calibrate --json --submit-file=-
ends 2 calibrate --html="$dir/both" --submit-file="$dir/both"
shows '--gpu' calibrate --help
ends 5 calibrate
timeout "$patience" "$without" calibrate --json >"$dir/out" 2>"$dir/err"
check 'without HIP nothing is measured' test $? = 1
json_err '.error | test("libamdhip64-dev")'

# ---- one XCC ----------------------------------------------------------------------------
rig_start_daemon --simulate=radeon-vii
calibrates '' 0 --json
json_out '.schema == "gpuarb-calibration" and .version == 1 and .emulated
	and .gfx_target == "gfx906" and .cus == 60'
json_out '(.points | length) == .masks_honoured and (.points | all(.mask_honoured and .occupied_cus == .expected_cus))'
json_out '.points | map(select(.use == "law")) | any(.cus == 60) and any(.cus == 1) and all(.effective_cus == .cus)'
# The model has b = 10 % of the time on the whole GPU.
json_out '.law.constant_percent > 9.5 and .law.constant_percent < 10.5 and .law.worst_error_percent < 0.5'
json_out '.cliff > 5 and (.points | all(.repeats == 3 and .throttled == false))'
json_out '.memory_law.kernel == "memory" and .memory_law.constant_percent > 39 and .memory_law.constant_percent < 41'
json_out '.points | map(select(.use == "random")) | length == 4'
json_out '[.points[].emulated, .law.emulated, .memory_law.emulated, .costs.emulated] | all'
json_out '.interference == [] and .costs.preemption_usec == null and .shared == false and .missing == []'
json_out '[.. | strings] | all(test(env.USER // "nobody") | not)'
calibrates '' 0 --gpu=0
out_has 'EMULATED'
err_has 'calibrate'

# Times that differ are measured more often, and the spread is printed.
calibrates hot 0 --json
json_out '.points | any(.repeats > 3) and any(.spread_percent > 5)'

# The clock of the GPU jumps; the GPU is hot for a while.
calibrates jumps 0 --json
json_out '.clock_jumps == 2 and .law.worst_error_percent < 0.5 and (.events | length == 2 and all(.kind == "clock" and .repeated))'
calibrates warm 0 --json
json_out '.pauses > 0 and (.points | all(.throttled == false)) and .law.worst_error_percent < 0.5'
json_out '.pauses == (.events | length) and ([.points[].name] as $names | .events | all(
	.kind == "throttled" and .repeated and .slower_percent > 5 and .seconds > 0 and (.during | IN($names[]))))'
calibrates hangs 1

# A GPU that does not honour masks, and one that runs nothing.
calibrates no-mask 0 --json
json_out '.masks_honoured < (.points | length) and (.points | any(.occupied_cus > .cus)) and .law.a_usec == null'
calibrates silent 1 --json
check 'nothing is printed of what was not measured' test ! -s "$dir/out"
check 'the failure is one object' sh -c 'head -n 1 "$1" | jq -e ".refusals == []"' sh "$dir/err"
calibrates no-slot 1 --json
json_out '.missing | length == 1'
calibrates no-first-slot 3 --json
check 'nothing is printed if the whole GPU was not measured' test ! -s "$dir/out"
# A mask that fails costs that mask, and a kernel that does not end what follows.
calibrates no-memory 1 --json
json_out '(.missing | length == 1 and (.[0].why | test("out of memory"))) and (.points | length > 10)
	and .masks_honoured == (.points | length) and .law.worst_error_percent < 0.5'
err_has 'complete: '
calibrates bad-mask 1 --html="$dir/missing.html"
out_has 'missing: '
out_has 'no CU in common'
check 'the page has what is missing' grep -q 'no CU in common' "$dir/missing.html"
calibrates hangs-later 1 --json
json_out '(.missing | map(.why) | length == 2 and (.[0] | test("has not ended"))) and .missing[1].step == "all that follows"
	and (.points | length > 2) and .masks_honoured == (.points | length)'

# ---- neighbours, changes, pages -------------------------------------------------------------
mkdir "$dir/beside"
export LATENCY_BESIDE=$dir/beside LATENCY_MODEL=
ends 0 calibrate --gpu=0 --json --html="$dir/page.html" --submit-file="$dir/submit.md"
no_lease
json_out '.interference | map([.kind, .neighbours]) == [["memory",1],["memory",3],["compute",1],["compute",3]]'
json_out '.interference | all(.emulated and .bistable == false and (.rounds | length) == 5)'
json_out '[.interference[].slowdown_percent] as $s | [125,175,110,130] | to_entries | all($s[.key] - .value | . >= 0 and . <= 1)'
json_out '.costs == {emulated: true, stream_usec: 9300, change_usec: 55, preemption_usec: 41,
	pause_usec: 48, resume_usec: 33, paused_usec: 97}'
check 'no process is left' test -z "$(ls "$dir/beside")"
json_out '.ladder | map([.queues, .processes]) == [[1,1],[2,1],[4,1],[5,1],[2,2],[3,3],[4,4]] and all(.emulated)'
cp "$dir/out" "$dir/full.json"
jq '.points = [] | .missing = [{ step: "every mask", why: "no CU in common" }]' "$dir/full.json" >"$dir/none.json"
"$GPUARB_SOURCE_ROOT/client/calibrate/gpuarb-figures" --report "$dir/none.json" >"$dir/none.html"
check 'a report without points has a page' grep -q 'no CU in common' "$dir/none.html"
check 'the page says that nothing was measured' grep -q 'EMULATED' "$dir/page.html"
check 'the page has the ladder' grep -q 'Processes<th>' "$dir/page.html"
check 'the page has figures, or says why not' grep -qE '<svg|python3-matplotlib' "$dir/page.html"
sed -n '/^```json$/,/^```$/p' "$dir/submit.md" | grep -v '^```' >"$dir/out"
json_out '.schema == "gpuarb-calibration" and .emulated'
fails 1 '/nonexistent/page.html' calibrate --quick --html=/nonexistent/page.html
check 'nothing is measured for a file that cannot be written' sh -c '! grep -q games "$1"' sh "$dir/err"
fails 1 "$dir" calibrate --quick --submit-file="$dir"
check 'nothing is measured for a directory' sh -c '! grep -q neighbours "$1"' sh "$dir/err"
# More queues than slots: gpuarbd must grant them, and the ladder ends where it is much slower, or hangs.
ends 2 calibrate --oversubscribe --quick
ends 2 calibrate --oversubscribe --shared
fails 3 'oversubscribe = besteffort' calibrate --oversubscribe --gpu=0
no_lease
printf '[daemon]\noversubscribe = besteffort\n' >"$dir/gpuarbd.conf"
ends 0 reload
LATENCY_MODEL=slots ends 0 calibrate --oversubscribe --json
no_lease
json_out '.ladder | map(.queues) == [1,2,4,5,2,3,4,23,24,27] and (map(select(.oversubscribed) | .queues) == [24,27])'
json_out '.ladder | .[-1].usec > 4 * .[0].usec'
LATENCY_MODEL=stuck ends 0 calibrate --oversubscribe --gpu=0
err_has 'hang'
out_has '(oversubscribed)'
LATENCY_MODEL=stuck ends 0 calibrate --oversubscribe --json --html="$dir/stuck.html"
json_out '.ladder[-1] | .queues == 27 and .oversubscribed and .usec == null'
check 'the page has no number that is none' sh -c '! grep -qw nan "$1"' sh "$dir/stuck.html"
: >"$dir/gpuarbd.conf"
ends 0 reload
# Interrupted while neighbours run, nothing is left.
exec 9< <(exec "$GPUARBCTL" calibrate --json 2>&1)
holder=$!
two_run() { [ -n "$(find "$dir/beside" -name '*.*' | sed 1d)" ] || ! kill -0 "$holder" 2>/dev/null; }
await_so 'two programs run beside each other' two_run
kill -INT "$holder"
cat <&9 >"$dir/out"
wait_for "$holder"
check 'an interruption is a failure' test "$ended" = 1
check 'it has no report' test "$(grep -c '"schema"' "$dir/out")" = 0
no_lease
check 'no process is left' test -z "$(ls "$dir/beside")"
unset LATENCY_BESIDE LATENCY_MODEL

# ---- the report in the daemon --------------------------------------------------------------
report=$dir/state/calibration/0000:03:00.0.json
rig_stop_daemon
mkdir -p "$dir/state/calibration"
chmod 755 "$dir/state" "$dir/state/calibration"
export STATE_DIRECTORY=$dir/state
rig_start_daemon --simulate=radeon-vii
cp "$dir/full.json" "$dir/emulated.json"

# installs FILTER: root installs the report, edited by jq.
installs()
{
	jq "$1" "$dir/emulated.json" >"$report"
	chmod 644 "$report"
	ends 0 reload
	ends 0 gpus --json
}
# doctor finds more than this; only this finding counts here.
finds() { said='gpuarbctl doctor'; "$GPUARBCTL" doctor --json >"$dir/out" 2>"$dir/err"; json_out "$1"; }
installs .
finds 'map(select(.check == "daemon" and .result == "note")) | any(.found | startswith("0000:03:00.0"))'
ends 0 gpus --json
json_out '.[0] | .calibrated == null and (.calibration_problem | test("emulated")) and .law_source == "RTNS 2021, Radeon VII"'
shows ': emulated' status
installs '(.. | objects | select(has("emulated"))).emulated = false | .date = "2026-11-23" | .costs = {preemption_usec: 41}
	| .interference = [{kind: "memory", neighbours: 1, slowdown_percent: 133,
		throttled: false, rounds: [1.1, 1.33, 1, 1.2, 0.9]}]'
json_out '.[0] | .law == "measured" and .law_source == "calibrated 2026-11-23" and .law_constant == 10
	and .calibrated == "2026-11-23" and .calibration_problem == null and .preemption_usec == 41
	and .slowdowns == [{kind: "memory", neighbours: 1, slowdown_percent: 133}]'
shows 'law = measured (calibrated 2026-11-23)' status
finds 'map(select(.check == "daemon" and .result == "ok")) | any(.found | test("2026-11-23"))'
prints '.law_source == "calibrated 2026-11-23" and .law_constant == 10' mask explain --gpu=0 0xf --json
shows 'law measured: calibrated 2026-11-23' mask explain --gpu=0 0xf
cat >"$dir/tasks.conf" <<-TASKS
	[taskset]
	neighbours = 1
	queue-changes = 0
	[partition one]
	[task work]
	partition = one
	period = 100ms
	wcet = 15:2ms
TASKS
ends 0 rt plan "$dir/tasks.conf" --gpu=0 --config="$dir/gpuarbd.conf" --json
json_out '.margin_source | test("1.33 on this GPU beside 1, memory, calibrated 2026-11-23")'
json_out '.assumptions | any(test("up to 41 us on this GPU, calibrated 2026-11-23"))'
# Without neighbours, margins are not those of this card.
installs '(.. | objects | select(has("emulated"))).emulated = false | .date = "2026-11-23" | .costs = {preemption_usec: 41}
	| .interference = []'
finds 'map(select(.check == "daemon" and .result == "ok")) | any(.means | test("neighbours"))'
# A restart reads it, too; one without the file does not.
rig_stop_daemon
rig_start_daemon --simulate=radeon-vii
prints '.[0].calibrated == "2026-11-23"' gpus --json
rm "$report"
ends 0 reload
ends 0 gpus --json
json_out '.[0] | .calibrated == null and .calibration_problem == null and .law_source == "RTNS 2021, Radeon VII"'
unset STATE_DIRECTORY

# ---- neighbours, and interruptions --------------------------------------------------------
hold reserve --cus=15
id=$("$GPUARBCTL" list --json | jq '.[0].id')
LATENCY_MODEL='' ends 3 calibrate --json
json_err ".error | test(\"lease $id \")"
check 'nothing is printed beside another lease' test ! -s "$dir/out"
LATENCY_MODEL='' ends 0 calibrate --quick --shared --json
json_out '.shared and .masks_honoured == (.points | length) and (.points | map(select(.use == "law").cus) | max == 45)'
json_out '.law.constant_percent > 5 and .law.worst_error_percent < 0.5'
# probes SCENARIO CODE: the model runs a kernel under the lease that is held.
probes() { LATENCY_MODEL=$1 ends "$2" verify --probe "$id" --json; }
probes '' 0
json_out 'length == 1 and .[0].check == "probe" and .[0].result == "ok" and .[0].emulated
	and .[0].granted_cus == 15 and .[0].occupied_cus == 15 and .[0].gpu == "0000:03:00.0"'
json_out ".[0].lease == $id"
probes no-mask 9
json_out '.[0] | .result == "drift" and .occupied_cus == 60'
LATENCY_MODEL='' ends 0 verify --probe "$id"
out_has "lease $id on 0000:03:00.0"
probes silent 1
probes no-first-slot 3
ends 2 verify --probe
ends 1 verify --probe 999
timeout "$patience" "$without" verify --probe "$id" >"$dir/out" 2>"$dir/err"
check 'without HIP nothing is probed' test $? = 1
check 'the lease is left' test "$("$GPUARBCTL" list --json | jq length)" = 1
let_go TERM "$holder"
no_lease

# Each GPU of a gang.
rig_stop_daemon
rig_start_daemon --simulate=radeon-vii,mi210
hold reserve --gpu=0 --cus=15 --gpu=1 --cus=26
id=$("$GPUARBCTL" list --json | jq '.[0].id')
probes '' 0
json_out 'map(.gpu) == ["0000:03:00.0","0000:04:00.0"] and map(.occupied_cus) == [15,26] and all(.result == "ok")'
probes no-mask 9
json_out 'map(.occupied_cus) == [60,104] and all(.result == "drift")'

# ends_alone CODE ARGUMENT…: the program without gpuarbctl, which checks arguments before it starts it.
ends_alone() { GPUARBCTL=$program ends "$@"; }
ends_alone 2 calibrate --nonsense
ends_alone 2 neighbour
ends_alone 2 neighbour 0 "$dir" 1
ends_alone 2 neighbour "$id"
ends_alone 1 neighbour 999 "$dir" 1
let_go TERM "$holder"
no_lease
LATENCY_MODEL='' ends 1 calibrate --quick --gpu=0 --html=/dev/full
no_lease

# interrupts MODEL ARGUMENT…: when the model blocks. What it has printed is in out.
interrupts()
{
	exec 9< <(LATENCY_MODEL=$1 exec "$GPUARBCTL" calibrate "${@:2}" 2>&1)
	holder=$!
	check 'it measures' await_line 9 blocks
	kill -INT "$holder"
	cat <&9 >"$dir/out"
	wait_for "$holder"
	check 'an interruption is a failure' test "$ended" = 1
}
interrupts blocks --quick --json
json_lines=$(grep -c '"schema"' "$dir/out")
check 'nothing is printed of an interrupted measurement' test "$json_lines" = 0
no_lease
rig_stop_daemon

# ---- several XCCs, and WGPs -----------------------------------------------------------------
rig_start_daemon --simulate=mi300x-spx
calibrates '' 0 --json
json_out '.masks_honoured == (.points | length) and (.points | map(select(.use != "bad")) | all(.cus % 8 == 0 or .use == "random"))'
json_out '.points | map(select(.use == "bad")) | length == 1 and all(.cus == 10 and .expected_cus == 276)'
json_out '.points | map(select(.use == "law")) | any(.cus == 8) and all(.effective_cus == .cus)'
json_out '.law.worst_error_percent < 0.5'
rig_stop_daemon
rig_start_daemon --simulate=rx7800xt
calibrates '' 0 --json
json_out '.masks_honoured == (.points | length) and (.points | all(.cus % 2 == 0))'
rig_stop_daemon
# Too few slots for a second process.
rig_start_daemon --simulate=rx9070xt
LATENCY_MODEL=hangs ends 1 calibrate --gpu=0
err_has '6 free'
# ---- the measurements of the paper, on a small GPU --------------------------------------------
rig_stop_daemon
rig_start_daemon --simulate=strix-halo
ends 2 calibrate --paper="$dir/paper" --quick
ends 2 calibrate --seed=3
ends 2 calibrate --paper="$dir/paper" --seed=0
fails 1 "$dir/no/paper" calibrate --paper="$dir/no/paper"
ends 0 calibrate --gpu=0 --paper="$dir/paper" --seed=3 --json
no_lease
check 'no process is left' test -z "$(ls "$dir/beside")"
err_has '--seed=3'
cmp -s "$dir/out" "$dir/paper/paper.json" || complain 'paper.json is another report'
json_out '.schema == "gpuarb-paper" and .emulated and .seed == 3 and .missing == [] and (.laws | all(.worst_error_percent < 1))'
json_out '[.cases[] | .samples | length] | all(. >= 5 and . <= 30)'
json_out '.cases | all(.low_usec <= .median_usec and .median_usec <= .high_usec)'
json_out '[.cases[] | select(.set == "competitor" and .competitor_threads != null)] | length == 24 and all(.competitor_mask != null)'
samples=$(jq '[.cases[].samples[]] | length' "$dir/out")
check 'each sample has a row' test "$(grep -c '^[mcq]' "$dir/paper/samples.tsv")" = "$samples"
check 'the data says that it is of a model' grep -q '^#.*EMULATED' "$dir/paper/samples.tsv"
check 'the data has its command' grep -qx '# gpuarbctl calibrate --gpu=0000:03:00.0 --paper=DIR --seed=3' "$dir/paper/samples.tsv"
check 'the page names the data' grep -q samples.tsv "$dir/paper/index.html"
fails 1 paper.json calibrate --paper="$dir/paper"
rm "$dir/paper/paper.json"
fails 1 samples.tsv calibrate --paper="$dir/paper"
# No room for the samples: the limit of a file's size stands for a full disk.
(trap '' XFSZ; ulimit -f 8; ends 1 calibrate --gpu=0 --paper="$dir/full"; exit "$failed") || failed=$((failed + 1))
err_has samples.tsv
no_lease
# Where nothing was measured nothing is written, and the next run may have the directory.
LATENCY_MODEL=hangs ends 1 calibrate --gpu=0 --paper="$dir/hangs" --json
check 'nothing is printed of what was not measured' test ! -s "$dir/out"
check 'there is no data' test ! -s "$dir/hangs/samples.tsv" -a ! -e "$dir/hangs/paper.json"
# A kernel that never ends: what was measured before is there.
LATENCY_MODEL=hangs-later ends 1 calibrate --gpu=0 --paper="$dir/hangs" --seed=3 --json
json_out '(.missing | length == 2) and (.cases | length > 2)'
check 'its samples are saved' test -s "$dir/hangs/samples.tsv"
# Interrupted: the same. A competitor that dies costs its case.
interrupts blocks-together --gpu=0 --paper="$dir/cut" --seed=3
out_has 'missing: MM'
cp "$dir/cut/paper.json" "$dir/out"
json_out '(.missing | .[-1].why == "interrupted" and any(.[:-1][]; .step | test("beside MM"))) and (.cases | length > 0)'
no_lease

rig_done
