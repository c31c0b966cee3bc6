#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# docs/examples/follow-lease.py follows a lease of the shipped gpuarbd as gpuarb-record(7) describes it.
# Environment as for test-ctl.sh.
set -u
: "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"

rig_need dbus-daemon dbus-monitor jq /usr/bin/python3
/usr/bin/python3 -c 'import dbus' 2>/dev/null || { echo 'skipped: no python3-dbus'; exit 77; }
rig_start_bus
rig_start_daemon --simulate=radeon-vii

exec 6< <(exec /usr/bin/python3 "$GPUARB_SOURCE_ROOT/docs/examples/follow-lease.py" 30 2>&1)
follower=$!
# record JQ: the next line of the example.
record()
{
	local line=
	said='follow-lease.py'
	read -r -t "$patience" line <&6
	[[ $line != Traceback* ]] || line+=$(cat <&6)
	printf '%s\n' "$line" >"$dir/out"
	: >"$dir/err"
	json_out "$1"
}
record '.path == "/org/gpuarb/Arbiter1/lease/1" and .state == "granted"'

# The members have the names and the values of the JSON output.
"$GPUARBCTL" resize 1 --cus=15 >/dev/null 2>&1
record '.lease == 1 and .generation == 2 and .state == "granted" and .deadline == null'
jq -S '.partitions[0] | del(.exclusive)' "$dir/out" >"$dir/received"
"$GPUARBCTL" show 1 --json | jq -S '.partitions[0] | del(.exclusive)' >"$dir/shown"
check 'the partition is the one that gpuarbctl shows' cmp "$dir/received" "$dir/shown"
check 'it has 15 CUs' jq -e '.cus == 15' "$dir/received"

"$GPUARBCTL" release 1 >/dev/null 2>&1
# An acknowledgement can be followed by a record of the same generation.
await_line 6 '*"ending"*'
printf '%s\n' "$line" >"$dir/out"
json_out '.state == "ending" and .cause == "ended" and .reason != ""'
wait "$follower"
check 'the example ends with the lease' test $? = 0

# The sizes and offsets of the page are those of dbus/record.h.
cat >"$dir/offsets.c" <<-'C'
	#include <stdio.h>
	#include "dbus/record.h"
	#define HEAD(field) printf("%zu %s\n", offsetof(struct gpuarb_record, field), #field)
	#define PART(field) printf("%zu %s\n", offsetof(struct gpuarb_record_partition, field), #field)
	int main(void)
	{
		HEAD(version); HEAD(header_size); HEAD(partition_size); HEAD(n_partitions); HEAD(lease);
		HEAD(generation); HEAD(deadline_usec); HEAD(state); HEAD(cause); HEAD(reason);
		PART(gpu); PART(tier); PART(gaps); PART(vram); PART(kfd_gpu_id); PART(cus); PART(cus_asked);
		PART(effective_cus); PART(shader_engines); PART(queues); PART(streams); PART(processes);
		PART(sdma_queues); PART(priority); PART(flags); PART(n_words); PART(cu_mask);
		PART(sdma_xgmi_queues); PART(reserved);
		return 0;
	}
C
if cc -I"$GPUARB_SOURCE_ROOT" -o "$dir/offsets" "$dir/offsets.c" 2>"$dir/err"; then
	"$dir/offsets" >"$dir/wanted"
	awk '/^\|  [0-9]+$/ { n = $2; getline; getline; print n, $2 }' \
		"$GPUARB_SOURCE_ROOT/docs/gpuarb-record.7.scd" >"$dir/written"
	check 'gpuarb-record(7) has the fields of dbus/record.h' cmp "$dir/wanted" "$dir/written"
fi
rig_done
