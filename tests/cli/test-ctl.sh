#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# gpuarbctl with the shipped gpuarbd on a private bus:
#
#	GPUARBD            gpuarbd
#	GPUARBCTL          gpuarbctl
#	GPUARB_SOURCE_ROOT the source tree; default: that of this file
set -u
: "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"

rig_need dbus-daemon dbus-monitor jq
rig_start_bus
cat >"$dir/gpuarbd.conf" <<-'CONF'
	[daemon]
	audit-interval = 1s
CONF
cat >"$dir/tenants.d/10-all.conf" <<-CONF
	[tenant everything]
	match-user = $(id -un)
	class = realtime
	priority = high

	[tenant small]
	match-user = $(id -un)
	open = yes
	class = guaranteed
	max-cus = 10
CONF

# ---- a daemon that cannot start --------------------------------------------------------
RUNTIME_DIRECTORY=$dir/none timeout "$patience" "$GPUARBD" --simulate=no-such-profile \
	--config="$dir/gpuarbd.conf" --tenants="$dir/tenants.d" 2>"$dir/err"
check 'a profile that there is not is a mistake in the configuration' test $? = 6

# ---- without a daemon -----------------------------------------------------------------
for verb in status gpus list 'show 1' reserve 'release 1' 'resize 1 --cus=3' plan map \
	'drain 0' 'undrain 0' reload monitor 'mask explain 0x1 --gpu=0'; do
	# shellcheck disable=SC2086
	ends 5 $verb
done
fails 125 'gpuarbctl run: ' run -- true
ends 5 gpus --json
json_err '.error | length > 0'

# ---- showing ---------------------------------------------------------------------------
rig_start_daemon --simulate=radeon-vii
shows '0000:03:00.0' status
out_has 'leases'
ends 0
out_has '0000:03:00.0'
ends 0 status --no-legend
out_lacks 'DEVICE'
ends 0 status --json
json_out 'keys == ["gpus","leases","queue_budgets","tenants","version"] and (.tenants | index("everything") != null)'

ends 0 gpus --json
json_out '.[0] | keys == (["name","device","gfx_target","xccs","shader_engines","cus",
	"cus_per_shader_engine","cus_free","fairness","floor_excess","wgp_mode","harvest_known","law","law_source","law_constant",
	"calibrated","calibration_problem","preemption_usec","slowdowns","queue_slots",
	"queue_slots_free","process_slots","process_slots_free","pipes","queues_per_pipe","pipes_source",
	"sdma_queues","sdma_xgmi_queues","vram_bytes","vram_free","scheduler","unmanaged",
	"observed","masks_observed","unseen","graphics","clients","oversubscribed","draining",
	"named_only","barred_for","vram_pressure","system_memory","memory","driver_events"] | sort)'
json_out '.[0] | .name == "0000:03:00.0" and .cus == 60 and .gfx_target == "gfx906"
	and .cus_per_shader_engine == [[15,15,15,15]] and .unmanaged == []'
shows 'gfx906' gpus
shows 'leases' list
prints '. == []' list --json
fails 1 'lease 99' show 99
fails 1 "'x'" show x
ends 2 show 0
ends 2 show ''
fails 1 'lease 99' release 99
ends 1 release 99 --json
json_err '.error_name == "org.gpuarb.Arbiter1.Error.NoSuchLease"'

# ---- planning --------------------------------------------------------------------------
shows 'cus: 31 asked, 30 granted, 30 effective (0000:03:00.0 SE ' plan --cus=31
out_has ' x15)'
prints 'keys == ["duration_usec","partitions","refusals","verdict"] and .verdict == "granted"' plan --cus=31 --json
json_out '.partitions[0] | keys == (["gpu","kfd_gpu_id","cu_mask","cus","cus_asked",
	"effective_cus","shader_engines","queues","streams","processes","sdma_queues",
	"sdma_xgmi_queues","vram","priority","paused","exclusive","tier","gaps"] | sort)'
json_out '.partitions[0] | .cus == 30 and .cus_asked == 31 and (.cu_mask | test("^0x[0-9a-f]+$"))'
prints '.partitions[0].cus == 15' plan --cus=25% --json
prints '.partitions[0] | .cus == 15 and .cus_asked == 15' plan --cus=26% --json
ends 3 plan --cus=1%
out_has '1% of 60 CUs'
prints '.partitions[0] | .cus == 60 and .queues == 5' plan --json
ends 3 plan --cus=30 --queues=1000 --json
json_out '.verdict == "refused" and (.refusals[0] | keys == ["asked","fits","fits_resource","free","gpu","hint","reason","resource","retry","total"])'
json_out '.refusals[0] | .reason == "queues" and .asked == 1000 and .total == 24 and .fits == [24]'
ends 3 plan --cus=30 --queues=1000
out_has 'queues: 1000 asked'
out_has 'never'
ends 3 plan --cus=30 --vram=1T
out_has 'vram: 1.0T asked, the GPU has 16.0G'
fails 2 '--cus' plan --class=realtime
fails 2 'only 1 of the 2 wants' plan --gpu=0 --cus=3 --gpu=1
ends 1 plan --gpu=0000:99:00.0 --cus=3
ends 3 reserve --tenant=small --cus=30
ends 1 plan --tenant=nobody-of-this-name --cus=3

# ---- reserving -------------------------------------------------------------------------
hold reserve --cus=30 --class=realtime --name=frames --queues=4
first=$holder
id=$(sed -n 's/^lease \([0-9]*\): cus: 30 asked, 30 granted, 30 effective .*/\1/p' <<<"$held")
check 'reserve says what it got' test -n "$id"
prints ".[0] | .id == $id and .state == \"granted\" and .class == \"realtime\"" list --json
json_out '.[0] | keys == (["id","name","state","class","tenant","owner","adaptable","generation",
	"tier","verified","capped","uncapped","alone","partitions","paused","position","reason","deadline","disturbances","drift","duration_usec","intruders","since"] | sort)'
json_out '.[0].owner | keys == ["pid","uid","unit"]'
json_out ".[0].owner.uid == $(id -u)"
prints ".id == $id and .partitions[0].queues == 4" show "$id" --json
shows 'SE ' show "$id"
out_has 'isolated'
out_has 'name         frames'
shows 'frames' list
shows "lease $id" status
shows 'SE 0  aaaaaaaaaaaaaaa' map
out_has 'SE 2  ...............'
out_has "lease $id"
prints ".[0].rows[0].leases == [range(15) | $id]" map 0 --json
json_out '.[0].rows[3].leases[0] == null'
shows '<svg ' map --svg=-
ends 0 map --svg="$dir/map.svg"
check 'the drawing is a file' grep -q '</svg>' "$dir/map.svg"
ends 1 map --svg="$dir/none/map.svg"
ends 1 map 7
mask=$("$GPUARBCTL" show "$id" --json | jq -r '.partitions[0].cu_mask')
ends 0 mask explain "$mask" --gpu=0 --json
json_out '.cus == 30 and .effective_cus == 30 and .relative_time_range.most == 2.2 and .valid'
out_has '"most":2.2}'
prints '[.gpus[] | [.gpu, .cus]] == [[0,15]]' mask explain '0:0-14;1:0-7' --gpu=0 --json
shows "'3:0-7'" mask explain '0:0-14;3:0-7;1:0' --gpu=0
ends 3 plan --cus=40 --class=realtime
out_has 'fit'
out_has "$id  frames, realtime of "
ends 3 plan --cus=40 --class=realtime --json
json_out ".refusals[0] | .end == [$id] and .end_exact"
fails 3 'asked' reserve --cus=40 --class=realtime
err_has '0000:03:00.0  '
ends 3 reserve --cus=40 --class=realtime --json
json_err '.refusals[0].gpu == "0000:03:00.0" and .error_name == "org.gpuarb.Arbiter1.Error.NoCapacity"'
json_err '.refusals[0] | .resource == "cus" and .total == 60 and .lease_count == 1'
fails 2 'name' reserve --cus=3 --name="$(printf 'a\033b')"
err_lacks "$(printf '\033')"

# ---- resizing --------------------------------------------------------------------------
ends 2 resize "$id"
prints '.partitions[0].cus == 15 and .partitions[0].queues == 4 and .generation == 2' resize "$id" --cus=15 --json
# `reserve` follows no masks: the lease names the process, and what stays taken.
json_out ".deadline == null and (.reason | test(\"^pid $holder has .* acknowledged the resize: 15 CUs\"))"
shows "pid $holder " resize "$id" --cus=15
shows "pid $holder " show "$id"
ends 2 resize "$id" --gpu=0 --cus=3 --gpu=1 --cus=3
ends 1 resize 99 --cus=3
fails 3 '--cus=60               fits an empty GPU' resize "$id" --cus=70

# ---- another user ------------------------------------------------------------------------
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	# Other users may not be able to read this tree.
	chmod 711 "$dir"
	install -m 755 "$GPUARBCTL" "$dir/gpuarbctl"
	install -m 755 "$(ldd "$GPUARBCTL" | sed -n 's/.*libgpuarb\.so\.0 => \([^ ]*\).*/\1/p')" \
		"$dir/libgpuarb.so.0"
	# shellcheck disable=SC2016
	printf '#!/bin/sh\nexport LD_LIBRARY_PATH=%s\nexec setpriv %s %s/gpuarbctl "$@"\n' "$dir" \
		'--reuid=65534 --regid=65534 --clear-groups' "$dir" >"$dir/as-nobody"
	chmod 755 "$dir/as-nobody"
	GPUARBCTL=$dir/as-nobody ends 0 status
	GPUARBCTL=$dir/as-nobody ends 4 release "$id"
	GPUARBCTL=$dir/as-nobody ends 4 resize "$id" --cus=3
	GPUARBCTL=$dir/as-nobody ends 4 drain 0
	GPUARBCTL=$dir/as-nobody ends 4 reload
	GPUARBCTL=$dir/as-nobody ends 4 reserve --class=realtime --cus=3
	GPUARBCTL=$dir/as-nobody ends 3 plan --class=realtime --cus=3
	out_has policy
	GPUARBCTL=$dir/as-nobody ends 125 run --class=realtime --cus=3 -- true
fi

# ---- releasing -------------------------------------------------------------------------
let_go TERM "$first"
check 'SIGTERM ends reserve with 0' test "$ended" = 0

# The signals are blocked before gpuarbctl prints, to a pipe that is full.
mkfifo "$dir/stalled"
exec {stalled}<>"$dir/stalled"
dd if=/dev/zero of="$dir/stalled" bs=4096 oflag=nonblock 2>"$dir/err"
"$GPUARBCTL" reserve --cus=15 >"$dir/stalled" 2>"$dir/err" &
pid=$!
signals_are_blocked() { [ ! -d "/proc/$pid" ] || grep -q '^SigBlk:[[:space:]]*0*4002$' "/proc/$pid/status"; }
await_so 'gpuarbctl reserve blocks its signals' signals_are_blocked
kill -TERM "$pid"
timeout "$patience" tail --pid="$pid" -f /dev/null || kill -KILL "$pid"
wait "$pid"
check 'SIGTERM ends reserve with 0 although its output is not read' test $? = 0
exec {stalled}<&-
prints '. == []' list --json

hold reserve --cus=15
second=$holder
id=$(sed -n 's/^lease \([0-9]*\): .*/\1/p' <<<"$held")
shows "lease $id released" release "$id"
wait_for "$second"
check 'a lease that was released is lost to its holder' test "$ended" = 8
check 'and its holder says so' grep -q "lease $id" "$dir/hold.err"

hold reserve --cus=15 --json
check 'reserve --json prints the lease' jq -e '.partitions[0].cus == 15' <<<"$held"
let_go INT "$holder"
check 'SIGINT ends reserve with 0' test "$ended" = 0

# ---- running ---------------------------------------------------------------------------
fails 7 'gpuarbctl run: lease ' run -- sh -c 'exit 7'
err_has 'cus: '
long=$(printf 'x%.0s' {1..200})
for name in "$long" $'a\tb\xff'; do
	printf '#!/bin/sh\nexec "$GPUARBCTL" list --json\n' >"$dir/$name"
	chmod +x "$dir/$name"
	prints ".[0].name == \"${long:0:127}\" or .[0].name == \"a?b?\"" run -- "$dir/$name"
	rm "$dir/$name"
done
# shellcheck disable=SC2016
ends 0 run --quiet --cus=15 -- sh -c 'echo "$HSA_CU_MASK $ROCR_VISIBLE_DEVICES $GPU_MAX_HW_QUEUES"'
check 'the program has its mask' grep -qx '0:0x[0-9a-f]* 0 1' "$dir/out"
check 'and nothing was said' test ! -s "$dir/err"
# shellcheck disable=SC2016
ends 0 run --quiet -- sh -c 'echo $GPU_MAX_HW_QUEUES; "$GPUARBCTL" list --json >"$0"' "$dir/seen"
check 'alone it has 5 queues' grep -qx 4 "$dir/out"
check 'and all CUs, best effort, under the name of the command' jq -e '.[0] |
	.partitions[0].cus == 60 and .class == "besteffort" and .name == "sh"' "$dir/seen"
# shellcheck disable=SC2016
"$GPUARBCTL" run --quiet --json -- sh -c 'echo $$' >"$dir/out" & wait_pid=$!
wait "$wait_pid"
check 'it is the same process' test "$(cat "$dir/out")" = "$wait_pid"
ends 126 run --quiet -- "$dir"
ends 127 run --quiet -- "$dir/none"
ends 127 run --quiet -- no-such-command-anywhere
# A mask from outside is refused, also one that ROCr or the hardware would silently drop: bits past the last CU,
# no decimal index, half a WGP, an XCC without a bit.
for silent in 0:0-3 0:304-400 GPU-0123456789abcdef:0-29 0:0-14 0:0; do
	HSA_CU_MASK=$silent ends 125 run -- true
	err_has 'HSA_CU_MASK'
done
ROC_GLOBAL_CU_MASK=0xC0000000 ends 125 run -- true
err_has 'ROC_GLOBAL_CU_MASK'
ends 125 run --cus=1000 -- true
fails 125 '--cus=0' run --cus=0 -- true
ends 125 run
ends 0 run --json --cus=15 -- true
json_err '.partitions[0].cus == 15'
prints '[.[] | select(.state != "ending")] == []' list --json

# ---- watching, administering ------------------------------------------------------------
exec 7< <(exec "$GPUARBCTL" monitor --json)
monitor=$!
read -r -t "$patience" event <&7
check 'monitor says from when on' jq -e '.event == "watching"' <<<"$event"
shows '0000:03:00.0' drain 0
read -r -t "$patience" event <&7
check 'monitor tells it' jq -e '.event == "gpu-changed" and .what == "0000:03:00.0" and
	.changes == [{ key: "draining", from: false, to: true }]' <<<"$event"
kill "$monitor"
exec 7<&-
shows 'draining' status
ends 3 plan --cus=3
out_has 'drain'
prints '.gpu == "0000:03:00.0" and .draining == false' undrain 0000:03:00.0 --json
ends 1 drain 9
ends 0 reload
prints '.reloaded' reload --json
# A problem that names all keys is longer than the answer may be.
printf '[tenant x]\nmatch-user = root\nnonsense = 1\n' >"$dir/tenants.d/90-wrong.conf"
fails 6 '90-wrong.conf:3: ' reload
rm "$dir/tenants.d/90-wrong.conf"
printf 'nonsense\n[daemon]\n' >>"$dir/gpuarbd.conf"
fails 6 'gpuarbctl reload: ' reload
err_has 'gpuarbd.conf:3: '
err_has 'gpuarbd.conf:4: '
check 'each mistake has a line of its own' test "$(grep -c 'gpuarbd.conf:' "$dir/err")" = 2

# ---- what names nothing is an error, not an empty list ---------------------------------------
for wrong in --columns=foo --columns=id,foo --user=nosuchuser --state=sleeping; do
	fails 2 "${wrong##*[=,]}" list "$wrong"
done
for unknown in 'list --gpu=9' 'plan --gpu=9 --cus=3' 'mask explain 0x1 --gpu=9' 'map 9'; do
	read -ra words <<<"$unknown"
	fails 1 "'9'" "${words[@]}"
done
prints '.leases == [] and (.gpus | length == 1)' status --user=daemon --gpu=0 --json
ends 2 status --state=sleeping
ends 2 gpus --columns=pid
ends 2 usage --columns=pid
ends 2 top --user=nosuchuser
prints '. == []' list --user=daemon --json
fails 125 'small' run --tenant=nosuch -- true
fails 125 '0000:03:00.0' run --gpu=7 --cus=3 -- true
long=$(printf 'x%.0s' {1..10000})
for name in "$long" $'a\nb' $'\xff'; do
	fails 125 '127' run --name="$name" -- true
	check 'the error is one short line' \
		test "$(wc -l <"$dir/err")" = 1 -a "$(wc -c <"$dir/err")" -lt 200
done
fails 125 '--cus' run -cus 3 -- true

# ---- accounting: what was held and refused above, and after a restart ----------------------
mine=".usage[] | select(.user == \"$(id -un)\" and .class == \"realtime\")"
prints 'keys == ["counters", "from", "usage"] and .from > 0' usage --json
json_out '.counters | keys == ["durations", "since", "tenants"] and .since > 0'
json_out '.counters.tenants | map(select(.grants > 0 and (.refusals | map(.count) | add) > 0)) | length == 1'
json_out '.counters.durations | map(.name) == ["decision", "activation", "wait"]'
json_out '.counters.durations[0] | .sum_usec > 0 and .buckets[-1].to_usec == null'
json_out '(.counters.durations[0].buckets | map(.count) | add) >= (.counters.tenants | map(.grants) | add)'
json_out '.usage[0] | keys == (["tenant","user","uid","class","leases","held_usec","cu_usec","queue_usec",
	"waits","waited_usec","refusals"] | sort)'
json_out "$mine | .leases > 0 and .held_usec > 0 and .cu_usec > .queue_usec and .refusals > 0"
before=$(jq "[$mine | .leases] | add" "$dir/out")
shows 'CU-HOURS' usage
out_has 'besteffort'
prints '.usage == []' usage --user=daemon --json
ends 0 usage --tenant=none --since=1d
out_lacks 'besteffort'
prints '.usage == []' usage --since=2100-01-01 --json
for wrong in yesterday '' 2026-13-01 2026-01-01x -1d; do
	fails 2 "--since=$wrong" usage --since="$wrong"
done
ends 2 usage x

# ---- limits of users ------------------------------------------------------------------------
me=".users[] | select(.user == \"$(id -un)\")"
prints 'keys == ["limits", "users"] and .limits.leases <= .limits.leases_total' status --limits --json
json_out '.limits | keys == (["calls","time_percent","pending","unread_bytes","leases","leases_total",
	"holders_total","unread_known"] | sort)'
json_out "$me | keys == ([\"user\",\"uid\",\"administrator\",\"connections\",\"calls\",\"calls_delayed\",
	\"calls_refused\",\"time_usec\",\"pending\",\"pending_bytes\",\"unread_bytes\",\"unread_fds\",\"leases\",
	\"waiting\",\"holders\"] | sort)"
json_out "$me | .connections > 0 and .calls > 0 and .time_usec > 0 and .leases == 0"
shows 'CONNECTIONS' status --limits
out_has "$(id -un)"
prints '.users == []' status --limits --user=daemon --json
ends 2 status --limits --columns=cus
ends 2 list --limits

sed -i '/nonsense/,$d' "$dir/gpuarbd.conf"
kill "$daemon_pid"
wait "$daemon_pid"
check 'the accounting is saved' test -s "$dir/run/usage"
rig_start_daemon --simulate=radeon-vii
prints "([$mine | .leases] | add) == $before" usage --json
# A damaged file, and one that can be neither read nor written, are reported; gpuarbd runs all the same.
end_daemon() { kill "$daemon_pid"; wait "$daemon_pid"; }
end_daemon
echo nonsense >"$dir/run/usage"
rig_start_daemon --simulate=radeon-vii
prints '.usage == [] and .from == null' usage --json
ends 0 usage
out_lacks 'Since'
check 'the damaged accounting is logged' grep -q accounting "$dir/daemon.err"
end_daemon
rm "$dir/run/usage"
mkdir "$dir/run/usage"
rig_start_daemon --simulate=radeon-vii
end_daemon
check 'reading and saving are logged' test "$(grep -c accounting "$dir/daemon.err")" = 2
rmdir "$dir/run/usage"
rig_start_daemon --simulate=radeon-vii

rig_done
