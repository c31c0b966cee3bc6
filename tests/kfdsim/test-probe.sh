#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-probe.sh PROBE CLIENT-HIP: gpuarb-probe on the emulated driver: gpuarbd counts what the driver reports,
# times evictions of an unmodified HIP program, and marks the lease of a GPU that was reset.
set -u

if [ "${INSIDE:-}" != yes ]; then
	[ $# -gt 1 ] || { echo 'skipped: no libhsakmt or no HIP (libhsakmt-dev, libamdhip64-dev)'; exit 77; }
	. "${0%/*}/rig.sh"
	rig_need jq dbus-daemon dbus-monitor systemd-socket-activate
	play --gpu radeon-vii --gpu mi210 -- "$@"
	rig_done
fi

probe=$1 hip=$2
. "${0%/*}/stage.sh"
printf '[daemon]\nbackend = kfd\naudit-interval = 100ms\n' >"$dir/gpuarbd.conf"
mkfifo "$dir/activate"
systemd-socket-activate --accept --seqpacket --inetd --listen="$dir/probe" "$probe" 2>"$dir/activate" &
activate=$!
trap 'kill -KILL $activate $manager_pid "${pid[@]}" 2>/dev/null; rig_clean' EXIT
exec 6<"$dir/activate"
# It says so when it listens, and again when a probe has ended.
activate_says()
{
	await_line 6 "*$1*" || complain "systemd-socket-activate does not say: $1"
}
activate_says 'Listening'
start --sysfs=/sys --debugfs=/sys/kernel/debug --probe="$dir/probe"

# ---- the probe runs for a moment, when a GPU is first used ------------------------------------
program serve "${run[@]}" --name serve --gpu "$vii" --cus 15 --queues 3 -- "$hip" --streams 2 --work --hold
activate_says 'died with code 0'
said='processes of KFD'
ls /sys/class/kfd/kfd/proc >"$dir/out"
check 'gpuarb-probe has left the driver' test "$(cat "$dir/out")" = "${pid[serve]}"
check 'gpuarbd and libhsakmt read the same topology' eval '! grep -q libhsakmt "$dir/daemon.err"'

# ---- evictions -------------------------------------------------------------------------------
control "evict:${pid[serve]}"
settles "$(named serve) | .evictions.count == 1 and .evictions.since != null"
control "restore:${pid[serve]}"
settles "$(named serve) | .evictions.count == 1 and .evictions.since == null and .evictions.usec > 0"
ends 0 top
out_has 'EVICTED'

# ---- what else the driver reports ------------------------------------------------------------
control "smi:$vii:1 12:client"
settles "$(gpu "$vii") | .driver_events[\"vm-fault\"] == 1"
control "smi:$mi210:2 1:1"
settles "$(gpu "$mi210") | .driver_events.throttled == 1"
control "smi:$vii:7 stuff"
control "smi:$vii:1 stuff"
settles "$(gpu "$vii") | .driver_events.unknown == 1"

# ---- a reset marks the leases of its GPU, and they stay --------------------------------------
# From ROCr 5.7 on the runtime aborts the program when any GPU is reset, so the program does not run.
halt "${pid[serve]}"
control "reset:$mi210"
settles "$(gpu "$mi210") | .driver_events.reset == 1 and .driver_events[\"reset-ended\"] == 1"
json_out "$(named serve) | .resets == null"
control "reset:$vii"
settles "$(named serve) | .resets == 1 and .state == \"granted\" and (.reason | contains(\"$vii\"))"
crash serve
settles '.leases == []'

# ---- a command that is started again -----------------------------------------------------------
program again "${run[@]}" --restart-on-reset --name again --gpu "$vii" --cus 15 --queues 3 -- "$hip" --streams 2 --work --hold
lease=$(jq -n --slurpfile all <("$GPUARBCTL" status --json) '$all[0].leases[0].id')
control "reset:$vii"
said='the command after a reset'
is_ready again
settles "$(named again) | .id == $lease and .resets == 1 and .state == \"granted\" and .reason == \"\""
control "reset:$vii"
wait "${pid[again]}"
check 'it is not started a second time within a minute' test $? -gt 128
settles '.leases == []'
finish
