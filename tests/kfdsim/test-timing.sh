#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What kfdsim-timing prints, on tables of the test's.
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

unset GPUARB_SHARED
run; is 'no directory' 2 $?
has err 'Neither DIRECTORY nor $GPUARB_SHARED is given'
run a b; is 'two directories' 2 $?
has err 'kfdsim-timing [--json] [DIRECTORY]'
run --what; is 'an unknown option' 2 $?
for player in '' 1024 1024: 1024:0x 1024:0x0 512:0x1 1024:1 1024:0x1g 256:0x1000000000000000 \
	1024:0x11111111111111111; do
	run --play ${player:+"$player"}; is "to play '$player'" 2 $?
done
run --play 256:1 256:0x1 256:0x1 256:0x1 256:0x1; is 'five players' 2 $?
run --json --play 256:0x1; is 'JSON of a play' 2 $?
run --help; is help 0 $?
has out 'kfdsim-timing [--json] [DIRECTORY]'
run "$dir/none"; is 'no tables' 1 $?
has err "$dir/none/cu_mask_distributed.tsv: No such file or directory"

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
GPUARB_SHARED=$dir run; is 'from the environment' 0 $?

command -v jq > /dev/null || { echo 'skipped: no jq'; exit $((failed ? 1 : 77)); }
run --json "$dir/data"; is json 0 $?
is 'what JSON says' 'true 4 44.4783 ab MM256  beside -      isolated true null 0' "$(jq -r '
	"\(.model) \(.tables | length) \(.tables[0].rows[0].measured) " +
	"\(.tables[1].rows[0].what) \(.tables[1].rows[0].apart != null) " +
	"\(.tables[2].rows[1].measured) \(.tables[3].compared)"' "$dir/out")"

# What is played is what is compared.
run --play 256:0xfffffffffffffff; is 'a play' 0 $?
is 'what is played' "$("$program" --json "$dir/data" | jq '.tables[1].rows[0].model')" \
	"$(jq . "$dir/out")"
run --play 1024:0xd55555555555555 1024:0xaaaaaaaaaaaaaaa; uneven=$(cat "$dir/out")
run --play 1024:0x555555555555555 1024:0xaaaaaaaaaaaaaaa; even=$(cat "$dir/out")
is 'a CU in common costs' 1 "$(jq -n "if $uneven > 5 * $even then 1 else 0 end")"
exit $failed
