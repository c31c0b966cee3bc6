/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "client/output/fail.h"
#include "client/launch/grant.h"
#include "client/launch/child.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"

struct holding {
	const struct command *command;
	reserve_changed_t *changed;
	int signals;
	int r; /* of changed */
};

/* Waits until the reader of the output has made room; false: a signal arrived before. */
static bool has_room(int signals)
{
	struct pollfd fds[] = {
		{ .fd = signals, .events = POLLIN },
		{ .fd = STDOUT_FILENO, .events = POLLOUT },
	};

	(void)poll(fds, ARRAY_SIZE(fds), -1);
	return !fds[0].revents;
}

static void print_change(struct gpuarb_lease *lease, void *userdata)
{
	struct holding *holding = userdata;
	const char *state = gpuarb_lease_state(lease);
	char why[256];

	if (holding->changed)
		holding->r = holding->changed(holding->command, lease);
	if (holding->command->json || !has_room(holding->signals))
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

static bool is_state(const struct gpuarb_lease *lease, const char *state)
{
	return strcmp(gpuarb_lease_state(lease), state) == 0;
}

/* This process has no queues, so it can acknowledge a new mask of an adaptable lease at once. An
 * acknowledgement ends a lease that is being revoked, except with --requeue. */
static int acknowledge(const struct command *command, struct gpuarb_lease *lease,
		       uint64_t *generation)
{
	uint64_t now = gpuarb_lease_generation(lease);
	int r;

	if (now == *generation || !((command->options.adaptable && is_state(lease, "granted")) ||
				    (command->options.requeue && is_state(lease, "revoking"))))
		return EXIT_OK;

	*generation = now;
	r = gpuarb_lease_acknowledge(lease);
	return r < 0 && r != -ENOENT ? fail_asked(command, r) : EXIT_OK;
}

/* Holds the lease until a signal arrives or the lease is lost. */
static int hold(struct command *command, struct gpuarb_lease *lease, reserve_changed_t *changed,
		int signals)
{
	struct holding holding = { command, changed, signals, EXIT_OK };
	uint64_t generation = gpuarb_lease_generation(lease);
	struct pollfd fds[] = {
		{ .fd = signals, .events = POLLIN },
		{ .fd = gpuarb_lease_fd(lease), .events = POLLIN },
	};
	int r;

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return fail(command, EXIT_FAILED, "cannot wait for events: %s",
				    strerror(errno));
		if (fds[0].revents)
			return EXIT_OK;
		if (!fds[1].revents)
			continue;
		r = gpuarb_lease_dispatch(lease, print_change, &holding);
		if (r < 0)
			return fail_lost(command, EXIT_LOST, lease);
		if (holding.r != EXIT_OK)
			return holding.r;
		r = acknowledge(command, lease, &generation);
		if (r != EXIT_OK)
			return r;
	}
}

int reserve_and_hold(struct command *command, reserve_changed_t *changed)
{
	static const int ending[] = { SIGINT, SIGTERM, 0 };
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;
	int r, signals;

	r = grant_reserve(command, "", &lease);
	if (r != EXIT_OK)
		return r;

	/* Until here a signal ends the program and with it the lease. */
	signals = signals_open(command, ending, NULL);
	if (signals < 0)
		return EXIT_FAILED;

	r = changed ? changed(command, lease) : EXIT_OK;
	if (r == EXIT_OK && has_room(signals))
		r = grant_print(command, lease, "", stdout);
	if (r == EXIT_OK)
		r = hold(command, lease, changed, signals);
	close(signals);
	return r;
}

int run_reserve(struct command *command)
{
	return reserve_and_hold(command, NULL);
}
