# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154,SC2016
#
# Users with different tenants, on one GPU.

takes_a_policy()
{
	cat >"$policy" <<-END
		[tenant studio]
		match-user = alice
		class = realtime
		max-cus = 75%
		[tenant lab]
		match-user = bob
		max-cus = 30
		max-queues = 6
		[tenant *]
		max-leases = 0
	END
	gpuarbctl config check && systemctl reload gpuarbd &&
		soon eval '[[ $(gpuarbctl status --json | jq -c .tenants) == *studio* ]]'
}

gets_what_policy_allows()
{
	hold alice film reserve --name=film --class=realtime --shader-engines=1 \
		--token=swordfish && hold bob paper reserve --name=paper --cus=15 --queues=4 &&
		same "$(gpuarbctl list --json | jq -r '.[] | "\(.name) \(.class) \(.tenant)"' | sort)" \
			$'film realtime studio\npaper besteffort lab'
}

# refuses STATUS 'TENANT KEY LIMIT' USER ARGUMENT…: gpuarbctl reserve ends with STATUS, and the one
# refusal names this limit of the policy.
refuses()
{
	local status=$1 limit=$2 user=$3
	shift 3
	fails "$status" refusals as "$user" gpuarbctl reserve --json "$@" &&
		same "$(jq -r '.refusals[] | "\(.tenant) \(.key) \(.limit_class // .limit)"' "$dir/says")" \
			"$limit"
}

is_refused_what_policy_does_not()
{
	refuses 4 'lab class besteffort' bob --class=realtime --cus=15 &&
		refuses 3 'lab max-cus 30' bob --cus=31 &&
		refuses 3 'lab max-queues 6' bob --cus=15 --queues=3 &&
		refuses 4 'studio tenant 0' bob --cus=15 --tenant=studio &&
		refuses 3 '* max-leases 0' carol --cus=1 &&
		same "$(leases)" 2
}

# bob tries each method on a lease of alice, with gpuarbctl and without, and is refused.
leaves_others_leases_alone()
{
	local id method before
	id=$(lease film)
	before=$(gpuarbctl show "$id" --json)
	fails 4 'belongs to' as bob gpuarbctl release "$id" &&
		fails 4 'belongs to' as bob gpuarbctl resize "$id" --shader-engines=2 || return
	for method in Release 'Acknowledge t 1' Activate Deactivate 'Revoke ts 0 mine' \
		'Resize aa{sv}a{sv} 1 1 cus u 15 0'; do
		# shellcheck disable=SC2086 # the arguments of the method
		fails 1 'error-name=org.gpuarb.Arbiter1.Error.NotPermitted' ask bob "$id" $method || return
	done
	fails 1 'belongs to' as bob /opt/told/bind "$id" &&
		same "$(gpuarbctl show "$id" --json)" "$before"
}

leaves_ones_own_to_oneself()
{
	as bob gpuarbctl resize "$(lease paper)" --cus=15 --queues=5 && ask bob "$(lease paper)" Release &&
		ended paper 8
}

# Two users with the same token hold two leases, and no output contains the token.
shows_no_token()
{
	local id
	id=$(lease film)
	hold bob other reserve --name=other --cus=15 --token=swordfish && same "$(leases)" 2 || return
	let_go other
	as bob gpuarbctl show "$id" --json >"$dir/shown" &&
		as bob gpuarbctl list --json >>"$dir/shown" &&
		as bob busctl introspect org.gpuarb.Arbiter1 "$(object "$id")" >>"$dir/shown" &&
		as bob busctl call org.gpuarb.Arbiter1 /org/gpuarb/Arbiter1 \
			org.freedesktop.DBus.ObjectManager GetManagedObjects >>"$dir/shown" || return
	journal >>"$dir/shown"
	! grep -o '.\{60\}swordfish.*' "$dir/shown" &&
		fails 1 'Permission denied' as bob cat "/run/gpuarb/leases/$id.json"
}

is_nobody_elses_name()
{
	fails 1 'Access denied' as bob busctl call org.freedesktop.DBus / org.freedesktop.DBus \
		RequestName su org.gpuarb.Arbiter1 0
}

# A second gpuarbd is refused: with the same directory, with another directory, and under another user.
is_the_only_one()
{
	local before daemon=/usr/libexec/gpuarb/gpuarbd
	before=$(gpuarbctl list --json)
	fails 1 'another gpuarbd uses it' as gpuarb "$daemon" &&
		fails 1 'cannot own org.gpuarb.Arbiter1' \
			as gpuarb env RUNTIME_DIRECTORY="$(as gpuarb mktemp -d)" "$daemon" &&
		fails 1 'cannot own org.gpuarb.Arbiter1' \
			as bob env RUNTIME_DIRECTORY="$(as bob mktemp -d)" "$daemon" &&
		same "$(gpuarbctl list --json)" "$before"
}

# A reload that fails keeps the policy in force, and the lease.
keeps_what_was_in_force()
{
	refuses 3 '* max-leases 0' carol --cus=1 &&
		[ "$(of_unit ActiveState)" = active ] && [ "$(leases)" = 1 ]
}

refuses_a_bad_policy()
{
	sed -i 's/^max-leases = 0/max-leasses = 5/' "$policy"
	fails 6 "$policy:10: unknown key 'max-leasses'" gpuarbctl config check &&
		fails 6 "$policy:10: " gpuarbctl reload &&
		keeps_what_was_in_force || return
	# systemctl reload sends a signal: it does not see that the reload fails.
	systemctl reload gpuarbd || return
	soon eval 'journal -n 3 -p err | grep "in force stays"' && keeps_what_was_in_force &&
		sed -i 's/^max-leasses = 5/max-leases = 0/' "$policy" && gpuarbctl reload
}

# A file or directory that users other than root can write is refused.
refuses_a_policy_of_others()
{
	chmod o+w "$policy"
	fails 6 "$policy: .*writ" gpuarbctl reload && keeps_what_was_in_force || return
	chmod o-w "$policy"
	chown bob "$policy"
	fails 6 "$policy: " gpuarbctl reload && keeps_what_was_in_force || return
	chown root "$policy"
	chmod 777 "${policy%/*}"
	fails 6 "${policy%/*}: " gpuarbctl reload && keeps_what_was_in_force || return
	chmod 755 "${policy%/*}"
	gpuarbctl reload
}

takes_a_good_policy()
{
	sed -i 's/^max-leases = 0/max-leases = 1/' "$policy"
	systemctl reload gpuarbd
	soon as carol gpuarbctl plan --cus=1 && [ "$(leases)" = 1 ] && let_go film && soon no_leases
}

check 'systemctl reload puts a policy into force' takes_a_policy
check 'users get what their tenants allow' gets_what_policy_allows
check 'users are refused what their tenants do not allow, with the limit' is_refused_what_policy_does_not
check 'nobody releases, resizes, binds, activates or acknowledges the lease of another' \
	leaves_others_leases_alone
check 'a user resizes and releases a lease of his own' leaves_ones_own_to_oneself
check 'a token is never shown, and gives no access to the lease of another user' shows_no_token
check 'a user cannot own the bus name of gpuarbd' is_nobody_elses_name
check 'a second gpuarbd exits, and the first keeps its leases' is_the_only_one
check 'a bad policy is refused with its line, and the policy in force stays' refuses_a_bad_policy
check 'a policy that other users can write is refused' refuses_a_policy_of_others
check 'a corrected policy takes effect, and leases stay' takes_a_good_policy
