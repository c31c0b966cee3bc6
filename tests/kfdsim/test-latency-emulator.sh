#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The program behind gpuarbctl latency, calibrate and verify --probe with the real HIP, on the emulated
# driver. Without --timing no kernel runs there: the program must say so, and must not have taken more than it may.
#
#	test-latency-emulator.sh LATENCY
set -u
latency=$(readlink -f "$1")
state=/sys/kernel/debug/kfdsim/state

# ---- inside: the daemon and HIP have the emulated GPUs -----------------------------------
start()
{
	# shellcheck source=tests/cli/ctl-rig.sh
	. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"
	rig_start_bus
	printf '[tenant everything]\nmatch-user = %s\n' "$(id -un)" >"$dir/tenants.d/10-all.conf"
	rig_start_daemon --sysfs=/sys
}

# The programs that had queues: its compiler has none.
has_left()
{
	list_becomes '. == []'
	cat "$state" >"$dir/out"
	json_out ".processes | map(select(.made > 0)) | length <= 1 and all($1)"
	json_out '.gpus | all(.compute_queues == 0 and .oversubscriptions == 0)'
}

# measures CODE ARGUMENT…
measures()
{
	said="gpuarb-latency ${*:2}"
	timeout "$patience" "$latency" "${@:2}" >"$dir/out" 2>"$dir/err"
	check "it ends with $1" test $? = "$1"
}

# measures_nothing CODE SENTENCE ARGUMENT…
measures_nothing()
{
	measures "$1" "${@:3}"
	err_has "$2"
	check 'nothing is printed of what was not measured' test ! -s "$dir/out"
	has_left '.peak <= 3 and .alive == false'
}

# Two streams and what ROCr keeps, which has the lease's mask when they have theirs.
runs()
{
	measures_nothing 1 'the kernel did not run' "$@"
	json_out '[.processes[].queues[] | select(.type == "compute")] | length >= 3
		and all(.mask != null)'
	json_out '[.processes[].queues[] | select(.type == "compute" and .mask_bits > 0 and
		(.masks | length) > 1)] | length >= 2 and all(.dispatches >= 1)'
}

# A signal is heard while kernels play, which takes minutes on this card. Nothing but the state says how far it is.
has_queues() { jq -e '.processes[-1].queues[-1] | .id >= 2 and .mask' "$state" >/dev/null || ! kill -0 "$1"; }
interrupted()
{
	local pid
	said='gpuarb-latency, interrupted'
	"$latency" >"$dir/out" 2>"$dir/err" &
	pid=$!
	await_so 'it has its queues' has_queues "$pid"
	kill -INT "$pid"
	wait "$pid"
	check 'a signal is a failure' test $? = 1
	err_has 'interrupted'
	has_left '.peak <= 3 and .alive == false'
}

# kfdsim plays the kernels: without --emulated there is no result.
calibrates()
{
	local report=$dir/state/calibration/0000:03:00.0.json
	measures_nothing 1 '--emulated accepts them' calibrate --quick
	echo cost:1024:50000 >/sys/kernel/debug/kfdsim/control
	measures 0 calibrate --quick --emulated --json --html="$dir/page.html"
	json_out '[.emulated, .points[].emulated, .law.emulated, .memory_law.emulated, .costs.emulated] | all'
	json_out '.points | length == 20 and all(.occupied_cus == .expected_cus and .mask_honoured)'
	json_out '.masks_honoured == 20 and .law.a_usec > 0 and .memory_law.a_usec > 0 and .cliff > 3'
	json_out '[.points[] | select(.use == "law" and (.cus == 1 or .cus == 60)).usec] | .[0] > 3 * .[1]'
	check 'the page says so' grep -q EMULATED "$dir/page.html"
	mkdir -p "$dir/state/calibration"
	chmod 755 "$dir/state" "$dir/state/calibration"
	cp "$dir/out" "$report"
	chmod 644 "$report"
	rig_stop_daemon
	STATE_DIRECTORY=$dir/state rig_start_daemon --sysfs=/sys
	ends 0 gpus --json
	json_out '.[0].calibrated == null and (.[0].calibration_problem | test("emulated"))'
	list_becomes '. == []'
	[ -z "${GPUARB_LONG:-}" ] || ! grep -q 'HW Exception' "$(rocr)" || is_reset
}

rocr() { ldconfig -p | awk '$1 == "libhsa-runtime64.so.1" { print $NF; exit }'; }

# From 5.7 on ROCr ends a program whose GPU is reset; before, it hangs. What was measured before is there, and no lease is.
# A reset between two cases, when the program has no queue, does not end it.
is_reset()
{
	said='gpuarb-latency calibrate --paper on a GPU that is reset'
	"$latency" calibrate --emulated --paper="$dir/reset" --seed=2 >"$dir/out" 2>"$dir/err" &
	resets=$!
	await_so 'a case is saved' grep -qs '^masks' "$dir/reset/samples.tsv"
	await_so 'a reset ends it' is_ended_by_reset
	wait "$resets"
	check 'a reset is a failure' test $? != 0
	check 'the saved cases are left' grep -q '^masks' "$dir/reset/samples.tsv"
	list_becomes '. == []'
}

is_ended_by_reset()
{
	echo reset:0000:03:00.0 >/sys/kernel/debug/kfdsim/control
	[ "$(cut -d' ' -f3 "/proc/$resets/stat" 2>/dev/null || echo Z)" = Z ]
}

# The measurements of the paper, with competitors that are programs of their own.
papers()
{
	patience=900 measures 0 calibrate --emulated --paper="$dir/paper" --seed=2 --json
	json_out '.emulated and .missing == [] and (.laws | all(.a_usec > 0 and .median_error_percent < 15))'
	json_out '[.cases[] | select(.set == "competitor" and .competitor_threads != null)] | length == 24'
	check 'the figures or the page are there' test -s "$dir/paper/index.html"
	list_becomes '. == []'
	# More queues than the GPU has slots, which are 8.
	printf '[daemon]\noversubscribe = besteffort\n' >"$dir/gpuarbd.conf"
	ends 0 reload
	patience=900 measures 0 calibrate --emulated --paper="$dir/many" --seed=2 --oversubscribe --json
	json_out '.missing == [] and ([.cases[] | select(.set == "queues").queues] | max == 12)'
	list_becomes '. == []'
}

# A mask that the driver gets with another order of bits: every program that looks where kernels run says so.
# The masks with the same CUs of every shader engine are the exception.
finds_a_wrong_mask()
{
	local lease
	coproc holder { exec "$GPUARBCTL" reserve --shape=any --cus=2 --queues=6 --processes=2 --json 2>"$dir/err"; }
	await_so 'it has a lease' eval '"$GPUARBCTL" list --json >"$dir/out" && jq -e ".[0].state == \"granted\"" "$dir/out"'
	lease=$(jq '.[0].id' "$dir/out")
	measures 0 verify --probe "$lease" --json
	json_out '.[0] | .emulated and .result == "ok" and .occupied_cus == 2'
	echo shift:2 >/sys/kernel/debug/kfdsim/control
	measures 9 verify --probe "$lease" --json
	json_out '.[0].result == "drift"'
	# shellcheck disable=SC2154 # coproc sets it
	kill "$holder_PID"
	list_becomes '. == []'
	measures 0 latency --json
	json_out '.emulated and (.units | length == 8 and any(.mask_honoured == false))'
	echo shift:0 >/sys/kernel/debug/kfdsim/control
	measures 0 latency --json
	json_out '.units | all(.mask_honoured)'
	echo shift:2 >/sys/kernel/debug/kfdsim/control
	"$latency" calibrate --quick --emulated --json >"$dir/out" 2>"$dir/err"
	json_out '[.points[] | select(.use == "law" and (.name | test("^1 x")))] | length > 1 and all(.mask_honoured == false)'
}

# Each GPU to the end, at the same time, with a report of all masks: POINTS of the first GPU, and so on.
reports()
{
	local pids=() i=0 points
	echo cost:1024:50000 >/sys/kernel/debug/kfdsim/control
	for points; do
		timeout 400 "$latency" calibrate --quick --emulated --json --gpu="$i" >"$dir/report$i" 2>"$dir/err$i" &
		pids+=($!)
		i=$((i + 1))
	done
	i=0
	for points; do
		said="gpuarb-latency calibrate --gpu=$i"
		wait "${pids[i]}"
		check 'it ends with 0' test $? = 0
		cp "$dir/report$i" "$dir/out"
		cp "$dir/err$i" "$dir/err"
		json_out ".missing == [] and (.points | length == $points and all(.usec > 0 and .mask_honoured)) and .law.a_usec > 0"
		i=$((i + 1))
	done
	list_becomes '. == []'
}

# libgpuarb refuses the mask that leaves XCCs out. HIP sets it, and the driver has got it.
reports_bad()
{
	reports 21
	cp "$dir/report0" "$dir/out"
	json_out '.points[-1] | .use == "bad" and .cus == 10 and .expected_cus == 276'
	jq -r '.points[-1].cu_mask' "$dir/report0" >"$dir/mask"
	cat "$state" >"$dir/out"
	json_out ".processes | map(.queues[]?.masks[]?) | any(. == \"$(cat "$dir/mask")\")"
}

if [ -n "${2:-}" ]; then
	start
	"${@:2}"
	rig_done
fi

# ---- outside -------------------------------------------------------------------------------
cd "$GPUARB_ROOT/tests/kfdsim" || exit 1
# shellcheck source=tests/kfdsim/rig.sh
. ./rig.sh
rig_need jq dbus-daemon dbus-monitor
rig_need_kfdsim
here=("$GPUARB_ROOT/tests/kfdsim/test-latency-emulator.sh" "$latency")

ends 0 kfdsim --gpu radeon-vii --gpu mi210 -- "${here[@]}" runs --gpu=1 --json
ends 0 kfdsim --gpu rx6900xt -- "${here[@]}" runs --same-line
ends 0 kfdsim --gpu radeon-vii --timing -- "${here[@]}" interrupted
ends 0 kfdsim --gpu radeon-vii --timing -- "${here[@]}" calibrates
[ -z "${GPUARB_LONG:-}" ] ||
	ends 0 kfdsim --gpu v620 --gpu mi250 --timing -- "${here[@]}" reports 20 25
# What the HIP of Debian 12 and 13 does not know.
[ -z "${GPUARB_LONG:-}" ] || ldd "$latency" | grep -q 'libamdhip64\.so\.5' ||
	ends 0 kfdsim --gpu rx7900xtx --gpu rx9070xt --gpu strix-halo --timing -- "${here[@]}" reports 25 20 15
# A card with few WGPs, for a short game: 36 pairs.
mkdir "$dir/profiles"
sed 's/^cus-per-array = .*/cus-per-array = 4/; s/^shader-engines = .*/shader-engines = 2/; s/^active = .*/active = 4 4 4 4/' \
	"$GPUARB_ROOT/conf/gpus/rx6900xt.conf" >"$dir/profiles/small.conf"
ends 0 kfdsim --profiles "$dir/profiles" --gpu small --timing -- "${here[@]}" finds_a_wrong_mask
[ -z "${GPUARB_LONG:-}" ] ||
	ends 0 kfdsim --profiles "$dir/profiles" --gpu small --timing -- "${here[@]}" papers
# ROCr 5.2 does not know gfx942 and is told that it is gfx90a.
if [ -n "${GPUARB_LONG:-}" ]; then
	export HSA_OVERRIDE_GFX_VERSION=9.0.10
	ends 0 kfdsim --gpu mi300x-spx --timing -- "${here[@]}" reports_bad
	ends 0 kfdsim --gpu mi300x-cpx --timing -- "${here[@]}" reports 20 20
	unset HSA_OVERRIDE_GFX_VERSION
fi
ends 0 kfdsim --gpu radeon-vii --fail 'create-queue:*:ENOMEM' -- "${here[@]}" \
	measures_nothing 1 'hipModuleLoadData: '
ends 0 kfdsim --gpu radeon-vii --fail 'set-cu-mask:*:EINVAL' -- "${here[@]}" \
	measures_nothing 3 'HIP got no queue'
rig_done
