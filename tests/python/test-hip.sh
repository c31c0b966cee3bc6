#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The Python package with AMD's HIP under the shipped gpuarbd, on the emulated driver: test-hip.py, each
# class in a process of its own, because HIP and ROCr read the environment once.
set -u

if [ "${INSIDE:-}" != yes ]; then
	cd "$GPUARB_ROOT/tests/python" || exit 1
	# shellcheck source=tests/kfdsim/rig.sh
	. ../kfdsim/rig.sh
	rig_need jq dbus-daemon dbus-monitor
	rig_need_kfdsim
	export INSIDE=yes
	kfdsim --gpu radeon-vii --gpu v620 -- "$BASH" ./test-hip.sh || failed=1
	rig_done
	exit
fi

# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_ROOT/tests/cli/ctl-rig.sh"
printf '[daemon]\nbackend = kfd\n' >"$dir/gpuarbd.conf"
mkdir "$dir/tenants.d"
cat >"$dir/tenants.d/10-all.conf" <<-CONF
	[tenant everything]
	match-user = $(id -un)
	class = guaranteed
	priority = 15
CONF
rig_start_bus
rig_start_daemon --sysfs=/sys
for name in $(sed -n 's/^class \(.*\)(unittest.*/\1/p' test-hip.py); do
	list_becomes '. == []'
	said="$name"
	timeout "$patience" ./test-hip.py "$name" >"$dir/out" 2>"$dir/err" </dev/null ||
		complain "$name: ended with $?"
done
rig_done
