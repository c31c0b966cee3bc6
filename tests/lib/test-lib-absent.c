/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The library without a bus, or without a daemon on it. */

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "lib-rig.h"
#include "libgpuarb/connection/connection.h"
#include "rig.h"
#include "scratch.h"

static void count(const char *, const char *, void *userdata)
{
	(*(unsigned *)userdata)++;
}

/* Calls every function that calls the daemon; all must fail with this error. */
static void every_call_fails(struct gpuarb *gpuarb, int error)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_view *view = NULL;
	const char *result = NULL;
	unsigned n = 0;

	CHECK(lib_rig_reserve(gpuarb) == error);
	CHECK(*gpuarb_last_error(gpuarb));
	CHECK(gpuarb_plan(gpuarb, &want, 1, NULL, &result) == error && !result);
	CHECK(gpuarb_look(gpuarb, &view) == error && !view);
	CHECK(gpuarb_watch(gpuarb, GPUARB_FOREVER, count, &n) == error && n == 0);
	CHECK(gpuarb_release(gpuarb, 1) == error);
	CHECK(gpuarb_resize(gpuarb, 1, &want, 1) == error);
	CHECK(gpuarb_drain(gpuarb, "0", true) == error);
	CHECK(gpuarb_drain(gpuarb, "0", false) == error);
	CHECK(gpuarb_reload(gpuarb) == error);
	CHECK(*gpuarb_last_error(gpuarb));
}

/* ---- no bus --------------------------------------------------------------------------- */

TEST(every_call_fails_cleanly_without_a_bus)
{
	struct gpuarb *gpuarb = (struct gpuarb *)(void *)&gpuarb;

	setenv("GPUARB_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	CHECK(gpuarb_open(&gpuarb) == -ECONNREFUSED && !gpuarb);
	CHECK(strstr(gpuarb_last_error(NULL), "/nonexistent/bus"));
}

TEST(opening_fails_cleanly_with_an_invalid_address)
{
	static const char *const addresses[] = {
		"garbage",
		"unix:",
		"unix:path",
		"unix:path=",
		"unix:path=%zz",
		"foo:bar=baz",
		";",
		":",
		"=",
		"unix:path=/a;;;",
		"\xff\xfe",
		"tcp:host=localhost,port=99999",
	};
	char *huge = malloc(100001);
	struct gpuarb *gpuarb = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		setenv("GPUARB_BUS_ADDRESS", addresses[i], 1);
		CHECK(gpuarb_open(&gpuarb) == -ECONNREFUSED && !gpuarb);
		CHECK(*gpuarb_last_error(NULL));
	}

	CHECK(huge);
	memset(huge, 'x', 100000);
	memcpy(huge, "unix:path=/", 11);
	huge[100000] = '\0';
	setenv("GPUARB_BUS_ADDRESS", huge, 1);
	CHECK(gpuarb_open(&gpuarb) == -ECONNREFUSED && !gpuarb);
	free(huge);
}

TEST(the_system_bus_is_the_default)
{
	struct gpuarb *gpuarb = NULL;

	setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/system", 1);
	setenv("GPUARB_BUS_ADDRESS", "", 1);
	CHECK(gpuarb_open(&gpuarb) == -ECONNREFUSED);
	CHECK(strstr(gpuarb_last_error(NULL), "/nonexistent/system"));
	unsetenv("GPUARB_BUS_ADDRESS");
	CHECK(gpuarb_open(&gpuarb) == -ECONNREFUSED);
	CHECK(strstr(gpuarb_last_error(NULL), "/nonexistent/system"));
	unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
}

/* ---- a peer that is no bus ------------------------------------------------------------ */

struct peer {
	pid_t pid;
	char dir[32], path[64], address[96];
};

/* A process that listens on a socket: speak() gets each connection. */
static void peer_start(struct peer *ret, void (*speak)(int fd))
{
	int fd;

	*ret = (struct peer){ .dir = "/tmp/gpuarb-test-XXXXXX" };
	CHECK(mkdtemp(ret->dir));
	snprintf(ret->path, sizeof(ret->path), "%s/bus", ret->dir);
	snprintf(ret->address, sizeof(ret->address), "unix:path=%s", ret->path);
	fd = scratch_bind(ret->path, SOCK_STREAM);
	CHECK(listen(fd, 4) == 0);

	fflush(stdout);
	ret->pid = fork();
	if (ret->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGPIPE, SIG_IGN);
		for (;;) {
			int client = accept(fd, NULL, NULL);

			speak(client);
			close(client);
		}
	}
	close(fd);
	setenv("GPUARB_BUS_ADDRESS", ret->address, 1);
}

static void peer_stop(struct peer *peer)
{
	kill(peer->pid, SIGKILL);
	waitpid(peer->pid, NULL, 0);
	unlink(peer->path);
	rmdir(peer->dir);
}

static void speak_not(int fd)
{
	char byte;

	while (read(fd, &byte, 1) > 0)
		;
}

static void speak_garbage(int fd)
{
	char noise[4096];

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)(i * 7919 >> 3);
	for (int i = 0; i < 16; i++)
		if (write(fd, noise, sizeof(noise)) < 0)
			return;
}

#define BEGIN "BEGIN\r\n" /* the end of the authentication */

/* Accepts the authentication and reads until this text. False: the client has closed the connection. */
static bool read_until(int fd, const char *text)
{
	static const char ok[] = "OK 0123456789abcdef0123456789abcdef\r\nAGREE_UNIX_FD\r\n";
	char buffer[4096];
	size_t have = 0;

	while (have < sizeof(buffer)) {
		ssize_t n = read(fd, buffer + have, sizeof(buffer) - have);

		if (n <= 0 || (have == 0 && write(fd, ok, sizeof(ok) - 1) < 0))
			return false;
		have += (size_t)n;
		if (memmem(buffer, have, text, strlen(text)))
			return true;
	}
	return false;
}

/* Accepts the authentication, then sends bytes that are no message. */
static void speak_garbage_after_authentication(int fd)
{
	if (read_until(fd, BEGIN))
		speak_garbage(fd);
}

/* As dbus-daemon with a user that it does not serve. */
static void speak_no_greeting(int fd)
{
	(void)read_until(fd, BEGIN);
}

/* Waits for a call after the greeting, which it does not answer. */
static void await_question(int fd)
{
	(void)read_until(fd, "NameHasOwner");
}

TEST(opening_fails_cleanly_at_a_peer_that_is_no_bus)
{
	void (*const speakers[])(int) = { speak_garbage, speak_garbage_after_authentication };

	for (size_t i = 0; i < ARRAY_SIZE(speakers); i++) {
		struct gpuarb *gpuarb = NULL;
		struct peer peer;

		peer_start(&peer, speakers[i]);
		CHECK(gpuarb_open(&gpuarb) == -ECONNREFUSED && !gpuarb);
		CHECK(strstr(gpuarb_last_error(NULL), peer.path));
		peer_stop(&peer);
	}
}

static void is_refused(uid_t uid, const char *cause)
{
	struct gpuarb *gpuarb = NULL;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(seteuid(uid) < 0 || gpuarb_open(&gpuarb) != -ECONNREFUSED ||
		      !strstr(gpuarb_last_error(NULL), cause));
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

TEST(a_bus_that_refuses_the_user_is_explained_by_the_name_of_the_user)
{
	_cleanup_(peer_stop) struct peer peer;

	peer_start(&peer, speak_no_greeting);
	CHECK(chmod(peer.dir, 0755) == 0 && chmod(peer.path, 0777) == 0);
	if (getpwuid(geteuid()))
		is_refused(geteuid(), "a session bus serves only its own user");
	if (geteuid() == 0) {
		is_refused(2000000001,
			   "refuses users without a name: see getent passwd 2000000001");
		is_refused(1, "a session bus serves only its own user, and this is user 1");
	}
}

TEST(the_question_for_the_daemon_is_sent_without_waiting_for_the_greeting)
{
	_cleanup_(peer_stop) struct peer peer;
	struct gpuarb *gpuarb = NULL;

	peer_start(&peer, await_question);
	CHECK(gpuarb_open(&gpuarb) == -ECONNREFUSED && !gpuarb);
}

TEST(connecting_to_a_silent_peer_times_out)
{
	struct gpuarb gpuarb = { .references = 1, .answer_usec = LIB_RIG_SOON };
	_cleanup_(peer_stop) struct peer peer;

	peer_start(&peer, speak_not);
	gpuarb.address = peer.address;
	CHECK(connection_ensure(&gpuarb) == -ETIMEDOUT && !gpuarb.connection);
	CHECK(strstr(gpuarb_last_error(&gpuarb), gpuarb.address));
	handle_begin(&gpuarb);
}

/* ---- a bus without the daemon --------------------------------------------------------- */

TEST(a_call_fails_with_service_unknown_without_a_daemon)
{
	struct rig bus;
	struct gpuarb *gpuarb;

	if (rig_bus_missing())
		SKIP(rig_bus_missing());
	rig_new(&bus);
	gpuarb = lib_rig_open();
	every_call_fails(gpuarb, -ECONNREFUSED);
	CHECK(strstr(gpuarb_last_error(gpuarb), bus.address));
	CHECK(strcmp(gpuarb_last_error_name(gpuarb), DBUS_ERROR_SERVICE_UNKNOWN) == 0);
	gpuarb_close(gpuarb);
	rig_done(&bus);
}

TEST(a_handle_reconnects_after_the_bus_returns)
{
	struct rig bus;
	struct gpuarb *gpuarb;

	if (rig_bus_missing())
		SKIP(rig_bus_missing());
	rig_new(&bus);
	gpuarb = lib_rig_open();
	gpuarb->reconnect_usec = LIB_RIG_SOON;
	rig_kill_bus(&bus);
	CHECK(gpuarb_reload(gpuarb) == -ECONNREFUSED);
	CHECK(strcmp(gpuarb_last_error_name(gpuarb), "") == 0);
	rig_start_bus(&bus);
	/* Not used: this handle has never reached a daemon. */
	gpuarb->reconnect_usec = RECONNECT_USEC;
	CHECK(gpuarb_reload(gpuarb) == -ECONNREFUSED);
	CHECK(strcmp(gpuarb_last_error_name(gpuarb), DBUS_ERROR_SERVICE_UNKNOWN) == 0);
	gpuarb_close(gpuarb);
	rig_done(&bus);
}
