#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-figures.sh: what gpuarb-figures prints of reports, what it draws of published data and of samples, and that it needs no
# matplotlib for the page.
set -u
figures=$GPUARB_SOURCE_ROOT/client/calibrate/gpuarb-figures
data=$GPUARB_SOURCE_ROOT/tests/data/measured
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0
check() { "${@:2}" >"$dir/log" 2>&1 || { failed=1; echo "not so: $1"; cat "$dir/log"; }; }

# ---- reports as text: that of a model, with the text that came with it ------------------------
stored=$GPUARB_SOURCE_ROOT/tests/data/reports/calibration.md
sed -n '/^```json$/,/^```$/p' "$stored" | grep -v '^```' >"$dir/report.json"
"$figures" --submission "$dir/report.json" >"$dir/submission"
check 'the text of a report is as stored' diff <(sed 's/, Linux .*//' "$stored") <(sed 's/, Linux .*//' "$dir/submission")
check 'it ends without a legend' eval '[ "$("$figures" --text --no-legend "$dir/report.json" | head -n 1 | cut -c1-6)" = "1 x 1 " ]'
jq '.device = "a\u001b[1m\u0085b"' "$dir/report.json" >"$dir/escape.json"
check 'what a terminal would act on is escaped' eval '"$figures" --text "$dir/escape.json" | grep -qF "(a\x1b[1m\xc2\x85b)"'
check 'no report is an error' eval '! "$figures" --text "$stored"'
check 'a full disk is an error' eval '! "$figures" --text "$dir/report.json" >/dev/full'
mkfifo "$dir/pipe"
exec 5<>"$dir/pipe" 6>"$dir/pipe" 5<&- # nobody reads
check 'a reader that goes is no error to tell of' eval '"$figures" --text "$dir/report.json" 2>"$dir/err" >&6; [ $? = 141 ] && [ ! -s "$dir/err" ]'
exec 6>&-
law='{"threads": 256, "a_usec": 70, "b_usec": 5, "fitted": 2, "judged": 1, "median_error_percent": 0.0, "worst_error_percent": null}'
echo '{"schema": "gpuarb-paper", "planned": 0, "seed": 1, "cases": [], "missing": [], "laws": ['"$law"']}' >"$dir/law.json"
check 'an error of 0 is known' eval '"$figures" --text "$dir/law.json" | grep -q "median error is 0.0 %, the worst nan %"'

# ---- what follows from a measurement of latencies ----------------------------------------------
check 'units and pairs are judged as they are' python3 - "$figures" "$dir/latency.json" <<'PY'
import json
import subprocess
import sys

program, file = sys.argv[1:]
ALL = range(60)  # the CUs of a Radeon VII: four engines of 15


def place(unit, cu=None, engine=None):
    return {'xcc': 0, 'shader_engine': unit // 15 if engine is None else engine,
            'shader_array': 0, 'cu': unit % 15 if cu is None else cu}


def judge(ran=lambda unit: [place(unit)], moved=(), ns=lambda a, b, usual: usual, known=True):
    def usual(a, b):
        return (60 if a == b else 110 if a // 15 == b // 15 else 170) + (a + b) % 7 / 2

    with open(file, 'w', encoding='utf-8') as out:
        json.dump({'gpu': 'one', 'device': 'two', 'emulated': False, 'unit': 'cu', 'same_line': False,
                   'rounds': 9, 'compare_and_swap': False, 'harvest_known': known, 'unmet': 0,
                   'units': [{'name': f'SE{u // 15}:{u % 15}', 'cu_mask': '0x1', 'xccs': [place(u)],
                              'shader_engine': u // 15, 'ran_on': ran(u), 'moved': u in moved}
                             for u in ALL],
                   'matrix': [[ns(min(a, b), max(a, b), usual(a, b)) for b in ALL] for a in ALL]}, out)
    report = json.loads(subprocess.run([program, '--json', file], check=True, stdout=-1).stdout)
    return report, [u for u in ALL if report['units'][u]['mask_honoured'] is False]


def outliers(report):
    return [row['unit'] for row in report['outliers']['units']], report['outliers']['pairs']


report, elsewhere = judge()
assert elsewhere == [] and outliers(report) == ([], [])
assert [report['summary'][key]['pairs'] for key in ('same_unit', 'same_shader_engine', 'across')] == [60, 420, 1350]
assert report['summary']['same_unit'] == {'pairs': 60, 'median': 62, 'least': 60, 'most': 63}
# A slow unit is an outlier, and its pairs are not.
report, _ = judge(ns=lambda a, b, usual: usual * (1.5 if 20 in (a, b) else 1))
assert outliers(report) == ([20], []) and 1.4 < report['outliers']['units'][0]['ratio'] < 1.6
# A slow pair of normal units.
report, _ = judge(ns=lambda a, b, usual: 400 if (a, b) == (0, 15) else usual)
assert outliers(report) == ([], [{'units': [0, 15], 'ns': 400}])
# Only the unit that ran elsewhere: in another engine; below, and above, where another is.
for engine, cu in ((3, 2), (1, 0), (1, 9)):
    assert judge(lambda u: [place(u, cu, engine) if u == 20 else place(u)])[1] == [20]
# Masks that are ignored; CUs that are fused off have numbers; a unit that moves; what is not known.
assert judge(lambda u: [place(0)])[1] == [*ALL][1:]
assert judge(lambda u: [place(u, u % 15 + (u % 15 > 3))])[1] == []
assert judge(moved=(7,))[1] == [7]
report, elsewhere = judge(lambda u: None if u == 5 else [place(u, 9 if u == 20 else None)], known=False)
assert elsewhere == [] and [u for u in ALL if report['units'][u]['mask_honoured'] is None] == [5, 20]
# Pairs that did not meet are left out.
report, _ = judge(ns=lambda a, b, usual: None if 1 in (a, b) and a != b else usual)
assert report['summary']['same_shader_engine']['pairs'] == 420 - 14 and outliers(report) == ([], [])
assert report['matrix'][0][1] is None
PY

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
