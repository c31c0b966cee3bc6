# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What the daemon and its helpers may do to the machine.

# 2.0 of 10.
is_little() { systemd-analyze security --no-pager --threshold=20 "$1"; }

# of_process FIELD: of the daemon, as the kernel has it.
of_process() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$(of_unit MainPID)/status"; }

has_no_privilege()
{
	same "$(of_process CapPrm) $(of_process CapBnd)" '0000000000000000 0000000000000000' &&
		same "$(of_process NoNewPrivs) $(of_process Seccomp)" '1 2'
}

# In its file system, as root: what root cannot, it cannot.
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

# In its control group, which is what the kernel asks. 10:229, which is there on any machine (fuse),
# stands for /dev/kfd.
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

# The kernel hides a GPU from who might not open its render node.
may_see_gpus()
{
	systemctl show -P DeviceAllow gpuarbd | grep -x 'char-drm rw' &&
		[ "$(of_unit DevicePolicy)" = closed ]
}

# Sockets of helpers are the daemon's alone.
keeps_its_helpers()
{
	same "$(stat -c '%a %U' /run/gpuarb-enforce.socket /run/gpuarb-mqds.socket)" \
		$'600 gpuarb\n600 gpuarb'
}

for unit in gpuarbd.service gpuarb-enforce.service gpuarb-mqds@0.service; do
	check "what $unit may do is little" is_little "$unit"
done
check 'it has no privilege, and gets none' has_no_privilege
check 'it writes nowhere but in its directory' writes_nowhere
check 'it opens no device' opens_no_device
check 'it may see GPUs' may_see_gpus
check 'nobody else talks to its helpers' keeps_its_helpers
