#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Who may include whom. One row a folder: the folder, what its quoted includes may start
# with, and the outside headers it may name. Silent where all is well.
#
# Core is pure; hw, sys and bus do not see each other.
#
# gpuarbctl shares core/mask, core/policy, util and sys/config with the daemon and knows everything
# else by the public header of the library. Its floors are options, output, launch, doctor, verbs; gpuarb-rt
# has rt instead of verbs. Exceptions:
# - hw/hw.h: doctor looks at the GPUs of a machine without a daemon; verify and top count the queues
#   of processes, which must not be the word of the daemon that they check.
# - dbus/partition.h: JSON has the members of a partition that the bus has.
# - core/change/arbiter.h: rt plan places partitions with the decisions of the daemon itself; a
#   placement of its own would promise CUs that the daemon then does not grant.
#
# The rooms of the daemon call protocol, which calls them. Of each other only observe sees enforce, to kill an intruder.
#
# The library knows nothing of the daemon. Exception: util/each.h, a macro without anything of gpuarbd.
cd "${1:-.}" || exit 2
wrong=$(
	while read -r dir own outside; do
		[ -d "$dir" ] || echo "$dir: no such folder"
		ls "$dir"/*.[ch] >/dev/null 2>&1 || echo "$dir: nothing to check"
		grep -HnE '^#include "' "$dir"/*.[ch] | grep -vE "\"($own)"
		grep -HnE '^#include <(systemd|dbus|hip|hsakmt|json|ini|bpf)' "$dir"/*.[ch] |
			grep -vE "<($outside)"
	done <<'ROWS'
daemon/util             util/                                             systemd|ini
daemon/core/mask        util/|core/mask/                                  -none-
daemon/core/layout      util/|core/(mask|layout)/                         -none-
daemon/core/policy      util/|core/(mask|policy)/                         -none-
daemon/core/ledger      util/|core/(mask|policy|ledger)/                  -none-
daemon/core/decide      util/|core/(mask|layout|policy|ledger|decide)/    -none-
daemon/core/observe     util/|core/(mask|policy|ledger|observe)/          -none-
daemon/core/change      util/|core/(mask|layout|policy|ledger|observe|decide|change)/ -none-
daemon/core/change/admit   util/|core/(mask|layout|policy|ledger|observe|decide|change)/ -none-
daemon/core/change/enforce util/|core/(mask|layout|policy|ledger|observe|decide|change)/ -none-
daemon/core/change/machine util/|core/(mask|layout|policy|ledger|observe|decide|change)/ -none-
daemon/core/change/share   util/|core/(mask|layout|policy|ledger|observe|decide|change)/ -none-
daemon/hw               util/|core/(mask|policy)/|hw/                     -none-
daemon/sys              util/|core/|sys/                                  systemd
daemon/sys/config       util/|core/(mask|policy)/|sys/config/             -none-
daemon/sys/state        util/|core/|sys/state/                                  json
daemon/sys/liveness     util/|sys/(liveness/|(container|process).h)       systemd
daemon/helpers          util/|core/|hw/|sys/|helpers/                     systemd
daemon/helpers/budget   util/|helpers/                                    bpf
daemon/helpers/probe    util/|helpers/                                    -none-
daemon/helpers/enforce  util/|core/|helpers/|sys/                         systemd
daemon/helpers/fdinfo   util/|hw/|sys/|helpers/                           -none-
daemon/helpers/harvest  util/|core/(mask|policy)/|hw/|helpers/            -none-
daemon/bus              util/|core/|bus/|dbus/                            systemd
daemon/protocol         util/|core/|hw/|sys/|helpers/|bus/|dbus/|daemon.h|(protocol|observe|cap|enforce)/ systemd
daemon/observe          util/|core/|hw/|sys/|helpers/|bus/|dbus/|daemon.h|(protocol|observe|enforce)/ systemd
daemon/cap              util/|core/|hw/|sys/|helpers/|bus/|dbus/|daemon.h|(protocol|cap)/ systemd
daemon/enforce          util/|core/|hw/|sys/|helpers/|bus/|dbus/|daemon.h|(protocol|enforce)/ systemd
daemon                  util/|core/|hw/|sys/|helpers/|bus/|dbus/|daemon.h|(protocol|observe|cap|enforce)/ systemd
libgpuarb/connection    libgpuarb/(gpuarb.h|connection/)|dbus/|daemon/util/(base|each).h dbus
libgpuarb/lease         libgpuarb/(gpuarb.h|connection/|lease/)|dbus/|daemon/util/(base|grow|text-stream).h dbus
libgpuarb/agent         libgpuarb/(gpuarb.h|connection/|lease/|agent/)|dbus/|daemon/util/(base|grow|number).h -none-
libgpuarb/hip           libgpuarb/(gpuarb.h|hip/)                         hip
libgpuarb/rt            libgpuarb/rt/                                     hip|systemd
client/options          client/options/|libgpuarb/gpuarb.h|core/(mask|policy)/|util/ -none-
client/output           client/(options|output)/|libgpuarb/gpuarb.h|dbus/partition.h|core/(mask|policy)/|util/|hw/hw.h json
client/launch           client/(options|output|launch)/|libgpuarb/gpuarb.h|core/(mask|policy)/|util/|sys/config/ -none-
client/doctor           client/(options|output|doctor)/|libgpuarb/gpuarb.h|core/(mask|policy)/|util/|sys/config/|hw/hw.h -none-
client/rt               client/(options|output|launch|doctor|rt)/|libgpuarb/gpuarb.h|core/(mask|policy)/|util/|sys/config/|core/change/arbiter.h json
client/verbs            client/(options|output|launch|doctor|verbs)/|client/oci/variables.h|libgpuarb/gpuarb.h|core/(mask|policy)/|util/|sys/config/ json
client                  client/(options|output|launch|doctor|verbs)/|util/              -none-
client/oci              client/(options|oci)/|core/policy/request.h|client/launch/agent-start.h|libgpuarb/(gpuarb|lease/program-variables).h|util/|dbus/ systemd|json
client/slurm            client/(options|slurm)/|util/                           -none-
client/calibrate        client/(options|output|launch|latency|calibrate)/|libgpuarb/gpuarb.h|core/mask/|util/ -none-
client/latency          client/(options|output|launch|latency)/|libgpuarb/gpuarb.h|libgpuarb/gpuarb-queues.h|libgpuarb/hip/gpuarb-hip.h|core/mask/|util/ hip
ROWS
)
# core reads no clock, file or device.
impure=$(grep -HnE '^#include <(fcntl|unistd|time|sys/(stat|socket|time|ioctl))' daemon/core/*/*.[ch] daemon/core/*/*/*.[ch])
# In the program of a folder a main() would take the place of that of check.h, and of all its tests.
mains=$(grep -HnE '^int main\(' -r tests/unit)
[ -z "$wrong$impure$mains" ] || { printf '%s\n%s\n%s\n' "$wrong" "$impure" "$mains"; exit 1; }
