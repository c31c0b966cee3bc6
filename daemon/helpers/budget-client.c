/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/budget-client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "helpers/helper.h"
#include "util/fd.h"
#include "util/text.h"

struct budget_client {
	struct helper helper; /* connected: a request is under way */
	uint64_t patience_usec;
	budget_done_t *done;
	void *userdata;

	uint32_t n; /* rows of that request */
	struct budget_answer answer;
};

static void hang_up(struct budget_client *client)
{
	helper_close(&client->helper);
	sd_event_source_set_enabled(client->helper.timer, SD_EVENT_OFF);
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

static int send_request(const struct budget_client *client, int fd,
			const struct budget_request *request, char *why, size_t size)
{
	if (send(fd, request, budget_request_size(request->n), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	return refuse(why, size, -errno, "%s: %s", client->helper.socket, strerror(errno));
}

static int by_cgroup(const void *a, const void *b)
{
	const struct budget_row *x = a, *y = b;

	return (x->cgroup > y->cgroup) - (x->cgroup < y->cgroup);
}

static int by_cgroup_and_lease(const void *a, const void *b)
{
	const struct budget_row *x = a, *y = b;
	int order = by_cgroup(a, b);

	return order != 0 ? order : (x->lease > y->lease) - (x->lease < y->lease);
}

size_t budget_request_fill(struct budget_request *request, struct budget_row *rows, size_t n)
{
	size_t n_cgroups = 0;

	request->n = 0;
	qsort(rows, n, sizeof(*rows), by_cgroup_and_lease);
	for (size_t i = 0; i < n; i++) {
		struct budget_row *last = request->n ? &request->rows[request->n - 1] : NULL;
		bool again = i > 0 && rows[i].cgroup == rows[i - 1].cgroup;

		n_cgroups += !again;
		if (n_cgroups > BUDGET_ROWS_MAX)
			continue;
		if (!again)
			request->rows[request->n++] = rows[i];
		else
			last->limit = min_u64(last->limit + rows[i].limit, BUDGET_LIMIT_MAX);
	}
	return n_cgroups - request->n;
}

const struct budget_state *budget_state_of(const struct budget_request *request,
					   const struct budget_answer *answer, uint64_t cgroup)
{
	const struct budget_row key = { .cgroup = cgroup };
	const struct budget_row *row = bsearch(&key, request->rows, answer->n,
					       sizeof(request->rows[0]), by_cgroup);

	return row ? &answer->rows[row - request->rows] : NULL;
}

int budget_ask(struct budget_client *client, const struct budget_request *request, char *why,
	       size_t size)
{
	int r;

	if (client->helper.fd >= 0)
		return -EALREADY;
	client->n = request->n;
	r = helper_open(&client->helper, why, size);
	if (r >= 0)
		r = send_request(client, client->helper.fd, request, why, size);
	if (r >= 0)
		r = sd_event_source_set_time_relative(client->helper.timer, client->patience_usec);
	if (r >= 0)
		r = sd_event_source_set_enabled(client->helper.timer, SD_EVENT_ONESHOT);
	if (r < 0)
		hang_up(client);
	return r < 0 ? r : 0;
}

int budget_clear(struct budget_client *client, char *why, size_t size)
{
	const struct budget_request request = { .version = BUDGET_VERSION };
	_cleanup_fd_ int fd = -1;

	hang_up(client);
	fd = helper_connect(client->helper.socket, SOCK_SEQPACKET, client->helper.unit, why, size);
	return fd < 0 ? fd : send_request(client, fd, &request, why, size);
}

int budget_client_new(sd_event *event, const char *socket, uint64_t patience_usec,
		      budget_done_t *done, void *userdata, struct budget_client **ret)
{
	_cleanup_(budget_client_freep) struct budget_client *client = calloc(1, sizeof(*client));
	int r;

	if (!client)
		return -ENOMEM;
	client->patience_usec = patience_usec;
	client->done = done;
	client->userdata = userdata;
	r = helper_init(&client->helper, event, socket, "gpuarb-budget.socket", on_io, on_timer,
			client);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(client);
	return 0;
}

struct budget_client *budget_client_free(struct budget_client *client)
{
	if (!client)
		return NULL;

	helper_done(&client->helper);
	free(client);
	return NULL;
}
