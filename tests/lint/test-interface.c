/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* dbus/org.gpuarb.Arbiter1.xml is what the objects say of themselves. */

#include <ctype.h>

#include "check.h"
#include "adapter.h"

#define LINES_MAX 512

/* What an introspection text says of our interfaces, a line for each fact, sorted. */
struct facts {
	char *line[LINES_MAX];
	size_t n;
};

static void add(struct facts *facts, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct facts *facts, const char *format, ...)
{
	va_list args;

	CHECK(facts->n < LINES_MAX);
	va_start(args, format);
	CHECK(vasprintf(&facts->line[facts->n++], format, args) >= 0);
	va_end(args);
}

static void facts_done(struct facts *facts)
{
	while (facts->n > 0)
		free(facts->line[--facts->n]);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* An attribute of the tag; "" if it has none of this name. */
static const char *attribute(const char *tag, const char *name, char buf[static 128])
{
	const char *end = strchr(tag, '>'), *at = tag;
	size_t length = strlen(name);

	buf[0] = '\0';
	while ((at = strstr(at, name)) && at < end) {
		if (isspace((unsigned char)at[-1]) && at[length] == '=' && at[length + 1] == '"') {
			snprintf(buf, 128, "%.*s", (int)strcspn(at + length + 2, "\""),
				 at + length + 2);
			break;
		}
		at += length;
	}
	return buf;
}

static bool is_tag(const char *at, const char *name)
{
	size_t length = strlen(name);

	return strncmp(at + 1, name, length) == 0 && isspace((unsigned char)at[1 + length]);
}

/* sd-bus leaves the annotation out where it is the default, "true". */
static void read_facts(const char *text, struct facts *facts)
{
	char interface[128] = "", member[160] = "", a[128], b[128], c[128];
	unsigned arg = 0;

	for (const char *at = text; (at = strchr(at, '<')); at++) {
		if (strncmp(at, "<!--", 4) == 0) {
			at = strstr(at, "-->");
			CHECK(at);
		} else if (is_tag(at, "interface")) {
			attribute(at, "name", interface);
			if (strncmp(interface, GPUARB_INTERFACE, strlen(GPUARB_INTERFACE)) != 0)
				interface[0] = '\0';
		} else if (!interface[0]) {
			continue;
		} else if (is_tag(at, "method") || is_tag(at, "signal") || is_tag(at, "property")) {
			snprintf(member, sizeof(member), "%.6s %s", at + 1,
				 attribute(at, "name", a));
			add(facts, "%s %s %s %s", interface, member, attribute(at, "type", b),
			    attribute(at, "access", c));
			arg = 0;
		} else if (is_tag(at, "arg")) {
			add(facts, "%s %s %u %s %s %s", interface, member, arg++,
			    attribute(at, "type", a), attribute(at, "name", b),
			    attribute(at, "direction", c));
		} else if (is_tag(at, "annotation")) {
			add(facts, "%s %s %s=%s", interface, member, attribute(at, "name", a),
			    attribute(at, "value", b));
		}
	}
	qsort(facts->line, facts->n, sizeof(*facts->line), compare);
}

static void introspect(struct adapter *adapter, sd_bus *bus, const char *path, struct facts *facts)
{
	sd_bus_message *m = call_run(
		adapter, call_new(bus, path, "org.freedesktop.DBus.Introspectable", "Introspect"));
	const char *text;

	CHECK(sd_bus_message_read(m, "s", &text) >= 0);
	read_facts(text, facts);
	sd_bus_message_unref(m);
}

static void read_xml(struct facts *facts)
{
	static char text[65536];
	char path[256];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "%s/dbus/org.gpuarb.Arbiter1.xml", getenv("GPUARB_ROOT"));
	file = fopen(path, "re");
	CHECK(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	CHECK(n > 0 && n < sizeof(text) - 1);
	text[n] = '\0';
	fclose(file);
	read_facts(text, facts);
}

/* Says what only one of the two has. */
static size_t differences(const struct facts *xml, const struct facts *live)
{
	size_t x = 0, l = 0, n = 0;

	while (x < xml->n || l < live->n) {
		int order = x == xml->n    ? 1
			    : l == live->n ? -1
					   : strcmp(xml->line[x], live->line[l]);

		if (order == 0) {
			x++, l++;
			continue;
		}
		fprintf(stderr, "only in the %s: %s\n", order < 0 ? "XML" : "program",
			order < 0 ? xml->line[x] : live->line[l]);
		order < 0 ? x++ : l++;
		n++;
	}
	return n;
}

TEST(the_xml_is_what_the_objects_say)
{
	struct facts xml = { 0 }, live = { 0 };
	struct adapter a;
	sd_bus_message *m;
	sd_bus *bus;

	if (rig_bus_missing())
		SKIP(rig_bus_missing());
	if (!getenv("GPUARB_ROOT"))
		SKIP("GPUARB_ROOT says where dbus/ is");

	adapter_new(&a);
	bus = adapter_connect(&a, geteuid());
	m = call_new(bus, GPUARB_PATH, GPUARB_INTERFACE, "Reserve");
	CHECK(sd_bus_message_append(m, "aa{sv}a{sv}", 1, 1, "cus", "u", 15, 0) >= 0);
	CHECK(is_fine(call_run(&a, m)));

	introspect(&a, bus, GPUARB_PATH, &live);
	introspect(&a, bus, GPUARB_PATH_GPU "/0", &live);
	introspect(&a, bus, GPUARB_PATH_LEASE "/1", &live);
	read_xml(&xml);
	CHECK(live.n > 60 && differences(&xml, &live) == 0);

	facts_done(&xml);
	facts_done(&live);
	adapter_done(&a);
}
