#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Who may include whom. One row a folder: the folder, what its quoted includes may start
# with, and the outside headers it may name. Silent where all is well.
#
# core is pure; hw, sys and bus do not see each other. The tool works with the library's
# public header alone, and with core and the readers of sys and hw where no daemon is needed
# (masks, profiles, configuration, doctor).
cd "${1:-.}" || exit 2
wrong=$(
	while read -r dir own outside; do
		[ -d "$dir" ] || echo "$dir: no such folder"
		ls "$dir"/*.c >/dev/null 2>&1 || echo "$dir: nothing to check"
		grep -HnE '^#include "' "$dir"/*.[ch] | grep -vE "\"($own)"
		grep -HnE '^#include <(systemd|dbus|hip|hsakmt|json|ini)' "$dir"/*.[ch] |
			grep -vE "<($outside)"
	done <<'ROWS'
daemon/core core/                                             -none-
daemon/hw   core/|hw/                                         -none-
daemon/sys  core/|sys/                                        systemd|json|ini
daemon/bus  core/|bus/|dbus/                                  systemd
daemon/enforce core/|enforce/|sys/(fd|log|process).h             systemd
daemon      core/|hw/|sys/|bus/|dbus/|daemon.h|record.h       systemd
libgpuarb   libgpuarb/|dbus/|gpuarb-queues.h                  dbus
client      client/|libgpuarb/gpuarb.h|core/|hw/hw.h|sys/(config|ini|profile).h json
client/rt   client/|core/|sys/(ini|profile).h                 -none-
client/latency client/|libgpuarb/gpuarb.h|libgpuarb/hip/gpuarb-hip.h|core/ hip
ROWS
)
# core reads no clock, file or device.
impure=$(grep -HnE '^#include <(fcntl|unistd|time|sys/(stat|socket|time|ioctl))' daemon/core/*.[ch])
[ -z "$wrong$impure" ] || { printf '%s\n%s\n' "$wrong" "$impure"; exit 1; }
