#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What systemd says of the units: nothing in them that it does not know, and an exposure of 2.0 at
# most for each service.
#
#	check-units.sh UNIT…
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
command -v systemd-analyze >/dev/null || { echo "skipped: there is no systemd-analyze"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0

# A program that is not installed yet is no fault of its unit.
for unit; do
	sed 's,^ExecStart=/.*,ExecStart=/bin/true,' "$unit" >"$dir/${unit##*/}"
done
cd "$dir"

# It tells of the machine's own units, too.
SYSTEMD_UNIT_PATH=$dir: systemd-analyze verify --man=no -- ./* >told 2>&1 || status=1
grep gpuarb told && status=1
[ "$status" = 0 ] || cat told

# gpuarbd parses what the script of either prints; systemd has $$ for $.
for unit; do
	case $unit in
	*gpuarb-[mh]qds@.service | *gpuarb-userqs@.service)
		script=$(sed -n 's,^ExecStart=sh -c "cd /sys/kernel/debug || {.*>&2; exit 1; }; \(.*\)"$,\1,p' "$unit" | sed 's/\$\$/$/g')
		grep -qxF "	.script = \"$script\"," "$source/daemon/helpers/debugfs-reader.c" ||
			{ echo "$unit does not run what debugfs-reader.c does: $script"; status=1; } ;;
	esac
done

# systemd takes the stricter of two rules for a path.
for unit in $(grep -l '^ReadWritePaths=.*/sys/fs/bpf' ./*.service); do
	! grep '^ProtectKernelTunables=yes' "$unit" || { echo "$unit: that makes /sys/fs/bpf read-only"; status=1; }
done

for unit in *.service; do
	score=$(systemd-analyze security --no-pager --offline=true --threshold=20 "./$unit" 2>&1) ||
		{ echo "$score"; echo "$unit: more than 2.0"; status=1; }
	echo "$score" | sed -n 's/^→ //p'
done
exit $status
