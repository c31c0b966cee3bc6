/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/fdinfo-client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "helpers/helper.h"
#include "util/text.h"

struct fdinfo {
	struct helper helper;
	uint64_t patience_usec;
	fdinfo_done_t *done;
	void *userdata;

	bool asked;
	bool all;    /* the request is for all processes */
	bool reused; /* the connection is older than the request */
	struct drm_scan scan;
};

static int send_request(struct fdinfo *fdinfo, char *why, size_t size)
{
	const unsigned char request = fdinfo->all;

	if (send(fdinfo->helper.fd, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	return refuse(why, size, -errno, "%s: %s", fdinfo->helper.socket, strerror(errno));
}

static int ask_new_helper(struct fdinfo *fdinfo, char *why, size_t size)
{
	int r;

	helper_close(&fdinfo->helper);
	fdinfo->reused = false;
	r = helper_open(&fdinfo->helper, why, size);
	return r < 0 ? r : send_request(fdinfo, why, size);
}

/* A connection after a failed request is not used again: its next packet may be a late answer. */
static void answer(struct fdinfo *fdinfo, int r, const char *why)
{
	bool asked = fdinfo->asked;

	fdinfo->asked = false;
	sd_event_source_set_enabled(fdinfo->helper.timer, SD_EVENT_OFF);
	if (r < 0)
		helper_close(&fdinfo->helper);
	if (asked)
		fdinfo->done(fdinfo->userdata, r, r < 0 ? NULL : &fdinfo->scan, why);
}

/* An idle helper ends, maybe in the moment of the next request: then a new one is asked. */
static void on_end(struct fdinfo *fdinfo)
{
	char why[256] = "gpuarb-fdinfo ended before it answered";
	int r = -ECONNRESET;

	if (fdinfo->asked && fdinfo->reused)
		r = ask_new_helper(fdinfo, why, sizeof(why));
	if (r < 0)
		answer(fdinfo, r, why);
}

static int on_io(sd_event_source *, int fd, uint32_t, void *userdata)
{
	struct fdinfo *fdinfo = userdata;
	ssize_t n = recv(fd, &fdinfo->scan, sizeof(fdinfo->scan), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		on_end(fdinfo);
	else if (!fdinfo->asked || drm_scan_check(&fdinfo->scan, (size_t)n) < 0)
		answer(fdinfo, -EBADMSG, "gpuarb-fdinfo sent an invalid answer");
	else
		answer(fdinfo, 0, "");
	return 0;
}

static int on_timer(sd_event_source *, uint64_t, void *userdata)
{
	answer(userdata, -ETIMEDOUT, "gpuarb-fdinfo did not answer in time");
	return 0;
}

int fdinfo_ask(struct fdinfo *fdinfo, bool all, char *why, size_t size)
{
	int r = -EPIPE;

	if (fdinfo->asked)
		return -EALREADY;
	fdinfo->all = all;
	fdinfo->reused = fdinfo->helper.fd >= 0;
	if (fdinfo->reused)
		r = send_request(fdinfo, why, size);
	if (r < 0)
		r = ask_new_helper(fdinfo, why, size);
	if (r >= 0)
		r = sd_event_source_set_time_relative(fdinfo->helper.timer, fdinfo->patience_usec);
	if (r >= 0)
		r = sd_event_source_set_enabled(fdinfo->helper.timer, SD_EVENT_ONESHOT);
	if (r < 0)
		helper_close(&fdinfo->helper);
	fdinfo->asked = r >= 0;
	return r < 0 ? r : 0;
}

int fdinfo_new(sd_event *event, const char *socket, uint64_t patience_usec, fdinfo_done_t *done,
	       void *userdata, struct fdinfo **ret)
{
	_cleanup_(fdinfo_freep) struct fdinfo *fdinfo = calloc(1, sizeof(*fdinfo));
	int r;

	if (!fdinfo)
		return -ENOMEM;
	fdinfo->patience_usec = patience_usec;
	fdinfo->done = done;
	fdinfo->userdata = userdata;
	r = helper_init(&fdinfo->helper, event, socket, "gpuarb-fdinfo.socket", on_io, on_timer,
			fdinfo);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(fdinfo);
	return 0;
}

struct fdinfo *fdinfo_free(struct fdinfo *fdinfo)
{
	if (!fdinfo)
		return NULL;

	helper_done(&fdinfo->helper);
	free(fdinfo);
	return NULL;
}
