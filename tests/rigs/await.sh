# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# How tests in bash wait: for an event, with the one limit of await.h. A wait that passes the limit
# prints what it waited for, and ends the test.

# In seconds: for read -t and timeout as well.
patience=$(awk -v factor="${GPUARB_PATIENCE:-1}" '/^#define AWAIT_LIMIT_SEC / { print int($3 * factor + 1) }' \
	"${BASH_SOURCE[0]%/*}/await.h")

# await_begin VARIABLE: has the end of a wait that begins now, in whole seconds and not before the limit;
# await_left END: whether it is not passed. The clock of the kernel: the time of day can jump.
await_begin()
{
	local now
	read -r now _ </proc/uptime
	printf -v "$1" '%d' $((${now%.*} + patience + 1))
}
await_left()
{
	local now
	read -r now _ </proc/uptime
	[ "${now%.*}" -lt "$1" ]
}

# await_fail TEXT: ends the test, and names the line of the test that waits; on $await_shown where what the caller
# prints is not shown.
await_fail()
{
	local of=$((${#BASH_SOURCE[@]} - 1))
	echo "${BASH_SOURCE[of]##*/}:${BASH_LINENO[of - 1]}: $1" >&"${await_shown:-1}"
	exit 1
}

# await_line DESCRIPTOR PATTERN: until a line matches the pattern of bash; it is in $line. False at the end.
await_line()
{
	local end code

	await_begin end
	while read -r -t "$patience" line <&"$1" || { code=$?; false; }; do
		# shellcheck disable=SC2053 # a pattern
		[[ $line != $2 ]] || return 0
		await_left "$end" || await_fail "no line '$2' in $patience s"
	done
	[ "$code" -le 128 ] || await_fail "no line '$2' in $patience s" # read: above 128 when its time is over
	return 1
}

# await_text DESCRIPTOR TEXT: until the text has come, which need not end a line; all is in $text.
await_text()
{
	local end code c

	await_begin end
	while [[ $text != *"$2"* ]]; do
		await_left "$end" || await_fail "no '$2' in $patience s, but '$text'"
		IFS= read -r -t "$patience" -n 1 -d '' c <&"$1" || {
			code=$?
			[ "$code" -le 128 ] || await_fail "no '$2' in $patience s, but '$text'"
			return 1
		}
		text+=$c
	done
}

# await_so SENTENCE COMMAND…: until the command succeeds, for a condition that no event announces.
await_so()
{
	local end sentence=$1
	shift
	await_begin end
	until "$@"; do
		await_left "$end" || await_fail "not in $patience s: $sentence"
		sleep 0.05 # starting sleep and the command again takes a fifth of that
	done
}

# Meson ends a test that hangs, and a shell that waits for a process says where.
# shellcheck disable=SC2154 # of the rigs
trap 'await_fail "ended while it waited: ${said:-}"' TERM
