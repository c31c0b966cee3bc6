#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The installed configuration and its owners: gpuarbd as its own user, gpuarbctl as root and gpuarbctl
# as any user report the same. Runs in a mount namespace, with an /etc that has the user of gpuarbd.
#
#	test-config-machine.sh GPUARBCTL
set -u
skip() { echo "skipped: $*"; exit 77; }

if [ "${1:-}" != --inside ]; then
	[ "$(id -u)" = 0 ] || skip "only root can be two users"
	command -v setpriv >/dev/null || skip "no setpriv"
	unshare -m --propagation private true 2>/dev/null || skip "no mount namespaces here"
	exec unshare -m --propagation private "$0" --inside "$1"
fi

# Copies of the programs that every user can execute.
mount -t tmpfs -o mode=755 none /mnt || skip "no tmpfs can be mounted"
cp -r "$GPUARBD" "$2" "$(dirname "$2")/gpuarb-rt" "$GPUARB_SOURCE_ROOT/conf/gpus" /mnt && mkdir /mnt/etc /mnt/run && cp -a /etc/. /mnt/etc
sed -i '/^gpuarb:/d' /mnt/etc/passwd /mnt/etc/group
echo 'gpuarb:x:4711:4711::/:/bin/false' >>/mnt/etc/passwd
echo 'gpuarb:x:4711:' >>/mnt/etc/group
# The library is beside the program, or in a directory of the loader.
lib=$(ldd "$2" | sed -n 's/.*=> \(.*libgpuarb\.so[^ ]*\).*/\1/p')
mkdir /mnt/lib
[ -z "$lib" ] || cp "$lib" /mnt/lib
export LD_LIBRARY_PATH=/mnt/lib
{ mount --bind /mnt/etc /etc && mount --bind /mnt/run /run; } || skip "nothing can be mounted"
rm -rf /etc/gpuarb

checks=0 failed=0
check_as_service() { gpuarb /mnt/gpuarbd --check --simulate=radeon-vii --profiles=/mnt/gpus; }
gpuarb() { setpriv --reuid=4711 --regid=4711 --clear-groups "$@"; }
somebody() { setpriv --reuid=1 --regid=1 --clear-groups "$@"; }

# told STATUS SENTENCE WHAT: all three report the sentence.
told()
{
	local status=$1 sentence=$2 what=$3 who
	checks=$((checks + 1))
	: >/mnt/out
	check_as_service >/mnt/daemon 2>&1
	[ $? = "$status" ] || echo "gpuarbd --check: another status" >>/mnt/out
	for who in command somebody; do
		"$who" /mnt/gpuarbctl config check >"/mnt/$who" 2>&1
		[ $? = "$status" ] || echo "$who gpuarbctl config check: another status" >>/mnt/out
	done
	for who in daemon command somebody; do
		grep -qF -- "$sentence" "/mnt/$who" || { echo "$who said:"; cat "/mnt/$who"; } >>/mnt/out
	done
	[ ! -s /mnt/out ] || { echo "FAIL: $what"; sed 's/^/  /' /mnt/out; failed=$((failed + 1)); }
}

defaults='no gpuarbd.conf and no tenants.d/*.conf in'
told 0 "$defaults" 'without a directory the defaults hold, and that is said'
mkdir -p /etc/gpuarb/tenants.d
told 0 "$defaults" 'empty ones are no policy either'
echo '[daemon]' >/etc/gpuarb/gpuarbd.conf
told 0 configuration 'a file is enough'
! grep -q "$defaults" /mnt/daemon /mnt/command || { echo 'FAIL: there is a file'; failed=1; }

chmod 775 /etc/gpuarb
told 6 '(mode 0775): chmod go-w' \
	'a directory that others can write is refused'
# With --gpu rt plan reads the defaults of a task set from this configuration.
planned() { /mnt/gpuarbctl rt plan /mnt/set.ini --profiles=/mnt/gpus "$@" >/mnt/out 2>&1; echo $?; }
cp "$GPUARB_SOURCE_ROOT/tests/data/rt/small.ini" /mnt/set.ini
{ [ "$(planned --gpu=0)" = 6 ] && grep -q -e '--config=FILE' /mnt/out; } ||
	{ echo 'FAIL: rt plan for this machine believes it'; cat /mnt/out; failed=1; }
[ "$(GPUARB_BUS_ADDRESS=unix:path=/mnt/none planned --gpu=0 --config=/dev/null)" = 5 ] ||
	{ echo 'FAIL: rt plan reads more than it was told to'; cat /mnt/out; failed=1; }
[ "$(planned --profile=radeon-vii)" = 0 ] ||
	{ echo 'FAIL: rt plan for a model needs this machine'; cat /mnt/out; failed=1; }
chmod 755 /etc/gpuarb
[ "$(GPUARB_BUS_ADDRESS=unix:path=/mnt/none planned --gpu=0)" = 5 ] ||
	{ echo 'FAIL: rt plan does not take a configuration that is right'; cat /mnt/out; failed=1; }
chown 1 /etc/gpuarb/tenants.d
told 6 '/etc/gpuarb/tenants.d' \
	'an empty directory of another user is refused'
chown 0 /etc/gpuarb/tenants.d

chmod 700 /etc/gpuarb/tenants.d
told 6 '/etc/gpuarb/tenants.d' 'a directory that cannot be read is refused'
grep -q 'uid 4711' /mnt/daemon /mnt/command ||
	{ echo 'FAIL: the uid is not named'; failed=1; }
chgrp gpuarb /etc/gpuarb/tenants.d
chmod 750 /etc/gpuarb/tenants.d
{ check_as_service && /mnt/gpuarbctl config check; } >/mnt/out 2>&1 ||
	{ echo 'FAIL: its group is enough'; cat /mnt/out; failed=1; }
chmod 755 /etc/gpuarb/tenants.d

mkdir -m 1777 /mnt/shared
mkdir /mnt/shared/conf.d
rmdir /etc/gpuarb/tenants.d
ln -s /mnt/shared/conf.d /etc/gpuarb/tenants.d
told 0 configuration 'a link to a directory of root is good'
chown -h 1 /mnt/shared/conf.d
told 6 '/mnt/shared/conf.d' 'a link does not hide whose a directory is'
rm /etc/gpuarb/tenants.d
touch /etc/gpuarb/tenants.d
told 6 '/etc/gpuarb/tenants.d' 'a file in the place of a directory is refused'
rm /etc/gpuarb/tenants.d

# The first error of the configuration is why gpuarbd does not start.
mkdir /mnt/bin
printf '#!/bin/sh\nexit 6\n' >/mnt/bin/starts
chmod 755 /mnt/bin/starts
cat >/mnt/org.gpuarb.Arbiter1.service <<-SERVICE
	[D-BUS Service]
	Name=org.gpuarb.Arbiter1
	Exec=/mnt/bin/starts
SERVICE
cat >/mnt/bus.conf <<-CONF
	<busconfig>
	  <type>session</type>
	  <listen>unix:path=/mnt/bus</listen>
	  <servicedir>/mnt</servicedir>
	  <policy context="default"><allow user="*"/><allow send_destination="*"/><allow eavesdrop="false"/></policy>
	</busconfig>
CONF
printf '[daemon]\nscan-interval = soon\n' >/etc/gpuarb/gpuarbd.conf
bus=$(dbus-daemon --config-file=/mnt/bus.conf --fork --print-pid) || exit 1
GPUARB_BUS_ADDRESS=unix:path=/mnt/bus /mnt/gpuarbctl status >/mnt/out 2>&1
code=$? reason='/etc/gpuarb/gpuarbd.conf:2: '
[ -z "${GPUARB_BUS:-}" ] || reason='unit failed' # all that dbus-broker says
[ $code = 5 ] && grep -q "$reason" /mnt/out ||
	{ echo 'FAIL: the error of the configuration is not the reason'; cat /mnt/out; failed=1; }
kill "$bus"
echo '[daemon]' >/etc/gpuarb/gpuarbd.conf

# The user of gpuarbd owns its runtime directory, and may own files in it.
mkdir -p /run/gpuarb/tenants.d
echo '[tenant *]' >/run/gpuarb/tenants.d/1.conf
chown -R gpuarb: /run/gpuarb
told 0 configuration 'what is of the service itself is good'
chown 1 /run/gpuarb/tenants.d/1.conf
told 6 '/run/gpuarb/tenants.d/1.conf' 'what somebody else has in it is not'

echo "$checks checks, $failed failed"
[ "$failed" = 0 ]
