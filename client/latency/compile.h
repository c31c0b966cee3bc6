/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>

/* Compiles the kernel with hiprtc for a target ("gfx906:sramecc+:xnack-"), without a GPU. -ENOMEM;
 * -EIO with a message in buf. The caller frees *ret_code. */
int kernel_compile(const char *target, char **ret_code, size_t *ret_size, char *buf, size_t size);
