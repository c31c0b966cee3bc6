# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034
#
# Shared by the tests of gpuarbctl: runs gpuarbctl, checks exit code and output, and starts a daemon
# on a private bus. A failed check prints the output; the script then ends with 1 in rig_done.

umask go-w # gpuarbd refuses a configuration that others can write
dir=$(mktemp -d) || exit 1
touch "$dir/out" "$dir/err"
failed=0
bus_pid='' daemon_pid='' holder='' content=() kept=0
# shellcheck source=tests/rigs/await.sh
. "$GPUARB_SOURCE_ROOT/tests/rigs/await.sh"

rig_clean()
{
	local code=$?
	# A test that fails leaves what it follows and what runs beside it.
	# shellcheck disable=SC2046
	kill $(jobs -p) "${!output[@]}" 2>/dev/null
	[ -z "$daemon_pid" ] || kill "$daemon_pid" 2>/dev/null
	[ -z "$bus_pid" ] || kill "$bus_pid" 2>/dev/null
	judge # what a test that ends early has kept
	rm -rf "$dir"
	case $failed:$code in 0:*) ;; *:0 | *:77) exit 1 ;; esac
}
trap rig_clean EXIT

# Ends with 77 (skipped) if a command is missing.
rig_need()
{
	local command
	for command; do
		command -v "$command" >/dev/null || { echo "skipped: no $command"; exit 77; }
	done
}

# rig_has_terminal: whether there is a pseudo-terminal for script(1). Says so if a part is left out for want of it.
rig_has_terminal()
{
	script -qec true /dev/null </dev/null >/dev/null 2>&1 && return
	echo 'skipped: what is drawn on a terminal: there is no pseudo-terminal (devpts), or no script(1)'
	return 1
}

complain()
{
	failed=$((failed + 1))
	# Find the line of the test that called the check.
	local of=1
	while [ "${BASH_SOURCE[of]}" != "$0" ] && [ -n "${BASH_SOURCE[of + 1]:-}" ]; do of=$((of + 1)); done
	echo "${BASH_SOURCE[of]##*/}:${BASH_LINENO[of - 1]}: $1"
	sed 's/^/  out: /' "$dir/out"
	sed 's/^/  err: /' "$dir/err"
}

# LeakSanitizer takes half of the time of a sanitized program that does little. So it runs once for each verb and code:
# search KEY has in $leaks whether it does now. gpuarbd_options is for gpuarbd.
gpuarbd_options=${ASAN_OPTIONS:-}
export ASAN_OPTIONS=$gpuarbd_options:detect_leaks=0
declare -gA searched=() # a test can source this in a function
search() { leaks=${searched[$1]:-1} searched[$1]=0; }

# ends CODE ARGUMENT…: runs gpuarbctl and checks its exit code; the output is in $dir/out and $dir/err.
ends()
{
	local wanted=$1 code leaks
	shift
	said="gpuarbctl $*"
	search "$wanted ${1:-}"
	ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=$leaks timeout "$patience" "$GPUARBCTL" "$@" >"$dir/out" 2>"$dir/err" </dev/null
	code=$?
	[ "$code" = "$wanted" ] || complain "$said: ended with $code, not $wanted"
}

file_has() { mapfile -d '' -t content <"$1" && [[ ${content[*]} == *"$2"* ]]; } # FILE TEXT
out_has() { file_has "$dir/out" "$1" || complain "$said: no '$1' on standard output"; }
err_has() { file_has "$dir/err" "$1" || complain "$said: no '$1' on standard error"; }
out_lacks() { ! file_has "$dir/out" "$1" || complain "$said: '$1' on standard output"; }
err_lacks() { ! file_has "$dir/err" "$1" || complain "$said: '$1' on standard error"; }
is_json() { jq -ne "[inputs | ($1)][-1]" "$2" >/dev/null 2>&1; } # no input is no failure of jq -e alone

# json_out JQ, json_err JQ: the output is so. jq takes longer to start than to judge, so the output of now is kept,
# and rig_done judges.
json_out() { keep "$1" "$dir/out"; }
json_err() { keep "$1" "$dir/err"; }
mkdir "$dir/kept"
keep()
{
	local content name
	kept=$((kept + 1))
	printf -v name '%s/kept/%05d.%s' "$dir" "$kept" "$BASHPID" # also in a subshell
	mapfile -d '' -t content <"$2"
	printf '%s' "${content[@]}" >"$name.json"
	echo "$said: not so: $1" >"$name.said"
	echo "$1" >"$name.jq" # last: then the check is complete
}

# judge: one jq for all checks that are kept. Where that fails, one for each, to print which.
judge()
{
	local checks=("$dir"/kept/*.jq) check inputs=() n=0 and=
	[ -e "${checks[0]}" ] || return 0
	for check in "${checks[@]}"; do
		inputs+=(--slurpfile "i$n" "${check%jq}json")
		echo "$and (try [\$i${n}[] | ($(<"$check"))][-1] catch false)"
		n=$((n + 1)) and=and
	done >"$dir/all"
	jq -ne "${inputs[@]}" -f "$dir/all" >/dev/null 2>&1 || for check in "${checks[@]}"; do
		is_json "$(<"$check")" "${check%jq}json" && continue
		failed=$((failed + 1))
		cat "${check%jq}said"
		sed 's/^/  /' "${check%jq}json"
	done
	rm -r "$dir/kept"
}

# fails CODE TEXT ARGUMENT…: gpuarbctl ends with CODE, and the text is on standard error.
fails() { ends "$1" "${@:3}"; err_has "$2"; }
# shows TEXT ARGUMENT…: gpuarbctl ends with 0, and the text is on standard output.
shows() { ends 0 "${@:2}"; out_has "$1"; }
# prints JQ ARGUMENT…: gpuarbctl ends with 0, and its JSON is so.
prints() { ends 0 "${@:2}"; json_out "$1"; }

# halt PID…: stops processes. A process runs on until one of its threads takes the signal, which lasts on a busy machine.
halt()
{
	local process
	kill -STOP "$@"
	for process; do await_so "process $process is stopped" is_halted "$process"; done
}
has_ended() { ! grep -qs '^State:[[:space:]]*[^XZ]' "/proc/$1/status"; }
is_halted() { [ ! -d "/proc/$1" ] || grep -qs '^State:[[:space:]]*T' "/proc/$1/task/"*/status; }

# out_is FILE: standard output equals the file.
out_is() { diff -u "$1" "$dir/out" || complain "$said: not what $1 says"; }

is_xml() # FILE
{
	python3 -c 'import sys, xml.sax; xml.sax.parse(sys.argv[1], xml.sax.ContentHandler())' "$1"
}

# check SENTENCE COMMAND…
check()
{
	local sentence=$1 await_shown
	shift
	exec {await_shown}>&1
	"$@" >/dev/null 2>&1 || complain "not so: $sentence"
	exec {await_shown}>&-
}

# rig_start_bus: starts a bus, and makes a configuration for rig_start_daemon that says nothing.
rig_start_bus()
{
	mkdir -p "$dir/tenants.d"
	: >>"$dir/gpuarbd.conf"
	cat >"$dir/bus.conf" <<-CONF
		<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
		 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
		<busconfig>
		  <type>system</type>
		  <listen>unix:path=$dir/bus</listen>
		  <auth>EXTERNAL</auth>
		  <policy context="default">
		    <allow user="*"/>
		    <allow own="*"/>
		    <allow send_type="method_call"/>
		    <allow send_type="signal"/>
		    <allow send_requested_reply="true"/>
		    <allow receive_requested_reply="true"/>
		    <allow eavesdrop="true"/>
		    <allow send_destination="*"/>
		    <allow receive_sender="*"/>
		  </policy>
		</busconfig>
	CONF
	# dbus-daemon forks once it listens.
	bus_pid=$(dbus-daemon --config-file="$dir/bus.conf" --fork --print-pid) || exit 1
	export GPUARB_BUS_ADDRESS="unix:path=$dir/bus"
}

# A process that has ended stays a zombie until its parent waits for it.
is_running() { grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status"; }

# rig_start_daemon OPTION…: starts gpuarbd and waits until it owns its name. The options name its
# hardware: --simulate=radeon-vii. $rig_profiles: a folder, instead of the shipped ones.
rig_start_daemon()
{
	local line watch guard

	exec 8< <(exec dbus-monitor --address "$GPUARB_BUS_ADDRESS" \
		"type='signal',member='NameOwnerChanged',arg0='org.gpuarb.Arbiter1'")
	watch=$!
	read -r -t "$patience" line <&8 # it has connected and listens
	mkdir -p "$dir/run"
	ASAN_OPTIONS=$gpuarbd_options RUNTIME_DIRECTORY=$dir/run "$GPUARBD" "$@" \
		--profiles="${rig_profiles:-$GPUARB_SOURCE_ROOT/conf/gpus}" --config="$dir/gpuarbd.conf" \
		--tenants="$dir/tenants.d" 2>"$dir/daemon.err" &
	daemon_pid=$!
	# A daemon that fails ends the monitor, too: then there is no line.
	{ while is_running "$daemon_pid"; do sleep 0.1; done; kill "$watch"; } 8<&- &
	guard=$!
	said="gpuarbd $*"
	await_line 8 '*member=NameOwnerChanged*' ||
		{ echo 'the daemon does not come up:'; cat "$dir/daemon.err"; exit 1; }
	kill "$guard" "$watch"
	wait "$guard" 2>/dev/null
	exec 8<&-
}

listed()
{
	"$GPUARBCTL" list --json >"$dir/out" 2>"$dir/err" && jq -e "$1" "$dir/out" >/dev/null 2>&1
}

# list_becomes JQ: waits until `gpuarbctl list --json` matches, checked after each event. A lease ends
# later than its last program: when the driver has removed the queues.
list_becomes()
{
	local events watch end

	said='gpuarbctl list --json'
	! listed "$1" || return 0
	await_begin end
	exec {events}< <(exec "$GPUARBCTL" monitor 2>/dev/null)
	watch=$!
	while read -r -t "$patience" _ <&"$events" && ! listed "$1"; do
		await_left "$end" || break
	done
	kill "$watch" 2>/dev/null
	exec {events}<&-
	listed "$1" || { complain "$said: not in $patience s: $1"; rig_done; }
}

# follow ARGUMENT…: starts a gpuarbctl that keeps running; its pid is in $!, its first line in $line, the lease that
# this names in $lease. What it prints is read from ${output[pid]}; $errors: a file for standard error.
declare -gA output=()
follow()
{
	local fd leaks
	said="gpuarbctl $*"
	search "follow $1"
	exec {fd}< <(ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=$leaks exec "$GPUARBCTL" "$@" 2>"${errors:-/dev/stdout}")
	output[$!]=$fd
	next_line $!
	lease=$(sed -n 's/^lease \([0-9]*\)[:,]\? .*/\1/p' <<<"$line")
}

# hold ARGUMENT…: the same for the lease of a test; the first line is in $held, the pid in $holder.
hold()
{
	errors=$dir/hold.err follow "$@"
	holder=$! held=$line
	: >"$dir/out"
	cp "$dir/hold.err" "$dir/err"
}

# next_line PID: the next line of it is in $line.
next_line()
{
	line=
	read -r -t "$patience" line <&"${output[$1]}"
}

# wait_for PID: waits for the process; its exit status is in $ended.
wait_for()
{
	local fd=${output[$1]:-9}
	await_so "process $1 ends" has_ended "$1"
	wait "$1"
	ended=$?
	exec {fd}<&-
	unset "output[$1]"
	[ "$1" != "$holder" ] || holder=
}

# let_go SIGNAL PID
let_go()
{
	kill -s "$1" "$2"
	wait_for "$2"
}

# The daemon must still run, and end with 0.
rig_stop_daemon()
{
	kill "$daemon_pid"
	wait "$daemon_pid" || { failed=$((failed + 1)); echo 'the daemon failed:'
		cat "$dir/daemon.err"; }
	daemon_pid=
}

rig_done()
{
	[ -z "$daemon_pid" ] || rig_stop_daemon
	judge
	[ "$failed" = 0 ] || { echo "$failed checks failed"; exit 1; }
	exit 0
}
