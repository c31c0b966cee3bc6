#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-requests.sh REQUESTS: kfdsim answers requests as the drivers of Linux 6.1 and 6.12 did, with a GPU of
# the same geometry. tests/system/kernel compares the same file with the drivers.
requests=$(realpath "$1")
cd "$GPUARB_ROOT/tests/kfdsim" || exit 1
# shellcheck source=tests/kfdsim/rig.sh
. ./rig.sh
rig_need_kfdsim

# As a user without privilege: CRIU_OP is refused then.
plain=()
[ "$(id -u)" != 0 ] || plain=(setpriv --reuid 65534 --regid 65534 --clear-groups)
cp "$requests" "$dir/requests"
chmod 755 "$dir"
# answers_as KFD LINUX
answers_as()
{
	local recorded=$dir/recorded
	sed "s/^Linux $2: //; /^Linux /d" "$GPUARB_ROOT/tests/system/requests.expected" >"$recorded"
	ends 0 kfdsim --kfd "$1" --gpu mi210 -- "${plain[@]}" "$dir/requests"
	diff "$recorded" "$dir/out" >"$dir/differing" || {
		cat "$dir/differing"
		complain "kfdsim (>) answers otherwise than Linux $2 (<)"
	}
	echo "$(grep -vc '^	' "$recorded") requests compared with Linux $2, $(grep -c '^>' "$dir/differing") differ"
}

answers_as 1.11 6.1
answers_as 1.17 6.12
rig_done
