# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=sh disable=SC2034
#
# Functions of the scripts. Options of run and kernel:
#   --prepare      make the image, and run no test
#   --if-prepared  exit with 77 if there is no image; tests/run --long makes it
#   --if-long      exit with 77, except under tests/run --long
#   --suite=NAME   run, package, suites: the release of Debian; default: the one that runs here
# Without an option the script makes the image if it is missing, and runs the test. GPUARB_IMAGES is the
# directory of the images; default: build/system.
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/system
images=${GPUARB_IMAGES:-$work}
known_suites='bookworm trixie forky sid'
mode=

skip() { echo "skipped: $*"; exit 77; }

# wrong WHY: the command line is wrong.
wrong() { echo "${0##*/}: $*" >&2; exit 2; }

need()
{
	for command; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$command" >/dev/null ||
			skip "no $command: tests/setup system installs it"
	done
}

# The release of this Debian; nothing elsewhere.
# shellcheck disable=SC1091
here_runs() { (. /etc/os-release && [ "$ID" != debian ] || echo "${VERSION_CODENAME:-sid}"); }

# The known releases but that of here.
other_suites() { for name in $known_suites; do [ "$name" = "$(here_runs)" ] || echo "$name"; done; }

# take_suite NAME: sets suite, and out, the directory of what is built for it.
take_suite()
{
	suite=$1
	case " $known_suites $(here_runs) " in
	*" $suite "*) ;;
	*) wrong "unknown suite '$suite': use one of $known_suites" ;;
	esac
	out=$work/$suite
	within=
	if [ "$suite" = "$(here_runs)" ]; then
		out=$work
	else
		within="$here/enter $images/$suite/build"
	fi
}

take_options()
{
	suite=$(here_runs)
	for option; do
		case $option in
		--prepare) mode=prepare ;;
		--if-prepared) [ -n "${GPUARB_LONG:-}" ] || mode=if-prepared ;;
		--if-long)
			[ -n "${GPUARB_LONG:-}" ] ||
				skip "tests/system/${0##*/} is part of tests/run --long"
			;;
		--suite=*) suite=${option#*=} ;;
		*) wrong "--prepare, --if-prepared, --if-long, --suite=NAME or nothing; not $option" ;;
		esac
	done
	[ -n "$suite" ] || skip "this is no Debian: --suite=NAME chooses a release to test on"
	take_suite "$suite"
}

# prepared IMAGE KEY: whether IMAGE is complete and was made from the inputs of today.
prepared() { [ -e "$1" ] && [ -f "$1.key" ] && [ "$(cat "$1.key")" = "$2" ]; }

# prepare_or_skip IMAGE [SCRIPT]: with --if-prepared exits with 77, otherwise says that IMAGE is made now.
# SCRIPT --prepare makes it; default: this script.
prepare_or_skip()
{
	state='is missing'
	[ ! -e "$1" ] || state='was made from other inputs'
	[ ! -e "$1.new" ] || state='is half made'
	[ "$mode" != if-prepared ] || skip "the image $1 $state:" \
		"tests/system/${2:-${0##*/}} --prepare${suite:+ --suite=$suite} makes it"
	echo "making $1, which $state…"
	mkdir -p "$(dirname "$1")" "$out"
}

# prepare_suite KIND: makes the image of the suite if necessary. Kinds: image.
prepare_suite()
{
	prepared "$images/$suite/$1" "$("$here/image" --key "$suite" "$1")" || {
		prepare_or_skip "$images/$suite/$1" run
		"$here/image" "$suite" "$1" "$images/$suite/$1" || exit 1
	}
}

# Build directories are not part of the tree.
list_files()
{
	git ls-files --cached --others --exclude-standard 2>/dev/null ||
		find . -path './build*' -prune -o -path ./.git -prune -o ! -type d -printf '%P\n'
}

# git also lists files that were removed.
files_of_tree()
{
	list_files | LC_ALL=C sort -u | while read -r file; do
		[ ! -f "$file" ] || printf '%s\n' "$file"
	done
}
