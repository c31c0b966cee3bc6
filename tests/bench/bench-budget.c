/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the queue budgets of units cost: calls that create a queue, and other ioctls, of a process in a
 * cgroup with a budget and in one without. The floor is the same calls before gpuarb-budget has loaded its
 * programs. The calls go to /dev/null, which the programs take for KFD: the driver's own time is not in
 * them. Where the kernel does not accept the programs, it says why and measures nothing.
 *
 *	GPUARB_BUDGET=… bench-budget        as root
 */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "bench/bench.h"
#include "budget-rig.h"
#include "check-cond.h"
#include "filtered.h"
#include "scratch.h"

#define NULL_DEVICE "1:3\n"
#define PINNED "/sys/fs/bpf/gpuarb-budget"

static struct row {
	const char *name, *key;
	double p50, p99; /* microseconds */
} rows[8];
static size_t n_rows;

/* ---- the helper ------------------------------------------------------------------------------ */

/* Sends the request to a gpuarb-budget of its own. Returns the error of the answer. */
static int ask(const char *sysfs, const struct budget_request *request, struct budget_answer *ret)
{
	char option[128];
	int fds[2];
	pid_t pid;

	snprintf(option, sizeof(option), "--sysfs=%s", sysfs);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		dup2(fds[1], STDIN_FILENO);
		execl(getenv("GPUARB_BUDGET"), "gpuarb-budget", option, NULL);
		_exit(127);
	}
	close(fds[1]);
	CHECK(send(fds[0], request, budget_request_size(request->n), 0) > 0);
	memset(ret, 0, sizeof(*ret));
	CHECK(recv(fds[0], ret, sizeof(*ret), 0) >= (ssize_t)budget_answer_size(0));
	close(fds[0]);
	CHECK(waitpid(pid, NULL, 0) == pid);
	if (ret->r >= 0 && ret->n > 0)
		return ret->rows[0].r;
	return ret->r;
}

/* limit 0: no budget. */
static int set_budget(const char *sysfs, uint64_t cgroup, uint64_t limit, char *why, size_t size)
{
	static struct budget_request request;
	static struct budget_answer answer;
	int r;

	request = (struct budget_request){ .version = BUDGET_VERSION, .n = limit > 0 };
	request.rows[0] = (struct budget_row){ .lease = 1, .cgroup = cgroup, .limit = limit };
	r = ask(sysfs, &request, &answer);
	snprintf(why, size, "%s", *answer.sentence ? answer.sentence : strerror(-r));
	return r;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static void add(const char *name, const char *key, const struct filtered *process,
		enum filtered_command command, int wanted)
{
	uint64_t *nsec = process->shared->nsec;

	CHECK(filtered_after(process, command) == wanted);
	rows[n_rows++] = (struct row){ name, key,
				       (double)bench_quantile(nsec, FILTERED_SAMPLES, 0.5) / 1e3,
				       (double)bench_quantile(nsec, FILTERED_SAMPLES, 0.99) / 1e3 };
}

static int measure(const char *sysfs, const struct unit_rig *unit, const struct unit_rig *other,
		   const struct filtered *process, char *why, size_t size)
{
	int r;

	add("create a queue, no programs (floor)", "create_plain", process, FILTERED_MEASURE,
	    ENOTTY);
	add("another ioctl, no programs (floor)", "other_plain", process, FILTERED_OTHER, ENOTTY);
	r = set_budget(sysfs, other->id, 8, why, size);
	if (r < 0)
		return r;
	add("create a queue, no budget", "create_free", process, FILTERED_MEASURE, ENOTTY);
	add("another ioctl, no budget", "other_free", process, FILTERED_OTHER, ENOTTY);
	r = set_budget(sysfs, unit->id, 8, why, size);
	if (r < 0)
		return r;
	add("create a queue, 0 of 8", "create_capped", process, FILTERED_MEASURE, ENOTTY);
	add("another ioctl, 0 of 8", "other_capped", process, FILTERED_OTHER, ENOTTY);
	return 0;
}

static void print(void)
{
	printf("%-42s %9s %9s %7s\n", "", "p50 us", "p99 us", "ratio");
	for (size_t i = 0; i < n_rows; i++)
		printf("%-42s %9.2f %9.2f %7.2f\n", rows[i].name, rows[i].p50, rows[i].p99,
		       rows[i].p50 / rows[i % 2].p50);
	printf("\n{");
	for (size_t i = 0; i < n_rows; i++)
		printf("%s\"%s\":{\"p50_us\":%.3f,\"p99_us\":%.3f,\"ratio\":%.3f}", i ? "," : "",
		       rows[i].key, rows[i].p50, rows[i].p99, rows[i].p50 / rows[i % 2].p50);
	printf("}\n");
}

static int skip(const char *why)
{
	printf("not measured: %s\n\n{\"unsupported\":true}\n", why);
	return 0;
}

/* A KFD that is /dev/null, without processes. */
static struct scratch make_sysfs(void)
{
	struct scratch sysfs = scratch_new();

	scratch_mkdir(&sysfs, "class");
	scratch_mkdir(&sysfs, "class/kfd");
	scratch_mkdir(&sysfs, "class/kfd/kfd");
	scratch_mkdir(&sysfs, "class/kfd/kfd/proc");
	scratch_write(&sysfs, "class/kfd/kfd/dev", NULL_DEVICE);
	return sysfs;
}

int main(void)
{
	struct unit_rig unit, other;
	struct filtered process;
	struct scratch sysfs;
	char why[512];
	int r;

	if (!getenv("GPUARB_BUDGET"))
		return skip("gpuarb-budget was not built: it needs libbpf, clang and bpftool");
	if (access(PINNED, F_OK) == 0)
		return skip("this machine uses gpuarb-budget");
	if (!unit_rig_new(&unit, "gpuarb-bench") || !unit_rig_new(&other, "gpuarb-bench-other"))
		return skip("no cgroup can be made here");
	bench_pin();
	sysfs = make_sysfs();
	process = filtered_start(false);
	unit_rig_add(&unit, process.pid);
	r = measure(sysfs.path, &unit, &other, &process, why, sizeof(why));
	filtered_end(&process);
	if (r >= 0)
		r = set_budget(sysfs.path, 0, 0, why, sizeof(why));
	unit_rig_done(&unit);
	unit_rig_done(&other);
	scratch_done(&sysfs);
	if (r < 0)
		return skip(why);
	print();
	return 0;
}
