/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * hiprtc in a process of its own: it dies of a target that it does not know (ROCm 5.2), and
 * which target it is is known only when HIP runs, after which nobody should fork. So the
 * process is started first and asked later. It ends with its parent.
 */

#include <stddef.h>
#include <sys/types.h>

struct compiler {
	pid_t pid; /* 0: none */
	int fd;
};

/* Call it before there are threads, and before there is a lease that a copy of its holder
 * would keep. */
int compiler_start(struct compiler *ret);

/* Once. -EINTR: a signal ended the compiler. -ENOMEM; -EIO; the sentence is in buf. *ret_code
 * is to be freed. */
int compiler_ask(struct compiler *compiler, const char *target, char **ret_code, size_t *ret_size,
		 char *buf, size_t size);
void compiler_done(struct compiler *compiler);
