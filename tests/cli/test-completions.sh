#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The completions of gpuarbctl in each shell: bash by its own function, zsh in a terminal of its own,
# fish by `complete -C`.
#
#	test-completions.sh GPUARBCTL SHELL SCRIPT
#
# GPUARBD, GPUARB_SOURCE_ROOT: the daemon and the source tree.
set -u
GPUARBCTL=${1:-${GPUARBCTL:?}}
shell=${2:?}
: "${GPUARBD:?}" "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../..}"
# shellcheck source=tests/cli/ctl-rig.sh
. "$GPUARB_SOURCE_ROOT/tests/cli/ctl-rig.sh"
rig_need "$shell" dbus-daemon dbus-monitor jq
if [ "$shell" = zsh ] && ! zsh -fc 'zmodload zsh/zpty && zpty probe true' 2>/dev/null; then
	echo 'skipped: no pseudo-terminal is to be had, and zsh completes in nothing else'
	exit 77
fi

# The scripts call the gpuarbctl that PATH finds.
mkdir "$dir/bin" "$dir/home" "$dir/files" "$dir/files/sub"
ln -s "$(realpath "$GPUARBCTL")" "$dir/bin/gpuarbctl"
script=$(realpath "$3")
profiles=--profiles=$GPUARB_SOURCE_ROOT/conf/gpus
touch "$dir/files/one.conf"
export PATH="$dir/bin:$PATH" HOME="$dir/home"

# ask LINE: completes at the end of the line; the candidates are in $dir/out, one a line.
ask()
{
	said="'$1'"
	(
		cd "$dir/files" || exit
		# shellcheck disable=SC2016 # of fish
		case $shell in
		fish) timeout "$patience" fish --no-config -c \
			'source $argv[1]; complete -C $argv[2]' "$script" "$1" | cut -f1 ;;
		zsh) timeout "$patience" zsh -f "$GPUARB_SOURCE_ROOT/tests/cli/complete.zsh" "$script" "$1" ;;
		bash) timeout "$patience" bash --norc "$GPUARB_SOURCE_ROOT/tests/cli/complete.bash" \
			"$script" "$1" ;;
		esac
	) >"$dir/out" 2>"$dir/err" || complain "$said: $shell failed"
	[ ! -s "$dir/err" ] || complain "$said: $shell complains"
	# Remove the option before a value, and the character after the name of an option or directory.
	sed -i 's/^--[a-z-]*=\(.\)/\1/; s/[=/]$//; s/.*[,=]//' "$dir/out"
	sort -u -o "$dir/out" "$dir/out"
}

# offers WORD…: exactly these candidates.
offers()
{
	printf '%s\n' "$@" | sort -u | diff - "$dir/out" >"$dir/diff" ||
		complain "$said: not just $* ($(grep -c '^[<>]' "$dir/diff") differ)"
}
offers_nothing() { [ ! -s "$dir/out" ] || complain "$said: offers something"; }
offers_not() { ! grep -qx -e "$1" "$dir/out" || complain "$said: offers $1"; }
offers_also() { grep -qx -e "$1" "$dir/out" || complain "$said: does not offer $1"; }

# ---- without a daemon ------------------------------------------------------------------
export GPUARB_BUS_ADDRESS="unix:path=$dir/no-bus"
# shellcheck disable=SC2207
verbs=($("$GPUARBCTL" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'))
ask 'gpuarbctl '
offers "${verbs[@]}"
ask 'gpuarbctl --no-legend und'
offers undrain
ask 'gpuarbctl --j'
offers --json
for verb in "${verbs[@]}"; do
	ask "gpuarbctl $verb --"
	# shellcheck disable=SC2046
	offers $("$GPUARBCTL" "$verb" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p')
done

# enumeration OPTION WORD…: the words are offered, and gpuarbctl accepts them.
enumeration()
{
	local option=$1 word
	shift
	ask "gpuarbctl plan $option="
	offers "$@"
	ask "gpuarbctl plan $option ${1:0:4}"
	offers "$1"
	for word; do
		ends 0 plan "$option=$word" --help
	done
	ends 2 plan "$option=xyzzy" --help
}
enumeration --class realtime guaranteed besteffort
enumeration --isolation shader-engine cu shared
enumeration --priority high normal low
enumeration --shape rectangle any
ask 'gpuarbctl mask '
offers explain encode decode
ask "gpuarbctl mask explain $profiles --profile=mi300x"
offers mi300x-cpx mi300x-spx
ask 'gpuarbctl config check on'
offers one.conf
ask 'gpuarbctl config check one.conf o'
offers one.conf
ask "gpuarbctl rt plan one.conf $profiles --profile=left=mi300x-spx,right=mi300x-c"
offers mi300x-cpx
ask 'gpuarbctl config '
offers check explain init
ask "gpuarbctl config init --templates=$GPUARB_SOURCE_ROOT/conf/init "
offers ci desktop lab server
ask 'gpuarbctl list --columns=id,cu'
offers cus
ask 'gpuarbctl gpus --columns=SCHED'
offers_nothing
ask 'gpuarbctl gpus --columns=sched'
offers scheduler
ask 'gpuarbctl list --state=pau'
offers paused
ask 'gpuarbctl rt '
offers measure monitor plan
ask 'gpuarbctl rt plan on'
offers one.conf
ask "gpuarbctl rt plan one.conf $profiles --profile=mi300x"
offers mi300x-cpx mi300x-spx
ask 'gpuarbctl rt plan one.conf --config on'
offers one.conf
ask 'gpuarbctl run --exact -- tim'
offers_also timeout
ask 'gpuarbctl run --class realtime tim'
offers_also timeout
ask 'gpuarbctl rt plan one.conf --config=on'
offers one.conf
ask 'gpuarbctl mask explain 0x1 --profiles su'
offers sub
for line in 'plan --cus=' 'xyzzy ' 'plan --exact='; do
	ask "gpuarbctl $line"
	offers_nothing
done
for line in 'run true --' 'run -- --' 'reload --cla' 'reload sta'; do
	ask "gpuarbctl $line"
	offers_not --class
	offers_not status
done
for line in 'show ' 'drain ' 'plan --tenant=' 'mask explain 0x1 --gpu='; do
	ask "gpuarbctl $line"
	offers_nothing
done

# ---- with a daemon -----------------------------------------------------------------------
rig_start_bus
printf '[tenant compositor]\nmatch-user = 0\n[tenant team@night]\nmatch-user = %s\nopen = yes\n' "$(id -u)" \
	>"$dir/tenants.d/50-test.conf"
rig_start_daemon --simulate=radeon-vii,mi300x-cpx
ask 'gpuarbctl show '
offers_nothing
# Any user can choose a name, so shells must not expand it.
hold reserve --cus=15 --tenant=team@night \
	--name="\$(touch $dir/carried-out);\`touch $dir/carried-out\`"
id=${held%%:*}
id=${id#lease }
check 'there is a lease' test "$id" -gt 0

for verb in show activate deactivate revoke verify; do
	ask "gpuarbctl $verb "
	offers "$id"
done
ask "gpuarbctl resize --cus 3 ${id%?}"
offers "$id"
follow reserve --cus=1 --tenant=team@night --name=paper-2
paper=$!
ask 'gpuarbctl show p'
offers paper-2
let_go TERM "$paper"
# shellcheck disable=SC2207
gpus=($("$GPUARBCTL" gpus --json | jq -r '.[].name'))
check 'there are nine' test "${#gpus[@]}" = 9
ask 'gpuarbctl drain '
offers "${gpus[@]}"
ask 'gpuarbctl plan --gpu='
offers any all "${gpus[@]}"
ask "gpuarbctl plan --cus=3 --gpu=${gpus[0]%%:*}:"
offers "${gpus[@]}"
ask "gpuarbctl plan --gpu ${gpus[8]}"
offers "${gpus[8]}"
ask "gpuarbctl map ${gpus[0]%.*}"
offers_also "${gpus[0]}"
ask 'gpuarbctl plan --tenant='
offers_also compositor
offers_also team@night
ask 'gpuarbctl plan --tenant=team@'
offers team@night
let_go INT "$holder"
ask 'gpuarbctl release '
offers_nothing
check 'no name was carried out' test ! -e "$dir/carried-out"
rig_done
