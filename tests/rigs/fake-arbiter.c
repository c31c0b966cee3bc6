/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fake-arbiter.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dbus/names.h"

struct service {
	const char *address;
	fake_answer_t answer;
	void (*again)(void *userdata);
	void *userdata;
	int ready, log;
	bool late, keep;
};

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "fake arbiter: %s: %s\n", what, strerror(-r));
	_exit(1);
}

static int filter(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct service *service = userdata;
	const char *member = sd_bus_message_get_member(m);
	uint8_t type;

	if (sd_bus_message_get_type(m, &type) < 0 || type != SD_BUS_MESSAGE_METHOD_CALL)
		return 0;
	send(service->log, member, strlen(member) + 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	must(service->answer(m, service->userdata), member);
	return 1;
}

static void process(sd_bus *bus)
{
	int r = sd_bus_process(bus, NULL);

	if (r < 0)
		_exit(0);
	if (r == 0)
		must(sd_bus_wait(bus, UINT64_MAX), "wait");
}

static int somebody_came(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	const char *name, *from, *to;

	must(sd_bus_message_read(m, "sss", &name, &from, &to), "read");
	if (*name == ':' && *to)
		*(bool *)userdata = true;
	return 0;
}

static void tell_ready(struct service *service)
{
	if (service->ready < 0)
		return;
	must((int)write(service->ready, "r", 1), "ready");
	close(service->ready);
	service->ready = -1;
}

static void wait_for_somebody(sd_bus *bus, struct service *service)
{
	bool came = false;

	must(sd_bus_match_signal(bus, NULL, "org.freedesktop.DBus", NULL, NULL, "NameOwnerChanged",
				 somebody_came, &came),
	     "match");
	tell_ready(service);
	while (!came)
		process(bus);
}

static void serve(struct service *service)
{
	sd_bus *bus = NULL;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	must(sd_bus_new(&bus), "new");
	must(sd_bus_set_address(bus, service->address), "address");
	must(sd_bus_set_bus_client(bus, 1), "client");
	must(sd_bus_negotiate_fds(bus, 1), "fds");
	must(sd_bus_start(bus), "start");
	must(sd_bus_add_filter(bus, NULL, filter, service), "filter");
	if (service->late)
		wait_for_somebody(bus, service);
	must(sd_bus_request_name(bus, GPUARB_BUS_NAME, 0), "name");
	tell_ready(service);
	for (;;)
		process(bus);
}

/* One life after the other. */
static void keep(struct service *service)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		pid_t pid = fork();

		if (pid == 0)
			serve(service);
		close(service->ready);
		service->ready = -1;
		waitpid(pid, NULL, 0);
		if (service->again)
			service->again(service->userdata);
	}
}

static void start(struct service *service, struct fake_arbiter *ret)
{
	int ready[2], log[2];
	pid_t pid;
	char c;

	if (pipe2(ready, O_CLOEXEC) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, log) < 0)
		abort();
	fflush(stdout);
	pid = fork(); /* the child does not write to ret, which can be shared memory */
	if (pid == 0) {
		close(ready[0]);
		close(log[0]);
		service->ready = ready[1];
		service->log = log[1];
		if (service->keep)
			keep(service);
		serve(service);
	}
	close(ready[1]);
	close(log[1]);
	ret->pid = pid;
	ret->log = log[0];
	if (read(ready[0], &c, 1) != 1)
		abort();
	close(ready[0]);
}

void fake_arbiter_start(const char *address, fake_answer_t answer, void *userdata,
			struct fake_arbiter *ret)
{
	struct service service = { .address = address, .answer = answer, .userdata = userdata };

	start(&service, ret);
}

void fake_arbiter_start_late(const char *address, fake_answer_t answer, void *userdata,
			     struct fake_arbiter *ret)
{
	struct service service = {
		.address = address, .answer = answer, .userdata = userdata, .late = true
	};

	start(&service, ret);
}

void fake_arbiter_keep(const char *address, fake_answer_t answer, void (*again)(void *userdata),
		       void *userdata, struct fake_arbiter *ret)
{
	struct service service = { .address = address,
				   .answer = answer,
				   .userdata = userdata,
				   .again = again,
				   .keep = true };

	start(&service, ret);
}

void fake_arbiter_stop(struct fake_arbiter *fake)
{
	close(fake->log);
	kill(fake->pid, SIGKILL);
	waitpid(fake->pid, NULL, 0);
}

void fake_arbiter_saw(const struct fake_arbiter *fake, const char *member)
{
	char saw[128] = "nothing";

	if (recv(fake->log, saw, sizeof(saw) - 1, 0) <= 0 || strcmp(saw, member) != 0) {
		fprintf(stderr, "the arbiter saw %s, not %s\n", saw, member);
		abort();
	}
}

sd_bus_message *fake_reply(sd_bus_message *call)
{
	sd_bus_message *reply;

	must(sd_bus_message_new_method_return(call, &reply), "reply");
	return reply;
}

int fake_send(sd_bus_message *reply)
{
	int r = sd_bus_send(NULL, reply, NULL);

	sd_bus_message_unref(reply);
	return r;
}

static void open_entry(sd_bus_message *m, const char *key, const char *type)
{
	must(sd_bus_message_open_container(m, 'e', "sv"), key);
	must(sd_bus_message_append(m, "s", key), key);
	must(sd_bus_message_open_container(m, 'v', type), key);
}

static void close_entry(sd_bus_message *m)
{
	must(sd_bus_message_close_container(m), "close");
	must(sd_bus_message_close_container(m), "close");
}

void fake_append(sd_bus_message *m, const char *key, const char *type, ...)
{
	va_list args;

	open_entry(m, key, type);
	va_start(args, type);
	must(sd_bus_message_appendv(m, type, args), key);
	va_end(args);
	close_entry(m);
}

void fake_append_partitions(sd_bus_message *m, uint32_t cus, uint32_t kfd_gpu_id)
{
	uint64_t mask = (UINT64_C(1) << cus) - 1;

	must(sd_bus_message_open_container(m, 'a', "a{sv}"), "open");
	must(sd_bus_message_open_container(m, 'a', "{sv}"), "open");
	fake_append(m, "gpu", "s", "0000:03:00.0");
	fake_append(m, "kfd-gpu-id", "u", kfd_gpu_id);
	fake_append(m, "cu-mask", "au", 2, (uint32_t)mask, (uint32_t)(mask >> 32));
	fake_append(m, "cus", "u", cus);
	fake_append(m, "cus-asked", "u", cus + 1);
	fake_append(m, "effective-cus", "u", cus);
	fake_append(m, "shader-engines", "au", 2, 0, 1);
	fake_append(m, "queues", "u", 5);
	fake_append(m, "streams", "u", 1);
	fake_append(m, "processes", "u", 1);
	fake_append(m, "sdma-queues", "u", 2);
	fake_append(m, "vram", "t", UINT64_C(1) << 30);
	fake_append(m, "priority", "u", 7);
	fake_append(m, "tier", "s", "cooperative");
	fake_append(m, "gaps", "as", 1, "power");
	must(sd_bus_message_close_container(m), "close");
	must(sd_bus_message_close_container(m), "close");
}

void fake_append_lease(sd_bus_message *m, const char *state, uint64_t generation, uint32_t cus,
		       uint32_t kfd_gpu_id)
{
	fake_append(m, "State", "s", state);
	fake_append(m, "Generation", "t", generation);
	open_entry(m, "Partitions", "aa{sv}");
	fake_append_partitions(m, cus, kfd_gpu_id);
	close_entry(m);
}
