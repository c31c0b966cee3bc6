#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Every C file is formatted as .clang-format says. To format the tree: check-format.sh SOURCE --fix
#
#	check-format.sh SOURCE [--fix]
#
# Left out: the kernel's headers (tests/kfdsim/uapi) and the kernel module (tests/system/fakekfd),
# which follow the kernel's style.
set -eu
cd "$1"
command -v clang-format >/dev/null || { echo "skipped: clang-format is not installed"; exit 77; }
mode='--dry-run --Werror'
[ "${2:-}" != --fix ] || mode=-i
find client daemon dbus libgpuarb tests docs -name uapi -prune -o -name fakekfd -prune -o \
	\( -name '*.[ch]' -o -name '*.cc' \) -type f -print |
	xargs clang-format $mode
