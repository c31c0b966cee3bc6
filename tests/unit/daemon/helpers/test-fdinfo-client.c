/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The shipped gpuarb-fdinfo, and stand-ins that answer badly, asked as gpuarbd does. */

#include "helpers/clients.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "check.h"
#include "fake-procfs.h"
#include "scratch.h"

#define PATIENCE_USEC UINT64_C(60000000) /* reached by a failure only */

struct asking {
	struct scratch scratch;
	struct fake_procfs procfs;
	sd_event *event;
	struct asker *asker;
	unsigned answers;
	int r;
	struct drm_scan scan;
	char why[256];
};

static void on_done(void *userdata, const struct asker_request *, int r, const void *scan,
		    const char *why)
{
	struct asking *asking = userdata;

	asking->answers++;
	asking->r = r;
	if (r >= 0)
		memcpy(&asking->scan, scan, drm_scan_size(scan));
	snprintf(asking->why, sizeof(asking->why), "%s", why);
}

static void asking_new(struct asking *ret, uint64_t patience_usec)
{
	*ret = (struct asking){ .scratch = scratch_new() };
	procfs_new(ret->scratch.path, &ret->procfs);
	CHECK(sd_event_new(&ret->event) >= 0);
	CHECK(asker_new(ret->event, &fdinfo_helper, ret->procfs.socket, patience_usec, on_done,
			NULL, ret, &ret->asker) == 0);
}

static void asking_done(struct asking *asking)
{
	asker_free(asking->asker);
	sd_event_unref(asking->event);
	procfs_done(&asking->procfs);
	scratch_done(&asking->scratch);
}

static int begin(struct asking *asking)
{
	static const char request[] = { 0 };
	int r = asker_ask(asking->asker, request, 1, -1, 0, asking->why, sizeof(asking->why));

	if (r >= 0)
		CHECK(asker_ask(asking->asker, request, 1, -1, 0, asking->why,
				sizeof(asking->why)) == -ENOBUFS);
	return r;
}

static int finish(struct asking *asking)
{
	unsigned before = asking->answers;

	AWAIT_LOOP(asking->event, asking->answers != before);
	return asking->r;
}

static int ask(struct asking *asking)
{
	int r = begin(asking);

	return r < 0 ? r : finish(asking);
}

/* A program that is started instead of gpuarb-fdinfo. */
static const char *script(const struct asking *asking, const char *text)
{
	const char *path = scratch_write(&asking->scratch, "script", text);

	CHECK(chmod(path, 0755) == 0);
	return path;
}

static struct asking asking;

TEST(the_helper_tells_which_processes_have_clients)
{
	asking_new(&asking, PATIENCE_USEC);
	procfs_process(&asking.procfs, 20, 500);
	procfs_client(&asking.procfs, 20, 3, &(struct procfs_client){ .id = 1, .gfx_nsec = 10 });
	procfs_serve(&asking.procfs, NULL, NULL);
	CHECK(ask(&asking) == 0 && asking.scan.n == 1 && asking.scan.uses[0].pid == 20);
	procfs_process_gone(&asking.procfs, 20);
	CHECK(ask(&asking) == 0 && asking.scan.n == 0);
	asking_done(&asking);
}

TEST(without_a_helper_the_sentence_names_the_unit_to_enable)
{
	asking_new(&asking, PATIENCE_USEC);
	CHECK(ask(&asking) == -EOPNOTSUPP);
	CHECK(strstr(asking.why, "systemctl enable --now gpuarb-fdinfo.socket"));
	asking_done(&asking);
}

TEST(an_idle_helper_ends_and_the_next_request_starts_another)
{
	asking_new(&asking, PATIENCE_USEC);
	procfs_serve(&asking.procfs, NULL, "1");
	CHECK(ask(&asking) == 0);
	AWAIT_TURN(asking.event, "the helper hangs up");
	CHECK(asking.answers == 1);
	CHECK(ask(&asking) == 0 && asking.answers == 2);
	asking_done(&asking);
}

TEST(a_request_to_a_helper_that_has_just_ended_goes_to_another)
{
	char text[512];

	asking_new(&asking, PATIENCE_USEC);
	CHECK(mkfifo(scratch_at(&asking.scratch, "ended"), 0600) == 0);
	snprintf(text, sizeof(text), "#!/bin/sh\n%s \"$@\"\nread -r line <%s\n",
		 getenv("GPUARB_FDINFO"), scratch_at(&asking.scratch, "ended"));
	procfs_serve(&asking.procfs, script(&asking, text), "1");
	CHECK(ask(&asking) == 0);
	int fd = open(scratch_at(&asking.scratch, "ended"),
		      O_WRONLY | O_CLOEXEC); /* it has ended */
	CHECK(fd >= 0 && begin(&asking) == 0);
	CHECK(write(fd, "\n", 1) == 1 && close(fd) == 0);
	CHECK(finish(&asking) == 0 && asking.answers == 2);
	asking_done(&asking);
}

TEST(a_helper_that_ends_without_an_answer_is_an_error)
{
	asking_new(&asking, PATIENCE_USEC);
	procfs_serve(&asking.procfs, "/bin/true", NULL);
	CHECK(ask(&asking) == -ECONNRESET || asking.r == -EPIPE);
	asking_done(&asking);
}

TEST(an_answer_that_is_no_scan_is_an_error)
{
	asking_new(&asking, PATIENCE_USEC);
	procfs_serve(&asking.procfs, script(&asking, "#!/bin/sh\nprintf bad >&0\nread -r line\n"),
		     NULL);
	CHECK(ask(&asking) == -EBADMSG && strstr(asking.why, "invalid"));
	asking_done(&asking);
}

TEST(a_helper_that_never_answers_is_given_up)
{
	asking_new(&asking, 50000);
	procfs_serve(&asking.procfs, script(&asking, "#!/bin/sh\nexec sleep 60\n"), NULL);
	CHECK(ask(&asking) == -ETIMEDOUT);
	asking_done(&asking);
}

TEST(a_request_in_flight_is_forgotten_when_the_client_is_freed)
{
	asking_new(&asking, PATIENCE_USEC);
	procfs_serve(&asking.procfs, NULL, NULL);
	CHECK(begin(&asking) == 0);
	asking_done(&asking);
	CHECK(asking.answers == 0);
}

/* ---- the command line ---------------------------------------------------------------------- */

/* The exit status of gpuarb-fdinfo with this argument and /dev/null as standard input. */
static int run(const char *argument)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(freopen("/dev/null", "r", stdin));
		execl(getenv("GPUARB_FDINFO"), "gpuarb-fdinfo", argument, NULL);
		abort();
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(bad_options_and_a_missing_connection_end_with_2)
{
	CHECK(run("--help") == 0 && run("--version") == 0);
	CHECK(run("--exit-idle-time=0") == 2 && run("--exit-idle-time=1x") == 2 &&
	      run("--exit-idle-time=99999999999999999999") == 2);
	CHECK(run("--nonsense") == 2 && run("argument") == 2);
	CHECK(run(NULL) == 2);
}
