/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/output/fail.h"
#include "client/launch/grant.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"

/* From here on the two signals that end a program are read, not taken. */
static int read_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static void changed(struct gpuarb_lease *lease, void *userdata)
{
	const struct command *command = userdata;
	const char *state = gpuarb_lease_state(lease);
	char why[256];

	if (command->json)
		return;
	lease_text_why(state, 0, gpuarb_lease_reason(lease), gpuarb_lease_deadline(lease), why,
		       sizeof(why));
	print_line(stdout, "lease %" PRIu64 ": %s, generation %" PRIu64 "%s%s",
		   gpuarb_lease_id(lease), state, gpuarb_lease_generation(lease), *why ? ": " : "",
		   why);
	for (size_t i = 0; i < gpuarb_lease_partitions(lease); i++)
		print_grant(stdout, "  ", gpuarb_lease_partition(lease, i));
	fflush(stdout);
}

static int lost(const struct command *command, const struct gpuarb_lease *lease)
{
	const char *reason = gpuarb_lease_reason(lease);

	return fail(command, EXIT_LOST, "lease %" PRIu64 " is lost: %s", gpuarb_lease_id(lease),
		    *reason ? reason : "gpuarbd was stopped, or ended and nobody kept it");
}

/* This process has no queue that could be behind: an adaptable lease is followed by saying so.
 * Of one that is being revoked that would be its end. */
static int follow(const struct command *command, const struct session *session,
		  struct gpuarb_lease *lease, uint64_t *generation)
{
	uint64_t now = gpuarb_lease_generation(lease);
	int r;

	if (!command->options.adaptable || now == *generation ||
	    strcmp(gpuarb_lease_state(lease), "granted") != 0)
		return EXIT_OK;

	*generation = now;
	r = gpuarb_lease_acknowledge(lease);
	return r < 0 && r != -ENOENT ? fail_asked(command, session->gpuarb, r) : EXIT_OK;
}

/* Holds the lease until a signal comes or it is gone. */
static int hold(struct command *command, const struct session *session, struct gpuarb_lease *lease,
		int signals)
{
	uint64_t generation = gpuarb_lease_generation(lease);
	struct pollfd fds[] = {
		{ .fd = signals, .events = POLLIN },
		{ .fd = gpuarb_lease_fd(lease), .events = POLLIN },
	};
	int r;

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return fail(command, EXIT_FAILED, "cannot wait: %s", strerror(errno));
		if (fds[0].revents)
			return EXIT_OK;
		if (!fds[1].revents)
			continue;
		r = gpuarb_lease_dispatch(lease, changed, command);
		if (r < 0)
			return lost(command, lease);
		r = follow(command, session, lease, &generation);
		if (r != EXIT_OK)
			return r;
	}
}

int run_reserve(struct command *command)
{
	_cleanup_(session_done) struct session session = { 0 };
	_cleanup_(grant_closep) struct gpuarb_lease *lease = NULL;
	int r, signals;

	r = grant_reserve(command, &session, "", &lease);
	if (r != EXIT_OK)
		return r;

	/* Before that a signal ends the program, and with it what was asked. */
	signals = read_signals();
	if (signals < 0)
		return fail(command, EXIT_FAILED, "cannot watch for signals: %s", strerror(errno));

	r = grant_tell(command, &session, lease, "", stdout);
	if (r == EXIT_OK)
		r = hold(command, &session, lease, signals);
	close(signals);
	return r;
}
