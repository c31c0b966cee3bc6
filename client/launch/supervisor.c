/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/supervisor.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/launch/child.h"
#include "client/output/fail.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"

#define PREFIX "gpuarbctl run: " /* standard error is shared with the command */

static const int watched_signals[] = { SIGCHLD, SIGHUP,  SIGINT,  SIGQUIT,
				       SIGTERM, SIGUSR1, SIGUSR2, 0 };

struct run {
	const struct supervisor *supervisor;
	pid_t child; /* 0: the command does not run */
	int signals; /* a signalfd */
	sigset_t unblocked;
	struct sigaction on_child; /* of SIGCHLD, for the command */
	bool lost;                 /* the lease has ended: the command goes on without it */
	bool ending;               /* the command was told to end, because the lease was revoked */
	uint64_t kill_usec;        /* when to kill it then; UINT64_MAX: never */
	bool acknowledged;         /* the revocation */
	uint64_t resets;           /* of the GPUs of the lease when the command started */
	uint64_t started_usec;
	bool reset; /* the command was told to end, because a GPU was reset … */
	bool again; /* … and was started again after that */
	uint64_t
		failed_usec; /* since when a reset is waited for that explains its failure; 0: none */
	int code;            /* of the last command that ended */
};

static bool is_state(const struct run *run, const char *state)
{
	return strcmp(gpuarb_lease_state(run->supervisor->lease), state) == 0;
}

/* ---- the command --------------------------------------------------------------------------- */

/* Without its supervisor the command has no lease, so it is not left behind. */
__attribute__((noreturn)) static void become_command(const struct run *run, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_RUN_FAILED);
	sigaction(SIGCHLD, &run->on_child, NULL);
	sigprocmask(SIG_SETMASK, &run->unblocked, NULL);
	_exit(run->supervisor->execute(run->supervisor->userdata));
}

static int start(struct run *run)
{
	pid_t parent = getpid();
	int r = run->supervisor->granted(run->supervisor->userdata);

	if (r != EXIT_OK)
		return r;
	fflush(NULL);
	run->child = fork();
	if (run->child == 0)
		become_command(run, parent);
	if (run->child < 0)
		return fail(run->supervisor->command, EXIT_RUN_FAILED,
			    "cannot start a process for %s: %s", run->supervisor->command->rest[0],
			    strerror(errno));
	run->ending = run->acknowledged = run->reset = false;
	run->kill_usec = UINT64_MAX;
	run->resets = gpuarb_lease_resets(run->supervisor->lease);
	run->started_usec = lease_clock_usec();
	run->failed_usec = 0;
	return EXIT_OK;
}

static void reap(struct run *run)
{
	int status;

	if (run->child <= 0 || waitpid(run->child, &status, WNOHANG) != run->child)
		return;
	run->child = 0;
	run->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The terminal sends its signals to the command, too. */
static void forward(const struct run *run, const struct signalfd_siginfo *info)
{
	if (run->child > 0 && info->ssi_code != SI_KERNEL)
		kill(run->child, (int)info->ssi_signo);
}

/* A signal that ends gpuarbctl while no command runs, or 0. */
static int read_signals(struct run *run)
{
	struct signalfd_siginfo info;

	while (read(run->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(run);
		else if (run->child > 0)
			forward(run, &info);
		else
			return (int)info.ssi_signo;
	}
	return 0;
}

/* ---- the lease ----------------------------------------------------------------------------- */

static bool waits_again(const struct run *run)
{
	return run->supervisor->command->options.requeue;
}

static void print_revoked(const struct run *run)
{
	const struct supervisor *s = run->supervisor;

	if (!s->command->quiet && !s->command->json)
		print_line(stderr, PREFIX "lease %" PRIu64 ": %s: ends %s%s",
			   gpuarb_lease_id(s->lease), gpuarb_lease_reason(s->lease),
			   s->command->rest[0],
			   waits_again(run) ? ", which starts again when the lease is granted again"
					    : "");
}

/* The lease must be returned before the deadline, where it would end. */
static uint64_t kill_time(uint64_t deadline)
{
	uint64_t now = lease_clock_usec();

	if (deadline == UINT64_MAX)
		return UINT64_MAX;
	return deadline <= now ? now : now + (deadline - now) / 4 * 3;
}

static void end_command(struct run *run)
{
	if (!run->ending) {
		run->ending = true;
		run->kill_usec = kill_time(gpuarb_lease_deadline(run->supervisor->lease));
		print_revoked(run);
		kill(run->child, SIGTERM);
		kill(run->child, SIGCONT); /* a stopped process does not act on SIGTERM */
	} else if (is_state(run, "revoking") && lease_clock_usec() >= run->kill_usec) {
		run->kill_usec = UINT64_MAX;
		kill(run->child, SIGKILL);
	}
}

/* ---- resets --------------------------------------------------------------------------------- */

#define RESET_KILL_USEC UINT64_C(10000000) /* after SIGTERM */
#define RESET_RUN_USEC UINT64_C(60000000)  /* one that was started again and ran for less is not */
#define RESET_HEARD_USEC UINT64_C(2000000) /* a command may fail before its reset is heard of */

static bool was_reset(const struct run *run)
{
	return run->supervisor->command->restart && !run->lost &&
	       gpuarb_lease_resets(run->supervisor->lease) != run->resets;
}

static void print_reset(const struct run *run, const char *what)
{
	const struct supervisor *s = run->supervisor;

	if (!s->command->quiet && !s->command->json)
		print_line(stderr, PREFIX "lease %" PRIu64 ": a GPU was reset: %s %s",
			   gpuarb_lease_id(s->lease), s->command->rest[0], what);
}

/* The command has no queue any more, and may wait for one for ever. */
static void end_reset(struct run *run)
{
	if (!run->reset) {
		run->reset = true;
		run->kill_usec = lease_clock_usec() + RESET_KILL_USEC;
		kill(run->child, SIGTERM);
		kill(run->child, SIGCONT);
	} else if (lease_clock_usec() >= run->kill_usec) {
		run->kill_usec = UINT64_MAX;
		kill(run->child, SIGKILL);
	}
}

/* The command has ended. True: *ret is the exit code. */
static bool act_on_end(struct run *run, int *ret)
{
	uint64_t now = lease_clock_usec();

	if (!was_reset(run)) {
		if (run->failed_usec == 0)
			run->failed_usec = now;
		return !run->supervisor->command->restart || run->lost || run->code == EXIT_OK ||
		       now >= run->failed_usec + RESET_HEARD_USEC;
	}
	if (gpuarb_lease_resetting(run->supervisor->lease))
		return false;
	if (!run->reset && run->code == EXIT_OK)
		return true;
	if (run->failed_usec == 0)
		run->failed_usec = now;
	if (run->again && run->failed_usec < run->started_usec + RESET_RUN_USEC) {
		print_reset(run,
			    "ran for less than a minute since the last reset, and is not started "
			    "again");
		return true;
	}
	print_reset(run, "is started again");
	run->again = true;
	*ret = start(run);
	return *ret != EXIT_OK;
}

/* Nothing of the command uses the GPU any more. The daemon counts its other processes by itself. */
static void acknowledge(struct run *run)
{
	int r;

	run->acknowledged = true;
	r = gpuarb_lease_acknowledge(run->supervisor->lease);
	if (r < 0 && r != -ENOENT)
		(void)fail_asked(run->supervisor->command, r);
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* Milliseconds until the command is to be killed; -1: it is not. */
static int timeout_of(const struct run *run)
{
	uint64_t now = lease_clock_usec(), msec;

	if (run->child == 0)
		return run->failed_usec > 0 && !was_reset(run) ? (int)(RESET_HEARD_USEC / 1000)
							       : -1;
	if (run->kill_usec == UINT64_MAX || (!run->reset && !is_state(run, "revoking")))
		return -1;
	if (run->kill_usec <= now)
		return 0;
	msec = (run->kill_usec - now) / 1000 + 1;
	return msec > INT32_MAX ? INT32_MAX : (int)msec;
}

/* Waits for an event. A signal that ends gpuarbctl, 0, or a negative errno. */
static int wait_event(struct run *run)
{
	struct pollfd fds[] = {
		{ .fd = run->signals, .events = POLLIN },
		{ .fd = run->lost ? -1 : gpuarb_lease_fd(run->supervisor->lease),
		  .events = POLLIN },
	};

	if (poll(fds, ARRAY_SIZE(fds), timeout_of(run)) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[1].revents && gpuarb_lease_dispatch(run->supervisor->lease, NULL, NULL) < 0)
		run->lost = true;
	return fds[0].revents ? read_signals(run) : 0;
}

/* Acts on the state of the lease and of the command. True: *ret is the exit code. */
static bool act(struct run *run, int *ret)
{
	if (run->child > 0) {
		if (!run->lost && (run->ending || is_state(run, "revoking")))
			end_command(run);
		else if (was_reset(run))
			end_reset(run);
		return false;
	}
	*ret = run->lost && run->ending ? fail_lost(run->supervisor->command, EXIT_RUN_FAILED,
						    run->supervisor->lease)
					: run->code;
	if (!run->ending)
		return act_on_end(run, ret);
	if (run->lost)
		return true;
	if (is_state(run, "revoking") && !run->acknowledged)
		acknowledge(run);
	if (!waits_again(run))
		return true;
	if (!is_state(run, "granted") && !is_state(run, "inactive"))
		return false;
	*ret = start(run);
	return *ret != EXIT_OK;
}

int supervisor_run(const struct supervisor *supervisor)
{
	const struct sigaction deliver = { .sa_handler = SIG_DFL };
	struct run run = { .supervisor = supervisor };
	int r, code;

	/* Where the caller ignores SIGCHLD, the kernel would reap the command and tell nobody. */
	sigaction(SIGCHLD, &deliver, &run.on_child);
	run.signals = signals_open(supervisor->command, watched_signals, &run.unblocked);
	if (run.signals < 0)
		return EXIT_RUN_FAILED;
	code = start(&run);
	if (code != EXIT_OK)
		return code;
	do
		r = wait_event(&run);
	while (r == 0 && !act(&run, &code));
	if (r < 0)
		return fail(supervisor->command, EXIT_RUN_FAILED, "cannot wait for events: %s",
			    strerror(-r));
	return r > 0 ? 128 + r : code;
}
