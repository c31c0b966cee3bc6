#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# The scene of the three processes: all of its frames in tests/run --long, else few.
set -eu
frames=180
[ -z "${GPUARB_LONG:-}" ] || frames=10000
exec "$(dirname "$0")/../scenes/three-processes" "$frames"
