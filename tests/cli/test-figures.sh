#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-figures.sh: what gpuarb-figures draws of published data and of samples, and that it needs no matplotlib for the page.
set -u
figures=$GPUARB_SOURCE_ROOT/client/calibrate/gpuarb-figures
data=$GPUARB_SOURCE_ROOT/tests/data/measured
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0
check() { "${@:2}" >"$dir/log" 2>&1 || { failed=1; echo "not so: $1"; cat "$dir/log"; }; }

# ---- without matplotlib: the page has the data and the table ---------------------------------
mkdir "$dir/absent" "$dir/page"
echo 'raise ImportError' >"$dir/absent/matplotlib.py"
without() { PYTHONPATH=$dir/absent "$figures" "$@" 2>"$dir/err"; }
check 'the page is written' without --published "$data" "$dir/page"
check 'one line says what is missing' test "$(wc -l <"$dir/err")" = 1
check 'it names the package' grep -q python3-matplotlib "$dir/err"
check 'nothing is drawn' test "$(ls "$dir/page")" = index.html
# 71.076 ms beside MM1024 on one CU of it, as published.
check 'the table has the medians' grep -q 'MM1024 beside MM1024, one CU shared<td>31<td>71.076' "$dir/page/index.html"
check 'a directory without samples is an error' eval '! without "$dir/absent"'
printf 'set\tlayout\nmasks\tdealt\n' >"$dir/page/samples.tsv"
check 'a table without its columns is an error' eval '! without "$dir/page"'

if [ "$failed" = 0 ] && ! /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
	echo 'skipped: no matplotlib (python3-matplotlib)'
	exit 77
fi

# ---- with it ---------------------------------------------------------------------------------
check 'published data is drawn' "$figures" --published "$data" "$dir/published"
for name in masks competitor; do
	check "$name.png is a picture" grep -q PNG "$dir/published/$name.png"
	check "$name.svg has axes and units" grep -q '(ms)' "$dir/published/$name.svg"
	check "$name.svg has the command" grep -q -- '--published' "$dir/published/$name.svg"
	check 'the page has it' grep -q "$name.png" "$dir/published/index.html"
done
mkdir "$dir/own"
{
	printf '# a GPU\n# gpuarbctl calibrate --seed=4\nset\tlayout\tthreads\tqueues\tcus\teffective_cus\tcu_mask\tcompetitor\tcompetitor_mask\trun\tusec\thost_usec\tmhz\tcelsius\n'
	for cus in 1 2 4; do
		printf 'masks\tdealt\t1024\t1\t%u\t%u\t0x%u\t0\t-\t0\t%u\t9000\t-\t-\n' $cus $cus $cus $((8000 / cus))
		printf 'queues\tall CUs\t1024\t%u\t4\t4\t0xf\t0\t-\t0\t-\t%u\t-\t-\n' $cus $((2000 * cus))
	done
} >"$dir/own/samples.tsv"
check 'samples are drawn' "$figures" "$dir/own"
check 'those that there are' test "$(cd "$dir/own" && echo *.png)" = 'masks.png queues.png'
check 'with the law' grep -q '8 ms / E' "$dir/own/masks.svg"
check 'with what it was fitted on' grep -q 'all 3 masks' "$dir/own/masks.svg"
check 'with the command that measured' grep -q 'calibrate --seed=4' "$dir/own/queues.svg"
echo '{"laws": [{"threads": 1024, "a_usec": 7000, "b_usec": 50, "fitted": 2, "judged": 1,
	"median_error_percent": 1.5, "worst_error_percent": 2.5}]}' >"$dir/own/paper.json"
check 'samples are drawn with their report' "$figures" "$dir/own"
check 'its law is the drawn one' grep -q '7 ms / E' "$dir/own/masks.svg"
check 'with its error' grep -q 'worst 2.5 %' "$dir/own/masks.svg"
exit $failed
