# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154,SC2016
#
# A fuzzer (call.c) of all objects on the system bus, by a user and by root. CALL_SECONDS is how long each calls,
# CALL_SEED the seed of both.
interfaces=/usr/share/dbus-1/interfaces/org.gpuarb.Arbiter1.xml
seed=${CALL_SEED:-$RANDOM}
growth=8192 # KiB that gpuarbd may keep: its ledger and its caches have limits

memory() { sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$(of_unit MainPID)/status"; }
process() { echo "$(of_unit ActiveState) $(of_unit MainPID) $(of_unit NRestarts)"; }
calls_of() { sed -n "s/^$1: [0-9]* objects, [0-9]* members, \([0-9]*\) calls.*/\1/p" "/opt/told/calls.$2"; }

# A realtime lease counts the changes of adaptable leases beside it.
shown() { gpuarbctl show "$held" --json | jq 'del(.disturbances)'; }

# calls_by USER [SPARED]: each call was answered, no interface was left out, and gpuarbd was not started again.
calls_by()
{
	local user=$1 running interface
	shift
	running=$(process)
	as "$user" /opt/told/call "$seed" "${CALL_SECONDS:-30}" "$@" >"/opt/told/calls.$user" || return
	while read -r interface; do
		[ "$(calls_of "$interface" "$user")" -gt 0 ] || { echo "no calls of $interface"; return 1; }
	done < <(sed -n 's/.*<interface name="\(.*\)">.*/\1/p' "$interfaces")
	same "$(process)" "$running"
}

is_answered()
{
	hold alice novel reserve --name=novel --cus=15 || return
	cat "$dir/novel" >/opt/told/calls.novel & # a line for each change
	held=$(lease novel)
	before=$(shown)
	calls_by bob
}

leaves_others_their_lease() { same "$(shown)" "$before"; }

# Root may resize it.
keeps_its_lease() { calls_by root "$(object "$held")" && same "$(lease novel)" "$held"; }

# Nothing else is left: the holders of the other leases were closed.
leaves_one_lease() { [ "$(leases)" = 1 ]; }

stays_small()
{
	local now
	now=$(memory)
	[ "$now" -lt $((resident + growth)) ] || { echo "$resident KiB before, $now KiB after"; return 1; }
}

# Root may have revoked the lease, drained the GPU, and frozen what uses it.
serves_others_afterwards()
{
	calls_by root || return
	kill "${client[novel]}" 2>/dev/null
	wait "${client[novel]}"
	unset "client[novel]"
	gpuarbctl undrain 0 && gpuarbctl reload && soon no_leases &&
		fails 0 '' as alice gpuarbctl run --cus=1 --shape=any -- true
}

resident=$(memory)
check "a user's calls with random arguments of all members are answered" is_answered
cat /opt/told/calls.bob
check 'such calls leave the lease of another user as it is' leaves_others_their_lease
check 'the leases of a user who called at random end with that program' soon leaves_one_lease
check 'such calls by root are answered, and a lease that root does not end stays' keeps_its_lease
cat /opt/told/calls.root
check 'the leases of root end with that program' soon leaves_one_lease
check 'gpuarbd keeps no memory of such calls' stays_small
check 'after such calls by root, gpuarbd serves other users' serves_others_afterwards
