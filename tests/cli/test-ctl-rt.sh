#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# gpuarbctl rt plan: output, exit codes, and that gpuarbd grants the plan.
#
#	test-ctl-rt.sh GPUARBCTL
#
# GPUARBD, GPUARB_SOURCE_ROOT: the daemon and the source tree.
set -u
GPUARBCTL=${1:-${GPUARBCTL:?}}
: "${GPUARBD:?}" "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"
rig_need dbus-daemon dbus-monitor jq
data=$GPUARB_SOURCE_ROOT/tests/data/rt
example=$GPUARB_SOURCE_ROOT/docs/examples/taskset.ini
manual=$GPUARB_SOURCE_ROOT/docs/gpuarbctl-rt.1.scd
export GPUARB_BUS_ADDRESS="unix:path=$dir/no-bus"

# plan CODE FILE ARGUMENT…
plan() { ends "$1" rt plan "${@:2}" --profiles="$GPUARB_SOURCE_ROOT/conf/gpus"; }
# plan_is JQ ARGUMENT…, plan_shows TEXT ARGUMENT…: it ends with 0, and its JSON is so, or it prints the text.
plan_is() { plan 0 "${@:2}" --json; json_out "$1"; }
plan_shows() { plan 0 "${@:2}"; out_has "$1"; }
# plan_fails CODE TEXT ARGUMENT…: it ends so, and prints the text on standard error.
plan_fails() { plan "$1" "${@:3}"; err_has "$2"; }

# ---- output ------------------------------------------------------------------------------
plan 0 "$example" --profile=radeon-vii
sed -i "s/^match-user = $(id -u)\$/match-user = UID/" "$dir/out" # the user of this test
out_is "$data/example.out"
plan 3 "$data/tight.ini" --profile=radeon-vii
out_has 'rejected: 2 of 3 '
check 'a partition without a place' grep -q '^main  *60  *none .* 4740$' "$dir/out"
out_has 'late     main       2000  measured  none    1000    5740   5000      -740   -'
out_has 'late: 740 us '
out_has 'of 1 task '
out_lacks '--name='
plan 3 "$data/crowd.ini" --profile=radeon-vii
out_has ': c: shader-engines: 2 asked, 0 of 4 free; '
out_has 'isolation = cu '
out_has '104 % '
out_has '1.82 beside 2 leases (measured: 1.41 on Radeon VII beside 1, memory, '
out_has 'of 3 tasks '
plan 0 "$data/shared.ini" --profile=rx7900xtx
out_has 'right      6    6         SE 0 x6  1900  1140    0     0           -           3040'
out_has '- 60 % '
out_has '(MES)'
out_has 'has 7 queues '
out_has '4 pipes: own-pipes = yes '
out_has '--name=left --cus=6 --cus-min=6 --isolation=cu --queues=3 -- ./left --fast'
out_has '--name=right --cus=6 --cus-min=6 --isolation=cu --queues=4 --processes=2 -- COMMAND'
out_has 'open = yes'
plan 0 "$example" --profile=radeon-vii --no-legend
out_lacks 'Assumptions'
out_lacks 'PARTITION'

plan 0 "$example" --profile=radeon-vii --json
jq -cS 'del(.tenants, .partitions, .tasks, .assumptions, .conditions),
	.partitions[], .tasks[], .assumptions[], .conditions[]' "$dir/out" >"$dir/json"
mv "$dir/json" "$dir/out"
out_is "$data/example.json"
plan 3 "$data/tight.ini" --profile=radeon-vii --json
json_out '.verdict == "rejected" and .tenants == null and .order == [] and
	(.tasks | map(select(.meets | not)) | length > 0 and all(.reason | length > 0)) and
	(.tasks[0].slack_usec < 0) and .partitions[0].run == null'
plan 3 "$example" "$data/tight.ini" "$example" --profile=radeon-vii --json
check 'each file has its own result' test "$(jq -r .verdict "$dir/out" | xargs)" = \
	'conditional rejected conditional'

# A job with jitter does not block itself. Without shorter deadlines, only the utilisation ends the growth.
sed 's/^\t//' >"$dir/alone.ini" <<'END'
	[taskset]
	margin = 0%
	neighbours = 1
	borrowers = no
	[partition p]
	policy = np-edf
	host-submission = 0us
	[task short]
	partition = p
	period = 10ms
	deadline = 5ms
	jitter = 1us
	wcet = 15:2600us
	[partition q]
	policy = np-edf
	host-submission = 0us
	[task whole]
	partition = q
	period = 10ms
	wcet = 15:2600us
END
plan_shows '7399 (284%), then ' "$dir/alone.ini" --profile=radeon-vii
for policy in np-edf np-dm; do
	sed -i "s/^policy = .*/policy = $policy/" "$dir/alone.ini"
	plan 0 "$dir/alone.ini" --profile=radeon-vii --json
	json_out '[.tasks[] | [.bound_usec, .growth_usec, .growth_limit]] ==
		[[2601, 2399, "deadline"], [2600, 7399, "utilisation"]]'
done
plan_fails 6 'none.ini' "$example" "$dir/none.ini" "$example" --profile=radeon-vii --json
plan 3 "$data/crowd.ini" --profile=radeon-vii --json
json_out '.reason | test("side by side")'

# The manual has all keys of the JSON and of the file.
"$GPUARBCTL" rt plan "$example" --profile=radeon-vii \
	--profiles="$GPUARB_SOURCE_ROOT/conf/gpus" --json >"$dir/out" 2>"$dir/err"
keys=$(jq -r '[., .partitions[0], .tasks[0]] | map(keys) | add | unique[]' "$dir/out")
told=$(sed -n '/^\*rt plan\*: _verdict/,/^$/p' "$manual" | tr -d '_*(),;')
for key in $keys; do
	key=$(tr -d _ <<<"$key")
	check "the manual has $key of the JSON" grep -qw "$key" <<<"$told"
done
# shellcheck disable=SC2013 # words are what is wanted
for key in $(sed -n 's/^\t\(SET\|PARTITION\|TASK\)("\([a-z-]*\)",.*/\2/p' \
	"$GPUARB_SOURCE_ROOT/client/rt/set-file.c"); do
	keys_seen=yes
	check "the manual has the key $key" grep -q "^\(\*.*, \)\?\*$key\* = " "$manual"
done

check 'the file has keys' test "${keys_seen:-}" = yes

# ---- several GPUs --------------------------------------------------------------------------
cat >"$dir/house.ini" <<'EOF'
[taskset]
borrowers = no
[partition a]
gpu = left
[task warp]
partition = a
period = 10ms
wcet = 15:2ms
[partition b]
gpu = right
[task blend]
partition = b
after = warp
wcet = 15:1ms
EOF
plan 0 "$dir/house.ini" --profile=left=radeon-vii,right=rx7900xtx --json
json_out '[.gpus[] | .name, .gpu] == ["left", "radeon-vii", "right", "rx7900xtx"] and
	[.partitions[].gpu] == ["left", "right"] and .tasks[1].jitter_usec == .tasks[0].bound_usec'
plan 0 "$dir/house.ini" --profile=left=radeon-vii,right=radeon-vii
plan_fails 6 '[partition b]' "$dir/house.ini" --profile=left=radeon-vii
err_has 'right'
plan 2 "$dir/house.ini" --profile=radeon-vii,radeon-vii
plan 2 "$dir/house.ini" --profile=left=,right=radeon-vii
plan 2 "$dir/house.ini" --profile=left=none,right=radeon-vii
plan_fails 2 '16' "$dir/house.ini" --profile="$(seq -s , -f %g=radeon-vii 1 17)"

# ---- the margin ----------------------------------------------------------------------------
plan 0 "$data/small.ini" --profile=radeon-vii --json
json_out '.neighbours == 0 and .margin_percent == 12 and .margin_source == "no neighbour"'
printf '[taskset]\nneighbours-use = compute\nneighbours = 1\n' >"$dir/own.ini"
sed '/^\[taskset\]/d' "$data/small.ini" >>"$dir/own.ini"
plan_is '.margin_percent == 14' "$dir/own.ini" --profile=rx7800xt
sed -i 's/= compute/= much/' "$dir/own.ini"
plan_fails 6 'neighbours-use' "$dir/own.ini" --profile=rx7800xt
plan_is '.margin_percent == 0 and .partitions[0].margin_usec == 0' "$example" --profile=radeon-vii --margin=0%
plan 3 "$example" --profile=radeon-vii --margin 1000%
plan_fails 2 '0% to 1000%' "$example" --profile=radeon-vii --margin=1001%
for bad in 60 -1% % 60%% 6x% ''; do
	plan 2 "$example" --profile=radeon-vii "--margin=$bad"
done

# Keys that the set leaves out come from the named configuration.
printf '[daemon]\nmargin = 25%%\n' >"$dir/margin.conf"
plan_is '.margin_percent == 25' "$example" --profile=radeon-vii --config="$dir/margin.conf"
plan_is '.margin_percent == 30' "$example" --profile=radeon-vii --config="$dir/margin.conf" --margin=30%
{ printf '[taskset]\nmargin = 35%%\n'; sed '/^\[taskset\]/d' "$data/small.ini"; } >"$dir/own.ini"
plan_is '.margin_percent == 35' "$dir/own.ini" --profile=rx7900xtx --config="$dir/margin.conf"
plan 0 "$example" --profile=radeon-vii --config=/dev/null --json
json_out '.margin_percent == 58 and .neighbours == 1 and (.margin_source | test("Radeon VII"))'
plan_fails 6 'none.conf' "$example" --profile=radeon-vii --config="$dir/none.conf"
printf '[daemon]\nmargn = 25%%\n' >"$dir/margn.conf"
plan_fails 6 "margn.conf:2" "$example" --profile=radeon-vii --config="$dir/margn.conf"

# ---- exit codes ----------------------------------------------------------------------------
plan_fails 2 '--gpu=GPU' "$example"
plan 2 "$example" --profile=radeon-vii --gpu=0
plan 2 "$example" --profile=radeon-viii
plan 5 "$example" --gpu=0
ends 2 rt
ends 2 rt plan
ends 2 rt prove "$example" --profile=radeon-vii
plan_fails 6 'none.ini' "$dir/none.ini" --profile=radeon-vii
printf '[taskset]\nmargn = 5%%\n[task t]\nperiod = -1\n' >"$dir/bad.ini"
plan_fails 6 "key 'margn' in [taskset]" "$dir/bad.ini" --profile=radeon-vii
err_has "bad.ini:4"
plan 6 "$dir/bad.ini" --profile=radeon-vii --json
check 'a failure is one object' jq -se 'length == 1 and (.[0].error | length > 0)' "$dir/err"
# Thousands of tasks, and all profiles.
{
	printf '[taskset]\nborrowers = no\n[partition p]\n'
	for ((i = 0; i < 4096; i++)); do
		printf '[task t%d]\npartition = p\nperiod = 1s\nwcet = 1:90 30:50\n' "$i"
	done
} >"$dir/many.ini"
plan_is '.tasks | length == 4096 and all(.meets)' "$dir/many.ini" --profile=radeon-vii

# chained POLICY N BOUND: a chain of so many tasks in one partition.
chained()
{
	printf '[taskset]\nborrowers = no\nmargin = 0%%\n[partition p]\npolicy = %s\n' "$1" >"$dir/many.ini"
	for ((i = 0; i < $2; i++)); do
		printf '[task t%d]\npartition = p\nwcet = 1:1\n' "$i"
		[ "$i" = 0 ] && printf 'period = 1h\n' || printf 'after = t%d\n' $((i - 1))
	done >>"$dir/many.ini"
	plan_is ".tasks | length == $2 and all(.meets) and last.bound_usec == $3" "$dir/many.ini" --profile=radeon-vii
}
chained fifo 4096 $((4096 * 4096))
chained np-dm 300 $((300 * 300))
# Each waits for those that are not done, and for one that has begun.
chained np-edf 1200 $((1200 * 1201 / 2 + 1199))
for profile in "$GPUARB_SOURCE_ROOT"/conf/gpus/*.conf; do
	plan 0 "$data/small.ini" --profile="$(basename "$profile" .conf)" --json
	json_out '.verdict == "conditional" and .partitions[0].effective_cus >= 4'
done

# ---- gpuarbd grants the plan ----------------------------------------------------------------
mkdir "$dir/bin"
ln -s "$(realpath "$GPUARBCTL")" "$dir/bin/gpuarbctl"
mkfifo "$dir/end"
for name in compositor speech left COMMAND; do
	printf '#!/bin/sh\necho up "$@"\nread -r _ <%s\n' "$dir/end" >"$dir/bin/$name"
	chmod +x "$dir/bin/$name"
done
rig_start_bus

# part HEAD: the lines of the plan below this head.
part() { awk -v head="$1" '$0 == head { on = 1; next } /^[^ ].*:$/ { on = 0 } on' "$dir/text"; }

# enact SET PROFILE: plans, installs the printed lines, runs the printed commands, and compares.
enact()
{
	local line holders=() fds=() fd id

	plan 0 "$1" --profile="$2"
	cp "$dir/out" "$dir/text"
	part tenants.d/50-realtime.conf: >"$dir/tenants.d/50-realtime.conf"
	part gpuarbd.conf: >"$dir/gpuarbd.conf"
	check 'there are tenants' grep -q '^\[tenant' "$dir/tenants.d/50-realtime.conf"
	ends 0 config check "$dir/tenants.d/50-realtime.conf" "$dir/gpuarbd.conf"
	rig_start_daemon --simulate="$2"

	plan 0 "$1" --profile="$2" --json
	cp "$dir/out" "$dir/plan"
	plan 0 "$1" --gpu=0 --config="$dir/gpuarbd.conf" --json
	check 'the GPU of the daemon is planned for like its model' \
		test "$(jq -cS '.tasks, .order' "$dir/out")" = "$(jq -cS '.tasks, .order' "$dir/plan")"
	json_out '.daemon == null'
	printf '[gpu 0000:03:00.0]\nreserve-queues = 1000\n' >"$dir/reserve.conf"
	plan 0 "$1" --gpu=only=0 --config="$dir/gpuarbd.conf" --json
	json_out '.gpus[0].name == "only" and .gpus[0].gpu == "0000:03:00.0"'
	plan_fails 2 '0000:03:00.0' "$1" --gpu=left=0,right=0 --config="$dir/gpuarbd.conf"
	plan 3 "$1" --gpu=0 --config="$dir/reserve.conf"
	out_has 'queues: '
	out_has 'the GPU has 0'
	plan 0 "$1" --gpu=0 --config="$dir/gpuarbd.conf"
	cp "$dir/out" "$dir/text"
	: >"$dir/typed"
	while read -r line; do
		said=$line
		exec {fd}< <(cd "$dir/bin" && PATH=$dir/bin:$PATH exec bash -c "exec $line" 2>"$dir/err")
		holders+=("$!")
		fds+=("$fd")
		read -r -t "$patience" held <&"$fd" || complain "$said: nothing was started"
		echo "$held" >>"$dir/typed"
	done < <(part 'To start them:'; part 'To start them, in this order:')
	check 'there are as many commands as partitions' \
		test "${#holders[@]}" = "$(jq '.partitions | length' "$dir/plan")"
	ends 0 list --json
	check 'each lease has the CUs that were planned' test \
		"$(jq -cS 'map({(.name): .partitions[0] | [.effective_cus, .shader_engines]}) | add' \
			"$dir/out")" = \
		"$(jq -cS '.partitions | map({(.name): [.effective_cus, .shader_engines]}) | add' \
			"$dir/plan")"
	check 'who is to lend is inactive' test \
		"$(jq -c 'map(select(.state == "inactive").name) | sort' "$dir/out")" = \
		"$(jq -c '.partitions | map(select(.activation_usec).name) | sort' "$dir/plan")"
	for id in $(jq '.[] | select(.state == "inactive").id' "$dir/out"); do
		ends 0 activate "$id" --wait=60
	done
	prints 'all(.state == "granted" and .class == "realtime")' list --json
	kill "${holders[@]}" 2>/dev/null
	wait "${holders[@]}" 2>/dev/null
	for fd in "${fds[@]}"; do
		exec {fd}<&-
	done
	rig_stop_daemon
}
enact "$example" radeon-vii
enact "$data/shared.ini" rx7900xtx
check 'commands have their arguments' grep -qx 'up --fast' "$dir/typed"
enact "$data/spread.ini" radeon-vii
json_out 'map(.partitions[0].cus) | sort == [20, 40]'
enact "$data/uneven.ini" mi300x-spx
check 'the pace was printed' grep -qx 'activate-min-interval = 3s' "$dir/gpuarbd.conf"

# ---- monitor: the first assumption that does not hold ----------------------------------------
fails 2 '--gpu=GPU' rt monitor "$example"
ends 2 rt monitor "$example" --profile=radeon-vii
ends 2 rt monitor "$example" "$example" --gpu=0
ends 5 rt monitor "$example" --gpu=0

# A program with a journal socket of its own, whose entries go to a file.
cat >"$dir/journal.py" <<'EOF'
import os, socket, subprocess, sys
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
os.makedirs("/run/systemd/journal")
journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
journal.bind("/run/systemd/journal/socket")
code = subprocess.run(sys.argv[2:], check=False).returncode
journal.setblocking(False)
with open(sys.argv[1], "wb") as entries:
    try:
        while True:
            entries.write(journal.recv(65536))
    except BlockingIOError:
        pass
sys.exit(code)
EOF
journal=(env)

# watched ASSUMPTION LINE…: a set with one partition of 15 CUs, and these lines in [taskset].
watched()
{
	printf '%s\n' '[taskset]' 'preemption = 100us' 'queue-changes = 0' 'activate-min-interval = 1h' \
		"${@:2}" '[partition p]' '[task t]' 'partition = p' 'period = 1s' "wcet = $wcet" >"$dir/set.ini"
	exec 7< <(exec "${journal[@]}" timeout "$patience" "$GPUARBCTL" rt monitor "$dir/set.ini" --gpu=0 --json 2>"$dir/err")
	monitor=$!
	said="rt monitor, $1"
	read -r -t "$patience" event <&7
	check 'it tells that it watches' jq -e --arg plan "$dir/set.ini" \
		'.event == "watching" and .plan == $plan' <<<"$event"
}

# violates JQ: it ends, and has told this as its only event.
violates()
{
	cat <&7 >"$dir/out"
	wait "$monitor"
	code=$?
	check "$said: it ends with 9, not $code" test "$code" = 9
	check "$said: one event" test "$(wc -l <"$dir/out")" = 1
	json_out '.event == "violated" and .gpu == "0000:03:00.0" and .partition == "p" and .lease > 0'
	json_out "$1"
}

printf '[daemon]\nactivate-min-interval = 1h\ngrow-delay = 1h\n' >"$dir/gpuarbd.conf"
printf '[tenant %s]\nmatch-user = '"$(id -u)"'\nopen = yes\nclass = realtime\n' p q r >"$dir/tenants.d/50-realtime.conf"
rig_start_daemon --simulate=radeon-vii
ends 3 rt monitor "$data/tight.ini" --gpu=0
exec 9< <(exec "$GPUARBCTL" reserve --tenant=p --shader-engines=1)
holder=$!
read -r -t "$patience" held <&9

! unshare -m true 2>/dev/null || journal=(unshare -m python3 "$dir/journal.py" "$dir/entries")
wcet=15:10ms watched activations 'activations = 1/1h' 'changed-queues = 4'
others=()
for _ in 1 2; do
	exec {fd}< <(exec "$GPUARBCTL" reserve --tenant=q --class=guaranteed --cus=3)
	others+=("$!")
	read -r -t "$patience" held <&"$fd"
done
violates '.assumption == "activations" and .bound == 1 and .observed == 2 and .within_usec > 0'
[ "${journal[0]}" = env ] || for line in MESSAGE_ID=5d4a8f0f6f6a4b0e8f6a0f4f6b3d9c21 PRIORITY=3 \
	"GPUARB_PLAN=$dir/set.ini" GPUARB_PARTITION=p "GPUARB_LEASE=$(jq .lease "$dir/out")" \
	GPUARB_GPU=0000:03:00.0 GPUARB_ASSUMPTION=activations GPUARB_BOUND=1 GPUARB_OBSERVED=2 \
	"GPUARB_WITHIN_USEC=$(jq .within_usec "$dir/out")"; do
	check "the journal has $line" grep -qx "$line" "$dir/entries"
done
journal=(env)

kill "${others[@]}"
list_becomes 'length == 1'

# A borrower gives CUs to another lease.
mkfifo "$dir/borrow"
exec 5<>"$dir/borrow"
hold_borrower() { exec "$GPUARBCTL" run --tenant=q --class=besteffort --adaptable --cus=15 --cus-max=45 -- cat "$dir/borrow" >/dev/null 2>&1; }
hold_borrower &
borrower=$!
list_becomes 'any(.[]; .class == "besteffort" and .state == "granted" and .partitions[0].cus == 45)'
wcet=15:10ms watched disturbances 'activations = 9/1us' 'borrowers = no' 'neighbours = 2'
ends 0 run --tenant=q --class=guaranteed --cus=15 -- true
violates '.assumption == "disturbances" and .bound == 0 and .observed > 0'
kill "$borrower"
wait "$borrower" 2>/dev/null

# The lease is smaller than the plan.
wcet=30:10ms watched effective-cus 'activations = 0' 'changed-queues = 4'
violates '.assumption == "effective-cus" and .bound == 30 and .observed == 15 and .within_usec == null'
timeout "$patience" "$GPUARBCTL" rt monitor "$dir/set.ini" --gpu=0 >"$dir/out" 2>"$dir/err"
out_has '15 effective CUs'; out_has 'assumes 30'
let_go TERM "$holder"
list_becomes '. == []'

# reserves TENANT: the lease of a partition.
reserves()
{
	exec 9< <(exec "$GPUARBCTL" reserve --tenant="$1" --shader-engines=1 2>/dev/null)
	holder=$!
	read -r -t "$patience" held <&9
}

# waits_for PARTITION: it tells that this one has no lease yet.
waits_for()
{
	read -r -t "$patience" event <&7
	check "$said: it tells that $1 has no lease" jq -e --arg name "$1" '.event == "no-lease" and
		.partition == $name and .tenant == $name and .gpu == "0000:03:00.0"' <<<"$event"
}
two=('[partition q]' '[task u]' 'partition = q' 'period = 1s' 'wcet = 15:10ms')
gone='.assumption == "effective-cus" and .bound == 15 and .observed == 0 and .within_usec == null'

# A partition without a lease is no violation; one whose lease ends is.
reserves p
wcet=15:10ms watched 'a lease that ends' 'activations = 0' 'borrowers = no' 'own-pipes = yes' "${two[@]}"
waits_for q
read -r -t "$patience" event <&7
check 'it tells that the pipes of a simulated GPU cannot be read' jq -e '.event == "not-observed" and
	.gpu == "0000:03:00.0" and .assumption == "pipe-neighbours" and (.reason | length > 0)' <<<"$event"
# Without borrowers no activation changes a mask: the plan does not count it.
ends 0 run --tenant=r --class=guaranteed --cus=15 -- true
let_go TERM "$holder"
violates "$gone"

# A lease that ends while gpuarbd is away.
reserves p
wcet=15:10ms watched 'a lease that ends without gpuarbd' 'activations = 1/1h' 'changed-queues = 4' "${two[@]}"
waits_for q
rig_stop_daemon
let_go KILL "$holder"
rig_start_daemon --simulate=radeon-vii
violates "$gone"
exec 7< <(exec timeout "$patience" "$GPUARBCTL" rt monitor "$dir/set.ini" --gpu=0)
monitor=$!
for _ in 1 2 3; do read -r -t "$patience" event <&7; echo "$event"; done >"$dir/out"
kill "$monitor"
check 'it names both partitions without a lease' \
	test "$(grep -oE 'partition [pq]' "$dir/out" | xargs)" = 'partition q partition p'

# Partitions of a card that share its memory are neighbours; another card is none.
rig_stop_daemon
rig_start_daemon --simulate=mi300x-cpx,radeon-vii
exec 9< <(exec "$GPUARBCTL" reserve --tenant=p --gpu=0000:03:00.0/0 --shader-engines=1)
holder=$!
read -r -t "$patience" held <&9
exec {fd}< <(exec "$GPUARBCTL" reserve --tenant=q --gpu=0000:04:00.0 --cus=15)
read -r -t "$patience" held <&"$fd"
wcet=9:10ms watched neighbours 'activations = 9/1us' 'borrowers = no' 'changed-queues = 4'
exec {fd}< <(exec "$GPUARBCTL" reserve --tenant=q --gpu=0000:03:00.0/1 --cus=4)
read -r -t "$patience" held <&"$fd"
cat <&7 >"$dir/out"
wait "$monitor"
check 'it ends with 9' test $? = 9
json_out '[.assumption, .gpu, .bound, .observed, .within_usec] == ["neighbours", "0000:03:00.0/0", 0, 1, null]'
let_go TERM "$holder"

# ---- rt measure chooses its GPU ----------------------------------------------------------------
export GPUARB_AGENT_DIR=$dir
: >"$dir/libgpuarb-kernel-times.so"
[ -z "$daemon_pid" ] || rig_stop_daemon
ends 5 rt measure -- true
rig_start_daemon --simulate=radeon-vii,mi210
fails 2 'there are 2 GPUs' rt measure -- true
rig_stop_daemon
mkdir "$dir/gpus"
sed 's/^shader-arrays = .*/shader-arrays = 1/; s/^cus-per-array = .*/cus-per-array = 2/; s/^active = .*/active = 2/' \
	"$GPUARB_SOURCE_ROOT/conf/gpus/radeon-780m.conf" >"$dir/gpus/small.conf"
rig_profiles=$dir/gpus
rig_start_daemon --simulate=small
fails 2 '2 CUs' rt measure --beside-on=shared -- true
rig_done
