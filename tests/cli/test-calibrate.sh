#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# gpuarbctl calibrate with the shipped gpuarbd and a modelled GPU (tests/rigs/latency-model.h).
#
#	test-calibrate.sh GPUARBCTL WITHOUT
#
# WITHOUT is a gpuarbctl that was built without HIP.
set -u
GPUARBCTL=$1
without=$2
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"
rig_need dbus-daemon jq

no_lease() { check 'no lease is left' test "$("$GPUARBCTL" list --json)" = '[]'; }

# calibrates SCENARIO CODE ARGUMENT…
calibrates()
{
	local scenario=$1 code=$2
	shift 2
	LATENCY_MODEL=$scenario ends "$code" calibrate "$@"
	no_lease
}

# ---- usage -----------------------------------------------------------------------------
rig_start_bus
: >"$dir/gpuarbd.conf"
mkdir "$dir/tenants.d"
printf '[tenant everything]\nmatch-user = %s\n' "$(id -un)" >"$dir/tenants.d/10-all.conf"
ends 2 calibrate 0
ends 2 calibrate --same-line
ends 0 calibrate --help
out_has '--gpu'
ends 5 calibrate
timeout 60 "$without" calibrate --json >"$dir/out" 2>"$dir/err"
check 'without HIP nothing is measured' test $? = 1
json_err '.error | test("libamdhip64-dev")'

# ---- one XCC ----------------------------------------------------------------------------
rig_start_daemon --simulate=radeon-vii
calibrates '' 0 --json
json_out '.schema == "gpuarb-calibration" and .version == 1 and .emulated
	and .gfx_target == "gfx906" and .cus == 60'
json_out '(.points | length) == .masks_honoured and (.points | all(.mask_honoured and .occupied_cus == .cus))'
json_out '.points | map(select(.use == "law")) | any(.cus == 60) and any(.cus == 1) and all(.effective_cus == .cus)'
# The model has b = 10 % of the time on the whole GPU.
json_out '.law.constant_percent > 9.5 and .law.constant_percent < 10.5 and .law.worst_error_percent < 0.5'
json_out '.cliff > 5 and (.points | all(.repeats == 3))'
calibrates '' 0 --gpu=0
out_has 'EMULATED'
err_has 'calibrate'

# Times that differ are measured more often, and the spread is printed.
calibrates hot 0 --json
json_out '.points | any(.repeats > 3) and any(.spread_percent > 5)'

# A GPU that does not honour masks, and one that runs nothing.
calibrates no-mask 0 --json
json_out '.masks_honoured < (.points | length) and (.points | any(.occupied_cus > .cus))'
calibrates silent 1 --json
check 'nothing is printed of what was not measured' test ! -s "$dir/out"
check 'the failure is one object' sh -c 'head -n 1 "$1" | jq -e ".refusals == []"' sh "$dir/err"
calibrates no-slot 3
calibrates no-memory 1

# ---- neighbours, and interruptions --------------------------------------------------------
hold reserve --cus=15
id=$("$GPUARBCTL" list --json | jq '.[0].id')
LATENCY_MODEL='' ends 3 calibrate --json
json_err ".error | test(\"lease $id \")"
check 'nothing is printed beside another lease' test ! -s "$dir/out"
let_go TERM "$holder"

exec 9< <(LATENCY_MODEL=blocks exec "$GPUARBCTL" calibrate --json 2>&1)
holder=$!
while read -r -t 60 line <&9 && [ "$line" != blocks ]; do :; done
check 'it measures' test "$line" = blocks
kill -INT "$holder"
cat <&9 >"$dir/out"
wait_for "$holder"
check 'an interruption is a failure' test "$ended" = 1
json_lines=$(grep -c '"schema"' "$dir/out")
check 'nothing is printed of an interrupted measurement' test "$json_lines" = 0
no_lease
rig_stop_daemon

# ---- several XCCs, and WGPs -----------------------------------------------------------------
rig_start_daemon --simulate=mi300x-spx
calibrates '' 0 --json
json_out '.masks_honoured == (.points | length) and (.points | all(.cus % 8 == 0))'
json_out '.points | map(select(.use == "law")) | any(.cus == 8) and all(.effective_cus == .cus)'
json_out '.law.worst_error_percent < 0.5'
rig_stop_daemon
rig_start_daemon --simulate=rx7800xt
calibrates '' 0 --json
json_out '.masks_honoured == (.points | length) and (.points | all(.cus % 2 == 0))'
rig_done
