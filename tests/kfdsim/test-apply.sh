#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Queues that follow their lease: libhsakmt, libgpuarb and gpuarbd on the emulated driver, which
# tells of every mask that it was given. Argument: client-apply.

# Inside: a daemon on this machine's GPUs, the client, and what the driver says afterwards.
if [ "$1" = inside ]; then
	# shellcheck source=tests/cli/ctl-rig.sh
	. "$GPUARB_ROOT/tests/cli/ctl-rig.sh"
	printf '[daemon]\nbackend = kfd\n' >"$dir/gpuarbd.conf"
	mkdir "$dir/tenants.d"
	printf '[tenant everything]\nmatch-user = %s\nclass = guaranteed\n' "$(id -un)" \
		>"$dir/tenants.d/10-all.conf"
	rig_start_bus
	rig_start_daemon --sysfs=/sys
	"$2" "$3" || { cat "$dir/daemon.err" >&2; exit 1; }
	cat /sys/kernel/debug/kfdsim/state
	rig_done
fi

[ $# = 1 ] || { echo 'skipped: no libhsakmt'; exit 77; }
client=$(realpath "$1")
cd "$GPUARB_ROOT/tests/kfdsim" || exit 1
# shellcheck source=tests/kfdsim/rig.sh
. ./rig.sh
rig_need jq dbus-daemon dbus-monitor
rig_need_kfdsim

inside()
{
	ends 0 kfdsim --gpu radeon-vii --gpu mi210 -- bash ./test-apply.sh inside "$client" "$1"
}

# said_so JQ SENTENCE: of [what the client says that the driver was told, the driver's record].
said_so() { jq -es "$1" "$dir/out" >/dev/null || complain "$2"; }
told()
{
	said_so '.[0] == (.[1].processes[0].queues | map([.id] + .masks))' \
		'the driver was told otherwise'
}
masked_none() { said_so '.[0] == [] and .[1].processes == []' 'a process of KFD came to be'; }
left_alone()
{
	said_so '.[1].processes[0].queues[3:5] | map(.mask) == [null, null]' \
		'queues that are not the lease were masked'
}

inside none
masked_none
inside follow
told
left_alone
inside back
told
rig_done
