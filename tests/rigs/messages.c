/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "messages.h"

/* Messages belong to a connection that takes fds; this one talks to nobody. */
static sd_bus *connection(void)
{
	static sd_bus *bus;
	int fds[2];

	if (bus)
		return bus;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	CHECK(sd_bus_new(&bus) >= 0 && sd_bus_set_fd(bus, fds[0], fds[0]) >= 0);
	CHECK(sd_bus_start(bus) >= 0);
	return bus;
}

sd_bus_message *message(void)
{
	sd_bus_message *m;

	CHECK(sd_bus_message_new_method_call(connection(), &m, NULL, "/", "a.b", "C") >= 0);
	return m;
}

sd_bus_message *make(const char *types, ...)
{
	sd_bus_message *m = message();
	va_list args;

	va_start(args, types);
	CHECK(sd_bus_message_appendv(m, types, args) >= 0);
	va_end(args);
	return m;
}

sd_bus_message *sealed(sd_bus_message *m)
{
	CHECK(sd_bus_message_seal(m, 1, 0) >= 0 && sd_bus_message_rewind(m, true) >= 0);
	return m;
}

/* A value of a type; number where it is a number, text where it is text. */
static void append_value(sd_bus_message *m, const char *type, uint64_t number, const char *text)
{
	int fd;

	CHECK(sd_bus_message_open_container(m, 'v', type) >= 0);
	switch (type[0]) {
	case 's':
	case 'o':
	case 'g':
		text = type[0] == 's' ? text : type[0] == 'o' ? "/" : "u";
		CHECK(sd_bus_message_append_basic(m, type[0], text) >= 0);
		break;
	case 'h':
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		CHECK(fd >= 0 && sd_bus_message_append_basic(m, 'h', &fd) >= 0);
		close(fd);
		break;
	case 'b': CHECK(sd_bus_message_append(m, "b", (int)(number & 1)) >= 0); break;
	case 'v': CHECK(sd_bus_message_append(m, "v", "u", (uint32_t)number) >= 0); break;
	case 'a': /* of no elements */
	case '(': CHECK(sd_bus_message_append(m, type, 0) >= 0); break;
	default: CHECK(sd_bus_message_append_basic(m, type[0], &number) >= 0);
	}
	CHECK(sd_bus_message_close_container(m) >= 0);
}

void append_entry(sd_bus_message *m, const char *key, const char *type, uint64_t number,
		  const char *text)
{
	CHECK(sd_bus_message_open_container(m, 'e', "sv") >= 0);
	CHECK(sd_bus_message_append_basic(m, 's', key) >= 0);
	append_value(m, type, number, text);
	CHECK(sd_bus_message_close_container(m) >= 0);
}
