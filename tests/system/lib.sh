# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=sh disable=SC2034
#
# Functions of run and kernel. Options of both:
#   --prepare      make the image in build/system, and run no test
#   --if-prepared  exit with 77 if there is no image; tests/run --long makes it
#   --if-long      exit with 77, except under tests/run --long
# Without an option the script makes the image if it is missing, and runs the test.
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

# prepared FILE KEY: whether the image of FILE exists and was made from the inputs of today.
prepared() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }

# prepare_or_skip IMAGE: with --if-prepared exits with 77, otherwise says that IMAGE is made now.
prepare_or_skip()
{
	[ "$mode" != if-prepared ] ||
		skip "no ${1##*/} in build/system: tests/system/${0##*/} --prepare makes it"
	echo "making $1…"
	mkdir -p "$work"
}
