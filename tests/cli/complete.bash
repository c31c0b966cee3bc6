# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# complete.bash SCRIPT LINE: completes LINE as bash does and prints one candidate a line, as whole
# words. The line is split as readline splits it.
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

# shellcheck disable=SC2034 # read by the function
COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1)) COMP_LINE=$2 COMP_POINT=${#2}
_gpuarbctl gpuarbctl "${words[-1]}" "${words[-2]}" || exit

kept=${2##* }
[[ ${words[-1]} == *[=:@]* ]] || kept=${kept%"${words[-1]}"}
((${#COMPREPLY[@]} == 0)) || printf -- "${kept//%/%%}%s\n" "${COMPREPLY[@]}"
