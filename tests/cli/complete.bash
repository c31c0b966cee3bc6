# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# complete.bash SCRIPT: completes each line of standard input as bash does, and prints one candidate a line, as whole
# words, and done. The line is split as readline splits it.
# shellcheck source=/dev/null
. "$1"

candidates() # LINE
{
	local line=$1 kept=${1##* } words=()
	while [[ $line =~ ^\ *([=:@]+|[^ =:@]+)(.*)$ ]]; do
		words+=("${BASH_REMATCH[1]}")
		line=${BASH_REMATCH[2]}
	done
	[[ $1 != *' ' ]] || words+=('')

	# shellcheck disable=SC2034 # read by the function
	COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1)) COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
	_gpuarbctl gpuarbctl "${words[-1]}" "${words[-2]}" || exit

	[[ ${words[-1]} == *[=:@]* ]] || kept=${kept%"${words[-1]}"}
	((${#COMPREPLY[@]} == 0)) || printf -- "${kept//%/%%}%s\n" "${COMPREPLY[@]}"
}

while IFS= read -r typed; do
	candidates "$typed"
	echo done.
done
