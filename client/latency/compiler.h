/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Runs hiprtc in a process of its own, because hiprtc of ROCm 5.2 crashes on an unknown target. The
 * target is known only once HIP runs, and a program must not fork after that, so the process is
 * started first and receives the target later. It ends with its parent.
 */

#include <stddef.h>
#include <sys/types.h>

struct compiler {
	pid_t pid; /* 0: not running */
	int fd;
};

/* Call it before threads start, and before the lease: the process would keep a copy of the
 * holder. */
int compiler_start(struct compiler *ret);

/* Works once. -EINTR: a signal ended the compiler; -ENOMEM; -EIO. The message is in buf. The caller
 * frees *ret_code. */
int compiler_ask(struct compiler *compiler, const char *target, char **ret_code, size_t *ret_size,
		 char *buf, size_t size);
void compiler_done(struct compiler *compiler);
