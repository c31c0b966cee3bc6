#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-timing-stack.sh QUEUES CLIENT-KERNEL: real programs under the timing model. What is
# compared are the model's own times, which no load of this machine changes.
set -u

if [ "${INSIDE:-}" = '' ]; then
	[ $# = 2 ] || { echo 'skipped: no hipcc, or no HIP'; exit 77; }
	queues=$(realpath "$1") kernel=$(realpath "$2")
	export queues kernel
	cd "$GPUARB_ROOT/tests/kfdsim" || exit 1
	# shellcheck source=tests/kfdsim/rig.sh
	. ./rig.sh
	rig_need jq
	rig_need_kfdsim
	# Each with a GPU of its own, so that its times are the same in each run.
	for part in law neighbours turns preempted undisturbed; do
		INSIDE=$part kfdsim --gpu radeon-vii --timing -- \
			"$BASH" ./test-timing-stack.sh >"$dir/$part" 2>&1 ||
			{ failed=1; cat "$dir/$part"; }
		grep '^model: ' "$dir/$part"
	done
	# What it cost to be preempted: at most 0.1 ms for each run list.
	read -r late run_lists < <(sed -n 's/^preempted: //p' "$dir/preempted")
	read -r alone _ < <(sed -n 's/^undisturbed: //p' "$dir/undisturbed")
	echo "model: $run_lists run lists of another program: $((late - alone)) ns"
	if [ "$((late - alone))" -lt 100000 ] || [ "$((late - alone))" -gt "${run_lists}00000" ]; then
		echo "a kernel of $alone ns took $late ns beside $run_lists run lists"
		failed=1
	fi
	rig_done
fi

# shellcheck source=tests/kfdsim/rig.sh
. ./rig.sh
: >"$dir/out"
: >"$dir/err"
state=/sys/kernel/debug/kfdsim/state
se02=0x555555555555555 se13=0xaaaaaaaaaaaaaaa worst=0xd55555555555555

# The compute queue whose last dispatch was of that kernel, of the latest program that has one.
# shellcheck disable=SC2016 # of jq
queue='[.processes[].queues[] | select(.last.group == [$threads, 1, 1])] | last'

# times WHAT THREADS OPTIONS…: the mean of its launches, in ns of the model, is $took. What the
# program measured by its signals is the same, but for the float that HIP has it in: in a run in which the
# machine was not too busy to report an end at once.
times()
{
	local what=$1 threads=$2
	shift 2
	await_so "$what: HIP measures what the model says" is_measured "$threads" "$@"
	echo "model: $what: $took ns"
}
is_measured()
{
	local threads=$1 seen
	shift
	ends 0 "$kernel" --threads "$threads" "$@"
	took=$(jq --argjson threads "$threads" "$queue | .model_ns.all / .dispatches | floor" $state)
	seen=$(awk '/^launch/ { sum += $3; n++ } END { printf "%d", sum / n }' "$dir/out")
	[ $((seen * 1000 / took)) -ge 990 ] && [ $((seen * 1000 / took)) -le 1010 ]
}

# between VALUE FROM TO WHAT
between()
{
	if [ "$1" -lt "$2" ] || [ "$1" -gt "$3" ]; then
		complain "$4: $1, not from $2 to $3"
	fi
}
ratio() { between $(($1 * 100 / $2)) "$3" "$4" "$5, in percent"; }

# A program with so many idle queues that are there when this returns, and go one by one.
hold()
{
	coproc "$queues" "$1"
	holder=$COPROC_PID
	await_line "${COPROC[0]}" "made $1" || complain "$1 queues: $line"
}

let_go()
{
	echo "drop 64" >&"${COPROC[1]}"
	await_line "${COPROC[0]}" 'made 0' || complain "queues: $line"
	eval "exec ${COPROC[1]}>&-"
	wait "$holder"
}

# Until a dispatch of 1024 threads a work-group runs.
running()
{
	await_so 'a dispatch runs' is_running "$1"
	kill -0 "$1" || complain "ended before it ran"
}
is_running()
{
	jq -e '[.processes[].queues[] | select(.running)] | length > 0' $state >/dev/null || ! kill -0 "$1"
}

# The law of masks, and what a work-group costs.
law()
{
	local all half
	times '60 CUs' 1024 --blocks 4096 --launches 2
	all=$took
	times '30 CUs, 15/0/15/0' 1024 --blocks 4096 --launches 2 --mask $se02
	half=$took
	ratio "$half" "$all" 190 210 '30 CUs against 60'
	times '31 CUs, 15/0/15/1' 1024 --blocks 4096 --launches 2 --mask $worst
	ratio "$took" "$half" 900 1100 'one more CU on another engine'
	ends 0 jq --argjson threads 1024 "$queue" $state
	json_out '.engines[0] | map(.[-4:]) == ["7fff", "0000", "7fff", "4000"]'

	times 'one work-group of 64' 64 --blocks 1 --launches 4
	between "$took" 200000 450000 'one work-group'
	echo cost:64:5000 >/sys/kernel/debug/kfdsim/control
	times 'the same, said to cost 5000 ns' 64 --blocks 1 --launches 4
	between "$took" 3500 6500 'one that costs 5000 ns'
}

# Beside a program whose kernels take 22 s each.
neighbours()
{
	local alone mask pid
	times 'alone on SE 0 and 2' 1024 --blocks 4096 --launches 2 --mask $se02
	alone=$took
	for mask in "$se13" "$se02"; do
		"$kernel" --blocks 4000000 --launches 100 --mask "$mask" >/dev/null 2>&1 &
		pid=$!
		running $pid
		if [ "$mask" = $se13 ]; then
			beside 110 125 'beside one on the other engines'
		else
			beside 190 260 'beside one on the same engines'
		fi
		kill -9 $pid
		wait $pid 2>/dev/null
	done
}
# beside FROM TO WHAT: measures again where a kernel of the other program ended meanwhile.
beside()
{
	await_so "$3" is_beside "$1" "$2"
	ratio "$took" "$alone" "$@"
}
is_beside()
{
	local before
	before=$(dispatches)
	times "beside one on $mask" 1024 --blocks 4096 --launches 2 --mask $se02
	[ $((took * 100 / alone)) -ge "$1" ] && [ $((took * 100 / alone)) -le "$2" ] ||
		[ "$(dispatches)" = "$before" ]
}
dispatches() { jq "[.processes[] | select(.pid == $pid) | .queues[].dispatches] | add" $state; }

# Queues without work, as many as there are slots for, and more.
turns()
{
	local alone n
	times 'alone' 1024 --blocks 20480 --mask $se02
	alone=$took
	for n in 20 30; do
		hold $n
		times "beside $n idle queues" 1024 --blocks 20480 --mask $se02
		let_go
		ends 0 cat $state
		if [ $n = 20 ]; then
			json_out '.gpus[0] | .oversubscriptions == 0 and .peak_queues <= 24'
			ratio "$took" "$alone" 98 102 'within the slots'
		else
			json_out '.gpus[0] | .oversubscriptions > 0 and .peak_queues > 24'
			ratio "$took" "$alone" 115 200 'with more queues than slots'
		fi
	done
}

run_lists() { jq '.gpus[0].run_lists' $state; }

# Another program's queues go while a kernel runs, or after it.
beside_a_change()
{
	local pid before=0 after=0
	hold 20
	"$kernel" --blocks 120000 --mask 0xf >/dev/null 2>"$dir/err" &
	pid=$!
	if [ "$1" = preempted ]; then
		running $pid
		before=$(run_lists)
		let_go
		after=$(run_lists)
		between $((after - before)) 20 100 'run lists'
	fi
	wait $pid || complain "$kernel: ended with $?"
	echo "$1: $(jq --argjson threads 1024 "$queue | .model_ns.last" $state) $((after - before))"
	[ "$1" = preempted ] || let_go
}

case $INSIDE in
preempted | undisturbed) beside_a_change "$INSIDE" ;;
*) "$INSIDE" ;;
esac
rig_done
