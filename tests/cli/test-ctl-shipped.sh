#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The policies that gpuarbctl config init installs, as the users of whom they speak: each sentence of their comments.
#
#	test-ctl-shipped.sh GPUARBCTL
#
# GPUARBD, GPUARB_SOURCE_ROOT: the daemon, the source tree.
set -u
GPUARBCTL=${1:-${GPUARBCTL:?}}
: "${GPUARBD:?}" "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/users.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/users.sh"
users_start --simulate=radeon-vii,radeon-vii

user member games 4001
user other man 4002
user third news

# shipped NAME: puts the policy into force, for the members of group 4001. Slices are those of a service manager.
shipped()
{
	sed 's/^match-group = .*/match-group = 4001/; /^match-slice/d' "$GPUARB_SOURCE_ROOT/conf/init/$1.conf" |
		policy
	prints '.valid and .warnings == []' config check "$dir/tenants.d" --json
}

none() { list_becomes '. == []'; }

# ---- lab -----------------------------------------------------------------------------------------
shipped lab
member ends 0 plan --class=guaranteed --cus=30 # half of each GPU
member ends 3 plan --class=guaranteed --cus=31 --exact
member ends 3 plan --adaptable --cus=31
member ends 3 plan --tenant='*' --cus=1
hold_as member reserve --class=guaranteed --cus=30 --gpu=0
other ends 3 plan --gpu=0 --cus=45 --json # that no other user gets
other ends 3 plan --cus=60 # nobody can take all of it
other ends 125 run --fixed --cus=60 -- true
other ends 3 plan --class=guaranteed --cus=1
other ends 0 plan --cus=15 --gpu=1
other ends 3 plan --cus=16 --gpu=1
hold_as other reserve --adaptable --cus=60 --cus-min=1 --gpu=0
third ends 0 plan --adaptable --cus=60 --cus-min=1 --gpu=0 --json # what is left is shared
json_out '.partitions[0].cus > 0 and .partitions[0].cus < 30'
third ends 3 plan --cus=1 --duration=8d --json
json_out '.refusals[0].resource == "duration"'
third prints '.duration_usec == 604800000000' plan --cus=1 --json
for name in member other; do let_go_of "$name"; done
none

# ---- desktop -------------------------------------------------------------------------------------
shipped desktop
hold_as other reserve --cus=30 --gpu=0 # what is left
third ends 3 plan --cus=1 --gpu=0 --json
json_out '.refusals[0].reason == "floor" and .refusals[0].tenant == "desktop"'
third ends 0 plan --adaptable --cus=60 --cus-min=1 --gpu=1 # adaptable: also what is kept
third ends 3 plan --class=realtime --shader-engines=1
member ends 0 plan --class=realtime --shader-engines=2 --gpu=0
member ends 3 plan --class=realtime --shader-engines=3 --gpu=1
member ends 0 run --json -- true # and a program of the person, too
json_err '.adaptable and .partitions[0].cus == 60'
hold_as third reserve --adaptable --cus=60 --cus-min=1 --queues=2 --gpu=1
member ends 0 run --class=realtime --shader-engines=2 --gpu=1 --wait=60 -- true
for name in other third; do let_go_of "$name"; done
none

# ---- server --------------------------------------------------------------------------------------
shipped server
member ends 0 plan --class=guaranteed --cus=45
member ends 3 plan --class=guaranteed --cus=46 --exact
other ends 3 plan --class=guaranteed --cus=1
hold_as other reserve --cus=60 --gpu=0
member ends 0 run --class=guaranteed --cus=45 --gpu=0 --wait=60 -- true # it makes room, with notice
let_go_of other
none

# ---- ci ------------------------------------------------------------------------------------------
shipped ci
member prints '.duration_usec == 1800000000' plan --cus=30 --json
member ends 3 plan --cus=31 --exact
member ends 0 plan --cus=30 --duration=2h
member ends 3 plan --cus=30 --duration=121min
other ends 3 plan --cus=8
other prints '.duration_usec == 28800000000' plan --cus=7 --json
other ends 3 plan --class=guaranteed --cus=1
hold_as other reserve --adaptable --cus=60 --cus-min=30 --gpu=0
hold_as third reserve --cus=7 --gpu=0
member ends 0 run --cus=30 --gpu=0 --wait=60 -- true # a job gets its room
for name in other third; do let_go_of "$name"; done
none
for job in 1 2 3 4 5 6 7 8; do
	hold_as member reserve --cus=3
	held_by[$job]=${held_by[member]}
done
member ends 3 plan --cus=3 --json
json_out '.refusals[0].key == "max-leases"'
for job in 1 2 3 4 5 6 7 8; do let_go_of "$job"; done
none
rig_done
