# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The sandbox of the daemon and of its helpers.

# is_little UNIT: systemd-analyze rates its exposure at 2.0 of 10 at most.
is_little() { systemd-analyze security --no-pager --threshold=20 "$1"; }

# of_process FIELD: the field of /proc/PID/status of the daemon.
of_process() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$(of_unit MainPID)/status"; }

has_no_privilege()
{
	same "$(of_process CapPrm) $(of_process CapBnd)" '0000000000000000 0000000000000000' &&
		same "$(of_process NoNewPrivs) $(of_process Seccomp)" '1 2'
}

# within COMMAND…: runs it as root in the mount namespace of the daemon.
within() { nsenter -t "$(of_unit MainPID)" -m "$@"; }

writes_nowhere()
{
	local place
	for place in /etc /usr /var /home /root /boot; do
		fails 1 'Read-only\|No such file\|Permission' within touch "$place/gpuarb-was-here" ||
			return
	done
	as alice touch /tmp/of-alice && fails 2 'No such file' within ls /tmp/of-alice
}

# The kernel checks the cgroup of the process that opens a device. 10:229 (fuse), which exists on every
# machine, stands for /dev/kfd.
opens_no_device()
{
	local tasks
	tasks=/sys/fs/cgroup$(of_unit ControlGroup)/cgroup.procs
	rm -f /dev/kfd
	mknod -m 666 /dev/kfd c 10 229
	bash -c 'exec 3<>/dev/kfd' &&
		fails 1 'Operation not permitted' bash -c "echo \$\$ >$tasks; exec 3<>/dev/kfd" &&
		bash -c "echo \$\$ >$tasks; exec 3<>/dev/null" && rm /dev/kfd
}

# amdkfd hides a GPU from processes that may not open its render node.
may_see_gpus()
{
	systemctl show -P DeviceAllow gpuarbd | grep -x 'char-drm rw' &&
		[ "$(of_unit DevicePolicy)" = closed ]
}

# Without libhsakmt, which is no package of its own from ROCm 6.3 on, there is no gpuarb-probe.
helpers='enforce fdinfo mqds hqds userqs budget'
! dpkg-query -W libhsakmt1 >/dev/null 2>&1 || helpers="$helpers probe"

# Only the user gpuarb can connect to the sockets of the helpers.
keeps_its_helpers()
{
	local helper
	for helper in $helpers; do
		same "$(stat -c '%a %U' "/run/gpuarb-$helper.socket")" '600 gpuarb' || return
	done
}

for helper in $helpers; do
	unit=gpuarb-$helper@0.service
	[ "$helper" != enforce ] || unit=gpuarb-enforce.service
	check "the exposure of $unit is low" is_little "$unit"
done
check 'the exposure of gpuarbd.service is low' is_little gpuarbd.service
check 'gpuarbd has no capability, and cannot get one' has_no_privilege
check 'gpuarbd can write in its runtime and state directories only' writes_nowhere
check 'gpuarbd cannot open /dev/kfd' opens_no_device
check 'the device policy lets gpuarbd see GPUs' may_see_gpus
check 'only gpuarbd can connect to its helpers' keeps_its_helpers
