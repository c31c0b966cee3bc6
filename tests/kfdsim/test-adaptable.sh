#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The adaptable program of libgpuarb(3) on the emulated driver: it borrows what an inactive realtime
# lease lends, gives it back, and is taken away with notice.
#
#	test-adaptable.sh LIBRARY COMPILER…
#
# GPUARBCTL, GPUARBD, KFDSIM, GPUARB_SOURCE_ROOT

# Inside: a daemon on this machine's GPU, and what each of them prints.
if [ "$1" = inside ]; then
	# shellcheck source=tests/cli/ctl-rig.sh
	. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"
	printf '[daemon]\nactivate-grace = 1min\n' >"$dir/gpuarbd.conf"
	mkdir "$dir/tenants.d"
	printf '[tenant all]\nmatch-user = %s\nclass = realtime\n' "$(id -un)" \
		>"$dir/tenants.d/10-all.conf"
	chmod -R go-w "$dir"
	rig_start_bus
	rig_start_daemon --sysfs=/sys

	hold reserve --class=realtime --shader-engines=1 --start-inactive
	lender=$holder
	ends 0 list --json
	json_out '.[0].state == "inactive"'
	lent=$(jq '.[0].id' "$dir/out")
	exec 7< <(exec "$2" 2>"$dir/borrower.err")
	borrower=$!
	said='the borrower'
	read -r -t "$patience" line <&7
	check "it has all that is idle or lent, not $line" test "$line" = 'granted, 60 CUs'
	ends 0 activate "$lent" --wait=60 --json
	json_out '.state == "granted"'
	read -r -t "$patience" line <&7
	check "it gives back what it borrowed, not $line" test "$line" = 'granted, 45 CUs'
	ends 0 list --json
	borrowed=$(jq '.[] | select(.name == "borrower").id' "$dir/out")
	ends 0 revoke "$borrowed" --grace=60 --reason=maintenance
	await_line 7 'revoking*'
	check "it is told, not $line" test "$line" = 'revoking, 45 CUs'
	wait "$borrower"
	check 'it ends in order' test $? = 0
	exec 7<&-
	cat "$dir/borrower.err" >&2
	let_go TERM "$lender"
	rig_done
fi

library=$(realpath "$1")
compiler=("${@:2}")
cd "$GPUARB_SOURCE_ROOT/tests/kfdsim" || exit 1
# shellcheck source=tests/kfdsim/rig.sh
. ./rig.sh
# shellcheck source=tests/cli/manual-rig.sh
. ../cli/manual-rig.sh
rig_need jq dbus-daemon dbus-monitor
rig_need_kfdsim
touch "$dir/out" "$dir/err"
manual_examples "$GPUARB_SOURCE_ROOT/docs/libgpuarb.3.scd" "$dir/example" 2 ||
	complain 'the manual has other examples'
manual_compile "$dir/example-2" "$library" "${compiler[@]}" || complain 'it does not compile'
ends 0 kfdsim --gpu radeon-vii -- bash ./test-adaptable.sh inside "$dir/example-2"
rig_done
