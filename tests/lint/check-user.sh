#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The service's user, which has one name in all that is installed.
#
#	check-user.sh SOURCE
set -eu
user=gpuarb
status=0

# FILE LINE…: a line of the file each, but for what is before and behind it.
has()
{
	file=$1
	shift
	for line; do
		grep -q "^[[:space:]]*${line}[[:space:]]*\$" "$source/$file" && continue
		echo "$file does not say: $line"
		status=1
	done
}

source=$1
has systemd/gpuarbd.service.in "User=$user" "Group=$user"
has systemd/gpuarb-enforce.socket "SocketUser=$user" "SocketMode=0600"
has systemd/gpuarb-debugfs.socket.in "SocketUser=$user" "SocketMode=0600"
has systemd/gpuarb-budget.socket "SocketUser=$user" "SocketMode=0600"
has systemd/gpuarb-budget@.service.in "CapabilityBoundingSet=CAP_BPF CAP_PERFMON"
has systemd/gpuarb-fdinfo.socket "SocketUser=$user" "SocketMode=0600"
has systemd/gpuarb-fdinfo@.service.in "CapabilityBoundingSet=CAP_SYS_PTRACE" \
	"SystemCallFilter=~@debug @ipc kcmp"
has client/doctor/doctor-service.c "#define USER \"$user\""
has daemon/util/trust.c "#define SERVICE_USER \"$user\" .*"
has systemd/gpuarb.sysusers "u $user .*"
has dbus/org.gpuarb.Arbiter1.service.in "User=$user"
has dbus/org.gpuarb.Arbiter1.conf "<policy user=\"$user\">"
has dbus/org.gpuarb.Arbiter1.policy \
	"<annotate key=\"org.freedesktop.policykit.owner\">unix-user:$user</annotate>"
[ "$(grep -c '<allow own=' "$source/dbus/org.gpuarb.Arbiter1.conf")" = 1 ] ||
	{ echo "the bus lets more than one user have the name"; status=1; }
exit $status
