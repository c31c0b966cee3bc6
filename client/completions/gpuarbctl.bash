# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Completion of gpuarbctl(1) in bash. gpuarbctl itself knows what can follow:
# client/verbs/complete.c describes the lines that it prints.

# _gpuarbctl_command INDEX: the line of another program starts at this word.
_gpuarbctl_command()
{
	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif [[ $1 == "$COMP_CWORD" ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
	else
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
	fi
}

# Candidates are names that any user can choose, so nothing here expands them.
_gpuarbctl()
{
	local line
	COMPREPLY=()
	while IFS= read -r line; do
		case $line in
		:command\ *) _gpuarbctl_command "${line#* }" ;;
		:files\ *)
			compopt -o filenames 2>/dev/null
			mapfile -t COMPREPLY < <(compgen -f -- "${line#* }") ;;
		:directories\ *)
			compopt -o filenames 2>/dev/null
			mapfile -t COMPREPLY < <(compgen -d -- "${line#* }") ;;
		*)
			[[ $line == *= ]] && compopt -o nospace 2>/dev/null
			printf -v line %q "$line"
			COMPREPLY+=("$line") ;;
		esac
	done < <(gpuarbctl --complete bash "$COMP_CWORD" "${COMP_WORDS[@]}" 2>/dev/null </dev/null)
	return 0
}

complete -F _gpuarbctl gpuarbctl
