#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Types and style of the package for Python and of its tests. Debian has mypy and flake8, and Debian 12
# has no ruff: libgpuarb/python/pyproject.toml configures ruff for those who have it.
#
#	check-python.sh SOURCE CACHE
set -eu
cache=$2
cd "$1"
for module in mypy flake8; do
	/usr/bin/python3 -m "$module" --version >/dev/null 2>&1 ||
		{ echo "skipped: no $module (python3-$module)"; exit 77; }
done

status=0
MYPYPATH=libgpuarb/python:client/exporter:tests/python:tests/python/stand-ins /usr/bin/python3 -m mypy --strict --no-error-summary \
	--cache-dir="$cache" --scripts-are-modules libgpuarb/python/gpuarb tests/python/*.py \
	docs/examples/python/*.py client/calibrate/gpuarb-figures client/rt/gpuarb-rt-measure client/exporter/exporter.py docs/make-hardware tests/unit/run || status=1
/usr/bin/python3 -m flake8 --max-line-length 100 libgpuarb/python tests/python \
	docs/examples/python client/calibrate/gpuarb-figures client/rt/gpuarb-rt-measure client/exporter docs/make-hardware tests/unit/run || status=1
exit $status
