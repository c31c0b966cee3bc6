# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154,SC2016
#
# The packages are installed on a machine without a GPU, then gpuarbd simulates one.

installs()
{
	dpkg -i /opt/debs/libgpuarb0_*.deb /opt/debs/gpuarb_*.deb &&
		[ "$(systemctl is-failed '*gpuarb*')" != failed ]
}

is_activated()
{
	systemctl stop gpuarbd
	fails 0 'found none on this machine' as alice gpuarbctl &&
		[ "$(systemctl is-active gpuarbd)" = active ]
}

runs_as_its_user()
{
	local pid
	pid=$(of_unit MainPID)
	same "$(of_unit NFileDescriptorStore):$(stat -c %a:%U /run/gpuarb /run/gpuarb/leases)" \
		$'0:755:gpuarb\n700:gpuarb' &&
		same "$(stat -c %U "/proc/$pid")" gpuarb &&
		same "$(busctl status org.gpuarb.Arbiter1 | sed -n 's/^EUID=//p')" "$(id -u gpuarb)"
}

doctor_finds_no_fault()
{
	fails 0 '^note .*no AMD GPU' gpuarbctl doctor && fails 0 '^note .*no AMD GPU' \
		as bob gpuarbctl doctor
}

doctor_finds_all_in_place()
{
	gpuarbctl doctor --json >"$dir/doctor"
	same "$(jq -c 'map(select(.check == ("bus", "daemon", "policy", "unit", "installed")) |
		select(.result != "ok"))' "$dir/doctor")" '[]'
}

has_simulated_gpus()
{
	printf '[daemon]\nbackend = simulated\n' >"$settings"
	gpuarbctl config check && systemctl restart gpuarbd &&
		same "$(as alice gpuarbctl gpus --json | jq -c 'map(.cus)')" '[60]'
}

# What gpuarb-budget lacks first on this machine, which has no AMD GPU. A container has no bpf file system.
lacking_for_budgets()
{
	local modules
	modules=$(cat /sys/kernel/security/lsm 2>/dev/null)
	if [ -n "$modules" ] && [[ ",$modules," != *,bpf,* ]]; then
		echo "the security module bpf is not active ($modules): boot with lsm=$modules,bpf"
	elif [ "$(stat -f -c %T /sys/fs/bpf)" != bpf_fs ]; then
		echo 'no bpf file system is mounted on /sys/fs/bpf'
	else
		echo '/sys/class/kfd/kfd/dev: cannot be read: is amdgpu loaded?'
	fi
}
has_tried_budgets() { [ "$(gpuarbctl status --json | jq -r .queue_budgets)" = "$(lacking_for_budgets)" ]; }

# systemd starts the helper with the rights that its unit leaves it.
asks_for_queue_budgets()
{
	local capped=${policy%/*}/10-capped.conf status
	printf '[tenant capped]\nmatch-user = root\ncap = yes\n' >"$capped" && gpuarbctl reload &&
		soon has_tried_budgets
	status=$?
	gpuarbctl status --json | jq .queue_budgets
	rm "$capped" && gpuarbctl reload && return "$status"
}

does_without_a_configuration()
{
	mv /etc/gpuarb "$dir/aside"
	systemctl restart gpuarbd && fails 0 'No leases' as alice gpuarbctl && doctor_finds_all_in_place
	local status=$?
	mv "$dir/aside" /etc/gpuarb
	return "$status"
}

# Only one message has the level notice: that there is no GPU.
says_nothing_of_note()
{
	! journal -p notice _COMM=gpuarbd | grep -v ': no AMD GPU here, or amdgpu is not loaded$'
}

# Its script is read only: the machine has no python3-prometheus-client.
exporter_starts_with_a_scrape()
{
	same "$(dpkg-deb --ctrl-tarfile /opt/debs/gpuarb-exporter_*.deb | tar -xO ./postinst |
		grep -o "deb-systemd-[a-z]* [a-z\$_-]* '.*'" | grep -o "'.*'" | sort -u)" \
		"'gpuarb-exporter.socket'"
}

check 'the packages install, and nothing fails' installs
check 'the package of the exporter enables its socket and starts no service' exporter_starts_with_a_scrape
check 'a call of an ordinary user starts gpuarbd, also without a GPU' is_activated
check 'gpuarbd runs under its own user' runs_as_its_user
check 'the first start logs no other notice or warning' says_nothing_of_note
check 'doctor finds no problem on a machine without a GPU' doctor_finds_no_fault
check 'doctor finds the bus, the daemon, the unit and all files' doctor_finds_all_in_place
check 'gpuarbd starts without /etc/gpuarb' does_without_a_configuration
check 'gpuarb-budget tells whether the kernel limits queues' asks_for_queue_budgets
check 'gpuarbd reads /etc/gpuarb/gpuarbd.conf' has_simulated_gpus
check 'the autopkgtest of the unit passes' eval '/opt/autopkgtest/service && soon no_leases'
