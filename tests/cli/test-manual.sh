#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The manual pages have all sections, options and verbs, and their examples work.
#
#	test-manual.sh GPUARBCTL LIBRARY COMPILER…
#
# GPUARBD, FAKE_SYSFS, GPUARB_SOURCE_ROOT: the daemon, the maker of trees, the source tree.
set -u
GPUARBCTL=${1:-${GPUARBCTL:?}}
library=${2:?}
compiler=("${@:3}")
: "${GPUARBD:?}" "${FAKE_SYSFS:?}" "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"
rig_need dbus-daemon dbus-monitor jq
docs=$GPUARB_SOURCE_ROOT/docs

# ---- the pages ---------------------------------------------------------------------------
# section PAGE NAME: its text.
section() { sed -n "/^# $2\$/,/^# /{/^# /!p}" "$1"; }

for page in "$docs"/*.scd; do
	name=$(basename "$page" .scd)
	check "$name begins with its name" grep -qx "${name%.*}(${name##*.})" <(head -n 1 "$page")
	check "$name is installed" grep -qF "'$name'" "$docs/meson.build"
	# A page about a subject has its examples where it explains it. That of proofs has none.
	parts=(NAME DESCRIPTION 'SEE ALSO')
	cp "$page" "$dir/typed"
	if [[ $name != *.7 ]]; then
		parts+=(SYNOPSIS EXAMPLES)
		section "$page" EXAMPLES >"$dir/typed"
	fi
	for part in "${parts[@]}"; do
		check "$name has text in $part" grep -q . <(section "$page" "$part")
	done
	[ "$name" = gpuarb-rt-proof.7 ] ||
		check "$name has something to type" grep -qE '^(```$|	\$ )' "$dir/typed"
	if command -v scdoc >/dev/null; then
		scdoc <"$page" >"$dir/page" 2>"$dir/err" || complain "scdoc does not take $name"
	fi
done
while IFS=: read -r page other; do
	other=${other//[*)]/}
	check "$other, of which ${page##*/} tells, exists" test -e "$docs/${other/(/.}.scd"
done < <(grep -oE '\*(lib)?gpuarb[a-z.-]*\*\([0-9]\)' "$docs"/*.scd)

# ---- what they name ----------------------------------------------------------------------
manual=$docs/libgpuarb.3.scd
sed -n 's/^\t*\(gpuarb_[a-z_]*\);$/\1/p' "$GPUARB_SOURCE_ROOT/libgpuarb/gpuarb.sym" \
	"$GPUARB_SOURCE_ROOT/libgpuarb/hip/gpuarb-hip.sym" "$GPUARB_SOURCE_ROOT/libgpuarb/rt/gpuarb-rt.sym" |
	sort -u >"$dir/functions"
check 'there are functions' test "$(wc -l <"$dir/functions")" -gt 40
grep -oE '\*gpuarb_[a-z_]+\*\(\)' "$manual" | tr -d '*()' | sort -u | diff "$dir/functions" - >"$dir/out" ||
	complain 'the functions (<) and those of libgpuarb(3) (>)'
sed -n 's/^ \*\t-\(E[A-Z]*\).*/\1/p' "$GPUARB_SOURCE_ROOT/libgpuarb/gpuarb.h" | sort -u >"$dir/errors"
check 'there are errors' test "$(wc -l <"$dir/errors")" -gt 15
sed -n 's/^|  //p' "$manual" | sort -u | comm -23 "$dir/errors" - >"$dir/out"
[ ! -s "$dir/out" ] || complain 'libgpuarb(3) does not have these errors'
options=$("$GPUARBD" --help | grep -oE '^  --[a-z-]+' | sort -u)
check 'gpuarbd has options' test "$(wc -w <<<"$options")" -gt 8
check 'gpuarbd(8) has the options that gpuarbd --help has' test \
	"$(tr -d ' ' <<<"$options")" = "$(section "$docs/gpuarbd.8.scd" OPTIONS |
		grep -oE '^\*--[a-z-]+' | tr -d '*' | sort -u)"
gaps=$(grep -rhoE --include='*.c' 'ret\[n\+\+\] = "[a-z-]+"' "$GPUARB_SOURCE_ROOT/daemon/core" |
	cut -d'"' -f2)
check 'there are gaps' test "$(wc -w <<<"$gaps")" = 7
for gap in $gaps; do
	check "gpuarb(7) has the gap $gap" grep -qx "_${gap}_" "$docs/gpuarb.7.scd"
done

# ---- examples of configuration -----------------------------------------------------------
for page in gpuarbd.conf.5 gpuarb-tenants.5; do
	section "$docs/$page.scd" EXAMPLES | awk -v to="$dir/$page" '
		/^```$/ { inside = !inside; n += inside; next }
		inside { print > to "-" n ".conf" }'
	count=0
	for file in "$dir/$page"-*.conf; do
		grep -q '^\[' "$file" || continue
		count=$((count + 1))
		# Their users need not be here.
		sed -i 's/^\(match-user\|match-group\) = .*/\1 = root/' "$file"
		ends 0 config check --profiles="$GPUARB_SOURCE_ROOT/conf/gpus" "$file"
	done
	check "$page has examples" test "$count" -ge 3
done

# ---- docs/hardware.md --------------------------------------------------------------------
for profile in "$GPUARB_SOURCE_ROOT"/conf/gpus/*.conf; do
	name=$(basename "$profile" .conf)
	row=$(awk -F ' *= *' -v name="$name" '{ sub(/ *;.*/, "", $2); key[$1] = $2 }
		END { print "|", key["device"], "|", name, "|", key["harvest"], "|", key["law"], "|", key["queue-slots"], "|" }' "$profile")
	check "docs/hardware.md has $row" grep -qF "$row" "$docs/hardware.md"
done

# The table of claims, and what a report of an owner makes of it.
"$GPUARB_SOURCE_ROOT/docs/make-hardware" >"$dir/claims" 2>"$dir/err"
sed -n '/^<!-- claims/,/^<!-- end/p' "$docs/hardware.md" | grep '^|' >"$dir/page-claims"
check 'docs/make-hardware --write was run' cmp "$dir/claims" "$dir/page-claims"
mkdir "$dir/submitted"
report='{"schema":"gpuarb-calibration","emulated":false,"date":"2027-01-02","device":"vega20","gfx_target":"gfx906","masks_honoured":19,
	"points":[1,2],"law":{"worst_error_percent":3.21},"costs":{"preemption_usec":41}}'
printf 'Calibration\n\n```json\n%s\n```\n' "$report" >"$dir/submitted/a.md"
check 'a report fills its row' eval '"$GPUARB_SOURCE_ROOT/docs/make-hardware" --print "$dir/submitted" |
	grep -q "Radeon VII, gfx906.*41 us.*19 of 2 masks.*3.2 %"'
check 'and no other' test "$("$GPUARB_SOURCE_ROOT/docs/make-hardware" --print "$dir/submitted" | grep -c '41 us')" = 1
printf '```json\n%s\n```\n' "${report/false/true}" >"$dir/submitted/b.md"
check 'an emulated report is refused' eval '! "$GPUARB_SOURCE_ROOT/docs/make-hardware" --print "$dir/submitted"'

# ---- the examples of the library ---------------------------------------------------------
# shellcheck source=tests/cli/manual-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/manual-rig.sh"
check 'the library has two examples' manual_examples "$manual" "$dir/example" 2
for n in 1 2; do
	manual_compile "$dir/example-$n" "$library" "${compiler[@]}" ||
		complain "example $n of libgpuarb(3) does not compile"
done

mkdir "$dir/sys"
"$FAKE_SYSFS" "$dir/sys" "$GPUARB_SOURCE_ROOT/conf/gpus" radeon-vii >"$dir/out" || exit 1
rig_start_bus
for n in 1 2; do
	timeout "$patience" "$dir/example-$n" >"$dir/out" 2>"$dir/err"
	check 'without a gpuarbd it fails' test $? = 1
	check 'and says so' test -s "$dir/err"
done

rig_start_daemon --sysfs="$dir/sys"
exec 9< <(exec "$dir/example-1" 2>"$dir/example.err")
holder=$!
read -r -t "$patience" line <&9
check 'it has what it asked for' test "$line" = '0000:03:00.0: 30 CUs, 0 queues masked'
prints 'length == 1 and .[0].name == "example" and .[0].partitions[0].queues == 3' list --json
id=$(jq '.[0].id' "$dir/out")
ends 0 resize "$id" --cus=15
read -r -t "$patience" line <&9
check 'it follows' test "$line" = '0000:03:00.0: 15 CUs, 0 queues masked'
ends 0 release "$id"
wait_for "$holder"
check 'it ends with its lease' test "$ended" = 0
check 'and says why' test -s "$dir/example.err"

# ---- the members of JSON -----------------------------------------------------------------
declare -A words=()
while read -r word; do words[${word%_}]=yes; done < <(grep -ohE '[a-z][a-z0-9_]*' "$docs"/gpuarbctl*.1.scd)

# documented ARGUMENT…: each member that this verb prints is in a page of gpuarbctl.
documented()
{
	local key

	timeout "$patience" "$GPUARBCTL" "$@" --json >"$dir/out" 2>"$dir/err"
	jq -r '[.. | objects | keys[]] | unique[]' "$dir/out" >"$dir/keys" && [ -s "$dir/keys" ] ||
		complain "$1 prints no JSON"
	while read -r key; do
		[ -n "${words[$key]:-}" ] || complain "no page of gpuarbctl has the member $key of $1"
	done <"$dir/keys"
}

model=(--profile=radeon-vii --profiles="$GPUARB_SOURCE_ROOT/conf/gpus")
exec 9< <(exec "$GPUARBCTL" reserve --cus=30 2>"$dir/example.err")
holder=$!
read -r -t "$patience" line <&9
documented gpus
documented list
documented status
documented map
documented verify
documented plan --cus=15
documented plan --cus=60
documented plan --cus=60 --wait
documented doctor
documented config check
documented reload
documented mask explain 0xf "${model[@]}"
documented mask encode SE0 "${model[@]}"
documented mask decode 0xf "${model[@]}"
documented rt plan "$docs/examples/taskset.ini" "${model[@]}"
let_go INT "$holder"

# An agent needs the driver: kfdsim/test-adaptable.sh has one.
if [ ! -e /sys/class/kfd/kfd ]; then
	timeout "$patience" "$dir/example-2" >"$dir/out" 2>"$dir/err"
	check 'an agent that sees no driver fails' test $? = 1
	check 'and says so' grep -q 'KFD' "$dir/err"
fi
rig_done
