#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The plugin on a real Slurm: munge, slurmctld and two slurmd on loopback, jobs of ordinary users.
#
#	test-slurm.sh GPUARBCTL PLUGIN
#
# GPUARBD, SERVICE_MANAGER, GPUARB_SOURCE_ROOT: the daemon, what stands for systemd, the source tree.
set -u
if [ -z "${GPUARB_LONG:-}" ]; then
	echo 'skipped: a cluster takes two minutes: tests/run --long'
	exit 77
fi
GPUARBCTL=${1:-${GPUARBCTL:?}}
plugin=${2:?}
: "${GPUARBD:?}" "${SERVICE_MANAGER:?}" "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/users.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/users.sh"
rig_need munged slurmctld slurmd srun sbatch jq setpriv
users_start --simulate=radeon-vii,radeon-vii
user games games
GPUARBCTL=$dir/gpuarbctl # which users can read
host=$(hostname -s)

# ---- the cluster -----------------------------------------------------------------------------
mkdir -p "$dir"/{etc,state,log,spool.node0,spool.node1,munge}
mkdir -m 1777 "$dir/work"
chmod 700 "$dir/munge"
install -m 755 "$plugin" "$dir/spank_gpuarb.so"
# Two GPUs and 120 CUs, which are counted on node0 only: both slurmd are on this machine, with one gpuarbd.
mknod "$dir/gpu0" c 1 3 && mknod "$dir/gpu1" c 1 5 || { echo 'skipped: no rights to make devices'; exit 77; }
cat >"$dir/etc/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
SlurmctldPort=36817
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmdSpoolDir=$dir/spool.%n
StateSaveLocation=$dir/state
SlurmctldLogFile=$dir/log/slurmctld
SlurmdLogFile=$dir/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=1
ReturnToService=2
KillWait=3
SlurmdParameters=config_overrides
PlugStackConfig=$dir/etc/plugstack.conf
GresTypes=gpu,cu,shard
CliFilterPlugins=lua
NodeName=node0 NodeHostname=$host NodeAddr=127.0.0.1 Port=36818 CPUs=16 Gres=gpu:2,cu:120,shard:120 State=UNKNOWN
NodeName=node1 NodeHostname=$host NodeAddr=127.0.0.1 Port=36819 CPUs=16 State=UNKNOWN
PartitionName=gpu Nodes=node[0-1] Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES:8
CONF
cat >"$dir/etc/gres.conf" <<CONF
AutoDetect=off
NodeName=node0 Name=gpu File=$dir/gpu0
NodeName=node0 Name=gpu File=$dir/gpu1
NodeName=node0 Name=cu Count=120
NodeName=node0 Name=shard Count=60 File=$dir/gpu0
NodeName=node0 Name=shard Count=60 File=$dir/gpu1
CONF
sed 's/^local counted = .*/local counted = os.getenv("COUNTED") or "nothing"/; s/and not options/and counted ~= "nothing" &/' \
	"$GPUARB_SOURCE_ROOT/docs/examples/slurm/cli_filter.lua" >"$dir/etc/cli_filter.lua"
echo "required $dir/spank_gpuarb.so gpuarbctl=$dir/gpuarbctl" >"$dir/etc/plugstack.conf"
# Later slurmd end where both versions of cgroups are mounted.
[[ $(slurmd -V) == *' 22.'* ]] || echo 'CgroupPlugin=disabled' >"$dir/etc/cgroup.conf"
export SLURM_CONF=$dir/etc/slurm.conf

has_ended() { ! is_running "$1"; }
# The next cluster has the same ports.
stop_cluster()
{
	local file pids=()
	for file in "$dir"/slurmd.node?.pid "$dir/slurmctld.pid" "$dir/munged.pid"; do
		[ ! -s "$file" ] || pids+=("$(cat "$file")")
	done
	kill "${pids[@]}" 2>/dev/null
	for file in "${pids[@]}"; do await_so "process $file has ended" has_ended "$file"; done
	rig_clean 2>/dev/null
}
trap stop_cluster EXIT

both_idle() { [ "$(sinfo -h -N -o %T | sort -u)" = idle ]; }

dd if=/dev/urandom of="$dir/munge/key" bs=64 count=1 status=none
chmod 600 "$dir/munge/key"
chmod 711 "$dir/munge"
munged --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munged.pid" \
	--log-file="$dir/log/munged" --seed-file="$dir/munge/seed" || { echo 'munged does not start'; exit 1; }
slurmctld -c
slurmd -N node0
slurmd -N node1
await_so 'both nodes are idle' both_idle

# slurm COMMAND…: as the user games, with the output in $dir/out and $dir/err, the exit code in $code.
export LD_LIBRARY_PATH="$dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
slurm_user=games
slurm()
{
	said="$*"
	(cd "$dir/work" && exec setpriv --reuid="$slurm_user" --regid="$slurm_user" --clear-groups timeout "$patience" "$@") \
		>"$dir/out" 2>"$dir/err" </dev/null
	code=$?
}
code_is() { [ "$code" = "$1" ] || complain "$said: ended with $code, not $1"; }

# job NAME COMMAND…: the same in the background; await_job NAME sets $code.
declare -A jobs=()
job()
{
	(cd "$dir/work" && exec setpriv --reuid=games --regid=games --clear-groups timeout "$patience" "${@:2}") \
		>"$dir/$1.out" 2>"$dir/$1.err" </dev/null &
	jobs[$1]=$!
}
await_job()
{
	said="job $1"
	wait "${jobs[$1]}"
	code=$?
	mv "$dir/$1.out" "$dir/out"
	mv "$dir/$1.err" "$dir/err"
}

no_drain() { await_so "both nodes are idle after $said" both_idle; }
# How it was counted is not what was granted: a share counts as one line of `listed`.
state_of() { jq -r --arg name "$1" '.[] | select(.name == $name).state' <<<"$("$GPUARBCTL" list --json)"; }

# ---- what is wrong is refused where it is typed ----------------------------------------------
for option in cus=24x wait=soon; do
	slurm srun "--gpuarb-$option" true
	code_is 255
	err_has "--gpuarb-${option:0:20}"
	slurm sbatch "--gpuarb-$option" --wrap true
	check "sbatch refuses --gpuarb-${option:0:20}" test "$code" != 0
	err_has "--gpuarb-${option:0:20}"
done
check 'no job was submitted' test -z "$(squeue -h)"

# ---- tasks have the lease --------------------------------------------------------------------
mapfile -t hold <<<"$(printf '%s\n' sh -c 'echo "$GPUARB_LEASE $HSA_CU_MASK"; exec cat fifo')"
mkfifo -m 666 "$dir/work/fifo"
policy <<<$'[tenant jobs]\nmatch-user = games\nclass = realtime\nonly-gpus = 0000:03:00.0'
job first srun -w node0 --gpuarb-cus=30 --gpuarb-queues=2 "${hold[@]}"
list_becomes '[.[] | select(.state == "granted")] | length == 1'
job second srun -w node1 --gpuarb-cus=30 --gpuarb-queues=2 "${hold[@]}"
list_becomes '[.[] | select(.state == "granted")] | length == 2'
job third srun -w node0 --gpuarb-cus=30 --gpuarb-queues=2 --gpuarb-wait "${hold[@]}"
list_becomes '[.[] | select(.state == "waiting")] | length == 1'
json_out '[.[] | select(.state == "granted").partitions[0] | .gpu] | unique == ["0000:03:00.0"]'
json_out '[.[] | select(.state == "granted").partitions[0].shader_engines[]] | length == 4 and (unique | length) == 4'
# A job that Slurm starts and gpuarbd refuses ends by itself.
slurm srun -w node0 --gpuarb-cus=30 true
code_is 125
err_has 'gpuarbctl run: '
slurm sbatch -W -w node0 --gpuarb-cus=30 --wrap 'touch ran' -o refused
check 'a refused batch job fails' test "$code" != 0
check 'it did not run' test ! -e "$dir/work/ran"
check 'its output has the reason' grep -q 'gpuarbctl run: ' "$dir/work/refused"
setpriv --reuid=games --regid=games --clear-groups scancel 1
await_job first
list_becomes '[.[] | select(.state == "granted")] | length == 2 and all(.name != "slurm-1")'
timeout "$patience" sh -c ': >"$1"' sh "$dir/work/fifo"
for name in second third; do
	await_job "$name"
	code_is 0
done
list_becomes '. == []'
no_drain
policy <<<'[tenant *]'

# Exit status and signals.
slurm srun -w node0 --gpuarb-cus=15 sh -c 'exit 7'
code_is 7
slurm srun -w node0 --gpuarb-cus=15 sh -c 'kill -SEGV $$'
code_is 139
slurm srun -w node0 --gpuarb-cus=15 /no/such/command
code_is 127
slurm sbatch -W -w node0 --gpuarb-cus=15 -o out --wrap 'exit 9'
code_is 9

# ---- a job has one lease on a node, and its steps share it ------------------------------------
cat >"$dir/work/steps" <<'BATCH'
#!/bin/sh
echo "$GPUARB_LEASE $HSA_CU_MASK"
srun --overlap -n1 sh -c 'echo "$GPUARB_LEASE $HSA_CU_MASK"'
srun --overlap -n2 sh -c 'echo "$GPUARB_LEASE $HSA_CU_MASK"'
"$GPUARBCTL" list --json
srun --overlap -n1 --gpuarb-cus=30 true
echo "larger: $?"
BATCH
slurm sbatch -W -w node0 -n2 --gpuarb-cus=15 --gpuarb-queues=4 -o steps.out ./steps
code_is 0
mv "$dir/work/steps.out" "$dir/out"
check 'the script and three tasks have one lease' test "$(grep -c '^[0-9]* 0:0x' "$dir/out")" = 4
check 'it has one mask' test "$(grep '^[0-9]* 0:0x' "$dir/out" | sort -u | wc -l)" = 1
check 'it is for as many processes as tasks' \
	jq -e '.[0].partitions[0].processes == 2' <<<"$(grep '^\[' "$dir/out")"
out_has 'token'
out_has 'larger: 125'
list_becomes '. == []'

# The GPUs that Slurm gave: all of them, and no other one.
slurm srun -w node0 --gres=gpu:2 --gpuarb-cus=15 sh -c '"$GPUARBCTL" list --json'
code_is 0
json_out '[.[0].partitions[] | "\(.gpu) \(.cus)"] == ["0000:03:00.0 15", "0000:04:00.0 15"]'
job first srun -w node0 --gres=gpu:1 --gpuarb-cus=15 "${hold[@]}"
list_becomes 'length == 1'
slurm srun -w node0 --gres=gpu:1 --gpuarb-cus=15 sh -c '"$GPUARBCTL" list --json'
json_out '[.[].partitions[0].gpu] | sort == ["0000:03:00.0", "0000:04:00.0"]'
timeout "$patience" sh -c ': >"$1"' sh "$dir/work/fifo"
await_job first
# Tasks that Slurm binds to one GPU each.
slurm srun -w node0 -n2 --gpus-per-task=1 --gpu-bind=single:1 --gpuarb-cus=15 \
	sh -c '"$GPUARBCTL" list --json >/dev/null; echo "$GPUARB_LEASE"'
code_is 0
check 'each has its own lease' test "$(sort -u "$dir/out" | wc -l)" = 2

# A script that has all CUs of both GPUs: its tasks have one GPU each, in its lease.
cat >"$dir/work/bound" <<'BATCH'
#!/bin/sh
echo "lease $GPUARB_LEASE"
"$@" sh -c 'echo "lease $GPUARB_LEASE"; echo "mask $HSA_CU_MASK $GPUARB_EFFECTIVE_CUS"'
"$GPUARBCTL" list --json
BATCH
chmod 755 "$dir/work/bound"
for bind in --gpus-per-task=1 --gres=gpu:2; do
	slurm sbatch -W -w node0 -n2 "$bind" --gpuarb-cus=60 -o bound.out ./bound srun --exact -n2 --gpus-per-task=1
	code_is 0
	mv "$dir/work/bound.out" "$dir/out"
	check 'the script and its tasks have one lease' test "$(grep '^lease ' "$dir/out" | sort | uniq -c | awk '{ print $1 }')" = 3
	check 'each task has one GPU' test "$(grep -c '^mask 0:0xf* 60$' "$dir/out")" = 2
	check 'it is charged once' jq -e 'length == 1 and [.[0].partitions[].cus] == [60, 60]' <<<"$(grep '^\[' "$dir/out")"
done
# A step without a GPU has a lease beside that of the script.
slurm sbatch -W -w node0 --gres=gpu:1 --gpuarb-cus=15 -o none.out --wrap 'srun --gres=none true; echo "step: $?"'
check 'it runs' grep -q '^step: 0' "$dir/work/none.out"

# What another job has set is no limit of this one.
slurm sbatch -W -w node0 --gpuarb-cus=15 --gpuarb-queues=2 -o outer.out \
	--wrap 'srun -w node0 --overlap sh -c "echo job \$GPU_MAX_HW_QUEUES"; sbatch -W -w node0 --gpuarb-cus=15 --gpuarb-queues=5 -o inner.out \
	--wrap "echo \$GPU_MAX_HW_QUEUES"'
check 'a job has the queues that it asked for' grep -qx 4 "$dir/work/inner.out"
check 'a step has those of its job' grep -qx 'job 1' "$dir/work/outer.out"
list_becomes '. == []'

# ---- Slurm counts, as the example has it --------------------------------------------------------
COUNTED=cu slurm srun -w node0 --gpuarb-cus=15 scontrol show job -d
out_has 'GRES=cu(CNT:15)'
COUNTED=cu slurm sbatch -w node0 --gpuarb-cus=300 --wrap true
check 'more CUs than a node has are refused when the job is submitted' test "$code" != 0
check 'no job was submitted' test -z "$(squeue -h)"
COUNTED=shard slurm sbatch -W -w node0 --gpuarb-cus=50 -o shard.out \
	--wrap 'srun -w node0 --overlap sh -c "\"\$GPUARBCTL\" list --json; echo \$GPUARB_LEASE \$SLURM_SHARDS_ON_NODE"'
code_is 0
mv "$dir/work/shard.out" "$dir/out"
out_has ' 50'
check 'a shard is on the GPU that Slurm chose, and its step in the lease' \
	jq -e 'length == 1 and [.[0].partitions[].gpu] == ["0000:03:00.0"]' <<<"$(grep '^\[' "$dir/out")"

# Whole GPUs count as such, and a step takes no more than its job.
for gpus in --gres=gpu:1 --gpus=1 --gpus-per-node=1 --gpus-per-task=1; do
	COUNTED=shard slurm sbatch -W -w node0 -n1 "$gpus" --gpuarb-cus=15 -o whole.out --wrap 'srun sh -c "echo \$GPUARB_EFFECTIVE_CUS"'
	code_is 0
	check 'the step has the lease' grep -qx 15 "$dir/work/whole.out"
done
COUNTED=shard slurm salloc -w node0 --gres=gpu:1 srun --gpuarb-cus=15 sh -c 'echo "$GPUARB_EFFECTIVE_CUS"'
code_is 0
out_has 15

# ---- components of a heterogeneous job, adaptable leases ------------------------------------------
slurm srun -w node0 --gpuarb-cus=15 --overlap sh -c 'echo $GPUARB_EFFECTIVE_CUS' --gpuarb-cus=5 : \
	-w node1 --gpuarb-cus=30 sh -c 'echo $GPUARB_EFFECTIVE_CUS' --gpuarb-cus=10
code_is 0
check 'each component has what it asked for' test "$(sort -n "$dir/out" | tr '\n' ' ')" = '15 30 '
slurm srun -w node0 --gpuarb-cus=15 true : -w node1 sh -c 'echo "$GPUARB_LEASE."'
out_has .
out_lacks 1
printf '#!/bin/sh\nsrun --het-group=0,1 sh -c "echo \\$GPUARB_EFFECTIVE_CUS"\nsrun --het-group=1 --gpuarb-cus=5 sh -c "echo \\$GPUARB_EFFECTIVE_CUS" : --het-group=0 true\n' \
	>"$dir/work/components"
chmod 755 "$dir/work/components"
slurm sbatch -W -w node0 --gpuarb-cus=15 -o components.out : -w node1 --gpuarb-cus=30 ./components
code_is 0
check 'so have the steps of its script' test "$(grep -x '[0-9]*' "$dir/work/components.out" | sort -n | tr '\n' ' ')" = '5 15 30 '

slurm srun -w node0 --gpuarb-cus=15 --gpuarb-adaptable sh -c '"$GPUARBCTL" list --json; exit 3'
code_is 3
json_out 'length == 1 and .[0].adaptable'
slurm srun -w node0 -n2 --gpuarb-cus=15 --gpuarb-adaptable true
code_is 125
err_has '--adaptable: '
slurm sbatch -W -w node0 --gpuarb-cus=15 --gpuarb-adaptable -o adaptable.out \
	--wrap '"$GPUARBCTL" list --json; srun true; echo "step: $?"'
code_is 0
check 'the script has the lease' jq -e '.[0].adaptable' <<<"$(grep '^\[' "$dir/work/adaptable.out")"
check 'a step cannot share it' grep -q '^step: 125' "$dir/work/adaptable.out"
list_becomes '. == []'
no_drain

# ---- an array ----------------------------------------------------------------------------------
# Four at a time have the GPU, and twelve wait.
policy <<<$'[tenant jobs]\nmatch-user = games\nonly-gpus = 0000:03:00.0'
job array sbatch -W -w node0 --array=1-200 --gpuarb-cus=15 --gpuarb-wait -o 'array.%a' --wrap 'echo "$HSA_CU_MASK"; exec sleep 0.1'
snapshots=0
while is_running "${jobs[array]}"; do
	list_becomes 'all(.[]; .state != "waiting") or ([.[] | select(.state != "waiting").partitions[].cus] | add) == 60'
	json_out '[.[] | select(.state != "waiting").partitions[0].shader_engines[]] | length == (unique | length)'
	snapshots=$((snapshots + $(jq 'any(.[]; .state == "waiting") | if . then 1 else 0 end' "$dir/out")))
done
await_job array
code_is 0
check 'jobs waited' test "$snapshots" -gt 0
check 'each of the array had a mask' test "$(grep -l '^0:0x' "$dir"/work/array.* | wc -l)" = 200
policy <<<'[tenant *]'
list_becomes '. == []'
no_drain

# ---- what goes wrong on the node ----------------------------------------------------------------
# Whatever is killed, the lease is there as long as the task.
rig_stop_daemon
exec 4< <(RUNTIME_DIRECTORY=$dir/run exec "$SERVICE_MANAGER" --store-max=64 -- "$GPUARBD" --simulate=radeon-vii,radeon-vii \
	--profiles="$GPUARB_SOURCE_ROOT/conf/gpus" --config="$dir/gpuarbd.conf" --tenants="$dir/tenants.d" 2>"$dir/daemon.err")
daemon_pid=$!
ready() { await_line 4 'ready *' || { cat "$dir/daemon.err"; await_fail 'gpuarbd does not start'; }; gpuarbd=${line#ready }; }
ready
# task NAME ARGUMENT…: a job whose task holds a lease until it reads a line; $task is its process.
task()
{
	rm -f "$dir/work/task.pid"
	job "$1" srun -w node0 "${@:2}" --gpuarb-cus=15 sh -c 'echo $$ >>task.pid; exec cat fifo'
	await_so 'the task runs' test -s "$dir/work/task.pid"
	task=$(head -n 1 "$dir/work/task.pid")
}
holds_lease() { listed "length == 1 and .[0].state == \"granted\"" || complain "no lease is granted"; }
let_task_end() { timeout "$patience" sh -c ': >"$1"' sh "$dir/work/fifo"; }
# kill_process PID: as it is a child of others, it may be a zombie for a while.
kill_process()
{
	kill -KILL "$1"
	await_so "process $1 has ended" has_ended "$1"
}
task orphan
stepd=$(awk '{ print $4 }' "/proc/$task/stat")
kill_process "$stepd"
holds_lease
kill -KILL "$task"
list_becomes '. == []'
scancel -u games
await_job orphan
no_drain

task survivor
kill_process "$(cat "$dir/slurmd.node0.pid")"
slurmd -N node0
# slurmctld ends a job that it has not saved.
scontrol update job="$(squeue -h -o %i)" comment=is-saved
await_so 'slurmctld has saved the job' grep -qs is-saved "$dir/state/job_state"
kill_process "$(cat "$dir/slurmctld.pid")"
slurmctld
kill_process "$gpuarbd"
ready
holds_lease
let_task_end
await_job survivor
code_is 0
list_becomes '. == []'
no_drain

# One of two tasks, and one that waits.
task pair -n2 --gpuarb-queues=4
both_run() { [ "$(wc -l <"$dir/work/task.pid")" = 2 ]; }
await_so 'both tasks run' both_run
kill_process "$task"
holds_lease
let_task_end
await_job pair
code_is 137
list_becomes '. == []'
policy <<<$'[tenant jobs]\nmatch-user = games\nonly-gpus = 0000:03:00.0'
hold reserve --gpu=0000:03:00.0 --cus=60
job waiting srun -w node0 --gpuarb-cus=15 --gpuarb-wait true
list_becomes 'any(.[]; .state == "waiting")'
kill_process "$(jq -r '.[] | select(.state == "waiting").owner.pid' "$dir/out")"
await_job waiting
code_is 137
list_becomes 'length == 1'
let_go TERM "$holder"
no_drain

# More than a user may have, whatever Slurm counted.
policy <<<$'[tenant jobs]\nmatch-user = games\nmax-cus = 10'
for wait in '' --gpuarb-wait; do
	# shellcheck disable=SC2086 # no argument, or one
	COUNTED=cu slurm srun -w node0 $wait --gpuarb-cus=15 true
	code_is 125
	err_has 'max-cus'
	# shellcheck disable=SC2086
	slurm srun -w node0 $wait --gpuarb-cus=300 true
	code_is 125
	err_has '300'
done
kill "$daemon_pid"
wait "$daemon_pid"
daemon_pid=
slurm srun -w node0 --gpuarb-cus=15 true
code_is 125
err_has "$GPUARB_BUS_ADDRESS"
slurm srun -w node0 echo without
code_is 0
no_drain
rig_done
