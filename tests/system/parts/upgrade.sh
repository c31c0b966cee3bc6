# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154,SC2016
#
# An upgrade to the next version while programs hold leases.

version_is() { [ "$(dpkg-query -W -f '${Version}' gpuarb)" = "$1" ]; }
version_of() { dpkg-deb -f "$1"/gpuarb_*.deb Version; }

# gpuarb-enforce runs during the upgrade: later requests need the helper of the next version.
upgrades()
{
	local pid
	systemctl start gpuarb-enforce || return
	pid=$(of_unit MainPID)
	dpkg -i /opt/debs-next/libgpuarb0_*.deb /opt/debs-next/gpuarb_*.deb &&
		version_is "$(version_of /opt/debs-next)" && another_runs "$pid"
}

# talks DEBS: gpuarbctl and the library of these packages work with the daemon of the other version.
talks()
{
	local other=$dir/other status
	rm -rf "$other"
	dpkg-deb -x "$1"/libgpuarb0_*.deb "$other"
	dpkg-deb -x "$1"/gpuarb_*.deb "$other"
	LD_LIBRARY_PATH=$(dirname "$other"/usr/lib/*/libgpuarb.so.0)
	export LD_LIBRARY_PATH
	same "$("$other/usr/bin/gpuarbctl" list --json)" "$before" &&
		fails 0 '' as alice "$other/usr/bin/gpuarbctl" run --cus=1 --shape=any -- true &&
		same "$("$other/usr/bin/gpuarbctl" doctor --json | jq -r '.[] | select(.check == "daemon").result')" \
			note
	status=$?
	unset LD_LIBRARY_PATH
	return "$status"
}

# A holder that was started before the upgrade still gets signals: the waiting lease is granted.
tells_what_was_there_before()
{
	let_go other && soon granted waiting && stores 3 && same "$(lease other)" ''
}

granted() { [ "$(gpuarbctl list --json | jq -r ".[] | select(.id == $(lease "$1")) | .state")" = granted ]; }

# Either no gpuarb-enforce runs, or it runs from the installed file.
has_no_old_helper()
{
	! pgrep gpuarb-enforce >"$dir/helpers" ||
		same "$(readlink "/proc/$(cat "$dir/helpers")/exe")" /usr/libexec/gpuarb/gpuarb-enforce
}

is_the_next_one()
{
	local running
	running=$(readlink "/proc/$(of_unit MainPID)/exe")
	same "$running" /usr/libexec/gpuarb/gpuarbd && has_no_old_helper && doctor_finds_all_in_place
}

keeps_what_was_configured() { same "$(cat "$settings")" $'[daemon]\nbackend = simulated'; }

check 'leases are held before the upgrade' eval 'arrive && as_before && version_is "$(version_of /opt/debs)"'
check 'the library of the next version talks to the daemon of this one' talks /opt/debs-next
check 'the next version installs while leases are held' upgrades
check 'ids, masks and holders are the same' as_before
check 'the daemon and the helper of the next version run, and doctor finds no problem' is_the_next_one
check 'the library of this version talks to the daemon of the next' talks /opt/debs
check 'the upgrade keeps the configuration' keeps_what_was_configured
check 'the library of this version gets signals of the daemon of the next' tells_what_was_there_before
