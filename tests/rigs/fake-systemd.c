/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fake-systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

static const struct {
	const char *unit, *error, *message;
} errors[] = {
	{ "inactive", "org.freedesktop.systemd1.UnitInactive", "Unit is inactive." },
	{ "busy", "org.freedesktop.systemd1.UnitBusy", "Previously requested operation" },
	{ "unable", SD_BUS_ERROR_NOT_SUPPORTED, "Unit does not support freezing." },
	{ "denied", SD_BUS_ERROR_ACCESS_DENIED, "Permission denied" },
	{ "interactive", SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, "Ask somebody." },
	{ "old", SD_BUS_ERROR_UNKNOWN_METHOD, "Unknown method FreezeUnit" },
	{ "strange", "org.example.Strange", "a\033b\nc" },
};

static int answer(sd_bus_message *m, const char *unit, sd_bus_error *error)
{
	size_t length = strcspn(unit, ".");

	if (strncmp(unit, "ok", 2) == 0)
		return sd_bus_reply_method_return(m, NULL);
	if (strncmp(unit, "silent", 6) == 0)
		return 1;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strlen(errors[i].unit) == length && strncmp(unit, errors[i].unit, length) == 0)
			return sd_bus_error_set(error, errors[i].error, errors[i].message);
	return sd_bus_error_setf(error, "org.freedesktop.systemd1.NoSuchUnit",
				 "Unit %s not loaded.", unit);
}

static int on_call(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const char *unit;
	int r;

	r = sd_bus_message_read(m, "s", &unit);
	if (r < 0)
		return r;
	if (dprintf(*(const int *)userdata, "%s %s\n", sd_bus_message_get_member(m), unit) < 0)
		return -errno;
	return answer(m, unit, error);
}

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("FreezeUnit", "s", "", on_call, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("ThawUnit", "s", "", on_call, SD_BUS_VTABLE_UNPRIVILEGED), SD_BUS_VTABLE_END
};

static int serve(int calls)
{
	sd_bus *bus;
	int r;

	r = sd_bus_new(&bus);
	if (r >= 0)
		r = sd_bus_set_address(bus, getenv("GPUARB_BUS_ADDRESS"));
	if (r >= 0)
		r = sd_bus_set_bus_client(bus, true);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r >= 0)
		r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/systemd1",
					     "org.freedesktop.systemd1.Manager", vtable, &calls);
	if (r >= 0)
		r = sd_bus_request_name(bus, "org.freedesktop.systemd1", 0);
	if (r >= 0)
		r = dprintf(calls, "ready\n");
	while (r >= 0) {
		r = sd_bus_process(bus, NULL);
		if (r == 0)
			r = sd_bus_wait(bus, UINT64_MAX);
	}
	return r;
}

bool fake_systemd_start(struct fake_systemd *ret)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	ret->pid = fork();
	if (ret->pid < 0)
		return false;
	if (ret->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		_exit(serve(fds[1]) < 0);
	}
	close(fds[1]);
	ret->calls = fds[0];
	return fake_systemd_was_asked(ret, "ready");
}

void fake_systemd_stop(struct fake_systemd *fake)
{
	kill(fake->pid, SIGKILL);
	waitpid(fake->pid, NULL, 0);
	close(fake->calls);
}

void fake_systemd_next(struct fake_systemd *fake, char *line, size_t size)
{
	size_t n = 0;

	while (n < size - 1 && read(fake->calls, &line[n], 1) == 1 && line[n] != '\n')
		n++;
	line[n] = '\0';
}

bool fake_systemd_was_asked(struct fake_systemd *fake, const char *call)
{
	char line[300];

	fake_systemd_next(fake, line, sizeof(line));
	if (strcmp(line, call) == 0)
		return true;
	fprintf(stderr, "it was asked: %s\n", line);
	return false;
}
