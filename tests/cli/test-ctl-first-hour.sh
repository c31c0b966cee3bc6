#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What a user meets in the first hour. Environment as for test-ctl.sh.
set -u
: "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"

rig_need dbus-daemon dbus-monitor jq
rig_start_bus

# ---- run checks the command before it connects ------------------------------------------
# There is no daemon: a check after the connection ends with 125.
printf '#!/nonexistent/interpreter\n' >"$dir/script"
printf 'true\n' >"$dir/plain"
mkdir "$dir/folder"
chmod 755 "$dir/script"
for options in '' '--wait' '--wait=10s' '--wait 10' '--wait 500ms --cus=3'; do
	# shellcheck disable=SC2086
	fails 127 'no-such-command' run $options -- no-such-command
done
ends 127 run -- "$dir/none"
fails 126 'Permission denied' run -- "$dir/plain"
fails 126 'directory' run -- "$dir/folder"
fails 127 '/nonexistent/interpreter' run -- "$dir/script"
fails 127 "''" run -- ''
fails 127 'write -- before it' run --cus=8 3 -- true
ends 127 run --json -- no-such-command
json_err '.error | contains("no-such-command")'
ends 125 run -- true

# ---- a gpuarbd that does not start -------------------------------------------------------
# A bus that starts services, as the system bus does; systemctl and journalctl are scripts. dbus-broker
# asks systemd to start services.
if [ -n "${GPUARB_BUS:-}" ]; then
	echo 'skipped: a gpuarbd that does not start: this bus starts nothing without systemd'
else
mkdir "$dir/bin" "$dir/services"
cat >"$dir/services/org.gpuarb.Arbiter1.service" <<-SERVICE
	[D-BUS Service]
	Name=org.gpuarb.Arbiter1
	Exec=$dir/bin/starts
SERVICE
# Each bus has a socket of its own: one that ends removes its socket later.
activating_bus() # NAME
{
	cat >"$dir/activating.conf" <<-CONF
		<busconfig>
		  <type>session</type>
		  <listen>unix:path=$dir/$1</listen>
		  <servicedir>$dir/services</servicedir>
		  <limit name="service_start_timeout">$((2000 * patience))</limit>
		  <policy context="default">
		    <allow user="*"/> <allow own="*"/> <allow send_destination="*"/>
		    <allow eavesdrop="false"/>
		  </policy>
		</busconfig>
	CONF
	export GPUARB_BUS_ADDRESS=unix:path=$dir/$1 # of the gpuarbd that it starts, too
	other_pid=$(dbus-daemon --config-file="$dir/activating.conf" --fork --print-pid) || exit 1
}
write_script() # NAME LINE…
{
	local name=$1
	shift
	{ echo '#!/bin/sh'; printf '%s\n' "$@"; } >"$dir/bin/$name"
	chmod 755 "$dir/bin/$name"
}
address=$GPUARB_BUS_ADDRESS
path=$PATH
activating_bus failing
export PATH=$dir/bin:$PATH

# systemd starts the unit again and again, and the bus waits for longer than `ends` does.
write_script starts "echo \$\$ >$dir/started" "exec sleep $((2 * patience))"
write_script systemctl 'echo ActiveState=activating; echo SubState=auto-restart; echo NRestarts=3' \
	'echo ExecMainStatus=6'
write_script journalctl 'echo "first of the journal"; echo "second of the journal"'
fails 5 'gpuarbd' status
err_has '6'
err_has 'gpuarbctl status: second'
fails 125 'journal' run -- true

# A gpuarbd that systemd is still starting is waited for.
write_script systemctl 'echo ActiveState=activating; echo SubState=start; echo NRestarts=0' \
	'echo ExecMainStatus=0' "touch $dir/asked"
write_script starts "while [ ! -e $dir/asked ]; do sleep 0.05; done" "mkdir -p $dir/late" "echo \$\$ >$dir/started" \
	"RUNTIME_DIRECTORY=$dir/late exec $GPUARBD --simulate=radeon-vii --config=$dir/late.conf \
	--profiles=$GPUARB_SOURCE_ROOT/conf/gpus --tenants=$dir/services"
: >"$dir/late.conf"
kill "$other_pid" "$(cat "$dir/started")"
activating_bus slow
prints 'length == 1' gpus --json
kill "$other_pid" "$(cat "$dir/started")"

# The bus itself notices a gpuarbd that ends.
write_script starts 'exit 6'
activating_bus ending
fails 5 'exited' status
err_has 'second'
ends 5 status --json
json_err '.error | contains("second of the journal")'
kill "$other_pid"
export GPUARB_BUS_ADDRESS=$address PATH=$path
fi

# ---- config check finds what stops or changes gpuarbd ---------------------------------------
profiles=--profiles=$GPUARB_SOURCE_ROOT/conf/gpus
checked() { printf '%s\n' "$@" >"$dir/check.conf"; } # LINE…
checked '[daemon]' 'backend = simulated' 'simulate = radeon-viii'
ends 6 config check "$profiles" "$dir/check.conf" --json
json_out '(.problems | length) == 1 and (.problems[0] | contains("check.conf:3: simulate: ") and contains("radeon-viii"))'
checked '[daemon]' 'max-holders = 100 # many'
ends 6 config check "$dir/check.conf" --json
json_out '.problems[0] | contains("check.conf:2: max-holders: ") and contains("line of its own")'
checked '[daemon]' 'max-holders = 100 ; many'
prints '.problems == [] and .warnings == []' config check "$dir/check.conf" --json
checked '[tenant a]' 'match-user = root' 'max-queues = 1'
ends 0 config check "$dir/check.conf" --json
json_out '.problems == [] and (.warnings | length) == 1 and (.warnings[0] | contains("max-queues"))'
checked '[tenant a]' 'match-user = root, daemon' '[tenant b]' 'match-user = root' 'class = realtime'
ends 0 config check "$dir/check.conf" --json
json_out '(.warnings | length) == 1 and (.warnings[0] | contains("check.conf:3: [tenant b]"))'
# That it cannot see executables is another warning.
other_warnings() { json_out "[.warnings[] | select(contains(\"match-executable matches no program\") | not)] | length == $1"; }
for narrowed in 'match-unit = x.service' 'match-slice = x.slice' 'match-executable = /x'; do
	checked '[tenant a]' 'match-user = root' "$narrowed" '[tenant b]' 'match-user = root'
	ends 0 config check "$dir/check.conf" --json
	other_warnings 0
	checked '[tenant a]' 'match-user = root' '[tenant b]' 'match-user = root' "$narrowed"
	ends 0 config check "$dir/check.conf" --json
	other_warnings 1
	checked '[tenant a]' 'match-user = root' '[tenant b]' 'match-user = root' "$narrowed" 'open = yes'
	ends 0 config check "$dir/check.conf" --json
	other_warnings 0
done
checked '[tenant a]' 'match-user = root' 'match-executable = /usr/bin/vr'
ends 0 config check "$dir/check.conf" --json
json_out '.valid and (.warnings | length == 1 and (.[0] | contains("check.conf:1: [tenant a]: match-executable matches no program")))'
checked '[tenant a]' 'match-user = root' '[tenant b]' 'match-user = root, daemon' '[tenant *]'
prints '.warnings == []' config check "$dir/check.conf" --json
checked '[tenant a]' 'match-user = root' 'reserved-cus = 30' 'max-cus = 10'
ends 6 config check "$dir/check.conf" --json
json_out '.problems | length == 1'
checked '[tenant a]' 'x = 1' 'y = 2' 'z = 3'
fails 6 '4 problems' config check "$dir/check.conf"

# ---- a locale that is not UTF-8 -------------------------------------------------------------
LC_ALL=C "$GPUARBCTL" help >"$dir/out" 2>"$dir/err"
said='gpuarbctl help in the locale C'
check 'it is ASCII' env LC_ALL=C grep -qv '[^ -~]' "$dir/out"
check 'and has nothing escaped' test "$(LC_ALL=C grep -c '[^ -~]\|\\x' "$dir/out")" = 0
for verb in run config mask help; do
	LC_ALL=C "$GPUARBCTL" "$verb" --help >"$dir/out" 2>"$dir/err"
	check "$verb --help is ASCII" test "$(LC_ALL=C grep -c '[^ -~]' "$dir/out")" = 0
done
LC_ALL=C "$GPUARBCTL" mask foo >"$dir/out" 2>"$dir/err"
said='gpuarbctl mask foo'
err_has "'foo'"
err_has 'explain|encode|decode'
err_lacks '\x'
fails 2 'explain|encode|decode' mask explain
fails 2 "'y'" mask decode x y
fails 2 "'run'" rt run

# ---- config init --------------------------------------------------------------------------
mkdir "$dir/templates" "$dir/into"
for name in ci desktop lab server; do
	sed "s/^match-group = .*/match-group = $(id -gn)/" \
		"$GPUARB_SOURCE_ROOT/conf/init/$name.conf" >"$dir/templates/$name.conf"
	init=(config init "$name" --templates="$dir/templates" --into="$dir/into")
	shows "50-$name.conf" "${init[@]}"
	out_has '[tenant *]'
	check 'nothing is written without --yes' test ! -e "$dir/into/50-$name.conf"
	ends 0 "${init[@]}" --yes
	check 'the policy is written' cmp "$dir/templates/$name.conf" "$dir/into/50-$name.conf"
	prints '.problems == []' config check "$dir/into/50-$name.conf" --json
	fails 1 'exists' "${init[@]}" --yes
done
mkdir "$dir/small"
(
	trap '' XFSZ
	ulimit -f 0 # as on a full file system
	"$GPUARBCTL" config init lab --templates="$dir/templates" --into="$dir/small" --yes >/dev/null 2>&1
)
check 'a policy that cannot be written is a failure' test $? = 1
check 'and nothing of it is left' test -z "$(ls "$dir/small")"
ends 2 config init
ends 2 config init castle
ends 1 config init lab --templates="$dir/none" --into="$dir/into"
ends 1 config init lab --templates="$dir/templates" --into="$dir/none" --yes
checked '[tenant a]' 'match-group = no-such-group'
cp "$dir/check.conf" "$dir/templates/lab.conf"
fails 6 'no-such-group' config init lab --templates="$dir/templates" --into="$dir/into" --yes
if command -v systemd-analyze >/dev/null; then
	for unit in "$GPUARB_SOURCE_ROOT"/docs/examples/units/*.service; do
		sed 's,^ExecStart=[^ ]*,ExecStart=/bin/true,' "$unit" >"$dir/${unit##*/}"
		systemd-analyze verify --man=no "$dir/${unit##*/}" >"$dir/out" 2>&1
		said="systemd-analyze verify ${unit##*/}"
		out_lacks "${unit##*/}"
	done
fi

# ---- reload names what waits for a restart, and all problems ----------------------------------
printf '[daemon]\nbackend = simulated\nsimulate = radeon-vii\n' >"$dir/gpuarbd.conf"
rig_start_daemon
prints '.reloaded and .restart_keys == []' reload --json
printf '[daemon]\nbackend = simulated\nsimulate = v620\n' >"$dir/gpuarbd.conf"
prints '.reloaded and .restart_keys == ["simulate"]' reload --json
shows 'simulate' reload
printf '[daemon]\nbackend = auto\n' >"$dir/gpuarbd.conf"
prints '.restart_keys == ["backend"]' reload --json
printf '[daemon]\nbackend = simulated\nsimulate = radeon-vii\n' >"$dir/gpuarbd.conf"
prints '.restart_keys == []' reload --json
printf '[tenant c]\nmax-cus = x\nfoo = 3\n' >"$dir/tenants.d/1.conf"
fails 6 '3 problems' reload
rm "$dir/tenants.d/1.conf"
rig_stop_daemon
rm -r "$dir/run"

# ---- the first lease, and a refusal -------------------------------------------------------
: >"$dir/gpuarbd.conf"
rig_start_daemon --simulate=radeon-vii
hold reserve --cus=30 --name=training
prints '.[0].id == 1 and .[0].since > 0' list --json
me=$(id -un)
fails 3 '--cus=30  ' reserve --cus=50
err_has '--wait  '
err_has 'gpuarbctl plan'
err_has "  1  training, besteffort of $me, 30 CUs, for "
fails 125 "  1  training, besteffort of $me, 30 CUs, for " run --fixed --cus=50 -- true
ends 3 reserve --cus=50 --json
json_err '.refusals[0].leases == [1]'
ends 3 plan --cus=50
out_has '--cus=30  '
out_has "  1  training, besteffort of $me, 30 CUs, for "
fails 3 '--queues=24  ' reserve --cus=10 --queues=30
err_lacks 'training'
# help OPTION ARGUMENT...: plan refuses the arguments and names the option, which plan takes.
help()
{
	ends 3 plan "${@:2}"
	out_has "    $1 "
	ends 0 plan "${@:2}" "$1"
}
help --vram=16G --vram=17G
help --vram=16G --vram=$(((16 << 30) + 1))
help --priority=7 --cus=3 --priority=9
help --streams=20 --cus=3 --streams=21
ends 3 plan --sdma-xgmi-queues=1
out_lacks '    --'

# ---- a lease by its name ---------------------------------------------------------------------
prints '.id == 1 and .name == "training"' show training --json
ends 0 verify training
follow reserve --cus=1 --name=training
named=$!
for verb in show release deactivate activate verify 'resize --cus=3'; do
	# shellcheck disable=SC2086 # words
	fails 2 "1 of $me, 2 of $me" $verb training
done
let_go TERM "$named"
follow reserve --cus=1 --name=training-2
named=$!
prints '.id == 3 and .partitions[0].queues == 3' resize training-2 --queues=3 --json
prints '.released == 3' release training-2 --json
wait_for "$named"
fails 1 "'training-2'" release training-2

# ---- a drawing -----------------------------------------------------------------------------
hold_name=$(sed -n 's/^lease \([0-9]*\):.*/\1/p' <<<"$held")
ends 0 map --svg="$dir/map.svg"
check 'it has a background' grep -q '<rect width="100%"' "$dir/map.svg"
check 'the label of a shader engine takes half of the room for XCCs' grep -q '<rect x="66"' "$dir/map.svg"
check 'its legend has the lease and free CUs' \
	test "$(grep -c ">lease $hold_name training\|>free<" "$dir/map.svg")" = 2
if command -v rsvg-convert >/dev/null; then
	check 'it is a picture' rsvg-convert "$dir/map.svg" -o "$dir/map.png"
fi

# ---- names and text of other users -----------------------------------------------------------
# 127 bytes of a name with escape sequences, right-to-left text, emoji and a wide character.
name=$'\033]0;title\a\033[2J\u202e\u05d0\u05d1 \U0001f600 \u8a9e'
follow reserve --cus=1 --name=$'\u05d0\u05d1 \U0001f600 \u8a9e'
odd=$!
for locale in C C.UTF-8; do
	for verb in list status map 'show 1' 'plan --cus=60'; do
		# shellcheck disable=SC2086 # words
		LC_ALL=$locale "$GPUARBCTL" $verb >"$dir/out" 2>"$dir/err"
		said="gpuarbctl $verb in the locale $locale"
		check "$said: no control characters" test "$(LC_ALL=C grep -c $'[\001-\010\013-\037\177]' "$dir/out")" = 0
	done
done
LC_ALL=C "$GPUARBCTL" list >"$dir/out"
check 'in the locale C, only ASCII' test "$(LC_ALL=C grep -c '[^ -~]' "$dir/out")" = 0
let_go TERM "$odd"
follow reserve --cus=1 --name="$(printf 'aaaaa\xd7\x90%.0s' {1..10})"
odd=$!
said='gpuarbctl map shortens a name between characters'
LC_ALL=C.UTF-8 "$GPUARBCTL" map >"$dir/out"
out_has " aaaaa$(printf '\xd7\x90aaaaa%.0s' {1..5})$(printf "\xd7\x90")aa.., besteffort"
LC_ALL=C "$GPUARBCTL" map >"$dir/out"
out_has ' aaaaa\xd7\x90aaaaa\xd7\x90aaaaa\xd7.., besteffort'
let_go TERM "$odd"
ends 2 reserve --cus=1 --name="$name"
err_lacks $'\033'
long=$(printf 'x%.0s' {1..10000})
ends 2 reserve --cus=1 --name="$long"
check 'a name of 10 kB is quoted in part' test "$(wc -c <"$dir/err")" -lt 1000
ends 2 plan --cus=1 --tenant="$long"
check 'a tenant of 10 kB is quoted in part' test "$(wc -c <"$dir/err")" -lt 1000
ends 127 run -- "$long"
check 'a command of 10 kB is quoted in part' test "$(wc -c <"$dir/err")" -lt 1000
ends 2 "$long"
check 'a verb of 10 kB is quoted in part' test "$(wc -c <"$dir/err")" -lt 1000

# ---- lists on terminals of any width --------------------------------------------------------
follow reserve --cus=50 --wait --name="$(printf 'x%.0s' {1..100})"
waiter=$!
mkfifo "$dir/keys"
exec 5<>"$dir/keys" # script ends with its input
# narrow COLUMNS ARGUMENT…: standard output is a terminal with so many columns.
narrow()
{
	local columns=$1
	shift
	said="gpuarbctl $* in $columns columns"
	script -qec "stty cols $columns; NO_COLOR=1 $GPUARBCTL --no-pager $*" /dev/null \
		>"$dir/out" 2>"$dir/err" <&5
	sed -i 's/\r$//' "$dir/out"
}
terminal=
if rig_has_terminal; then terminal=yes; fi
if [ -n "$terminal" ]; then
	for verb in status list; do
		narrow 80 "$verb"
		check "$said: no line is longer" test "$(wc -L <"$dir/out")" -le 80
		out_has 'STATE'
		out_has 'waiting'
		out_has 'waits'
	done
	narrow 50 gpus
	out_has 'QUEUES'
	narrow 80 gpus
	check "$said: no line is longer" test "$(wc -L <"$dir/out")" -le 80
	out_has 'QUEUES'
	narrow 60 list
	check "$said: no line is longer" test "$(wc -L <"$dir/out")" -le 60
	narrow 20 status
	out_has 'waiting'
	narrow 20 list
	check "$said: no line is longer" test "$(wc -L <"$dir/out")" -le 20
	narrow 16 list --columns=name,state
	out_has 'train..  granted'
	out_has 'xxxxx..  waiting'
	narrow 20 list --output=wide
	out_has 'TENANT'
	out_has "$(printf 'x%.0s' {1..100})"
	narrow 200 list
	out_has 'TENANT'
	said='a state on a terminal has a colour'
	script -qec "env -u NO_COLOR TERM=xterm $GPUARBCTL --no-pager list" /dev/null \
		>"$dir/out" 2>"$dir/err" <&5
	out_has $'\033[33mwaiting'
	script -qec "env -u NO_COLOR TERM=dumb $GPUARBCTL --no-pager list" /dev/null \
		>"$dir/out" 2>"$dir/err" <&5
	out_lacks $'\033['
	TERM=dumb narrow 20 top
	out_lacks $'\033'
	out_has 'waiting'
	for columns in 40 20; do
		narrow "$columns" usage
		out_has 'CLASS'
		check "$said: no row is longer" \
			test "$(grep -v '^Since ' "$dir/out" | wc -L)" -le "$columns"
	done
	said='gpuarbctl list --watch on a dumb terminal'
	exec 7< <(exec script -qec "TERM=dumb $GPUARBCTL list -w --columns=id" /dev/null <&5 2>&1)
	watcher=$!
	: >"$dir/out"
	while read -r -t "$patience" line <&7 && printf '%s\n' "$line" >>"$dir/out"; do
		[[ $line != $'\r' && $line != *$'\033'* ]] || break
	done
	out_lacks $'\033'
	out_has 'ID'
	kill "$watcher"
	exec 7<&-
fi
# top is drawn again after each key.
if [ -n "$terminal" ]; then
	exec 8<>"$dir/keys"
	exec 7< <(exec script -qec "stty cols 100; TERM=xterm NO_COLOR=1 $GPUARBCTL top" /dev/null <"$dir/keys" 2>&1)
	said='gpuarbctl top and its keys'
	text=
	drawn() # TEXT
	{
		check "it draws $1" await_text 7 "$1"
		text=
	}
	drawn 'by id'
	printf s >&8
	drawn 'by name'
	printf r >&8
	drawn 'reversed'
	printf '?' >&8
	drawn 'PgDn'
	printf '?' >&8
	drawn 'by name'
	printf u >&8
	drawn "user $me"
	printf w >&8
	drawn 'waiting'
	printf '\033[B\033[6~\033[A\033[6~r' >&8
	drawn 'by name;'
	drawn 'TARGET'
	printf q >&8
	drawn $'\033[?1049l'
	exec 7<&- 8>&-
fi
shows 'age          ' show training
prints 'length == 2' list -ojson
ends 0 -V
fails 2 'release?' kill 1
fails 2 "'-x'" list -x
ends 0 list --columns=id,AGE,cus --no-legend
check 'three columns' test "$(sed -n 1p "$dir/out" | wc -w)" = 3
prints 'length == 1 and .[0].state == "waiting"' list --state=waiting -o json
prints 'length == 2' list --user="$me" --json
prints '. == []' list --user=4711 --json
prints 'length == 1 and .[0].name == "training"' list --gpu=0 --json
ends 1 list --gpu=7
out_lacks 'training'
prints '. == []' list --tenant=none --json
ends 2 list --output=xml
shows '--columns' help list
shows '--version' help
shows 'LEASE is' help show
ends 2 help nothing
follow monitor --json
watcher=$!
printf '%s\n' "$line" >"$dir/out"
json_out '.event == "watching" and (.time | test("^20[0-9-]+T[0-9:.]+Z$"))'
mkfifo "$dir/release"
"$GPUARBCTL" run --cus=1 --queues=2 --name=short -- cat "$dir/release" &
short=$!
await_line "${output[$watcher]}" '*"lease-added"*'
printf '%s\n' "$line" >"$dir/out"
json_out '.name == "short" and .state == "granted"'
echo >"$dir/release"
check "$said: run ends" wait "$short"
let_go TERM "$watcher"
follow list -w --columns=id,state --no-legend
watcher=$!
let_go TERM "$waiter"
while next_line "$watcher"; do
	[ -z "$line" ] || { last=$line; continue; }
	[ "${last:-}" != '1  granted' ] || break
done
check 'it prints the list again when a lease ends' test "${last:-}" = '1  granted'
let_go TERM "$watcher"
if [ -n "$terminal" ]; then
	narrow 20 list
	out_has 'train..'
	out_lacks 'REASON'
	check "$said: no line is longer" test "$(wc -L <"$dir/out")" -le 20
fi
let_go TERM "$holder"

# Numbers go on after a daemon that was stopped, and after one that was killed.
rig_stop_daemon
rig_start_daemon --simulate=radeon-vii
hold reserve --cus=30
prints '.[0].id == 8' list --json
let_go TERM "$holder"

rig_stop_daemon

# Without --queues, run tries fewer: no request is refused for that.
printf '[tenant *]\nmax-queues = 3\n' >"$dir/tenants.d/1.conf"
rig_start_daemon --simulate=radeon-vii
ends 0 usage --json
used=$(jq '[.usage[].refusals] | add // 0' "$dir/out")
ends 0 run --json -- true
check 'it has as many queues as the policy allows' jq -e '.partitions[0].queues == 3' "$dir/err"
prints "([.usage[].refusals] | add) == $used and (.usage | length) > 0" usage --json

rig_done
