#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-lend.sh STORY CLIENT-RAW CLIENT-HIP CLIENT-AGENT: programs that borrow what a realtime lease does not
# use, and give it back before it does: one that knows nothing of it (run --adaptable), and one
# that follows by libgpuarb. STORY is one of those at the end.
set -u

if [ "${INSIDE:-}" != yes ]; then
	[ $# -gt 3 ] || [ "$1" = raw ] || { echo 'skipped: no HIP (libamdhip64-dev)'; exit 77; }
	. "${0%/*}/rig.sh"
	rig_need jq dbus-daemon setsid
	[ "$1" != late ] || rig_need systemd-socket-activate
	if [ "$1" = debuggers ]; then
		rig_need gdb strace
		strace -o /dev/null true || { echo 'skipped: ptrace() is not permitted'; exit 77; }
	fi
	gpus=(--gpu radeon-vii)
	[ "$1" != exact ] || gpus+=(--gpu mi210)
	play "${gpus[@]}" -- "$@"
	rig_done
fi

raw=$2 hip=${3:-} agent=${4:-}
# shellcheck source=tests/kfdsim/stage.sh
. "$GPUARB_ROOT/tests/kfdsim/stage.sh"
all=0xfffffffffffffff first=0x111111111111111 rest=0xeeeeeeeeeeeeeee # SE 0, and SE 1 to 3
# shellcheck disable=SC2154 # the stage sets it
borrow=("${run[@]}" --adaptable --gpu "$vii" --cus 60 --cus-min 15 --queues 6)

# policy GRACE RUNG: how long borrowers have, and what is done to those that take longer.
policy()
{
	cat >"$dir/gpuarbd.conf" <<-CONF
		[daemon]
		backend = kfd
		audit-interval = 100ms
		activate-grace = $1
		enforce-delay = 1s
		activate-min-interval = 1ms
		grow-delay = 1ms
	CONF
	printf '[tenant all]\nmatch-user = %s\nclass = realtime\npriority = 15\nenforce = %s\n' \
		"$(id -un)" "$2" \
		>"$dir/tenants.d/all.conf"
}
policy_now() { policy "$@"; ends 0 reload; }

# A realtime lease that lends shader engine 0; its number is in $vr.
lend()
{
	hold reserve --name vr --class realtime --gpu "$vii" --shader-engines 1 --start-inactive
	vr=$(sed -n 's/^lease \([0-9]*\): .*/\1/p' <<<"$held")
	check 'it lends' test -n "$vr"
}

# driver_becomes JQ: growing is nothing that is waited for, and the driver tells of no event.
driver_becomes()
{
	said='the driver'
	await_so "$1" driver_has "$1"
}
driver_has() { cat /sys/kernel/debug/kfdsim/state >"$dir/out"; is_json "$1" "$dir/out"; }

# The masks of all queues that there are, as a list; have MASK N: each of them is that.
masks="[.processes[] | select(.alive) | $compute | .mask]"
have() { echo "($masks | length == $2 and all(. == \"$1\"))"; }

compute_now="[.processes[] | select(.alive) | $compute]"

# Of the queue that was made last: the masks that it ever had.
newest="[.processes[] | select(.alive) | $compute] | last | .masks"

borrows() # NAME
{
	settles "$(named "$1") | .state == \"granted\" and .partitions[0].cus == 60"
}

activates() # what the driver has is looked at when it is granted, not later
{
	shows "lease $vr: granted" activate "$vr" --wait=60
}

gives_back() # NAME QUEUES
{
	shows "lease $vr: inactive" deactivate "$vr"
	borrows "$1"
	driver_becomes "$(have $all "$2")"
}

# ---- the stories ------------------------------------------------------------------------------

# follows NAME QUEUES: what every borrower does, however it does it.
follows()
{
	local name=$1 n=$2

	borrows "$name"
	driver_becomes "$(have $all "$n")"
	activates
	driver "$(have $rest "$n")"
	tell "$name" stream
	n=$((n + 1))
	driver "$(have $rest $n)"
	driver "$newest | length > 0 and all(. == \"$rest\")"
	gives_back "$name" $n

	# One that does not run keeps what it has, and is waited for.
	halt "${pid[$name]}"
	ends 0 activate "$vr"
	settles "$(named vr) | .state == \"activating\" and (.reason | test(\"^waits for 15 CUs of $vii\"))"
	driver "$(have $all $n)"
	kill -CONT "${pid[$name]}"
	settles "$(named vr) | .state == \"granted\" and .reason == \"\""
	driver "$(have $rest $n)"
	gives_back "$name" $n

	# The driver refuses once: that is tried again.
	control "set-cu-mask:2:EBUSY"
	activates
	driver "$(have $rest $n)"
	gives_back "$name" $n

	# It is killed before it can give back, and gone is as good.
	halt "${pid[$name]}"
	ends 0 activate "$vr"
	settles "$(named vr) | .state == \"activating\""
	crash "$name"
	settles "([.leases[].name] == [\"vr\"]) and ($(named vr) | .state == \"granted\")"
	ends 0 deactivate "$vr"
}

story_follow()
{
	policy 600s report
	start --debugfs=/sys/kernel/debug
	lend
	program ml "${borrow[@]}" --name ml -- "$hip" --streams 3 --work --hold
	follows ml 4
	# HIP's own way to pool streams may have no more than four queues, its own beside.
	program agent "$agent" agent
	tell agent stream
	tell agent fork
	follows agent 2

	# A queue that nobody told of is masked when the CUs are needed, if not before.
	program agent "$agent" agent
	tell agent quiet
	activates
	driver "$(have $rest 2)"
	leave agent

	# What a program wants for a queue of its own it has while the lease has any of it. (The
	# runtime holds it to HSA_CU_MASK, which is what was granted at first.)
	ends 0 deactivate "$vr"
	program ml "${borrow[@]}" --name ml --streams 1 -- "$hip" --masked $first --work --hold
	borrows ml
	driver "$masks == [\"$all\", \"$first\"]"
	activates
	driver "$(have $rest 2)"
	ends 0 deactivate "$vr"
	driver_becomes "$masks == [\"$all\", \"$first\"]"
	leave ml
}

# changes GPU: how often the driver preempted the queues of a GPU to change one of them.
changes() { jq ".gpus[$1].run_lists" /sys/kernel/debug/kfdsim/state; }

# disturbances NAME: how often gpuarbd counted that a realtime lease was disturbed.
disturbances()
{
	"$GPUARBCTL" list --json | jq ".[] | select(.name == \"$1\") | .disturbances"
}

# The borrower on both GPUs is observed with so many CUs on each.
both_settle() { settles "$(named agent) | .verified and ([.partitions[].cus] == $1)"; }

# Each realtime lease counts the changes that the driver made on its own GPU, and no other.
counts_per_gpu()
{
	local lists near far
	local waits=(--class realtime --shader-engines 1 -- sh -c 'echo ready; read -r _')

	program near "${run[@]}" --name near --gpu "$vii" "${waits[@]}"
	program far "${run[@]}" --name far --gpu "$mi210" "${waits[@]}"
	both_settle '[30, 91]'
	lists=$(changes 0) near=$(disturbances near) far=$(disturbances far)
	ends 0 deactivate "$vr"
	both_settle '[45, 91]'
	activates
	both_settle '[30, 91]'
	lists=$(($(changes 0) - lists))
	check 'the driver made changes' test "$lists" -gt 0
	check "near counts $lists changes" test "$(($(disturbances near) - near))" = "$lists"
	check 'far counts none' test "$(disturbances far)" = "$far"
	leave near
	leave far
	both_settle '[45, 104]'
}

# A queue is changed only where something changes, and from the moment that it exists.
story_exact()
{
	local before
	# shellcheck disable=SC2154 # the stage sets it
	local on_vii="[.processes[] | select(.alive) | $compute | select(.gpu == \"$vii\")]"

	policy 600s report
	start --debugfs=/sys/kernel/debug
	lend
	program both "$agent" both
	tell both quiet
	tell both second
	borrows agent
	driver "$on_vii | length == 2 and all(.mask == \"$all\")"

	# Changes on one GPU do not preempt the other one.
	before=$(changes 1)
	activates
	driver "$on_vii | all(.mask == \"$rest\")"
	ends 0 deactivate "$vr"
	borrows agent
	driver_becomes "$on_vii | all(.mask == \"$all\")"
	activates
	check "the other GPU was not preempted" test "$(changes 1)" = "$before"
	counts_per_gpu

	# A new queue has its mask at once, and nothing else before.
	tell both quiet
	driver "$on_vii | last | .masks | length > 0 and all(. == \"$rest\")"

	# The priority is that of the lease, also for a stream that asks for more.
	tell both high
	driver "$on_vii | all(.priority == 7)"
	leave both
	ends 0 deactivate "$vr"

	# With a higher one the queues of a program that knows nothing of it have that.
	program ml "${borrow[@]}" --priority 13 --name ml -- "$hip" --streams 2 --work --hold
	borrows ml
	driver "$on_vii | length == 3 and all(.priority == 13)"
	settles "$(named ml)"
	ends 0 resize "$(jq "$(named ml) | .id" "$dir/out")" --gpu "$vii" --cus 60 --cus-min 15 \
		--queues 6 --priority 3
	driver_becomes "$on_vii | length == 3 and all(.priority == 3)"
	leave ml
}

# While an exclusive lease is active, no queue of an adaptable lease is on the run list.
story_turns()
{
	local agent_pid
	local stopped="$compute_now | length > 0 and all(.active == false and .percentage == 0)"
	local running="$compute_now | all(.active and .percentage == 100)"

	policy 600s report
	echo 'exclusive = ask' >>"$dir/tenants.d/all.conf"
	start --debugfs=/sys/kernel/debug
	hold reserve --name vr --class realtime --gpu "$vii" --shader-engines 1 --start-inactive \
		--alone=active
	vr=$(sed -n 's/^lease \([0-9]*\): .*/\1/p' <<<"$held")

	# An unmodified program and one that follows by libgpuarb; neither knows of the pause.
	program ml "${run[@]}" --adaptable --gpu "$vii" --cus 30 --cus-min 15 --queues 6 --name ml -- \
		"$hip" --streams 3 --work --copy --hold
	program raw "${run[@]}" --adaptable --gpu "$vii" --cus 15 --cus-min 15 --queues 6 --name raw \
		--processes 2 -- "$raw"
	tell raw queue
	tell raw queue
	driver "$compute_now | length == 7"
	driver "$running"
	driver '.gpus[0].sdma_queues > 0'
	activates
	driver "$stopped"
	driver '.gpus[0].compute_queues == 0 and .gpus[0].sdma_queues == 0'
	ends 0 verify

	# Nothing that the program does makes a queue run: a new one, one of a child, an update.
	tell raw queue
	tell raw 'update 100 7'
	tell raw fork
	driver "$compute_now | length == 9"
	driver "$stopped"
	tell raw destroy # a paused one
	driver "$stopped"
	ends 0 deactivate "$vr"
	driver_becomes "$running"
	tell ml stream
	driver_becomes "$running"

	# A stopped program is waited for, and a call that the driver refuses is repeated.
	halt "${pid[ml]}"
	ends 0 activate "$vr"
	settles "$(named vr) | .state == \"activating\""
	driver "$compute_now | any(.active)"
	kill -CONT "${pid[ml]}"
	settles "$(named vr) | .state == \"granted\""
	driver "$stopped"
	control "update-queue:2:EBUSY"
	ends 0 deactivate "$vr"
	driver_becomes "$running"
	control "update-queue:2:EBUSY"
	activates
	driver "$stopped"

	# Without gpuarb-agent nothing would resume the queues.
	agent_pid=$(pgrep -f "gpuarb-agent [0-9]+ ${pid[ml]} ")
	kill -KILL "$agent_pid"
	driver_becomes "$(of ml) | [$compute] | all(.active)"
	leave ml
	leave raw
	settles '[.leases[].name] == ["vr"]'
	ends 0 deactivate "$vr"

	# The library's agent.
	program agent "$agent" agent
	tell agent stream
	activates
	driver "$stopped"
	ends 0 deactivate "$vr"
	driver_becomes "$running"
	tell agent quiet
	activates
	driver "$stopped"
	leave agent

	# One that acknowledges a pause and does not pause is found on the run list.
	ends 0 deactivate "$vr"
	program own "$agent" own
	tell own stream
	tell own follow
	ends 0 activate "$vr"
	settles "$(named own) | .partitions[0].paused"
	tell own lie
	settles "$(named own) | .reason | test(\"^acknowledged generation [0-9]+, but a queue of pid ${pid[own]} still runs on $vii\")"
	json_out "$(named vr) | .state == \"activating\""
	ends 9 verify
	tell own follow
	settles "$(named vr) | .state == \"granted\""
	driver "$stopped"
	ends 0 verify

	# It gives its lease up while it is paused: nothing would resume its queues later.
	tell own release
	driver "$running"
	leave own
}

story_processes()
{
	local pids

	policy 600s report
	start
	lend

	# Two processes, one of them a child that is started by another program.
	# shellcheck disable=SC2016
	program two "${borrow[@]}" --name two --processes 2 --queues 8 -- \
		sh -c 'exec 3<&0; "$@" <&3 & "$@"; wait' sh "$hip" --streams 2 --work --hold
	is_ready two
	borrows two
	driver_becomes "$(have $all 6)"
	activates
	driver "$(have $rest 6)"
	gives_back two 6

	# One ends in the middle, the other has to follow still.
	mapfile -t pids < <(jq '.processes[] | select(.alive and .made > 0) | .pid' \
		/sys/kernel/debug/kfdsim/state)
	halt "${pids[@]}"
	ends 0 activate "$vr"
	kill -KILL "${pids[0]}"
	settles "$(named vr) | .state == \"activating\""
	kill -CONT "${pids[1]}"
	settles "$(named vr) | .state == \"granted\""
	driver "$(have $rest 3)"
	leave two
	settles '[.leases[].name] == ["vr"]'
	ends 0 deactivate "$vr"

	# A program that becomes another, and one that leaves its parents.
	# shellcheck disable=SC2016
	program daemon "${borrow[@]}" --name daemon -- \
		sh -c 'exec 3<&0; setsid -f "$@" <&3; exec sh -c "read -r _"' \
		sh "$hip" --streams 2 --work --hold
	borrows daemon
	driver_becomes "$(have $all 3)"
	activates
	driver "$(have $rest 3)"

	# gpuarbd is killed: nobody's queues change, and its next life is followed, too.
	kill -KILL "$gpuarbd"
	await daemon-gone
	gpuarbd_is ready
	await daemon-back
	driver "$(have $rest 3)"
	gives_back daemon 3
	leave daemon
	settles '[.leases[].name] == ["vr"]'
}

# What no library does, and programs may.
story_raw()
{
	policy 600s report
	start --debugfs=/sys/kernel/debug
	lend
	program raw "${borrow[@]}" --name raw --processes 2 --queues 8 -- "$raw"
	tell raw queue
	tell raw queue
	borrows raw
	driver "$(have $all 2)"

	# Its own mask, narrowed and given back; what the driver refuses, it refuses as ever.
	tell raw 'mask ff'
	driver "$masks == [\"$all\", \"0xff\"]"
	activates
	driver "$masks == [\"$rest\", \"0xee\"]"
	tell raw 'mask 33333333'
	driver "$masks == [\"$rest\", \"0x22222222\"]"
	tell raw destroy
	tell raw queue # which has the same number
	driver "$(have $rest 2)"
	echo bad >&"${in[raw]}"
	bad=()
	while read -r -t "$patience" line <&"${from[raw]}" && [ "$line" != ready ]; do bad+=("$line"); done
	check "what is wrong is the driver's to say: ${bad[*]}" \
		test "${bad[*]}" = 'nowhere: EFAULT no bits: EINVAL 33 bits: EINVAL no such queue: EFAULT no arguments: -1 EFAULT'
	driver "$(have $rest 2)"

	# It has no more than the priority of the lease, and less if it asks for that.
	driver "$compute_now | all(.priority == 7)"
	tell raw 'update 100 15'
	driver "$compute_now | last | .priority == 7"
	tell raw 'update 80 2'
	driver "$compute_now | last | .priority == 2 and .percentage == 80"
	tell raw 'update 100 9'
	driver "$compute_now | last | .priority == 7 and .percentage == 100"
	ends 0 verify

	# What it does in another way is found.
	tell raw 'hidden 15'
	driver "$compute_now | last | .priority == 15"
	settles "$(named raw) | .partitions[0].priorities_seen == [7, 15]"
	ends 9 verify
	out_has 'priority'
	tell raw 'update 100 7'
	settles "$(named raw) | .partitions[0].priorities_seen == [7]"
	ends 0 verify

	# It closes every fd there is, and forks: neither takes it out of what is followed.
	tell raw close
	ends 0 deactivate "$vr"
	driver_becomes "$(have $all 2)"
	borrows raw
	tell raw queue
	tell raw fork
	driver "$(have $all 4)"
	activates
	driver "$(have $rest 4)"
	gives_back raw 4
	tell raw close # with nothing to follow before the next queue
	tell raw queue
	driver "$(have $all 5)"
	activates
	driver "$(have $rest 5)"
	gives_back raw 5

	# A queue that is made in another way is not seen, but for what gpuarbd reads itself.
	tell raw hidden
	ends 0 activate "$vr"
	settles "$(named raw) | .reason | test(\"^acknowledged generation\")"
	json_out "$(named vr) | .state == \"activating\""
	driver "$masks | map(select(. == \"$rest\")) | length == 5"
	ends 9 verify
	tell raw destroy
	settles "$(named vr) | .state == \"granted\""
	leave raw
	settles '[.leases[].name] == ["vr"]'
	ends 0 deactivate "$vr"

	# One that nothing was loaded into: nobody says that it follows.
	program stray "${borrow[@]}" --name stray -- sh -c '"$@"; exit' sh env -u LD_PRELOAD "$raw"
	tell stray queue
	borrows stray
	ends 0 activate "$vr"
	settles "$(named vr) | .reason | test(\"^waits for 15 CUs\")"
	settles "$(named stray) | .partitions[0].cus == 45"
	leave stray
	settles "$(named vr) | .state == \"granted\""
	ends 0 deactivate "$vr"

	# One in another network namespace, and one that does not see the file of the socket.
	apart unshare -n
	mkdir "$dir/apart"
	export XDG_RUNTIME_DIR=$dir/apart
	# shellcheck disable=SC2016
	apart unshare -m sh -c 'mount -t tmpfs tmpfs "$XDG_RUNTIME_DIR" && exec "$@"' sh

	# One with another C library.
	if [ -n "${CLIENT_RAW_MUSL:-}" ]; then
		program musl "${borrow[@]}" --name musl -- "$CLIENT_RAW_MUSL"
		tell musl queue
		tell musl queue
		borrows musl
		driver "$(have $all 2)"
		activates
		driver "$(have $rest 2)"
		gives_back musl 2
		leave musl
		settles '[.leases[].name] == ["vr"]'
	fi

	# One whose lease has shrunk, and that has no descriptor left for a moment.
	program full "${borrow[@]}" --name full -- env GPUARB_AGENT_DEBUG=1 "$raw"
	activates
	prlimit --pid "${pid[full]}" --nofile=0:
	echo queue >&"${in[full]}"
	await_so 'it has tried' grep -q 'files$' "$dir/full.err"
	prlimit --pid "${pid[full]}" --nofile=1024:
	is_ready full
	driver "$(have $rest 1)"
	leave full
	settles '[.leases[].name] == ["vr"]'
	ends 0 deactivate "$vr"

	# One that cannot reach gpuarb-agent keeps its CUs, and says why. A program that is being executed has no words
	# for a moment.
	unreachable sh -c '
		until agent=$(pgrep -f "gpuarb-agent [0-9]+ $$ "); do sleep 0.02; done
		kill -KILL "$agent"
		while grep -q "^State:[[:space:]]*[^ZX[:space:]]" "/proc/$agent/status" 2>/dev/null; do sleep 0.02; done
		exec "$@"' sh "$raw"
}

# apart COMMAND...: a program follows that the command puts into a namespace.
apart()
{
	program apart "${borrow[@]}" --name apart -- "$@" "$raw"
	tell apart queue
	borrows apart
	activates
	driver "$(have $rest 1)"
	gives_back apart 1
	leave apart
	settles '[.leases[].name] == ["vr"]'
}

# unreachable COMMAND...: a command that has queues, and one line with the reason.
unreachable()
{
	local lease

	said="$*"
	printf 'queue\nqueue\n' | "${borrow[@]}" --name unreachable -- "$@" >"$dir/out" 2>"$dir/err"
	check 'the program does not fail' test $? = 0
	lease=$(sed -n 's/.*: lease \([0-9]*\): cus: .*/\1/p' "$dir/err")
	err_has "gpuarb-agent: lease $lease: "
	err_has '(Connection refused)'
	err_has '--fixed'
	check 'that is one line' test "$(grep -c '^gpuarb-agent: ' "$dir/err")" = 1
	settles '[.leases[].name] == ["vr"]'
}

# traced NAME COMMAND...: a program under a debugger follows its lease.
traced()
{
	local name=$1
	shift
	program "$name" "${borrow[@]}" --name "$name" -- "$@"
	tell "$name" queue
	tell "$name" queue
	borrows "$name"
	driver "$(have $all 2)"
	activates
	driver "$(have $rest 2)"
	tell "$name" queue
	driver "$(have $rest 3)"
	gives_back "$name" 3
	leave "$name"
	check "$name ends with the exit status of the debugger" test $? = 0
	settles '[.leases[].name] == ["vr"]'
}

# traces FILE COMMAND...: what a debugger prints of a program under a fixed and an adaptable lease,
# without the numbers that differ from one process to the next.
traces()
{
	local how
	for how in --fixed --adaptable; do
		said="run $how -- ${*:2}"
		timeout "$patience" "${run[@]}" $how --quiet --class besteffort --gpu "$vii" --cus 15 -- "${@:2}" \
			</dev/null 2>&1 | sed -E 's/0x[0-9a-f]+/0xN/g; s/[0-9]{3,}/N/g' >"$dir/$1$how"
		check "$said ended" test "${PIPESTATUS[0]}" = 0
	done
	diff -u "$dir/$1--fixed" "$dir/$1--adaptable" || complain "$1 shows another program"
}

story_debuggers()
{
	local tracee debugger

	policy 600s report
	start --debugfs=/sys/kernel/debug
	lend

	# A program that starts under a debugger.
	traced gdb gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'handle SIGUSR1 nostop' -ex run \
		-ex 'quit $_exitcode' --args "$raw"
	traced strace strace -f -q -o "$dir/strace" "$raw"
	check 'strace saw the calls' grep -q 'AMDKFD_IOC_SET_CU_MASK\|ioctl(.*0x1a' "$dir/strace"

	# Breakpoints and signals are those of the program.
	# shellcheck disable=SC2016
	traces break gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'set breakpoint pending on' \
		-ex 'break kill' -ex run -ex 'bt 1' -ex finish -ex 'info program' -ex 'signal SIGUSR1' \
		-ex 'print $_exitsignal' -ex 'quit 0' --args "$BASH" -c 'kill -USR1 $$'
	check 'gdb stops at the breakpoint' grep -q '^Breakpoint 1, .*kill' "$dir/break--adaptable"
	check 'gdb stops at the signal' grep -q '^Program received signal SIGUSR1' "$dir/break--adaptable"
	check 'the signal ends the program' grep -q '= 10$' "$dir/break--adaptable"
	# shellcheck disable=SC2016
	traces signals strace -f -q -e trace=none -e signal=all "$BASH" -c 'trap "echo caught" USR1; kill -USR1 $$'
	check 'strace shows the signal' grep -q -e '--- SIGUSR1' "$dir/signals--adaptable"

	# A debugger that attaches stops the agent, too: its lease is waited for.
	program ml "${borrow[@]}" --name ml -- "$raw"
	tell ml queue
	borrows ml
	tracee=${pid[ml]}
	mkfifo "$dir/gdb.in"
	gdb -q -nx -batch -p "$tracee" -ex 'set debuginfod enabled off' -ex 'info threads' \
		-ex "shell read -r line <'$dir/gdb.in'" -ex detach >"$dir/gdb.out" 2>&1 </dev/null &
	debugger=$!
	exec 9>"$dir/gdb.in" # returns when gdb has attached and reads
	ends 0 activate "$vr"
	settles "$(named vr) | .state == \"activating\""
	driver "$(have $all 1)"
	echo detach >&9
	exec 9>&-
	wait "$debugger"
	check 'gdb detached' test $? = 0
	settles "$(named vr) | .state == \"granted\""
	driver "$(have $rest 1)"
	tell ml queue
	driver "$(have $rest 2)"
	leave ml
}

# A revoked program is ended, and starts again with queues that follow the lease that it gets again.
story_requeue()
{
	local first

	policy 600s report
	echo 'preempt = revoke' >>"$dir/tenants.d/all.conf"
	start --debugfs=/sys/kernel/debug
	program again "${run[@]}" --requeue --adaptable --gpu "$vii" --cus 60 --cus-min 30 --queues 6 \
		--name again -- "$raw"
	tell again queue
	tell again queue
	borrows again
	driver "$(have $all 2)"
	first=$(jq ".processes[] | select(.alive and .made > 0) | .pid" /sys/kernel/debug/kfdsim/state)

	hold reserve --name vr --class realtime --gpu "$vii" --shader-engines 4
	settles "($(named vr) | .state == \"granted\") and ($(named again) | .state == \"waiting\")"
	driver "$(have $rest 0)"
	check 'the program was ended' test ! -e "/proc/$first"
	let_go TERM "$holder"
	is_ready again
	borrows again
	tell again queue
	driver "$(have $all 1)"
	driver "[.processes[] | select(.alive and .made > 0) | .pid] != [$first]"

	hold reserve --name vr --class realtime --gpu "$vii" --shader-engines 1
	settles "$(named vr) | .state == \"granted\""
	driver "$masks | length == 1 and all(. != \"$all\")"
	kill "${pid[again]}"
	wait "${pid[again]}"
	check 'the signal went to the program' test $? = 143
	settles '[.leases[].name] == ["vr"]'
}

story_late()
{
	policy 600s report
	start --debugfs=/sys/kernel/debug --enforce="$dir/enforce"
	lend

	# One that says that it follows, and does not: where it can be seen it is not believed.
	program own "$agent" own
	tell own stream
	tell own follow
	borrows own
	driver "$(have $all 2)"
	ends 0 verify
	ends 0 activate "$vr"
	settles "$(named own) | .partitions[0].cus == 45"
	tell own lie
	settles "$(named own) | .reason | test(\"^acknowledged generation [0-9]+, but a queue of pid ${pid[own]} still has CUs\")"
	json_out "$(named vr) | .state == \"activating\""
	driver "$(have $all 2)"
	ends 9 verify
	out_has 'drift  lease'
	out_has 'acknowledged'
	tell own follow
	settles "$(named vr) | .state == \"granted\""
	driver "$(have $rest 2)"
	shows '45 CUs' verify
	leave own
	ends 0 deactivate "$vr"

	# One that never answers: it is named when the time is over, and nothing more by this policy.
	policy_now 1s report
	program ml "${borrow[@]}" --name ml -- "$hip" --streams 3 --work --hold
	borrows ml
	halt "${pid[ml]}"
	fails 7 "15 CUs of $vii" activate "$vr" --wait=2
	settles "$(named ml) | .reason | test(\"has not given back\")"
	json_out "$(named vr) | .state == \"activating\""
	shows 'overdue' list
	ends 9 verify
	out_has 'passed'
	driver "$(have $all 4)"
	kill -CONT "${pid[ml]}"
	settles "$(named vr) | .state == \"granted\""
	settles "$(named ml) | .reason == \"\" and .deadline == null"
	driver "$(have $rest 4)"
	ends 0 verify
	gives_back ml 4

	# By this one it is killed, and nobody else is.
	systemd-socket-activate --seqpacket -l "$dir/enforce" "$GPUARB_ENFORCE" 2>"$dir/enforce.err" &
	helper=$!
	policy_now 1s kill
	halt "${pid[ml]}"
	ends 0 activate "$vr" --wait=60
	driver "$(have $rest 0)"
	wait "${pid[ml]}" 2>/dev/null
	check 'it was killed' test $? = 137
	kill "$helper"
	settles '[.leases[].name] == ["vr"]'
}

"story_$1"
let_go TERM "$holder"
finish
