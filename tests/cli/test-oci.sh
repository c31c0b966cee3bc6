#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The hooks for containers: beside a process that stands for a container, in a user namespace as rootless podman runs
# them, and, with tests/run --long, under podman.
#
#	test-oci.sh GPUARBCTL GPUARB_OCI
#
# GPUARBD, SERVICE_MANAGER, GPUARB_SOURCE_ROOT: the daemon, what stands for systemd, the source tree.
set -u
GPUARBCTL=${1:-${GPUARBCTL:?}}
oci=${2:?}
hook_arguments=()
: "${GPUARBD:?}" "${SERVICE_MANAGER:?}" "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/users.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/users.sh"
users_start --simulate=radeon-vii,radeon-vii
user games games
install -m 755 "$oci" "$dir/gpuarb-precreate" # one program, as installed
for name in gpuarb-createruntime gpuarb-other; do ln "$dir/gpuarb-precreate" "$dir/$name"; done

# hook NAME CODE [COMMAND…]: runs it by the command, with $dir/in as standard input.
hook()
{
	local text code
	text=$(<"$dir/in")
	said="$1 <${text:0:300}"
	"${@:3}" "$dir/$1" "${hook_arguments[@]}" <"$dir/in" >"$dir/out" 2>"$dir/err"
	code=$?
	[ "$code" = "$2" ] || complain "$said: ended with $code, not $2"
}
# config JSON: the configuration of a container with these annotations.
config()
{
	cat >"$dir/in" <<-JSON
		{"ociVersion": "1.0.2", "hostname": "3fea5e57c662", "annotations": $1,
		"process": {"rlimits": [{"type": "RLIMIT_NPROC", "hard": 18446744073709551615}],
		"env": ["PATH=/bin", "HIP_VISIBLE_DEVICES=1", "HSA_CU_MASK=0:1", "HSA_CU_MASK_X=1"]}}
	JSON
}
# state PID: the state of the container with the annotations of the configuration that the first hook wrote.
state() { jq --argjson pid "$1" '{ociVersion: "1.0.2", id: "3f", status: "creating", pid: $pid, annotations}' "$dir/out" >"$dir/state"; mv "$dir/state" "$dir/in"; }
annotated() { jq -r ".annotations[\"org.gpuarb.$1\"]" "$dir/${2:-in}"; }
holder_is_gone() { ! is_running "$holder_pid"; }

# ---- a container's life ------------------------------------------------------------------------
check_life() # COMMAND…: runs the hooks by it
{
	config '{"org.gpuarb.cus": "15", "org.gpuarb.queues": "4", "org.gpuarb.processes": "2", "other": "x"}'
	hook gpuarb-precreate 0 "$@"
	json_out '.process.env | sort == ["GPUARB_EFFECTIVE_CUS=15", "GPUARB_LEASE=\(.[] | select(startswith("GPUARB_LEASE=")) |
		split("=")[1])", "GPU_MAX_HW_QUEUES=1", "HSA_CU_MASK=0:0x111111111111111", "HSA_CU_MASK_X=1", "PATH=/bin",
		"ROCR_VISIBLE_DEVICES=0"]'
	json_out '.annotations.other == "x" and .ociVersion == "1.0.2" and (.process.rlimits | length) == 1'
	check 'numbers stay as they are' grep -qF '18446744073709551615' "$dir/out"
	"${init[@]}" &
	container=$!
	state "$container"
	holder_pid=$(annotated holder)
	check 'a process holds the lease' is_running "$holder_pid"
	list_becomes '[.[] | select(.state == "granted" and .name == "3fea5e57c662")] | length == 1'
	hook gpuarb-createruntime 0 "$@"
	await_so 'nothing but the container holds the lease' holder_is_gone
	list_becomes 'length == 1 and .[0].partitions[0].queues == 4 and .[0].partitions[0].processes == 2'
	kill -KILL "$container"
	wait "$container" 2>/dev/null
	list_becomes '. == []'
}
init=(sleep 1000)
check_life
# Rootless: root inside is the user outside.
if setpriv --reuid=games --regid=games --clear-groups unshare --user --map-root-user true 2>/dev/null; then
	init=(setpriv --reuid=games --regid=games --clear-groups sleep 1000)
	check_life setpriv --reuid=games --regid=games --clear-groups unshare --user --map-root-user
fi

# A share of a GPU, and what the policy has for root alone.
policy <<<$'[tenant web]\nopen = yes\nmatch-user = root\nmax-cus = 20\n[tenant *]'
config '{"org.gpuarb.cus": "25%", "org.gpuarb.gpu": "0000:04:00.0", "org.gpuarb.name": "web", "org.gpuarb.tenant": "web"}'
hook gpuarb-precreate 0
ends 0 list --json
json_out '.[0] | .name == "web" and .tenant == "web" and .partitions[0].gpu == "0000:04:00.0" and .partitions[0].cus == 15'
ends 0 release "$(jq -r '.[0].id' "$dir/out")"
list_becomes '. == []'

# ---- refusals ----------------------------------------------------------------------------------
# refused TEXT ANNOTATIONS: the first hook passes the reason on to the second, whose error the engine shows.
refused()
{
	config "$2"
	hook gpuarb-precreate 0
	err_has "$1"
	json_out '.process.env | length == 4'
	state $$
	hook gpuarb-createruntime 1
	err_has "$1"
}
refused 'org.gpuarb.cus=24x' '{"org.gpuarb.cus": "24x"}'
refused 'org.gpuarb.cus=' '{"org.gpuarb.cus": ""}'
refused 'org.gpuarb.cus: ' '{"org.gpuarb.queues": "4"}'
refused 'org.gpuarb.size' '{"org.gpuarb.cus": "15", "org.gpuarb.size": "4"}'
refused 'org.gpuarb.queues=0' '{"org.gpuarb.cus": "15", "org.gpuarb.queues": "0"}'
refused 'org.gpuarb.class=gold' '{"org.gpuarb.cus": "15", "org.gpuarb.class": "gold"}'
refused 'org.gpuarb.name' "$(jq -n '{"org.gpuarb.cus": "15", "org.gpuarb.name": ("x" * 500)}')"
refused 'org.gpuarb.adaptable=1' '{"org.gpuarb.cus": "15", "org.gpuarb.adaptable": "1"}'
refused '200 ' '{"org.gpuarb.cus": "200"}'
refused 'max-cus' '{"org.gpuarb.cus": "25", "org.gpuarb.tenant": "web"}'
refused 'no-such' '{"org.gpuarb.cus": "25", "org.gpuarb.tenant": "no-such"}'

# A tenant is named by root, and not by root of a user namespace.
config '{"org.gpuarb.cus": "15", "org.gpuarb.tenant": "web"}'
for command in '' 'unshare --user --map-root-user'; do
	# shellcheck disable=SC2086 # no command, or one
	setpriv --reuid=games --regid=games --clear-groups $command true 2>/dev/null || continue
	# shellcheck disable=SC2086
	hook gpuarb-precreate 0 setpriv --reuid=games --regid=games --clear-groups $command
	json_out '.annotations["org.gpuarb.refusal"] | startswith("org.gpuarb.tenant=web")'
done

# The process ended, or the lease did.
config '{"org.gpuarb.cus": "15"}'
hook gpuarb-precreate 0
cp "$dir/out" "$dir/config"
state 2147483646
holder_pid=$(annotated holder)
hook gpuarb-createruntime 1
err_has 2147483646
await_so 'the lease is given up' holder_is_gone
list_becomes '. == []'
cp "$dir/config" "$dir/out"
state $$
hook gpuarb-createruntime 1
err_has "$(annotated lease)"

# The lease of another container, in annotations that the first hook did not write: an engine without precreate hooks,
# "optional".
config '{"org.gpuarb.cus": "15"}'
hook gpuarb-precreate 0
cp "$dir/out" "$dir/config"
lease=$(annotated lease config)
holder_pid=$(annotated holder config)
cp "$(type -P sleep)" "$dir/gpuarb-$lease"
"$dir/gpuarb-$lease" 1000 &
for forged in 1 $$ $! $((1 << 40)); do
	jq --arg pid "$forged" '.annotations["org.gpuarb.holder"] = $pid' "$dir/config" >"$dir/out"
	state $$
	hook gpuarb-createruntime 1
	err_has "lease $lease"
done
kill $!
jq '.annotations["org.gpuarb.lease"] = "1"' "$dir/config" >"$dir/out"
state $$
hook gpuarb-createruntime 1
err_has 'lease 1 '
check 'it is not bound to another one' is_running "$holder_pid"
kill "$holder_pid"
list_becomes '. == []'

# ---- an adaptable lease --------------------------------------------------------------------------
image=$dir/image
mkdir -p "$image"/{lib64,lib}
touch "$dir/libgpuarb-agent.so" "$dir/libgpuarb-agent-musl.so"
printf '#!/bin/sh\necho "$HSA_CU_MASK $@" >%s/agent.out\n' "$dir" >"$dir/gpuarb-agent"
chmod 755 "$dir/gpuarb-agent"
export GPUARB_AGENT_DIR=$dir
policy <<<'[tenant *]'
# adaptable JQ: the hook for a container whose configuration is changed so.
adaptable()
{
	config '{"org.gpuarb.cus": "30", "org.gpuarb.cus-min": "15", "org.gpuarb.cus-max": "60", "org.gpuarb.adaptable": "yes"}'
	jq --arg root "$image" ".process.user.uid = 0 | .root.path = \$root | .process.env += [\"LD_PRELOAD=/x.so\"] |
		.mounts = [{destination: \"/dev\", type: \"tmpfs\"}] | $1" "$dir/in" >"$dir/config"
	mv "$dir/config" "$dir/in"
	hook gpuarb-precreate 0
	cp "$dir/out" "$dir/config"
}
is_fixed() # TEXT JQ
{
	adaptable "$2"
	err_has "$1"
	json_out '(.process.env | index(["LD_PRELOAD=/x.so"])) and (.annotations | has("org.gpuarb.mask") | not)'
	list_becomes 'length == 1 and (.[0].adaptable | not)'
	kill "$(annotated holder config)"
	list_becomes '. == []'
}
ln -s /lib64/ld-linux-x86-64.so.2 "$image/lib64" # out of the image
is_fixed 'its image has no C library' .
rm "$image"/lib64/*
mkfifo "$image/lib64/ld-linux-x86-64.so.2"
is_fixed 'its image has no C library' .
rm "$image"/lib64/*
touch "$image/lib64/ld-linux-x86-64.so.2"
echo 'stable release version 2.30.' >"$image/lib64/libc.so.6"
is_fixed 'its image has no glibc 2.31' .
echo 'stable release version 2.31.' >"$image/lib64/libc.so.6"
is_fixed 'its program does not run as root' '.process.user.uid = 1000'
is_fixed 'it has a user namespace' '.linux.namespaces = [{type: "user"}]'
is_fixed 'its /dev is not its own' '.mounts[0].type = "bind"'
touch "$image/lib/ld-musl-x86_64.so.1"
is_fixed 'its image has glibc and musl' .
rm "$image"/lib64/*
adaptable '.annotations["org.gpuarb.class"] = "guaranteed" | del(.annotations["org.gpuarb.cus-max"])'
json_out '.annotations["org.gpuarb.refusal"] | test("adaptable.*guaranteed")'
list_becomes '. == []'
# Of a lease that has ended nothing is left in the configuration.
if unshare --mount true 2>/dev/null; then
	jq 'del(.annotations["org.gpuarb.class"])' "$dir/in" >"$dir/config"
	mv "$dir/config" "$dir/in"
	hook gpuarb-precreate 0 unshare --mount sh -c 'mount -t tmpfs -o ro none /run && exec "$@"' -
	json_out '(.annotations | has("org.gpuarb.lease") | not) and (.annotations["org.gpuarb.refusal"] | test(" /run: "))'
	list_becomes '. == []'
fi
adaptable .
json_out '.mounts[2].source | endswith("/libgpuarb-agent-musl.so")'
json_out '(.process.env | contains(["GPUARB_AGENT=/dev/gpuarb/agent", "LD_PRELOAD=/dev/gpuarb/libgpuarb-agent.so:/x.so"])) and
	.mounts[1].destination == "/dev/gpuarb/agent"'
socket=$(jq -r '.mounts[1].source' "$dir/config")
mask=$(annotated mask config)
check 'the socket is there' test -S "$socket"
sleep 1000 &
container=$!
state "$container"
hook gpuarb-createruntime 0
list_becomes 'length == 1 and .[0].adaptable and .[0].state == "granted"'
await_so 'the agent has begun' test -s "$dir/agent.out"
check 'with the lease, the process and the mask' \
	test "$(cat "$dir/agent.out")" = "$mask $(annotated lease config) $container 3 4 5"
rm "$socket" # as gpuarb-agent does
kill -KILL "$container"
wait "$container" 2>/dev/null
list_becomes '. == []'
# The process has ended, or the agent does not start: nothing is left.
adaptable .
state 2147483646
hook gpuarb-createruntime 1
check 'the socket is gone' test ! -e "$(jq -r '.mounts[1].source' "$dir/config")"
list_becomes '. == []'
sleep 1000 &
container=$!
adaptable .
state "$container"
rm "$dir/gpuarb-agent"
hook gpuarb-createruntime 1
err_has "gpuarb-agent: "
check 'the socket is gone' test ! -e "$(jq -r '.mounts[1].source' "$dir/config")"
kill -KILL "$container"
wait "$container" 2>/dev/null
list_becomes '. == []'
adaptable .
err_has "$dir/libgpuarb-agent"
kill "$(annotated holder config)"
list_becomes '. == []'

# What is no configuration, no state, no hook.
echo '[]' >"$dir/in"
hook gpuarb-precreate 1
hook gpuarb-createruntime 1
: >"$dir/in"
hook gpuarb-precreate 1
echo '{"annotations": {"org.gpuarb.lease": "1"}}' >"$dir/in"
hook gpuarb-createruntime 1
err_has pid
echo '{"annotations": {"org.gpuarb.cus": "15"}}' >"$dir/in" # no process
hook gpuarb-precreate 0
json_out '.annotations["org.gpuarb.refusal"]'
echo '{}' >"$dir/in"
hook gpuarb-createruntime 0
hook gpuarb-other 1
list_becomes '. == []'
config '{"org.gpuarb.cus": "15"}'
GPUARB_BUS_ADDRESS=unix:path=/no/such/bus hook gpuarb-precreate 0
err_has /no/such/bus
# Where the administrator lets containers start without gpuarbd.
GPUARB_BUS_ADDRESS=unix:path=/no/such/bus "$dir/gpuarb-precreate" optional <"$dir/in" >"$dir/out" 2>"$dir/err"
err_has /no/such/bus
json_out '.annotations | keys == ["org.gpuarb.cus"]'

# ---- several GPUs ----------------------------------------------------------------------------------
config '{"org.gpuarb.cus": "15", "org.gpuarb.gpu": "all"}'
hook gpuarb-precreate 0
cp "$dir/out" "$dir/config"
json_out '.process.env | index(["HSA_CU_MASK=0:0x111111111111111;1:0x111111111111111"]) and index(["ROCR_VISIBLE_DEVICES=0,1"])'
prints 'length == 1 and [.[0].partitions[] | "\(.gpu) \(.cus)"] == ["0000:03:00.0 15", "0000:04:00.0 15"]' list --json
kill "$(annotated holder config)"
list_becomes '. == []'

# A container has some of the render nodes. KFD tells which GPU has which.
if unshare --mount true 2>/dev/null; then
	rig_stop_daemon
	mkdir "$dir/sys"
	"$FAKE_SYSFS" "$dir/sys" "$GPUARB_SOURCE_ROOT/conf/gpus" radeon-vii radeon-vii mi210 >"$dir/gpus"
	rig_start_daemon --sysfs="$dir/sys"
	mapfile -t minors < <(sed -n 's/^drm_render_minor \([1-9]\)/\1/p' "$dir"/sys/class/kfd/kfd/topology/nodes/*/properties)
	in_sys=(unshare --mount sh -c "mount --bind '$dir/sys' /sys && exec \"\$@\"" -)
	# gets GPUS ANNOTATIONS JQ [TEXT…]: a lease on these GPUs, for a container whose configuration is changed so; none, and an error
	# with the texts.
	gets()
	{
		config "$2"
		jq "$3" "$dir/in" >"$dir/config"
		mv "$dir/config" "$dir/in"
		hook gpuarb-precreate 0 "${in_sys[@]}"
		for text in "${@:4}"; do err_has "$text"; done
		cp "$dir/out" "$dir/config"
		prints "[.[].partitions[].gpu] == $1" list --json
		[ "$1" = '[]' ] || kill "$(annotated holder config)"
		list_becomes '. == []'
	}
	device() { echo "{path: \"/dev/dri/renderD$1\", type: \"c\", major: 226, minor: $1}"; }
	devices() { echo ".linux.devices = [{path: \"/dev/kfd\", major: 240, minor: 0}, $(device "$1"), $(device "${2:-$1}")]"; }
	bound() { echo ".mounts = [{destination: \"/dev/dri/renderD128\", source: \"/dev/dri/renderD$1\", type: \"bind\"}]"; }
	gets '["0000:03:00.0"]' '{"org.gpuarb.cus": "14"}' "$(devices "${minors[0]}" "${minors[1]}")"
	gets '["0000:04:00.0"]' '{"org.gpuarb.cus": "14"}' "$(devices "${minors[1]}")"
	gets '["0000:05:00.0"]' '{"org.gpuarb.cus": "14", "org.gpuarb.gpu": "any"}' "$(bound "${minors[2]}")"
	gets '["0000:05:00.0"]' '{"org.gpuarb.cus": "50%"}' "$(devices "${minors[2]}" "${minors[1]}")"
	gets '["0000:04:00.0", "0000:05:00.0"]' '{"org.gpuarb.cus": "14", "org.gpuarb.gpu": "all"}' "$(devices "${minors[2]}" "${minors[1]}")"
	gets '["0000:04:00.0"]' '{"org.gpuarb.cus": "14", "org.gpuarb.gpu": "0000:03:00.0,1"}' "$(devices "${minors[1]}" "${minors[2]}")"
	gets '["0000:03:00.0"]' '{"org.gpuarb.cus": "14"}' '.mounts = [{destination: "/dev/dri", source: "/dev/dri", type: "bind"}]'
	gets '[]' '{"org.gpuarb.cus": "14", "org.gpuarb.gpu": "0"}' "$(devices "${minors[1]}")" \
		'org.gpuarb.gpu=0' "renderD${minors[1]}"
	gets '[]' '{"org.gpuarb.cus": "14"}' "$(devices 191)" renderD191
	gets '[]' '{"org.gpuarb.cus": "14", "org.gpuarb.gpu": "9"}' "$(devices "${minors[1]}")" "'9'"
fi

# ---- a share, and a gpuarbd that dies -------------------------------------------------------------
rig_stop_daemon
printf '[tenant *]\nclass = realtime\npreempt = revoke\n' >"$dir/tenants.d/policy.conf"
printf '[share web]\ncus = 25%%\nqueues = 16\nprocesses = 8\nclass = besteffort\ngpu = 0000:04:00.0\n' >"$dir/gpuarbd.conf"
exec 4< <(RUNTIME_DIRECTORY=$dir/run exec "$SERVICE_MANAGER" --store-max=64 -- "$GPUARBD" --simulate=radeon-vii,radeon-vii \
	--profiles="$GPUARB_SOURCE_ROOT/conf/gpus" --config="$dir/gpuarbd.conf" --tenants="$dir/tenants.d" 2>"$dir/daemon.err")
daemon_pid=$!
ready() { await_line 4 'ready *' || { cat "$dir/daemon.err"; await_fail 'gpuarbd does not start'; }; gpuarbd=${line#ready }; }
ready
mkdir "$dir/cdi"
spec=$dir/cdi/gpuarb-share-web.json
share=(cdi web --config="$dir/gpuarbd.conf" --into="$dir/cdi")
spec_has() { jq -e --arg value "$1" '.devices[0].containerEdits.env | index([$value])' "$spec" >/dev/null 2>&1; }
fails 6 "'other'" cdi other --config="$dir/gpuarbd.conf"
printf '[share web]\nqueues = 4\n' >"$dir/wrong.conf"
fails 6 'wrong.conf:1: ' cdi web --config="$dir/wrong.conf"
fails 6 'wrong.conf:1: ' config check "$dir/wrong.conf"
fails 1 "$dir/no/such" cdi web --config="$dir/gpuarbd.conf" --into="$dir/no/such"
list_becomes '. == []'

hold "${share[@]}"
ends 0 list --json
json_out '.[0] | .name == "share-web" and .class == "besteffort" and (.partitions[0] |
	.gpu == "0000:04:00.0" and .cus == 15 and .queues == 16 and .processes == 8)'
id=$(jq -r '.[0].id' "$dir/out")
said=$spec
cp "$spec" "$dir/out"
json_out ".cdiVersion == \"0.5.0\" and .kind == \"gpuarb.org/share\" and (.devices | length) == 1 and (.devices[0] |
	.name == \"web\" and (.containerEdits | .hooks[0].args == [\"gpuarb-createruntime\", \"$id\"] and
	(.env | sort) == [\"GPUARB_EFFECTIVE_CUS=15\", \"GPUARB_LEASE=$id\", \"GPU_MAX_HW_QUEUES=1\",
		\"HSA_CU_MASK=0:0x111111111111111\", \"ROCR_VISIBLE_DEVICES=0\"]))"

# Only one keeps the file.
fails 1 "'web'" "${share[@]}"
check 'the device stays' spec_has "GPUARB_LEASE=$id"
list_becomes "length == 1 and .[0].id == $id"

# No container starts without the lease.
"$GPUARBCTL" run --class=realtime --gpu=0000:04:00.0 --cus=60 -- sleep 1000 >"$dir/realtime" 2>&1 &
realtime=$!
list_becomes '[.[] | select(.name == "share-web" and .state == "waiting")] | length == 1'
is_gone() { [ ! -e "$spec" ]; }
await_so 'the device is gone' is_gone
kill "$realtime"
wait "$realtime" 2>/dev/null
await_so 'the device is back' spec_has "GPUARB_LEASE=$id"

# A container holds the lease beside the service, and both survive gpuarbd.
sleep 1000 &
container=$!
jq -n --argjson pid "$container" '{ociVersion: "1.0.2", id: "3f", pid: $pid}' >"$dir/in"
hook_arguments=("$id")
hook gpuarb-createruntime 0
# The variables of another share, or of annotations, would be those of its program.
mkdir "$dir/bundle"
for lease in $((id + 1)) "$id"; do
	jq -n --arg lease "GPUARB_LEASE=$lease" --arg id "GPUARB_LEASE=$id" '{process: {env: [$id, "HSA_CU_MASK=0:0x1", $lease]}}' \
		>"$dir/bundle/config.json"
	jq -n --argjson pid "$container" --arg bundle "$dir/bundle" '{ociVersion: "1.0.2", id: "3f", pid: $pid, bundle: $bundle}' >"$dir/in"
	hook gpuarb-createruntime "$((lease != id))"
done
jq '.process.env = ["GPUARB_LEASE=77"]' "$dir/bundle/config.json" >"$dir/config"
mv "$dir/config" "$dir/bundle/config.json"
hook gpuarb-createruntime 1
err_has "leases $id and 77"
# Of annotations beside it nothing is left.
config '{"org.gpuarb.cus": "15"}'
hook gpuarb-precreate 0
cp "$dir/out" "$dir/bundle/config.json"
state "$container"
jq --arg bundle "$dir/bundle" '.bundle = $bundle' "$dir/in" >"$dir/state"
mv "$dir/state" "$dir/in"
hook gpuarb-createruntime 1
list_becomes "length == 1 and .[0].id == $id"
kill -KILL "$gpuarbd"
ready
list_becomes "length == 1 and .[0].id == $id and .[0].state == \"granted\""
check 'the device stays' spec_has "GPUARB_LEASE=$id"

# The next service has the same lease. The device follows its changes.
let_go KILL "$holder"
hold "${share[@]}"
list_becomes "length == 1 and .[0].id == $id"
ends 0 resize "$id" --cus=30
await_so 'the device has the new mask' spec_has GPUARB_EFFECTIVE_CUS=30
let_go TERM "$holder"
check 'the device is gone' is_gone
list_becomes "length == 1 and .[0].id == $id"
kill -KILL "$container"
wait "$container" 2>/dev/null
list_becomes '. == []'
jq -n --argjson pid $$ '{ociVersion: "1.0.2", id: "3f", pid: $pid}' >"$dir/in"
hook gpuarb-createruntime 1
err_has "lease/$id"
hook_arguments=(web)
hook gpuarb-createruntime 1
err_has web
hook_arguments=()

# ---- podman --------------------------------------------------------------------------------------
missing=
for name in podman runc conmon; do command -v "$name" >/dev/null || missing="$missing $name"; done
[ -n "${GPUARB_LONG:-}" ] || { echo 'skipped: podman itself takes half a minute: tests/run --long'; rig_done; }
[ -z "$missing" ] && [ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1 ||
	{ echo "skipped: podman itself: missing are$missing, or a static busybox"; rig_done; }
mkdir -p "$dir"/hooks "$dir"/rootfs/{bin,proc,sys,dev,etc,tmp}
cp /bin/busybox "$dir/rootfs/bin"
for name in sh env sleep; do ln -s busybox "$dir/rootfs/bin/$name"; done
for name in gpuarb-precreate gpuarb-createruntime; do
	jq --arg path "$dir/$name" --arg bus "GPUARB_BUS_ADDRESS=$GPUARB_BUS_ADDRESS" \
		'.hook.path = $path | .hook.env = [$bus, "ASAN_OPTIONS=detect_leaks=0"]' "$(dirname "$oci")/$name.json" \
		>"$dir/hooks/$name.json"
done
# No limit of processes: the controller may be one of cgroup v1.
printf '[containers]\npids_limit = 0\n[engine]\nhooks_dir = ["%s"]\n' "$dir/hooks" >"$dir/containers.conf"
export CONTAINERS_CONF=$dir/containers.conf
unset LD_LIBRARY_PATH
podman=(podman --cgroup-manager=cgroupfs --root "$dir/pod" --runroot "$dir/podrun" --storage-driver vfs --runtime runc)
in_container=(--network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --rootfs "$dir/rootfs")
pod()
{
	said="podman $*"
	timeout "$patience" "${podman[@]}" "$@" >"$dir/out" 2>"$dir/err" </dev/null
	code=$?
}
code_is() { [ "$code" = "$1" ] || complain "$said: ended with $code, not $1"; }
rootful=("${podman[@]}")
dockerd=
cdi=/run/cdi/gpuarb-share-test-$$.json # podman 4.3 reads no other directory
clean_podman()
{
	"${podman[@]}" rm -a -f -t 0 >/dev/null 2>&1
	"${rootful[@]}" rm -a -f -t 0 >/dev/null 2>&1
	rm -f "$cdi"
	[ -z "$dockerd" ] || { kill "$dockerd"; wait "$dockerd"; }
	rig_clean
}
trap clean_podman EXIT
policy <<<'[tenant *]'
pod run --rm "${in_container[@]}" /bin/sh -c :
[ "$code" = 0 ] || { echo "skipped: podman starts no container here: $(tail -n 1 "$dir/err")"; rig_done; }

pod run -d --name c1 --annotation org.gpuarb.cus=15 "${in_container[@]}" /bin/sh -c 'env; sleep 1000'
code_is 0
list_becomes 'length == 1 and .[0].state == "granted" and (.[0].name | length) == 12'
logged() { pod logs "$1"; [ "$(grep -c "$2" "$dir/out")" -ge "$3" ]; }
await_so 'the container has a mask' logged c1 '^HSA_CU_MASK=0:0x111111111111111$' 1
first=$(sed -n 's/^GPUARB_LEASE=//p' "$dir/out")
pod stop -t 0 c1
list_becomes '. == []'
pod start c1
list_becomes "length == 1 and .[0].id > $first"
kill -KILL "$("${podman[@]}" inspect c1 --format '{{.State.ConmonPid}}')"
init=$("${podman[@]}" inspect c1 --format '{{.State.Pid}}')
check 'the container survives its monitor' is_running "$init"
prints 'length == 1 and .[0].state == "granted"' list --json
kill -KILL "$init"
list_becomes '. == []'

pod run -d --name c2 --restart=on-failure:2 --annotation org.gpuarb.cus=15 "${in_container[@]}" \
	/bin/sh -c 'echo lease $GPUARB_LEASE; exit 1'
code_is 0
await_so 'the container has a lease at each start' logged c2 '^lease ' 3
check 'each start has its own' test "$(sort -u "$dir/out" | wc -l)" = 3
list_becomes '. == []'

pod run --annotation org.gpuarb.cus=200 "${in_container[@]}" /bin/sh -c 'echo ran'
code_is 126
err_has '0000:03:00.0'
out_lacks ran
pod run --annotation org.gpuarb.cus=24x "${in_container[@]}" /bin/sh -c 'echo ran'
code_is 126
err_has 'org.gpuarb.cus=24x'
list_becomes '. == []'

# The device of a share: the hook of this tree, and a name that no other test has.
publish()
{
	mkdir -p /run/cdi
	jq --arg name "test-$$" --arg path "$dir/gpuarb-createruntime" --arg bus "GPUARB_BUS_ADDRESS=$GPUARB_BUS_ADDRESS" \
		'.devices[0].name = $name | .devices[0].containerEdits.hooks[0] |=
			(.path = $path | .env = [$bus, "ASAN_OPTIONS=detect_leaks=0"])' "$spec" >"$cdi"
}
# share_lives: a container of $podman.
share_lives()
{
	hold "${share[@]}"
	publish
	pod run -d --name c4 --device "gpuarb.org/share=test-$$" "${in_container[@]}" /bin/sh -c 'env; sleep 1000'
	code_is 0
	await_so 'the container has the mask of the share' logged c4 '^HSA_CU_MASK=0:0x111111111111111$' 1
	let_go KILL "$holder"
	prints 'length == 1 and .[0].name == "share-web" and .[0].state == "granted"' list --json
	pod stop -t 0 c4
	list_becomes '. == []'
	pod start c4
	[ "$code" != 0 ] || complain "$said: started with a lease that has ended"
	hold "${share[@]}"
	publish
	pod start c4
	code_is 0
	id=$("$GPUARBCTL" list --json | jq '.[0].id')
	await_so 'the container has the lease of today' logged c4 "^GPUARB_LEASE=$id\$" 1
	pod stop -t 0 c4
	pod rm c4
	let_go TERM "$holder"
	list_becomes '. == []'
}
share_lives

# The same with Docker.
docker_runs() { docker -H "unix://$dir/docker.sock" version >/dev/null 2>&1; }
check_docker()
{
	local podman in_container=(--network none gpuarb-test)

	podman=(docker -H "unix://$dir/docker.sock")
	echo '{"features": {"cdi": true}, "cdi-spec-dirs": ["/run/cdi"]}' >"$dir/docker.json"
	dockerd --config-file "$dir/docker.json" --data-root "$dir/docker" --exec-root "$dir/dockerun" --pidfile "$dir/docker.pid" \
		-H "unix://$dir/docker.sock" --storage-driver vfs --iptables=false --ip6tables=false --bridge=none \
		--exec-opt native.cgroupdriver=cgroupfs >"$dir/docker.log" 2>&1 &
	dockerd=$!
	await_so 'dockerd runs' docker_runs
	tar -C "$dir/rootfs" -c . | "${podman[@]}" import - gpuarb-test >/dev/null
	share_lives
	kill "$dockerd"
	wait "$dockerd"
	dockerd=
}
version=$(dockerd --version 2>/dev/null | sed -n 's/^Docker version \([0-9]*\).*/\1/p')
if [ "${version:-0}" -ge 25 ]; then check_docker; else echo 'skipped: no docker 25 or later, which reads CDI'; fi

# Rootless: as a user with subordinate numbers.
rootless=$(awk -F: '$1 != "root" { print $1; exit }' /etc/subuid 2>/dev/null)
[ -n "$rootless" ] && command -v newuidmap >/dev/null ||
	{ echo 'skipped: rootless podman: no user in /etc/subuid, or no newuidmap'; rig_done; }
chmod -R a+rX "$dir/rootfs" "$dir/hooks" "$dir/containers.conf"
mkdir -p "$dir/home/xdg"
cp -R "$dir/rootfs" "$dir/home/rootfs"
chown -R "$rootless:" "$dir/home"
in_container[${#in_container[@]} - 1]=$dir/home/rootfs
podman=(setpriv --reuid="$rootless" --regid="$(id -g "$rootless")" --clear-groups env -C "$dir/home" HOME="$dir/home"
	XDG_RUNTIME_DIR="$dir/home/xdg" USER="$rootless" podman --cgroup-manager=cgroupfs --root "$dir/home/pod"
	--runroot "$dir/home/xdg/pod" --storage-driver vfs --runtime runc)
pod run --rm "${in_container[@]}" /bin/sh -c :
[ "$code" = 0 ] || { echo "skipped: rootless podman starts no container here: $(tail -n 1 "$dir/err")"; rig_done; }
for users in '' --userns=keep-id; do
	# shellcheck disable=SC2086 # no argument, or one
	pod run -d --name c3 $users --annotation org.gpuarb.cus=15 "${in_container[@]}" /bin/sh -c 'env; sleep 1000'
	code_is 0
	list_becomes "length == 1 and .[0].state == \"granted\" and .[0].owner.uid == $(id -u "$rootless")"
	await_so 'the container has a mask' logged c3 '^HSA_CU_MASK=0:0x111111111111111$' 1
	pod rm -f -t 0 c3
	list_becomes '. == []'
done
rig_done
