# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154,SC2016,SC2034
#
# In the machine that boots systemd on a kernel with the emulated GPU of fakekfd: the services that read debugfs,
# caps of units and scopes, and frozen units.
lines=300 turns=100
series=$(uname -r | cut -d . -f 1-2)

# loads FIRST LAST: loads the modules from the one to the other. The image has no kmod, by which the unit of
# gpuarbd loads drm: DeviceAllow=char-drm needs it.
loads()
{
	local module
	sed -n "/^$1.ko$/,/^$2.ko$/p" /modules/modules.order >"$dir/modules"
	while read -r module; do
		# shellcheck disable=SC2046 # or nothing
		/opt/test/busybox insmod "/modules/$module" \
			$([ "$module" != amdgpu.ko ] || cat /test/parameters) || return
	done <"$dir/modules"
}

installs() { loads crc16 drm && dpkg -i /opt/debs/*.deb && systemctl start gpuarbd && same "$(gpus)" ''; }
gpus() { gpuarbctl gpus --json | jq -r '.[].gfx_target'; }
has_gpu() { same "$(gpus)" gfx90a; }

# There is no udev to set modes.
finds_the_gpu() { loads drm_kms_helper amdgpu && chmod 666 /dev/kfd /dev/dri/renderD* && soon has_gpu; }

takes_a_policy()
{
	cat >"$policy" <<-END
		[tenant robot]
		match-user = alice
		class = realtime
		[tenant lab]
		match-user = bob
		enforce = freeze
	END
	gpuarbctl config check && gpuarbctl reload
}

# launch NAME COMMAND…: how use() starts a program: of $user, in the service or scope NAME.
user=alice
as=service
launch()
{
	local how=--pipe
	[ "$as" = service ] || how=--scope
	exec systemd-run -q "$how" --unit="$1" --uid="$user" --gid="$user" "${@:2}"
}

# ---- debugfs -------------------------------------------------------------------------------

unseen() { gpuarbctl gpus --json | jq -r '.[0].unseen'; }
misses_debugfs() { [[ $(unseen) == *'/sys/kernel/debug/kfd/mqds does not exist'* ]]; }

knows_that_nothing_is_read()
{
	systemctl stop sys-kernel-debug.mount && [ ! -e /sys/kernel/debug/kfd ] &&
		systemctl restart gpuarbd && soon has_gpu && soon misses_debugfs &&
		fails '*' '/sys/kernel/debug/kfd/hqds does not exist' gpuarbctl slots
}

# The descriptors are first read when the queues have their mask. The scheduler of fakekfd puts no queue into a slot.
reads_debugfs()
{
	local daemon words status
	systemctl start sys-kernel-debug.mount && systemctl restart gpuarbd && soon has_gpu &&
		use reader 'made 0' gpuarbctl run --name=reader --fixed --cus=26 --queues=5 -- /test/queues 0 || return
	daemon=$(of_unit MainPID)
	words=$(words_of "$(lease reader)")
	kill -STOP "$daemon"
	tell 'make 4' 'made 4' && tell "mask $words" masked
	status=$?
	kill -CONT "$daemon"
	[ "$status" = 0 ] && soon lease_has reader '.partitions[0].tier' '"verified"' && same "$(unseen)" null &&
		same "$(gpuarbctl slots --json | jq -c '.[0] | [.pipes, .queues_without_slot]')" '[4,4]' &&
		leave_it reader && soon no_leases
}

# ---- capped units --------------------------------------------------------------------------

# Neither the tenant nor the command line asks for a cap. The SDMA queue counts.
caps()
{
	use robot 'made 0' gpuarbctl run --name=robot --class=realtime --shader-engines=1 --queues=3 \
		--sdma-queues=1 -- /test/queues 0 && soon lease_has robot '.partitions[0].tier' '"capped"' &&
		has_budgets enforced && is_pinned && tell 'make 5' "made 4: $too_many"
}

is_counted() { soon lease_has robot '.queue_refusals >= 1' true; }

# systemd starts gpuarbd again, which gets its leases back.
outlives_a_crash()
{
	local pid
	pid=$(of_unit MainPID)
	systemctl kill -s KILL gpuarbd && soon another_runs "$pid" &&
		soon lease_has robot .capped true &&
		tell 'drop 1' 'made 3' && tell 'make 2' "made 4: $too_many"
}

# The bpf file system keeps the programs.
holds_without_gpuarb()
{
	systemctl stop gpuarbd gpuarb-budget.socket 'gpuarb-budget@*' && tell 'drop 2' 'made 2' &&
		tell 'make 3' "made 4: $too_many"
}

# A stopped gpuarbd leaves no leases.
ends_with_the_next_start()
{
	is_pinned && systemctl start gpuarb-budget.socket gpuarbd && soon no_leases && soon is_not_pinned &&
		soon tell 'make 1' 'made 5' && leave_it robot
}

ends_with_the_lease() { leave_it robot && soon no_leases && soon is_not_pinned; }

check 'the packages install, and gpuarbd starts' installs
check 'gpuarbd finds the GPU of a driver that is loaded later' finds_the_gpu
check 'gpuarbd knows that it reads nothing of debugfs where that is not mounted' knows_that_nothing_is_read
check 'the services read masks and slots in debugfs' reads_debugfs
check 'a policy is put into force' takes_a_policy
check "Linux $series refuses queues beyond the grant of a service" caps
check 'gpuarbd counts what the kernel refused' is_counted
check 'the cap outlives a gpuarbd that is killed' outlives_a_crash
check 'the cap holds while gpuarbd and its helper are stopped' holds_without_gpuarb
check 'it ends when gpuarbd starts again' ends_with_the_next_start
as=scope
check "Linux $series refuses queues beyond the grant of a scope" caps
check 'the cap of a scope ends with the lease' ends_with_the_lease
as=service

# ---- frozen units --------------------------------------------------------------------------

state_is() { lease_has "$1" .state "\"$2\""; }
job_is() { [ "$(systemctl show -P FreezerState job)" = "$1" ]; }

# The holder is stopped: nobody gives up what the lease has borrowed. It is not in the unit.
borrows()
{
	hold alice film reserve --name=film --class=realtime --shader-engines=1 --start-inactive &&
		hold bob holder reserve --adaptable --name=job --cus=13 --cus-max=104 &&
		user=bob use job 'made 0' /test/queues 0 && soon lease_has job '.partitions[0].cus' 104 &&
		as bob /test/bind "$(lease job)" "$(systemctl show -P MainPID job)" &&
		tell 'make 1' 'made 1' && kill -STOP "${client[holder]}"
}

# The program does not answer while it is frozen.
freezes()
{
	as alice gpuarbctl activate "$(lease film)" && soon job_is frozen && state_is film activating &&
		! lines=3 tell 'drop 1' 'made 0'
}

thaws()
{
	local line
	as alice gpuarbctl deactivate "$(lease film)" && soon job_is running && state_is film inactive &&
		read -r -t "$lines" line <&"$output" && same "$line" 'made 0'
}

leaves()
{
	kill -CONT "${client[holder]}" && leave_it job && let_go holder
	let_go film
	soon no_leases
}

check 'a program borrows CUs' borrows
check "on Linux $series systemd freezes the unit of a borrower that does not return CUs" freezes
check 'the unit is thawed when the CUs are not needed any more, and the program goes on' thaws
check 'the leases end' leaves
check 'the driver printed no warning' no_warnings
