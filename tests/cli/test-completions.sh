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

# completes LINE [WORD…]: with exactly these candidates, or none.
completes()
{
	local word
	local -A wanted=()
	ask "$1"
	shift
	for word; do wanted[$word]=yes; offers_also "$word"; done
	[ "${#wanted[@]}" = "${#offered[@]}" ] || complain "$said: not just $*"
}
offers_not() { [ -z "${offered[$1]:-}" ] || complain "$said: offers $1"; }
offers_also() { [ -n "${offered[$1]:-}" ] || complain "$said: does not offer $1"; }

# ---- without a daemon ------------------------------------------------------------------
export GPUARB_BUS_ADDRESS="unix:path=$dir/no-bus"
complete_in_shell
# shellcheck disable=SC2207
verbs=($("$GPUARBCTL" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'))
completes 'gpuarbctl ' "${verbs[@]}"
completes 'gpuarbctl --no-legend und' undrain
completes 'gpuarbctl --j' --json
for verb in "${verbs[@]}"; do
	# shellcheck disable=SC2046
	completes "gpuarbctl $verb --" $("$GPUARBCTL" "$verb" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p')
done

# enumeration OPTION WORD…: the words are offered, and gpuarbctl accepts them, which is the same in each shell.
enumeration()
{
	local option=$1 word
	shift
	completes "gpuarbctl plan $option=" "$@"
	completes "gpuarbctl plan $option ${1:0:4}" "$1"
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
completes 'gpuarbctl mask ' explain encode decode
completes "gpuarbctl mask explain $profiles --profile=mi300x" mi300x-cpx mi300x-spx
completes 'gpuarbctl config check on' one.conf
completes 'gpuarbctl config check one.conf o' one.conf
completes "gpuarbctl rt plan one.conf $profiles --profile=left=mi300x-spx,right=mi300x-c" mi300x-cpx
completes 'gpuarbctl config ' check explain init
completes "gpuarbctl config init --templates=$GPUARB_SOURCE_ROOT/conf/init " ci desktop lab server
completes 'gpuarbctl list --columns=id,cu' cus
completes 'gpuarbctl gpus --columns=SCHED'
completes 'gpuarbctl gpus --columns=sched' scheduler
completes 'gpuarbctl list --state=pau' paused
completes 'gpuarbctl rt ' measure monitor plan
completes 'gpuarbctl rt plan on' one.conf
completes "gpuarbctl rt plan one.conf $profiles --profile=mi300x" mi300x-cpx mi300x-spx
completes 'gpuarbctl rt plan one.conf --config on' one.conf
ask 'gpuarbctl run --exact -- tim'
offers_also timeout
ask 'gpuarbctl run --class realtime tim'
offers_also timeout
completes 'gpuarbctl rt plan one.conf --config=on' one.conf
completes 'gpuarbctl mask explain 0x1 --profiles su' sub
for line in 'plan --cus=' 'xyzzy ' 'plan --exact='; do
	completes "gpuarbctl $line"
done
for line in 'run true --' 'run -- --' 'reload --cla' 'reload sta'; do
	ask "gpuarbctl $line"
	offers_not --class
	offers_not status
done
for line in 'show ' 'drain ' 'plan --tenant=' 'mask explain 0x1 --gpu='; do
	completes "gpuarbctl $line"
done

# ---- with a daemon -----------------------------------------------------------------------
rig_start_bus
printf '[tenant compositor]\nmatch-user = 0\n[tenant team@night]\nmatch-user = %s\nopen = yes\n' "$(id -u)" \
	>"$dir/tenants.d/50-test.conf"
rig_start_daemon --simulate=radeon-vii,mi300x-cpx
exec {lines}>&-
complete_in_shell
completes 'gpuarbctl show '
# Any user can choose a name, so shells must not expand it.
hold reserve --cus=15 --tenant=team@night \
	--name="\$(touch $dir/carried-out);\`touch $dir/carried-out\`"
id=${held%%:*}
id=${id#lease }
check 'there is a lease' test "$id" -gt 0

for verb in show activate deactivate revoke verify; do
	completes "gpuarbctl $verb " "$id"
done
completes "gpuarbctl resize --cus 3 ${id%?}" "$id"
follow reserve --cus=1 --tenant=team@night --name=paper-2
paper=$!
completes 'gpuarbctl show p' paper-2
let_go TERM "$paper"
# shellcheck disable=SC2207
gpus=($("$GPUARBCTL" gpus --json | jq -r '.[].name'))
check 'there are nine' test "${#gpus[@]}" = 9
completes 'gpuarbctl drain ' "${gpus[@]}"
completes 'gpuarbctl plan --gpu=' any all "${gpus[@]}"
completes "gpuarbctl plan --cus=3 --gpu=${gpus[0]%%:*}:" "${gpus[@]}"
completes "gpuarbctl plan --gpu ${gpus[8]}" "${gpus[8]}"
ask "gpuarbctl map ${gpus[0]%.*}"
offers_also "${gpus[0]}"
ask 'gpuarbctl plan --tenant='
offers_also compositor
offers_also team@night
completes 'gpuarbctl plan --tenant=team@' team@night
let_go INT "$holder"
completes 'gpuarbctl release '
check 'no name was carried out' test ! -e "$dir/carried-out"
rig_done
