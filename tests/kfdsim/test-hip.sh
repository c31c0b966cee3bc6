#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-hip.sh TEST-HIP [EXAMPLE…]: libgpuarb-hip with AMD's HIP under the shipped gpuarbd, on the
# emulated driver. The first is tests, each of which runs for itself; then the examples.
set -u

if [ "${INSIDE:-}" != yes ]; then
	[ $# -gt 0 ] || { echo 'skipped: no HIP (libamdhip64-dev)'; exit 77; }
	. "${0%/*}/rig.sh"
	rig_need jq dbus-daemon dbus-monitor
	play --gpu radeon-vii --gpu v620 -- "$1"
	# HIP wants a program's kernels compiled for every GPU that there is.
	play --gpu radeon-vii --gpu mi210 -- '' "${@:2}"
	rig_done
fi

# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_ROOT/tests/cli/ctl-rig.sh"
cat >"$dir/gpuarbd.conf" <<-'CONF'
	[daemon]
	backend = kfd
CONF
mkdir "$dir/tenants.d"
cat >"$dir/tenants.d/10-all.conf" <<-CONF
	[tenant everything]
	match-user = $(id -un)
	class = guaranteed
	priority = 15
CONF
rig_start_bus
rig_start_daemon --sysfs=/sys

# passes COMMAND…: within the time, with 0, and alone: the one before has been torn down.
passes()
{
	list_becomes '. == []'
	said="$*"
	timeout "$patience" "$@" >"$dir/out" 2>"$dir/err" </dev/null || complain "$said: ended with $?"
}

tests=$1
shift
for name in $([ -z "$tests" ] || sed -nE 's/^TEST(_CASE|_WITH)?\((\w+).*/\2/p' "${0%/*}/test/test-hip.c"); do
	passes "$tests" "$name"
done
for example; do
	passes "$example"
	out_has ' CUs of GPU 0000:'
done
rig_done
