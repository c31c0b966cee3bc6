#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What a user meets in the first hour. Environment as for test-ctl.sh.
set -u
: "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"

rig_need dbus-daemon dbus-monitor jq
rig_start_bus

# ---- run checks the command before it connects ------------------------------------------
# There is no daemon: a check after the connection ends with 125.
printf '#!/nonexistent/interpreter\n' >"$dir/script"
printf 'true\n' >"$dir/plain"
mkdir "$dir/folder"
chmod 755 "$dir/script"
for options in '' '--wait' '--wait=10s' '--wait 10' '--wait 500ms --cus=3'; do
	# shellcheck disable=SC2086
	ends 127 run $options -- no-such-command
	err_has 'cannot start no-such-command: no such command'
done
ends 127 run -- "$dir/none"
ends 126 run -- "$dir/plain"
err_has 'Permission denied'
ends 126 run -- "$dir/folder"
ends 127 run -- "$dir/script"
err_has '/nonexistent/interpreter'
ends 127 run -- ''
ends 127 run --cus=8 3 -- true
err_has 'write -- before it'
ends 127 run --json -- no-such-command
json_err '.error | contains("no-such-command")'
ends 125 run -- true

rig_done
