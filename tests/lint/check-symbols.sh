#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# check-symbols.sh LIBRARY SYMBOLS HEADER [CPPFLAG…]: what libgpuarb.so exports, what gpuarb.sym
# lists, what the sources beside it mark with GPUARB_EXPORT and what gpuarb.h declares are the
# same functions. Silent where they are.
[ $# -ge 3 ] || { echo "usage: $0 LIBRARY SYMBOLS HEADER [CPPFLAG…]" >&2; exit 2; }
library=$1 symbols=$2 header=$(realpath "$3") sources=$(dirname "$2")
shift 3
root=${header%/libgpuarb/*}
dir=$(mktemp -d) || exit 2
trap 'rm -r "$dir"' EXIT

names() {
	grep -oE 'gpuarb_[a-z0-9_]+' | sort -u
}

# Each with its version: nothing goes out without one.
nm -D --defined-only "$library" | sed -n 's/^[0-9a-f]* T \(.*@@GPUARB_[0-9A-Z_]*\)$/\1/p' |
	names >"$dir/library"
nm -D --defined-only "$library" | grep -vE ' A GPUARB_[0-9A-Z_]+(@@GPUARB_[0-9A-Z_]+)?$' |
	grep -vE ' T (gpuarb_[a-z0-9_]+@@GPUARB_[0-9A-Z_]+|ioctl)$' >"$dir/stray"
sed 's,/\*.*\*/,,' "$symbols" | grep ';' | names >"$dir/symbols"

# Macros define some of them. The name stands before the first parenthesis, on that line or the next ones.
find "$sources" -name "*.c" ! -path "$sources/hip/*" ! -path "$sources/rt/*" | while read -r source; do
	# shellcheck disable=SC2046
	"${CC:-cc}" $(pkg-config --cflags dbus-1) "$@" -D_GNU_SOURCE -I"$root" -E -P "$source"
done | tr '\n' ' ' | grep -oE 'visibility\("default"\)\)\) [^(]*\(' | sed 's/ *($//' |
	grep -oE 'gpuarb_[a-z0-9_]+$' | sort -u >"$dir/sources"

# Declarations, without comments, macros and types.
printf '#include "%s"\n' "$header" | "${CC:-cc}" "$@" -E -P -x c - | tr '\n' ' ' |
	grep -oE 'gpuarb_[a-z0-9_]+ ?\(' | names >"$dir/header"

status=0
for which in library sources header; do
	[ -s "$dir/$which" ] || { echo "$which: no function at all"; status=1; }
	comm -3 "$dir/symbols" "$dir/$which" >"$dir/difference"
	if [ -s "$dir/difference" ]; then
		echo "left: only in $symbols; right: only in the $which"
		cat "$dir/difference"
		status=1
	fi
done
if [ -s "$dir/stray" ]; then
	echo "$library exports what has no version of ours:"
	cat "$dir/stray"
	status=1
fi
exit $status
