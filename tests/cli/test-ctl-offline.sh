#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# gpuarbctl without a daemon: usage, help and manual, masks, configuration.
#
#	test-ctl-offline.sh GPUARBCTL
#
# GPUARB_SOURCE_ROOT: the source tree; default: that of this file.
set -u
GPUARBCTL=${1:-${GPUARBCTL:?}}
: "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"
rig_need jq
data=$GPUARB_SOURCE_ROOT/tests/data
manual=$dir/manual
cat "$GPUARB_SOURCE_ROOT"/docs/gpuarbctl*.1.scd >"$manual"
export GPUARB_BUS_ADDRESS="unix:path=$dir/no-bus"

# mask CODE ARGUMENT…: runs the verb mask with the shipped profiles.
mask() { ends "$1" mask "${@:2}" --profiles="$GPUARB_SOURCE_ROOT/conf/gpus"; }
# mask_is JQ ARGUMENT…, mask_shows TEXT ARGUMENT…: it ends with 0, and its JSON is so, or it prints the text.
mask_is() { mask 0 "${@:2}" --json; json_out "$1"; }
mask_shows() { mask 0 "${@:2}"; out_has "$1"; }
# mask_fails CODE TEXT ARGUMENT…: it ends so, and prints the text on standard error.
mask_fails() { mask "$1" "${@:3}"; err_has "$2"; }

# ---- usage -----------------------------------------------------------------------------
ends 2 --complete
ends 2 --complete bash
ends 2 --complete bash 0 gpuarbctl
ends 2 --complete bash 2 gpuarbctl ''
ends 2 --complete bash x gpuarbctl ''
fails 2 'status?' stauts
fails 2 '--help' xyzzy-plugh
fails 2 '--json?' --jsno
fails 2 'gpuarbctl show LEASE' show
fails 2 "'2': gpuarbctl show LEASE" show 1 2
ends 2 list --cus=3
fails 2 '--cus=0' plan --cus=0
ends 2 plan --cus=-1
ends 2 plan --cus=99999999999999999999
fails 2 'CUs from 1 to 1024' plan --cus 30x
fails 2 '512M' plan --vram=1X
fails 2 'value' plan --cus
ends 2 plan --json --cus=0
json_err '.error | test("--cus=0")'
ends 5 release 0
ends 5 release 1x
ends 125 run --cus=0 -- true
ends 125 run
fails 5 "$dir/no-bus" status
ends 5
ends 5 --json gpus
json_err '.error | length > 0'
ends 125 run -- true
shows 'gpuarbctl ' --version
ends 0 run --version
timeout "$patience" "$GPUARBCTL" --help >/dev/full 2>"$dir/err"
check 'text that cannot be written is a failure' test $? = 1

# ---- help and manual agree ---------------------------------------------------------------
shows 'Exit codes' --help
verbs=$(sed -n 's/^  \([a-z]*\) .*/\1/p' "$dir/out")
check 'there are verbs' test "$(wc -w <<<"$verbs")" = 29
for verb in $verbs; do
	shows "gpuarbctl $verb" "$verb" --help
	check "the manual has the verb $verb" grep -q "^\*${verb}[* ]\|, \*${verb}\*" "$manual"
	sed -n 's/^  \(--[a-z-]*\).*/\1/p' "$dir/out" >>"$dir/options"
done
sort -u -o "$dir/options" "$dir/options"
# options_of PATTERN: those of the manual that it finds.
options_of() { grep -o "$1" "$manual" | tr -d '*' | sort -u; }
lacks=$(comm -23 "$dir/options" <(options_of '\*--[a-z-]*\*') | xargs)
check "the manual has the options $lacks" test -z "$lacks"
unknown=$(comm -13 "$dir/options" <(options_of '^\*--[a-z-]*\*') | xargs)
check "the options $unknown of the manual exist" test -z "$unknown"
check 'there are options' test "$(wc -l <"$dir/options")" -gt 20
ends 0 -h
shows '--cus=N|N%' plan --cus=3 -h

# ---- mask explain ------------------------------------------------------------------------
for case in "whole-engines 0x555555555555555" "cliff 0xd55555555555555" "uneven 0x3fffffff" \
	"list 0-15,32-47" "zero 0x0" "beyond 0-60"; do
	# shellcheck disable=SC2086
	set -- $case
	mask 0 explain "$2" --profile=radeon-vii
	out_is "$data/ctl-explain-$1.out"
done
mask 0 explain 0xd55555555555555 --profile=radeon-vii --json
json_out '(.relative_time, .relative_time_range[]) |= (. * 100 | round)
	| . == {cus: 31, valid: true, problem: null, shader_engines: [15,0,15,1],
	per_xcc: [[15,0,15,1]], shader_engines_used: 3, occupied_cus: 31, unmasked_xccs: [],
	effective_cus: 3, efficiency: (3/31), relative_time: 1867,
	relative_time_range: {least: 1680, most: 2200}, law: "measured",
	law_source: "RTNS 2021, Radeon VII", law_constant: 7}'
mask_is '.shader_engines == [8,8,7,7] and .effective_cus == 28' explain 0-29 --profile=radeon-vii
mask_is '.cus == 1 and .valid and .relative_time_range.most == 66' explain 0 --profile=radeon-vii
mask_is '.valid and .cus == 4' explain 0x00000000000000000000000000000000000000000000000000f --profile=radeon-vii
mask 0 explain 0x0 --profile=radeon-vii --json
json_out '.valid == false and (.problem | length > 0) and .relative_time == null
	and .efficiency == null and .cus == 0'
mask_is '.valid == false and .relative_time == null and (.problem | test("60"))' explain 60 --profile=radeon-vii
mask 0 explain 0x1 --profile=rx6900xt --json
json_out '.valid == false and (.problem | test("WGP")) and .occupied_cus == 80
	and .unmasked_xccs == [0] and .effective_cus == 0 and .efficiency == null'
mask_shows '60 of 60' explain 0-14 --profile=rx7800xt
check 'a lost mask has no efficiency and no hint' sh -c '! grep -q "efficien\|uneven\|cliff" "$1"' sh "$dir/out"
mask 0 explain 304-400 --profile=mi300x-spx --json
json_out '.valid == false and .cus == 0 and .occupied_cus == 304 and .efficiency == null
	and .unmasked_xccs == [range(8)]'
mask_shows '304 of 304' explain 304-400 --profile=mi300x-spx
mask_is '.valid and .cus == 2' explain 0x3 --profile=rx6900xt
mask 0 explain 0xf --profile=mi300x-spx --json
json_out '.valid == false and (.problem | test("XCC 4")) and (.per_xcc | length == 8)
	and .occupied_cus == 156 and .unmasked_xccs == [4,5,6,7] and .relative_time == null'
mask 0 explain 0 --profile=mi300x-spx --json
json_out '.valid == false and .cus == 1 and .occupied_cus == 267 and .unmasked_xccs == [1,2,3,4,5,6,7]'
mask_shows '267 of 304' explain 0 --profile=mi300x-spx
mask_is '.valid == false and .occupied_cus == 0 and .unmasked_xccs == []' explain 0x0 --profile=mi300x-spx
mask 0 explain 0x3 --profile=v620 --json
json_out '.law == "assumed" and .law_source == null and .law_constant == null
	and (.relative_time * 1.1 - .relative_time_range.most | fabs < 0.001)'
mask_is '.valid and .cus == 8 and .effective_cus == 8 and .shader_engines[0] == 8' explain 0xff --profile=mi300x-spx

for bad in 0x 0xg 0x-1 '' ',' '1,' '1,,2' 3-1 ag 1-2-3 '1 2' -- 99999999 65536 0-70000; do
	mask 2 explain --profile=radeon-vii -- "$bad"
done
mask 2 explain "0x$(printf '%020000d' 0 | tr 0 f)" --profile=radeon-vii
mask_fails 2 '--profile' explain 0x1
mask 2 explain 0x1 --gpu=0 --profile=radeon-vii
mask 5 explain 0x1 --gpu=0
mask_fails 2 'radeon-vii' explain 0x1 --profile=radeon-viii
mask_fails 2 'explain' decide 0x1 --profile=radeon-vii

# Values of HSA_CU_MASK and ROC_GLOBAL_CU_MASK, with what the runtimes make of them.
mask 0 explain 0:0-15 --profile=radeon-vii --json
json_out '.variable == "HSA_CU_MASK" and .ignored == null and (.dropped | not)
	and (.gpus | length == 1) and (.gpus[0] | .gpu == 0 and .cus == 16 and .valid)'
mask_is '.gpus[0] | .cus == 20 and .shader_engines == [10,10,0,0]' explain 0:0x3333333333 --profile=radeon-vii
mask 0 explain '0:0-14;1:0-7' --profile=radeon-vii --json
json_out '[.gpus[] | [.gpu, .cus]] == [[0,15],[1,8]]'
mask 0 explain '0:0-14;1:0-7' --profile=radeon-vii
out_has '15 of 60 CUs, valid'
out_has '8 of 60 CUs, valid'
mask 0 explain '0:0-14;1:x;2:0-3' --profile=radeon-vii
out_has "'1:x'"
out_lacks 'GPU 2'
mask_is '.dropped and .gpus[0].cus == 10' explain 0:50-70 --profile=radeon-vii
mask_shows '60 of 60 CUs occupied' explain 0:0-14 --profile=rx7800xt
mask 0 explain HSA_CU_MASK=0-15 --profile=radeon-vii
out_has "'0-15'"
mask 0 explain ffff --profile=radeon-vii --json
json_out '.variable == "ROC_GLOBAL_CU_MASK" and (.gpus[0] | .gpu == null and .cus == 16)'
mask_is '.gpus[0] | .cus == 16 and .valid' explain ROC_GLOBAL_CU_MASK=0xff --profile=rx6900xt
mask 0 explain ROC_GLOBAL_CU_MASK=0xfffffffffffffff --profile=radeon-vii
out_lacks ' CUs, valid'

mkdir "$dir/gpus"
echo 'nonsense = 1' >"$dir/gpus/broken.conf"
fails 6 'broken.conf:1' mask explain 0x1 --profile=broken --profiles="$dir/gpus"

# ---- mask encode, decode -------------------------------------------------------------------
mask 0 encode SE0,SE2 --profile=radeon-vii
out_is "$data/ctl-encode.out"
mask 0 encode se0:0-3,SE1:5 --profile=radeon-vii --json
json_out '. == {cu_mask: "0x201111", list: "0,4,8,12,21", cus: 5, valid: true, problem: null,
	effective_cus: 2}'
mask_is '.valid and .cus == 76 and .effective_cus == 72' encode SE0 --profile=mi300x-spx
mask_is '.valid and .effective_cus == .cus' encode SE2:0-8 --profile=mi300x-spx
mask 1 encode XCC0.SE0 --profile=mi300x-spx --json
json_out '.valid == false and (.problem | test("XCC 1")) and (.cu_mask | startswith("0x"))'
json_err '.error | test("not a valid mask: .*XCC 1")'
mask 1 encode XCC0.SE0 --profile=mi300x-spx
out_has '0x'
err_has 'gpuarbctl mask'
mask_is '.cu_mask == "0x300"' encode SE0.SH1:0-1 --profile=rx6900xt
mask_is '.cu_mask == "0x300"' encode SE0:10-11 --profile=rx6900xt
for bad in SE4 SE0:15 SE0:3-1 SE0.SH1 XCC1.SE0 XCC0SE1 SE SE0: SE0:1- 'SE0,,' ',SE0' SE0x CU1 ''; do
	mask 2 encode --profile=radeon-vii -- "$bad"
done
mask_fails 2 'WGP' encode SE0:0-2 --profile=rx6900xt
mask 0 decode 0x111111111111111 --profile=radeon-vii
out_is "$data/ctl-decode.out"
mask_shows 'valid' decode 0x0 --profile=radeon-vii
mask_is '.places == "SE0.SH0:0-1" and .shader_arrays[0].cus == [0,1]' decode 0x3 --profile=rx6900xt

# encode reverses decode, also for a GPU with an uneven harvest.
value() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$dir/out"; } # jq takes as long as gpuarbctl
for profile in "$GPUARB_SOURCE_ROOT"/conf/gpus/*.conf; do
	name=$(basename "$profile" .conf)
	mask 0 encode SE0 --profile="$name" --json
	hex=$(value cu_mask)
	mask 0 decode "$hex" --profile="$name" --json
	mask 0 encode "$(value places)" --profile="$name" --json
	check "$name: the same mask" test "$(value cu_mask)" = "${hex:?}"
done

# ---- config check --------------------------------------------------------------------------
printf '[daemon]\naudit-interval = 3s\n' >"$dir/good.conf"
printf '[daemon]\naudit-intervall = 3s\nmargin = much\n' >"$dir/bad.conf"
shows 'valid' config check "$dir/good.conf"
prints '. == {valid: true, problems: [], warnings: []}' config check "$dir/good.conf" --json
fails 6 'bad.conf:2' config check "$dir/good.conf" "$dir/bad.conf"
err_has 'audit-interval'
err_has 'bad.conf:3'
ends 6 config check "$dir/bad.conf" --json
json_out '.valid == false and (.problems | length == 2)'
fails 6 'none.conf' config check "$dir/none.conf"

# A directory is one such as tenants.d: all *.conf in it, and tenants only.
mkdir "$dir/tenants.d"
ends 0 config check "$dir/tenants.d" --json
json_out '.valid and (.warnings | length == 1 and (.[0] | contains("tenants.d: no *.conf")))'
printf '[tenant a]\nmatch-user = 0\n' >"$dir/tenants.d/10-a.conf"
printf '[daemon]\n' >"$dir/tenants.d/20-b.conf"
printf 'no configuration' >"$dir/tenants.d/README"
ends 6 config check "$dir/tenants.d" --json
json_out '.problems | length == 1 and (.[0] | contains("tenants.d/20-b.conf:1"))'
rm "$dir/tenants.d/20-b.conf"
prints '. == {valid: true, problems: [], warnings: []}' config check "$dir/tenants.d" --json
printf '[tenant b]\nmatch-user = root bin\n' >"$dir/tenants.d/30-b.ini"
ends 0 config check "$dir/tenants.d" --json
json_out '.valid and (.warnings | length == 1 and (.[0] | contains("tenants.d/30-b.ini: not read") and contains(".conf")))'
mv "$dir/tenants.d/30-b.ini" "$dir/tenants.d/30-b.conf"
ends 0 config check "$dir/tenants.d" --json
json_out '.warnings | length == 1 and (.[0] | contains("30-b.conf:2: match-user: user '"'root bin'"'") and contains("commas"))'
# The gpuarbd of another bus than the system bus may read other files.
shows "$GPUARB_BUS_ADDRESS" config check
ends 0 config explain
err_has "$GPUARB_BUS_ADDRESS"
ends 0 config explain "$dir/tenants.d"
err_lacks "$GPUARB_BUS_ADDRESS"
ends 2 config
fails 2 'check' config diff

# ---- arguments that exclude each other, or that there are none of ------------------------
ends 125 run --cap --no-cap -- true
for arguments in extra --no-such '--simulate=radeon-vii --sysfs=/sys'; do
	# shellcheck disable=SC2086 # a list
	"${GPUARBD:?}" $arguments 2>/dev/null
	[ $? = 2 ] || complain "gpuarbd $arguments: another status"
done

rig_done
