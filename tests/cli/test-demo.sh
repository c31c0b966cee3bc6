#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# The demonstration of the README runs to its end. It builds and installs gpuarb: part of
# tests/run --long.
set -eu

if [ -z "${GPUARB_LONG:-}" ]; then
	echo "skipped: tests/demo is part of tests/run --long"
	exit 77
fi
said=$(mktemp)
trap 'rm -f "$said"' EXIT
"$GPUARB_SOURCE_ROOT/tests/demo" >"$said" 2>&1 || { cat "$said"; exit 1; }
for what in 'HSA_CU_MASK=0:' 'waits for ' 'refused now' 'leases and masks are what they were' 'Done.'; do
	grep -qF "$what" "$said" || { cat "$said"; echo "it does not say: $what"; exit 1; }
done
