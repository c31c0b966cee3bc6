#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
#	test-podman.sh CLIENT-RAW GPUARB-OCI
#
# Queues of containers on the emulated driver: each counts for the lease that the hooks took for its container, and a queue
# too many is named; those of `podman exec`, too. A container with an adaptable lease follows it, and leaves nothing behind. So does a program under
# `gpuarbctl run` in a container.
set -u
if [ "${INSIDE:-}" != yes ]; then
	[ -n "${GPUARB_LONG:-}" ] || { echo 'skipped: podman takes half a minute: tests/run --long'; exit 77; }
	. "${0%/*}/rig.sh"
	rig_need jq dbus-daemon podman runc conmon
	[ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1 || { echo 'skipped: no static busybox'; exit 77; }
	play --gpu radeon-vii --gpu mi210 -- "$@"
	rig_done
fi

raw=$1 oci=$2
# shellcheck source=tests/kfdsim/stage.sh
. "$GPUARB_ROOT/tests/kfdsim/stage.sh"
# gpuarbd finds containers in the unified hierarchy.
[ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || { umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup; } ||
	{ echo 'skipped: no cgroup2 file system'; exit 77; }
printf '[daemon]\nbackend = kfd\naudit-interval = 100ms\ndrift-grace = 200ms\n' >"$dir/gpuarbd.conf"
: >"$dir/tenants.d/all.conf"
mkdir -p "$dir"/hooks "$dir"/rootfs/{bin,proc,sys,dev,etc,tmp,usr,lib,lib64}
cp /bin/busybox "$dir/rootfs/bin"
ln -s busybox "$dir/rootfs/bin/sh"
install -m 755 "$oci" "$dir/gpuarb-precreate"
ln "$dir/gpuarb-precreate" "$dir/gpuarb-createruntime"
printf '[containers]\npids_limit = 0\n[engine]\nhooks_dir = ["%s"]\n' "$dir/hooks" >"$dir/containers.conf"
export CONTAINERS_CONF=$dir/containers.conf
podman=(podman --cgroup-manager=cgroupfs --root "$dir/pod" --runroot "$dir/podrun" --storage-driver vfs --runtime runc)
nodes=(-v /dev/dri:/dev/dri) # all, unless a container is to have fewer
in_container=(--network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 -v /dev/kfd:/dev/kfd -v /sys:/sys:ro
	-v /usr:/usr:ro -v /lib:/lib:ro -v /lib64:/lib64:ro -v "$raw:/bin/raw:ro" --rootfs "$dir/rootfs")
# shellcheck disable=SC2317 # trap calls it
clean() { "${podman[@]}" rm -a -f -t 0 >/dev/null 2>&1; kill -KILL "$manager_pid" 2>/dev/null; rig_clean; }
trap clean EXIT
start --debugfs=/sys/kernel/debug
for name in gpuarb-precreate gpuarb-createruntime; do
	jq --arg path "$dir/$name" --arg bus "GPUARB_BUS_ADDRESS=$GPUARB_BUS_ADDRESS" --arg agent "GPUARB_AGENT_DIR=$GPUARB_AGENT_DIR" \
		'.hook.path = $path | .hook.env = [$bus, $agent, "ASAN_OPTIONS=detect_leaks=0"]' \
		"$(dirname "$oci")/$name.json" >"$dir/hooks/$name.json"
done

# container NAME OPTION… -- COMMAND…: its standard input is what is written to $dir/rootfs/tmp/NAME.
container()
{
	local name=$1 options=()
	shift
	while [ "$1" != -- ]; do options+=("$1"); shift; done
	shift
	mkfifo "$dir/rootfs/tmp/$name"
	said="podman run $name"
	timeout "$patience" "${podman[@]}" run -d --name "$name" "${options[@]}" "${nodes[@]}" "${in_container[@]}" \
		/bin/sh -c "exec \"\$@\" <>/tmp/$name >/tmp/$name.out 2>&1" sh "$@" >"$dir/out" 2>"$dir/err" </dev/null &&
		return
	grep -q 'OCI runtime\|cgroup' "$dir/err" && { echo "skipped: podman starts no container here: $(tail -n 1 "$dir/err")"; exit 77; }
	complain "$said: failed"
}
ask() { echo "${*:2}" >"$dir/rootfs/tmp/$1"; } # NAME LINE
queue() { ask "$1" queue; }
drifts() { echo "([$(named "$1").drift[] | .kind] | sort == $2)"; } # NAME KINDS

container one --annotation org.gpuarb.cus=15 --annotation org.gpuarb.queues=2 --annotation org.gpuarb.processes=2 \
	--annotation org.gpuarb.name=one --annotation "org.gpuarb.gpu=$vii" -- raw
container two --annotation org.gpuarb.cus=16 --annotation org.gpuarb.queues=2 --annotation org.gpuarb.processes=2 \
	--annotation org.gpuarb.name=two --annotation "org.gpuarb.gpu=$mi210" -- raw 2
queue one
ask one mask 11111111
queue two
ask two mask ffff
settles "$(drifts one '[]') and $(drifts two '[]') and ([.gpus[].observed[]] | length == 2)"
for command in queue 'mask ffff' queue 'mask ffff'; do ask two "$command"; done
settles "$(drifts one '[]') and $(drifts two '["queues"]') and ([.gpus[].unmanaged[]] == [])"
driver '[.gpus[].compute_queues] == [1, 3]'
ask two destroy

# What podman adds to a container does not descend from its first process, and has no mask.
execute() # CONTAINER NAME COMMAND…
{
	mkfifo "$dir/rootfs/tmp/$2"
	said="podman exec $2"
	"${podman[@]}" exec -d "$1" /bin/sh -c "exec \"\$@\" <>/tmp/$2 >/tmp/$2.out 2>&1" sh "${@:3}" >"$dir/out" 2>"$dir/err" ||
		complain "$said: failed"
	queue "$2"
}
# Those that have a queue without a mask.
wide() { jq -c "[.processes[] | select(.alive and any($compute; .mask == null)) | .pid] | sort" /sys/kernel/debug/kfdsim/state; }
are_wide() { [ "$(wide | jq length)" = "$1" ]; }
execute one one-more raw
execute two two-more raw 2
await_so 'both have a queue without a mask' are_wide 2
added="([.leases[].drift[] | select(.kind == \"mask\") | .pid] | sort) == $(wide) and ([.gpus[].unmanaged[]] == [])"
settles "$added"
# With the variables of the first process, as gpuarb-containers(7) has it.
said='podman exec with variables'
# shellcheck disable=SC2016
"${podman[@]}" exec one sh -c 'export $(tr "\0" "\n" </proc/1/environ |
	grep -E "^(ROCR_VISIBLE|HSA_CU_MASK|GPU_MAX_HW|GPUARB|LD_PRELOAD)"); exec env' >"$dir/out" 2>"$dir/err" || complain 'it fails'
out_has 'HSA_CU_MASK=0:0x111111111111111'
out_has "GPUARB_LEASE=$("$GPUARBCTL" list --json | jq '.[] | select(.name == "one").id')"
kill -KILL "$gpuarbd"
gpuarbd_is ready
settles "$added"
execute one one-again raw
settles "$(drifts one '["mask", "processes", "queues"]') and ([.gpus[].unmanaged[]] == [])"
wide | jq '.[]' | xargs kill -KILL
settles "$(drifts one '[]') and $(drifts two '[]')"
"${podman[@]}" stop -t 0 one >/dev/null 2>&1
settles '[.leases[].name] == ["two"]'
said='podman start one'
"${podman[@]}" start one >"$dir/out" 2>"$dir/err" || complain "$said: failed"
execute one one-later raw
settles "$(drifts one '["mask"]') and ([.gpus[].unmanaged[]] == [])"
"${podman[@]}" rm -a -f -t 0 >/dev/null 2>&1
settles '.leases == []'

# One that has the render node of the second GPU only: ROCr finds no other one there.
minor=$(sed -n 's/^drm_render_minor \([1-9]\)/\1/p' /sys/class/kfd/kfd/topology/nodes/*/properties | tail -n 1)
nodes=(-v "/dev/dri/renderD$minor:/dev/dri/renderD$minor")
container six --annotation org.gpuarb.cus=15 --annotation org.gpuarb.name=six -- raw 2
queue six
settles "$(named six) | .partitions[0].gpu == \"$mi210\" and .drift == []"
"${podman[@]}" rm -a -f -t 0 >/dev/null 2>&1
settles '.leases == []'
nodes=(-v /dev/dri:/dev/dri)

# An adaptable one: the agent outside, its library and its socket inside. In the test, /lib and /lib64 are volumes, so a copy
# of the C library stands for that of the image.
cp -L /lib64/ld-linux-x86-64.so.2 "$dir/rootfs/lib64"
mkdir "$dir/rootfs/lib/x86_64-linux-gnu"
cp -L /lib/x86_64-linux-gnu/libc.so.6 "$dir/rootfs/lib/x86_64-linux-gnu"
has_sockets() { [ "$(find /run -maxdepth 1 -name "gpuarb-agent-$lease-*" | wc -l)" = "$1" ]; }
# The words of grep itself are among those of all processes: they do not match.
agents() { for path in /proc/[0-9]*/cmdline; do tr '\0' ' ' <"$path"; echo; done 2>/dev/null | grep -c "/gpuarb-agent $lease [0-9]"; }
has_agents() { [ "$(agents)" = "$1" ]; }
follows() # NAME: an adaptable container that runs
{
	queue "$1"
	settles "$(named "$1") | .adaptable and .partitions[0].cus == 60"
	lease=$(jq "$(named "$1").id" "$dir/out")
	await_so 'it has one agent' has_agents 1
	await_so 'it has one socket' has_sockets 1
	hold reserve --gpu=0000:03:00.0 --cus=30
	settles "$(named "$1") | .partitions[0].cus == 30"
	mask=$(jq -r "$(named "$1").partitions[0].cu_mask" "$dir/out")
	driver "[.processes[] | select(.alive) | $compute | .mask] | unique == [\"$mask\"]"
	let_go TERM "$holder"
	settles "$(named "$1") | .partitions[0].cus == 60"
}
leaves() { settles '.leases == []'; await_so 'no agent is left' has_agents 0; await_so 'no socket is left' has_sockets 0; }
adaptable() # NAME PROGRAM OPTION…
{
	container "$1" "${@:3}" --annotation "org.gpuarb.name=$1" --annotation org.gpuarb.gpu=0000:03:00.0 \
		--annotation org.gpuarb.cus=60 --annotation org.gpuarb.cus-min=15 --annotation org.gpuarb.adaptable=yes -- "$2"
}
adaptable four raw
follows four
"${podman[@]}" stop -t 0 four >/dev/null 2>&1
leaves
said='podman start four'
"${podman[@]}" start four >"$dir/out" 2>"$dir/err" || complain "$said: failed"
follows four
kill -KILL "$gpuarbd"
gpuarbd_is ready
kill -KILL "$("${podman[@]}" inspect four --format '{{.State.ConmonPid}}')"
follows four
kill -KILL "$("${podman[@]}" inspect four --format '{{.State.Pid}}')"
leaves
if [ -n "${CLIENT_RAW_MUSL:-}" ]; then # as Alpine Linux
	rm "$dir"/rootfs/lib64/*
	touch "$dir/rootfs/lib/ld-musl-x86_64.so.1"
	adaptable five raw-musl -v "$CLIENT_RAW_MUSL:/bin/raw-musl:ro"
	follows five
	"${podman[@]}" stop -t 0 five >/dev/null 2>&1
	leaves
fi

# One with gpuarbctl inside, and a network namespace of its own.
mounts=()
for path in "$GPUARBCTL" "${GPUARB_AGENT_DIR%/agent}" "$dir"; do mounts+=(-v "$path:$path"); done
for name in GPUARB_BUS_ADDRESS GPUARB_AGENT_DIR LD_LIBRARY_PATH; do mounts+=(-e "$name=${!name}"); done
container three "${mounts[@]}" -e ASAN_OPTIONS=detect_leaks=0 -- \
	"$GPUARBCTL" run --adaptable --gpu=0000:03:00.0 --cus=60 --cus-min=15 --name=three -- raw
queue three
settles "$(named three) | .partitions[0].cus == 60"
hold reserve --gpu=0000:03:00.0 --cus=30
settles "[.leases[].state] == [\"granted\", \"granted\"] and ($(named three) | .partitions[0].cus == 30)"
mask=$(jq -r "$(named three).partitions[0].cu_mask" "$dir/out")
driver "[.processes[] | select(.alive) | $compute | .mask] == [\"$mask\"]"
let_go TERM "$holder"

# The same program outside of a container belongs to no lease, in whichever cgroup it is.
program stray "$raw"
first=$("${podman[@]}" inspect three --format '{{.State.Pid}}')
said='the cgroup of a container'
echo "${pid[stray]}" >"/sys/fs/cgroup$(sed -n 's/^0:://p' "/proc/$first/cgroup")/cgroup.procs" || complain 'it takes no process'
tell stray queue
settles '.gpus[0].unmanaged | length == 1'
finish
