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

# complete_in_shell: starts the shell, which completes one line after the other in the environment of now.
complete_in_shell()
{
	local rig=$GPUARB_SOURCE_ROOT/tests/cli/complete
	# shellcheck disable=SC2016 # of fish
	case $shell in
	fish) set -- fish --no-config -c 'source $argv[1]
		while read line
			complete -C $line | string split -f1 \t
			echo done.
		end' ;;
	zsh) set -- zsh -f "$rig.zsh" ;;
	bash) set -- bash --norc "$rig.bash" ;;
	esac
	exec {lines}> >(cd "$dir/files" && exec "$@" "$script" >"$dir/candidates" 2>>"$dir/err")
	exec {candidates}<"$dir/candidates"
}
mkfifo "$dir/candidates"

# ask LINE: completes at the end of the line; the candidates are the keys of offered, and in $dir/out.
declare -A offered
ask()
{
	local word
	said="'$1'"
	offered=()
	: >"$dir/err"
	echo "$1" >&"$lines"
	while IFS= read -r -t "$patience" word <&"$candidates" && [ "$word" != done. ]; do
		# Without the option before a value, and the character after the name of an option or directory.
		[[ ! $word =~ ^--[a-z-]*=. ]] || word=${word#*=}
		word=${word%[=/]}
		offered[${word##*[,=]}]=yes
	done
	printf '%s\n' "${!offered[@]}" >"$dir/out"
	[ "$word" = done. ] || { complain "$said: $shell failed"; rig_done; }
	[ ! -s "$dir/err" ] || complain "$said: $shell complains"
}

# offers WORD…: exactly these candidates.
offers()
{
	local word
	local -A wanted=()
	for word; do wanted[$word]=yes; offers_also "$word"; done
	[ "${#wanted[@]}" = "${#offered[@]}" ] || complain "$said: not just $*"
}
offers_nothing() { [ "${#offered[@]}" = 0 ] || complain "$said: offers something"; }
offers_not() { [ -z "${offered[$1]:-}" ] || complain "$said: offers $1"; }
offers_also() { [ -n "${offered[$1]:-}" ] || complain "$said: does not offer $1"; }

# ---- without a daemon ------------------------------------------------------------------
export GPUARB_BUS_ADDRESS="unix:path=$dir/no-bus"
complete_in_shell
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

# enumeration OPTION WORD…: the words are offered, and gpuarbctl accepts them, which is the same in each shell.
enumeration()
{
	local option=$1 word
	shift
	ask "gpuarbctl plan $option="
	offers "$@"
	ask "gpuarbctl plan $option ${1:0:4}"
	offers "$1"
	[ "$shell" = bash ] || return
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
exec {lines}>&-
complete_in_shell
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
