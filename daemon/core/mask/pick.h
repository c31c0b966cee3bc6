/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Single CUs, once it is known how many of which engine: place.c's hands. */

#include "core/mask/place.h"

/* Adds n units (CUs, or WGPs) of one (XCC, engine) pair: those to keep first, then those
 * that nobody shares, both shader arrays alike. The pair must have them. */
void pick_units(const struct geometry *geometry, const struct place_request *request, unsigned pair,
		unsigned n, struct cuset *set);

/* CUs of the whole GPU where it may be had as it is: all that an empty GPU has, however
 * uneven the harvest. Else 0. */
unsigned pick_whole(const struct place_request *request);

/* Any CUs, levelled over the engines: what shape=any gets. 0 or -ENOSPC, as place(). */
int pick_any_shape(const struct geometry *geometry, const struct place_request *request,
		   struct placement *ret, struct place_miss *ret_miss);
