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
#include "rig.h"
#include "scratch.h"
#include "seed.h"

static void count(const char *, const char *, void *userdata)
{
	(*(unsigned *)userdata)++;
}

/* ---- a faulty daemon ------------------------------------------------------------------ */

static int say_nothing(sd_bus_message *, void *)
{
	return 0;
}

LIB_TEST(a_call_times_out_when_the_daemon_hangs, say_nothing, NULL)
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

/* ---- signals -------------------------------------------------------------------------- */

LIB_TEST(a_signal_ends_every_call, say_nothing, NULL)
{
	unsigned n = 0;

	lib_rig_signals(5000);
	CHECK(gpuarb_reload(gpuarb) == -EINTR);
	CHECK(*gpuarb_last_error(gpuarb));
	CHECK(lib_rig_reserve(gpuarb) == -EINTR && !gpuarb->connection);
	CHECK(gpuarb_watch(gpuarb, GPUARB_FOREVER, count, &n) == -EINTR && n == 0);
	lib_rig_signals(0);
}

struct late {
	sd_bus_message *call;
	int theirs, ours; /* both ends of a holder */
};

/* Answers a Reserve when the next call arrives. */
static int answer_late(sd_bus_message *call, void *userdata)
{
	struct late *late = userdata;
	sd_bus_message *reply;

	close(late->ours);
	late->ours = -1;
	if (!late->call) {
		late->call = sd_bus_message_ref(call);
		return 0;
	}
	reply = fake_reply(late->call);
	CHECK(sd_bus_message_append(reply, "ohs", "/org/gpuarb/Arbiter1/lease/1", late->theirs,
				    "granted") >= 0);
	fake_append_partitions(reply, 4, 0);
	CHECK(fake_send(reply) >= 0);
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

static int answer_nonsense(sd_bus_message *call, void *)
{
	return sd_bus_reply_method_return(call, "sib", "granted", 42, 1);
}

LIB_TEST(an_answer_with_wrong_types_is_rejected, answer_nonsense, NULL)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_view *view = NULL;
	const char *result = NULL;
	unsigned n = 0;

	CHECK(lib_rig_reserve(gpuarb) == -EPROTO);
	CHECK(strstr(gpuarb_last_error(gpuarb), "Reserve"));
	CHECK(gpuarb_plan(gpuarb, &want, 1, NULL, &result) == -EPROTO && !result);
	CHECK(gpuarb_look(gpuarb, &view) == -EPROTO && !view);
	CHECK(gpuarb_watch(gpuarb, GPUARB_FOREVER, count, &n) == -EPROTO && n == 0);
}

static int answer_words(sd_bus_message *call, void *)
{
	return sd_bus_reply_method_return(call, "v", "s", "the second");
}

LIB_TEST(a_position_that_is_no_number_is_rejected, answer_words, NULL)
{
	struct gpuarb_lease lease = { .gpuarb = gpuarb, .fd = -1 };
	unsigned position = 7;

	CHECK(gpuarb_lease_position(&lease, &position) == -EPROTO && position == 7);
	CHECK(strstr(gpuarb_last_error(gpuarb), "'Position'"));
}

/* Answers of the right types with one invalid value each. */
static int answer_almost_right(sd_bus_message *call, void *userdata)
{
	static const char *const paths[] = { "/", "/org/gpuarb/Arbiter1/lease/x",
					     "/org/gpuarb/Arbiter1/gpu/1",
					     "/org/gpuarb/Arbiter1/lease/1" };
	unsigned *step = userdata;

	return sd_bus_reply_method_return(call, "ohsaa{sv}", paths[(*step)++], STDIN_FILENO,
					  "granted", 1, 1, "cus", "s", "many");
}

LIB_TEST(an_answer_with_invalid_values_leaks_no_fd, answer_almost_right, &(unsigned){ 0 })
{
	unsigned before;

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

/* Answers every call with random arguments. */
static int answer_noise(sd_bus_message *call, void *userdata)
{
	static const char *const types[] = {
		"s", "o", "u", "t", "b", "h", "as", "au", "a{sv}", "aa{sv}", "a{oa{sa{sv}}}"
	};
	sd_bus_message *reply = fake_reply(call);
	unsigned *seed = userdata;
	int r = 0;

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
	return fake_send(reply);
}

static void survive_noise(struct gpuarb *gpuarb, struct fake_arbiter *)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;

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

static int answer_nothing(sd_bus_message *call, void *)
{
	return sd_bus_reply_method_return(call, NULL);
}

/* ---- a faulty program ----------------------------------------------------------------- */

LIB_TEST(a_handle_reconnects_after_the_program_closed_its_fds, answer_nothing, NULL)
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

/* This process has no room for a descriptor more. */
LIB_TEST(a_lease_is_not_joined_without_a_descriptor, answer_nothing, NULL)
{
	struct gpuarb_lease *lease = NULL;
	struct rlimit before, none = { .rlim_cur = 0 };

	CHECK(gpuarb_reload(gpuarb) == 0); /* connects */
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	none.rlim_max = before.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	CHECK(gpuarb_lease_join(gpuarb, 17, &lease) == -EMFILE && !lease);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

LIB_TEST(signal_handlers_are_not_changed, answer_nothing, NULL)
{
	struct sigaction action;

	CHECK(gpuarb_reload(gpuarb) == 0);
	CHECK(sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
}
