/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/compiler.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/latency/kernel.h"
#include "client/launch/child.h"
#include "util/fd.h"

_Noreturn void compiler_serve(const char *target)
{
	char message[256] = "out of memory in the compiler", *code = NULL;
	sigset_t none;
	size_t size = 0;
	int r;

	/* The program that starts this one reads signals itself. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	r = kernel_compile(target, &code, &size, message, sizeof(message));
	if (fwrite(r < 0 ? message : code, r < 0 ? strlen(message) : size, 1, stdout) != 1 ||
	    fflush(stdout) != 0)
		r = -EIO;
	/* Destructors of HIP may crash when the code is written already. */
	_exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* All that was written, with a NUL behind it. */
static int read_all(int fd, char **ret, size_t *ret_size)
{
	struct stat st;
	char *text = fstat(fd, &st) < 0 ? NULL : calloc(1, (size_t)st.st_size + 1);
	ssize_t n;

	if (!text)
		return -ENOMEM;
	n = pread(fd, text, (size_t)st.st_size, 0);
	if (n < 0) {
		free(text);
		return -errno;
	}
	*ret_size = (size_t)n;
	*ret = text;
	return 0;
}

int compiler_run(const char *target, char **ret_code, size_t *ret_size, char *buf, size_t size)
{
	const char *const words[] = { "gpuarb-latency", "compile", target, NULL };
	_cleanup_fd_ int fd = memfd_create("code", MFD_CLOEXEC);
	const struct process_fd out = { STDOUT_FILENO, fd };
	_cleanup_(freep) char *answer = NULL;
	size_t n = 0;
	pid_t pid;
	int r = fd < 0 ? -errno : process_spawn("/proc/self/exe", words, false, &out, 1, &pid);
	int code = r < 0 ? r : process_wait(pid);

	/* Ctrl-C on the terminal reaches the compiler, too. */
	if (code == 128 + SIGINT || code == 128 + SIGTERM)
		return -EINTR;
	r = code < 0 ? code : read_all(fd, &answer, &n);
	if (r < 0)
		snprintf(buf, size, "cannot start the compiler: %s", strerror(-r));
	else if (n == 0 || code > 128)
		snprintf(buf, size,
			 "the kernel was not compiled: hiprtc crashed with the target %s (%s); "
			 "this HIP does not support it",
			 target, code > 128 ? strsignal(code - 128) : "no answer");
	else if (code > 0)
		snprintf(buf, size, "%s", answer);
	if (r < 0 || n == 0 || code > 0)
		return r == -ENOMEM ? r : -EIO;
	*ret_code = TAKE_PTR(answer);
	*ret_size = n;
	return 0;
}
