#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What users share fairly without trust: limits of fixed leases, of engines, of GPUs and of time.
#
#	test-ctl-share.sh GPUARBCTL
#
# GPUARBD, GPUARB_SOURCE_ROOT: the daemon, the source tree.
set -u
GPUARBCTL=${1:-${GPUARBCTL:?}}
: "${GPUARBD:?}" "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/users.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/users.sh"
users_start --simulate=radeon-vii,radeon-vii

user student games 4001
user both man 4001,4002
user guest nobody

# ---- user namespaces ------------------------------------------------------------------------
# The bus is told the number of the user inside, and compares it with the one outside.
for map in root current; do
	sed "s| $dir/gpuarbctl| unshare --user --map-$map-user&|" "$dir/as-guest" >"$dir/as-$map"
	chmod 755 "$dir/as-$map"
done
# Some kernels forbid users to make user namespaces.
if "$dir/as-current" --version >/dev/null 2>&1; then
	GPUARBCTL=$dir/as-current ends 0 plan --cus=1
	GPUARBCTL=$dir/as-root ends 5 plan --cus=1
	err_has '--userns=keep-id'
	GPUARBCTL=$dir/as-root ends 125 run --cus=1 -- true
fi

# ---- shared fairly without trust ------------------------------------------------------------
policy <<<$'[tenant students]\nmatch-group = 4001\nmax-cus = 75%\nmax-fixed-cus = 25%\n[tenant *]\nmax-fixed-cus = 0'
hold_as student reserve --cus=10 --gpu=0
student ends 3 plan --cus=6 --gpu=0 --json
json_out '.refusals[0] | .key == "max-fixed-cus" and .limit == 15 and .held == 10 and .free == 5'
student ends 3 plan --cus=6 --gpu=0
out_has 'without --cus'
student ends 0 plan --cus=5 --gpu=0
student ends 0 plan --adaptable --cus=35 --cus-min=1 --gpu=0
student ends 3 plan --adaptable --cus=35 --gpu=0 --json # a base of 32 is not returned
json_out '.refusals[0].key == "max-fixed-cus"'
student ends 3 plan --adaptable --cus=36 --gpu=0 --json
json_out '.refusals[0].key == "max-cus"'
student ends 125 run --fixed --cus=60 -- true
guest ends 3 plan --cus=1
guest ends 0 plan --adaptable --cus=1
guest ends 0 run -- true
let_go_of student
list_becomes '. == []'

policy <<<$'[tenant engines]\nmatch-group = 4001\nclass = realtime\nmax-shader-engines = 2\nonly-gpus = 0000:04:00.0'
student prints '.partitions[0].gpu == "0000:04:00.0"' plan --shader-engines=2 --json
student ends 3 plan --shader-engines=3 --json
json_out '[.refusals[] | select(.gpu == "0000:04:00.0")][0] | .key == "max-shader-engines" and .limit == 2'
student ends 3 plan --shader-engines=1 --gpu=0000:03:00.0 --json
json_out '.refusals[0] | .reason == "policy" and .key == "only-gpus" and .gpu == "0000:03:00.0"'
student ends 0 plan --class=guaranteed --cus=30 --json # in no more engines than it may
json_out '.partitions[0].shader_engines | length <= 2'
student ends 3 plan --class=guaranteed --cus=45 --exact --json
json_out '[.refusals[] | select(.gpu == "0000:04:00.0")][0] | .key == "max-shader-engines" and .asked == 3'
hold_as student reserve --shader-engines=1
student ends 0 plan --shader-engines=1
student ends 3 plan --shader-engines=2 --json
json_out '[.refusals[] | select(.gpu == "0000:04:00.0")][0] | .key == "max-shader-engines" and .held == 1'
student ends 3 plan --class=guaranteed --cus=16 --exact
let_go_of student
list_becomes '. == []'
printf '[tenant t]\nmatch-group = 4001\nonly-gpus = 0000:99:00.0\n' >"$dir/tenants.d/policy.conf"
ends 0 reload
check 'a GPU that there is not is a warning' grep -q 'only-gpus: there is no GPU 0000:99:00.0' "$dir/daemon.err"
student ends 3 plan --cus=1
# Leases that the policy forbids end, where policy says so.
printf '[daemon]\non-reload = revoke\n' >"$dir/gpuarbd.conf"
policy <<<'[tenant *]'
hold_as student reserve --cus=16
hold_as guest reserve --adaptable --cus=16
policy <<<$'[tenant *]\nmax-fixed-cus = 15'
list_becomes 'length == 1 and .[0].adaptable'
policy <<<$'[tenant *]\nonly-gpus = 0000:99:00.0'
list_becomes '. == []'
let_go_of student
let_go_of guest
: >"$dir/gpuarbd.conf"

# ---- what cannot be adaptable ---------------------------------------------------------------
policy <<<'[tenant *]'
if command -v cc >/dev/null && echo 'int main(void) { return 0; }' >"$dir/static.c" && cc -static "$dir/static.c" -o "$dir/static" 2>/dev/null; then
	guest ends 0 run --json -- "$dir/static"
	said='gpuarbctl run of a static program'
	json_err '.adaptable == false and .partitions[0].cus == 30' # half of the GPU
	guest fails 0 '30 CUs' run -- "$dir/static"
	guest ends 0 run --json --cus=100% -- "$dir/static"
	json_err '.partitions[0].cus == 60'
	hold_as student reserve --adaptable --cus=60 --cus-min=1 --gpu=0
	hold_as both reserve --adaptable --cus=60 --cus-min=1 --gpu=0
	guest ends 0 plan --adaptable --cus=60 --cus-min=1 --gpu=0 --json
	equal=$(jq '.partitions[0].cus' "$dir/out")
	check 'an equal one has a third' test "$equal" -le 20
	guest ends 0 run --wait --json --gpu=0 -- "$dir/static"
	json_err ".adaptable == false and .partitions[0].cus <= $equal"
	let_go_of student
	let_go_of both
	list_becomes '. == []'
fi

# ---- duration ---------------------------------------------------------------------------------
policy <<<$'[tenant *]\nmax-duration = 1d\ndefault-duration = 2h'
guest prints '.duration_usec == 7200000000' plan --cus=1 --json
guest shows 'for 120min' plan --cus=1
guest ends 3 plan --cus=1 --duration=25h --json
json_out '.refusals[0] | .reason == "policy" and .resource == "duration" and .asked == 90000 and .limit == 86400'
guest prints '.duration_usec == 86400000000' plan --cus=1 --duration=1d --json
for wrong in 0 -1 999ms 1000000000d x ''; do
	ends 2 plan --cus=1 --duration="$wrong"
done
hold_as guest reserve --cus=60 --gpu=0
GPUARBCTL=$dir/as-student follow reserve --cus=60 --gpu=0 --wait
waiter=$!
check "it waits: $line" grep -q waits <<<"$line"
prints 'map(.duration_usec) == [7200000000, 7200000000]' list --json
ends 0 list
check 'the granted one shows when it ends' grep -q 'granted.*11[89]min' "$dir/out"
check 'the waiting one, too' grep -q 'waiting.*11[89]min' "$dir/out"
shows '120min' show "$(sed -n 's/^lease \([0-9]*\): .*/\1/p' <<<"$held")"
let_go TERM "$waiter"
let_go_of guest
list_becomes '. == []'
policy <<<$'[tenant *]\nmax-duration = 3s\nenforce = kill'
# shellcheck disable=SC2016
printf '#!/bin/sh\ntrap "echo told; exit 3" TERM\nwhile :; do sleep 0.1; done\n' >"$dir/obeys"
printf '#!/bin/sh\ntrap "" TERM\nwhile :; do sleep 0.1; done\n' >"$dir/does-not"
chmod 755 "$dir/obeys" "$dir/does-not"
guest ends 3 run --fixed --cus=4 -- "$dir/obeys"
out_has 'told'
err_has '3 s'
guest ends 137 run --cus=4 --duration=2s -- "$dir/does-not"
list_becomes '. == []'
# A waiting lease is granted when the duration of another one is over, although its holder does nothing.
hold_as student reserve --cus=60 --gpu=0
guest ends 0 run --wait --cus=60 --gpu=0 -- true
let_go_of student
list_becomes '. == []'
printf '[tenant t]\nmatch-user = root\nmax-duration = 1h\ndefault-duration = 2h\n' >"$dir/check.conf"
ends 6 config check "$dir/check.conf" --json
json_out '.problems | length == 1 and (.[0] | contains("default-duration"))'

# ---- an emergency ------------------------------------------------------------------------------
policy <<<$'[tenant students]\nmatch-group = 4001\n[tenant *]'
hold_as student reserve --cus=10 --gpu=0 --name=thesis
hold_as both reserve --cus=10 --gpu=1 --name=arm
hold_as guest reserve --cus=10 --gpu=1 --name=visit
names() { jq -c 'map(.name) | sort' "$dir/out"; }
for chosen in --user=games --tenant=students --gpu=0 --all; do
	fails 3 '--yes' revoke "$chosen"
	guest ends 4 revoke "$chosen" --yes
done
ends 0 list --json
check 'nothing was revoked' test "$(names)" = '["arm","thesis","visit"]'
ends 2 revoke
ends 2 revoke thesis --all
ends 2 revoke --user=no-such-user
ends 1 revoke --gpu=0000:99:00.0 --yes
ends 0 revoke --user=games --gpu=1 --yes # both have to choose it
shows 'smoke' revoke --tenant=students --gpu=1 --yes --reason=smoke
prints '[.[] | select(.state == "revoking").name] == ["arm"]' list --json
ends 0 revoke --gpu=1 --now --yes
list_becomes 'map(.name) == ["thesis"]'
prints '.revoked > 0 and .deadline == null' revoke thesis --now --json
hold_as student reserve --cus=10
ends 0 revoke --all --now --yes
ends 0 revoke --all --yes
list_becomes '. == []'
for name in student both guest; do let_go_of "$name"; done
if rig_has_terminal; then
	hold_as guest reserve --cus=10
	echo n | script -qec "$GPUARBCTL revoke --all" /dev/null >"$dir/out" 2>&1
	out_has '[y/N]'
	list_becomes 'length == 1'
	echo y | script -qec "$GPUARBCTL revoke --all --now" /dev/null >"$dir/out" 2>&1
	list_becomes '. == []'
	let_go_of guest
fi
rig_done
