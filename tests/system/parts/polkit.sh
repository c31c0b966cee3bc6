# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154,SC2016
#
# Administrators are root and users that polkit allows. carol gets a rule, bob none.
rule=/etc/polkit-1/rules.d/50-gpuarb.rules

gpu_is() { [ "$(gpuarbctl gpus --json | jq -c 'map(.draining)')" = "[$1]" ]; }

denies_a_user()
{
	fails 4 'polkit denies it' as bob gpuarbctl drain 0 &&
		fails 4 'polkit denies it' as bob gpuarbctl reload &&
		fails 4 'polkit denies it' as bob gpuarbctl undrain 0 &&
		gpu_is false
}

lets_root()
{
	gpuarbctl drain 0 && gpu_is true && gpuarbctl undrain 0 && gpu_is false && gpuarbctl reload
}

# rules USER RESULT…
rules()
{
	{
		echo 'polkit.addRule(function(action, subject) {'
		echo 'if (action.id != "org.gpuarb.Arbiter1.manage") return;'
		printf 'if (subject.user == "%s") return polkit.Result.%s;\n' "$@"
		echo '});'
	} >"$rule"
	chmod 644 "$rule"
}

lets_whom_a_rule_names()
{
	rules carol YES bob NO
	soon as carol gpuarbctl drain 0 && gpu_is true && as carol gpuarbctl undrain 0 &&
		as carol gpuarbctl reload && denies_a_user
}

# After the rule has changed, the user is denied.
denies_whom_a_rule_names()
{
	rules carol NO
	soon fails 4 'polkit denies it' as carol gpuarbctl reload &&
		fails 4 'polkit denies it' as carol gpuarbctl drain 0 && gpu_is false || return
	rules carol YES
	soon as carol gpuarbctl reload
}

# The journal says that an administrator has ended the lease.
takes_leases_away()
{
	local id
	hold alice film reserve --name=film --class=realtime --shader-engines=1 || return
	id=$(lease film)
	fails 4 'belongs to' as bob gpuarbctl release "$id" && as carol gpuarbctl release "$id" &&
		ended film 8 && soon eval 'entries revoked GPUARB_LEASE=$id PRIORITY=5 | grep .'
}

# asks_polkit USER: stops polkit, and waits until gpuarbd has asked it for USER.
asks_polkit()
{
	local line
	mkfifo "$dir/asked"
	busctl monitor --match="interface='org.freedesktop.PolicyKit1.Authority'" \
		>"$dir/asked" 2>&1 &
	monitor=$!
	exec {asked}<"$dir/asked"
	read -r line <&"$asked" # it watches
	systemctl kill -s STOP polkit
	as "$1" gpuarbctl drain 0 >"$dir/drain" 2>&1 &
	client[drain]=$!
	while read -r line <&"$asked"; do
		[[ $line == *Member=CheckAuthorization* ]] && break
	done
	kill "$monitor"
	exec {asked}<&-
	rm "$dir/asked"
}

serves_others()
{
	kill -0 "${client[drain]}" && hold alice quick reserve --name=quick --cus=1 --shape=any &&
		let_go quick && as bob gpuarbctl gpus
}

denies_when_polkit_dies()
{
	asks_polkit carol
	serves_others && kill -0 "${client[drain]}" && systemctl kill -s KILL polkit &&
		ended drain 4 && gpu_is false
}

# The next question starts polkit again, or systemd does (Restart= of newer releases).
lets_when_polkit_is_back()
{
	soon as carol gpuarbctl drain 0 && soon as carol gpuarbctl undrain 0
}

denies_when_polkit_is_slow()
{
	asks_polkit carol
	serves_others && ended drain 4 && gpu_is false && grep polkit "$dir/drain" &&
		systemctl kill -s CONT polkit && lets_when_polkit_is_back && gpu_is false
}

denies_without_polkit()
{
	systemctl mask --now polkit
	fails 4 polkit as carol gpuarbctl drain 0 && gpu_is false && lets_root || return
	systemctl unmask polkit
	lets_when_polkit_is_back
}

check 'polkit denies administration to a user' denies_a_user
check 'root needs no polkit rule' lets_root
check 'a rule allows one user, and no other' lets_whom_a_rule_names
check 'a rule denies a user' denies_whom_a_rule_names
check 'an administrator revokes a lease, and the journal has the event' takes_leases_away
check 'a request is denied when polkit dies, and other users are served meanwhile' denies_when_polkit_dies
check 'a request is allowed when polkit runs again' lets_when_polkit_is_back
check 'a request is denied when polkit does not answer' denies_when_polkit_is_slow
check 'a request is denied when polkit cannot be started' denies_without_polkit
