/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/base.h"

#include <stdlib.h>

void freep(void *pointer_to_pointer)
{
	free(*(void **)pointer_to_pointer);
}
