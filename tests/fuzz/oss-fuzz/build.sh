#!/bin/bash -eu
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Builds the fuzz targets into $OUT, as OSS-Fuzz calls it: in the root of the source, with CC, CXX, CFLAGS,
# LIB_FUZZING_ENGINE, OUT and WORK. Each target is OUT/fuzz-NAME with NAME.dict and its first inputs. The
# libraries that it needs are in OUT/lib.

build=$WORK/gpuarb
rm -rf "$build"
# CFLAGS has the sanitizers. With a run path of the old kind the libraries find each other, too.
meson setup "$build" -Dfuzz="$LIB_FUZZING_ENGINE" -Dhip=disabled -Dprobe=disabled -Dbpf=disabled \
	-Dman=disabled -Db_lundef=false -Dc_link_args='-Wl,--disable-new-dtags,-rpath,$ORIGIN/lib'
ninja -C "$build" tests/fuzz/fuzz

mkdir -p "$OUT/lib"
program=$build/tests/fuzz/fuzz
ldd "$program" | sed -n 's/.* => \(\/.*\) (.*/\1/p' | while read -r library; do
	case $library in
	*/libc.so.* | */libm.so.* | */libpthread.so.* | */libdl.so.* | */librt.so.* | */ld-linux*) ;;
	*) cp -L "$library" "$OUT/lib/" ;;
	esac
done

tests/fuzz/seeds | while read -r name; do
	cp "$program" "$OUT/fuzz-$name"
	tests/fuzz/words "$name" >"$OUT/fuzz-$name.dict"
	# Names of inputs need not differ between folders.
	# shellcheck disable=SC2046 # a list
	python3 - "$OUT/fuzz-${name}_seed_corpus.zip" $(tests/fuzz/seeds "$name") <<'PYTHON'
import sys
import zipfile
from pathlib import Path

with zipfile.ZipFile(sys.argv[1], 'w') as archive:
    for n, path in enumerate(file for folder in sys.argv[2:] for file in Path(folder).rglob('*')
                             if file.is_file()):
        archive.write(path, f'{n}-{path.name}')
PYTHON
done
