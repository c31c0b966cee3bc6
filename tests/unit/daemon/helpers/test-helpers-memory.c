/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Memory that runs out at any one allocation of what reads and forces for the daemon: it is told
 * as such, nothing is half done, and the next try succeeds.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "await.h"
#include "check.h"
#include "util/base.h"
#include "enforce-rig.h"
#include "helpers/enforce/server.h"
#include "hw/kfd-queues.h"
#include "lack.h"
#include "sys/cgroup.h"
#include "helpers/clients.h"
#include "helpers/debugfs-reader.h"

#define QUEUES 40U /* the rows double twice */
#define DESCRIPTOR 2048U

static char dir[64] = "/tmp/gpuarb-test-XXXXXX";

static const char *at(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(at(name), "we");

	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* ---- kfd/mqds ------------------------------------------------------------------------------ */

static char *mqds;

static void make_mqds(void)
{
	size_t size;
	FILE *out = open_memstream(&mqds, &size);

	CHECK(out);
	fprintf(out, "Process 1 PASID 0x8001:\n");
	for (unsigned i = 0; i < QUEUES; i++) {
		fprintf(out, "  Compute queue on device 1\n");
		for (unsigned offset = 0; offset < DESCRIPTOR; offset += 32)
			fprintf(out,
				"    %08x: 00000001 00000001 00000001 00000001 00000001 "
				"00000001 00000001 00000001\n",
				offset);
	}
	CHECK(fclose(out) == 0);
}

static int parse_mqds(long allocations)
{
	static const struct gpu_info gpu = {
		.name = "0000:03:00.0",
		.gfx_target = 90006,
		.kfd_gpu_id = 1,
		.geometry = { .xccs = 1,
			      .engines = 1,
			      .arrays = 1,
			      .array_cus = 4,
			      .active = { { { 4 } } } },
	};
	_cleanup_(queue_parser_freep) struct queue_parser *parser = NULL;
	struct queue_text read = { 0 };
	char why[200] = "";
	int r;

	lack_left = allocations;
	parser = queue_parser_new(&gpu, 1, false);
	if (!parser)
		return -ENOMEM;
	r = queue_parser_feed(parser, mqds, strlen(mqds), why, sizeof(why));
	if (r >= 0)
		r = queue_parser_end(parser, &read, why, sizeof(why));
	if (r < 0)
		CHECK(!read.queues && read.n_queues == 0 && strstr(why, "memory"));
	else
		CHECK(read.n_queues == QUEUES);
	free(read.queues);
	return r;
}

/* ---- a probe ------------------------------------------------------------------------------- */

struct reading {
	bool ended;
	int r;
	char text[16], why[200];
};

static int on_piece(void *userdata, const char *text, size_t size, char *, size_t)
{
	struct reading *reading = userdata;

	CHECK(size < sizeof(reading->text));
	memcpy(reading->text, text, size);
	return 0;
}

static void on_end(void *userdata, int r, const char *why)
{
	struct reading *reading = userdata;

	reading->ended = true;
	reading->r = r;
	snprintf(reading->why, sizeof(reading->why), "%s", why);
}

static int read_probe(long allocations)
{
	_cleanup_(sd_event_unrefp) sd_event *event = NULL;
	_cleanup_(probe_freep) struct probe *probe = NULL;
	struct reading reading = { 0 };
	int r;

	CHECK(sd_event_new(&event) >= 0);
	lack_left = allocations;
	r = probe_new(event, dir, &probe_mqds, UINT64_C(600000000), on_piece, on_end, &reading,
		      &probe);
	if (r < 0) {
		CHECK(!probe);
		return r;
	}
	r = probe_start(probe, reading.why, sizeof(reading.why));
	CHECK(r == 0 || reading.why[0]);
	while (r >= 0 && !reading.ended)
		r = sd_event_run(event, UINT64_MAX);
	if (r < 0) /* what the loop cannot do ends gpuarbd */
		return r;
	CHECK(reading.r < 0 ? reading.why[0] != '\0' : strcmp(reading.text, "text\n") == 0);
	return reading.r;
}

/* ---- a unit's processes ---------------------------------------------------------------------- */

static int list_unit(long allocations)
{
	_cleanup_(freep) pid_t *pids = NULL;
	size_t n = 0;
	int r;

	lack_left = allocations;
	r = unit_processes(dir, "/unit", &pids, &n);
	CHECK(r == 0 ? n == 100 && pids[99] == 100 : !pids && n == 0);
	return r;
}

static void make_unit(void)
{
	FILE *file;

	CHECK(mkdir(at("unit"), 0755) == 0);
	file = fopen(at("unit/cgroup.procs"), "we");
	CHECK(file);
	for (unsigned i = 1; i <= 100; i++)
		fprintf(file, "%u\n", i);
	CHECK(fclose(file) == 0);
}

/* ---- a request ----------------------------------------------------------------------------- */

static struct helper helper;

static void on_lost(void *)
{
}

static void on_done(void *userdata, const struct asker_request *, int r, const void *answer,
		    const char *)
{
	*(int *)userdata = answer ? ((const struct enforce_answer *)answer)->r : r;
}

static int ask_helper(long allocations)
{
	_cleanup_(sd_event_unrefp) sd_event *event = NULL;
	_cleanup_(asker_freep) struct asker *enforce = NULL;
	int answer = 1, r;
	char why[200];

	lack_left = allocations;
	r = sd_event_new(&event);
	if (r >= 0)
		r = asker_new(event, &enforce_helper, helper.path, UINT64_C(60000000), on_done,
			      on_lost, &answer, &enforce);
	if (r >= 0)
		r = enforce_ask(enforce, ENFORCE_KILL, STDIN_FILENO, 1, 0, "", 1, why, sizeof(why));
	while (r >= 0 && answer == 1)
		r = sd_event_run(event, UINT64_MAX);
	CHECK(r < 0 || answer == -EBADF);
	return r < 0 ? r : 0;
}

/* ---- requests to the other helpers -------------------------------------------------------------- */

static void on_answer(void *, const struct asker_request *, int, const void *, const char *)
{
}

static int make_asker(long allocations)
{
	_cleanup_(sd_event_unrefp) sd_event *event = NULL;
	_cleanup_(asker_freep) struct asker *asker = NULL;
	int r;

	CHECK(sd_event_new(&event) >= 0);
	lack_left = allocations;
	r = asker_new(event, &fdinfo_helper, helper.path, 1, on_answer, NULL, NULL, &asker);
	CHECK((r == 0) == (asker != NULL));
	return r;
}

/* ---- the helper itself ------------------------------------------------------------------------ */

/* As the program does, until the client has something to read. What its loop cannot do for want of
 * memory ends it, and the client is hung up on; or is not accepted yet, and the next one's. */
static int serve(int client)
{
	_cleanup_(sd_event_unrefp) sd_event *event = NULL;
	_cleanup_(server_freep) struct server *server = NULL;
	struct pollfd answer = { .fd = client, .events = POLLIN };
	int r = sd_event_new(&event);

	if (r >= 0)
		r = server_new(event, helper.listening, helper.sysfs, -1, 1000000,
			       UINT64_C(60000000), &server);
	while (r >= 0 && poll(&answer, 1, 0) == 0) {
		r = sd_event_run(event, UINT64_MAX);
		CHECK(r > 0 || r == -ENOMEM);
	}
	return r;
}

/* A request is answered, by this helper or the next, or the client hung up on: it knows then that
 * nothing was done. */
static int serve_one(long allocations)
{
	int client = client_connect(&helper), r;
	char buf[ENFORCE_TEXT_MAX];

	lack_left = allocations;
	CHECK(client_send(client, "thaw a.service", 14, NULL, 0));
	r = serve(client);
	if (r < 0)
		CHECK(serve(client) >= 0);
	client_receive(client, buf);
	close(client);
	CHECK(buf[0] == '\0' || strncmp(buf, "error 12 ", 9) == 0 ||
	      strncmp(buf, "error 1 ", 8) == 0);
	return r < 0 || strncmp(buf, "error 1 ", 8) != 0 ? -ENOMEM : 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

TEST(helpers_and_their_clients_go_on_where_an_allocation_fails)
{
	CHECK(mkdtemp(dir) && mkdir(at("kfd"), 0755) == 0);
	CHECK(setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent", 1) == 0);
	make_mqds();
	CHECK(lack_each("parse_mqds", parse_mqds) >= 3);
	put("kfd/mqds", "text\n");
	CHECK(lack_each("a probe", read_probe) >= 4);
	make_unit();
	CHECK(lack_each("list_unit", list_unit) >= 4);

	helper_listen(&helper);
	helper_start(&helper, NULL, NULL, -1);
	CHECK(lack_each("ask_helper", ask_helper) >= 6);
	CHECK(lack_each("make_asker", make_asker) >= 2);
	helper_stop(&helper);

	helper_listen(&helper);
	CHECK(fcntl(helper.listening, F_SETFL, O_NONBLOCK) == 0);
	CHECK(lack_each("a helper", serve_one) >= 6);
	helper_stop(&helper);

	free(mqds);
	unlink(at("unit/cgroup.procs"));
	rmdir(at("unit"));
	unlink(at("kfd/mqds"));
	rmdir(at("kfd"));
	CHECK(rmdir(dir) == 0);
}
