/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A mount namespace in which paths of the kernel's are the emulator's. Nothing that is mounted
 * here is ever seen outside, and all of it goes with the last process inside.
 *
 * Negative errno; namespace_cover() says on stderr which path it was.
 */

#include <stddef.h>

/* This process's own namespace, with an empty tmpfs on scratch. The path that it failed on
 * is in why. */
int namespace_private(const char *scratch, char *why, size_t size);

/*
 * In a child, in a namespace of its own again: puts scratch/files, which has dev/, kfd/ and
 * debug/ as in tree.h, at the kernel's paths, and sysfs/module/amdgpu where it exists. A machine whose
 * sysfs has no processor cache gets one, because libhsakmt finds no GPU without.
 * scratch, which is /sys/kernel/debug, is covered by an empty directory with the emulator's debugfs in it.
 * The working directory stays.
 */
int namespace_cover(const char *scratch, const char *sysfs);
