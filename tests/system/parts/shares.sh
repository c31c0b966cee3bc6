# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154
#
# A share for containers: its service holds the lease and keeps the file of the CDI device.
share=gpuarb-share@web.service
spec=/run/cdi/gpuarb-share-web.json

device_has() { jq -e --arg value "$1" '.devices[0].containerEdits.env | index([$value])' "$spec"; }
share_runs_anew() { [ "$(systemctl show -P MainPID "$share")" != "$1" ] && device_has GPUARB_EFFECTIVE_CUS=15; }

share_is_a_device()
{
	printf '\n[share web]\ncus = 25%%\nqueues = 4\nprocesses = 2\n' >>"$settings"
	dpkg -i /opt/debs/gpuarb-oci_*.deb && gpuarbctl config check && systemctl start "$share" && soon device_has GPUARB_EFFECTIVE_CUS=15 &&
		same "$(stat -c %a:%U "$spec")" 644:root && [ "$(lease share-web)" ]
}

share_has_one_keeper() { fails 1 "'web'" gpuarbctl cdi web && device_has "GPUARB_LEASE=$(lease share-web)"; }

share_survives_gpuarbd()
{
	local pid id
	pid=$(of_unit MainPID) id=$(lease share-web)
	systemctl kill -s KILL gpuarbd && soon another_runs "$pid" && same "$(lease share-web)" "$id" &&
		device_has "GPUARB_LEASE=$id"
}

device_follows_the_lease()
{
	gpuarbctl resize "$(lease share-web)" --cus=30 && soon device_has GPUARB_EFFECTIVE_CUS=30
}

share_is_held_again()
{
	local pid
	pid=$(systemctl show -P MainPID "$share")
	systemctl kill -s KILL "$share" && soon share_runs_anew "$pid" && device_has "GPUARB_LEASE=$(lease share-web)"
}

share_ends()
{
	systemctl stop "$share" && soon no_leases && [ ! -e "$spec" ] && dpkg -P gpuarb-oci &&
		sed -i '/^\[share web\]/,$d' "$settings"
}

check 'the service of a share makes it a device' share_is_a_device
check 'a second keeper of the share is refused' share_has_one_keeper
check 'the share survives gpuarbd' share_survives_gpuarbd
check 'the device follows the lease of the share' device_follows_the_lease
check 'systemd starts the service again that was killed' share_is_held_again
check 'the device ends with the service' share_ends
