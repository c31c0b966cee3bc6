/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lets each allocation of a call fail: nothing aborts, hangs or leaks fds. */

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "dbus/names.h"
#include "lib-rig.h"
#include "libgpuarb/agent/agent.h"
#include "libgpuarb/connection/connection.h"
#include "libgpuarb/lease/lease-calls.h"
#include "rig.h"
#include "scratch.h"

#if defined(__SANITIZE_ADDRESS__)

TEST(every_allocation_may_fail)
{
	SKIP("the sanitizer has its own malloc");
}

#else

#include "lack.h"

/* The daemon keeps its ends of the holders open for some calls. */
#define HOLDERS 8U

static int answer_reserve(sd_bus_message *call)
{
	static int ours[HOLDERS];
	static size_t n;
	sd_bus_message *reply = fake_reply(call);
	int pair[2], r;

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK(sd_bus_message_append(reply, "ohs", GPUARB_PATH_LEASE "/17", pair[0], "granted") >=
	      0);
	fake_append_partitions(reply, 30, 0);
	r = fake_send(reply);
	close(pair[0]);
	if (n >= HOLDERS)
		close(ours[n % HOLDERS]);
	ours[n++ % HOLDERS] = pair[1];
	return r;
}

/* Adaptable, of generation 3, on GPU 7. */
static int answer_properties(sd_bus_message *call)
{
	sd_bus_message *reply = fake_reply(call);

	CHECK(sd_bus_message_open_container(reply, 'a', "{sv}") >= 0);
	fake_append(reply, "Adaptable", "b", 1);
	fake_append_lease(reply, "granted", 3, 20, 7);
	CHECK(sd_bus_message_close_container(reply) >= 0);
	return fake_send(reply);
}

/* Each container of these answers is empty. */
static const char *const empty_answers[][2] = {
	{ "GetManagedObjects", "a{oa{sa{sv}}}" }, { "ReadUsage", "aa{sv}a{sv}" },
	{ "ReadLimits", "a{sv}aa{sv}" },          { "ReadSlots", "aa{sv}a{sv}" },
	{ "ReadCounters", "aa{sv}aa{sv}a{sv}" },
};

static int answer(sd_bus_message *call, void *)
{
	if (sd_bus_message_is_method_call(call, NULL, "Reserve"))
		return answer_reserve(call);
	if (sd_bus_message_is_method_call(call, NULL, "GetAll"))
		return answer_properties(call);
	for (size_t i = 0; i < ARRAY_SIZE(empty_answers); i++)
		if (sd_bus_message_is_method_call(call, NULL, empty_answers[i][0]))
			return sd_bus_reply_method_return(call, empty_answers[i][1], 0, 0, 0);
	return sd_bus_reply_method_return(call, NULL);
}

/* Connects, reserves, makes the environment, and makes another call. */
static int ask(struct gpuarb *gpuarb)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;
	char **environment = NULL;
	int r;

	want.gpu = "0";
	options.process_fd = STDIN_FILENO;
	r = gpuarb_reserve(gpuarb, &want, 1, &options, &lease);
	if (r >= 0)
		r = gpuarb_lease_environment(lease, &environment);
	if (r >= 0)
		r = gpuarb_lease_acknowledge(lease);
	free(environment);
	gpuarb_lease_close(lease);
	gpuarb_close(gpuarb_reference(gpuarb)); /* closes the connection and keeps the handle */
	return r;
}

static void without_memory(struct gpuarb *gpuarb, int (*ask_it)(struct gpuarb *gpuarb), long least)
{
	unsigned fds, early = 0;
	long n;
	int r;

	CHECK(ask_it(gpuarb) == 0);
	fds = count_fds();
	for (n = 0;; n++) {
		lack_left = n;
		r = ask_it(gpuarb);
		if (lack_left >= 0) { /* the call needs fewer allocations */
			if (n > least || early++ == 3)
				break;
			n--; /* the previous round's call arrived late and killed the daemon */
			continue;
		}
		CHECK(r == 0 || (r == -ENOMEM && *gpuarb_last_error(gpuarb)));
		CHECK(count_fds() == fds);
	}
	lack_left = -1;
	CHECK(r == 0 && n > least);
	printf("%ld allocations\n", n);
}

/* A call, and the fewest allocations that it needs. */
static int (*asked)(struct gpuarb *gpuarb);
static long asked_least;

static void work_without_memory(struct gpuarb *gpuarb, struct fake_arbiter *)
{
	without_memory(gpuarb, asked, asked_least);
}

static void without_memory_on_bus(int (*ask_it)(struct gpuarb *gpuarb), long least)
{
	asked = ask_it;
	asked_least = least;
	LIB_RIG_WITH(answer, NULL, work_without_memory);
}

TEST_CASE(every_allocation_may_fail, without_memory_on_bus(ask, 100));

/* Deactivates, activates and revokes. */
static int lend(struct gpuarb *gpuarb)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;
	int r;

	options.token = "again";
	options.start_inactive = options.adaptable = true;
	r = gpuarb_reserve(gpuarb, &want, 1, &options, &lease);
	if (r >= 0)
		r = gpuarb_lease_activate(lease);
	if (r >= 0)
		r = gpuarb_lease_deactivate(lease);
	gpuarb_lease_close(lease);
	if (r >= 0)
		r = gpuarb_activate(gpuarb, 17);
	if (r >= 0)
		r = gpuarb_deactivate(gpuarb, 17);
	if (r >= 0)
		r = gpuarb_revoke(gpuarb, 17, 0, "maintenance");
	gpuarb_close(gpuarb_reference(gpuarb));
	return r;
}

TEST_CASE(every_allocation_may_fail_while_cus_are_lent, without_memory_on_bus(lend, 100));

/* Looks, and reads what the daemon counts. */
static int look(struct gpuarb *gpuarb)
{
	struct gpuarb_counters *counters = NULL;
	struct gpuarb_limits *limits = NULL;
	struct gpuarb_usage *usage = NULL;
	struct gpuarb_slots *slots = NULL;
	struct gpuarb_view *view = NULL;
	int r;

	r = gpuarb_look(gpuarb, &view);
	if (r >= 0)
		r = gpuarb_read_usage(gpuarb, 0, &usage);
	if (r >= 0)
		r = gpuarb_read_limits(gpuarb, &limits);
	if (r >= 0)
		r = gpuarb_read_counters(gpuarb, &counters);
	if (r >= 0)
		r = gpuarb_read_slots(gpuarb, "0", &slots);
	gpuarb_slots_free(slots);
	gpuarb_counters_free(counters);
	gpuarb_limits_free(limits);
	gpuarb_usage_free(usage);
	gpuarb_view_free(view);
	gpuarb_close(gpuarb_reference(gpuarb));
	return r;
}

TEST_CASE(every_allocation_may_fail_while_answers_are_read, without_memory_on_bus(look, 100));

/* Messages that libdbus keeps to reuse their memory. While they are in use, new ones allocate. */
#define KEPT 5U

/* Long enough that an allocation fails where a container is opened. */
static char token[80];

static int build(struct gpuarb *gpuarb)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;
	DBusMessage *kept[KEPT], *call = NULL;
	long before = lack_left;
	int r;

	options.token = token;
	options.wait_usec = 1;
	lack_left = -1;
	for (unsigned i = 0; i < KEPT; i++)
		CHECK((kept[i] = dbus_message_new(DBUS_MESSAGE_TYPE_METHOD_CALL)));
	lack_left = before;

	handle_begin(gpuarb);
	r = request_new(gpuarb, GPUARB_PATH, GPUARB_INTERFACE, "Reserve", &want, 1, &options,
			&call);
	if (call)
		dbus_message_unref(call);
	for (unsigned i = 0; i < KEPT; i++)
		dbus_message_unref(kept[i]);
	return handle_end(gpuarb, r);
}

TEST(every_allocation_may_fail_while_a_request_is_built)
{
	struct gpuarb gpuarb = { .references = 1 };

	while (strlen(token) < sizeof(token) - 1) {
		strcat(token, "x");
		without_memory(&gpuarb, build, 8);
	}
	handle_begin(&gpuarb);
}

/* The number of calls since it was set to 0, in all restarts of the daemon. */
static unsigned *calls;

static int die_first(sd_bus_message *call, void *)
{
	if ((*calls)++ == 0)
		_exit(0);
	return sd_bus_reply_method_return(call, NULL);
}

static int ask_who_dies(struct gpuarb *gpuarb)
{
	int r;

	*calls = 0;
	r = gpuarb_reload(gpuarb);
	gpuarb_close(gpuarb_reference(gpuarb));
	return r;
}

TEST(every_allocation_may_fail_while_the_daemon_restarts)
{
	struct fake_arbiter fake;
	struct rig bus;
	struct gpuarb *gpuarb;

	if (rig_bus_missing())
		SKIP(rig_bus_missing());
	rig_new(&bus);
	calls = mmap(NULL, sizeof(*calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	CHECK(calls != MAP_FAILED);
	fake_arbiter_keep(bus.address, die_first, NULL, NULL, &fake);
	gpuarb = lib_rig_open();
	without_memory(gpuarb, ask_who_dies, 100);
	gpuarb_close(gpuarb);
	fake_arbiter_stop(&fake);
	rig_done(&bus);
	munmap(calls, sizeof(*calls));
}

/* ---- masks for queues ------------------------------------------------------------------- */

static struct scratch tree;

static int open_null(void *)
{
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

/* Refuses the second queue, so that the first is restored and a sentence is made. */
static int set_first(void *, int, uint32_t queue, const struct mask *)
{
	return queue == 1 ? -EBUSY : 0;
}

static int set_turn(void *, int, uint32_t, bool, uint32_t)
{
	return 0;
}

static bool sees_none(void)
{
	return false;
}

static const char *no_environment(void *, const char *)
{
	return NULL;
}

static int mask_queues(struct gpuarb *gpuarb)
{
	static const struct driver driver = { NULL, open_null, set_first, set_turn, sees_none };
	static const uint32_t mask[] = { 0xff };
	struct gpuarb_partition partition = {
		.gpu = "0000:03:00.0", .kfd_gpu_id = 7, .cu_mask = mask, .cu_mask_words = 1
	};
	struct mask_cache mask_cache = { NULL, 0 };
	const struct gpuarb_lease_info info = {
		.id = 1, .state = "granted", .partitions = &partition, .n_partitions = 1
	};
	struct apply apply = { .gpuarb = gpuarb,
			       .lease = &info,
			       .mask_cache = &mask_cache,
			       .sys = tree.path,
			       .dev = tree.path,
			       .pid = 5,
			       .driver = &driver,
			       .get = no_environment };
	int r;

	handle_begin(gpuarb);
	r = apply_own(&apply, 0, 0, mask, 1);
	if (r >= 0)
		r = apply_all(&apply);
	mask_cache_clear(&mask_cache);
	return r == -EBUSY ? 0 : handle_end(gpuarb, r);
}

TEST(every_allocation_may_fail_while_queues_are_masked)
{
	struct gpuarb gpuarb = { .references = 1 };

	tree = queue_tree_new(2);
	without_memory(&gpuarb, mask_queues, 8);
	handle_begin(&gpuarb);
	scratch_done(&tree);
}

/* ---- the agent -------------------------------------------------------------------------- */

static int set_all(void *, int, uint32_t, const struct mask *)
{
	return 0;
}

/* The thread may run out of memory, too; it then tries again without an error here. */
static int follow(struct gpuarb *gpuarb)
{
	static const struct driver driver = { NULL, open_null, set_all, set_turn, sees_none };
	const struct apply process = { .sys = tree.path,
				       .dev = tree.path,
				       .pid = 5,
				       .driver = &driver,
				       .get = no_environment };
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;
	int r;

	r = gpuarb_reserve(gpuarb, &want, 1, NULL, &lease);
	if (r >= 0) {
		handle_begin(gpuarb);
		r = handle_end(gpuarb, agent_start(lease, &process));
	}
	if (r >= 0)
		(void)gpuarb_lease_agent_error(lease);
	gpuarb_lease_close(lease);
	gpuarb_close(gpuarb_reference(gpuarb));
	return r == -EAGAIN ? -ENOMEM : r; /* from pthread_create() */
}

TEST(every_allocation_may_fail_while_an_agent_starts)
{
	tree = queue_tree_new(2);
	without_memory_on_bus(follow, 200);
	scratch_done(&tree);
}

#endif
