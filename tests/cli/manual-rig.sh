# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What the tests of the manuals' programs share.

# manual_examples PAGE TO N: writes them to TO-1.c, TO-2.c...; false unless there are N.
manual_examples()
{
	sed -n '/^# EXAMPLES$/,/^# SEE ALSO$/p' "$1" | awk -v to="$2" -v wanted="$3" '
		/^```$/ { inside = !inside; n += inside; next }
		inside { gsub(/\\\\/, "\\"); print > to "-" n ".c" }
		END { exit n != wanted }'
}

# manual_compile EXAMPLE LIBRARY COMPILER...: of EXAMPLE.c; what the compiler says is in $dir/err.
# shellcheck disable=SC2154 # the caller's
manual_compile()
{
	"${@:3}" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I"$GPUARB_SOURCE_ROOT/libgpuarb" \
		"$1.c" "$2" -Wl,-rpath,"$(dirname "$2")" -o "$1" >"$dir/out" 2>"$dir/err"
}
