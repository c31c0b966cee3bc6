# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034
#
# What scenes share: the programs that they are played with, built unless the environment names
# them; and, within the emulated machine, a bus, gpuarbd and programs that use the GPU.

tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
state=/sys/kernel/debug/kfdsim/state
# shellcheck source=tests/kfdsim/absent.sh
. "$tree/tests/kfdsim/absent.sh"
# shellcheck source=tests/rigs/await.sh
. "$tree/tests/rigs/await.sh"

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
show() { printf '$ %s\n' "$*"; "$@"; }

# Silent while it works; all of it where it does not.
quietly()
{
	local out
	out=$("$@" 2>&1) || { printf '%s\n' "$out"; exit 1; }
}

# ---- outside ---------------------------------------------------------------------------------

# stage_build NAME…: KFDSIM, KFDSIM_TIMING, GPUARBD, GPUARBCTL, GPUARB_ENFORCE, SERVICE_MANAGER,
# GPUARB_AGENT_DIR and CLIENT_NAME of each program that was named, from the environment or built.
stage_build()
{
	local build=$tree/build/scenes name clients=()

	for name; do clients+=("tests/kfdsim/client-$name"); done
	if [ -z "${KFDSIM:-}" ]; then
		"$tree/tests/setup"
		echo "building…"
		[ -f "$build/build.ninja" ] ||
			quietly meson setup "$build" "$tree" --buildtype=release -Dman=disabled
		quietly ninja -C "$build" daemon/gpuarbd client/gpuarbctl tests/rigs/service-manager \
			daemon/helpers/enforce/gpuarb-enforce tests/kfdsim/kfdsim \
			libgpuarb/agent/gpuarb-agent libgpuarb/agent/libgpuarb-agent.so "${clients[@]}"
		KFDSIM=$build/tests/kfdsim/kfdsim
		GPUARBD=$build/daemon/gpuarbd
		GPUARBCTL=$build/client/gpuarbctl
		GPUARB_ENFORCE=$build/daemon/helpers/enforce/gpuarb-enforce
		SERVICE_MANAGER=$build/tests/rigs/service-manager
		GPUARB_AGENT_DIR=$build/libgpuarb/agent
		for name; do declare -g "CLIENT_${name^^}=$build/tests/kfdsim/client-$name"; done
	fi
	for name; do
		name=CLIENT_${name^^}
		[ -x "${!name:-}" ] ||
			{ echo "skipped: no HIP or no hipcc, so no HIP programs"; exit 77; }
		export "${name?}"
	done
	export KFDSIM KFDSIM_TIMING GPUARBD GPUARBCTL GPUARB_ENFORCE SERVICE_MANAGER GPUARB_AGENT_DIR
	stage_need jq dbus-daemon systemd-socket-activate
}

# Leaves with 77 where a command is missing, or the emulated machine cannot be had.
stage_need()
{
	local command out

	for command; do
		command -v "$command" >/dev/null || { echo "skipped: no $command"; exit 77; }
	done
	out=$("$KFDSIM" --gpu v620 --profiles "$tree/conf/gpus" -- true 2>&1) && return
	kfdsim_absent "$out"
	echo "$out"
	exit 1
}

# play PROFILE SCRIPT ARGUMENT…: the script in a machine with that card, and with $stage_options of
# kfdsim.
stage_options=()
play()
{
	local profile=$1
	shift
	"$KFDSIM" "${stage_options[@]}" --gpu "$profile" --profiles "$tree/conf/gpus" -- bash "$@"
}

# ---- within the emulated machine -------------------------------------------------------------

stage_pids=()

stage_leave()
{
	[ ${#stage_pids[@]} = 0 ] || kill "${stage_pids[@]}" 2>/dev/null
	wait
	rm -rf "$stage"
}

# Without gpuarbd.
stage_alone()
{
	stage=$(mktemp -d)
	trap stage_leave EXIT
}

# A bus of its own and gpuarbd on it, which reads this machine as any other: with $stage_daemon in
# its configuration and $stage_tenants as its policy. gpuarb-enforce starts when gpuarbd asks for it.
stage_enter()
{
	stage_alone
	cat >"$stage/bus.conf" <<-BUS
		<busconfig>
		  <listen>unix:path=$stage/bus</listen>
		  <auth>EXTERNAL</auth>
		  <policy context="default">
		    <allow user="*"/>
		    <allow own="*"/>
		    <allow send_destination="*"/>
		    <allow eavesdrop="false"/>
		  </policy>
		</busconfig>
	BUS
	mkdir "$stage/run" "$stage/tenants.d"
	printf '%s\n' "${stage_daemon:-}" >"$stage/gpuarbd.conf"
	printf '%s\n' "${stage_tenants:-}" >"$stage/tenants.d/all.conf"
	export GPUARB_BUS_ADDRESS=unix:path=$stage/bus RUNTIME_DIRECTORY=$stage/run NO_COLOR=1
	export PATH=${GPUARBCTL%/*}:$PATH

	systemd-socket-activate --seqpacket -l "$stage/enforce" "$GPUARB_ENFORCE" 2>>"$stage/log" &
	stage_pids+=($!)
	# It prints its address when it listens.
	exec 3< <(exec dbus-daemon --config-file="$stage/bus.conf" --nofork --nopidfile \
		--print-address 2>"$stage/log")
	stage_pids+=($!)
	read -r _ <&3
	# It stands for systemd, and says when gpuarbd is ready.
	exec 4< <(exec "$SERVICE_MANAGER" --store-max=64 -- "$GPUARBD" \
		--config="$stage/gpuarbd.conf" --tenants="$stage/tenants.d" \
		--enforce="$stage/enforce" 2>>"$stage/log" </dev/null)
	stage_pids+=($!)
	! await_line 4 'ready *' || return 0
	echo "gpuarbd does not start:"
	cat "$stage/log"
	exit 1
}

# serve NAME COMMAND…: a HIP server, or gpuarbctl run with one, that stays until it is killed. Comes
# back when it has its queues, or all of $ranks ranks have theirs, with its pid in $served; or with
# 1 and what it said in $stage/NAME when it has ended instead.
serve()
{
	local name=$1 line ready=0
	shift
	mkfifo "$stage/$name.in" "$stage/$name.out"
	"$@" <"$stage/$name.in" >"$stage/$name.out" 2>"$stage/$name" &
	served=$!
	exec {server_in}>"$stage/$name.in" {server_out}<"$stage/$name.out"
	while read -r -t "$patience" line <&"$server_out"; do
		[ "$line" != ready ] || ready=$((ready + 1))
		[ "$ready" != "${ranks:-1}" ] || { stage_pids+=("$served"); return 0; }
	done
	wait "$served"
	return 1
}

# leave_be PID: it has ended, and is not to be killed.
leave_be()
{
	local pid left=()

	for pid in "${stage_pids[@]}"; do
		[ "$pid" = "$1" ] || left+=("$pid")
	done
	stage_pids=("${left[@]}")
}

# slay PID: SIGKILL, and it is gone.
slay()
{
	leave_be "$1"
	kill -KILL "$1"
	wait "$1" 2>/dev/null || true
}

# What the emulated driver has to say.
driver_says()
{
	jq -r '.gpus[] | select(.peak_queues > 0) |
		"the driver: at most \(.peak_queues) of \(.queue_slots) queue slots and " +
		"\(.peak_processes) of \(.process_slots) process slots in use" +
		if .oversubscriptions > 0 then "; OVERSUBSCRIBED" else "; never oversubscribed" end +
		if .oversubscribed then " by " + (.reasons | join(", ")) else "" end' $state
}

# fact JQ: whether it is so; seen JQ: whether gpuarbd says so.
fact() { jq -e "$1" $state >/dev/null; }
seen() { gpuarbctl --no-pager status --json | jq -en "input | $1" >/dev/null; }

# settles JQ: until gpuarbd says so, looked at after each of its events.
settles()
{
	local line

	if [ -z "${events:-}" ]; then
		exec {events}< <(exec gpuarbctl monitor)
		stage_pids+=($!)
		read -r -t "$patience" line <&"$events"
	fi
	until seen "$1"; do
		read -r -t "$patience" line <&"$events" || { echo "gpuarbd never says $1"; return 1; }
	done
}

# soon COMMAND…: what gpuarbd says may be of some milliseconds ago.
soon() { await_so "$*" "$@"; }
