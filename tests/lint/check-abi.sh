#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Compares libgpuarb with the ABI of the last release: symbols may be added, and nothing may be removed
# or changed. tests/data/abi/README.md says how to make the file of a release.
#
#	check-abi.sh LIBRARY HEADERS ABI
set -eu
command -v abidiff >/dev/null || { echo "skipped: no abidiff: tests/setup package installs it"; exit 77; }
library=$1 headers=$2 abi=$3

# Without types only the names of the symbols would be compared.
readelf -S "$library" | grep -q debug_info || { echo "$library has no debug information"; exit 1; }

# Exit status: 1 and 2 are errors, 4 is a change, 8 an incompatible change.
status=0
abidiff --no-added-syms --headers-dir1 "$headers" --headers-dir2 "$headers" \
	--suppressions "${abi%/*}/compatible.ini" "$abi" "$library" || status=$?
[ "$status" = 0 ] || echo "libgpuarb.so.0 differs from $abi (abidiff: $status)"
exit "$status"
