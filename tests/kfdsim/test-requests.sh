#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-requests.sh REQUESTS: kfdsim answers requests as the driver of Linux 6.1 did, with a GPU of the
# same geometry. tests/system/kernel compares the same file with the driver.
requests=$(realpath "$1")
recorded=$GPUARB_ROOT/tests/system/requests.6.1
cd "$GPUARB_ROOT/tests/kfdsim" || exit 1
# shellcheck source=tests/kfdsim/rig.sh
. ./rig.sh
rig_need_kfdsim

# As a user without privilege: CRIU_OP is refused then.
plain=()
[ "$(id -u)" != 0 ] || plain=(setpriv --reuid 65534 --regid 65534 --clear-groups)
cp "$requests" "$dir/requests"
chmod 755 "$dir"
ends 0 kfdsim --kfd 1.11 --gpu mi210 -- "${plain[@]}" "$dir/requests"
diff "$recorded" "$dir/out" || complain "kfdsim (>) answers otherwise than the driver (<)"
echo "$(grep -vc '^	' "$recorded") requests compared"
rig_done
