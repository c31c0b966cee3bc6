# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034
#
# The stage for stories of leases inside kfdsim: a gpuarbd that is started again when it dies, a
# monitor whose events are waited for, and programs that hold their queues until they are told.
# The test writes $dir/gpuarbd.conf and $dir/tenants.d.

# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_ROOT/tests/cli/ctl-rig.sh"
declare -A pid in from
manager_pid=
trap 'kill -KILL $manager_pid "${pid[@]}" 2>/dev/null; rig_clean' EXIT
touch "$dir/out" "$dir/err"
mkdir "$dir/tenants.d" "$dir/run"
vii=0000:03:00.0 mi210=0000:04:00.0 v620=0000:05:00.0
run=("$GPUARBCTL" run)
compute='.queues[] | select(.type == "compute" and .alive)'

# A gpuarbd that is started again when it dies; what becomes of it is read from 4.
gpuarbd_is() # WHAT
{
	await_line 4 "$1 *" || { echo "gpuarbd is not $1:"; cat "$dir/daemon.err"; exit 1; }
	gpuarbd=${line#* }
}

start() # OPTION…
{
	rig_start_bus
	coproc manager { exec "$SERVICE_MANAGER" --store-max=64 --runtime="$dir/run" -- \
		"$GPUARBD" --profiles="$GPUARB_SOURCE_ROOT/conf/gpus" \
		--config="$dir/gpuarbd.conf" --tenants="$dir/tenants.d" "$@" 2>"$dir/daemon.err"; }
	# shellcheck disable=SC2154 # coproc sets it
	manager_pid=$manager_PID
	exec 4<&"${manager[0]}" 5>&"${manager[1]}"
	gpuarbd_is ready
	exec 7< <(exec "$GPUARBCTL" monitor)
	await watching
}

finish()
{
	echo stop >&5
	wait "$manager_pid" || { failed=$((failed + 1)); echo 'gpuarbd failed:'
		cat "$dir/daemon.err"; }
	rig_done
}

# await KIND: the next such event of the monitor.
await()
{
	said="gpuarbctl monitor"
	await_line 7 "$1*" || complain "no $1"
}

# settles JQ: until `gpuarbctl status --json` is so, looked at after each event.
settles()
{
	local line end
	await_begin end
	said="it settles"
	until "$GPUARBCTL" status --json >"$dir/out" 2>"$dir/err" && is_json "$1" "$dir/out"; do
		read -r -t "$patience" line <&7 && await_left "$end" ||
			{ complain "not in $patience s, or the monitor has ended: $1"; rig_done; }
	done
}

# driver JQ: what the emulated driver says.
driver()
{
	said='the driver'
	cat /sys/kernel/debug/kfdsim/state >"$dir/out"
	json_out "$1"
}
control() { echo "$1" >/sys/kernel/debug/kfdsim/control || complain "control: $1"; }

# program NAME COMMAND…: comes back when it prints "ready", with its pid in ${pid[NAME]} and the lines
# before in $dir/NAME.lines.
program()
{
	begin "$@"
	is_ready "$1"
}

# begin NAME COMMAND…: comes back when it runs, for a program that may end before it prints "ready".
begin()
{
	local name=$1 out fd
	shift
	said="$*"
	mkfifo "$dir/$name.in" "$dir/$name.out"
	(
		for fd in "${in[@]}"; do exec {fd}>&-; done
		exec "$@" <"$dir/$name.in" >"$dir/$name.out" 2>"$dir/$name.err" 4<&- 5>&- 7<&-
	) &
	pid[$name]=$!
	exec {fd}>"$dir/$name.in" {out}<"$dir/$name.out"
	in[$name]=$fd from[$name]=$out
	rm "$dir/$name.in" "$dir/$name.out"
}

is_ready() # NAME
{
	local line=
	while read -r -t "$patience" line <&"${from[$1]}" && [ "$line" != ready ]; do
		echo "$line"
	done >"$dir/$1.lines"
	[ "$line" = ready ] || { cp "$dir/$1.err" "$dir/err"; complain "it is not ready"; rig_done; }
}

# tell NAME LINE: comes back when it has done that.
tell()
{
	said="$1: $2"
	echo "$2" >&"${in[$1]}"
	is_ready "$1"
}

# leave NAME: its input ends, and it with that.
leave()
{
	exec {in[$1]}>&-
	unset "in[$1]"
	wait "${pid[$1]}"
}
crash() # NAME
{
	exec {in[$1]}>&-
	unset "in[$1]"
	kill -KILL "${pid[$1]}"
	wait "${pid[$1]}" 2>/dev/null
}
# What the driver, and the daemon, say of it.
of() { echo "(.processes[] | select(.pid == ${pid[$1]} and .made > 0))"; }
named() { echo "(.leases[] | select(.name == \"$1\"))"; }
gpu() { echo "(.gpus[] | select(.name == \"$1\"))"; }
