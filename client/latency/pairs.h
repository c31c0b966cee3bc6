/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The order in which pairs of n units are played: each pair once, each unit with itself
 * too. Neighbours in the order share no unit where that can be, so that a clock that drifts
 * or a GPU that grows warm falls on all units alike and makes none an outlier. Pure.
 */

#include <stddef.h>

size_t pairs_count(size_t n);
void pairs_get(size_t n, size_t k, size_t *ret_a, size_t *ret_b); /* k < count, a <= b */
