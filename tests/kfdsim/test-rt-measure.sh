#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-rt-measure.sh LIBRARY: gpuarbctl rt measure with AMD's unmodified HIP, and that rt plan takes what it
# prints. The times of kernels are those that the emulator has.
set -eu
library=$(realpath "$1")
cd "$(dirname "$0")"
# shellcheck source=tests/scenes/stage.sh
. ../scenes/stage.sh
if [ "${INSIDE:-}" != yes ]; then
	stage_build realtime
	export INSIDE=yes
	stage_options=(--timing)
	play radeon-vii "${BASH_SOURCE[0]##*/}" "$library"
	exit
fi

failed() { echo "failed: $*"; cat "$stage/out" "$stage/err" "$stage/log"; exit 1; }

# ends CODE ARGUMENT…: rt measure on the only GPU.
ends()
{
	local code=0
	gpuarbctl rt measure "${@:2}" >"$stage/out" 2>"$stage/err" </dev/null || code=$?
	[ "$code" = "$1" ] || failed "rt measure ${*:2}: ended with $code, not $1"
}
says() { grep -qF -- "$1" "$stage/err" || failed "no '$1'"; }
json() { jq -e "$1" "$stage/out" >/dev/null || failed "not so: $1"; }

stage_tenants='[tenant *]
class = guaranteed'
stage_enter

ends 1 -- true
says "$(python3 -c 'import errno, os; print(os.strerror(errno.EOPNOTSUPP))')"
says libgpuarb-kernel-times.so
export GPUARB_AGENT_DIR=${library%/*}
for sizes in 0 5 2,1 1,1 x 1- 1:2 ''; do ends 2 --sizes="$sizes" -- true; done
ends 2 --runs=0 -- true
ends 2
ends 1 --gpu=9 -- true
ends 1 --runs=1 --sizes=4 -- true
says "$(python3 -c 'import errno, os; print(os.strerror(errno.EOPNOTSUPP))')"
says hipLaunchKernel
ends 1 --runs=1 --sizes=4 -- false
says 'false ended with 1 on 4 shader engines'
# shellcheck disable=SC2046 # many words
ends 1 --runs=1 --sizes=4 -- true $(seq 1100)
says 'launched no kernel'
# shellcheck disable=SC2016 # the shell of the command expands it
for lines in '257 more' '100 hipEventElapsedTime'; do
	ends 1 --runs=1 --sizes=4 -- sh -c 'seq -f "kernel 5000 30 k%g" "$1" >>"$GPUARB_KERNEL_TIMES"
		echo "$2" >>"$GPUARB_KERNEL_TIMES"' sh $lines
	says "${lines#* }"
done
# The command has its words and descriptors as they are.
# shellcheck disable=SC2016
ends 1 --runs=1 --sizes=4 -- sh -c '[ "$*" = "-- a -- b" ] && read -r line <&6' sh -- a -- b 6<<<x
says 'launched no kernel'
# A reader that goes is no error to tell of.
mkfifo "$stage/pipe"
exec 5<>"$stage/pipe" 6>"$stage/pipe" 5<&-
code=0
# shellcheck disable=SC2016
gpuarbctl rt measure --runs=1 --sizes=4 -- sh -c 'echo "kernel 5000 30 k" >>"$GPUARB_KERNEL_TIMES"' \
	>&6 2>"$stage/err" </dev/null || code=$?
[ "$code" = 141 ] && [ ! -s "$stage/err" ] || failed "rt measure ended with $code"
exec 6>&-
# shellcheck disable=SC2016
ends 1 --runs=1 --sizes=2 -- sh -c '[ ! -e "$1/alone" ] || exit 3
	: >"$1/alone"
	echo "kernel 5000 30 k" >>"$GPUARB_KERNEL_TIMES"' sh "$stage"
says 'no kernel on the other shader engines, beside 2'
settles '.leases == []'

# When rt measure is killed, the command beside the measured one is not started again.
mkfifo "$stage/gate"
exec 5<>"$stage/gate"
# shellcheck disable=SC2016 # the shell of the command expands them
gpuarbctl rt measure --runs=1 --sizes=2 -- sh -c 'echo "kernel 5000 30 k" >>"$GPUARB_KERNEL_TIMES"
	[ ! -e "$1/once" ] || read -r _ <"$1/gate"
	: >"$1/once"' sh "$stage" >"$stage/out" 2>"$stage/err" </dev/null 5<&- &
measure=$!
settles '.leases | length == 2'
kill -KILL "$measure"
wait "$measure" 2>/dev/null || true
printf '\n\n\n\n' >&5
settles '.leases == []'
exec 5<&-

# plans: rt plan takes what was printed.
plans()
{
	sed -i 's/^# period = TIME/period = 1s/; s/^# preemption = TIME.*/preemption = 100us/' "$stage/out"
	cp "$stage/out" "$stage/set.ini"
	gpuarbctl rt plan "$stage/set.ini" --profile=radeon-vii --profiles="$tree/conf/gpus" --json \
		>"$stage/out" 2>"$stage/err" || failed 'rt plan refuses what rt measure prints'
}

# A kernel that is never seen alone, and two whose names have one end.
rm "$stage/once"
# shellcheck disable=SC2016 # the shell of the command expands them
ends 0 --runs=1 --sizes=2 -- sh -c 'end=_of_a_kernel_that_has_a_very_long_name
	printf "kernel %u 30 %s\n" 5000 "first$end" 6000 "second$end" >>"$GPUARB_KERNEL_TIMES"
	[ ! -e "$1/once" ] || echo "kernel 7000 30 other" >>"$GPUARB_KERNEL_TIMES"
	: >"$1/once"' sh "$stage"
grep -q '^# .*7 us.*wcet$' "$stage/out" ||
	failed 'it does not tell where the time is from'
plans
json '[.tasks[] | .name, .wcet_usec] == ["a_kernel_that_has_a_very_long_name"[-32:], 5,
	"a_kernel_that_has_a_very_long_name"[-30:] + ".2", 6, "other", 7]'

# Beside another command, whose kernels are not those of the measured one. It is named on one line.
ends 2 --beside="$(printf 'a\nb')" -- true
# shellcheck disable=SC2016 # the shell of the command expands them
other='echo "kernel 9000 30 theirs" >>"$GPUARB_KERNEL_TIMES"'
# shellcheck disable=SC2016
ends 0 --runs=1 --sizes=2 --beside="$other" --json -- sh -c 'echo "kernel 5000 30 ours" >>"$GPUARB_KERNEL_TIMES"'
json '[.kernels[].name] == ["ours"] and (.beside | test("theirs")) and .neighbour_kernels > 0 and .margin_percent == 0'
# Half of each engine while the other has the rest; and both on all CUs.
ends 2 --beside-on=nowhere -- true
# shellcheck disable=SC2016
leases='echo "kernel 5000 30 $(gpuarbctl list --json | jq -c "[.[].partitions[].cus] | sort")" >>"$GPUARB_KERNEL_TIMES"'
ends 0 --runs=1 --sizes=2 --beside="$other" --beside-on=shared --json -- sh -c "$leases"
json '.beside_on == "shared" and .neighbour_kernels > 0 and any(.kernels[]; .name == "[28,32]")'
ends 0 --runs=1 --sizes=1,4 --beside="$other" --beside-on=all --json -- sh -c "$leases"
json '.beside_on == "all" and ([.kernels[].name] | index("[15,60]") and index("[60,60]"))'
ends 1 --runs=1 --sizes=2 --beside='exit 3' -- sh -c 'echo "kernel 5000 30 ours" >>"$GPUARB_KERNEL_TIMES"'
says 'exit 3'

# Two frames after a first one: each is two kernels of one name. HIP's times can be too long where an end came
# late (README.md, «Simulate time»), as on a busy machine: the times of one of ten runs are the emulator's.
program=(sh -c 'echo frames 2 | "$@"' sh "$CLIENT_REALTIME" --plain 60)
for attempt in 1 2 3 4 5 6 7 8 9 last; do
	ends 0 --runs=1 --sizes=4 --json -- "${program[@]}"
	longest=$(awk -F'\t' 'NR > 1 && $6 != 64 || $5 == 1 { if ($8 > most) most = $8 } END { print most }' \
		/sys/kernel/debug/kfdsim/dispatches)
	if [ "$attempt" = last ] || jq -e ".kernels[0].sizes[0].alone.longest_nsec == $longest" "$stage/out" >/dev/null
	then break; fi
done
json '.gpu == "0000:03:00.0" and .emulated and .runs == 1 and .margin_percent == null'
json '.kernels | length == 1 and .[0].name == "_Z4spinPj"'
json ".kernels[0].sizes == [{effective_cus: 60, alone: {count: 6, longest_nsec: $longest},
	beside: {count: 0, longest_nsec: null}}]"
json '.host_submission | .count == 3 and .longest_nsec > 0'

ends 0 --runs=1 --sizes=2 -- "${program[@]}"
grep -q emulated "$stage/out" || failed 'the clock is not named'
grep -q '^margin = [0-9]*%$' "$stage/out" || failed 'there is no margin'
wcet=$(sed -n 's/^wcet = 30://p' "$stage/out")
host=$(sed -n 's/^host-submission = \([0-9]*\)us$/\1/p' "$stage/out")
plans
json ".tasks[0] | .name == \"_Z4spinPj\" and .wcet_usec == $wcet and .wcet_source == \"measured\""
json ".partitions[0] | .effective_cus == 30 and .host_usec == $host"
