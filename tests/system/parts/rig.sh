# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034,SC2154,SC2016
#
# What the parts share: checks, users, clients that hold leases.
checks=0 failed=0
export DEBIAN_FRONTEND=noninteractive
settings=/etc/gpuarb/gpuarbd.conf
policy=/etc/gpuarb/tenants.d/50-site.conf
declare -A client # name: pid
turns=3000 # of who waits; so many that only what has failed gets there
progress=${progress:-/dev/null} # has the check that runs

of_unit() { systemctl show -P "$1" gpuarbd; }
journal() { journalctl -b -q -u gpuarbd -o cat --no-pager "$@"; }

# check SENTENCE COMMAND…: what it printed is shown where it fails.
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

# Until it is so; each turn asks somebody, and so waits.
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

# as USER COMMAND…, with that user's groups.
as()
{
	local user=$1
	shift
	setpriv --reuid="$user" --regid="$user" --init-groups "$@"
}

# fails STATUS TEXT COMMAND…: it ends so (* with any), and says that.
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

# hold USER NAME ARGUMENT…: a client of its own, which has said what it got: reserve on
# standard output, run and what waits on standard error. Both stay open, for what comes later.
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
	read -r line <&"$fd"
	[[ $line == *lease* ]] && return
	echo "$name: $line"
	return 1
}

# How a client ended.
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

# The number of the lease that has this name.
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

# entries EVENT FIELD=VALUE…: those of this boot. The ids are those of gpuarbd(8).
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
