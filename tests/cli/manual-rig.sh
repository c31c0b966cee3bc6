# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Shared by the tests of the programs in libgpuarb(3).

# manual_examples PAGE TO N: writes the C programs of the page to TO-1.c, TO-2.c...; false unless there
# are N.
manual_examples()
{
	awk -v to="$2" -v wanted="$3" '
		/^```$/ { first = !inside; inside = !inside; program = 0; next }
		first { program = /^#include/; n += program; first = 0 }
		program { gsub(/\\\\/, "\\"); print > to "-" n ".c" }
		END { exit n != wanted }' "$1"
}

# manual_compile EXAMPLE LIBRARY COMPILER...: compiles EXAMPLE.c; the messages go to $dir/err.
# shellcheck disable=SC2154 # the caller's
manual_compile()
{
	"${@:3}" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I"$GPUARB_SOURCE_ROOT/libgpuarb" \
		"$1.c" "$2" -Wl,-rpath,"$(dirname "$2")" -o "$1" >"$dir/out" 2>"$dir/err"
}
