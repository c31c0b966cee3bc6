# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154,SC2016
#
# The policies of gpuarbctl config init, and the policy of a lab, on a machine with two GPUs. Users of their groups type
# what would break each sentence of the comments. /opt/told/attempts is the table of what they tried.
attempts=/opt/told/attempts
: >"$attempts"

# try STATUS JQ USER ARGUMENT…: gpuarbctl of the user ends with STATUS, and what --json prints is so.
try()
{
	local status=$1 so=$2 user=$3 is=0
	shift 3
	as "$user" gpuarbctl "$@" >"$dir/json" 2>"$dir/says" || is=$?
	printf '%s\t%s\t%s\t%s\n' "${of:-}" "$user" "gpuarbctl $*" "$is" >>"$attempts"
	[ "$is" = "$status" ] && { [ -z "$so" ] || jq -se ".[0] | $so" <(grep -h '^{' "$dir/json" "$dir/says"); } \
		>/dev/null && return
	echo "$user: gpuarbctl $*: ended with $is, not $status, or not $so:"
	cat "$dir/json" "$dir/says"
	return 1
}

# begin NAME: puts this policy into force, alone.
begin()
{
	of=$1
	rm -f "${policy%/*}"/*
	gpuarbctl config init "$1" --yes >/dev/null && gpuarbctl config check >/dev/null && gpuarbctl reload
}

has_users_and_two_gpus()
{
	groupadd -f gpu-ci && groupadd -f render && groupadd -f students && groupadd -f robotics && useradd -m -G adm,video,gpu-ci dora &&
		useradd -m -G students emil && useradd -m -G robotics flora && useradd -m -G students,robotics gina &&
		useradd -r llm && useradd mallory && rm -f "${policy%/*}"/* &&
		printf '[daemon]\nbackend = simulated\nsimulate = radeon-vii, radeon-vii\n' >"$settings" &&
		systemctl restart gpuarbd && same "$(gpuarbctl gpus --json | jq length)" 2
}

keeps_the_sentences_of_lab()
{
	begin lab || return
	try 0 '' dora plan --json --class=guaranteed --cus=30 &&
		try 3 '.refusals[0].key == "max-cus"' dora plan --json --class=guaranteed --cus=31 --exact &&
		try 3 '' dora plan --json '--tenant=*' --cus=1 &&
		try 3 '.refusals[0].key == "max-queues"' dora plan --json --cus=15 --queues=17 &&
		try 3 '' bob plan --json --cus=60 && try 3 '' bob plan --json --cus=16 &&
		try 3 '' bob plan --json --tenant=staff --cus=1 && try 3 '' bob plan --json --class=guaranteed --cus=1 &&
		try 3 '.refusals[0].resource == "duration"' bob plan --json --cus=1 --duration=8d &&
		try 2 '' bob plan --json --cus=1 --duration=1000000000d && try 2 '' bob plan --json --cus=1 --duration=0 &&
		try 2 '' bob plan --json --cus=1 --duration=-1h &&
		try 125 '' bob run --json --fixed --cus=60 -- true &&
		try 0 '(.adaptable | not) and .partitions[0].cus <= 15' bob run --json -- /sbin/ldconfig -p &&
		hold bob big reserve --name=big --adaptable --cus=60 --cus-min=1 --gpu=0 &&
		try 0 '.partitions[0].cus > 0' carol plan --json --adaptable --cus=60 --cus-min=1 --gpu=0 &&
		try 0 '' dora plan --json --class=guaranteed --cus=30 --gpu=0 && let_go big
}

keeps_the_sentences_of_desktop()
{
	begin desktop || return
	hold bob half reserve --name=half --cus=30 --gpu=0 &&
		try 3 '.refusals[0].reason == "floor"' carol plan --json --cus=1 --gpu=0 &&
		try 3 '.refusals[0].reason == "floor"' bob plan --json --cus=60 --gpu=1 &&
		try 3 '' bob plan --json --cus=15 --queues=23 --gpu=1 &&
		try 3 '' bob plan --json --class=realtime --shader-engines=1 &&
		try 3 '' bob plan --json --priority=high --cus=1 &&
		try 3 '' bob plan --json --tenant=desktop --cus=1 --class=realtime &&
		try 0 '' dora plan --json --class=realtime --shader-engines=2 --gpu=0 &&
		try 3 '' dora plan --json --class=realtime --shader-engines=3 --gpu=1 &&
		try 0 '.partitions[0].cus == 60' bob plan --json --adaptable --cus=60 --cus-min=1 --gpu=1 && let_go half
}

# service ARGUMENT…: of a service of the group render, and session: the same user in another slice.
service() { systemd-run -q --wait --pipe -p User=llm -p SupplementaryGroups=render gpuarbctl "$@"; }
session() { systemd-run -q --wait --pipe --slice=user.slice -p User=llm -p SupplementaryGroups=render gpuarbctl "$@"; }

keeps_the_sentences_of_server()
{
	begin server || return
	service plan --class=guaranteed --cus=45 && fails 3 max-cus service plan --class=guaranteed --cus=46 --exact &&
		fails 3 class session plan --class=guaranteed --cus=1 &&
		try 3 '' bob plan --json --class=guaranteed --cus=1 && try 3 '' bob plan --json --tenant=services --cus=1 &&
		hold bob batch reserve --name=batch --cus=60 --gpu=0 &&
		service run --class=guaranteed --cus=45 --gpu=0 --wait=60 -- true && ended batch 8
}

keeps_the_sentences_of_ci()
{
	begin ci || return
	try 0 '.duration_usec == 1800000000' dora plan --json --cus=30 && try 3 '' dora plan --json --cus=31 --exact &&
		try 0 '' dora plan --json --cus=30 --duration=2h &&
		try 3 '.refusals[0].resource == "duration"' dora plan --json --cus=1 --duration=121min &&
		try 3 '' dora plan --json '--tenant=*' --cus=1 --duration=8h && try 3 '' bob plan --json --cus=8 &&
		try 0 '.duration_usec == 28800000000' bob plan --json --cus=7 &&
		try 3 '' bob plan --json --cus=7 --duration=9h && try 3 '' bob plan --json --tenant=ci --cus=1 &&
		hold bob batch reserve --name=batch --cus=7 --gpu=0 &&
		hold carol wide reserve --name=wide --adaptable --cus=60 --cus-min=31 --gpu=0 &&
		try 0 '' dora run --json --cus=30 --gpu=0 --wait=60 -- true || return
	# A job ends when its time is over, whatever it does.
	try 137 '' dora run --json --cus=1 --duration=1s --wait -- sh -c 'trap "" TERM; sleep infinity & wait; wait' ||
		try 143 '' dora run --json --cus=1 --duration=1s --wait -- sleep infinity || return
	let_go wide
	[ -z "$(lease batch)" ] || let_go batch
}

# ---- the lab of three groups, a quota, a service and a ban --------------------------------------------------
has_the_policy_of_a_lab()
{
	of=site
	rm -f "${policy%/*}"/*
	cat >"$policy" <<-END
		[tenant banned]
		match-user = mallory
		max-leases = 0
		[tenant students]
		match-group = students
		max-cus = 25%
		max-fixed-cus = 8
		[tenant robotics]
		match-group = robotics
		class = realtime
		max-shader-engines = 2
		[tenant llm]
		match-user = llm
		class = guaranteed
		max-cus = 50%
		only-gpus = $(gpuarbctl gpus --json | jq -r '.[1].gpu // .[1].name')
		[tenant *]
		class = none
	END
	gpuarbctl config check >/dev/null && gpuarbctl reload
}

binds_a_student()
{
	try 0 '' emil plan --json --adaptable --cus=15 --cus-min=1 && try 3 '' emil plan --json --adaptable --cus=16 &&
		try 3 '.refusals[0].key == "open"' emil plan --json '--tenant=*' --cus=40 &&
		try 3 '' emil plan --json --tenant=robotics --class=realtime --shader-engines=1 &&
		try 3 '.refusals[0].key == "max-fixed-cus"' emil plan --json --cus=9 &&
		try 125 '' emil run --json --fixed --cus=60 -- true &&
		try 0 '.partitions[0].cus <= 8' emil run --json -- /sbin/ldconfig -p &&
		try 3 '' gina plan --json --class=realtime --shader-engines=1 # the first tenant that matches binds
}

serves_robotics_and_the_service()
{
	try 0 '' flora plan --json --class=realtime --shader-engines=2 &&
		try 3 '' flora plan --json --class=realtime --shader-engines=3 &&
		try 0 '.partitions[0].gpu | endswith("44:00.0") or . != "0000:03:00.0"' llm plan --json --cus=30 &&
		try 3 '' llm plan --json --cus=30 --gpu=0 && try 3 '' llm plan --json --cus=31 --exact
}

bans()
{
	local how
	for how in '' '--tenant=*' --tenant=banned --tenant=students --class=besteffort; do
		# shellcheck disable=SC2086
		try 3 '' mallory plan --json $how --cus=1 || return
	done
	try 125 '' mallory run --json --cus=1 -- true && try 3 '' bob plan --json --cus=1
}

shows_an_administrator()
{
	try 0 '' root plan --json --user=emil --adaptable --cus=15 && try 3 '' root plan --json --user=emil --adaptable --cus=16 &&
		try 3 '' root plan --json --user=mallory --cus=1 && try 4 '' emil plan --json --user=flora --cus=1 &&
		fails 0 students gpuarbctl config explain --user=emil &&
		printf '[tenant open]\nmatch-group = students\nopen = yes\n' >"${policy%/*}/60-open.conf" &&
		fails 0 'students' gpuarbctl config check && rm "${policy%/*}/60-open.conf" || return
	hold emil one reserve --name=one --adaptable --cus=15 && hold flora two reserve --name=two --class=realtime --shader-engines=1 &&
		fails 4 '' as bob gpuarbctl revoke --user=emil --yes && gpuarbctl revoke --user=emil --now --yes &&
		ended one 8 && same "$(gpuarbctl list --json | jq -r '.[].name')" two && let_go two
}

check 'a machine has users, groups and two GPUs' has_users_and_two_gpus
check 'users cannot break a sentence of the policy lab' keeps_the_sentences_of_lab
check 'users cannot break a sentence of the policy desktop' keeps_the_sentences_of_desktop
check 'users cannot break a sentence of the policy server' keeps_the_sentences_of_server
check 'users cannot break a sentence of the policy ci' keeps_the_sentences_of_ci
check 'the policy of a lab is valid' has_the_policy_of_a_lab
check 'a student has the quota and no more' binds_a_student
check 'robotics and the service have what they may' serves_robotics_and_the_service
check 'a ban holds' bans
check 'an administrator sees and ends what users have' shows_an_administrator
