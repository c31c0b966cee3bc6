/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/budget-client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers/helper.h"
#include "util/text.h"

struct budget_client {
	sd_event *event;
	char *socket;
	uint64_t patience_usec;
	budget_done_t *done;
	void *userdata;

	int fd;     /* -1: no request is under way */
	uint32_t n; /* rows of that request */
	sd_event_source *io, *timer;
	struct budget_answer answer;
};

static void hang_up(struct budget_client *client)
{
	client->io = sd_event_source_disable_unref(client->io);
	client->timer = sd_event_source_disable_unref(client->timer);
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

static void finish(struct budget_client *client, int r, const char *why)
{
	hang_up(client);
	client->done(client->userdata, r, r < 0 ? NULL : &client->answer, why);
}

static bool is_valid(const struct budget_client *client, size_t length)
{
	const struct budget_answer *answer = &client->answer;

	return length >= budget_answer_size(0) && answer->version == BUDGET_VERSION &&
	       answer->r <= 0 && answer->n == (answer->r < 0 ? 0 : client->n) &&
	       length == budget_answer_size(answer->n) &&
	       memchr(answer->sentence, '\0', sizeof(answer->sentence));
}

static int on_io(sd_event_source *, int fd, uint32_t, void *userdata)
{
	struct budget_client *client = userdata;
	ssize_t n = recv(fd, &client->answer, sizeof(client->answer), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		finish(client, -ECONNRESET, "gpuarb-budget ended before it answered");
	else if (!is_valid(client, (size_t)n))
		finish(client, -EBADMSG, "gpuarb-budget sent an invalid answer");
	else
		finish(client, 0, "");
	return 0;
}

static int on_timer(sd_event_source *, uint64_t, void *userdata)
{
	finish(userdata, -ETIMEDOUT, "gpuarb-budget did not answer in time");
	return 0;
}

static int send_request(struct budget_client *client, const struct budget_request *request,
			char *why, size_t size)
{
	int r;

	r = helper_connect(client->socket, SOCK_SEQPACKET, "gpuarb-budget.socket", why, size);
	if (r < 0)
		return r;
	client->fd = r;
	if (send(client->fd, request, budget_request_size(request->n),
		 MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return refuse(why, size, -errno, "%s: %s", client->socket, strerror(errno));
	client->n = request->n;
	return 0;
}

static int await_answer(struct budget_client *client, char *why, size_t size)
{
	int r;

	r = sd_event_add_io(client->event, &client->io, client->fd, EPOLLIN, on_io, client);
	if (r >= 0)
		r = sd_event_add_time_relative(client->event, &client->timer, CLOCK_MONOTONIC,
					       client->patience_usec, 1000, on_timer, client);
	return r < 0 ? refuse(why, size, r, "cannot wait for gpuarb-budget: %s", strerror(-r)) : 0;
}

int budget_ask(struct budget_client *client, const struct budget_request *request, char *why,
	       size_t size)
{
	int r;

	if (client->fd >= 0)
		return -EALREADY;
	r = send_request(client, request, why, size);
	if (r >= 0)
		r = await_answer(client, why, size);
	if (r < 0)
		hang_up(client);
	return r;
}

int budget_clear(struct budget_client *client, char *why, size_t size)
{
	const struct budget_request request = { .version = BUDGET_VERSION };
	int r;

	hang_up(client);
	r = send_request(client, &request, why, size);
	hang_up(client);
	return r;
}

int budget_client_new(sd_event *event, const char *socket, uint64_t patience_usec,
		      budget_done_t *done, void *userdata, struct budget_client **ret)
{
	_cleanup_(budget_client_freep) struct budget_client *client = calloc(1, sizeof(*client));

	if (!client)
		return -ENOMEM;
	client->event = sd_event_ref(event);
	client->fd = -1;
	client->patience_usec = patience_usec;
	client->done = done;
	client->userdata = userdata;
	client->socket = strdup(socket);
	if (!client->socket)
		return -ENOMEM;
	*ret = TAKE_PTR(client);
	return 0;
}

struct budget_client *budget_client_free(struct budget_client *client)
{
	if (!client)
		return NULL;

	hang_up(client);
	sd_event_unref(client->event);
	free(client->socket);
	free(client);
	return NULL;
}
