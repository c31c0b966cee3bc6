/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * call SEED COUNT: calls the methods of all objects of gpuarbd COUNT times with random arguments of their
 * signatures, and reads and writes properties. Ends with 1 if one of them
 * got no answer.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define SERVICE "org.gpuarb.Arbiter1"
#define METHODS 256U
#define DEPTH 4U

struct method {
	char path[96], interface[64], name[48], signature[64];
};

/* dbus-daemon disconnects a client that sends more than 16. */
#define FDS_MAX 12U

static unsigned seed, fds;
static struct method methods[METHODS];
static size_t n_methods;

static unsigned below(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

/* ---- what there is to call ----------------------------------------------------------------- */

/* The value of an attribute of the element at `xml`. */
static bool attribute(const char *xml, const char *name, char *ret, size_t size)
{
	const char *end = strchr(xml, '>'), *at = strstr(xml, name);

	if (!end || !at || at > end)
		return false;
	at += strlen(name);
	snprintf(ret, size, "%.*s", (int)strcspn(at, "\""), at);
	return true;
}

static void add_argument(struct method *method, const char *xml)
{
	char type[32], direction[8] = "in";

	attribute(xml, "direction=\"", direction, sizeof(direction));
	if (strcmp(direction, "in") != 0 || !attribute(xml, "type=\"", type, sizeof(type)))
		return;
	strncat(method->signature, type, sizeof(method->signature) - strlen(method->signature) - 1);
}

static void find_methods(sd_bus *bus, const char *path);

static void find_in(sd_bus *bus, const char *path, const char *xml)
{
	struct method next = { 0 };
	char child[64], below_it[160];
	bool in_method = false;

	snprintf(next.path, sizeof(next.path), "%s", path);
	for (; (xml = strchr(xml, '<')); xml++) {
		if (strncmp(xml, "<interface ", 11) == 0)
			attribute(xml, "name=\"", next.interface, sizeof(next.interface));
		in_method &= strncmp(xml, "</method", 8) != 0 && strncmp(xml, "<signal", 7) != 0;
		if (strncmp(xml, "<method ", 8) == 0 && n_methods < METHODS) {
			attribute(xml, "name=\"", next.name, sizeof(next.name));
			methods[n_methods++] = next;
			in_method = strncmp(strchr(xml, '>') - 1, "/>", 2) != 0;
		}
		if (in_method && strncmp(xml, "<arg ", 5) == 0)
			add_argument(&methods[n_methods - 1], xml);
		if (strncmp(xml, "<node name=", 11) == 0 &&
		    attribute(xml, "name=\"", child, sizeof(child))) {
			snprintf(below_it, sizeof(below_it), "%s/%s", path, child);
			find_methods(bus, below_it);
		}
	}
}

static void find_methods(sd_bus *bus, const char *path)
{
	sd_bus_message *reply = NULL;
	const char *xml;

	must(sd_bus_call_method(bus, SERVICE, path, "org.freedesktop.DBus.Introspectable",
				"Introspect", NULL, &reply, NULL),
	     path);
	must(sd_bus_message_read(reply, "s", &xml), "Introspect");
	find_in(bus, path, xml);
	sd_bus_message_unref(reply);
}

/* ---- arguments --------------------------------------------------------------------------------- */

static const char *const words[] = {
	"",
	"any",
	"0",
	"1",
	"0000:03:00.0",
	"cus",
	"queues",
	"gpu",
	"class",
	"tenant",
	"token",
	"name",
	"wait-usec",
	"vram",
	"priority",
	"isolation",
	"adaptable",
	"start-inactive",
	"shape",
	"process",
	"exclusive",
	"requeue",
	"realtime",
	"guaranteed",
	"besteffort",
	"any",
	"high",
	"low",
	"shared",
	"cu",
	"org.gpuarb.Arbiter1",
	"org.gpuarb.Arbiter1.Gpu",
	"org.gpuarb.Arbiter1.Lease",
	"Gpus",
	"State",
	"Partitions",
	"\x1b[31m",
	"\xe2\x82\xac",
};
static const uint64_t numbers[] = { 0, 1, 2, 15, 16, 60, 64, 65535, 65536, UINT32_MAX, UINT64_MAX };

static int append(sd_bus_message *m, const char *type, unsigned depth);

static int append_text(sd_bus_message *m, char type)
{
	char text[512];
	size_t length = below(sizeof(text));

	if (type == 'o')
		return sd_bus_message_append(m, "o",
					     below(2) ? "/" : "/org/gpuarb/Arbiter1/lease/1");
	if (type == 'g')
		return sd_bus_message_append(m, "g", "a{sv}");
	if (below(8))
		return sd_bus_message_append(m, "s", words[below(sizeof(words) / sizeof(*words))]);
	for (size_t i = 0; i < length; i++)
		text[i] = (char)(1 + below(127));
	text[length] = '\0';
	return sd_bus_message_append(m, "s", text);
}

static int append_variant(sd_bus_message *m, unsigned depth)
{
	static const char *const types[] = { "s", "u",  "t",     "b", "h", "i",
					     "d", "as", "a{sv}", "v", "s", "u" };
	const char *type = types[below(depth < DEPTH ? sizeof(types) / sizeof(*types) : 4)];
	int r;

	if (type[0] == 'h' && fds++ >= FDS_MAX)
		type = "u";
	r = sd_bus_message_open_container(m, 'v', type);
	if (r >= 0)
		r = append(m, type, depth + 1);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_array(sd_bus_message *m, const char *element, unsigned depth)
{
	unsigned n = depth < DEPTH ? below(below(16) ? 4 : 200) : 0;
	char inner[32];
	int r = sd_bus_message_open_container(m, 'a', element);

	snprintf(inner, sizeof(inner), "%.*s", (int)strlen(element) - 2, element + 1);
	while (r >= 0 && n-- > 0) {
		if (element[0] != '{') {
			r = append(m, element, depth + 1);
			continue;
		}
		r = sd_bus_message_open_container(m, 'e', inner);
		if (r >= 0)
			r = append(m, inner, depth + 1);
		if (r >= 0)
			r = sd_bus_message_close_container(m);
	}
	return r < 0 ? r : sd_bus_message_close_container(m);
}

/* The length of the first complete type. */
static size_t first_type(const char *type)
{
	size_t n = 0;
	int open = 0;

	while (type[n] == 'a')
		n++;
	do
		open += strchr("({", type[n]) ? 1 : strchr(")}", type[n]) ? -1 : 0;
	while (type[n++] && open > 0);
	return n;
}

/* Appends a value of each type of the signature. */
static int append(sd_bus_message *m, const char *type, unsigned depth)
{
	int r = 0, null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (size_t n; r >= 0 && *type; type += n) {
		uint64_t number = below(2) ? numbers[below(sizeof(numbers) / sizeof(*numbers))]
					   : below(100);
		char one[64];

		n = first_type(type);
		snprintf(one, sizeof(one), "%.*s", (int)n, type);
		if (one[0] == 'a')
			r = append_array(m, one + 1, depth);
		else if (one[0] == 'v')
			r = append_variant(m, depth);
		else if (strchr("sog", one[0]))
			r = append_text(m, one[0]);
		else if (one[0] == 'h')
			r = sd_bus_message_append(m, "h", null);
		else if (one[0] == 'b')
			r = sd_bus_message_append(m, "b", (int)below(2));
		else
			r = sd_bus_message_append_basic(m, one[0], &number);
	}
	close(null);
	return r;
}

/* ---- calls ------------------------------------------------------------------------------------- */

/* Returns whether gpuarbd has answered. */
static bool call(sd_bus *bus, const struct method *method)
{
	/* Now and then arguments of another method. */
	const char *signature = below(20) ? method->signature
					  : methods[below((unsigned)n_methods)].signature;
	sd_bus_error error = SD_BUS_ERROR_NULL;
	sd_bus_message *m = NULL;
	bool answered;
	int r;

	must(sd_bus_message_new_method_call(bus, &m, SERVICE, method->path, method->interface,
					    method->name),
	     method->name);
	fds = 0;
	must(append(m, signature, 0), signature);
	sd_bus_message_set_auto_start(m, false);
	r = sd_bus_call(bus, m, UINT64_C(20000000), &error, NULL);
	answered = r >= 0 || (!sd_bus_error_has_name(&error, SD_BUS_ERROR_NO_REPLY) &&
			      !sd_bus_error_has_name(&error, SD_BUS_ERROR_SERVICE_UNKNOWN) &&
			      !sd_bus_error_has_name(&error, SD_BUS_ERROR_NAME_HAS_NO_OWNER) &&
			      r != -ETIMEDOUT && r != -ECONNRESET && r != -ENOTCONN);
	if (!answered)
		fprintf(stderr, "%s %s.%s(%s): %s: %s\n", method->path, method->interface,
			method->name, signature, error.name ? error.name : "no answer",
			error.message ? error.message : strerror(-r));
	sd_bus_error_free(&error);
	sd_bus_message_unref(m);
	return answered;
}

int main(int argc, char *argv[])
{
	unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 1000, lost = 0;
	sd_bus *bus = NULL;

	seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	must(sd_bus_open_system(&bus), "system bus");
	find_methods(bus, "/org/gpuarb/Arbiter1");
	for (unsigned i = 0; i < count; i++)
		lost += !call(bus, &methods[below((unsigned)n_methods)]);
	printf("seed %s: %zu methods, %u calls, %u without an answer\n", argc > 1 ? argv[1] : "1",
	       n_methods, count, lost);
	sd_bus_unref(bus);
	return lost > 0 || n_methods < 20;
}
