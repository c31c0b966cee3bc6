# SPDX-License-Identifier: LGPL-2.1-or-later
# complete.zsh SCRIPT LINE: completes LINE in zsh and prints one candidate a line. Completion needs a
# terminal: an inner zsh has one and reports by a pipe.
zmodload zsh/zpty || exit
setup=$(mktemp) answer=$(mktemp -u) || exit
mkfifo $answer || exit

cat >$setup <<'INNER'
autoload -U compinit && compinit -C -d $HOME/completions
zstyle ':completion:*' verbose yes
function _gpuarbctl { source $script }
compdef _gpuarbctl gpuarbctl

# Reports the candidates that are added, not those that are only compared.
compadd()
{
	local -a hits
	if [[ ${(j: :)@[1,(i)(-|--)]} != *-[OAD]' '* ]]; then
		builtin compadd -O hits "$@"
		(( ! $#hits )) || print -rl -- $hits >&5
	fi
	builtin compadd "$@"
}
tell() { _main_complete; print -u5 -- done. }
zle -C tell list-choices tell
bindkey '^_' tell
KEYTIMEOUT=1
INNER

script=$1 zpty inner zsh -f -i
zpty -w inner "script=${(q)1}; source $setup; exec 5>$answer; print -u5 ready."
exec 5<$answer
while IFS= read -t 30 -r line <&5; do
	case $line in
	ready.) zpty -w -n inner "$2"$'\x1f' ;;
	done.) break ;;
	*) print -r -- $line ;;
	esac
done
zpty -d inner
rm -f $setup $answer
[[ $line == done. ]]
