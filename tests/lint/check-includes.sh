#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Who may include whom. One row a folder: the folder, what its quoted includes may start
# with, and the outside headers it may name. Silent where all is well.
#
# Core is pure; hw, sys and bus do not see each other. The tool works with the library's
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
daemon/util             util/                                             systemd|ini
daemon/core/mask        util/|core/mask/                                  -none-
daemon/core/policy      util/|core/(mask|policy)/                         -none-
daemon/core/ledger      util/|core/(mask|policy|ledger)/                  -none-
daemon/core/decide      util/|core/(mask|policy|ledger|decide)/           -none-
daemon/core/change      util/|core/(mask|policy|ledger|decide|change)/    -none-
daemon/hw               util/|core/|hw/                                   -none-
daemon/sys              util/|core/|sys/                                  systemd
daemon/sys/config       util/|core/|sys/                                  systemd
daemon/sys/state        util/|core/|sys/                                  json
daemon/sys/liveness     util/|core/|sys/                                  systemd
daemon/helpers          util/|core/|sys/|helpers/                         systemd
daemon/helpers/enforce  util/|core/|helpers/|sys/                         systemd
daemon/bus              util/|core/|bus/|dbus/                            systemd
daemon                  util/|core/|hw/|sys/|helpers/|bus/|dbus/|daemon.h systemd
libgpuarb/connection    libgpuarb/(gpuarb.h|connection/)|dbus/            dbus
libgpuarb/lease         libgpuarb/(gpuarb.h|connection/|lease/)|dbus/     dbus
libgpuarb/agent         libgpuarb/(gpuarb.h|connection/|lease/|agent/)|dbus/ -none-
libgpuarb/hip           libgpuarb/(gpuarb.h|hip/)                         hip
client                  client/|libgpuarb/gpuarb.h|core/|util/            -none-
client/options          client/|libgpuarb/gpuarb.h|core/|util/            -none-
client/output           client/|libgpuarb/gpuarb.h|core/|hw/hw.h|util/|sys/config/ json
client/launch           client/|libgpuarb/gpuarb.h|core/|util/            -none-
client/doctor           client/|libgpuarb/gpuarb.h|core/|hw/hw.h|util/|sys/config/ -none-
client/verbs            client/|libgpuarb/gpuarb.h|core/|util/|sys/config/ json
client/rt               client/|core/|util/|sys/config/                   -none-
client/latency          client/|libgpuarb/gpuarb.h|libgpuarb/hip/gpuarb-hip.h|core/|util/ hip
ROWS
)
# core reads no clock, file or device.
impure=$(grep -HnE '^#include <(fcntl|unistd|time|sys/(stat|socket|time|ioctl))' daemon/core/*/*.[ch])
[ -z "$wrong$impure" ] || { printf '%s\n%s\n' "$wrong" "$impure"; exit 1; }
