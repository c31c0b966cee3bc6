/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * call SEED SECONDS [SPARED]: a fuzzer of the bus. Calls all methods and reads and writes all properties of all
 * objects of gpuarbd, as Introspect lists them, once each, then at random until SECONDS have passed, with random
 * arguments. Does not call Release, Revoke and Terminate of the object SPARED, the lease of another user, which root may end.
 * Prints the seed, and what it called, by interface. Ends with 1 if a call got no answer.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <systemd/sd-bus.h>
#include <time.h>
#include <unistd.h>

#define SERVICE "org.gpuarb.Arbiter1"
#define PROPERTIES "org.freedesktop.DBus.Properties"
#define MEMBERS 4096U
#define INTERFACES 16U
#define LOOK_AGAIN 500U /* calls: leases come and go */
#define DEPTH 4U
#define FDS_MAX 12U /* dbus-daemon disconnects a client that sends more than 16 */
#define KEPT 16U    /* answers of Reserve, which hold leases */

/* A method, or a property. */
struct member {
	char path[96], interface[64], name[48], signature[64];
	bool is_property;
};

/* What was called of an interface. */
struct tally {
	char interface[64];
	unsigned objects, members, calls, successes;
};

struct fuzz {
	sd_bus *bus;
	const char *spared;
	unsigned seed, fds, objects, calls, lost;
	struct member members[MEMBERS];
	size_t n_members;
	struct tally tallies[INTERFACES];
	size_t n_tallies;
	sd_bus_message *kept[KEPT];
};

static unsigned below(struct fuzz *fuzz, unsigned n)
{
	return (unsigned)rand_r(&fuzz->seed) % n;
}

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

/* ---- what there is to call ----------------------------------------------------------------- */

static struct tally *tally_of(struct fuzz *fuzz, const char *interface)
{
	size_t i = 0;

	while (i < fuzz->n_tallies && strcmp(fuzz->tallies[i].interface, interface) != 0)
		i++;
	if (i == INTERFACES)
		must(-E2BIG, interface);
	if (i == fuzz->n_tallies)
		snprintf(fuzz->tallies[fuzz->n_tallies++].interface,
			 sizeof(fuzz->tallies->interface), "%s", interface);
	return &fuzz->tallies[i];
}

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

static void add_argument(struct member *method, const char *xml)
{
	char type[32], direction[8] = "in";

	attribute(xml, "direction=\"", direction, sizeof(direction));
	if (strcmp(direction, "in") != 0 || !attribute(xml, "type=\"", type, sizeof(type)))
		return;
	strncat(method->signature, type, sizeof(method->signature) - strlen(method->signature) - 1);
}

/* Returns whether arguments of a method follow. */
static bool add_member(struct fuzz *fuzz, const char *path, const char *interface, const char *xml)
{
	struct member *member = &fuzz->members[fuzz->n_members];

	if (fuzz->n_members == MEMBERS)
		return false;
	*member = (struct member){ .is_property = strncmp(xml, "<property ", 10) == 0 };
	snprintf(member->path, sizeof(member->path), "%s", path);
	snprintf(member->interface, sizeof(member->interface), "%s", interface);
	attribute(xml, "name=\"", member->name, sizeof(member->name));
	if (member->is_property)
		attribute(xml, "type=\"", member->signature, sizeof(member->signature));
	fuzz->n_members++;
	tally_of(fuzz, interface)->members++;
	return !member->is_property && strncmp(strchr(xml, '>') - 1, "/>", 2) != 0;
}

static void find_members(struct fuzz *fuzz, const char *path);

static void find_in(struct fuzz *fuzz, const char *path, const char *xml)
{
	char interface[64] = "", child[64], below_it[160];
	bool in_method = false;

	for (; (xml = strchr(xml, '<')); xml++) {
		if (strncmp(xml, "<interface ", 11) == 0) {
			attribute(xml, "name=\"", interface, sizeof(interface));
			tally_of(fuzz, interface)->objects++;
		}
		in_method &= strncmp(xml, "</method", 8) != 0 && strncmp(xml, "<signal", 7) != 0;
		if (strncmp(xml, "<method ", 8) == 0 || strncmp(xml, "<property ", 10) == 0)
			in_method = add_member(fuzz, path, interface, xml);
		if (in_method && strncmp(xml, "<arg ", 5) == 0)
			add_argument(&fuzz->members[fuzz->n_members - 1], xml);
		if (strncmp(xml, "<node name=", 11) == 0 &&
		    attribute(xml, "name=\"", child, sizeof(child))) {
			snprintf(below_it, sizeof(below_it), "%s/%s", path[1] ? path : "", child);
			find_members(fuzz, below_it);
		}
	}
}

static void find_members(struct fuzz *fuzz, const char *path)
{
	sd_bus_message *reply = NULL;
	const char *xml;

	/* A lease may have ended since its parent was read. */
	if (sd_bus_call_method(fuzz->bus, SERVICE, path, "org.freedesktop.DBus.Introspectable",
			       "Introspect", NULL, &reply, NULL) < 0)
		return;
	must(sd_bus_message_read(reply, "s", &xml), "Introspect");
	fuzz->objects++;
	find_in(fuzz, path, xml);
	sd_bus_message_unref(reply);
}

/* Introspect of the object / leads to all others. */
static void find_all(struct fuzz *fuzz)
{
	for (size_t i = 0; i < fuzz->n_tallies; i++)
		fuzz->tallies[i].objects = fuzz->tallies[i].members = 0;
	fuzz->n_members = 0;
	fuzz->objects = 0;
	find_members(fuzz, "/");
	must(fuzz->n_members > 0 ? 0 : -ENOENT, "Introspect");
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

static int append(struct fuzz *fuzz, sd_bus_message *m, const char *type, unsigned depth);

/* Entries of a want, then those of the options of a request; a text that is valid. */
static const struct {
	const char *name, *type, *text;
} entries[] = {
	{ "cus", "u", NULL },
	{ "gpu", "s", "0000:03:00.0" },
	{ "queues", "u", NULL },
	{ "shape", "s", "any" },
	{ "isolation", "s", "shared" },
	{ "streams", "u", NULL },
	{ "processes", "u", NULL },
	{ "sdma-queues", "u", NULL },
	{ "sdma-xgmi-queues", "u", NULL },
	{ "vram", "t", NULL },
	{ "cooperative", "b", NULL },
	{ "priority", "s", "high" },
	{ "priority", "u", NULL },
	{ "exact", "b", NULL },
	{ "cus-min", "u", NULL },
	{ "cus-max", "u", NULL },
	{ "shader-engines", "u", NULL },
#define WANT_ENTRIES 17U
	{ "name", "s", "fuzzed" },
	{ "class", "s", "besteffort" },
	{ "tenant", "s", "*" },
	{ "wait-usec", "t", NULL },
	{ "adaptable", "b", NULL },
	{ "token", "s", NULL },
	{ "start-inactive", "b", NULL },
	{ "requeue", "b", NULL },
	{ "exclusive", "s", "active" },
	{ "process", "h", NULL },
};
#define ENTRIES (sizeof(entries) / sizeof(*entries))

static int append_text(struct fuzz *fuzz, sd_bus_message *m, char type)
{
	char text[512];
	size_t length = below(fuzz, sizeof(text));

	if (type == 'o')
		return sd_bus_message_append(m, "o",
					     below(fuzz, 2) ? "/" : "/org/gpuarb/Arbiter1/lease/1");
	if (type == 'g')
		return sd_bus_message_append(m, "g", "a{sv}");
	if (below(fuzz, 8))
		return sd_bus_message_append(m, "s",
					     words[below(fuzz, sizeof(words) / sizeof(*words))]);
	for (size_t i = 0; i < length; i++)
		text[i] = (char)(1 + below(fuzz, 127));
	text[length] = '\0';
	return sd_bus_message_append(m, "s", text);
}

static int append_variant(struct fuzz *fuzz, sd_bus_message *m, unsigned depth)
{
	static const char *const types[] = { "s", "u",  "t",     "b", "h", "i",
					     "d", "as", "a{sv}", "v", "s", "u" };
	const char *type = types[below(fuzz, depth < DEPTH ? sizeof(types) / sizeof(*types) : 4)];
	int r;

	if (type[0] == 'h' && fuzz->fds++ >= FDS_MAX)
		type = "u";
	r = sd_bus_message_open_container(m, 'v', type);
	if (r >= 0)
		r = append(fuzz, m, type, depth + 1);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_known(struct fuzz *fuzz, sd_bus_message *m, size_t i, unsigned depth)
{
	const char *type = entries[i].type;
	int r;

	if (type[0] == 'h' && fuzz->fds++ >= FDS_MAX)
		type = "u";
	if (entries[i].text && below(fuzz, 8))
		return sd_bus_message_append(m, "sv", entries[i].name, "s", entries[i].text);
	if (type[0] == 'u' && below(fuzz, 4))
		return sd_bus_message_append(m, "sv", entries[i].name, type, 1 + below(fuzz, 8));
	r = sd_bus_message_append(m, "s", entries[i].name);
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'v', type);
	if (r >= 0)
		r = append(fuzz, m, type, depth + 1);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

/* Mostly entries that the method knows, each once: a want is in an array, options are not. */
static int append_dictionary(struct fuzz *fuzz, sd_bus_message *m, unsigned n, unsigned depth)
{
	size_t begin = depth > 0 ? 0 : WANT_ENTRIES;
	size_t known = depth > 0 ? WANT_ENTRIES : ENTRIES - WANT_ENTRIES;
	size_t first = below(fuzz, 2) ? 0 : below(fuzz, (unsigned)known);
	int r = 0;

	for (size_t i = first; r >= 0 && i < first + n; i++) {
		r = sd_bus_message_open_container(m, 'e', "sv");
		if (r >= 0)
			r = below(fuzz, 24) ? append_known(fuzz, m, begin + i % known, depth)
					    : append(fuzz, m, "sv", depth + 1);
		if (r >= 0)
			r = sd_bus_message_close_container(m);
	}
	return r;
}

/* Mostly a few elements, and one want. */
static unsigned length_of(struct fuzz *fuzz, const char *element, unsigned depth)
{
	if (depth >= DEPTH)
		return 0;
	if (strcmp(element, "a{sv}") == 0 && below(fuzz, 4))
		return 1;
	return below(fuzz, below(fuzz, 16) ? 4 : 200);
}

static int append_array(struct fuzz *fuzz, sd_bus_message *m, const char *element, unsigned depth)
{
	unsigned n = length_of(fuzz, element, depth);
	int r = sd_bus_message_open_container(m, 'a', element);

	if (r >= 0 && strcmp(element, "{sv}") == 0)
		r = append_dictionary(fuzz, m, n, depth);
	else
		while (r >= 0 && n-- > 0)
			r = append(fuzz, m, element, depth + 1);
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

/* A number, often one at a limit. */
static uint64_t number(struct fuzz *fuzz)
{
	return below(fuzz, 3) ? below(fuzz, 20)
			      : numbers[below(fuzz, sizeof(numbers) / sizeof(*numbers))];
}

/* A pidfd, or no such file descriptor. */
static int append_fd(struct fuzz *fuzz, sd_bus_message *m)
{
	int fd = below(fuzz, 2) ? (int)syscall(SYS_pidfd_open, getpid(), 0)
				: open("/dev/null", O_RDONLY | O_CLOEXEC);
	int r = sd_bus_message_append(m, "h", fd);

	close(fd);
	return r;
}

/* Of a property. */
static int append_pair(struct fuzz *fuzz, sd_bus_message *m, const char *pair, unsigned depth)
{
	char inner[32];
	int r;

	snprintf(inner, sizeof(inner), "%.*s", (int)strlen(pair) - 2, pair + 1);
	r = sd_bus_message_open_container(m, 'e', inner);
	if (r >= 0)
		r = append(fuzz, m, inner, depth);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

/* Appends a value of each type of the signature. */
static int append(struct fuzz *fuzz, sd_bus_message *m, const char *type, unsigned depth)
{
	int r = 0;

	for (size_t n; r >= 0 && *type; type += n) {
		uint64_t value = number(fuzz);
		char one[64];

		n = first_type(type);
		snprintf(one, sizeof(one), "%.*s", (int)n, type);
		if (one[0] == 'a')
			r = append_array(fuzz, m, one + 1, depth);
		else if (one[0] == 'v')
			r = append_variant(fuzz, m, depth);
		else if (one[0] == '{')
			r = append_pair(fuzz, m, one, depth);
		else if (strchr("sog", one[0]))
			r = append_text(fuzz, m, one[0]);
		else if (one[0] == 'h')
			r = append_fd(fuzz, m);
		else if (one[0] == 'b')
			r = sd_bus_message_append(m, "b", (int)below(fuzz, 2));
		else
			r = sd_bus_message_append_basic(m, one[0], &value);
	}
	return r;
}

/* ---- calls ------------------------------------------------------------------------------------- */

/* Arguments of the member, now and then of another one. */
static sd_bus_message *method_call(struct fuzz *fuzz, const struct member *method)
{
	const char *signature =
		below(fuzz, 20) ? method->signature
				: fuzz->members[below(fuzz, (unsigned)fuzz->n_members)].signature;
	sd_bus_message *m;

	must(sd_bus_message_new_method_call(fuzz->bus, &m, SERVICE, method->path, method->interface,
					    method->name),
	     method->name);
	must(append(fuzz, m, signature, 0), signature);
	return m;
}

/* Mostly Get: no property can be written. */
static sd_bus_message *property_call(struct fuzz *fuzz, const struct member *property)
{
	bool set = !below(fuzz, 4);
	sd_bus_message *m;

	must(sd_bus_message_new_method_call(fuzz->bus, &m, SERVICE, property->path, PROPERTIES,
					    set ? "Set" : "Get"),
	     property->name);
	must(sd_bus_message_append(m, "ss", property->interface, property->name), property->name);
	if (set && below(fuzz, 4)) {
		must(sd_bus_message_open_container(m, 'v', property->signature), property->name);
		must(append(fuzz, m, property->signature, 0), property->signature);
		must(sd_bus_message_close_container(m), property->name);
	} else if (set) {
		must(append_variant(fuzz, m, 0), property->name);
	}
	return m;
}

/* Whether gpuarbd has answered; the bus answers for a gpuarbd that has gone. */
static bool is_answer(int r, const sd_bus_error *error)
{
	return r >= 0 || (!sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) &&
			  !sd_bus_error_has_name(error, SD_BUS_ERROR_SERVICE_UNKNOWN) &&
			  !sd_bus_error_has_name(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER) &&
			  r != -ETIMEDOUT && r != -ECONNRESET && r != -ENOTCONN);
}

static bool is_spared(const struct fuzz *fuzz, const struct member *member)
{
	return fuzz->spared && strcmp(member->path, fuzz->spared) == 0 &&
	       (strcmp(member->name, "Release") == 0 || strcmp(member->name, "Revoke") == 0 ||
		strcmp(member->name, "Terminate") == 0);
}

static void call(struct fuzz *fuzz, const struct member *member)
{
	struct tally *tally = tally_of(fuzz, member->interface);
	sd_bus_error error = SD_BUS_ERROR_NULL;
	sd_bus_message *m, *reply = NULL;
	int r;

	if (is_spared(fuzz, member))
		return;
	fuzz->fds = 0;
	m = member->is_property ? property_call(fuzz, member) : method_call(fuzz, member);
	sd_bus_message_set_auto_start(m, false);
	r = sd_bus_call(fuzz->bus, m, UINT64_C(20000000), &error, &reply);
	fuzz->calls++;
	tally->calls++;
	tally->successes += r >= 0;
	if (!is_answer(r, &error)) {
		fuzz->lost++;
		fprintf(stderr, "%s %s.%s(%s): %s: %s\n", member->path, member->interface,
			member->name, member->signature, error.name ? error.name : "no answer",
			error.message ? error.message : strerror(-r));
	}
	if (r >= 0 && strcmp(member->name, "Reserve") == 0) {
		sd_bus_message **kept = &fuzz->kept[below(fuzz, KEPT)];

		sd_bus_message_unref(*kept);
		*kept = sd_bus_message_ref(reply);
	}
	sd_bus_message_unref(reply);
	sd_bus_error_free(&error);
	sd_bus_message_unref(m);
}

static time_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* Few of the members are methods: half of the calls choose among all, half until one is a method. */
static void call_any(struct fuzz *fuzz)
{
	bool method = below(fuzz, 2);
	const struct member *member;

	do
		member = &fuzz->members[below(fuzz, (unsigned)fuzz->n_members)];
	while (method && member->is_property);
	call(fuzz, member);
}

static void print(const struct fuzz *fuzz)
{
	for (size_t i = 0; i < fuzz->n_tallies; i++) {
		const struct tally *tally = &fuzz->tallies[i];

		printf("%s: %u objects, %u members, %u calls, %u of them successful\n",
		       tally->interface, tally->objects, tally->members, tally->calls,
		       tally->successes);
	}
	printf("in all: %u objects, %zu members, %u calls, %u without an answer\n", fuzz->objects,
	       fuzz->n_members, fuzz->calls, fuzz->lost);
}

int main(int argc, char *argv[])
{
	static struct fuzz fuzz;
	time_t end = seconds() + (argc > 2 ? atoi(argv[2]) : 1);

	fuzz.seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	fuzz.spared = argc > 3 ? argv[3] : NULL;
	printf("seed %u\n", fuzz.seed);
	fflush(stdout);
	must(sd_bus_open_system(&fuzz.bus), "system bus");
	find_all(&fuzz);
	for (size_t i = 0; i < fuzz.n_members; i++)
		call(&fuzz, &fuzz.members[i]);
	while (seconds() < end && fuzz.lost == 0) {
		if (fuzz.calls % LOOK_AGAIN == 0)
			find_all(&fuzz);
		call_any(&fuzz);
	}
	print(&fuzz);
	for (size_t i = 0; i < KEPT; i++)
		sd_bus_message_unref(fuzz.kept[i]);
	sd_bus_unref(fuzz.bus);
	return fuzz.lost > 0;
}
