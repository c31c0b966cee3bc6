#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# gpuarbctl with --wait. Environment as for test-ctl.sh, and
# SERVICE_MANAGER: tests/rigs/service-manager.
set -u
: "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"

rig_need dbus-daemon dbus-monitor jq
rig_start_bus
cat >"$dir/tenants.d/10-all.conf" <<-CONF
	[tenant everything]
	match-user = $(id -un)
	class = realtime

	[tenant few]
	match-user = $(id -un)
	open = yes
	max-queues = 4

	[tenant night]
	match-user = $(id -un)
	open = yes
	preempt = revoke
	enforce = kill
CONF
rig_start_daemon --simulate=radeon-vii

# wait_in_line ARGUMENT…: starts a gpuarbctl that waits; its lease is in $id, its pid in $waiter.
wait_in_line()
{
	follow "$@"
	waiter=$!
	id=$(sed -n 's/.*lease \([0-9]*\) waits .*/\1/p' <<<"$line")
	check "it says that it waits: $line" test -n "$id"
}

waiter_ends() # STATUS SENTENCE
{
	wait_for "$waiter"
	check "$2" test "$ended" = "$1"
}

# ---- waiting leases are shown -----------------------------------------------------------
hold reserve --cus=60 --class=guaranteed
first=$holder
fails 3 'later' reserve --cus=30 --class=guaranteed
ends 3 plan --cus=30 --class=guaranteed --json
json_out '.verdict == "refused" and .refusals[0].retry'
ends 3 plan --cus=30 --class=guaranteed --wait
out_has 'waiting'
out_has '0000:03:00.0'
ends 3 plan --cus=30 --class=guaranteed --wait --json
json_out '.verdict == "waiting" and .partitions == [] and .refusals[0].reason == "cus"'
ends 3 plan --cus=30 --queues=1000 --wait --json
json_out '.verdict == "refused" and .refusals[0].retry == false'
fails 3 'never' reserve --cus=30 --queues=1000 --wait

wait_in_line reserve --cus=30 --class=guaranteed --name=second --wait
check 'it has the first place, and says for what' \
	grep -q ' waits for 30 CUs on 0000:03:00.0; position 1$' <<<"$line"
ends 0 show "$id" --json
json_out '.state == "waiting" and .position == 1 and .partitions == [] and .deadline == null
	and (.reason | length > 0)'
json_out '.waits_for | .reason == "cus" and .resource == "cus" and .asked == 30 and .total == 60
	and .retry and .lease_count == 1 and (.leases | length) == 1'
shows 'state        waiting' show "$id"
out_has 'position     1'
shows '; position 1' list
check 'what it has not is no number' grep -q ' waiting .* -  *-  *-  *[0-9]*s  *waits for .*; position 1' "$dir/out"
shows '; position 1' status
fails 1 'waiting' resize "$id" --cus=3
second=$id second_pid=$waiter

# ---- the wait ends without a grant --------------------------------------------------------
wait_in_line reserve --cus=30 --class=guaranteed --wait=1000
check 'the next has the second place' grep -q '; position 2' <<<"$line"
check 'and says when it gives up' grep -q '1[0-9] min$' <<<"$line"
shows 'deadline     gives up in 1' show "$id"
prints '.deadline > 0' show "$id" --json
kill -TERM "$waiter"
waiter_ends 143 'a signal ends it while it waits'
prints "[.[].id | select(. == $id)] == []" list --json

wait_in_line reserve --cus=30 --class=guaranteed --token=again --wait
fails 3 "lease $id" reserve --cus=30 --class=guaranteed --token=again
err_has '--wait'
ends 3 reserve --cus=30 --class=guaranteed --token=again --json
json_err '.error | test("which has this token")'
ends 0 release "$id"
waiter_ends 8 'the place was given up'

wait_in_line reserve --cus=30 --class=guaranteed --wait
ends 0 release "$id"
waiter_ends 8 'a place that somebody released is lost'

wait_in_line reserve --cus=30 --class=realtime --wait
check 'a higher class has the first place' grep -q '; position 1' <<<"$line"
kill -KILL "$waiter"
waiter_ends 137 'it was killed'

# gives_up ARGUMENT…: starts one that waits three seconds. gave_up NUMBER STATUS: checks the exit
# status of one of them, from 0.
late=()
gives_up()
{
	"$GPUARBCTL" "$@" </dev/null >/dev/null 2>"$dir/late${#late[@]}" &
	late+=($!)
}
gave_up()
{
	wait "${late[$1]}"
	check "number $1 of those that give up ends with $2" test $? = "$2"
	cp "$dir/late$1" "$dir/err"
}
gives_up reserve --cus=30 --class=guaranteed --wait=3
gives_up run --cus=30 --class=guaranteed --wait=3 -- true
gives_up reserve --cus=30 --class=guaranteed --wait=3 --json
gave_up 0 7
err_has ' waits for '
check 'it says its place and when it gives up' \
	grep -q '[0123] s$' "$dir/err"
err_has 'ended'
gave_up 1 125
err_has 'gpuarbctl run: lease '
gave_up 2 7
check 'with --json what waits is an object' \
	jq -se '.[0].state == "waiting" and (.[1].error | length > 0)' "$dir/err"

# ---- the wait ends with a grant -----------------------------------------------------------
let_go TERM "$first"
next_line "$second_pid"
check 'what waited is granted' grep -q "^lease $second: cus: 30 asked, 30 granted" <<<"$line"
prints ".[0] | .state == \"granted\" and .position == 0 and .reason == \"\"" list --json

# shellcheck disable=SC2016
wait_in_line run --cus=60 --class=guaranteed --wait -- sh -c 'echo "mask $HSA_CU_MASK"; exit 9'
let_go TERM "$second_pid"
check 'SIGTERM ends reserve with 0' test "$ended" = 0
next_line "$waiter"
check 'run says what was granted' grep -q "^gpuarbctl run: lease $id: cus: 60 asked" <<<"$line"
next_line "$waiter"
check 'and starts the command' grep -qx 'mask 0:0x[0-9a-f]*' <<<"$line"
waiter_ends 9 'whose status it is'

# ---- default numbers of queues --------------------------------------------------------------
prints '.partitions[0].queues == 4' plan --tenant=few --json
ends 3 plan --tenant=few --queues=5
out_has 'quota'
prints '.partitions[0].queues == 4' plan --tenant=few --streams=1 --json
ends 3 plan --tenant=few --streams=3
out_has '--streams=2 '
fails 0 'gpuarbctl run: lease ' run --tenant=few -- true
hold reserve --cus=3 --tenant=few --queues=3
ends 3 plan --tenant=few
let_go TERM "$holder"
rig_stop_daemon

# ---- the daemon dies meanwhile ----------------------------------------------------------------
exec 4< <(RUNTIME_DIRECTORY=$dir/run ASAN_OPTIONS=$gpuarbd_options exec "$SERVICE_MANAGER" --store-max=64 -- "$GPUARBD" \
	--simulate=radeon-vii --profiles="$GPUARB_SOURCE_ROOT/conf/gpus" \
	--config="$dir/gpuarbd.conf" --tenants="$dir/tenants.d" 2>"$dir/daemon.err")
daemon_pid=$!
ready() # its pid is in $gpuarbd
{
	await_line 4 'ready *' || { echo 'the daemon does not come up:'; cat "$dir/daemon.err"; exit 1; }
	gpuarbd=${line#ready }
}
ready
hold reserve --cus=60 --class=guaranteed
wait_in_line reserve --cus=30 --class=guaranteed --wait=1000
kill -KILL "$gpuarbd"
ready
prints '.state == "waiting" and .position == 1 and .deadline > 0' show "$id" --json
let_go TERM "$holder"
next_line "$waiter"
check 'what waited before is granted' grep -q "^lease $id: cus: 30 asked, 30 granted" <<<"$line"
kill -KILL "$gpuarbd"
ready
ends 0 release "$id"
waiter_ends 8 'what was granted before can be released, and its holder knows'

# ---- leases that are revoked for a higher class --------------------------------------------
# The request is cancelled within the time that the revoked lease has, however busy the machine is.
grace() { printf '[daemon]\nactivate-grace = %s\n' "$1" >"$dir/gpuarbd.conf"; ends 0 reload; }
grace 600s
hold reserve --tenant=night --cus=60
ends 0 list --json
low=$(jq '.[] | select(.tenant == "night").id' "$dir/out") low_pid=$holder
ends 3 plan --cus=30 --class=realtime
out_has "lease $low would be revoked"
out_has 'within'
ends 3 plan --cus=30 --class=realtime --json
json_out ".verdict == \"waiting\" and (.effects | .revokes == [$low] and .shrinks == [] and
	.within_usec > 1000000)"
ends 3 plan --cus=30 --tenant=night --json
json_out '.verdict == "refused" and .effects == null'
wait_in_line reserve --cus=30 --class=realtime --wait
prints "any(.[]; .id == $low and .state == \"revoking\" and (.reason | test(\"lease $id\")))" list --json
json_out "any(.[]; .id == $id and .state == \"waiting\" and (.reason | test(\"lease $low\")))"
kill -TERM "$waiter"
waiter_ends 143 'the request is cancelled'
list_becomes "any(.[]; .id == $low and .state == \"granted\")"
grace 1s
ends 0 run --cus=30 --class=realtime -- true
prints "all(.[]; .id != $low)" list --json
wait_for "$low_pid"
hold reserve --tenant=few --cus=60
ends 3 plan --cus=30 --class=realtime --json
json_out '.refusals[0].preempt_tenant == "few" and .effects == null'
ends 3 plan --cus=30 --class=realtime
out_has 'preempt = revoke of tenant few would make room'
ends 3 plan --cus=1 --queues=24 --class=realtime
out_has 'reserved-queues'
let_go TERM "$holder"

rig_done
