#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-stack.sh CLIENT-HIP: AMD's user space, unmodified, on the emulated driver: HIP, and with it ROCr and libhsakmt.

[ $# = 1 ] || { echo 'skipped: no HIP (libamdhip64-dev)'; exit 77; }
hip=$(realpath "$1")
cd "$GPUARB_ROOT/tests/kfdsim" || exit 1
# shellcheck source=tests/kfdsim/rig.sh
. ./rig.sh
rig_need jq
rig_need_kfdsim

# Profile, target, what HIP counts, and what ROCr has to be told.
profiles='radeon-vii gfx906 60 NOTHING=
vega10 gfx900 64 NOTHING=
mi210 gfx90a 104 NOTHING=
v620 gfx1030 36 NOTHING=
rx6900xt gfx1030 40 NOTHING=
mi300x-cpx gfx90a 38 HSA_OVERRIDE_GFX_VERSION=9.0.10'

# Streams of all kinds, and memory that comes back as it was. Beside the four there are the
# utility queue and the one of the null stream. HIP counts WGPs where there are such, and from HIP 5.7 on a bit
# of a stream's mask is a WGP.
# shellcheck disable=SC2016 # of the inner shell
while read -r profile target counted override; do
	ends 0 kfdsim --gpu "$profile" -- sh -c '"$@" >&2 && cat /sys/kernel/debug/kfdsim/state' sh \
		env "$override" "$hip" --streams 2 --masked 0x3ff00ff --high --work --copy
	err_has "$target"
	err_has "$counted CUs"
	err_has 'copy: the same'
	json_out '.processes | length == 1 and .[0].alive == false'
	json_out '.processes[0].queues | map(select(.type == "compute")) | length == 6'
	json_out '[.processes[0].queues[] | select(.mask == "0x3ff00ff" or .mask == "0xfffff0000ffff")] | length == 1'
	json_out '[.processes[0].queues[] | select(.type == "compute" and .priority >= 11)]
		| length == 1'
	json_out '[.processes[0].queues[] | .copied] | add >= 2097152'
	json_out '.gpus[0] | .compute_queues == 0 and .sdma_queues == 0 and .processes == 0'
	! command -v rocminfo >/dev/null || shows "$target" kfdsim --gpu "$profile" -- env "$override" rocminfo
done <<<"$profiles"

# The driver of Linux 6.12 looks at every buffer of a queue.
ends 0 kfdsim --kfd 1.17 --gpu mi210 -- "$hip" --streams 1 --masked 0x3ff00ff --work --copy
rig_done
