# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# For tests of gpuarbctl with several users: the checks of ctl-rig.sh as one of them. Users are names that every
# Debian has, because a bus refuses users without a name; groups are numbers.

# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"

# users_start OPTION…: starts gpuarbd on a bus. Ends with 77 (skipped) where the test cannot become other users.
users_start()
{
	rig_need dbus-daemon dbus-monitor jq
	[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || { echo 'skipped: not root, or no setpriv'; exit 77; }
	# Other users may not be able to read this tree.
	chmod 711 "$dir"
	install -m 755 "$GPUARBCTL" "$dir/gpuarbctl"
	install -m 755 "$(ldd "$GPUARBCTL" | sed -n 's/.*libgpuarb\.so\.0 => \([^ ]*\).*/\1/p')" "$dir/libgpuarb.so.0"
	mkdir -m 755 "$dir/agent"
	find "${GPUARB_AGENT_DIR:?}" -maxdepth 1 -type f -exec install -m 755 -t "$dir/agent" {} +
	export GPUARB_AGENT_DIR=$dir/agent
	rig_start_bus
	rig_start_daemon "$@"
}

# user NAME USER [GROUP,…]: makes a command NAME, which runs a check of ctl-rig.sh as this user, in these groups only.
user()
{
	local groups=--clear-groups
	[ $# -lt 3 ] || groups=--groups=$3
	printf '#!/bin/sh\nexport LD_LIBRARY_PATH=%s\nexec setpriv --reuid=%s --regid=%s %s %s/gpuarbctl "$@"\n' \
		"$dir" "$2" "$(id -g "$2")" "$groups" "$dir" >"$dir/as-$1"
	chmod 755 "$dir/as-$1"
	eval "$1() { GPUARBCTL=\$dir/as-$1 \"\$@\"; }"
}

declare -A held_by=()

# hold_as NAME ARGUMENT…: like hold of ctl-rig.sh; several users can hold at a time.
hold_as()
{
	GPUARBCTL=$dir/as-$1 hold "${@:2}"
	held_by[$1]=$holder
	holder=
}

# let_go_of NAME: ends what hold_as has started.
let_go_of()
{
	let_go TERM "${held_by[$1]}" 2>/dev/null # its lease may have ended
	unset "held_by[$1]"
}

# policy: standard input becomes the policy in force.
policy()
{
	cat >"$dir/tenants.d/policy.conf"
	ends 0 reload
}
