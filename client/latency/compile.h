/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>

/* Has hiprtc compile the kernel for a target ("gfx906:sramecc+:xnack-"); needs no GPU. -ENOMEM;
 * -EIO with the sentence in buf. *ret_code is to be freed. */
int kernel_compile(const char *target, char **ret_code, size_t *ret_size, char *buf, size_t size);
