#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# kfdsim-timing, also with wrong arguments.
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

run; is 'no argument' 2 $?
has err 'kfdsim-timing --play'
run --what; is 'an unknown option' 2 $?
for player in '' 1024 1024: 1024:0x 1024:0x0 512:0x1 1024:1 1024:0x1g 256:0x1000000000000000 \
	1024:0x11111111111111111; do
	run --play ${player:+"$player"}; is "to play '$player'" 2 $?
done
run --play 256:1 256:0x1 256:0x1 256:0x1 256:0x1; is 'five players' 2 $?
run --help; is help 0 $?
has out 'kfdsim-timing --play'

run --play 1024:0xd55555555555555 1024:0xaaaaaaaaaaaaaaa; uneven=$(cat "$dir/out")
run --play 1024:0x555555555555555 1024:0xaaaaaaaaaaaaaaa; even=$(cat "$dir/out")
is 'a CU in common costs' 1 "$(awk "BEGIN { print ($uneven > 5 * $even) }")"
exit $failed
