# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154,SC2016
#
# bob's program borrows CUs of alice's lease and does not return them. gpuarb-enforce freezes or
# kills the program, as enforce= of the tenant of bob allows.

# The container has no amdkfd: gpuarb-enforce looks for processes that use KFD in this directory.
kfd=/run/kfd-of-tests
mkdir -p "$kfd/class/kfd/kfd/proc" /run/systemd/system/gpuarb-enforce.service.d
cat >/run/systemd/system/gpuarb-enforce.service.d/sysfs.conf <<-UNIT
	[Service]
	ExecStart=
	ExecStart=/usr/libexec/gpuarb/gpuarb-enforce --sysfs=$kfd
UNIT
systemctl daemon-reload
systemctl -q stop gpuarb-enforce # gpuarbd has woken it at its own start, and it reads /sys

# uses_kfd: makes the main process of bob's unit a process that uses KFD.
uses_kfd() { mkdir -p "$kfd/class/kfd/kfd/proc/$(systemctl show -P MainPID job)"; }

# allows STEP: sets enforce= of the tenant of bob.
allows()
{
	sed -i "/^enforce = /d; s/^\[tenant lab\]\$/&\nenforce = $1/; s/^max-cus = 30\$/max-cus = 100%/" \
		"$policy"
	gpuarbctl reload
}

state_is() { lease_has "$1" .state "\"$2\""; }
borrows() { lease_has job '.partitions[0].cus' 60; }
job_is() { [ "$(systemctl show -P "$1" job)" = "$2" ]; }

# job VERB ARGUMENT…: starts gpuarbctl VERB of bob as job.service.
job()
{
	systemd-run -q --unit=job -p User=bob -p Group=bob gpuarbctl "$1" --adaptable --name=job \
		--cus=15 --cus-max=60 "${@:2}" && soon borrows
}

lends()
{
	allows freeze && hold alice film reserve --name=film --class=realtime --shader-engines=1 \
		--start-inactive && state_is film inactive && job reserve &&
		as bob /opt/told/bind "$(lease job)" "$(systemctl show -P MainPID job)" &&
		systemctl kill -s STOP job
}

freezes()
{
	uses_kfd && as alice gpuarbctl activate "$(lease film)" && soon job_is FreezerState frozen &&
		state_is film activating && journalctl --sync &&
		journal GPUARB_LEASE="$(lease job)" | grep 'job.service is frozen'
}

thaws()
{
	as alice gpuarbctl deactivate "$(lease film)" && soon job_is FreezerState running &&
		state_is film inactive && state_is job granted
}

# has_killed LEASE: its program was killed, alice has her CUs, and the journal has the event.
has_killed()
{
	soon state_is film granted && soon job_is ActiveState failed && job_is Result signal &&
		soon eval "entries revoked GPUARB_LEASE=$1 | grep ." && systemctl reset-failed job
}

kills()
{
	local id
	id=$(lease job)
	allows kill && as alice gpuarbctl activate "$(lease film)" && has_killed "$id"
}

# The program itself is not stopped, but its agent, which would apply the smaller mask.
kills_what_has_lost_its_agent()
{
	local id
	as alice gpuarbctl deactivate "$(lease film)" && job run -- sleep infinity || return
	id=$(lease job)
	uses_kfd && pkill -STOP -u bob -f '^/usr/libexec/gpuarb/gpuarb-agent' &&
		as alice gpuarbctl activate "$(lease film)" && has_killed "$id" &&
		let_go film && soon no_leases
}

# With the rights of gpuarb-enforce, to the terminal of bob: how it tells why a program was killed.
can_write_to_terminals()
{
	local script status options=() key
	rm -f /tmp/typescript
	setpriv --reuid=bob --regid=bob --init-groups script -qfc 'tty; sleep infinity' /tmp/typescript >/dev/null </dev/null &
	script=$!
	for key in User SupplementaryGroups CapabilityBoundingSet PrivateDevices DevicePolicy; do
		options+=(-p "$key=$(systemctl show -P $key gpuarb-enforce)")
	done
	soon grep -a -o '/dev/pts/[0-9]*' /tmp/typescript &&
		systemd-run -q --wait --pipe "${options[@]}" sh -c 'echo told >"$1"' sh "$(grep -a -o '/dev/pts/[0-9]*' /tmp/typescript)" &&
		soon grep -a told /tmp/typescript
	status=$?
	kill "$script"
	return $status
}

check 'an adaptable lease borrows CUs of an inactive lease' lends
check 'the unit of a borrower that does not return CUs is frozen' freezes
check 'the unit is thawed when the CUs are not needed any more' thaws
check 'with enforce = kill the borrower is killed, and the lender has its CUs' kills
check 'a program whose agent is stopped is killed' kills_what_has_lost_its_agent
check 'gpuarb-enforce can write to the terminal of a user' can_write_to_terminals
