# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The journal has the events of each lease, tenant and GPU.

plays_a_story()
{
	hold alice film reserve --name=film --class=realtime --shader-engines=1 &&
		hold bob paper reserve --name=paper --cus=15 || return
	! as bob gpuarbctl reserve --cus=60 && ids=("$(lease film)" "$(lease paper)") &&
		systemctl restart gpuarbd && let_go film && let_go paper && soon no_leases &&
		journalctl --sync
}

# story FIELD=VALUE: the events in their order.
story()
{
	journalctl -b -q --no-pager -o json "$@" | jq -r '
		{"0f081a939f064962a08405ece957e56d": "granted",
		 "ad921a33757a42eb932471cd1aba2c42": "refused",
		 "029fff1b9ae141989d24011da9e29d14": "ended",
		 "7edeed42ca4d41b283d96ebc3c95240c": "adopted"}[.MESSAGE_ID] // .MESSAGE' |
		paste -s -d ' '
}

tells_of_a_lease()
{
	same "$(story "GPUARB_LEASE=${ids[0]}")" 'granted adopted ended' &&
		same "$(story "GPUARB_LEASE=${ids[1]}")" 'granted adopted ended'
}

# The events of a tenant are of its users only.
tells_of_a_tenant()
{
	[[ $(story GPUARB_TENANT=lab) == *'granted refused adopted ended' ]] &&
		same "$(journalctl -b -q -o json GPUARB_TENANT=lab | jq -r .GPUARB_UID | sort -u)" 1002 &&
		same "$(journalctl -b -q -o json GPUARB_TENANT=studio | jq -r .GPUARB_UID | sort -u)" 1001
}

tells_of_a_gpu()
{
	same "$(journalctl -b -q -o json GPUARB_GPU=0000:03:00.0 | jq -r '.GPUARB_LEASE // empty' |
		grep -x -e "${ids[0]}" -e "${ids[1]}" | sort | uniq -c)" \
		"$(printf '%7d %s\n' 3 "${ids[0]}" 3 "${ids[1]}")"
}

explains()
{
	entries granted GPUARB_LEASE="${ids[0]}" -x -o short |
		grep -A 3 "Subject: Lease ${ids[0]} was granted" | grep man:gpuarbd &&
		entries refused GPUARB_UID=1002 -x | grep 'Subject: User 1002 was refused a lease' &&
		entries adopted GPUARB_LEASE="${ids[1]}" -x | grep "Subject: Lease ${ids[1]} was recovered"
}

# Only revoked leases have the level notice.
has_its_levels()
{
	entries granted PRIORITY=6 | grep -q . && entries refused PRIORITY=6 | grep -q . &&
		entries adopted PRIORITY=6 | grep -q . && entries ended PRIORITY=6 | grep -q . &&
		! entries granted PRIORITY=5 | grep .
}

check 'leases are granted, refused, recovered and released' plays_a_story
check 'journalctl GPUARB_LEASE= shows the events of a lease' tells_of_a_lease
check 'journalctl GPUARB_TENANT= shows the events of a tenant, and of no other' tells_of_a_tenant
check 'journalctl GPUARB_GPU= shows the events of a GPU' tells_of_a_gpu
check 'journalctl -x explains the events' explains
check 'granted, refused, recovered and released have the level info' has_its_levels
