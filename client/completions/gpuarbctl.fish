# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of gpuarbctl(1) in fish. gpuarbctl itself knows what can follow:
# client/verbs/complete.c describes the lines that it prints.

function __gpuarbctl_complete
	set -l words (commandline -opc)
	set -l typed (commandline -ct)
	for line in (gpuarbctl --complete fish (count $words) $words "$typed" 2>/dev/null </dev/null)
		set -l argument (string replace -r '^:\S+ ' '' -- $line)
		switch $line
			case ':command *'
				set -l rest $words $typed
				test $argument -lt (count $words)
				and set rest (string escape -- $words[(math $argument + 1)..-1]) $typed
				or set rest $typed
				complete --do-complete=(string join ' ' -- $rest)
			case ':files *'
				set -l option (string match -r '^--[^=]*=' -- $typed)
				printf '%s\n' "$option"(__fish_complete_path $argument)
			case ':directories *'
				set -l option (string match -r '^--[^=]*=' -- $typed)
				printf '%s\n' "$option"(__fish_complete_directories $argument)
			case '*'
				echo $line
		end
	end
end

complete -c gpuarbctl -f -a '(__gpuarbctl_complete)'
