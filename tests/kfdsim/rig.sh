# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What tests of and on the emulated driver share. KFDSIM is the program, KFDSIM_FRONT the way
# that it is asked to go.

# shellcheck source=tests/kfdsim/absent.sh
. "${BASH_SOURCE[0]%/*}/absent.sh"
# shellcheck source=tests/rigs/await.sh
. "${BASH_SOURCE[0]%/*}/../rigs/await.sh"

front=${KFDSIM_FRONT:-fuse}
kfdsim() { "$KFDSIM" --front "$front" "$@"; }

dir=$(mktemp -d) || exit 1
failed=0
trap 'rm -rf "$dir"' EXIT

# Leaves with 77, a skipped test, where a command is missing.
rig_need()
{
	local command
	for command; do
		command -v "$command" >/dev/null || { echo "skipped: no $command"; exit 77; }
	done
}

# Leaves with 77 where no front end can be had; every other trouble is a failure.
rig_need_kfdsim()
{
	kfdsim --gpu radeon-vii -- true 2>"$dir/err" && return
	kfdsim_absent "$(cat "$dir/err")"
	cat "$dir/err"
	exit 1
}

complain()
{
	failed=$((failed + 1))
	local of=1
	while [ "${BASH_SOURCE[of]}" != "$0" ] && [ -n "${BASH_SOURCE[of + 1]:-}" ]; do of=$((of + 1)); done
	echo "${BASH_SOURCE[of]##*/}:${BASH_LINENO[of - 1]}: $1"
	sed 's/^/  out: /' "$dir/out"
	sed 's/^/  err: /' "$dir/err"
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

out_has() { grep -qF -- "$1" "$dir/out" || complain "$said: no '$1' on standard output"; }
err_has() { grep -qF -- "$1" "$dir/err" || complain "$said: no '$1' on standard error"; }
out_is() { [ "$(cat "$dir/out")" = "$1" ] || complain "$said: not '$1'"; }
fails() { ends "$1" "${@:3}"; err_has "$2"; } # CODE TEXT COMMAND…
shows() { ends 0 "${@:2}"; out_has "$1"; }    # TEXT COMMAND…
json() { jq -e "$1" "$dir/out" >/dev/null 2>&1 || complain "$said: not so: $1"; }

rig_done()
{
	[ "$failed" = 0 ] || { echo "$failed checks failed"; exit 1; }
}
