# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154
#
# The packages are removed, then purged.

removes()
{
	dpkg -r gpuarb && ended root 8 && ended waiting 8 && kill -0 "${client[command]}" &&
		let_go command
}

# systemd keeps the empty slices of the templates gpuarb-fdinfo@.service and gpuarb-mqds@.service.
leaves_nothing_running()
{
	! pgrep -u gpuarb -a && ! pgrep -a gpuarb &&
		same "$(systemctl list-units --type=service,socket --all --plain --no-legend '*gpuarb*' |
			grep -v not-found)" '' &&
		[ ! -e /run/gpuarb ] && [ ! -e /run/gpuarb-enforce.socket ] && [ ! -e /run/gpuarb-mqds.socket ] &&
		[ ! -e /run/gpuarb-hqds.socket ] && [ ! -e /run/gpuarb-userqs.socket ] && [ ! -e /run/gpuarb-fdinfo.socket ] && [ ! -e /run/gpuarb-probe.socket ] &&
		[ ! -e /run/gpuarb-budget.socket ]
}

frees_the_name()
{
	! busctl list --no-pager | grep gpuarb &&
		fails 1 'not provided\|No such\|unknown' as alice busctl introspect org.gpuarb.Arbiter1 \
			/org/gpuarb/Arbiter1
}

keeps_what_was_configured_until_purged()
{
	keeps_what_was_configured && [ -f "$policy" ]
}

# By the policy of Debian, files of the administrator, users and the log of dpkg stay.
purges()
{
	dpkg -P gpuarb libgpuarb0 && ! find / -xdev -path /proc -prune -o -path /opt -prune -o \
		-name '*gpuarb*' ! -path "$rule" ! -path '/etc/gpuarb*' ! -path '/tmp/*' -print | grep .
}

installs_again() { installs && fails 0 '' as alice gpuarbctl; }

check 'the package is removed while leases are held, and the holders are notified' removes
check 'no process, unit or socket is left' leaves_nothing_running
check 'the bus name is free' frees_the_name
check 'the configuration stays' keeps_what_was_configured_until_purged
check 'no file is left after a purge' purges
check 'the packages can be installed again' installs_again
