# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash

# kfdsim_absent TEXT: leaves with 77, a skipped test, if what kfdsim said is that it cannot run on this machine.
kfdsim_absent()
{
	case $1 in
	*'takes CAP_SYS_ADMIN'* | *'no passthrough'* | *'no FUSE here'*)
		echo "skipped: ${1##*$'\n'}"
		exit 77
		;;
	esac
}
