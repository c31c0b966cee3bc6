/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * gpuarbctl with memory that runs out at one allocation, whichever it is, or with few file descriptors: every
 * verb ends by itself, and with a sentence if it fails; what is wrong does not become right, nor the
 * command line wrong. Each run is a child of this program. A short run lets one of 37 allocations
 * fail.
 */

#include <pwd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "lack.h"
#include "live.h"
#include "seed.h"

NEEDS(daemon_missing);

#if defined(__SANITIZE_ADDRESS__)
/* json-c 0.16 leaks what it cannot add to an object. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif
#define STEP (getenv("GCOV_ERROR_FILE") ? 1U : check_one_in(37, 1)) /* coverage counts all */
#define WORDS 12
#define EXIT_USAGE 2
#define DESCRIPTORS 24

/* main() of client/main.c, and of client/rt/main.c, which the other becomes. */
int gpuarbctl_main(int argc, char **argv);
int gpuarb_rt_main(int argc, char **argv);

static struct rig rig;
static bool *enough; /* the last run had memory left */

static void limit_descriptors(rlim_t n)
{
	struct rlimit limit;

	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static _Noreturn void run_child(const char *line, FILE *said, long allocations, rlim_t descriptors)
{
	char text[512], *rest = NULL, *words[WORDS + 1] = { NULL };
	int n = 0, r;

	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		CHECK(n < WORDS);
		words[n++] = word;
	}
	alarm((unsigned)(await_limit_usec() / 1000000)); /* a run that hangs */
	CHECK(freopen("/dev/null", "w", stdout));
	CHECK(dup2(fileno(said), STDERR_FILENO) == STDERR_FILENO);
	limit_descriptors(descriptors);
	lack_left = allocations;
	r = (strcmp(words[0], "gpuarb-rt") == 0 ? gpuarb_rt_main : gpuarbctl_main)(n, words);
	*enough = lack_left >= 0;
	lack_left = -1;
	limit_descriptors(RLIM_INFINITY);
	exit(r);
}

/* What the run ended with. */
static int run(const char *line, FILE *said, long allocations, rlim_t descriptors)
{
	pid_t pid;
	int status;

	CHECK(ftruncate(fileno(said), 0) == 0 && fseek(said, 0, SEEK_SET) == 0);
	*enough = false;
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		run_child(line, said, allocations, descriptors);
	CHECK(waitpid(pid, &status, 0) == pid);
	if (!WIFEXITED(status)) {
		fprintf(stderr, "%s: signal %d after %ld allocations, with %llu descriptors\n",
			line, WTERMSIG(status), allocations, (unsigned long long)descriptors);
		abort();
	}
	return WEXITSTATUS(status);
}

/* Whether the run with too little did not end with the usual status, but another one and a sentence.
 * Completions have none: they would be in the middle of a command line. */
static bool failed(const char *line, FILE *said, int status, int usual, long n)
{
	struct stat st;

	CHECK(status == usual || (status != 0 && status != EXIT_USAGE));
	CHECK(fstat(fileno(said), &st) == 0);
	if (status != usual && st.st_size == 0 && !strstr(line, "--complete")) {
		fprintf(stderr, "%s: status %d without a sentence, with %ld\n", line, status, n);
		abort();
	}
	return status != usual;
}

/* With so many descriptors as are open, and a few more. */
static void deny_descriptors(const char *line)
{
	FILE *said = tmpfile();
	unsigned failures = 0;
	int usual = run(line, said, -1, RLIM_INFINITY);

	CHECK(said);
	for (rlim_t n = 3; n < DESCRIPTORS; n++)
		failures += failed(line, said, run(line, said, -1, n), usual, (long)n);
	printf("%s: %u failures with few descriptors\n", line, failures);
	CHECK(failures > 0);
	fclose(said);
}

static void deny_each(const char *line, unsigned first)
{
	FILE *said = tmpfile();
	unsigned failures = 0;
	int usual, status;
	long n;

	CHECK(said);
	usual = run(line, said, -1, RLIM_INFINITY);
	*enough = false;
	for (n = first; !*enough; n += STEP) {
		status = run(line, said, n, RLIM_INFINITY);
		CHECK(!*enough || status == usual);
		failures += failed(line, said, status, usual, n);
	}
	printf("%s: %ld allocations from %u on, %u failures\n", line, n, first, failures);
	fclose(said);
}

static void deny_each_of(const char *const *lines, size_t n)
{
	unsigned seed = SEED_OF_RUN("LACK_SEED");

	if (!enough)
		enough = mmap(NULL, sizeof(*enough), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(enough != MAP_FAILED);
	getpwnam("gpuarb"); /* glibc 2.36 crashes where it has no memory for its first look-up */
	for (size_t i = 0; i < n; i++)
		deny_each(lines[i], (seed + (unsigned)i) % STEP);
}

TEST(verbs_without_a_daemon_end_with_a_sentence)
{
	static const char *const lines[] = {
		"gpuarbctl mask decode --profile=radeon-vii --profiles=conf/gpus 0x3fffffff",
		"gpuarbctl mask encode --profile=radeon-vii --profiles=conf/gpus SE0:0-3",
		"gpuarbctl mask explain --profile=radeon-vii --profiles=conf/gpus 0xff --json",
		"gpuarbctl config check conf/gpuarbd.conf",
		"gpuarbctl config check debian/source/format",
		"gpuarb-rt rt plan --profile=mi210 --profiles=conf/gpus tests/data/rt/small.ini",
		"gpuarb-rt rt plan --profile=mi210 --profiles=conf/gpus tests/data/rt/small.ini --json",
		"gpuarb-rt rt plan --profile=mi210 --profiles=conf/gpus tests/data/rt/crowd.ini",
		"gpuarb-rt rt plan --profile=mi210 --profiles=conf/gpus tests/data/rt/spread.ini --json",
		"gpuarb-rt rt plan --profile=radeon-vii --profiles=conf/gpus tests/data/rt/shared.ini",
		"gpuarbctl config check conf/gpuarbd.conf conf/tenants.d/50-example.conf",
		"gpuarbctl --complete gpuarbctl mask",
		"gpuarbctl --complete gpuarbctl plan --gp",
		"gpuarbctl --complete bash 3 gpuarbctl plan --cus = 1",
		"gpuarbctl help plan",
		"gpuarbctl rt plan no-program.ini",
	};

	CHECK(chdir(getenv("GPUARB_SOURCE_ROOT")) == 0);
	deny_each_of(lines, sizeof(lines) / sizeof(lines[0]));
}

TEST(verbs_with_a_daemon_end_with_a_sentence)
{
	static const char *const lines[] = {
		"gpuarbctl status",
		"gpuarbctl status --json",
		"gpuarbctl show 1",
		"gpuarbctl show 1 --json",
		"gpuarbctl plan --cus=15 --json",
		"gpuarbctl plan --cus=60",
		"gpuarbctl map",
		"gpuarbctl map 0 --json",
		"gpuarbctl map 0 --svg=/dev/null",
		"gpuarbctl usage",
		"gpuarbctl usage --json",
		"gpuarbctl status --limits",
		"gpuarbctl top",
		"gpuarbctl top --json",
		"gpuarbctl verify",
		"gpuarbctl verify --json",
		"gpuarbctl slots 0",
		"gpuarbctl revoke 99",
		"gpuarbctl resize 1 --cus=15",
		"gpuarbctl run --cus=60 -- true",
		"gpuarbctl mask explain --gpu=0 0xff",
		"gpuarb-rt rt plan --gpu=0 tests/data/rt/small.ini",
	};
	static const char *const starved[] = {
		"gpuarbctl status",
		"gpuarbctl run --cus=15 -- true",
	};
	struct live_lease lease;
	sd_bus *bus;

	rig_new(&rig);
	rig_start(&rig, "--simulate=radeon-vii");
	bus = rig_connect(&rig, 0);
	lease = reserve(bus, 15);
	CHECK(setenv("DBUS_SYSTEM_BUS_ADDRESS", rig.address, 1) == 0);
	deny_each_of(lines, sizeof(lines) / sizeof(lines[0]));
	for (size_t i = 0; i < sizeof(starved) / sizeof(starved[0]); i++)
		deny_descriptors(starved[i]);
	close(lease.holder);
	leave(bus);
	rig_done(&rig);
}
