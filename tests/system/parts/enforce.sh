# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154,SC2016
#
# CUs that are lent and not given back: bob's program borrows alice's, and stands still. What is
# done about it is what his tenant's policy allows, through gpuarb-enforce and systemd.

# There is no amdkfd here: a tree of files says which processes use a KFD device.
kfd=/run/kfd-of-tests
mkdir -p "$kfd/class/kfd/kfd/proc" /run/systemd/system/gpuarb-enforce.service.d
cat >/run/systemd/system/gpuarb-enforce.service.d/sysfs.conf <<-UNIT
	[Service]
	ExecStart=
	ExecStart=/usr/libexec/gpuarb/gpuarb-enforce --sysfs=$kfd
UNIT
systemctl daemon-reload

# uses_kfd: the main process of bob's unit does.
uses_kfd() { mkdir -p "$kfd/class/kfd/kfd/proc/$(systemctl show -P MainPID job)"; }

# allows STEP: to be used on bob's leases.
allows()
{
	sed -i "/^enforce = /d; s/^\[tenant lab\]\$/&\nenforce = $1/; s/^max-cus = 30\$/max-cus = 100%/" \
		"$policy"
	gpuarbctl reload
}

# of_lease NAME FIELD…
of_lease() { gpuarbctl list --json | jq -r ".[] | select(.name == \"$1\") | $2"; }
state_is() { [ "$(of_lease "$1" .state)" = "$2" ]; }
borrows() { [ "$(of_lease job '.partitions[0].cus')" = 60 ]; }
job_is() { [ "$(systemctl show -P "$1" job)" = "$2" ]; }

# job COMMAND…: bob's, in a unit of its own.
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

# has_killed LEASE: and told of it.
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

# Its program would run on; what would follow for it stands still.
kills_what_has_lost_its_agent()
{
	local id
	as alice gpuarbctl deactivate "$(lease film)" && job run -- sleep infinity || return
	id=$(lease job)
	uses_kfd && pkill -STOP -u bob -f '^/usr/libexec/gpuarb/gpuarb-agent' &&
		as alice gpuarbctl activate "$(lease film)" && has_killed "$id" &&
		let_go film && soon no_leases
}

check 'CUs are lent to a program that says it follows' lends
check 'one that does not give them back is frozen' freezes
check 'and goes on when nobody wants them any more' thaws
check 'or is killed, where policy says so, and who lent them has them' kills
check 'as is a program without its agent' kills_what_has_lost_its_agent
