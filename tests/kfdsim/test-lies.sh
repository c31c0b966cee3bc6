#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Topologies that lie: each is served as it is, or refused with a sentence; none is a crash.

cd "$GPUARB_ROOT/tests/kfdsim" || exit 1
# shellcheck source=tests/kfdsim/rig.sh
. ./rig.sh

rig_need jq
rig_need_kfdsim

lie=$dir/lie
nodes=$lie/class/kfd/kfd/topology/nodes
shown=/sys/class/kfd/kfd/topology/nodes

# A machine of two GPUs, of which one command makes another.
lies()
{
	rm -rf "$lie"
	mkdir "$lie"
	"$FAKE_SYSFS" "$lie" "$GPUARB_ROOT/conf/gpus" radeon-vii mi210 >/dev/null || exit 1
	"$@"
}
served() { ends 0 kfdsim --topology "$lie" -- cat "$shown/$1"; }
refused()
{
	fails 125 "$1" kfdsim --topology "$lie" -- true
}
write() { printf '%s\n' "$2" >"$nodes/$1"; }

lies true
served 2/gpu_id
out_is 4353
ends 0 kfdsim --topology "$lie" -- cat /sys/kernel/debug/kfdsim/state
json '[.gpus[].gpu_id] == [4096, 4353]'

lies write 2/gpu_id 4096
served 2/gpu_id
out_is 4096
err_has '0000:03:00.0'
ends 0 kfdsim --topology "$lie" -- cat /sys/kernel/debug/kfdsim/state
json '[.gpus[].gpu_id] == [4096]'

lies write 2/gpu_id 70000
refused 'gpu_id 70000: wanted: 1 to 65535'

lies write 1/gpu_id seven
served 1/gpu_id
out_is seven
err_has 'nodes/1/gpu_id'

lies rm "$nodes/1/properties"
served 2/gpu_id
err_has 'nodes/1/properties'

# A pipe is no file, and an endless file ends.
lies rm "$nodes/1/caches/0/properties"
mkfifo "$nodes/1/caches/0/properties" || exit 1
ends 0 kfdsim --topology "$lie" -- sh -c "cd $shown/1/caches/0 && test ! -e properties"

lies truncate -s 1M "$nodes/1/caches/0/properties"
ends 0 kfdsim --topology "$lie" -- sh -c "cat $shown/1/caches/0/properties | wc -c"
out_is 65535

lies rm -r "$nodes/2/caches"
served 2/gpu_id
err_has '104 CUs'

lies rm -r "$nodes/0"
served 1/gpu_id
out_is 4096

lies sed -i /drm_render_minor/d "$nodes/2/properties"
refused 'no drm_render_minor of GPU 4353'

lies rm "$nodes/1/gpu_id" "$nodes/2/gpu_id"
refused '0 GPUs'

lies rm -r "$nodes"
refused 'No such file or directory'

lies rm -r "$lie/class"
refused "$lie"

rm -rf "$lie"
mkdir -p "$lie/class/kfd/kfd"
ln -s topology "$lie/class/kfd/kfd/topology"
refused 'symbolic links'

rig_done
