/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/enforce-client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "helpers/asker.h"
#include "util/log.h"
#include "util/text.h"

struct enforce {
	struct asker *asker;
	enforce_done_t *done;
	enforce_lost_t *lost;
	void *userdata;
};

static bool is_valid(void *answer, size_t length, size_t, const void *)
{
	return enforce_answer_check(answer, length) >= 0;
}

static const struct asker_helper helper = {
	.name = "gpuarb-enforce",
	.unit = "gpuarb-enforce.socket",
	.most = ENFORCE_QUEUE,
	.answer_size = sizeof(struct enforce_answer),
	.is_valid = is_valid,
	.lasts = true,
};

static void on_done(void *userdata, const struct asker_request *request, int r, const void *packet,
		    const char *why)
{
	const struct enforce_answer *answer = packet;
	struct enforce *enforce = userdata;

	enforce->done(enforce->userdata, request->tag, request->body, answer ? answer->r : r,
		      answer ? answer->sentence : why);
}

static void on_lost(void *userdata)
{
	struct enforce *enforce = userdata;

	enforce->lost(enforce->userdata);
}

int enforce_ask(struct enforce *enforce, enum enforce_verb verb, int pidfd, uint64_t start_time,
		uid_t uid, const char *text, uint64_t tag, char *why, size_t size)
{
	struct enforce_request request = { .verb = verb, .start_time = start_time, .uid = uid };
	int r = enforce_names_unit(verb) ? enforce_unit_check(text, why, size) : 0;

	if (r < 0)
		return r;
	if (pidfd < 0 && verb != ENFORCE_THAW)
		return refuse(why, size, -EBADF, "there is no pidfd of the process");
	snprintf(request.text, sizeof(request.text), "%s", text);
	return asker_ask(enforce->asker, &request, sizeof(request), pidfd, tag, why, size);
}

int enforce_new(sd_event *event, const char *socket, uint64_t patience_usec, enforce_done_t *done,
		enforce_lost_t *lost, void *userdata, struct enforce **ret)
{
	_cleanup_(enforce_freep) struct enforce *enforce = calloc(1, sizeof(*enforce));
	int r;

	if (!enforce)
		return -ENOMEM;
	enforce->done = done;
	enforce->lost = lost;
	enforce->userdata = userdata;
	r = asker_new(event, &helper, socket, patience_usec, on_done, on_lost, enforce,
		      &enforce->asker);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(enforce);
	return 0;
}

/* An empty packet is the end of the connection. */
void enforce_wake(struct enforce *enforce)
{
	char why[256];
	int r = asker_tell(enforce->asker, "", 0, why, sizeof(why));

	if (r < 0 && r != -EOPNOTSUPP)
		log_warning("units that an earlier gpuarb-enforce froze are not thawed: %s", why);
}

struct enforce *enforce_free(struct enforce *enforce)
{
	if (!enforce)
		return NULL;

	asker_free(enforce->asker);
	free(enforce);
	return NULL;
}
