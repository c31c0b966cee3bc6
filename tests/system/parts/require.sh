# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154,SC2016
#
# Leases are required: sessions of users have no access to the device of KFD and to render nodes, and the scope of a
# lease has (docs/examples/require). The nodes here are of a
# device that every kernel has, and that systemd allows in no unit by itself.
scope=/usr/share/doc/gpuarb/examples/require/gpuarb-scope

has_the_devices()
{
	local minor
	minor=$(awk '$2 == "loop-control" || $2 == "autofs" || $2 == "userfaultfd" { print $1; exit }' /proc/misc)
	mkdir -p /dev/dri/by-path && mknod -m 666 /dev/kfd c 10 "$minor" && mknod -m 666 /dev/dri/renderD128 c 10 "$minor" &&
		ln -s ../renderD128 /dev/dri/by-path/pci-0000:03:00.0-render && rm -f "${policy%/*}"/* && gpuarbctl reload &&
		mkdir -p /etc/systemd/system/user.slice.d &&
		cp "${scope%/*}/user.slice.conf" /etc/systemd/system/user.slice.d/50-gpuarb.conf && systemctl daemon-reload
}

# session UNIT COMMAND…: runs the command as bob below user.slice, as a login does.
session()
{
	local unit=$1
	shift
	systemd-run -q --unit="$unit" --slice=user.slice -p User=bob -p Group=bob "$@"
}

# What a program does that opens the devices when it is in the scope of a lease, at the latest after the file $1 exists.
program='until grep -q gpuarb-lease /proc/self/cgroup || [ -e "$1" ]; do sleep 0.1; done
	: <>/dev/kfd && : <>/dev/dri/renderD128 && : >"$2" && exec sleep infinity'

is_closed_to_sessions()
{
	: >/run/now
	! session plain --wait --pipe sh -c ': <>/dev/kfd' && ! session plain2 --wait --pipe sh -c ': <>/dev/dri/renderD128' &&
		# A service outside of user.slice is not restricted: gpuarb-operations(7) says so.
		systemd-run -q --wait --pipe -p User=bob sh -c ': <>/dev/kfd' || return
	# A lease alone does not open it.
	! session leased --wait --pipe gpuarbctl run --cus=4 -- sh -c "$program" sh /run/now /tmp/opened && ! [ -e /tmp/opened ]
}

job_of() { gpuarbctl list --json | jq -e "map(select(.owner.pid == $(systemctl show -P MainPID "$1"))) | length == 1"; }

is_open_in_the_scope_of_a_lease()
{
	local pid
	session scoped gpuarbctl run --cus=4 --gpu=0 -- sh -c "$program" sh /run/never /tmp/opened && soon job_of scoped || return
	pid=$(systemctl show -P MainPID scoped)
	fails 125 'has no lease' env SUDO_UID="$(id -u carol)" "$scope" --move "$pid" &&
		fails 125 'has no lease' env SUDO_UID="$(id -u bob)" "$scope" --move 1 &&
		fails 125 usage env SUDO_UID="$(id -u bob)" "$scope" --move 1x &&
		! [ -e /tmp/opened ] && SUDO_UID=$(id -u bob) "$scope" --move "$pid" && soon [ -e /tmp/opened ] &&
		grep -q "^0::/gpuarb.slice/gpuarb-lease-.*-$pid.scope" "/proc/$pid/cgroup" &&
		kill "$pid" && soon no_leases && soon eval '[ -z "$(systemctl list-units --plain --no-legend "gpuarb-lease-*")" ]'
}

is_open_again()
{
	rm /etc/systemd/system/user.slice.d/50-gpuarb.conf && systemctl daemon-reload &&
		session again --wait --pipe sh -c ': <>/dev/kfd' && rm -r /dev/kfd /dev/dri
}

check 'the devices of GPUs are there, and user.slice.conf' has_the_devices
check 'a session opens no device of a GPU, with a lease or without' is_closed_to_sessions
check 'the scope of a lease opens them, for the user of the lease alone' is_open_in_the_scope_of_a_lease
check 'without user.slice.conf sessions open them again' is_open_again
printf '[daemon]\nbackend = simulated\n' >"$settings"
systemctl restart gpuarbd
