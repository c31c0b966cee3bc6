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

# bash cuts words at =, : and @ as well (COMP_WORDBREAKS), and replaces the last piece alone. Sets words, up to
# the cursor, at: the index of the first piece of each, and kept: what is before the last piece of its word.
_gpuarbctl_words()
{
	local i piece last
	words=() at=() kept=
	for ((i = 0; i <= COMP_CWORD; i++)); do
		piece=${COMP_WORDS[i]} last=${#words[@]}
		if ((last > 1)) && [[ ${words[last - 1]} && ($piece == [=:@]* || ${words[last - 1]} == *[=:@]) ]]; then
			kept=${words[last - 1]}
			words[last - 1]+=$piece
			[[ $piece != [=:@]* ]] || kept=${words[last - 1]}
		else
			words+=("$piece") at+=("$i") kept=
		fi
	done
}

# Candidates are names that any user can choose, so nothing here expands them.
_gpuarbctl()
{
	local line kept
	local -a words at
	_gpuarbctl_words
	COMPREPLY=()
	while IFS= read -r line; do
		case $line in
		:command\ *) _gpuarbctl_command "${at[${line#* }]}" ;;
		:files\ *)
			compopt -o filenames 2>/dev/null
			mapfile -t COMPREPLY < <(compgen -f -- "${line#* }") ;;
		:directories\ *)
			compopt -o filenames 2>/dev/null
			mapfile -t COMPREPLY < <(compgen -d -- "${line#* }") ;;
		*)
			[[ $line == *= ]] && compopt -o nospace 2>/dev/null
			line=${line#"$kept"}
			printf -v line %q "$line"
			COMPREPLY+=("$line") ;;
		esac
	done < <(gpuarbctl --complete bash "$((${#words[@]} - 1))" "${words[@]}" 2>/dev/null </dev/null)
	return 0
}

complete -F _gpuarbctl gpuarbctl
