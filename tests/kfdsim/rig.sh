# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What tests of and on the emulated driver share. KFDSIM is the program.

# shellcheck source=tests/kfdsim/absent.sh
. "${BASH_SOURCE[0]%/*}/absent.sh"
# shellcheck source=tests/cli/ctl-rig.sh
. "${BASH_SOURCE[0]%/*}/../cli/ctl-rig.sh"

kfdsim() { "$KFDSIM" "$@"; }

# Leaves with 77 where FUSE is not to be had; every other trouble is a failure.
rig_need_kfdsim()
{
	kfdsim --gpu radeon-vii -- true 2>"$dir/err" && return
	kfdsim_absent "$(cat "$dir/err")"
	cat "$dir/err"
	exit 1
}

# play OPTION… -- ARGUMENT…: this script again, in a machine that kfdsim makes with these options: INSIDE is set
# there. An argument with a slash is a path, which meson has from its own directory.
play()
{
	local options=() arguments=() argument

	while [ "$1" != -- ]; do options+=("$1"); shift; done
	for argument in "${@:2}"; do
		case $argument in */*) argument=$(realpath "$argument") ;; esac
		arguments+=("$argument")
	done
	INSIDE=yes kfdsim "${options[@]}" -- "$BASH" "$0" "${arguments[@]}"
	case $? in
	0) ;;
	77) exit 77 ;;
	*) rig_need_kfdsim; failed=1 ;;
	esac
}

# ends CODE COMMAND…: runs it; what it printed is in $dir/out and $dir/err.
ends()
{
	local wanted=$1 code
	shift
	said="$*"
	"$@" >"$dir/out" 2>"$dir/err" </dev/null
	code=$?
	[ "$code" = "$wanted" ] || complain "$said: ended with $code, not $wanted"
}

out_is() { [ "$(cat "$dir/out")" = "$1" ] || complain "$said: not '$1'"; }
