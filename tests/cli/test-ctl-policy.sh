#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Policy as the users that it speaks of meet it: several users, groups and GPUs.
#
#	test-ctl-policy.sh GPUARBCTL
#
# GPUARBD, GPUARB_SOURCE_ROOT: the daemon, the source tree.
set -u
GPUARBCTL=${1:-${GPUARBCTL:?}}
: "${GPUARBD:?}" "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/users.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/users.sh"
users_start --simulate=radeon-vii,radeon-vii

# ---- a quota binds the user ---------------------------------------------------------------
policy <<-'CONF'
	[tenant banned]
	match-user = mail
	max-leases = 0
	[tenant students]
	match-group = 4001
	max-cus = 25%
	[tenant robotics]
	match-group = 4002
	class = guaranteed
	max-cus = 50%
	[tenant weekend]
	match-group = 4001, 4002
	open = yes
	class = guaranteed
	max-leases = 1
	max-cus = 20
CONF
user student games 4001
user both man 4001,4002
user robot news 4002
user mailer mail 4001,4002
user guest nobody
student ends 0 plan --cus=15
student ends 3 plan --cus=16 --json
json_out '.refusals[0].reason == "quota" and .refusals[0].key == "max-cus" and .refusals[0].tenant == "students"'
# No other tenant gives more.
student ends 3 plan --tenant='*' --cus=40 --json
json_out '.refusals[0].reason == "policy" and .refusals[0].key == "open" and .refusals[0].tenant == "students"'
student ends 4 reserve --tenant='*' --cus=1
student ends 125 run --tenant='*' --cus=1 -- true
student ends 3 plan --tenant=robotics --cus=1
both ends 3 plan --tenant=robotics --cus=1 --json
json_out '.refusals[0].key == "open" and .refusals[0].tenant == "students"'
robot ends 0 plan --cus=30
robot ends 0 plan --tenant=robotics --cus=30
robot ends 3 plan --tenant='*' --cus=31
guest ends 0 plan --cus=60
guest ends 0 plan --tenant='*' --cus=60
guest ends 3 plan --tenant=weekend --cus=1 --json
json_out '.refusals[0].key == "tenant" and .refusals[0].tenant == "weekend"'
# What policy opens is open.
student ends 0 plan --tenant=weekend --cus=20
student ends 3 plan --tenant=weekend --cus=21 --json
json_out '.refusals[0].tenant == "weekend"'
# A ban holds whatever is open.
for tenant in '' --tenant=weekend --tenant='*' --tenant=robotics --tenant=banned; do
	# shellcheck disable=SC2086
	mailer ends 3 plan $tenant --cus=1
done
mailer ends 125 run --cus=1 -- true
sed -i 's/max-leases = 0/class = none/' "$dir/tenants.d/policy.conf"
ends 0 reload
mailer ends 3 plan --cus=1 --json
json_out '.refusals[0].key == "max-leases" and .refusals[0].limit == 0'
mailer ends 3 plan --tenant=weekend --cus=1
# Of root, too.
policy <<<$'[tenant root]\nmatch-user = root\nclass = none\n[tenant *]\nopen = yes'
ends 3 plan --cus=1
ends 3 plan --tenant='*' --cus=1
guest ends 0 plan --cus=1
# Tenants that open each other are two quotas.
policy <<<$'[tenant a]\nmatch-group = 4001\nopen = yes\nmax-cus = 10\n[tenant b]\nmatch-group = 4001\nopen = yes\nmax-cus = 20'
student ends 0 plan --cus=10
student ends 3 plan --cus=11
student ends 0 plan --tenant=b --cus=20
student ends 3 plan --tenant=b --cus=21
student ends 3 plan --tenant='*' --cus=1

# ---- plan for others -----------------------------------------------------------------------
ends 0 plan --user=games --group=4001 --cus=10
ends 3 plan --user=games --group=4001 --cus=11 --json
json_out '.refusals[0].key == "max-cus" and .refusals[0].tenant == "a" and .refusals[0].uid == 5'
ends 0 plan --user=games --cus=60
ends 3 plan --user=4711 --group=4001 --tenant=b --cus=21
ends 0 plan --cus=60 # the caller's own
ends 2 plan --user=no-such-user --cus=1
ends 2 plan --group=4001 --cus=1
student ends 4 plan --user=games --cus=1
student ends 4 plan --user=root --cus=1
prints '. == []' list --json

# ---- bad input -------------------------------------------------------------------------------
for time in 0 0s -1h -1 1000000000d 99999999999999999999s x ''; do
	student ends 2 plan --cus=1 --duration="$time"
done

# ---- a lease of before ---------------------------------------------------------------------
policy <<<'[tenant *]'
hold_as guest reserve --cus=20
lease=$(sed -n 's/^lease \([0-9]*\): .*/\1/p' <<<"$held")
policy <<<$'[tenant guests]\nmatch-user = nobody\nmax-cus = 10'
await_so 'the reload warns of it' grep -q "lease $lease .*guests" "$dir/daemon.err"
guest ends 4 resize "$lease" --cus=40
prints '.state == "granted" and .partitions[0].cus == 20' show "$lease" --json
guest ends 0 plan --cus=10
let_go_of guest
list_becomes '. == []'

# ---- config explain -------------------------------------------------------------------------
policy <<-'CONF'
	[tenant compositor]
	match-group = 4001
	match-unit = vr.service
	class = realtime
	reserved-shader-engines = 1
	[tenant students]
	match-group = 4001
	max-cus = 25%
	max-queues = 6
	max-leases = 4
	[tenant night]
	match-user = games
	open = yes
	class = guaranteed
	on-drift = kill
	[tenant staff]
	match-group = 4001
	[tenant banned]
	match-user = mail
	class = none
CONF
explain=(config explain "$dir/tenants.d")
prints '.user == "games" and .uid == 5 and .groups == [4001]' "${explain[@]}" --user=games --group=4001 --json
json_out '[.tenants[] | [.tenant, .requests, .class, .on_drift]] == [
	["compositor","some","realtime","protect"], ["students","others","besteffort","protect"],
	["night","named","guaranteed","kill"], ["staff","closed","besteffort","protect"], ["*","closed","besteffort","protect"]]'
json_out '.tenants[1] | .max_cus == "25%" and .max_queues == 6 and .max_leases == 4 and .max_gpus == null'
json_out '.tenants[1].gpus == ([.tenants[1].gpus[] | . + {cus: 15, queues: 6}]) and (.tenants[1].gpus | length) == 2'
json_out '.tenants[0].unit == "vr.service" and .tenants[0].gpus[0].cus == 60 and .tenants[2].gpus[0].cus == 45'
json_out '.tenants[3].gpus == [] and .tenants[4].gpus == []'
shows 'vr.service' "${explain[@]}" --user=games --group=4001
out_has '--tenant=night'
out_has '0000:03:00.0'
# What it says is so.
student ends 0 plan --cus=15 --queues=6
student ends 3 plan --cus=16
student ends 0 plan --tenant=night --cus=45
student ends 3 plan --tenant=night --cus=46 --exact
student ends 3 plan --tenant=staff --cus=1
ends 0 "${explain[@]}" --user=mail --json
json_out '.tenants[0] == (.tenants[0] + {tenant: "banned", requests: "others", class: "none", max_leases: 0, gpus: []})'
user plain mail
plain ends 3 plan --cus=1
ends 0 "${explain[@]}" --user=4711 --json # a user without a name is in no group
json_out '.uid == 4711 and .groups == [] and (.tenants | length) == 1 and .tenants[0].tenant == "*"'
prints '.groups | length == 300' "${explain[@]}" --user=4711 --group="$(seq -s, 5000 5299)" --json
student prints '.user == "games"' "${explain[@]}" --json
ends 2 "${explain[@]}" --user=no-such-user
ends 2 "${explain[@]}" --user=games --group=no-such-group
ends 2 "${explain[@]}" --user=games --group="$(seq -s, 5000 6024)"
ends 2 "${explain[@]}" "$dir" --user=games
ends 6 config explain "$dir/none" --user=games --json
GPUARB_BUS_ADDRESS=unix:path=$dir/none ends 0 "${explain[@]}" --user=games --group=4001
out_has '25%'
check 'that GPUs are unknown is no output' test -s "$dir/err"
# A user in 300 groups is bound by each of them.
user many man "$(seq -s, 5000 5298),4001"
many ends 0 plan --cus=15
many ends 3 plan --cus=16 --json
json_out '.refusals[0].tenant == "students"'

# ---- names that cannot be resolved ------------------------------------------------------------
printf '[tenant gone]\nmatch-group = no-such-group\nmax-cus = 1\n[tenant partly]\nmatch-user = games, no-such-user\nmax-cus = 2\n' \
	>"$dir/tenants.d/policy.conf"
rig_stop_daemon
rig_start_daemon --simulate=radeon-vii,radeon-vii
check 'gpuarbd starts, and warns' grep -q "policy.conf:2: match-group: .*'no-such-group'" "$dir/daemon.err"
student ends 0 plan --cus=2
student ends 3 plan --cus=3
robot ends 0 plan --cus=60
ends 0 config check "$dir/tenants.d" --json
json_out '.valid and (.warnings | length == 2) and (.warnings[1] | contains("no-such-user"))'
# A later reload looks the names up again.
sed -i 's/no-such-group/4002/' "$dir/tenants.d/policy.conf"
ends 0 reload
robot ends 3 plan --cus=2
# What is wrong in syntax stops a start, and not a reload.
printf '[tenant gone]\nmatch-user = -1\n' >"$dir/tenants.d/policy.conf"
ends 6 reload
robot ends 3 plan --cus=2

# ---- config check ---------------------------------------------------------------------------
checked() { printf '%s\n' "$@" >"$dir/check.conf"; ends 0 config check "$dir/check.conf" --json; }
warns() { json_out ".problems == [] and (.warnings | length) == 1 and (.warnings[0] | contains(\"$1\"))"; }
checked '[tenant a]' 'match-user = root' 'max-cus = 25%' '[tenant *]' 'open = yes'
warns 'check.conf:1: [tenant a]: max-cus does not bind its users'
checked '[tenant a]' 'match-user = root' 'max-cus = 25%' '[tenant *]' 'open = yes' 'max-cus = 10%'
json_out '.warnings == []'
checked '[tenant a]' 'match-user = root' 'max-cus = 25%' '[tenant *]' 'open = yes' 'max-cus = 26%'
warns '[tenant *], which allows more'
checked '[tenant a]' 'match-user = root' 'max-queues = 9' '[tenant b]' 'match-user = root, daemon' 'open = yes'
warns 'max-queues does not bind'
checked '[tenant a]' 'match-user = root' 'max-cus = 25%' '[tenant b]' 'match-user = daemon' 'open = yes'
json_out '.warnings == []'
# A narrow match gives a class to some programs, or is passed by in others.
checked '[tenant a]' 'match-user = root' 'match-slice = user-*.slice' 'max-cus = 25%'
warns 'match, with other programs, [tenant *]'
checked '[tenant a]' 'match-user = root' 'match-unit = vr.service' 'class = realtime' 'max-cus = 25%'
json_out '.warnings == []'
# What relied on names.
checked '[tenant day]' 'match-user = root' '[tenant night]' 'match-user = root'
warns '[tenant night]: no request belongs to it'
printf '[tenant a]\nmatch-user = root\nclass = none\nmax-leases = 4\n' >"$dir/check.conf"
ends 6 config check "$dir/check.conf" --json
json_out '.problems | length == 1 and (.[0] | contains("check.conf:1") and contains("class = none"))'
printf '[tenant a]\nmatch-user = root\nclass = nome\nopen = perhaps\n' >"$dir/check.conf"
ends 6 config check "$dir/check.conf" --json
json_out '.problems | length == 2 and (.[0] | contains("class: ") and contains("none")) and (.[1] | contains("open: "))'
rig_done
