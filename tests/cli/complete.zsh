# SPDX-License-Identifier: LGPL-2.1-or-later
# complete.zsh SCRIPT: completes each line of standard input in zsh, and prints one candidate a line, and done.
# Completion needs a terminal: an inner zsh has one and reports by a pipe.
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
tell() { _main_complete; compstate[list]=; print -u5 -- done. }
zle -C tell list-choices tell
bindkey '^_' tell
KEYTIMEOUT=1
INNER

script=$1 zpty inner zsh -f -i
zpty -w inner "script=${(q)1}; source $setup; exec 5>$answer; print -u5 ready."
exec 5<$answer
read -t 30 -r line <&5
while IFS= read -r typed; do
	while zpty -r -t inner line; do :; done # it would wait where nobody reads what it draws
	zpty -w -n inner $'\x15'"$typed"$'\x1f' # in place of the line before
	while IFS= read -t 30 -r line <&5 && print -r -- $line && [[ $line != done. ]]; do :; done
done
zpty -d inner
rm -f $setup $answer
