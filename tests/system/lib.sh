# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=sh disable=SC2034
#
# What run and kernel share. Both take
#   --prepare      only make what is kept in build/system for the next time
#   --if-prepared  leave with 77 where that was not done, but for tests/run --long, which does it
#   --if-long      leave with 77 but for tests/run --long
# and without any do what is needed.
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/system
mode=

skip() { echo "skipped: $*"; exit 77; }

need()
{
	for command; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$command" >/dev/null ||
			skip "no $command: tests/setup system installs it"
	done
}

take_options()
{
	case ${1:-} in
	'') ;;
	--prepare) mode=prepare ;;
	--if-prepared) [ -n "${GPUARB_LONG:-}" ] || mode=if-prepared ;;
	--if-long) [ -n "${GPUARB_LONG:-}" ] || skip "tests/system/${0##*/} is part of tests/run --long" ;;
	*)
		echo "${0##*/}: --prepare, --if-prepared, --if-long or nothing; not $1" >&2
		exit 2
		;;
	esac
}

# prepared FILE KEY: whether that is there, and what would be made today.
prepared() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }

# Where it was not: leaves, or says what happens now.
prepare_or_skip()
{
	[ "$mode" != if-prepared ] ||
		skip "no ${1##*/} in build/system: tests/system/${0##*/} --prepare makes it"
	echo "making $1…"
	mkdir -p "$work"
}
