/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <sys/types.h>

/* Puts $PAGER, else less, behind standard output. Returns its pid, 0 where there is none to
 * be had: output then goes where it went. */
pid_t pager_start(void);

/* Ends the output and waits until it was read, or as much of it as anybody wanted. */
void pager_finish(pid_t pager);
