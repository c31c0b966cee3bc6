#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Numbers that must agree: the unit's limits and the daemon's, for leases to outlive it; and
# those that are a promise in the texts.
#
#	check-limits.sh SOURCE
set -eu
unit=$1/systemd/gpuarbd.service.in
status=0

complain() { echo "$*"; status=1; }
of_unit() { sed -n "s/^$1=//p" "$unit"; }

store=$(of_unit FileDescriptorStoreMax)
files=$(of_unit LimitNOFILE)
holders=$(sed -n 's/^\tsettings->max_holders = \([0-9]*\);$/\1/p' "$1/daemon/core/policy/settings.c")
own=$(sed -n 's/^#define OWN_FDS \([0-9]*\)U$/\1/p' "$1/daemon/liveness.c")
queue=$(sed -n 's/^#define STORE_QUEUE_MAX \([0-9]*\)U$/\1/p' "$1/daemon/sys/liveness/store.h")
for value in "$store" "$files" "$holders" "$own" "$queue"; do
	case $value in '' | *[!0-9]*) echo "one of five numbers is not where it was"; exit 1 ;; esac
done

[ "$store" -gt "$holders" ] ||
	complain "FileDescriptorStoreMax=$store: max-holders is $holders, and a probe needs room"
[ "$files" -ge $((store + own + queue)) ] ||
	complain "LimitNOFILE=$files: $store may be stored, $queue sent, and $own are the daemon's own"
for text in docs/gpuarbd.8.scd docs/gpuarbd.conf.5.scd systemd/gpuarbd.service.in; do
	grep -q "LimitNOFILE.* $((own + queue))\b\|FileDescriptorStoreMax by $((own + queue)):" "$1/$text" ||
		complain "$text does not say that LimitNOFILE= is more by $((own + queue))"
done
grep -q "^#define FDS_BESIDE_STORE $((own + queue))U\$" "$1/client/doctor/doctor-service.c" ||
	complain "client/doctor/doctor-service.c does not count $((own + queue)) beside the store"
[ "$(of_unit StartLimitIntervalSec)" = 0 ] ||
	complain "StartLimitIntervalSec is not 0: after quick failures the store is emptied"
[ "$(of_unit RuntimeDirectoryPreserve)" = restart ] ||
	complain "RuntimeDirectoryPreserve is not restart: the files of leases would be gone"

grep -q "^#max-holders = $holders\$" "$1/conf/gpuarbd.conf" ||
	complain "conf/gpuarbd.conf has another max-holders than $holders"

passes=$(sed -n 's/^#define LEASE_PASSES_MAX \([0-9]*\)U$/\1/p' "$1/daemon/core/ledger/lease.h")
for text in docs/gpuarbctl-run.1.scd dbus/org.gpuarb.Arbiter1.xml; do
	tr '\n' ' ' <"$1/$text" | grep -qi "\(after\|when\) $passes .*granted on a GPU" ||
		complain "$text does not say that a request is passed ${passes:-?} times"
done

tried=$(sed -n 's/^Linux \([0-9.]*\): .*/\1/p' "$1/tests/system/requests.expected" | sort -V | tail -n 1)
grep -q "^#define TRIED_LINUX \"$tried\"\$" "$1/client/doctor/doctor-driver.c" ||
	complain "client/doctor/doctor-driver.c does not name Linux $tried, the newest of tests/system/kernel"

[ "$(wc -l <"$1/README.md")" -le 200 ] || complain "README.md has more than 200 lines"
exit $status
