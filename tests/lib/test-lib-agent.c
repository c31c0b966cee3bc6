/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gpuarb_lease_start_agent(): when it fails, and what its thread masks, reports and
 * acknowledges. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "dbus/names.h"
#include "lib-rig.h"
#include "libgpuarb/agent/agent.h"
#include "scratch.h"

#define LEASE GPUARB_PATH_LEASE "/17"

/* Shared with the process of the fake daemon. */
struct play {
	bool adaptable, gone;
	uint32_t processes, kfd_gpu_id;
	uint64_t generation;
	const char *state;
	int refused;           /* the errno of the driver for every queue; 0: none */
	unsigned masked;       /* calls of the driver */
	bool paused;           /* what the daemon wants */
	bool stopped[2];       /* what the driver was told, by queue */
	int turn_refused;      /* its errno; 0: none */
	bool sees_queues;      /* as if ioctl() was replaced */
	uint64_t acknowledged; /* the last generation */
	unsigned acknowledgements;
	unsigned unsaved; /* so many acknowledgements are refused with NotSaved */
};

static struct play *play;
static struct scratch tree;
static int asked[2]; /* a pipe: one byte for each call of the driver */

/* ---- the daemon ------------------------------------------------------------------------- */

static int answer_reserve(sd_bus_message *call)
{
	sd_bus_message *reply = fake_reply(call);
	int pair[2], r;

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK(sd_bus_message_append(reply, "ohs", LEASE, pair[0], "granted") >= 0);
	fake_append_partitions(reply, 30, play->kfd_gpu_id);
	r = fake_send(reply);
	close(pair[0]); /* the other end stays open until this process ends */
	return r;
}

static int append_partition(sd_bus_message *m)
{
	CHECK(sd_bus_message_open_container(m, 'e', "sv") >= 0);
	CHECK(sd_bus_message_append(m, "s", "Partitions") >= 0);
	CHECK(sd_bus_message_open_container(m, 'v', "aa{sv}") >= 0);
	CHECK(sd_bus_message_open_container(m, 'a', "a{sv}") >= 0);
	CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
	fake_append(m, "gpu", "s", "0000:03:00.0");
	fake_append(m, "kfd-gpu-id", "u", play->kfd_gpu_id);
	fake_append(m, "cu-mask", "au", 1, 0xff);
	fake_append(m, "processes", "u", play->processes);
	fake_append(m, "paused", "b", (int)play->paused);
	for (int i = 0; i < 4; i++)
		CHECK(sd_bus_message_close_container(m) >= 0);
	return 0;
}

static int answer_properties(sd_bus_message *call)
{
	sd_bus_message *reply = fake_reply(call);

	CHECK(sd_bus_message_open_container(reply, 'a', "{sv}") >= 0);
	fake_append(reply, "State", "s", play->state);
	fake_append(reply, "Generation", "t", play->generation);
	fake_append(reply, "Adaptable", "b", (int)play->adaptable);
	CHECK(append_partition(reply) >= 0);
	CHECK(sd_bus_message_close_container(reply) >= 0);
	return fake_send(reply);
}

static int answer(sd_bus_message *call, void *)
{
	if (sd_bus_message_is_method_call(call, NULL, "Reserve"))
		return answer_reserve(call);
	if (play->gone)
		return sd_bus_reply_method_errorf(call, GPUARB_ERROR_NO_SUCH_LEASE, "it is gone");
	if (sd_bus_message_is_method_call(call, NULL, "GetAll"))
		return answer_properties(call);
	if (sd_bus_message_is_method_call(call, NULL, "Acknowledge") && play->unsaved > 0) {
		play->unsaved--;
		return sd_bus_reply_method_errorf(call, GPUARB_ERROR_NOT_SAVED, "the disk is full");
	}
	if (sd_bus_message_is_method_call(call, NULL, "Acknowledge")) {
		CHECK(sd_bus_message_read(call, "t", &play->acknowledged) >= 0);
		play->acknowledgements++;
	}
	return sd_bus_reply_method_return(call, NULL);
}

/* ---- the driver, and the program --------------------------------------------------------- */

static int open_null(void *)
{
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int set_mask(void *, int, uint32_t, const struct mask *)
{
	play->masked++;
	CHECK(write(asked[1], "", 1) == 1);
	return play->refused;
}

static int set_turn(void *, int, uint32_t queue, bool paused, uint32_t)
{
	if (play->turn_refused == 0)
		play->stopped[queue] = paused;
	return play->turn_refused;
}

static bool sees_queues(void)
{
	return play->sees_queues;
}

static const char *no_environment(void *, const char *)
{
	return NULL;
}

static int start(struct gpuarb_lease *lease, const char *sys)
{
	static const struct driver driver = { NULL, open_null, set_mask, set_turn, sees_queues };
	const struct apply process = {
		.sys = sys, .dev = tree.path, .pid = 5, .driver = &driver, .get = no_environment
	};

	handle_begin(lease->gpuarb);
	return handle_end(lease->gpuarb, agent_start(lease, &process));
}

/* Reads it while the thread is locked out. */
static unsigned agent_masked(struct gpuarb_lease *)
{
	struct kfd_held held;
	unsigned masked;

	kfd_lock(&held);
	masked = play->masked;
	kfd_unlock(&held);
	return masked;
}

static struct gpuarb_lease *reserve(struct gpuarb *gpuarb)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;

	CHECK(gpuarb_reserve(gpuarb, &want, 1, NULL, &lease) == 0);
	return lease;
}

/* Waits until the condition holds. It is checked after each call of the driver. */
#define AWAIT(so)                                   \
	do {                                        \
		char c_;                            \
		CHECK(read(asked[0], &c_, 1) == 1); \
	} while (!(so))

static void perform(void (*work)(struct gpuarb *gpuarb, struct fake_arbiter *fake))
{
	play = mmap(NULL, sizeof(*play), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(play != MAP_FAILED);
	*play = (struct play){ .adaptable = true,
			       .processes = 1,
			       .kfd_gpu_id = 7,
			       .generation = 3,
			       .state = "granted" };
	CHECK(pipe2(asked, O_CLOEXEC) == 0);
	tree = queue_tree_new(1);
	LIB_RIG_WITH(answer, NULL, work);
	munmap(play, sizeof(*play));
	close(asked[0]);
	close(asked[1]);
	scratch_done(&tree);
}

#define AGENT_TEST(id)                                                   \
	static void id##_on_bus(struct gpuarb *, struct fake_arbiter *); \
	TEST_CASE(id, perform(id##_on_bus));                             \
	static void id##_on_bus(struct gpuarb *gpuarb,                   \
				__attribute__((unused)) struct fake_arbiter *fake)

/* ---- failures ----------------------------------------------------------------------------- */

static bool says(const struct gpuarb *gpuarb, const char *text)
{
	if (strstr(gpuarb_last_error(gpuarb), text))
		return true;
	fprintf(stderr, "it says: %s\n", gpuarb_last_error(gpuarb));
	return false;
}

AGENT_TEST(an_agent_that_cannot_follow_is_not_started)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = reserve(gpuarb);
	struct rlimit before;

	CHECK(gpuarb_lease_start_agent(NULL) == -EINVAL);
	CHECK(gpuarb_lease_agent_error(NULL) == -EINVAL);
	CHECK(gpuarb_lease_agent_error(lease) == -EBADFD);
	CHECK(says(gpuarb, "lease 17 "));

	play->adaptable = false;
	CHECK(start(lease, tree.path) == -EINVAL && says(gpuarb, "options.adaptable"));
	play->adaptable = true;
	play->processes = 2;
	CHECK(start(lease, tree.path) == -EINVAL);
	CHECK(says(gpuarb, "GPU 0000:03:00.0"));
	play->processes = 1;
	CHECK(start(lease, "/nowhere") == -EOPNOTSUPP && says(gpuarb, "/nowhere/class/kfd/kfd"));
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, before.rlim_max }) == 0);
	CHECK(start(lease, tree.path) == -EMFILE);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	play->refused = -EBUSY;
	CHECK(start(lease, tree.path) == -EBUSY && says(gpuarb, "queue 0 on GPU 0000:03:00.0"));
	play->gone = true;
	CHECK(start(lease, tree.path) == -ENOENT && says(gpuarb, "gone"));
	CHECK(gpuarb_lease_agent_error(lease) == -EBADFD); /* no agent was started */
	CHECK(play->acknowledgements == 0);
}

/* ---- following ---------------------------------------------------------------------------- */

AGENT_TEST(an_agent_masks_existing_and_new_queues_and_acknowledges_once)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = reserve(gpuarb);

	CHECK(start(lease, tree.path) == 0);
	CHECK(play->acknowledged == 3 && play->acknowledgements == 1 && play->masked == 1);
	CHECK(start(lease, tree.path) == -EALREADY && says(gpuarb, "lease 17 "));
	CHECK(gpuarb_lease_agent_error(lease) == 0);

	/* A new queue is masked without a change of the lease, and nothing is acknowledged. */
	queue_tree_add(&tree, 1);
	AWAIT(agent_masked(lease) == 2);
	CHECK(play->acknowledgements == 1);
}

/* The daemon was killed before it had saved the last change, and now cannot save anything at first. */
AGENT_TEST(an_agent_acknowledges_again_to_another_gpuarbd)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = reserve(gpuarb);

	CHECK(start(lease, tree.path) == 0);
	CHECK(play->acknowledged == 3 && play->acknowledgements == 1);
	fake_arbiter_stop(fake);
	play->generation = 2;
	play->unsaved = 2;
	fake_arbiter_start(gpuarb->address, answer, NULL, fake);
	for (unsigned i = 0; i < 3; i++) {
		fake_arbiter_saw(fake, "GetAll");
		fake_arbiter_saw(fake, "Acknowledge");
	}
	fake_arbiter_saw(fake, "GetAll");
	CHECK(play->acknowledged == 2 && play->acknowledgements == 2);
}

AGENT_TEST(a_mask_that_the_driver_refused_is_reported_and_set_again)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = reserve(gpuarb);

	CHECK(start(lease, tree.path) == 0);
	play->refused = -EBUSY; /* for the second queue, which is added next */
	queue_tree_add(&tree, 1);
	AWAIT(gpuarb_lease_agent_error(lease) < 0);
	CHECK(gpuarb_lease_agent_error(lease) == -EBUSY);
	CHECK(says(gpuarb, "queue 1 on GPU 0000:03:00.0"));
	play->refused = 0;
	AWAIT(gpuarb_lease_agent_error(lease) == 0);

	/* The program can acknowledge only what the agent has applied. */
	lease->info.generation = 9;
	CHECK(gpuarb_lease_acknowledge(lease) == -EBUSY);
	CHECK(says(gpuarb, "generation 9 "));
	lease->info.generation = 3;
	CHECK(gpuarb_lease_acknowledge(lease) == 0);
}

/* In one step: without its directory a process has no queues. */
static void exchange_queues(void)
{
	CHECK(renameat2(AT_FDCWD, scratch_at(&tree, "other"), AT_FDCWD,
			scratch_at(&tree, "class/kfd/kfd/proc/5/queues"), RENAME_EXCHANGE) == 0);
}

/* sysfs fails for a moment: nothing is known to have changed, so no queue is masked again. */
AGENT_TEST(an_agent_that_could_not_read_the_queues_once_masks_none_again)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = reserve(gpuarb);

	scratch_write(&tree, "other", "this is no directory");
	CHECK(start(lease, tree.path) == 0 && play->masked == 1);
	exchange_queues();
	while (gpuarb_lease_agent_error(lease) == 0)
		sched_yield();
	CHECK(gpuarb_lease_agent_error(lease) == -ENOTDIR);
	CHECK(says(gpuarb, "class/kfd/kfd/proc/5"));
	exchange_queues();
	while (gpuarb_lease_agent_error(lease) < 0)
		sched_yield();
	CHECK(agent_masked(lease) == 1);
}

static uint64_t agent_polls(struct gpuarb_lease *lease)
{
	const struct agent *agent = lease->agent;
	struct kfd_held held;
	uint64_t usec;

	kfd_lock(&held);
	usec = agent->poll_usec;
	kfd_unlock(&held);
	return usec;
}

AGENT_TEST(an_agent_that_sees_new_queues_does_not_search_for_them)
{
	struct gpuarb_lease *lease = reserve(gpuarb);

	play->sees_queues = true;
	play->refused = -EBUSY;
	CHECK(start(lease, tree.path) == -EBUSY);
	play->refused = 0;
	CHECK(start(lease, tree.path) == 0 && agent_polls(lease) == UINT64_MAX);
	gpuarb_lease_close(lease);

	play->sees_queues = false;
	lease = reserve(gpuarb);
	CHECK(start(lease, tree.path) == 0 && agent_polls(lease) < UINT64_MAX);
	gpuarb_lease_close(lease);
}

AGENT_TEST(an_agent_does_not_acknowledge_a_revocation)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = reserve(gpuarb);

	/* The address is valid in the daemon, which was forked from this process. */
	play->state = "revoking";
	CHECK(start(lease, tree.path) == 0);
	CHECK(play->acknowledgements == 0 && gpuarb_lease_agent_error(lease) == 0);
}

AGENT_TEST(an_agent_pauses_queues_and_resumes_them_when_it_ends)
{
	struct gpuarb_lease *lease = reserve(gpuarb);

	play->paused = true;
	play->turn_refused = -EBUSY;
	CHECK(start(lease, tree.path) == -EBUSY && says(gpuarb, "queue 0 on GPU 0000:03:00.0"));
	CHECK(play->acknowledgements == 0);
	play->turn_refused = 0;
	CHECK(start(lease, tree.path) == 0 && play->stopped[0] && play->acknowledged == 3);

	queue_tree_add(&tree, 1); /* starts paused */
	AWAIT(agent_masked(lease) == 2);
	CHECK(play->stopped[1]);
	gpuarb_lease_close(lease); /* nothing would resume them later */
	CHECK(!play->stopped[0] && !play->stopped[1]);
}

AGENT_TEST(a_forked_child_has_no_agent)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = reserve(gpuarb);
	int status = -1;
	pid_t pid;

	CHECK(start(lease, tree.path) == 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		lease->agent_calls->stop(lease->agent); /* the child has no thread to wait for */
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(gpuarb_lease_agent_error(lease) == 0);
}
