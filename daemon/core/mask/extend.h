/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Rectangles around a rectangle: what an adaptable lease's mask is made of. See place.h. */

#include "core/mask/cuset.h"
#include "core/mask/geometry.h"

struct extend {
	const struct cuset *base; /* a rectangle, which the result contains */
	struct cuset avail;       /* what may be taken; base is added */
	struct cuset preferred;   /* the part of it to take first: it will not be reclaimed */
	struct cuset keep;        /* what to have rather than others */
	const struct cuset *all;  /* the GPU's: may be had as they are, however uneven */
	unsigned cap;             /* CUs; base may have more */
};

/* The largest that there is; base, at the least. Returns its CUs. */
unsigned extend(const struct geometry *geometry, const struct extend *request, struct cuset *ret);
