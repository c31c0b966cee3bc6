# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034,SC2154,SC2016
#
# Functions of the parts: checks, users, clients that hold leases.
checks=0 failed=0
export DEBIAN_FRONTEND=noninteractive
settings=/etc/gpuarb/gpuarbd.conf
policy=/etc/gpuarb/tenants.d/50-site.conf
declare -A client # name: pid
declare -A output_of # name: descriptor of what a client of hold() prints
lines=60 # seconds that a line of a program may take
turns=3000 # of soon(): a condition that can become true does so long before
progress=${progress:-/dev/null} # this file names the check that runs

of_unit() { systemctl show -P "$1" gpuarbd; }
journal() { journalctl -b -q -u gpuarbd -o cat --no-pager "$@"; }

# check SENTENCE COMMAND…: runs the command. If it fails, prints SENTENCE and the output.
check()
{
	local what=$1
	shift
	checks=$((checks + 1))
	echo "$SECONDS s: $what" >>"$progress"
	"$@" >"$dir/out" 2>&1 && return
	failed=$((failed + 1))
	echo "FAIL: $what"
	sed 's/^/  /' "$dir/out"
	journal -n 12 | sed 's/^/  journal: /'
}

told()
{
	echo "$checks checks, $failed failed"
	[ "$failed" = 0 ]
}

# soon COMMAND…: repeats the command until it succeeds. It needs no sleep: each command starts
# processes and asks a service.
soon()
{
	local n
	for ((n = 0; n < turns; n++)); do
		"$@" >/dev/null 2>&1 && return
	done
	echo "not soon: $*"
	"$@"
	return 1
}

# as USER COMMAND…: runs the command under USER, with the groups of USER.
as()
{
	local user=$1
	shift
	setpriv --reuid="$user" --regid="$user" --init-groups "$@"
}

# fails STATUS TEXT COMMAND…: expects that exit status (*: any) and TEXT in the output.
fails()
{
	local status=$1 text=$2 is=0
	shift 2
	"$@" >"$dir/says" 2>&1 || is=$?
	# shellcheck disable=SC2053 # a pattern
	[[ $is == $status ]] && grep -q -e "$text" "$dir/says" && return
	echo "$*: ended with $is, not $status and «$text», and said:"
	cat "$dir/says"
	return 1
}

same()
{
	[ "$1" = "$2" ] && return
	diff <(echo "$1") <(echo "$2")
	return 1
}

# hold USER NAME ARGUMENT…: starts gpuarbctl ARGUMENT… in the background and waits for its first
# line, which names the lease. Its output stays open, for later lines.
hold()
{
	local user=$1 name=$2 line fd
	shift 2
	rm -f "$dir/$name"
	mkfifo "$dir/$name"
	setpriv --reuid="$user" --regid="$user" --init-groups gpuarbctl "$@" \
		>"$dir/$name" 2>&1 </dev/null &
	client[$name]=$!
	exec {fd}<"$dir/$name"
	output_of[$name]=$fd
	read -r line <&"$fd"
	[[ $line == *lease* ]] && return
	echo "$name: $line"
	return 1
}

# ended NAME STATUS: waits for the client, and expects that exit status.
ended()
{
	local status=0
	wait "${client[$1]}" || status=$?
	unset "client[$1]"
	[ "$status" = "$2" ] || { echo "$1 ended with $status, not $2"; return 1; }
}

let_go()
{
	kill "${client[$1]}"
	wait "${client[$1]}"
	unset "client[$1]"
}

# use NAME LINE COMMAND…: starts a program that makes queues, as launch() does, and expects LINE from it.
use()
{
	local name=$1 says=$2 line
	shift 2
	rm -f "$dir/$name" "$dir/$name.in"
	mkfifo "$dir/$name" "$dir/$name.in"
	launch "$name" "$@" <"$dir/$name.in" >"$dir/$name" 2>&1 &
	client[$name]=$!
	exec {input}>"$dir/$name.in" {output}<"$dir/$name"
	while read -r -t "$lines" line <&"$output" && [[ $line == 'gpuarbctl run: '* ]]; do
		echo "$line"
	done
	same "$line" "$says"
}

# tell REQUEST LINE: sends REQUEST to the program started last, and expects LINE from it.
tell()
{
	local line
	echo "$1" >&"$input"
	read -r -t "$lines" line <&"$output" && same "$line" "$2"
}

# leave_it NAME: ends the program by closing its input.
leave_it()
{
	exec {input}>&- {output}<&-
	wait "${client[$1]}"
	unset "client[$1]"
}

# words_of LEASE: its mask as tests/system/queues.c reads it, one word for each shader engine.
words_of()
{
	local mask
	mask=$(gpuarbctl show "$1" --json | jq -r '.partitions[0].cu_mask' | cut -c 3-)
	while [ $((${#mask} % 8)) != 0 ]; do mask=0$mask; done
	echo "$mask" | fold -w 8 | tac | paste -s -d ' '
}

# of_lease NAME EXPRESSION: applies it to the lease of this name.
of_lease() { gpuarbctl list --json | jq -c ".[] | select(.name == \"$1\") | $2"; }
lease_has() { [ "$(of_lease "$1" "$2")" = "$3" ]; }

has_budgets() { [ "$(gpuarbctl status --json | jq -r .queue_budgets)" = "$1" ]; }
is_pinned() { [ -e /sys/fs/bpf/gpuarb-budget ]; }
is_not_pinned() { gpuarbctl status && ! is_pinned; } # a turn of soon() has to take time
too_many='Cannot allocate memory'

no_warnings() { ! dmesg | grep -e 'fake GPU: amdgpu' -e 'BUG: ' -e 'WARNING: ' -e 'Call Trace'; }

# lease NAME: the id of the lease.
lease() { gpuarbctl list --json | jq -r ".[] | select(.name == \"$1\") | .id"; }
leases() { gpuarbctl list --json | jq length; }
no_leases() { [ "$(leases)" = 0 ]; }
stores() { [ "$(of_unit NFileDescriptorStore)" = "$1" ]; }
object() { echo "/org/gpuarb/Arbiter1/lease/$1"; }

# ask USER LEASE METHOD…, without gpuarbctl. busctl prints the name of an error for debugging only.
ask()
{
	local user=$1 id=$2
	shift 2
	as "$user" env SYSTEMD_LOG_LEVEL=debug busctl call org.gpuarb.Arbiter1 "$(object "$id")" \
		org.gpuarb.Arbiter1.Lease "$@"
}

another_runs() { [ "$(of_unit ActiveState)" = active ] && [ "$(of_unit MainPID)" != "$1" ]; }

# entries EVENT FIELD=VALUE…: the journal entries of this event since boot. gpuarbd(8) lists the ids.
entries()
{
	local id
	id=$(sed -n "s/^$1 //p" <<-END
		granted 0f081a939f064962a08405ece957e56d
		refused ad921a33757a42eb932471cd1aba2c42
		ended 029fff1b9ae141989d24011da9e29d14
		revoked f810bf3518ee457caf3fd6bb20ae8780
		adopted 7edeed42ca4d41b283d96ebc3c95240c
	END
	)
	shift
	journalctl --sync
	journalctl -b -q -u gpuarbd --no-pager "MESSAGE_ID=$id" "$@"
}
