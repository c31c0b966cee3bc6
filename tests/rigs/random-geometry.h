/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shapes that a GPU could have, drawn by lrand48(): seed it, and print the seed. */

#include <stdlib.h>

#include "core/mask/geometry.h"

unsigned below(unsigned n);

struct geometry random_geometry(void);
