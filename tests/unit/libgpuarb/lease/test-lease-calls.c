/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "dbus/names.h"
#include "libgpuarb/connection/connection.h"
#include "libgpuarb/lease/lease-calls.h"

/* ---- a message as text ---------------------------------------------------------------- */

static void print_value(DBusMessageIter *iter, FILE *out)
{
	int type = dbus_message_iter_get_arg_type(iter);
	DBusBasicValue value;
	DBusMessageIter inner;

	switch (type) {
	case DBUS_TYPE_VARIANT:
		dbus_message_iter_recurse(iter, &inner);
		print_value(&inner, out);
		return;
	case DBUS_TYPE_ARRAY:
	case DBUS_TYPE_DICT_ENTRY:
		dbus_message_iter_recurse(iter, &inner);
		fputs(type == DBUS_TYPE_ARRAY ? "[" : "", out);
		while (dbus_message_iter_get_arg_type(&inner) != DBUS_TYPE_INVALID) {
			print_value(&inner, out);
			if (dbus_message_iter_next(&inner))
				fputs(type == DBUS_TYPE_ARRAY ? " " : "=", out);
		}
		fputs(type == DBUS_TYPE_ARRAY ? "]" : "", out);
		return;
	}

	dbus_message_iter_get_basic(iter, &value);
	if (type == DBUS_TYPE_STRING)
		fprintf(out, "%s", value.str);
	else if (type == DBUS_TYPE_UINT32)
		fprintf(out, "%uu", value.u32);
	else if (type == DBUS_TYPE_UINT64)
		fprintf(out, "%llut", (unsigned long long)value.u64);
	else if (type == DBUS_TYPE_BOOLEAN)
		fprintf(out, "%s", value.bool_val ? "true" : "false");
	else if (type == DBUS_TYPE_UNIX_FD) {
		fprintf(out, "fd");
		close(value.fd);
	} else
		fprintf(out, "?%c", type);
}

/* The request must be written as the expected text. */
static void check_request(const struct gpuarb_want *wants, size_t n,
			  const struct gpuarb_options *options, const char *expected)
{
	struct gpuarb gpuarb = { .references = 1 };
	_cleanup_(free_message) DBusMessage *m = NULL;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	DBusMessageIter iter;

	CHECK(out);
	CHECK(request_new(&gpuarb, GPUARB_PATH, GPUARB_INTERFACE, "Reserve", wants, n, options,
			  &m) == 0);
	CHECK(strcmp(dbus_message_get_signature(m), "aa{sv}a{sv}") == 0);
	dbus_message_iter_init(m, &iter);
	print_value(&iter, out);
	fputs(" ", out);
	dbus_message_iter_next(&iter);
	print_value(&iter, out);
	CHECK(fclose(out) == 0);
	if (strcmp(text, expected) != 0)
		fprintf(stderr, "%s\nnot %s\n", text, expected);
	CHECK(strcmp(text, expected) == 0);
	free(text);
}

/* The sentence must name the value that is refused. */
static int refused(const struct gpuarb_want *wants, size_t n, const struct gpuarb_options *options,
		   const char *value)
{
	struct gpuarb gpuarb = { .references = 1 };
	DBusMessage *m = NULL;
	int r = request_new(&gpuarb, GPUARB_PATH, GPUARB_INTERFACE, "Reserve", wants, n, options,
			    &m);

	CHECK(!m);
	if (!strstr(gpuarb_last_error(&gpuarb), value))
		fprintf(stderr, "%s\n", gpuarb_last_error(&gpuarb));
	CHECK(strstr(gpuarb_last_error(&gpuarb), value));
	handle_begin(&gpuarb);
	return r;
}

/* ---- requests ------------------------------------------------------------------------- */

TEST(defaults_are_not_sent)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;

	check_request(&want, 1, NULL, "[[]] []");
	check_request(&want, 1, &options, "[[]] []");

	want.gpu = "any";
	want.shape = "rectangle";
	want.processes = 1;
	options.name = options.tenant = options.token = options.lease_class = "";
	check_request(&want, 1, &options, "[[]] []");
}

TEST(every_key_is_sent_with_its_type)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	int pipe_fds[2];

	CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
	want.gpu = "0000:03:00.0/2";
	want.cus = 30;
	want.shader_engines = 2;
	want.cus_min = 20;
	want.cus_max = 40;
	want.exact = true;
	want.shape = "any";
	want.queues = 5;
	want.streams = 1;
	want.processes = 2;
	want.sdma_queues = 3;
	want.sdma_xgmi_queues = 4;
	want.vram = UINT64_C(1) << 40;
	want.cooperative = true;
	want.priority = 0;
	want.isolation = "cu";
	options.lease_class = "realtime";
	options.name = "kompositør";
	options.tenant = "compositor";
	options.token = "t";
	options.wait_usec = GPUARB_FOREVER;
	options.start_inactive = true;
	options.adaptable = true;
	options.process_fd = pipe_fds[0]; /* not sent: it is bound by a separate call */
	check_request(
		&want, 1, &options,
		"[[gpu=0000:03:00.0/2 cus=30u shader-engines=2u cus-min=20u cus-max=40u "
		"exact=true shape=any queues=5u streams=1u processes=2u sdma-queues=3u "
		"sdma-xgmi-queues=4u vram=1099511627776t cooperative=true priority=0u isolation=cu]] "
		"[class=realtime name=kompositør tenant=compositor token=t "
		"wait-usec=18446744073709551615t start-inactive=true adaptable=true]");

	options = (struct gpuarb_options)GPUARB_OPTIONS_INIT;
	want = (struct gpuarb_want)GPUARB_WANT_INIT;
	options.bind_at_once = true;
	check_request(&want, 1, &options, "[[]] []");
	options.process_fd = pipe_fds[0];
	check_request(&want, 1, &options, "[[]] [process=fd]");
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

TEST(wants_are_sent_in_their_order)
{
	struct gpuarb_want wants[3] = { GPUARB_WANT_INIT, GPUARB_WANT_INIT, GPUARB_WANT_INIT };

	wants[0].gpu = "1";
	wants[1].cus = 4;
	wants[2].gpu = "0";
	check_request(wants, 3, NULL, "[[gpu=1] [cus=4u] [gpu=0]] []");
}

TEST(longer_structures_are_accepted_if_their_new_members_are_zero)
{
	struct newer {
		struct gpuarb_want want;
		uint64_t later;
	} wants[2] = { { .want = GPUARB_WANT_INIT }, { .want = GPUARB_WANT_INIT } };
	struct newer_options {
		struct gpuarb_options options;
		uint64_t later;
	} options = { .options = GPUARB_OPTIONS_INIT };

	wants[0].want.size = wants[1].want.size = sizeof(wants[0]);
	options.options.size = sizeof(options);
	wants[0].want.cus = 1;
	wants[1].want.cus = 2;
	check_request(&wants[0].want, 2, &options.options, "[[cus=1u] [cus=2u]] []");

	wants[1].later = 1;
	CHECK(refused(&wants[0].want, 2, NULL, "") == -EOPNOTSUPP);
	wants[1].later = 0;
	options.later = 1;
	CHECK(refused(&wants[0].want, 2, &options.options, "") == -EOPNOTSUPP);
}

TEST(structures_of_gpuarb_0_1_are_accepted)
{
	struct gpuarb_want wants[2] = { GPUARB_WANT_INIT, GPUARB_WANT_INIT };
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	size_t size = offsetof(struct gpuarb_want, sdma_xgmi_queues);

	options.size = offsetof(struct gpuarb_options, exclusive);
	options.exclusive = "active"; /* what is behind the structure */
	wants[0].size = wants[1].size = size;
	wants[0].cus = 1;
	wants[1].cus = 2;
	memmove((char *)wants + size, &wants[1], size);
	check_request(wants, 2, &options, "[[cus=1u] [cus=2u]] []");
}

TEST(structures_without_initialiser_are_refused)
{
	struct gpuarb_want wants[2] = { GPUARB_WANT_INIT, GPUARB_WANT_INIT };
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;

	wants[1].size = 0;
	CHECK(refused(wants, 2, NULL, "GPUARB_WANT_INIT") == -EINVAL);
	wants[0].size = 0;
	CHECK(refused(wants, 1, NULL, "GPUARB_WANT_INIT") == -EINVAL);
	wants[0].size = SIZE_MAX;
	CHECK(refused(wants, 1, NULL, "GPUARB_WANT_INIT") == -EINVAL);
	wants[0].size = offsetof(struct gpuarb_want, sdma_xgmi_queues) - 1;
	CHECK(refused(wants, 1, NULL, "GPUARB_WANT_INIT") == -EINVAL);
	wants[0].size = sizeof(wants[0]);
	options.size = 3;
	CHECK(refused(wants, 1, &options, "GPUARB_OPTIONS_INIT") == -EINVAL);
}

TEST(no_wants_and_too_many_are_refused)
{
	static struct gpuarb_want wants[257];

	for (size_t i = 0; i < ARRAY_SIZE(wants); i++)
		wants[i] = (struct gpuarb_want)GPUARB_WANT_INIT;
	CHECK(refused(NULL, 1, NULL, "wants") == -EINVAL);
	CHECK(refused(wants, 0, NULL, "wants") == -EINVAL);
	CHECK(refused(wants, 257, NULL, "257") == -EINVAL);
	CHECK(refused(wants, SIZE_MAX, NULL, "wants") == -EINVAL);
}

TEST(strings_on_which_libdbus_would_abort_are_refused)
{
	static const char *const bad[] = { "\xff", "\xc0\x80", "a\xed\xa0\x80", "\xf5\x80\x80\x80",
					   "\xe2\x82" };
	char *huge = malloc((1 << 20) + 1);
	struct gpuarb_options options;
	struct gpuarb_want want;
	const struct {
		const char *key;
		const char **in;
	} keys[] = {
		{ "gpu", &want.gpu },
		{ "shape", &want.shape },
		{ "isolation", &want.isolation },
		{ "class", &options.lease_class },
		{ "name", &options.name },
		{ "tenant", &options.tenant },
		{ "token", &options.token },
	};

	CHECK(huge);
	memset(huge, 'x', 1 << 20);
	huge[1 << 20] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		want = (struct gpuarb_want)GPUARB_WANT_INIT;
		options = (struct gpuarb_options)GPUARB_OPTIONS_INIT;
		for (size_t k = 0; k < ARRAY_SIZE(bad); k++) {
			*keys[i].in = bad[k];
			CHECK(refused(&want, 1, &options, keys[i].key) == -EINVAL);
		}
		*keys[i].in = huge;
		CHECK(refused(&want, 1, &options, "1023") == -EINVAL);
	}
	free(huge);
}

TEST(a_closed_fd_is_refused)
{
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	struct gpuarb_want want = GPUARB_WANT_INIT;

	options.process_fd = 1 << 20;
	CHECK(refused(&want, 1, &options, "1048576") == -EINVAL);
	options.process_fd = -2;
	CHECK(refused(&want, 1, &options, "-2") == -EINVAL);
}
