#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The shipped examples of policy, a static split and dynamic priority, load unchanged and work on a
# simulated GPU.
#
#	test-ctl-ways.sh GPUARBCTL
#
# GPUARBD, GPUARB_SOURCE_ROOT: the daemon, the source tree.
set -u
GPUARBCTL=${1:-${GPUARBCTL:?}}
: "${GPUARBD:?}" "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"
rig_need dbus-daemon dbus-monitor jq
examples=$GPUARB_SOURCE_ROOT/conf/examples
part='--name=compositor --class=realtime --shader-engines=1 --queues=4'

# ours EXAMPLE: installs the example with the user and group of this test.
ours()
{
	sed "s/^match-group = .*/match-user = $(id -un)/; /^match-unit/d; s/^class = .*/&\nopen = yes/" "$examples/$1" \
		>"$dir/tenants.d/$1"
	rig_start_daemon --simulate=radeon-vii
}

over()
{
	rig_stop_daemon
	rm "$dir/tenants.d"/*
}

# Unchanged, if its groups exist here.
for example in "$examples"/*.conf; do
	name=$(basename "$example")
	check "$name is installed" grep -qF "'examples/$name'" "$GPUARB_SOURCE_ROOT/conf/meson.build"
	cp "$example" "$dir/$name"
	for group in $(sed -n 's/^match-group = //p' "$example"); do
		getent group "$group" >/dev/null ||
			sed -i "s/^match-group = $group/match-group = $(id -gn)/" "$dir/$name"
	done
	shows 'valid' config check "$dir/$name"
done
rig_start_bus

# ---- a static split ----------------------------------------------------------------------
ours static-split.conf
# shellcheck disable=SC2086
hold reserve $part --priority=high --token=split
keeper=$holder
check 'a unit holds the part from boot on' grep -q '15 granted' <<<"$held"
# shellcheck disable=SC2086
ends 0 run $part --priority=high --token=split -- "$GPUARBCTL" list --json
json_out 'length == 1 and .[0].state == "granted" and .[0].partitions[0].cus == 15'
json_out '.[0].partitions[0].priority == 11'
ends 3 plan --tenant='*' --cus=46
out_has 'quota'
prints '.verdict == "granted" and .partitions[0].cus == 45' plan --tenant='*' --cus=45 --json
fails 4 'priority 11' reserve --tenant='*' --cus=4 --priority=high
ends 4 reserve --tenant='*' --cus=15 --class=realtime
# shellcheck disable=SC2086
ends 3 plan $part --shader-engines=2
let_go TERM "$keeper"
over

# ---- dynamic priority --------------------------------------------------------------------
ours dynamic-priority.conf
# shellcheck disable=SC2086
hold reserve $part --priority=high --start-inactive
prints '.[0].state == "inactive" and .[0].partitions[0].priority == 11' list --json
id=$(jq '.[0].id' "$dir/out")
follow reserve --tenant='*' --adaptable --cus=100% --cus-min=25%
borrower=$!
check "it borrows the whole GPU, not $line" grep -q '60 granted' <<<"$line"
prints '.state == "granted"' activate "$id" --wait=60 --json
prints '[.[] | .partitions[0].cus] | sort == [15, 45]' list --json
prints '.state == "inactive"' deactivate "$id" --json
let_go TERM "$borrower"
let_go TERM "$holder"
list_becomes 'length == 0'

# Each of the sixteen priorities, up to the limit of each tenant.
for priority in $(seq 0 15); do
	prints ".partitions[0].priority == $priority" plan --tenant=compositor --cus=4 --priority="$priority" --json
	ends "$((priority <= 10 ? 0 : 3))" plan --tenant=game --cus=4 --priority="$priority"
	ends "$((priority <= 7 ? 0 : 3))" plan --tenant='*' --cus=4 --priority="$priority"
done
fails 2 '--priority=16' plan --cus=4 --priority=16
over
rig_done
