# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154,SC2016
#
# Random arguments for every method of every object on the system bus, by a user and by root.

# called_by USER: the program ends with 0 if each call was answered, and gpuarbd was not started again.
called_by()
{
	local pid
	pid=$(of_unit MainPID)
	as "$1" /opt/told/call "$seed" 3000 && same "$(of_unit MainPID)" "$pid" &&
		[ "$(of_unit ActiveState)" = active ]
}

leaves_others_their_lease()
{
	local before
	hold alice novel reserve --name=novel --cus=15 || return
	before=$(gpuarbctl show "$(lease novel)" --json)
	called_by bob && same "$(gpuarbctl show "$(lease novel)" --json)" "$before"
}

# Root may have revoked the lease, and drained the GPU.
serves_others_afterwards()
{
	called_by root || return
	kill "${client[novel]}" 2>/dev/null
	wait "${client[novel]}"
	unset "client[novel]"
	gpuarbctl undrain 0 && gpuarbctl reload && soon no_leases &&
		fails 0 '' as alice gpuarbctl run --cus=1 --shape=any -- true
}

seed=$RANDOM
check "calls of a user with random arguments are answered (seed $seed)" called_by bob
check "such calls leave the lease of another user as it is (seed $seed)" leaves_others_their_lease
check "after such calls by root, gpuarbd serves other users (seed $seed)" serves_others_afterwards
