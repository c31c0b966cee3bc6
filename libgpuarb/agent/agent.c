/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/agent/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How long a queue of which nobody told may be without its mask: sysfs tells of none. Longer and
 * longer while the driver refuses. */
#define LOOK_USEC UINT64_C(100000)
#define LOOK_USEC_MAX UINT64_C(10000000)

/* ---- what both threads know -------------------------------------------------------------- */

/* What there is to apply; failures are noted in gpuarb. */
static void describe(const struct agent *agent, struct gpuarb *gpuarb, struct apply *ret)
{
	*ret = agent->seat;
	ret->gpuarb = gpuarb;
	ret->lease = agent->now.info.id;
	ret->state = agent->now.info.state;
	ret->partitions = agent->now.info.partitions;
	ret->n = agent->now.info.n_partitions;
	ret->mask_cache = agent->mask_cache;
	ret->yields = true;
}

void agent_enter(struct agent *agent, struct gpuarb *gpuarb, struct apply *ret)
{
	pthread_mutex_lock(&agent->lock);
	describe(agent, gpuarb, ret);
}

void agent_leave(struct agent *agent)
{
	pthread_mutex_unlock(&agent->lock);
}

/* The sentence is copied where there is memory for it. */
static void note(struct agent *agent, int error, const char *sentence)
{
	free(agent->sentence);
	agent->error = error;
	agent->sentence = error < 0 ? strdup(sentence) : NULL;
}

void agent_applied(struct agent *agent)
{
	agent->applied = agent->now.info.generation;
	note(agent, 0, "");
}

/* ---- the thread -------------------------------------------------------------------------- */

/* What came of masking queues. */
static int settle(struct agent *agent, int r)
{
	struct gpuarb *gpuarb = agent->follower->gpuarb;

	r = done(gpuarb, r);
	if (r >= 0)
		agent_applied(agent);
	else
		note(agent, r, gpuarb_last_error(gpuarb));
	return r;
}

/* Takes the lease as it is now, and all queues with it. */
static int take(struct agent *agent, struct snapshot *snapshot)
{
	struct apply apply;
	int r = 0;

	begin(agent->follower->gpuarb);
	pthread_mutex_lock(&agent->lock);
	snapshot_clear(&agent->now);
	agent->now = *snapshot;
	*snapshot = (struct snapshot){ .info.state = "" };
	describe(agent, agent->follower->gpuarb, &apply);
	if (agent->error < 0 || agent->applied != agent->now.info.generation)
		r = settle(agent, apply_all(&apply));
	pthread_mutex_unlock(&agent->lock);
	return r;
}

/* Masks what came since; all, where that failed before. */
static void look(struct agent *agent)
{
	struct apply apply;
	int r;

	begin(agent->follower->gpuarb);
	agent_enter(agent, agent->follower->gpuarb, &apply);
	r = settle(agent, agent->error < 0 ? apply_all(&apply) : apply_missing(&apply));
	agent_leave(agent);

	agent->pause = r >= 0 ? LOOK_USEC : agent->pause * 2;
	if (agent->pause > LOOK_USEC_MAX)
		agent->pause = LOOK_USEC_MAX;
}

/* A lease that is being revoked would be taken at once: that is for the program to say. */
static int acknowledge(struct agent *agent)
{
	uint64_t applied;
	bool revoking;
	int r;

	pthread_mutex_lock(&agent->lock);
	applied = agent->applied;
	revoking = strcmp(agent->now.info.state, "revoking") == 0;
	pthread_mutex_unlock(&agent->lock);

	if (applied <= agent->acknowledged || revoking)
		return 0;
	r = follower_acknowledge(agent->follower, applied);
	if (r >= 0)
		agent->acknowledged = applied;
	return r;
}

/* The queues keep what they have. */
static void end(struct agent *agent)
{
	char sentence[64];

	snprintf(sentence, sizeof(sentence), "lease %" PRIu64 " has ended", agent->follower->id);
	pthread_mutex_lock(&agent->lock);
	agent->now.info.state = "ending";
	note(agent, -ENOENT, sentence);
	pthread_mutex_unlock(&agent->lock);
}

static int turn(struct agent *agent)
{
	_cleanup_(snapshot_clear) struct snapshot snapshot = { .info.state = "" };
	int r = 0;

	if (follower_due(agent->follower)) {
		r = follower_read(agent->follower, &snapshot);
		if (r >= 0)
			(void)take(agent, &snapshot);
	} else {
		look(agent);
	}
	if (r >= 0)
		r = acknowledge(agent);
	if (r == -ENOENT || r == -ECANCELED)
		return r;

	r = follower_wait(agent->follower, &agent->stop, deadline_after(agent->pause));
	return r == -ECANCELED ? r : 0;
}

static void *run(void *userdata)
{
	struct agent *agent = userdata;
	int r;

	do
		r = turn(agent);
	while (r >= 0);
	if (r == -ENOENT)
		end(agent);
	return NULL;
}

/* ---- its beginning and end --------------------------------------------------------------- */

static struct agent *agent_free(struct agent *agent)
{
	if (!agent)
		return NULL;

	follower_free(agent->follower);
	snapshot_clear(&agent->now);
	close_fd(&agent->stop);
	for (size_t i = 0; i < AGENT_VARIABLES; i++)
		free(agent->values[i]);
	free(agent->sentence);
	free(agent);
	return NULL;
}
DEFINE_CLEANUP(struct agent *, agent_free)

/* What is looked up in the environment. Not in the thread: the program may write to it then. */
static const char *const variables[AGENT_VARIABLES] = { "HSA_CU_MASK", "ROC_GLOBAL_CU_MASK",
							"GPUARB_LEASE" };

static const char *get(void *userdata, const char *name)
{
	const struct agent *agent = userdata;

	for (size_t i = 0; i < AGENT_VARIABLES; i++)
		if (strcmp(variables[i], name) == 0)
			return agent->values[i];
	return NULL;
}

static int take_seat(struct agent *agent, const struct apply *seat)
{
	for (size_t i = 0; i < AGENT_VARIABLES; i++) {
		const char *value = seat->get(seat->userdata, variables[i]);

		agent->values[i] = value ? strdup(value) : NULL;
		if (value && !agent->values[i])
			return -ENOMEM;
	}
	agent->seat = *seat;
	agent->seat.get = get;
	agent->seat.userdata = agent;
	return 0;
}

static int agent_new(struct gpuarb_lease *lease, const struct apply *seat, struct agent **ret)
{
	_cleanup_(agent_freep) struct agent *agent = calloc(1, sizeof(*agent));
	int r;

	if (!agent)
		return -ENOMEM;

	agent->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (agent->stop < 0)
		return fail(lease->gpuarb, -errno, "no room for the agent's file descriptor: %s",
			    strerror(errno));
	pthread_mutex_init(&agent->lock, NULL);
	agent->pid = getpid();
	agent->pause = LOOK_USEC;
	agent->mask_cache = &lease->mask_cache;
	agent->now.info.state = "";
	r = take_seat(agent, seat);
	if (r < 0)
		return r;
	r = follower_new(lease->gpuarb->address, lease->info.id, &agent->stop, &agent->follower);
	if (r < 0)
		return r;
	agent->follower->gpuarb->answer_usec = lease->gpuarb->answer_usec;
	*ret = TAKE_PTR(agent);
	return 0;
}

/* Whether one agent can follow for all of the lease. */
static int check(struct gpuarb *gpuarb, const struct gpuarb_lease_info *info, const char *sys)
{
	char kfd[64];

	if (!info->adaptable)
		return fail(gpuarb, -EINVAL,
			    "lease %" PRIu64 " is not adaptable, so nobody changes "
			    "it: ask for it with options.adaptable",
			    info->id);
	for (size_t i = 0; i < info->n_partitions; i++)
		if (info->partitions[i].processes > 1)
			return fail(gpuarb, -EINVAL,
				    "lease %" PRIu64 " is for %" PRIu32
				    " processes on GPU %s, and an agent follows for its own alone: "
				    "ask for a lease in each",
				    info->id, info->partitions[i].processes,
				    info->partitions[i].gpu);

	snprintf(kfd, sizeof(kfd), "%s/class/kfd/kfd", sys);
	if (info->n_partitions > 0 && info->partitions[0].kfd_gpu_id != 0 && access(kfd, F_OK) < 0)
		return fail(gpuarb, -EOPNOTSUPP, "this process does not see KFD: there is no %s",
			    kfd);
	return 0;
}

/* The first turn, in the program's own thread: who calls is told what does not work. */
static int first_turn(struct agent *agent, struct gpuarb *gpuarb)
{
	_cleanup_(snapshot_clear) struct snapshot snapshot = { .info.state = "" };
	struct gpuarb *own = agent->follower->gpuarb;
	int r;

	r = follower_read(agent->follower, &snapshot);
	if (r >= 0) {
		r = check(gpuarb, &snapshot.info, agent->seat.sys);
		if (r < 0)
			return r;
		r = take(agent, &snapshot);
	}
	if (r >= 0)
		r = acknowledge(agent);
	return r < 0 ? fail(gpuarb, r, "%s", gpuarb_last_error(own)) : 0;
}

/* With all signals blocked: they are the program's. */
static int start_thread(struct agent *agent, struct gpuarb *gpuarb)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&agent->thread, NULL, run, agent);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r == 0 ? 0 : fail(gpuarb, -r, "cannot start a thread: %s", strerror(r));
}

int agent_start(struct gpuarb_lease *lease, const struct apply *seat)
{
	_cleanup_(agent_freep) struct agent *agent = NULL;
	int r;

	if (lease->agent)
		return fail(lease->gpuarb, -EALREADY, "lease %" PRIu64 " has its agent",
			    lease->info.id);

	r = agent_new(lease, seat, &agent);
	if (r >= 0)
		r = first_turn(agent, lease->gpuarb);
	if (r >= 0)
		r = start_thread(agent, lease->gpuarb);
	if (r >= 0)
		lease->agent = TAKE_PTR(agent);
	return r;
}

void agent_stop(struct agent *agent)
{
	if (!agent)
		return;

	/* What a forked child has of it is a picture of the middle of something. */
	if (agent->pid != getpid())
		return;

	eventfd_write(agent->stop, 1);
	pthread_join(agent->thread, NULL);
	pthread_mutex_destroy(&agent->lock);
	agent_free(agent);
}

int agent_error(struct agent *agent, struct gpuarb *gpuarb)
{
	int r;

	pthread_mutex_lock(&agent->lock);
	r = agent->error;
	if (r < 0)
		r = fail(gpuarb, r, "%s", agent->sentence ? agent->sentence : "out of memory");
	pthread_mutex_unlock(&agent->lock);
	return r;
}

bool agent_has_applied(struct agent *agent, uint64_t generation)
{
	bool applied;

	pthread_mutex_lock(&agent->lock);
	applied = agent->applied >= generation;
	pthread_mutex_unlock(&agent->lock);
	return applied;
}
