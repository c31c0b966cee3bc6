/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* EACH(ROW, A, B, x, y, …) is ROW(A, B, x), ROW(A, B, y), …: for up to 80 names of members. */

#define EACH(row, a, b, ...) EACH_3(EACH_NEXT(row, a, b, __VA_ARGS__))

#define EACH_NEXT(row, a, b, name, ...) \
	row(a, b, name) __VA_OPT__(, EACH_AGAIN EACH_PARENS(row, a, b, __VA_ARGS__))
#define EACH_AGAIN() EACH_NEXT
#define EACH_PARENS ()
#define EACH_3(...) EACH_2(EACH_2(EACH_2(EACH_2(__VA_ARGS__))))
#define EACH_2(...) EACH_1(EACH_1(EACH_1(EACH_1(__VA_ARGS__))))
#define EACH_1(...) EACH_0(EACH_0(EACH_0(EACH_0(__VA_ARGS__))))
#define EACH_0(...) __VA_ARGS__
