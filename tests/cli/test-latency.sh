#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# gpuarbctl latency with the shipped gpuarbd and a modelled GPU (tests/rigs/latency-model.h).
#
#	test-latency.sh GPUARBCTL ELSEWHERE WITHOUT PROGRAM
#
# ELSEWHERE is a gpuarbctl whose latency program is missing, WITHOUT one that was built without HIP. PROGRAM is the
# program behind the verb.
set -u
GPUARBCTL=$1
elsewhere=$2
without=$3
program=$4
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"
rig_need dbus-daemon dbus-monitor jq python3

no_lease() { check 'no lease is left' test "$("$GPUARBCTL" list --json)" = '[]'; }

# model SCENARIO CODE ARGUMENT…
model()
{
	local scenario=$1 code=$2
	shift 2
	LATENCY_MODEL=$scenario ends "$code" latency "$@"
	no_lease
}

# model_is JQ SCENARIO ARGUMENT…: it ends with 0, and its JSON is so.
model_is() { model "$2" 0 --json "${@:3}"; json_out "$1"; }

# ---- usage -----------------------------------------------------------------------------
rig_start_bus
cat >"$dir/tenants.d/10-all.conf" <<-CONF
	[tenant everything]
	match-user = $(id -un)
	class = realtime
CONF
ends 2 latency --json --svg=x
ends 2 latency 0
fails 2 'value' latency --same-line=1
shows '--same-line' latency --help
ends 5 latency
ends 5 latency --json
json_err '.error | length > 0'

timeout "$patience" "$elsewhere" latency >"$dir/out" 2>"$dir/err"
check 'a program that is not there is a failure' test $? = 1
err_has '/nonexistent/gpuarb-latency'
err_has 'gpuarb-latency'
timeout "$patience" "$without" latency --json >"$dir/out" 2>"$dir/err"
check 'without HIP there is no measuring' test $? = 1
json_err '.error | test("built without HIP") and test("libamdhip64-dev")'
timeout "$patience" "$without" latency --json --svg=x >"$dir/out" 2>"$dir/err"
check 'wrong usage is wrong usage without HIP, too' test $? = 2

# ---- a GPU with WGPs -------------------------------------------------------------------
rig_start_daemon --simulate=rx6900xt
gpu=0000:03:00.0
model '' 0
out_has "$gpu: from WGP to WGP"
out_has 'SE 3'
out_has '  39 SE3.SH1:8-9'
out_has 'same WGP               median '
out_has '600 pairs'
out_lacks 'outlier'
out_lacks 'honoured'
err_has '1640 streams'

model '' 0 --same-line --no-legend
out_lacks 'nanoseconds'
err_has 'one line'

model '' 0 --json --gpu=0 --same-line --compare-and-swap
json_out 'keys == ["compare_and_swap","device","emulated","gpu","harvest_known","matrix","outliers","rounds","same_line","summary",
	"unit","units","unmet"]'
json_out ".gpu == \"$gpu\" and .emulated and .unit == \"wgp\" and .same_line and .compare_and_swap and (.units | length) == 40"
json_out '.matrix == (.matrix | transpose) and (.matrix | length == 40 and all(length == 40))'
json_out '[.matrix[][]] | all(. >= 50 and . <= 200)'
json_out '[.units[].shader_engine] == ([.units[].shader_engine] | sort)'
json_out '.units[1] | keys == ["cu_mask","mask_honoured","moved","name","ran_on","shader_engine","xccs"]'
json_out '.units[3] | .name == "SE0.SH0:6-7" and .mask_honoured and .cu_mask == "0x3000000000000"
	and .xccs == [{xcc: 0, shader_engine: 0, shader_array: 0, cu: 6}]
	and .ran_on == [{xcc: 0, shader_engine: 0, shader_array: 0, cu: 8}]'
json_out '.summary.same_unit.pairs == 40 and .summary.across.median > .summary.same_unit.median'
json_out '.outliers == {units: [], pairs: []} and .unmet == 0'

model slow 0 --json
json_out '[.outliers.units[].unit] == [27] and .outliers.units[0].ratio > 1.4
	and .outliers.pairs == []'
model slow 0
out_has '27 SE2.SH1:4-5*'
out_has 'outlier: SE2.SH1:4-5, 1.'
model slow-pair 0
out_has 'outlier: SE0.SH0:0-1 and SE1.SH0:0-1, 400 ns'
model_is '.outliers.pairs == [{units: [0, 10], ns: 400}] and .outliers.units == []' slow-pair

model strays 0
out_has 'SE1.SH0:2-3'
out_lacks 'fused'
out_has '11 SE1.SH0:2-3 !'
model_is '[.units[] | select(.mask_honoured == false) | .name] == ["SE1.SH0:2-3"]' strays
model wanders 0
out_has 'elsewhere'

model some-alone 0
out_has '2 pairs'
model_is '.unmet == 2 and ([.matrix[][] | select(. == null)] | length == 4)' some-alone

# ---- drawing ---------------------------------------------------------------------------
model strays 0 --svg="$dir/map.svg"
check 'a cell for each pair, and 7 in the legend' test "$(grep -c '<rect x=' "$dir/map.svg")" = 1607
check 'the drawing is whole' grep -qx '</svg>' "$dir/map.svg"
check 'what ran elsewhere is marked' grep -q 'SE3.SH1:8' "$dir/map.svg"
check 'it is XML' is_xml "$dir/map.svg"
model some-alone 0 --svg=-
out_has ': did not meet</title>'
model '' 1 --svg="$dir/none/map.svg"
err_has 'file'
model '' 1 --svg=/dev/full
err_has '/dev/full'
LATENCY_MODEL='' timeout "$patience" "$GPUARBCTL" latency >/dev/full 2>"$dir/err"
check 'a matrix that cannot be written is a failure' test $? = 1

# Without Python gpuarb-figures does not start.
install -D "$program" "$dir/alone/gpuarb-latency"
printf '#!/nonexistent/python3\n' >"$dir/alone/gpuarb-figures"
chmod +x "$dir/alone/gpuarb-figures"
for option in --json --no-legend "--svg=$dir/none.svg"; do
	LATENCY_MODEL='' timeout "$patience" "$dir/alone/gpuarb-latency" latency "$option" >"$dir/out" 2>"$dir/err"
	check "$option without gpuarb-figures is a failure" test $? = 1
	err_has 'gpuarb-figures'
	check 'what was measured is printed' test -s "$dir/out"
	json_out '.unit == "wgp" and (.matrix | length == 40)'
done
check 'the program prints the report of what was measured' sh -c \
	'"$1" --text "$2" | grep -q "600 pairs"' sh "$GPUARB_SOURCE_ROOT/client/calibrate/gpuarb-figures" "$dir/out"

# ---- failures --------------------------------------------------------------------------
model no-queue 3
err_has 'budget'
err_has '5 streams'
model no-slot 3 --json
check 'the failure is one object' sh -c 'head -n 1 "$1" | jq -e ".refusals == []"' sh "$dir/err"
err_has 'HIP'
model no-memory 1
err_has 'hipMalloc'
model bad-mask 1
err_has 'no CU in common'
model silent 1
err_has 'run'
err_has '1 games'
model alone 1
err_has '3 times'
LATENCY_TARGET=gfx-crash model '' 1
err_has 'gfx-crash'
LATENCY_TARGET=gfx-leave model '' 1
err_has 'gfx-leave'
LATENCY_TARGET=gfx-interrupt model '' 1
err_has 'interrupted'
LATENCY_TARGET=gfx-unknown model '' 1
err_has 'gfx-unknown'
ends 1 latency --gpu=0000:99:00.0
no_lease

# Not enough slots for two streams and the queue of ROCr.
hold reserve --cus=10 --queues=6
fails 3 'queues: 3 asked' latency
let_go TERM "$holder"

# ---- interruptions ---------------------------------------------------------------------
# blocked: starts a measurement that blocks in a game; its pid is in $holder.
blocked()
{
	said="gpuarbctl latency"
	exec 9< <(LATENCY_MODEL=blocks exec "$GPUARBCTL" latency 2>&1)
	holder=$!
	read -r -t "$patience" line <&9
	check 'it plays' test "$line" = blocks
	id=$("$GPUARBCTL" list --json | jq -r '.[] | select(.state == "granted").id')
	"$GPUARBCTL" show "$id" --json >"$dir/out"
	json_out '.name == "latency" and .class == "besteffort" and .partitions[0].cus == 80'
	json_out '.partitions[0] | .queues == 3 and .streams == 2'
}

# says SENTENCE: the rest of the output of the measurement contains it.
says()
{
	cat <&9 >"$dir/err"
	err_has "$1"
	err_has '0 left'
	wait_for "$holder"
}

for signal in INT TERM; do
	blocked
	kill -s "$signal" "$holder"
	says 'interrupted before the end'
	check "SIG$signal is a failure" test "$ended" = 1
	no_lease
done

blocked
ends 0 release "$id"
says 'the lease is lost'
check 'a lost lease has its own status' test "$ended" = 8

blocked
# The lease can end before the results are printed.
"$GPUARBCTL" resize "$id" --cus=20 >/dev/null 2>&1
says 'the lease changed'
check 'a changed lease, too' test "$ended" = 8
no_lease
rig_stop_daemon

# ---- a GPU without WGPs, and one with several XCCs ---------------------------------------
rig_start_daemon --simulate=mi300x-spx
model_is '.unit == "cu" and (.units | length == 38 and all(.xccs | length == 8))' ''
json_out '.harvest_known == false and (.units | all(.ran_on | length == 8))'
err_has '1482 streams'
model '' 0
out_has '8 XCCs'
out_has '550 pairs'
model wanders 0
out_has 'fused'
rig_done
