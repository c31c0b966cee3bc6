#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A wait of await.sh ends with its event; one that passes the limit ends the test, and prints what it waited for.
# A test of ctl-rig.sh fails if one of the outputs that it keeps is not so, and prints which.
set -u
: "${GPUARB_SOURCE_ROOT:=$(dirname "$0")/../../..}"
export GPUARB_SOURCE_ROOT
failed=0

# runs CODE TEXT SCRIPT: the script with a limit of one or two seconds ends so, and prints that.
runs()
{
	local out code
	out=$(GPUARB_PATIENCE=0.001 bash -uc '. "$GPUARB_SOURCE_ROOT/tests/'"${rig:-rigs/await.sh}"'"
		'"$3" test 2>/dev/null)
	code=$?
	if [ "$code" != "$1" ] || [[ $out != *"$2"* ]]; then
		printf '%s\nended with %s, not %s; or does not print "%s", but:\n%s\n' "$3" "$code" "$1" "$2" "$out"
		failed=1
	fi
}

# shellcheck disable=SC2016 # in the scripts
{
runs 0 'b c' 'exec 5< <(echo a; echo b c; exec sleep 9); await_line 5 "b*"; echo "$line"'
runs 0 'the end' 'exec 5< <(echo a); await_line 5 b || echo "the end"'
runs 1 "no line 'b' in 1 s" 'exec 5< <(echo a; exec sleep 9); await_line 5 b'
runs 1 "no line 'b' in 1 s" 'exec 5< <(while echo a; do sleep 0.1; done); await_line 5 b'
runs 0 'what: a' 'exec 5< <(printf "what: a"; exec sleep 9); text=; await_text 5 ": a"; echo "$text"'
runs 1 "no ': b' in 1 s, but 'what: a'" 'exec 5< <(printf "what: a"; exec sleep 9); text=; await_text 5 ": b"'
runs 0 'three' 'n=0; third() { n=$((n + 1)); [ $n = 3 ]; }; await_so "the third" third; echo three'
runs 1 'not in 1 s: pigs fly' 'await_so "pigs fly" false; echo "it went on"'
runs 1 'ended while it waited: a gpuarbd' 'said="a gpuarbd"; kill -TERM $$; sleep 0.1; echo "it went on"'

# keeps CODE TEXT OUTPUT JQ: of two checks the second.
keeps()
{
	rig=cli/ctl-rig.sh runs "$1" "$2" "said=it; echo 1 >\"\$dir/out\"; json_out '. == 1'
		echo '$3' >\"\$dir/out\"; json_out '$4'; : >\"\$dir/out\"; rig_done"
}
if command -v jq >/dev/null; then
	keeps 0 '' '{"a": [1, 2]}' '.a | length == 2'
	keeps 0 '' '1 2' '. > 0'
	keeps 1 'it: not so: .a == 2' '{"a": 1}' '.a == 2'
	keeps 1 'it: not so: .a' '' .a
	keeps 1 'it: not so: .a' '{' .a
	keeps 1 'it: not so: .a' '{"a": null}' .a
	keeps 1 'it: not so: .[0]' '{"a": 1}' '.[0]'
	keeps 1 'it: not so: .a)' '{"a": 1}' '.a)'
	keeps 1 'it: not so: empty' 1 empty
	rig=cli/ctl-rig.sh runs 1 'it: not so: false' 'said=it; echo 1 >"$dir/out"; json_out false; exit 1'
fi
}
exit $failed
