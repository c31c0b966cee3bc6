/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The library with a faulty daemon, and in a faulty program. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "await.h"
#include "check.h"
#include "lib-rig.h"
#include "libgpuarb/connection/connection.h"
#include "libgpuarb/lease/lease-handle.h"
#include "private-bus.h"
#include "scratch.h"
#include "seed.h"

static void count(const char *kind, const char *what, void *userdata)
{
	(void)kind;
	(void)what;
	(*(unsigned *)userdata)++;
}

/* ---- a faulty daemon ------------------------------------------------------------------ */

static int say_nothing(sd_bus_message *call, void *userdata)
{
	(void)call;
	(void)userdata;
	return 0;
}

static int kill_bus(sd_bus_message *call, void *userdata)
{
	const struct private_bus *bus = userdata;

	(void)call;
	return kill(bus->pid, SIGKILL);
}

static int die(sd_bus_message *call, void *userdata)
{
	(void)call;
	(void)userdata;
	_exit(0);
}

static void time_out(struct gpuarb *gpuarb, struct fake_arbiter *fake)
{
	gpuarb->answer_usec = LIB_RIG_SOON;
	CHECK(gpuarb_reload(gpuarb) == -ETIMEDOUT);
	CHECK(strcmp(gpuarb_last_error_name(gpuarb), "") == 0);
	CHECK(lib_rig_reserve(gpuarb) == -ETIMEDOUT && !gpuarb->connection);
	gpuarb->answer_usec = ANSWER_USEC;
	CHECK(connection_ensure(gpuarb) == 0);
	gpuarb->answer_usec = LIB_RIG_SOON;
	CHECK(gpuarb_reload(gpuarb) == -ETIMEDOUT);
	fake_arbiter_saw(fake, "Reload");
	fake_arbiter_saw(fake, "Reserve");
	fake_arbiter_saw(fake, "Reload");
}

TEST_CASE(a_call_times_out_when_the_daemon_hangs, LIB_RIG_WITH(say_nothing, NULL, time_out));

static void lose_bus(struct gpuarb *gpuarb, struct fake_arbiter *fake)
{
	(void)fake;
	gpuarb->reconnect_usec = LIB_RIG_SOON;
	CHECK(gpuarb_reload(gpuarb) == -ECONNRESET);
	CHECK(strstr(gpuarb_last_error(gpuarb), gpuarb->address) && !gpuarb->connection);
	CHECK(gpuarb_reload(gpuarb) == -ECONNREFUSED);
}

TEST_CASE(a_call_is_reset_when_the_bus_dies_during_it, LIB_RIG_WITH(kill_bus, NULL, lose_bus));

static void lose_daemon(struct gpuarb *gpuarb, struct fake_arbiter *fake)
{
	(void)fake;
	gpuarb->reconnect_usec = LIB_RIG_SOON;
	CHECK(gpuarb_reload(gpuarb) == -ECONNRESET);
	CHECK(strstr(gpuarb_last_error_name(gpuarb), "NoReply"));
	CHECK(gpuarb_reload(gpuarb) == -ECONNREFUSED);
}

TEST_CASE(a_call_is_reset_when_the_daemon_dies_during_it, LIB_RIG_WITH(die, NULL, lose_daemon));

/* ---- signals -------------------------------------------------------------------------- */

static void be_interrupted(struct gpuarb *gpuarb, struct fake_arbiter *fake)
{
	unsigned n = 0;

	(void)fake;
	lib_rig_signals(5000);
	CHECK(gpuarb_reload(gpuarb) == -EINTR);
	CHECK(*gpuarb_last_error(gpuarb));
	CHECK(lib_rig_reserve(gpuarb) == -EINTR && !gpuarb->connection);
	CHECK(gpuarb_watch(gpuarb, GPUARB_FOREVER, count, &n) == -EINTR && n == 0);
	lib_rig_signals(0);
}

TEST_CASE(a_signal_ends_every_call, LIB_RIG_WITH(say_nothing, NULL, be_interrupted));

struct late {
	sd_bus_message *call;
	int theirs, ours; /* both ends of a holder */
};

/* Answers a Reserve when the next call arrives. */
static int answer_late(sd_bus_message *call, void *userdata)
{
	sd_bus_message *reply = NULL;
	struct late *late = userdata;

	close(late->ours);
	late->ours = -1;
	if (!late->call) {
		late->call = sd_bus_message_ref(call);
		return 0;
	}
	if (sd_bus_message_new_method_return(late->call, &reply) < 0 ||
	    sd_bus_message_append(reply, "ohs", "/org/gpuarb/Arbiter1/lease/1", late->theirs,
				  "granted") < 0 ||
	    fake_append_partitions(reply, 4, 0) < 0 || sd_bus_send(NULL, reply, NULL) < 0)
		return -EIO;
	sd_bus_message_unref(reply);
	close(late->theirs);
	return sd_bus_reply_method_return(call, NULL);
}

static void answer_nobody(struct gpuarb *gpuarb, struct fake_arbiter *fake)
{
	lib_rig_signals(5000);
	CHECK(lib_rig_reserve(gpuarb) == -EINTR);
	lib_rig_signals(0);
	fake_arbiter_saw(fake, "Reserve");
	CHECK(gpuarb_reload(gpuarb) == 0);
}

TEST(a_lease_granted_after_the_signal_ends_at_once)
{
	struct late late = { .call = NULL };
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	late.ours = pair[0];
	late.theirs = pair[1];
	LIB_RIG_WITH(answer_late, &late, answer_nobody);
	close(pair[1]);

	CHECK(AWAIT_FD(pair[0], POLLIN) & POLLHUP);
	close(pair[0]);
}

/* ---- invalid answers ------------------------------------------------------------------ */

static int answer_nonsense(sd_bus_message *call, void *userdata)
{
	(void)userdata;
	return sd_bus_reply_method_return(call, "sib", "granted", 42, 1);
}

static void be_told_nonsense(struct gpuarb *gpuarb, struct fake_arbiter *fake)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_view *view = NULL;
	const char *result = NULL;
	unsigned n = 0;

	(void)fake;
	CHECK(lib_rig_reserve(gpuarb) == -EPROTO);
	CHECK(strstr(gpuarb_last_error(gpuarb), "Reserve"));
	CHECK(gpuarb_plan(gpuarb, &want, 1, NULL, &result) == -EPROTO && !result);
	CHECK(gpuarb_look(gpuarb, &view) == -EPROTO && !view);
	CHECK(gpuarb_watch(gpuarb, GPUARB_FOREVER, count, &n) == -EPROTO && n == 0);
}

TEST_CASE(an_answer_with_wrong_types_is_rejected,
	  LIB_RIG_WITH(answer_nonsense, NULL, be_told_nonsense));

static int answer_words(sd_bus_message *call, void *userdata)
{
	(void)userdata;
	return sd_bus_reply_method_return(call, "v", "s", "the second");
}

static void be_told_words(struct gpuarb *gpuarb, struct fake_arbiter *fake)
{
	struct gpuarb_lease lease = { .gpuarb = gpuarb, .fd = -1 };
	unsigned position = 7;

	(void)fake;
	CHECK(gpuarb_lease_position(&lease, &position) == -EPROTO && position == 7);
	CHECK(strstr(gpuarb_last_error(gpuarb), "'Position'"));
}

TEST_CASE(a_position_that_is_no_number_is_rejected,
	  LIB_RIG_WITH(answer_words, NULL, be_told_words));

/* Answers of the right types with one invalid value each. */
static int answer_almost_right(sd_bus_message *call, void *userdata)
{
	sd_bus_message *reply = NULL;
	unsigned *step = userdata;
	const char *paths[] = { "/", "/org/gpuarb/Arbiter1/lease/x", "/org/gpuarb/Arbiter1/gpu/1",
				"/org/gpuarb/Arbiter1/lease/1" };
	int r;

	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_append(reply, "ohs", paths[*step], STDIN_FILENO, "granted");
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	if (r >= 0)
		r = sd_bus_message_append(reply, "a{sv}", 1, "cus", "s", "many");
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	sd_bus_message_unref(reply);
	(*step)++;
	return r;
}

static void be_told_lies(struct gpuarb *gpuarb, struct fake_arbiter *fake)
{
	unsigned before;

	(void)fake;
	before = count_fds() - 1; /* each invalid answer ends the connection */
	for (int i = 0; i < 3; i++) {
		CHECK(lib_rig_reserve(gpuarb) == -EPROTO);
		CHECK(strstr(gpuarb_last_error(gpuarb), "lease"));
	}
	CHECK(lib_rig_reserve(gpuarb) == -EPROTO);
	CHECK(strstr(gpuarb_last_error(gpuarb), "'cus'"));
	gpuarb_close(gpuarb_reference(gpuarb));
	CHECK(count_fds() == before);
}

TEST(an_answer_with_invalid_values_leaks_no_fd)
{
	unsigned step = 0;

	LIB_RIG_WITH(answer_almost_right, &step, be_told_lies);
}

/* Answers every call with random arguments. */
static int answer_noise(sd_bus_message *call, void *userdata)
{
	static const char *const types[] = {
		"s", "o", "u", "t", "b", "h", "as", "au", "a{sv}", "aa{sv}", "a{oa{sa{sv}}}"
	};
	sd_bus_message *reply = NULL;
	unsigned *seed = userdata;
	int r = sd_bus_message_new_method_return(call, &reply);

	for (int n = rand_r(seed) % 5; r >= 0 && n > 0; n--) {
		const char *type = types[(size_t)rand_r(seed) % ARRAY_SIZE(types)];

		if (*type == 's' || *type == 'o')
			r = sd_bus_message_append(reply, type, "/org/gpuarb/Arbiter1/lease/1");
		else if (*type == 'h')
			r = sd_bus_message_append(reply, type, STDIN_FILENO);
		else if (*type == 't')
			r = sd_bus_message_append(reply, type, UINT64_MAX);
		else
			r = sd_bus_message_append(reply, type, 0);
	}
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	sd_bus_message_unref(reply);
	return r;
}

static void survive_noise(struct gpuarb *gpuarb, struct fake_arbiter *fake)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;

	(void)fake;
	for (int i = 0; i < 300; i++) {
		struct gpuarb_lease *lease = NULL;
		struct gpuarb_view *view = NULL;
		const char *result;

		gpuarb_reserve(gpuarb, &want, 1, NULL, &lease);
		gpuarb_lease_close(lease);
		gpuarb_look(gpuarb, &view);
		gpuarb_view_free(view);
		gpuarb_plan(gpuarb, &want, 1, NULL, &result);
	}
}

TEST(random_answers_do_no_harm)
{
	unsigned seed = seed_nth(SEED_OF_RUN("SEED"), 0);

	LIB_RIG_WITH(answer_noise, &seed, survive_noise);
}

/* ---- a faulty program ----------------------------------------------------------------- */

static void close_the_fd(struct gpuarb *gpuarb, struct fake_arbiter *fake)
{
	unsigned below = count_fds();

	(void)fake;
	CHECK(gpuarb_reload(gpuarb) == 0);
	for (int fd = 3; fd < 1024; fd++) {
		struct sockaddr_un name;
		socklen_t size = sizeof(name);

		if (fd != fake->log && getpeername(fd, (struct sockaddr *)&name, &size) == 0 &&
		    size > sizeof(sa_family_t))
			close(fd);
	}
	CHECK(count_fds() == below - 1);
	CHECK(gpuarb_reload(gpuarb) == 0);
}

static int answer_nothing(sd_bus_message *call, void *userdata)
{
	(void)userdata;
	return sd_bus_reply_method_return(call, NULL);
}

TEST_CASE(a_handle_reconnects_after_the_program_closed_its_fds,
	  LIB_RIG_WITH(answer_nothing, NULL, close_the_fd));

/* This process has no room for a descriptor more. */
static void join_without_room(struct gpuarb *gpuarb, struct fake_arbiter *fake)
{
	struct gpuarb_lease *lease = NULL;
	struct rlimit before, none = { .rlim_cur = 0 };

	(void)fake;
	CHECK(gpuarb_reload(gpuarb) == 0); /* connects */
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	none.rlim_max = before.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	CHECK(gpuarb_lease_join(gpuarb, 17, &lease) == -EMFILE && !lease);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

TEST_CASE(a_lease_is_not_joined_without_a_descriptor,
	  LIB_RIG_WITH(answer_nothing, NULL, join_without_room));

static void keep_sigpipe(struct gpuarb *gpuarb, struct fake_arbiter *fake)
{
	struct sigaction action;

	(void)fake;
	CHECK(gpuarb_reload(gpuarb) == 0);
	CHECK(sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
}

TEST_CASE(signal_handlers_are_not_changed, LIB_RIG_WITH(answer_nothing, NULL, keep_sigpipe));
