#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Lending: activate, deactivate, revoke, top, verify, --start-inactive and --adaptable. Environment
# as for test-ctl.sh, and GPUARB_AGENT_DIR: the directory of gpuarb-agent and its library.
set -u
: "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}" "${GPUARB_AGENT_DIR:?}"
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"

rig_need dbus-daemon dbus-monitor jq
export XDG_RUNTIME_DIR=$dir # of the sockets of agents
rig_start_bus

# ---- without a daemon -------------------------------------------------------------------
for verb in 'activate 1' 'activate 1 --wait' 'deactivate 1' 'revoke 1' top verify 'verify 1'; do
	# shellcheck disable=SC2086
	ends 5 $verb
done

printf '[tenant a]\nmatch-user = 1\nreserved-cus = 61\n' >"$dir/floor.conf"
ends 0 config check "$dir/floor.conf" --json
json_out '.valid and (.warnings | length == 1)' # they were not compared with a GPU
printf '[daemon]\nbackend = simulated\nsimulate = radeon-vii\n' >"$dir/simulate.conf"
checked=(config check --profiles="$GPUARB_SOURCE_ROOT/conf/gpus" "$dir/floor.conf" "$dir/simulate.conf" --json)
ends 6 "${checked[@]}"
json_out '.problems | length == 1'
sed -i 's/61/60/' "$dir/floor.conf"
prints '.warnings == []' "${checked[@]}"
echo 'reserved-gpu = 0000:03:00.0' >>"$dir/floor.conf"
prints '.warnings == []' "${checked[@]}"
sed -i 's/03:00/99:00/; s/60/61/' "$dir/floor.conf"
prints '.warnings | length == 1' "${checked[@]}"
json_out '.warnings[0] | contains("0000:99:00.0")'
sed -i '/reserved-gpu/d' "$dir/floor.conf"
printf 'max-cus = 60\n' >>"$dir/floor.conf"
ends 6 config check "$dir/floor.conf" --json
json_out '.valid == false and (.problems | length == 1)'

# Borrowers have a long time to return CUs.
cat >"$dir/gpuarbd.conf" <<-'CONF'
	[daemon]
	activate-grace = 600s
	activate-min-interval = 1ms
	grow-delay = 1ms
CONF
cat >"$dir/tenants.d/10-all.conf" <<-CONF
	[tenant everything]
	match-user = $(id -un)
	class = realtime
	exclusive = ask

	[tenant small]
	match-user = $(id -un)
	open = yes
	class = guaranteed
CONF
rig_start_daemon --simulate=radeon-vii
"$GPUARBCTL" monitor --json >"$dir/watched" 2>/dev/null &
watcher=$!

# ---- invalid requests --------------------------------------------------------------------
for verb in activate deactivate revoke; do
	ends 2 "$verb"
	fails 1 "'x'" "$verb" x
	ends 2 "$verb" 1 2
	fails 1 "lease 99" "$verb" 99
	ends 1 "$verb" 99 --json
	json_err '.error_name == "org.gpuarb.Arbiter1.Error.NoSuchLease"'
done
ends 2 activate 1 --grace=1
fails 2 '5min' activate 1 --wait=soon
fails 2 '24h' revoke 1 --grace=31536000
ends 2 revoke 1 --grace=-1
ends 2 revoke 1 --wait
ends 2 top x
ends 1 verify x
ends 2 verify 1 2
fails 1 'lease 99' verify 99

# ---- permissions --------------------------------------------------------------------------
fails 2 'realtime' reserve --start-inactive --class=guaranteed --cus=3
fails 2 'start-inactive' reserve --start-inactive --adaptable --cus=3
fails 2 'besteffort' reserve --adaptable --class=realtime --cus=3
fails 4 'small' reserve --start-inactive --class=realtime --tenant=small --cus=3
shows 'granted' plan --start-inactive --class=realtime --shader-engines=1
ends 0 plan --adaptable --cus=60 --cus-min=15
ends 2 release 1 --adaptable
fails 2 'active' plan --alone=never --class=realtime --shader-engines=1
fails 2 '--alone=active' plan --alone=active --class=besteffort --cus=3
ends 3 plan --alone=active --class=realtime --tenant=small --shader-engines=1
prints '.partitions[0].exclusive' plan --alone=active --class=realtime --shader-engines=1 --json

# ---- run --adaptable needs a program that can be preloaded ---------------------------------
fails 125 'effort' run --adaptable --class=realtime -- true
fails 125 '--alone=WHEN' run --alone -- true
fails 125 '--name=NAME' run --name -- true
# The agent sets the priority of an adaptable lease; a fixed program does that itself.
ends 0 run --class=besteffort --cus=30 --priority=low -- true
err_lacks 'priority'
fails 0 'priority' run --class=besteffort --cus=30 --priority=low --fixed -- true
fails 125 'commands' run --adaptable --token=x -- true
fails 125 'lend' run --adaptable --start-inactive -- true
printf '\177ELF\2\1\1' | head -c 64 >"$dir/static" # of a loader it says nothing
printf '\0%.0s' {1..57} >>"$dir/static"
chmod +x "$dir/static"
fails 125 "$dir/static" run --adaptable -- "$dir/static"
err_has 'libgpuarb'
prints '. == []' list --json
cp /bin/true "$dir/setuid"
if chown nobody "$dir/setuid" 2>/dev/null && chmod 4755 "$dir/setuid"; then # as root
	fails 125 'rights' run --adaptable -- "$dir/setuid"
fi
with_dir=$GPUARB_AGENT_DIR
GPUARB_AGENT_DIR=$dir/none
fails 125 "$dir/none/libgpuarb-agent.so" run --adaptable -- true
GPUARB_AGENT_DIR=none
fails 125 'path' run --adaptable -- true
mkdir "$dir/half"
cp "$with_dir/libgpuarb-agent.so" "$dir/half"
GPUARB_AGENT_DIR=$dir/half
fails 125 "$dir/half/gpuarb-agent" run --adaptable -- true
echo 'not a program' >"$dir/half/gpuarb-agent"
chmod +x "$dir/half/gpuarb-agent"
fails 125 "$dir/half/gpuarb-agent: Exec format error" run --adaptable -- true
# Closed standard streams: no descriptor of the agent takes their place, and gets lost there.
# shellcheck disable=SC2016
GPUARB_AGENT_DIR=$with_dir timeout "$patience" "$GPUARBCTL" run --quiet --adaptable -- sh -c '
	exec </dev/null >/dev/null 2>&1
	until ls -l "/proc/$(pgrep -f "gpuarb-agent [0-9]+ $$ ")/fd" | grep eventpoll; do sleep 0.02; done' \
	<&- >&- 2>&- || complain "the agent of a command with closed standard streams has no eventpoll"
# An agent that ends: the command starts, and gets no queues.
printf '#!/bin/sh\necho "it does not work" >&2\nexit 1\n' >"$dir/half/gpuarb-agent"
ends 0 run --adaptable -- sh -c "until grep -q 'it does not work' '$dir/err'; do sleep 0.02; done"
err_has 'it does not work'
list_becomes '. == []'
GPUARB_AGENT_DIR=$with_dir

ends 127 run --adaptable -- no-such-program
# shellcheck disable=SC2016
ends 3 run --adaptable --cus=30 -- sh -c 'echo "$LD_PRELOAD $GPUARB_AGENT $HSA_CU_MASK"; exit 3'
out_has "$GPUARB_AGENT_DIR/libgpuarb-agent.so $XDG_RUNTIME_DIR/gpuarb-agent-"
out_has '0:0x'
await_so 'the socket is deleted' test ! -e "$(grep -o "$dir/gpuarb-agent-[^ ]*" "$dir/out")"
# A killed agent leaves its file. A later run deletes it, and neither a young one nor that of an agent that lives.
# shellcheck disable=SC2016
ends 0 run --adaptable --cus=30 -- sh -c '
	until agent=$(pgrep -f "gpuarb-agent [0-9]+ $$ "); do sleep 0.02; done
	kill -KILL "$agent"; echo "$GPUARB_AGENT"'
left=$(cat "$dir/out")
# shellcheck disable=SC2016
hold run --quiet --adaptable --cus=3 -- sh -c 'echo "$GPUARB_AGENT"; exec sleep 1000'
check 'the young file stays' test -S "$left"
touch -d '2 minutes ago' "$left" "$held"
# The kernel closes the socket of a killed process a while later.
left_is_deleted() { ends 0 run --adaptable --cus=3 -- true && test ! -e "$left"; }
await_so 'the file of the killed agent is deleted' left_is_deleted
check 'the file of the other agent stays' test -S "$held"
let_go TERM "$holder"
# Other users can connect to the abstract socket of an agent all the time: it refuses them, and follows its lease.
if [ -u "$dir/setuid" ]; then # as root
	# shellcheck disable=SC2016
	hold run --quiet --adaptable --cus=60 --name=flooded -- sh -c 'echo "$GPUARB_AGENT"; exec sleep 1000'
	python3 - "$held" "$(id -u nobody)" >"$dir/flood" <<-'FLOOD' &
		import os, socket, sys
		os.setuid(int(sys.argv[2]))
		parent, n = os.getpid(), 0
		for _ in range(8):
		    if os.fork() == 0:
		        while os.getppid() == parent:
		            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
		                if s.connect_ex('\0' + sys.argv[1]):
		                    break # the agent has ended
		            n += 1
		            if n == 100:
		                print('connected', flush=True)
		        os._exit(0)
		os.waitpid(-1, 0)
	FLOOD
	flood=$!
	await_so 'another user connects all the time' grep -qs connected "$dir/flood"
	list_becomes 'any(.name == "flooded")'
	flooded=$(jq '.[] | select(.name == "flooded").id' "$dir/out")
	ends 0 resize "$flooded" --cus=30
	list_becomes '.[] | select(.name == "flooded") | .partitions[0].cus == 30 and .reason == ""'
	kill "$flood"
	wait "$flood" 2>/dev/null
	let_go TERM "$holder"
fi
ends 0 run --export-dir
check 'that is the directory of the libraries' test "$(cat "$dir/out")" = "$GPUARB_AGENT_DIR"
export XDG_RUNTIME_DIR=/no/such/dir
# shellcheck disable=SC2016
ends 0 run --adaptable --cus=30 -- sh -c 'echo "$GPUARB_AGENT"; test -S "$GPUARB_AGENT"'
out_has '/tmp/gpuarb-agent-'
export XDG_RUNTIME_DIR=$dir # also for agents that are killed
# shellcheck disable=SC2016
LD_PRELOAD=$dir/other.so ends 0 run --adaptable --cus=30 -- sh -c 'echo "$LD_PRELOAD"'
out_has "libgpuarb-agent.so:$dir/other.so"
list_becomes '. == []'

# ---- run is adaptable where it can be ------------------------------------------------------
# is_adaptable true|false OPTION…: what the command of run sees of its own lease.
is_adaptable()
{
	local wanted=$1
	shift
	prints "map(.adaptable) == [$wanted]" run "$@" -- "$GPUARBCTL" list --json
}
is_adaptable true
err_lacks 'fixed'
is_adaptable true --class=besteffort --cus=30
is_adaptable false --fixed
is_adaptable false --class=besteffort --cus=30 --fixed
err_lacks 'fixed'
is_adaptable false --cus=30 # the class of the tenant is realtime
is_adaptable false --tenant=small --cus=30
is_adaptable false --class=besteffort --cus=31 --exact --shape=any
is_adaptable false --class=besteffort --shader-engines=1
err_lacks 'fixed'
is_adaptable false --class=besteffort --cus=30 --token=x
err_has 'fixed'
err_has '--token=x'
fails 125 '--fixed' run --adaptable --fixed -- true
# shellcheck disable=SC2016
shows '30 ' run --class=besteffort --cus=30 -- sh -c 'echo "$GPUARB_EFFECTIVE_CUS $ASAN_OPTIONS"'
out_has 'verify_asan_link_order=0'
# shellcheck disable=SC2016
ends 0 run --class=besteffort --cus=30 --fixed -- sh -c 'echo "$GPUARB_EFFECTIVE_CUS $LD_PRELOAD"'
out_lacks 'libgpuarb-agent'
GPUARB_AGENT_DIR=$dir/none
is_adaptable false
err_has 'fixed'
err_has "$dir/none/libgpuarb-agent.so"
is_adaptable false --quiet
err_lacks 'fixed'
is_adaptable false --tenant=small --cus=30
err_lacks 'fixed'
GPUARB_AGENT_DIR=$with_dir
# Another C library, and more rights than the caller.
cp /bin/true "$dir/other"
sed -i 's,/lib64/ld-linux-x86-64.so.2,./ld-other.so.1\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00,' "$dir/other"
ln -s /lib64/ld-linux-x86-64.so.2 "$dir/ld-other.so.1"
if (cd "$dir" && ./other) 2>/dev/null; then # on x86-64
	cd "$dir" || exit 1
	ends 0 run -- ./other
	cd "$OLDPWD" || exit 1
	err_has 'fixed'
	err_has 'another C library'
fi
if [ -u "$dir/setuid" ]; then
	is_adaptable true # the test itself
	fails 0 'fixed' run --class=besteffort -- "$dir/setuid"
	err_has 'setuid'
fi
# Nothing can be loaded into the interpreter of a script. (execvp() then starts a shell.)
printf '#!%s\n' "$dir/static" >"$dir/script"
chmod +x "$dir/script"
fails 0 'fixed' run -- "$dir/script"
err_has "$dir/static"
list_becomes '. == []'

# ---- and nothing else changes for the command ------------------------------------------------
adapted=(run --class=besteffort --cus=30)
ends 7 "${adapted[@]}" -- sh -c 'exit 7'
# shellcheck disable=SC2016
ends 143 "${adapted[@]}" -- sh -c 'kill -TERM $$'
said='standard input'
echo question | "$GPUARBCTL" "${adapted[@]}" -- sed s/question/answer/ >"$dir/out" 2>"$dir/err"
out_has 'answer'
# Its descriptors, its children (the agent is none of them), its session, and whether its parent leads its group.
for what in 'ls /proc/self/fd' 'wc -w </proc/$$/task/$$/children' \
	'ps -o sid=,pgid=,ppid= -p $$ | { read -r sid group parent; echo "$sid $((group == parent))"; }'; do
	ends 0 "${adapted[@]}" --fixed -- sh -c "exec 2>&1; $what"
	cp "$dir/out" "$dir/fixed"
	check 'it is known without the agent' test -s "$dir/fixed"
	ends 0 "${adapted[@]}" -- sh -c "exec 2>&1; $what"
	out_is "$dir/fixed"
done

# ---- lending and reclaiming -----------------------------------------------------------------
# borrower NAME: starts a borrower of all CUs; its pid is in $borrower, its lease in $ml.
borrower()
{
	follow reserve --adaptable --cus=60 --cus-min=15 --name="$1"
	borrower=$! ml=$lease
	check "it says what it has: $line" test -n "$ml"
}

# borrower_ends STATUS
borrower_ends()
{
	wait_for "$borrower"
	check "the borrower ends with $1" test "$ended" = "$1"
}
of() { echo "(.[] | select(.id == $1))"; }

hold reserve --class=realtime --shader-engines=1 --start-inactive --name=vr
vr=$(sed -n 's/^lease \([0-9]*\): .*/\1/p' <<<"$held")
check 'it says what it got, though it is lent' grep -q '15 granted' <<<"$held"
shows 'state        inactive' show "$vr"
out_has 'lent: 0 of 15 CUs'
borrower ml
list_becomes "$(of "$ml") | .adaptable and .partitions[0].cus == 60"
json_out "$(of "$vr") | .state == \"inactive\" and .partitions[0].cus == 15 and .partitions[0].cus_min == null"
json_out "$(of "$ml") | .partitions[0].cus_min | . > 0 and . < 60"
shows 'lends 15 of 15 CUs' list
out_has 'borrows 15 of 60 CUs'
shows 'adaptable    yes' show "$ml"
out_has '  base: '
shows 'lends 15 of 15 CUs' top
out_has 'DISTURBED'
ends 0 top --no-legend
out_lacks 'DISTURBED'
prints 'keys == ["gpus","leases","queue_budgets","tenants","version"] and (.leases | length == 2)' top --json

fails 1 'realtime' activate "$ml"
ends 1 deactivate "$ml"
fails 1 'deactivated' deactivate "$vr"

# A borrower that acknowledges: gpuarbctl itself, which has no queues.
shows "lease $vr: granted" activate "$vr" --wait=60
ends 0 list --json
json_out "$(of "$ml") | .partitions[0] | .cus == 45 and .cu_mask == \"0xeeeeeeeeeeeeeee\""
fails 1 'activated' activate "$vr"
ends 1 activate "$vr" --wait --json
json_err '.error_name == "org.gpuarb.Arbiter1.Error.InvalidState"'
prints ".id == $vr and .state == \"inactive\"" deactivate "$vr" --json
list_becomes "$(of "$ml") | .partitions[0].cus == 60"

# An exclusive lease takes turns with the borrower, and with nothing else.
ends 0 plan --class=realtime --shader-engines=1 --alone=active --json
json_out ".effects.pauses == [$ml] and .effects.moves == []"
shows "lease $ml " plan --class=realtime --shader-engines=1 --alone=active
prints '.effects == null' plan --class=realtime --shader-engines=1 --alone=active --start-inactive --json
follow reserve --class=realtime --shader-engines=1 --start-inactive --alone=active --name=turns
turner=$! turns=$lease
check "it says what it has: $line" test -n "$turns"
ends 0 activate "$turns" --wait=60
shows 'paused' list
out_has "paused by exclusive lease $turns on 0000:03:00.0"
shows 'state        paused' show "$ml"
out_has 'pauses       1, '
ends 0 show "$ml" --json
json_out '.state == "granted" and .paused and .partitions[0].paused and .pauses.count == 1 and .pauses.since > 0'
prints '.partitions[0].exclusive and (.pauses == null)' show "$turns" --json
shows 'paused: ' plan --adaptable --cus-min=1
ends 0 run --adaptable --cus=3 -- true
err_has ': paused: '
shows 'paused' top
fails 3 "lease $turns" activate "$vr"
ends 3 reserve --cus=3 --class=besteffort --json
json_err ".refusals[0] | .reason == \"exclusive\" and .leases == [$turns] and .retry"
ends 3 plan --cus=3 --class=besteffort --json
json_out ".verdict == \"refused\" and .refusals[0].end == [$turns]"
ends 0 deactivate "$turns"
list_becomes "$(of "$ml") | .pauses.since == null and .pauses.usec > 0 and .reason == \"\""
ends 0 activate "$vr" --wait=60
ends 3 activate "$turns" --json
json_err ".refusals[0] | .reason == \"exclusive\" and .leases == [$vr]"
ends 0 release "$turns"
wait_for "$turner"
ends 0 deactivate "$vr"
list_becomes "$(of "$ml") | .partitions[0].cus == 60"

# No program follows a lease of run --fixed: that is what the reason says.
"$GPUARBCTL" run --fixed --quiet --class=besteffort --tenant=small --cus=2 --name=still -- sleep 100 &
still=$!
list_becomes 'any(.name == "still")'
still_id=$(jq '.[] | select(.name == "still").id' "$dir/out")
shows "pid $still " resize "$still_id" --priority=low
kill "$still"
wait "$still" 2>/dev/null
list_becomes 'all(.name != "still")'
list_becomes "$(of "$ml") | .partitions[0].cus == 60"

shows "$ml" list --output=wide --columns=id,base
check 'a wide list has the base' grep -qE "^$ml +15$" "$dir/out"

# A borrower can be resized; what is not typed stays.
prints '.partitions[0] | .cus == 60 and .cus_asked == 60 and .priority == 0' resize "$ml" --priority=low --json
prints '.partitions[0] | .cus == 30 and .cus_asked == 30 and .priority == 0' resize "$ml" --cus=30 --json
json_out '.reason == ""' # the agent has acknowledged
ends 0 resize "$ml" --cus=999 --json
json_out '.partitions[0] | .cus == 60 and .cus_asked == 60' # all of the GPU
ends 0 resize "$ml" --cus=30 --json
fails 2 'adaptable' resize "$ml" --shader-engines=1
ends 0 resize "$ml" --cus-min=15 --cus-max=60 --priority=normal --json
json_out '.partitions[0] | .cus == 60 and .cus_asked == 60 and .priority == 7'

prints ".id == $vr and .state == \"granted\" and .deadline == null" activate "$vr" --wait --json
ends 0 deactivate "$vr"
list_becomes "$(of "$ml") | .partitions[0].cus == 60"

# A lease that is resized reclaims CUs of borrowers as a new one does.
"$GPUARBCTL" run --class=realtime --shader-engines=1 --name=wider --quiet -- sleep 1000 &
wider=$!
list_becomes 'any(.name == "wider" and .state == "granted")'
wider_id=$(jq '.[] | select(.name == "wider").id' "$dir/out")
list_becomes "$(of "$ml") | .partitions[0].cus == 45"
ends 0 resize "$wider_id" --shader-engines=2
list_becomes "($(of "$wider_id") | .partitions[0].cus == 30) and ($(of "$ml") | .partitions[0].cus == 30)"
kill "$wider"
wait "$wider" 2>/dev/null
list_becomes "$(of "$ml") | .partitions[0].cus == 60"

# A borrower that does not acknowledge.
halt "$borrower"
shows "15 CUs of 0000:03:00.0" activate "$vr"
fails 1 'activating' activate "$vr"
prints '.state == "activating" and .deadline == null and (.reason | length > 0)' show "$vr" --json
ends 0 deactivate "$vr"
fails 7 "lease $vr: activating" activate "$vr" --wait=1
err_has "lease $vr"
ends 0 deactivate "$vr"
ends 7 activate "$vr" --wait=0 --json --wait=1
json_err '.error | test("still activating")'
shows "lease $vr: state: activating" verify
follow monitor
monitor=$!
kill -CONT "$borrower"
list_becomes "$(of "$vr") | .state == \"granted\""
await_line "${output[$monitor]}" "lease-changed $ml ml granted: deadline in *min -> null"
let_go TERM "$monitor"

# activate --wait while the lease is deactivated, or lost.
ends 0 deactivate "$vr"
list_becomes "$(of "$ml") | .partitions[0].cus == 60"
halt "$borrower"
for how in deactivate release; do
	follow activate "$vr" --wait
	waiter=$!
	check "it says that it waits: $line" grep -q 'activating' <<<"$line"
	ends 0 "$how" "$vr"
	next_line "$waiter"
	check 'that it waits in vain is said' grep -q "lease $vr" <<<"$line"
	wait_for "$waiter"
	case $how in
	deactivate) check "what was lent again is a failure: $line" test "$ended" = 1 ;;
	release) check "what is gone is lost: $line" test "$ended" = 8 ;;
	esac
done
wait_for "$holder"
check 'its holder has lost it' test "$ended" = 8
kill -CONT "$borrower"

# A reserve waits until the borrower has returned the CUs.
hold reserve --class=realtime --shader-engines=1 --name=vr
vr=$(sed -n 's/^lease \([0-9]*\): .*/\1/p' <<<"$held")
list_becomes "($(of "$vr") | .state == \"granted\") and ($(of "$ml") | .partitions[0].cus == 45)"

# A waiting lease cannot be activated.
follow reserve --class=realtime --shader-engines=4 --wait --start-inactive
waiter=$! waits=$lease
check "it waits: $line" test -n "$waits"
fails 1 'waiting' activate "$waits"
ends 1 deactivate "$waits"
let_go TERM "$waiter"

# ---- observation ---------------------------------------------------------------------------
shows '0000:03:00.0: slots' verify
out_has "lease $ml on 0000:03:00.0: mask"
prints "map(.lease) | unique == [null, $ml]" verify "$ml" --json
json_out 'all(keys == ["check","found","gpu","lease","result"]) and (map(.result) | unique | inside(["note", "ok"]))'

# On a terminal top draws until a key is typed, and restores the screen.
if rig_has_terminal; then
	mkfifo "$dir/keys"
	# top_ends CODE KEYS: types the keys after the first drawing.
	top_ends()
	{
		local text=
		said="top on a terminal, and $2"
		: >"$dir/out"
		: >"$dir/err"
		exec 6< <(exec script -qec "TERM=xterm $GPUARBCTL top" /dev/null <"$dir/keys" 2>&1)
		waiter=$!
		exec 7>"$dir/keys"
		check 'it draws' await_text 6 'q quits'
		printf '%b' "$2" >&7
		cat <&6 >"$dir/out"
		wait "$waiter"
		check "it ends with $1" test $? = "$1"
		out_has $'\033[?1049l'
		exec 6<&- 7>&-
	}
	top_ends 0 q
	check 'nothing is drawn on the screen that was there before' \
		test "$(tr -d '\r\n' <"$dir/out" | tail -c 8)" = $'\033[?1049l'
	top_ends 0 '\003'
fi

# ---- revoking --------------------------------------------------------------------------------
prints ".revoked == $ml and .deadline > 0" revoke "$ml" --grace=1000 --reason='new cards' --json
shows 'new cards' show "$ml"
out_has 'deadline  '
await_line "${output[$borrower]}" '*revoking*'
check "its holder is told: $line" grep -q 'new cards; ends' <<<"$line"
fails 1 'forward' revoke "$ml" --grace=2000
ends 1 revoke "$ml" --grace=2000 --json
json_err '.error_name == "org.gpuarb.Arbiter1.Error.InvalidState"'
shows "lease $ml: revoking" revoke "$ml" --grace=500
shows "note   lease $ml: state: revoking" verify "$ml"
shows "lease $ml" revoke "$ml" --grace=0
borrower_ends 8
prints ".revoked == $vr and .deadline == null" revoke "$vr" --grace=0 --json
wait_for "$holder"
check 'who loses its lease says so' test "$ended" = 8
cp "$dir/hold.err" "$dir/err"
err_has 'administrator'
prints '. == []' list --json

# ---- requeue -----------------------------------------------------------------------------
sed -i '/^class = realtime/a preempt = revoke' "$dir/tenants.d/10-all.conf"
ends 0 reload
follow reserve --class=besteffort --cus=60 --exact --requeue --name=again
again=$! again_lease=$lease
ends 0 run --class=realtime --shader-engines=1 -- "$GPUARBCTL" list --json
json_out "$(of "$again_lease") | .state == \"waiting\" and .partitions == [] and .position == 1"
list_becomes "length == 1 and ($(of "$again_lease") | .state == \"granted\" and .partitions[0].cus == 60)"
for state in revoking waiting granted; do
	check "it prints that it is $state" await_line "${output[$again]}" "lease $again_lease: $state*"
done
let_go TERM "$again"
list_becomes '. == []'

# run --requeue ends its command, and starts it again when the lease is granted again.
cat >"$dir/worker" <<-'SH'
	#!/bin/bash
	trap 'kill $!; echo "ends"; exit 0' TERM
	echo "lease $GPUARB_LEASE, preload=${LD_PRELOAD:+set}"
	sleep infinity &
	wait
SH
chmod +x "$dir/worker"
# says LINE: the worker of run --requeue prints it.
says()
{
	next_line "$again"
	check "the worker prints '$1', not '$line'" test "$line" = "$1"
}
for how in '--fixed --class=besteffort --cus=60 --exact' '--adaptable --cus=60 --cus-min=30'; do
	# shellcheck disable=SC2086
	errors=$dir/run.err follow run --requeue $how -- "$dir/worker"
	again=$! again_lease=$lease
	preload=
	[[ $how != --adaptable* ]] || preload=set
	check "the worker has a lease: $line" test "$line" = "lease $again_lease, preload=$preload"
	ends 0 run --class=realtime --shader-engines=4 -- "$GPUARBCTL" list --json
	json_out "$(of "$again_lease") | .state == \"waiting\""
	says ends
	says "lease $again_lease, preload=$preload"
	check "it names the lease that revoked it" \
		grep -q "lease $again_lease: .* lease [0-9]* of .*$dir/worker" "$dir/run.err"
	list_becomes "length == 1 and ($(of "$again_lease") | .state == \"granted\")"
	kill "$again"
	says ends
	wait_for "$again"
	check "the exit status is that of the command" test "$ended" = 0
	list_becomes '. == []'
done

# A command that ignores SIGTERM is killed before the deadline. A signal ends the wait.
sed -i 's/^activate-grace = .*/activate-grace = 2s/' "$dir/gpuarbd.conf"
ends 0 reload
errors=$dir/run.err follow run --requeue --quiet --fixed --class=besteffort --cus=60 --exact -- \
	bash -c 'trap "" TERM; echo $$; exec sleep infinity'
again=$! first=$line
check 'another process runs the command' test "$first" != "$again"
errors=$dir/realtime.err follow run --class=realtime --shader-engines=4 -- \
	bash -c 'echo granted; exec sleep infinity'
realtime=$!
check "the realtime lease is granted: $line" test "$line" = granted
await_so 'the command was killed' test ! -e "/proc/$first" # on a busy machine after the deadline
list_becomes 'any(.state == "waiting")'
let_go INT "$again"
check 'SIGINT ends the wait' test "$ended" = 130
list_becomes 'all(.state != "waiting")'
let_go TERM "$realtime"
list_becomes '. == []'

# The exit status is that of the command, and gpuarbctl forwards signals to it.
ends 7 run --requeue -- sh -c 'exit 7'
ends 130 run --requeue --cus=15 -- sh -c 'kill -INT $$'
ends 127 run --requeue --cus=15 -- no-such-program
said='run --requeue where SIGCHLD is ignored'
timeout "$patience" env --ignore-signal=CHLD "$GPUARBCTL" run --requeue --cus=15 -- \
	grep SigIgn /proc/self/status >"$dir/out" 2>"$dir/err"
check 'it ends' test $? = 0
check 'the command ignores it, too' test $((0x$(sed 's/.*\t//' "$dir/out") & 0x10000)) != 0
fails 125 'token=x' run --requeue --token=x -- true
# An administrator revokes it: there is nothing to wait for again.
errors=$dir/run.err follow run --requeue --cus=15 -- "$dir/worker"
again=$! again_lease=$lease
ends 0 revoke "$again_lease" --reason=tidy
says ends
wait_for "$again"
check 'a command without a lease does not start again' test "$ended" = 125
check 'the message names the reason' grep -q "lease $again_lease .*tidy" "$dir/run.err"
list_becomes '. == []'
sed -i 's/^activate-grace = .*/activate-grace = 600s/' "$dir/gpuarbd.conf"
ends 0 reload

# ---- floors above what the GPU has ---------------------------------------------------------
cp "$dir/tenants.d/10-all.conf" "$dir/all.conf"
sed -i '/^class = realtime/a reserved-cus = 61' "$dir/tenants.d/10-all.conf"
ends 6 config check "$dir/tenants.d/10-all.conf" --json
json_out '.valid == false and (.problems | length == 1)'
ends 0 reload
prints '.gpus[0].floor_excess | test("^reserved-shader-engines .*everything 5")' status --json
excess=$(jq -r '.gpus[0].floor_excess' "$dir/out")
ends 0 status
check 'status shows the excess' grep -qF "$excess" "$dir/out"
sed -i 's/^reserved-cus = 61/reserved-cus = 60/' "$dir/tenants.d/10-all.conf"
ends 0 config check "$dir/tenants.d/10-all.conf"
ends 0 reload
prints '.gpus[0].floor_excess == null' status --json
cp "$dir/all.conf" "$dir/tenants.d/10-all.conf"
ends 0 reload

# ---- moves -------------------------------------------------------------------------------
# A lease in each shader engine: one of them moves for a realtime lease.
movers=()
for i in 1 2 3 4; do
	"$GPUARBCTL" reserve --adaptable --cus=4 --cus-min=4 --cus-max=4 >/dev/null 2>&1 &
	movers+=($!)
	list_becomes "length == $((2 * i - 1))"
	"$GPUARBCTL" reserve --class=besteffort --cus=11 --name=fill >/dev/null 2>&1 &
	list_becomes "length == $((2 * i))"
done
jq -r '.[] | select(.name == "fill").id' "$dir/out" >"$dir/fills"
while read -r id; do ends 0 release "$id"; done <"$dir/fills"
list_becomes 'length == 4 and all(.moves == null)'
prints '.verdict == "granted" and (.effects.moves | length == 1)' plan --class=realtime --shader-engines=1 --json
moved=$(jq '.effects.moves[0]' "$dir/out")
shows "lease $moved " plan --class=realtime --shader-engines=1
follow monitor
text=$!
follow monitor --json
json=$!
ends 0 run --class=realtime --shader-engines=1 -- "$GPUARBCTL" list --json
json_out "map(select(.moves)) | map([.id, .moves]) == [[$moved, 1]]"
await_line "${output[$text]}" "lease-changed $moved granted: *partitions\\[0\\].cu_mask \"0x*\" -> \"0x*, moves null -> 1*"
await_line "${output[$json]}" "*\"lease-changed\",\"what\":\"$moved\"*\"moves\"*"
echo "$line" >"$dir/out"
said='gpuarbctl monitor --json'
json_out '(.changes | map(select(.key == "moves")) == [{ key: "moves", from: null, to: 1 }]) and
	(.changes[] | select(.key == "partitions[0].cu_mask") | .from != .to)'
let_go TERM "$text"
let_go TERM "$json"
shows 'moves        1' show "$moved"

# ---- fairness ------------------------------------------------------------------------------
# Four leases with 4 CUs each; then one more with 12: 28^2 / (5 * (4 * 4^2 + 12^2)).
prints '.[0].fairness == 1' gpus --json
"$GPUARBCTL" reserve --adaptable --cus=12 --cus-min=12 --cus-max=12 >/dev/null 2>&1 &
movers+=($!)
list_becomes 'length == 5'
prints '.gpus[0].fairness * 1000 | round == 754' status --json
kill "${movers[@]}"
list_becomes '. == []'
kill "$watcher"
wait "$watcher"
said='monitor --json'
jq -s . "$dir/watched" >"$dir/out"
json_out 'any(.changes | length > 0) and all(.changes != [])' # no line without a change

# ---- gpuarb-agent of a lease that it cannot follow -----------------------------------------
mkfifo "$dir/5" "$dir/6"
exec 5<>"$dir/5" 6<>"$dir/6" {second}<>"$dir/5" # as sockets without a connection, and a process that lives
# fails_to_follow LEASE PROCESS
fails_to_follow()
{
	said="gpuarb-agent $1"
	timeout "$patience" "$GPUARB_AGENT_DIR/gpuarb-agent" "$1" $$ 5 "$second" "$2" >"$dir/out" 2>"$dir/err"
	check 'gpuarb-agent fails' test $? = 1
}
hold reserve --cus=15
fixed=$(sed -n 's/^lease \([0-9]*\): .*/\1/p' <<<"$held")
fails_to_follow "$fixed" 5 # a descriptor that it waits for already
check 'gpuarb-agent prints an error' test -s "$dir/err"
fails_to_follow 999 6
err_has '999'
"$GPUARBCTL" reserve --cus=60 --wait >/dev/null 2>&1 &
waiter=$!
list_becomes 'map(.state) | index("waiting")'
fails_to_follow "$("$GPUARBCTL" list --json | jq '.[] | select(.state == "waiting").id')" 6
kill "$waiter"
let_go TERM "$holder"
exec 5>&- 6>&- {second}>&-
list_becomes '. == []'

# ---- gpuarb-agent without a descriptor for one more process ----------------------------------
cat >"$dir/crowd.py" <<-'CODE'
	import os, re, resource, socket, subprocess, sys, time

	patience = float(sys.argv[1])

	def join():
	    member = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
	    member.settimeout(patience)
	    member.connect(os.environ['GPUARB_AGENT'])
	    return member

	def sleeps(agent):
	    with open(f'/proc/{agent}/status') as status:
	        return int(re.search(r'^voluntary_ctxt_switches:\s+(\d+)', status.read(), re.M)[1])

	first = join()
	assert first.recv(65536)
	agent = int(subprocess.check_output(
	    ['pgrep', '-f', f'gpuarb-agent {os.environ["GPUARB_LEASE"]} {os.getpid()} ']))
	used = max(map(int, os.listdir(f'/proc/{agent}/fd'))) + 1
	resource.prlimit(agent, resource.RLIMIT_NOFILE, (used, used))
	second = join()
	end, wanted = time.monotonic() + patience, sleeps(agent) + 5
	while sleeps(agent) < wanted:  # a busy one never does
	    assert time.monotonic() < end, 'gpuarb-agent does not sleep'
	    time.sleep(0.02)
	first.close()
	assert second.recv(65536)
CODE
ends 0 run --adaptable --cus=15 -- python3 "$dir/crowd.py" "$patience"
list_becomes '. == []'

# ---- permissions to revoke ----------------------------------------------------------------
chmod 755 "$dir"
other=(setpriv --reuid=65534 --clear-groups)
if [ "$(id -u)" = 0 ] && "${other[@]}" "$GPUARBCTL" --version >/dev/null 2>&1; then
	hold reserve --class=realtime --shader-engines=1 --start-inactive
	vr=$(sed -n 's/^lease \([0-9]*\): .*/\1/p' <<<"$held")
	for verb in activate deactivate revoke; do
		"${other[@]}" "$GPUARBCTL" "$verb" "$vr" >"$dir/out" 2>"$dir/err"
		check "$verb of another's lease is not authorised" test $? = 4
		[ "$verb" = revoke ] || check "$verb names the owner of the lease" \
			grep -q "$(id -un):" "$dir/err"
	done
	prints '.state == "inactive"' show "$vr" --json
	let_go TERM "$holder"
fi
rig_done
