#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-harvest.sh HARVEST: gpuarb-harvest and gpuarbd on an emulated card of six engines with CUs fused off, beside one
# whose caches show them.
set -u

if [ "${INSIDE:-}" != yes ]; then
	. "${0%/*}/rig.sh"
	rig_need jq dbus-daemon
	cp "$GPUARB_ROOT/conf/gpus/radeon-vii.conf" "$dir"
	sed 's/^active = .*/active = 8 8 8 6 6 6 8 8 8 6 6 6/' "$GPUARB_ROOT/conf/gpus/rx7900xtx.conf" >"$dir/harvested.conf"
	play --profiles "$dir" --gpu harvested --gpu radeon-vii -- "$@"
	rig_done
fi

harvest=$1
. "${0%/*}/stage.sh"
printf '[daemon]\nbackend = kfd\n' >"$dir/gpuarbd.conf"
mkdir "$dir/maps"
arbitrate() { start --sysfs=/sys --harvest="$dir/maps"; }

# ---- without a map: what every harvest of 84 CUs has -----------------------------------------------
arbitrate
ends 0 plan --gpu=0 --cus=42 --json
json_out '.partitions[0] | .effective_cus == 8 and (.gaps | index("shader-engines"))'
ends 0 plan --gpu=0 --json
json_out '.partitions[0] | .cus == 84 and .effective_cus == 84'
ends 0 plan --gpu=1 --cus=15 --json
json_out '.partitions[0] | .effective_cus == 15 and (.gaps | index("shader-engines") | not)'
ends 0 gpus --json
json_out '[.[].harvest_known] == [false, true]'
echo stop >&5
wait "$manager_pid"

# ---- with one ----------------------------------------------------------------------------------------
said='gpuarb-harvest into a directory that does not exist'
"$harvest" --directory="$dir/absent" 2>"$dir/err"
check 'it fails' test $? = 1
err_has "$dir/absent"
# Without the render node, and with a file in its place.
for node in absent file; do
	said="gpuarb-harvest, $node"
	unshare -m sh -c 'mount -t tmpfs tmpfs /dev/dri && { [ "$1" = absent ] || : >/dev/dri/renderD128; } &&
		exec "$2" --directory="$3"' sh "$node" "$harvest" "$dir/maps" 2>"$dir/err"
	check 'it fails' test $? = 1
	err_has '/dev/dri/renderD128'
	check 'it writes nothing' test -z "$(ls "$dir/maps")"
done
"$harvest" --directory="$dir/maps" 2>"$dir/err"
check 'it writes the map of the card alone whose caches are wrong' test "$(cat "$dir"/maps/*)" = '8 8 8 6 6 6 8 8 8 6 6 6 '
ls /sys/class/kfd/kfd/proc >"$dir/out"
check 'it has not opened /dev/kfd' test ! -s "$dir/out"
arbitrate
ends 0 gpus --json
json_out '[.[].harvest_known] == [true, true] and .[0].cus_per_shader_engine == [[16, 14, 12, 16, 14, 12]]'
ends 0 plan --gpu=0 --cus=42 --json
json_out '.partitions[0] | .effective_cus == 42 and (.gaps | index("shader-engines") | not)'
finish
