#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# check-glibc.sh LIBRARY: the library loads with the glibc of Debian 11, into programs that do not use threads either.
set -eu
most=GLIBC_2.31
command -v objdump >/dev/null || { echo 'skipped: there is no objdump'; exit 77; }
versions=$(objdump -T "$1" | grep -o 'GLIBC_[0-9.]*' | sort -u)
[ -n "$versions" ] || { echo "$1 needs no version of glibc"; exit 1; }
[ "$(printf '%s\n' "$versions" "$most" | sort -V | tail -n 1)" = "$most" ] || {
	echo "$1 needs more than $most: libgpuarb/agent/old-glibc.h"
	objdump -T "$1" | grep GLIBC_ | awk '{ print $(NF - 1), $NF }' | sort -Vr | head -n 20
	exit 1
}
# Before glibc 2.34, libc.so has neither threads nor dlsym().
for needed in libpthread.so.0 libdl.so.2; do
	objdump -p "$1" | grep -q "NEEDED *$needed" || { echo "$1 does not load $needed"; exit 1; }
done
