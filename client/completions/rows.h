/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The tables as each shell wants them. What is printed stands between the lines of
 * gpuarbctl.SHELL.in. */

#include <stdio.h>

void rows_bash(FILE *out);
void rows_zsh(FILE *out);
void rows_fish(FILE *out);

/* 'text' for a shell, with what quotes it may hold itself. */
void rows_quote(FILE *out, const char *text, const char *quoted_quote);
