/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A process that ends between the check of gpuarb-enforce and its signal. */

#include "../../daemon/helpers/enforce/target.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

TEST(a_process_that_has_ended_is_not_reported_as_killed)
{
	struct target target = { .pid = fork(), .command = "tester" };
	char why[128] = "";

	if (target.pid == 0)
		_exit(0);
	target.pidfd = (int)syscall(SYS_pidfd_open, target.pid, 0);
	CHECK(target.pidfd >= 0 && waitpid(target.pid, NULL, 0) == target.pid);
	CHECK(target_kill(&target, why, sizeof(why)) == -ESRCH);
	CHECK(strstr(why, "(tester)") && strstr(why, strerror(ESRCH)));
	close(target.pidfd);
}
