# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# complete.bash SCRIPT LINE: what bash offers at the end of LINE, a word a line, with what it
# leaves alone put back in front. The line is cut as readline cuts it.
# shellcheck source=/dev/null
. "$1"

words=() last=''
[[ $2 != *' ' ]] || last=open
line=$2
while [[ $line =~ ^\ *([=:@]+|[^ =:@]+)(.*)$ ]]; do
	words+=("${BASH_REMATCH[1]}")
	line=${BASH_REMATCH[2]}
done
[[ -z $last ]] || words+=('')

# shellcheck disable=SC2034 # those of the function
COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1)) COMP_LINE=$2 COMP_POINT=${#2}
_gpuarbctl gpuarbctl "${words[-1]}" "${words[-2]}" || exit

kept=${2##* }
[[ ${words[-1]} == *[=:@]* ]] || kept=${kept%"${words[-1]}"}
((${#COMPREPLY[@]} == 0)) || printf -- "${kept//%/%%}%s\n" "${COMPREPLY[@]}"
