# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154,SC2034
#
# Processes on the shader engines of a realtime lease: how soon its holder is told, and how soon they end. The
# script that reads this has starts_helper(), and launch() starts programs of $user below $below.
shopt -s extglob
one_lease() { [ "$(leases)" = 1 ]; }
everything='ffffffff ffffffff ffffffff ffffffff'
now() { echo $((${EPOCHREALTIME//[!0-9]/} / 1000)); }

# The holder prints each record.
has_a_victim()
{
	printf '[daemon]\nunmanaged = refuse\n' >"$settings" && starts_helper &&
		printf '[tenant robot]\nmatch-user = alice\nclass = realtime\n[tenant *]\n' >"$policy" &&
		gpuarbctl reload &&
		hold alice victim reserve --name=victim --class=realtime --shader-engines=1
}

# is_told PATTERN: waits for a record of the victim.
is_told()
{
	local line
	while read -r -t "$lines" line <&"${output_of[victim]}"; do
		# shellcheck disable=SC2053 # a pattern
		[[ $line == $1 ]] && return
	done
	return 1
}

# measure BEGIN: the intruder has begun. It is told to the holder, and the intruder ends, though its input is open.
measure()
{
	local line
	is_told 'lease *disturbed*' || return
	holder+=($(($(now) - $1)))
	while read -r -t "$lines" line <&"$output"; do :; done
	end+=($(($(now) - $1)))
	exec {input}>&- {output}<&-
	! wait "${client[intruder]}" && is_told 'lease *: granted, generation +([0-9])'
}

# repeat FUNCTION: prints median and longest time of both.
repeat()
{
	local n count holder=() end=()
	count=$(cat /test/intruders)
	for ((n = 0; n < count; n++)); do
		"$1" "$n" || return
	done
	mapfile -t holder < <(printf '%s\n' "${holder[@]}" | sort -n)
	mapfile -t end < <(printf '%s\n' "${end[@]}" | sort -n)
	echo "$1, $count times: the holder is told after ${holder[count / 2]} ms, ${holder[-1]} at most," \
		"and the intruder has ended after ${end[count / 2]} ms, ${end[-1]} at most" >>"$dir/times"
}

# As itself, with the name of the victim's program, or in another pid namespace.
comes_without_a_lease()
{
	local program=(/test/queues "$dir/gpuarbctl" /test/queues) places=('' '' 'unshare --pid --fork')
	below=${places[$1 % 3]} use intruder 'made 1' "${program[$1 % 3]}" 1 && measure "$(now)"
}

drops_its_mask()
{
	use intruder 'made 0' gpuarbctl run --no-cap --fixed --cus=13 --name=intruder -- /test/queues 0 &&
		make_masked 1 "$(lease intruder)" &&
		soon lease_has intruder '.partitions[0].tier' '"verified"' &&
		tell "mask $everything" masked && measure "$(now)" && soon one_lease
}

user=bob
cp /test/queues "$dir/gpuarbctl"
check 'a realtime lease waits for intruders' has_a_victim
check 'a process without a lease is told to the holder, and ended' repeat comes_without_a_lease
check 'a process that drops its mask is told to the holder, and ended' repeat drops_its_mask
cat "$dir/times"
