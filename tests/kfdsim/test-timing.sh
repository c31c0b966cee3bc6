#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# kfdsim-timing on small tables, on those of the source tree, and on wrong arguments.
#
#	test-timing.sh KFDSIM-TIMING
set -u
program=${1:?}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# is WHAT WANTED GOT
is() {
	[ "$2" = "$3" ] && return
	echo "$1: wanted '$2', got '$3'"
	failed=1
}

# has FILE TEXT
has() {
	grep -qF -- "$2" "$dir/$1" && return
	echo "no '$2' in $1:"
	cat "$dir/$1"
	failed=1
}

run() { "$program" "$@" > "$dir/out" 2> "$dir/err"; }

run a b; is 'two directories' 2 $?
has err 'kfdsim-timing [DIRECTORY]'
run --what; is 'an unknown option' 2 $?
for player in '' 1024 1024: 1024:0x 1024:0x0 512:0x1 1024:1 1024:0x1g 256:0x1000000000000000 \
	1024:0x11111111111111111; do
	run --play ${player:+"$player"}; is "to play '$player'" 2 $?
done
run --play 256:1 256:0x1 256:0x1 256:0x1 256:0x1; is 'five players' 2 $?
run --help; is help 0 $?
has out 'kfdsim-timing [DIRECTORY]'
run "$dir/none"; is 'no tables' 1 $?
has err "$dir/none/cu_mask_distributed.tsv"

mkdir "$dir/data"
cat > "$dir/data/cu_mask_distributed.tsv" << 'END'
active_cus	mask_hex	se0	se1	se2	se3	med
4	0xf	1	1	1	1	44.4783
END
cat > "$dir/data/sharing.tsv" << 'END'
commit	measured	competitor	partitioning	mask	competitor_mask	med
a"\b	MM256	-	isolated	0xfffffffffffffff	-	5.0326
END
cat > "$dir/data/oversubscription.tsv" << 'END'
gpu	mode	mpi	ranks	compute_queues	total_s	driver_msg
MI300A	SPX	m	2	4	0.5	none
MI300A	SPX	m	2	26	hang	queues
END
printf 'version\tranks\tgpu_max_hw_queues\ttotal_s\n' > "$dir/data/oversubscription_spx.tsv"

run "$dir/data"; is 'a directory' 0 $?
has out 'of the model, not of hardware'
has out '4 CUs: 1/1/1/1'
has out 'known not to fit'
has out 'within the limits'
has out hangs

# Without DIRECTORY: the tables of the source tree.
run; is 'the tables of the source tree' 0 $?
is 'tables with rows' 4 "$(grep -c 'model, [1-9][0-9]* of [0-9]* rows compared' "$dir/out")"

# --play computes the same time as the comparison.
run --play 256:0xfffffffffffffff; is 'a play' 0 $?
played=$(printf %.3f "$(cat "$dir/out")")
run "$dir/data"; has out " $played ms"
run --play 1024:0xd55555555555555 1024:0xaaaaaaaaaaaaaaa; uneven=$(cat "$dir/out")
run --play 1024:0x555555555555555 1024:0xaaaaaaaaaaaaaaa; even=$(cat "$dir/out")
is 'a CU in common costs' 1 "$(awk "BEGIN { print ($uneven > 5 * $even) }")"
exit $failed
