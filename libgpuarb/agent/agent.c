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

/* sysfs sends no event for a new queue. Where ioctl() is not replaced, the thread polls for new queues,
 * and everywhere it polls after a failure. While that lasts the interval grows to the second value. */
#define POLL_USEC UINT64_C(100000)
#define POLL_USEC_MAX UINT64_C(10000000)

/* Describes the process and the present lease. Failures of applying it are noted in gpuarb. */
static void describe(const struct agent *agent, struct gpuarb *gpuarb, struct apply *ret)
{
	*ret = agent->process;
	ret->gpuarb = gpuarb;
	ret->lease = &agent->now.info;
	ret->mask_cache = agent->mask_cache;
	ret->override_own = ret->ignore_priority = true;
}

/* Without memory the sentence is NULL. */
static void set_error(struct agent *agent, int error, const char *sentence)
{
	free(agent->sentence);
	agent->error = error;
	agent->sentence = error < 0 ? strdup(sentence) : NULL;
}

static void set_applied(struct agent *agent)
{
	agent->applied = agent->now.info.generation;
	set_error(agent, 0, "");
}

/* ---- the thread -------------------------------------------------------------------------- */

/* The agents of this process. */
static struct agent *agents;

/* Keeps the result of masking the queues, which is noted in gpuarb. */
static int note_result(struct agent *agent, struct gpuarb *gpuarb, int r)
{
	r = handle_end(gpuarb, r);
	if (r >= 0)
		set_applied(agent);
	else
		set_error(agent, r, gpuarb_last_error(gpuarb));
	return r;
}

/* When to search for new queues after this result. */
static uint64_t next_poll(const struct agent *agent, int r)
{
	if (r >= 0)
		return agent->process.driver->sees_queues() ? UINT64_MAX : POLL_USEC;
	if (agent->error == 0 || agent->poll_usec == UINT64_MAX)
		return POLL_USEC;
	return agent->poll_usec < POLL_USEC_MAX / 2 ? agent->poll_usec * 2 : POLL_USEC_MAX;
}

/* Masks the queues whose state is not right. */
static int mask_queues(struct agent *agent)
{
	struct gpuarb *gpuarb = agent->follower->gpuarb;
	struct apply apply;
	int r;

	describe(agent, gpuarb, &apply);
	r = apply_missing(&apply);
	agent->poll_usec = next_poll(agent, r);
	return note_result(agent, gpuarb, r);
}

/* Takes over the new state of the lease and masks the queues. */
static int take(struct agent *agent, struct lease_copy *copy)
{
	struct kfd_held held;
	int r;

	handle_begin(agent->follower->gpuarb);
	kfd_lock(&held);
	lease_copy_clear(&agent->now);
	agent->now = *copy;
	*copy = (struct lease_copy){ .info.state = "" };
	r = mask_queues(agent);
	kfd_unlock(&held);
	return r;
}

/* Masks queues that were created in another way than by ioctl(). */
static void mask_new_queues(struct agent *agent)
{
	struct kfd_held held;

	handle_begin(agent->follower->gpuarb);
	kfd_lock(&held);
	(void)mask_queues(agent);
	kfd_unlock(&held);
}

/* To acknowledge a revocation ends the lease at once, so that is left to the program. */
static int acknowledge(struct agent *agent)
{
	struct kfd_held held;
	uint64_t applied;
	bool due;

	kfd_lock(&held);
	applied = agent->applied;
	due = applied == agent->now.info.generation &&
	      strcmp(agent->now.info.state, "revoking") != 0;
	kfd_unlock(&held);
	return due ? follower_acknowledge(agent->follower, applied) : 0;
}

/* Nothing changes the queues any more: they keep their masks, and are not left paused. */
static void retire(struct agent *agent)
{
	struct agent **p = &agents;

	while (*p && *p != agent)
		p = &(*p)->next;
	if (*p)
		*p = agent->next;
	mask_cache_resume(agent->mask_cache, agent->process.driver);
}

static void end(struct agent *agent)
{
	char sentence[64];
	struct kfd_held held;

	snprintf(sentence, sizeof(sentence), "lease %" PRIu64 " has ended", agent->follower->id);
	kfd_lock(&held);
	agent->now.info.state = "ending";
	set_error(agent, -ENOENT, sentence);
	retire(agent);
	kfd_unlock(&held);
}

static int turn(struct agent *agent)
{
	_cleanup_(lease_copy_clear) struct lease_copy copy = { .info.state = "" };
	int r = 0;

	if (follower_due(agent->follower)) {
		r = follower_read(agent->follower, &copy);
		if (r >= 0)
			(void)take(agent, &copy);
	} else {
		mask_new_queues(agent);
	}
	if (r >= 0)
		r = acknowledge(agent);
	if (r == -ENOENT || r == -ECANCELED)
		return r;

	r = follower_wait(agent->follower, &agent->stop, deadline_after(agent->poll_usec));
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

static void agent_free(struct agent *agent)
{
	struct kfd_held held;

	kfd_lock(&held);
	retire(agent);
	kfd_unlock(&held);
	follower_free(agent->follower);
	lease_copy_clear(&agent->now);
	close_fd(&agent->stop);
	for (size_t i = 0; i < AGENT_VARIABLES; i++)
		free(agent->values[i]);
	free(agent->sentence);
	free(agent);
}
DEFINE_CLEANUP(struct agent *, agent_free)

/* The variables that apply.c reads. They are copied, because the program may change its environment
 * while the thread runs. */
static const char *const variables[AGENT_VARIABLES] = { "HSA_CU_MASK", "ROC_GLOBAL_CU_MASK",
							"GPUARB_LEASE" };

static const char *get_variable(void *userdata, const char *name)
{
	const struct agent *agent = userdata;

	for (size_t i = 0; i < AGENT_VARIABLES; i++)
		if (strcmp(variables[i], name) == 0)
			return agent->values[i];
	return NULL;
}

static int copy_process(struct agent *agent, const struct apply *process)
{
	for (size_t i = 0; i < AGENT_VARIABLES; i++) {
		const char *value = process->get(process->userdata, variables[i]);

		agent->values[i] = value ? strdup(value) : NULL;
		if (value && !agent->values[i])
			return -ENOMEM;
	}
	agent->process = *process;
	agent->process.get = get_variable;
	agent->process.userdata = agent;
	return 0;
}

static int agent_new(struct gpuarb_lease *lease, const struct apply *process, struct agent **ret)
{
	_cleanup_(agent_freep) struct agent *agent = calloc(1, sizeof(*agent));
	int r;

	if (!agent)
		return -ENOMEM;

	agent->pid = getpid();
	agent->poll_usec = POLL_USEC;
	agent->mask_cache = &lease->mask_cache;
	agent->now.info.state = "";
	agent->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (agent->stop < 0)
		return fail(lease->gpuarb, -errno, "cannot create an eventfd: %s", strerror(errno));
	r = copy_process(agent, process);
	if (r >= 0)
		r = follower_new(lease->gpuarb->address, lease->info.id, &agent->stop,
				 &agent->follower);
	if (r < 0)
		return r;
	agent->follower->gpuarb->answer_usec = lease->gpuarb->answer_usec;
	*ret = TAKE_PTR(agent);
	return 0;
}

/* Whether the agent of one process can follow the lease. */
static int check(struct gpuarb *gpuarb, const struct gpuarb_lease_info *info, const char *sys)
{
	char kfd[64];

	if (!info->adaptable)
		return fail(gpuarb, -EINVAL,
			    "lease %" PRIu64 " is not adaptable, so its masks do not change: set "
			    "options.adaptable",
			    info->id);
	for (size_t i = 0; i < info->n_partitions; i++)
		if (info->partitions[i].processes > 1)
			return fail(gpuarb, -EINVAL,
				    "lease %" PRIu64 " is for %" PRIu32
				    " processes on GPU %s, and an agent masks the queues of one: "
				    "reserve a lease in each process",
				    info->id, info->partitions[i].processes,
				    info->partitions[i].gpu);

	snprintf(kfd, sizeof(kfd), "%s/class/kfd/kfd", sys);
	if (info->n_partitions > 0 && info->partitions[0].kfd_gpu_id != 0 && access(kfd, F_OK) < 0)
		return fail(gpuarb, -EOPNOTSUPP, "this process does not see KFD: %s does not exist",
			    kfd);
	return 0;
}

/* The first turn runs in the thread of the program, so that gpuarb_lease_start_agent() can fail. */
static int first_turn(struct agent *agent, struct gpuarb *gpuarb)
{
	_cleanup_(lease_copy_clear) struct lease_copy copy = { .info.state = "" };
	struct gpuarb *own = agent->follower->gpuarb;
	int r;

	r = follower_read(agent->follower, &copy);
	if (r >= 0) {
		r = check(gpuarb, &copy.info, agent->process.sys);
		if (r < 0)
			return r;
		r = take(agent, &copy);
	}
	if (r >= 0)
		r = acknowledge(agent);
	return r < 0 ? fail(gpuarb, r, "%s", gpuarb_last_error(own)) : 0;
}

/* The thread blocks all signals: they are for the program. */
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

/* ---- called by the program's thread ------------------------------------------------------ */

static bool has_applied(struct agent *agent, uint64_t generation)
{
	struct kfd_held held;
	bool applied;

	kfd_lock(&held);
	applied = agent->applied >= generation;
	kfd_unlock(&held);
	return applied;
}

static void stop(struct agent *agent)
{
	/* A forked child has no such thread, and its copy may be inconsistent. */
	if (agent->pid != getpid())
		return;

	eventfd_write(agent->stop, 1);
	pthread_join(agent->thread, NULL);
	agent_free(agent);
}

static const struct agent_calls agent_calls = {
	.stop = stop,
	.has_applied = has_applied,
	.describe = describe,
	.applied = set_applied,
};

/* ---- called by ioctl() of the program, with kfd_lock() ------------------------------------- */

/* The partition on this GPU, or their number. */
static size_t find_partition(const struct agent *agent, uint32_t kfd_gpu_id)
{
	size_t i = 0;

	while (i < agent->now.info.n_partitions &&
	       agent->now.info.partitions[i].kfd_gpu_id != kfd_gpu_id)
		i++;
	return i;
}

/* The handle of the follower is for the thread, so failures are noted in another one. */
static int created(int, uint32_t queue, uint32_t kfd_gpu_id)
{
	struct gpuarb gpuarb = { .references = 1 };
	int r = 0;

	for (struct agent *agent = agents; agent && r >= 0; agent = agent->next) {
		struct apply apply;

		if (find_partition(agent, kfd_gpu_id) == agent->now.info.n_partitions)
			continue;
		describe(agent, &gpuarb, &apply);
		r = apply_queue(&apply, queue);
	}
	handle_begin(&gpuarb);
	return r;
}

static int mask_own(int, uint32_t queue, const struct mask *own)
{
	struct gpuarb gpuarb = { .references = 1 };
	int r = -ENOENT;

	for (struct agent *agent = agents; agent && r == -ENOENT; agent = agent->next)
		for (size_t i = 0; i < agent->now.info.n_partitions && r == -ENOENT; i++) {
			struct apply apply;

			describe(agent, &gpuarb, &apply);
			r = apply_own(&apply, i, queue, own->word, own->words);
			if (r == -ERANGE)
				r = apply_own(&apply, i, queue, NULL, 0);
		}
	handle_begin(&gpuarb);
	return r;
}

static void forked(void)
{
	agents = NULL;
}

static const struct kfd_hooks kfd_hooks = { .created = created,
					    .mask = mask_own,
					    .forked = forked };

int agent_start(struct gpuarb_lease *lease, const struct apply *process)
{
	_cleanup_(agent_freep) struct agent *agent = NULL;
	struct kfd_held held;
	int r;

	if (lease->agent)
		return fail(lease->gpuarb, -EALREADY, "lease %" PRIu64 " has an agent already",
			    lease->info.id);

	r = agent_new(lease, process, &agent);
	if (r < 0)
		return r;
	kfd_lock(&held);
	agent->next = agents;
	agents = agent;
	kfd_hook(&kfd_hooks);
	kfd_unlock(&held);
	r = first_turn(agent, lease->gpuarb);
	if (r >= 0)
		r = start_thread(agent, lease->gpuarb);
	if (r < 0)
		return r;

	lease->agent = TAKE_PTR(agent);
	lease->agent_calls = &agent_calls;
	return 0;
}

GPUARB_EXPORT int gpuarb_lease_start_agent(struct gpuarb_lease *lease)
{
	struct apply process;
	int r;

	HANDLE_BEGIN(lease, lease->gpuarb);
	r = apply_this_process(lease->gpuarb, &process);
	return handle_end(lease->gpuarb, r < 0 ? r : agent_start(lease, &process));
}

GPUARB_EXPORT int gpuarb_lease_agent_error(struct gpuarb_lease *lease)
{
	struct agent *agent;
	struct kfd_held held;
	int r;

	HANDLE_BEGIN(lease, lease->gpuarb);
	agent = lease->agent;
	if (!agent)
		return handle_end(lease->gpuarb,
				  fail(lease->gpuarb, -EBADFD, "lease %" PRIu64 " has no agent",
				       lease->info.id));

	kfd_lock(&held);
	r = agent->error;
	if (r < 0)
		r = fail(lease->gpuarb, r, "%s",
			 agent->sentence ? agent->sentence : "out of memory");
	kfd_unlock(&held);
	return handle_end(lease->gpuarb, r);
}
