#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# check-run.sh SOURCE: tests/run and tests/setup print their help, refuse what they do not know before they install or
# build anything; and tests/run does not run beside another one, and leaves no meson behind where it is killed.
# tests/unit/run counts what passes, fails, is skipped and takes too long.
set -u
# shellcheck source=tests/rigs/await.sh
. "$1/tests/rigs/await.sh"

dir=$(mktemp -d) || exit 1
stays=
trap 'kill $stays 2>/dev/null; rm -rf "$dir"' EXIT
mkdir "$dir/tests" "$dir/build"
cp "$1/tests/run" "$dir/tests"
# Whatever goes on from here fails.
printf '#!/bin/sh\necho "it went on"\nexit 3\n' >"$dir/tests/setup"
chmod +x "$dir/tests/setup"
failed=0

# prints CODE TEXT ARGUMENT…: tests/run, or $script, with the arguments ends so, and prints that.
prints()
{
	local code
	"${script:=$dir/tests/run}" "${@:3}" >"$dir/out" 2>&1
	code=$?
	if [ "$code" != "$1" ] || ! grep -qF -- "$2" "$dir/out"; then
		echo "$script ${*:3}: ended with $code, not $1; or it does not print '$2':"
		sed 's/^/  /' "$dir/out"
		failed=1
	fi
}

prints 0 '--repeat=N' --help
prints 0 '--repeat=N' arbiter -h
prints 2 "unknown option '--repaet=3'" --repaet=3
prints 2 "unknown option '-x'" --long -x arbiter
prints 2 "'--repeat' has no number" --repeat
prints 2 "'--repeat=0': use a number" --repeat=0
prints 2 "'--repeat=ten': use a number" --repeat=ten
prints 2 "'--suite' has no value" --suite
prints 2 "'--long=units': the parts are" --long=units
prints 3 'it went on' --long=bus arbiter
GPUARB_ROUNDS=many prints 2 "GPUARB_ROUNDS='many': use a number"
GPUARB_SEED=monday prints 2 "GPUARB_SEED='monday': use a whole number"
prints 3 'it went on' --repeat=2 --suite unit --no-suite=lint --maxfail 1 arbiter
prints 3 'it went on'

exec 9>"$dir/build/strict.lock"
flock 9
prints 1 'another tests/run uses build/strict' arbiter
prints 0 '--repeat=N' --help
prints 3 'it went on' --sanitize arbiter
exec 9>"$dir/build/sanitize.lock"
flock 9
prints 1 'another tests/run uses build/sanitize' --sanitize arbiter
prints 1 'another tests/run uses build/sanitize' --long=unit
prints 3 'it went on' arbiter
exec 9>&-
touch -d '+1 hour' "$dir/tests/setup"
prints 1 'the time of ./tests/setup is in the future' arbiter

# A meson whose tests all pass, or one of which fails; or that runs until it is ended.
mkdir "$dir/bin"
cp "$1/tests/strict.ini" "$dir/tests"
cp "$1/meson.build" "$1/meson_options.txt" "$dir"
printf '#!/bin/sh\n' | tee "$dir/tests/setup" >"$dir/bin/ninja"
cat >"$dir/bin/meson" <<-'SH'
	#!/bin/sh
	counts='Unexpected Pass: 0\nSkipped: 0\nTimeout: 0\n'
	case $1:$MESON in
	setup:*) mkdir -p build/strict && touch build/strict/build.ninja ;;
	test:passes) printf "Ok: 2\nFail: 0\n$counts" ;;
	test:fails) printf " 2/2 unit / arbiter FAIL 1 s\nOk: 1\nFail: 1\n$counts"; exit 1 ;;
	test:stays) printf "meson $$\nruns\n"; exec sleep infinity ;;
	esac
SH
chmod +x "$dir/bin/"*
export PATH=$dir/bin:$PATH
MESON=passes prints 0 '2 passed, 0 failed'
MESON=passes prints 0 '3 of 3 runs passed' --repeat=3
MESON=fails prints 1 'tests/run arbiter'
MESON=fails prints 1 '0 of 2 runs passed' --repeat=2
exec {out}< <(MESON=stays GPUARB_SEED=1 exec "$dir/tests/run" 2>&1)
running=$!
await_line "$out" 'meson *'
# shellcheck disable=SC2154 # await_line sets it
stays=${line#meson }
kill -KILL "$running"
await_so 'meson ends with tests/run' test ! -e "/proc/$stays"
stays=

script=$1/tests/setup
prints 0 'tests/setup demo' --help
prints 2 'tests/setup demo' bse
# tests/unit/run: two tests of one program, and three that each have an end of their own.
mkdir -p "$dir/built/meson-info"
cat >"$dir/bin/program" <<-'SH'
	#!/bin/sh
	case $* in
	skip) echo 'skipped: no such thing'; exit 77 ;;
	fail) echo 'it went wrong'; exit 1 ;;
	slow) exec sleep infinity ;;
	'one two') ;;
	*) exit 2 ;;
	esac
SH
chmod +x "$dir/bin/program"
echo '[]' >"$dir/built/meson-info/intro-targets.json"
# has NAME[:PRIORITY]…: the folder has these tests.
has()
{
	printf '%s\n' "$@" | jq -nR --arg program "$dir/bin/program" '[inputs | split(":") | {
		name: .[0], cmd: [$program, .[0]], priority: (.[1] // "0" | tonumber), suite: ["gpuarb:unit"],
		depends: [], env: {}, workdir: null, timeout: (if .[0] == "slow" then 1 else 600 end) }]' \
		>"$dir/built/meson-info/intro-tests.json"
}
script=$1/tests/unit/run
has one two skip:1
prints 0 '2 tests passed, 1 skipped, 0 programs failed' "$dir/built"
prints 0 'skipped: no such thing' "$dir/built"
has one two fail:1 slow:1
prints 1 '2 tests passed, 0 skipped, 2 programs failed' "$dir/built"
prints 1 'it went wrong' "$dir/built"
prints 1 'failed (None)' "$dir/built"

exit $failed
