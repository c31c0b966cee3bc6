/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Packets between gpuarbd and its helpers. */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "helpers/clients.h"
#include "hw/drm-fdinfo.h"
#include "scratch.h"
#include "util/text.h"

/* ---- structs ------------------------------------------------------------------------------- */

/* The first bytes of the input as a struct, as recv() writes them into one. */
#define TAKE(type, data, size)                                                      \
	({                                                                          \
		type *taken = calloc(1, sizeof(type));                              \
		CHECK(taken);                                                       \
		memcpy(taken, data, (size) < sizeof(type) ? (size) : sizeof(type)); \
		taken;                                                              \
	})

FUZZ(request) /* to gpuarb-enforce */
{
	struct enforce_request *request = TAKE(struct enforce_request, data, size);
	char why[300] = "";
	int r = enforce_request_check(request, size, why, sizeof(why));

	CHECK(r == 0 || (r < 0 && why[0] && text_printable(why)));
	if (r == 0) {
		CHECK(size == sizeof(*request));
		if (enforce_names_unit(request->verb)) {
			const char *type = strrchr(request->text, '.');

			CHECK(strncmp(request->text, "gpuarb", 6) != 0 ||
			      strcmp(type, ".service") != 0);
			CHECK(strchr(request->text, '/') == NULL);
		}
	}
	free(request);
}

FUZZ(answer) /* of gpuarb-enforce, and a scan of gpuarb-fdinfo */
{
	struct enforce_answer *answer = TAKE(struct enforce_answer, data, size);
	struct drm_scan *scan = TAKE(struct drm_scan, data, size);
	int r = enforce_answer_check(answer, size);

	CHECK(r == 0 || r == -EBADMSG);
	if (r == 0)
		CHECK(text_printable(answer->sentence) && answer->r <= 0);
	r = drm_scan_check(scan, size);
	CHECK(r == 0 || r == -EBADMSG);
	for (uint32_t i = 0; r == 0 && i < scan->n; i++)
		CHECK(scan->uses[i].pid >= 0 &&
		      memchr(scan->uses[i].device, '\0', sizeof(scan->uses[i].device)));
	free(answer);
	free(scan);
}

/* ---- gpuarb-probe -------------------------------------------------------------------------- */

/* The first byte is the number of file descriptors. */
FUZZ(probe)
{
	struct probe_answer *answer = calloc(1, sizeof(*answer));
	size_t n_fds = 0;

	CHECK(answer);
	if (size > 1)
		memcpy(answer, data + 1, size - 1 < sizeof(*answer) ? size - 1 : sizeof(*answer));
	if (size > 0 && probe_helper.is_valid(answer, size - 1, data[0], NULL)) {
		CHECK(answer->n <= PROBE_GPUS && memchr(answer->text, '\0', sizeof(answer->text)));
		for (size_t i = 0; i < answer->n; i++)
			n_fds += answer->gpus[i].subscribed ? PROBE_FDS : 0;
		CHECK(n_fds == data[0]);
	}
	free(answer);
}

/* ---- clients that ask a helper ---------------------------------------------------------------- */

/* A helper that answers with the input. */
struct stage {
	sd_event *event;
	int listening;
	char path[96];
	unsigned answers, lost;
};

static void on_budget(void *userdata, const struct asker_request *, int r, const void *packet,
		      const char *why)
{
	const struct budget_answer *answer = packet;

	((struct stage *)userdata)->answers++;
	CHECK(r <= 0 && (r < 0) == (why[0] != '\0'));
	if (r == 0)
		CHECK(answer->n <= 1 && memchr(answer->sentence, '\0', sizeof(answer->sentence)));
}

static void on_scan(void *userdata, const struct asker_request *, int r, const void *scan,
		    const char *why)
{
	((struct stage *)userdata)->answers++;
	CHECK(r <= 0 && (r < 0) == (why[0] != '\0'));
	if (r == 0)
		CHECK(((const struct drm_scan *)scan)->n <= DRM_USES_MAX);
}

static void on_enforced(void *userdata, const struct asker_request *request, int r,
			const void *packet, const char *why)
{
	const struct enforce_answer *answer = packet;

	((struct stage *)userdata)->answers++;
	CHECK(request->tag == 1 && (answer ? answer->r : r) <= 0);
	CHECK(text_printable(answer ? answer->sentence : why));
}

static void on_lost(void *userdata)
{
	((struct stage *)userdata)->lost++;
}

static struct stage *stage_get(void)
{
	static struct stage stage = { .listening = -1 };
	struct scratch scratch;

	if (stage.listening >= 0)
		return &stage;
	scratch = scratch_new();
	snprintf(stage.path, sizeof(stage.path), "%s/socket", scratch.path);
	stage.listening = scratch_bind(stage.path, SOCK_SEQPACKET | SOCK_NONBLOCK);
	CHECK(listen(stage.listening, 4) == 0);
	CHECK(sd_event_new(&stage.event) >= 0);
	return &stage;
}

/* Answers each connection that waits, and hangs up. */
static void reply(struct stage *stage, const uint8_t *data, size_t size)
{
	int fd;

	while ((fd = accept4(stage->listening, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		if (size > 0)
			(void)send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
		close(fd);
	}
	while (sd_event_run(stage->event, 0) > 0)
		;
}

static void ask_budget(struct stage *stage, const uint8_t *data, size_t size)
{
	_cleanup_(asker_freep) struct asker *asker = NULL;
	struct budget_request *request = calloc(1, sizeof(*request));
	char why[300];

	CHECK(request);
	request->version = BUDGET_VERSION;
	request->n = 1;
	request->rows[0] = (struct budget_row){ 1, 2, 3 };
	CHECK(asker_new(stage->event, &budget_helper, stage->path, 60000000, on_budget, NULL, stage,
			&asker) == 0);
	CHECK(asker_ask(asker, request, budget_request_size(1), -1, 0, why, sizeof(why)) == 0);
	reply(stage, data, size);
	CHECK(stage->answers == 1);
	free(request);
}

static void ask_fdinfo(struct stage *stage, const uint8_t *data, size_t size)
{
	_cleanup_(asker_freep) struct asker *asker = NULL;
	char why[300];

	CHECK(asker_new(stage->event, &fdinfo_helper, stage->path, 60000000, on_scan, NULL, stage,
			&asker) == 0);
	CHECK(asker_ask(asker, "", 1, -1, 0, why, sizeof(why)) == 0);
	reply(stage, data, size);
	CHECK(stage->answers == 1);
}

static void ask_enforce(struct stage *stage, const uint8_t *data, size_t size)
{
	_cleanup_(asker_freep) struct asker *enforce = NULL;
	char why[300];

	CHECK(asker_new(stage->event, &enforce_helper, stage->path, 60000000, on_enforced, on_lost,
			stage, &enforce) == 0);
	CHECK(enforce_ask(enforce, ENFORCE_THAW, -1, 0, 0, "training.service", 1, why,
			  sizeof(why)) == 0);
	reply(stage, data, size);
	CHECK(stage->answers == 1 && stage->lost == 1);
}

/* The first byte selects the helper. */
FUZZ(client)
{
	struct stage *stage = stage_get();

	if (size == 0)
		return;
	stage->answers = stage->lost = 0;
	switch (data[0] % 3) {
	case 0: ask_budget(stage, data + 1, size - 1); break;
	case 1: ask_fdinfo(stage, data + 1, size - 1); break;
	default: ask_enforce(stage, data + 1, size - 1);
	}
}
