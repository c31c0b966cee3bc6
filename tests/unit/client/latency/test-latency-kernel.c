/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compiles the kernel for all targets of hiprtc and hipcc. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "client/latency/kernel.h"

/* First one for each kind of wave, then one for each other text of the kernel. The rest with GPUARB_LONG. */
static const char *const targets[] = {
	"gfx906",  "gfx1030", "gfx803",  "gfx1201", "gfx942", "gfx906:sramecc+:xnack-",
	"gfx900",  "gfx908",  "gfx90a",  "gfx940",  "gfx950", "gfx1010",
	"gfx1100", "gfx1101", "gfx1151",
};

#define CODE_MAX (1U << 24)
#define N_TARGETS check_size(6, sizeof(targets) / sizeof(targets[0]))
/* hipcc has the same compiler behind it and takes its time. */
#define N_HIPCC check_size(2, sizeof(targets) / sizeof(targets[0]))

/* In a process of its own, as gpuarb-latency does: hiprtc crashes on some targets. */
static int compile(const char *target, char **ret_code, size_t *ret_size, char *buf, size_t size)
{
	FILE *file = tmpfile();
	pid_t pid = file ? fork() : -1;
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		int r = kernel_compile(target, ret_code, ret_size, buf, size);

		if (fwrite(r < 0 ? buf : *ret_code, 1, r < 0 ? strlen(buf) : *ret_size, file) == 0)
			r = -EIO;
		fflush(file);
		_exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	rewind(file);
	if (status != 0) {
		size_t n = fread(buf, 1, size - 1, file);

		snprintf(buf + n, size - n, n > 0 ? "" : "hiprtc crashed: not compiled for %s",
			 target);
		fclose(file);
		return -EIO;
	}
	*ret_code = malloc(CODE_MAX);
	CHECK(*ret_code);
	*ret_size = fread(*ret_code, 1, CODE_MAX, file);
	fclose(file);
	return 0;
}

static bool contains(const char *data, size_t size, const char *text)
{
	return memmem(data, size, text, strlen(text)) != NULL;
}

TEST(hiprtc_compiles_the_kernel_for_each_target)
{
	size_t compiled = 0;

	for (size_t i = 0; i < N_TARGETS; i++) {
		char *code = NULL, why[320] = "";
		size_t size = 0;
		int r = compile(targets[i], &code, &size, why, sizeof(why));

		if (r < 0) {
			CHECK(r == -EIO && strstr(why, "compiled"));
			printf("  skipped: %s: %s\n", targets[i], why);
			continue;
		}
		CHECK(size > 64 && memcmp(code, "\177ELF", 4) == 0);
		CHECK(contains(code, size, KERNEL_NAME) && contains(code, size, KERNEL_CLEAR) &&
		      contains(code, size, KERNEL_CLOCK));
		CHECK(contains(code, size, KERNEL_SPIN) && contains(code, size, KERNEL_READ) &&
		      contains(code, size, KERNEL_GAP));
		printf("  %s: %zu bytes\n", targets[i], size);
		free(code);
		compiled++;
	}
	/* Any HIP that there is has these. */
	CHECK(compiled >= check_size(3, 6));
}

TEST(an_unknown_target_is_reported)
{
	char *code = NULL, why[320] = "", longest[200];
	size_t size = 0;

	CHECK(compile("gfx1", &code, &size, why, sizeof(why)) == -EIO && !code);
	CHECK(strstr(why, "compiled") && strstr(why, "gfx1"));

	memset(longest, 'g', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	CHECK(compile(longest, &code, &size, why, sizeof(why)) == -EIO);
	CHECK(strstr(why, "gggg"));
}

/* ---- hipcc's compiler, on the source as a file ------------------------------------- */

static void write_source(const char *path)
{
	FILE *file = fopen(path, "w");

	CHECK(file && fputs("#include <hip/hip_runtime.h>\n", file) >= 0);
	CHECK(fputs(kernel_source, file) >= 0 && fclose(file) == 0);
}

static int run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int run(const char *format, ...)
{
	char command[1024];
	va_list args;
	int status;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool build(const char *dir, const char *target)
{
	return run("hipcc --genco --offload-arch=%s -O3 -Wall -Werror -DROUNDS=%d -DTRIPS=%u "
		   "-DSPINS=%uu -DTHREADS=%uu %s/k.hip -o %s/k.co 2>%s/log",
		   target, (int)GAME_ROUNDS, GAME_TRIPS, GAME_SPINS, SPIN_THREADS, dir, dir,
		   dir) == 0;
}

TEST(hipcc_compiles_the_kernel_for_each_target)
{
	size_t compiled = 0;
	char dir[] = "/tmp/latency-XXXXXX", path[64];
	struct stat made;

	if (system("command -v hipcc >/dev/null") != 0)
		SKIP("no hipcc");
	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/k.hip", dir);
	write_source(path);
	for (size_t i = 0; i < N_HIPCC; i++) {
		if (!build(dir, targets[i])) {
			printf("  skipped: hipcc and %s: ", targets[i]);
			fflush(stdout);
			run("head -n 1 %s/log", dir);
			continue;
		}
		snprintf(path, sizeof(path), "%s/k.co", dir);
		CHECK(stat(path, &made) == 0 && made.st_size > 1000);
		compiled++;
	}
	run("rm -rf %s", dir);
	CHECK(compiled >= check_size(2, 6));
}
