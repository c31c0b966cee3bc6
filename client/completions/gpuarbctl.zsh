#compdef gpuarbctl
# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of gpuarbctl(1) in zsh. gpuarbctl itself knows what can follow:
# client/verbs/complete.c describes the lines that it prints.

_gpuarbctl()
{
	local line ret=1
	local -a candidates open

	for line in "${(@f)$(gpuarbctl --complete zsh $((CURRENT - 1)) "${(@Q)words}" 2>/dev/null </dev/null)}"; do
		case $line in
		'') ;;
		':command '*)
			shift ${line#* } words
			(( CURRENT -= ${line#* } ))
			_normal
			return ;;
		':files '*) compset -P '--*='; _files; return ;;
		':directories '*) compset -P '--*='; _files -/; return ;;
		--[a-z-]#=:*) open+=("$line") ;;
		*) candidates+=("$line") ;;
		esac
	done
	(( $#open )) && _describe -t options option open -S '' && ret=0
	(( $#candidates )) && _describe -t arguments argument candidates && ret=0
	return ret
}

_gpuarbctl "$@"
