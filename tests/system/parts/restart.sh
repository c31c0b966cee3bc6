# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154,SC2016
#
# Events that leases survive, and events that end them.
drop_in=/run/systemd/system/gpuarbd.service.d
before=

arrive()
{
	hold root root reserve --name=root --cus=15 &&
		hold bob other reserve --name=other --cus=15 &&
		hold alice command run --cus=15 -- sleep infinity &&
		hold alice waiting reserve --name=waiting --gpu=0 --cus=30 --isolation=cu \
			--class=besteffort --wait=3600 && before=$(gpuarbctl list --json)
}

# Ids, masks, the stored file descriptors and the clients are the same as before.
as_before()
{
	same "$(gpuarbctl list --json)" "$before" && stores 4 && kill -0 "${client[@]}"
}

# die_of SIGNAL: ends gpuarbd by the signal, and waits until systemd has started it again.
die_of()
{
	local pid
	pid=$(of_unit MainPID)
	systemctl kill -s "$1" gpuarbd
	soon another_runs "$pid"
}

restarted_after() { die_of "$1" && as_before; }

five_crashes()
{
	for _ in 1 2 3 4 5; do
		die_of KILL || return
	done
	as_before
}

caught_by_the_watchdog()
{
	local pid
	mkdir -p "$drop_in"
	printf '[Service]\nWatchdogSec=1s\n' >"$drop_in/watchdog.conf"
	systemctl daemon-reload && systemctl restart gpuarbd || return
	pid=$(of_unit MainPID)
	systemctl kill -s STOP gpuarbd
	pidwait -F <(echo "$pid")
	soon another_runs "$pid" || return
	rm "$drop_in/watchdog.conf"
	systemctl daemon-reload && systemctl restart gpuarbd && as_before &&
		journalctl -b -q -u gpuarbd --no-pager | grep -i 'watchdog timeout'
}

refuses_to_start_and_keeps_leases()
{
	echo nonsense >>"$settings"
	! systemctl restart gpuarbd 2>/dev/null || return
	sed -i '$d' "$settings"
	systemctl start gpuarbd && as_before
}

bus_restarts() { systemctl restart dbus && as_before; }
bus_dies() { systemctl kill -s KILL dbus && soon systemctl start dbus && as_before; }

both_die()
{
	systemctl stop dbus.socket dbus && systemctl kill -s KILL gpuarbd || return
	systemctl start dbus.socket dbus && as_before
}

stops()
{
	systemctl stop gpuarbd && stores 0 && [ ! -e /run/gpuarb ] &&
		ended root 8 && ended other 8 && ended waiting 5 && kill -0 "${client[command]}"
}

ends_by_themselves()
{
	let_go command
	systemctl start gpuarbd && arrive || return
	kill "${client[@]}"
	wait
	client=()
	soon stores 0 && soon no_leases
}

# 300 leases log more messages than the socket of the journal can queue (net.unix.max_dgram_qlen,
# which systemd sets to 512).
serves_while_the_journal_stands_still()
{
	local n=0 before
	before=$(ends_told)
	systemctl kill -s STOP systemd-journald
	while [ "$n" -lt 300 ] && timeout 10 setpriv --reuid=alice --regid=alice --init-groups \
		gpuarbctl run --gpu=0 --cus=1 --shape=any -- true; do
		n=$((n + 1))
	done
	systemctl kill -s CONT systemd-journald
	[ "$n" = 300 ] || { echo "$n served"; return 1; }
	soon more_ends_told "$before"
}

# The runtime directory is a file system of 64 KiB, and full.
refuses_what_it_cannot_save()
{
	systemctl stop gpuarbd && mkdir /run/gpuarb &&
		mount -t tmpfs -o size=64k,mode=755,uid=gpuarb,gid=gpuarb tmpfs /run/gpuarb &&
		systemctl start gpuarbd || return
	dd if=/dev/zero of=/run/gpuarb/full status=none # until there is no room
	fails 1 'org.gpuarb.Arbiter1.Error.NotSaved' as alice gpuarbctl reserve --json --cus=15 && no_leases &&
		fails 0 '' as alice gpuarbctl gpus && rm /run/gpuarb/full &&
		as alice gpuarbctl run --cus=15 -- true
	local status=$?
	systemctl stop gpuarbd
	umount /run/gpuarb && systemctl start gpuarbd && return "$status"
}

ends_told() { entries ended -o cat | wc -l; }
more_ends_told() { [ "$(ends_told)" -gt "$1" ]; }

check 'systemd stores the file descriptors of the leases' eval 'arrive && as_before'
check 'leases outlive systemctl restart' eval 'systemctl restart gpuarbd && as_before'
for signal in TERM KILL SEGV ABRT; do
	check "leases outlive SIG$signal" restarted_after "$signal"
done
check 'leases outlive five crashes in a row' five_crashes
check 'leases outlive a daemon that hangs' caught_by_the_watchdog
check 'leases stay in a reload' eval 'systemctl reload gpuarbd && as_before'
check 'leases stay in a daemon-reload' eval 'systemctl daemon-reload && as_before'
check 'leases stay in a daemon-reexec' eval 'systemctl daemon-reexec && as_before'
check 'leases outlive a restart after a daemon-reexec' eval 'systemctl restart gpuarbd && as_before'
check 'a bad configuration loses no lease' refuses_to_start_and_keeps_leases
check 'leases outlive a restart of the bus' bus_restarts
check 'leases outlive a crash of the bus' bus_dies
check 'leases outlive bus and daemon at once' both_die
check 'systemctl stop ends leases, and holders see it' stops
check 'leases that end leave nothing in the store' ends_by_themselves
check 'a lease that cannot be saved is not granted' refuses_what_it_cannot_save
check 'a journal that is stopped delays no request' serves_while_the_journal_stands_still
