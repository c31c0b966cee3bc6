/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Verbs of gpuarbctl with a daemon that hangs after their request. */

#include <stdio.h>

#include "check.h"
#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/verbs/verb.h"
#include "dbus/names.h"
#include "lib-rig.h"

static int answer_objects(sd_bus_message *call)
{
	sd_bus_message *reply = fake_reply(call);

	CHECK(sd_bus_message_open_container(reply, 'a', "{oa{sa{sv}}}") >= 0 &&
	      sd_bus_message_open_container(reply, 'e', "oa{sa{sv}}") >= 0 &&
	      sd_bus_message_append(reply, "o", GPUARB_PATH_LEASE "/1") >= 0 &&
	      sd_bus_message_open_container(reply, 'a', "{sa{sv}}") >= 0 &&
	      sd_bus_message_open_container(reply, 'e', "sa{sv}") >= 0 &&
	      sd_bus_message_append(reply, "s", GPUARB_INTERFACE_LEASE) >= 0 &&
	      sd_bus_message_open_container(reply, 'a', "{sv}") >= 0);
	fake_append_lease(reply, "granted", 1, 30, 0);
	for (unsigned i = 0; i < 5; i++)
		CHECK(sd_bus_message_close_container(reply) >= 0);
	return fake_send(reply);
}

/* Answers nothing after Resize. */
static int answer(sd_bus_message *call, void *userdata)
{
	bool *hangs = userdata;

	if (*hangs)
		return 0;
	if (sd_bus_message_is_method_call(call, NULL, "GetAll"))
		return sd_bus_reply_method_return(call, "a{sv}", 1, "Version", "s", "0.3.0");
	if (sd_bus_message_is_method_call(call, NULL, "GetManagedObjects"))
		return answer_objects(call);
	*hangs = sd_bus_message_is_method_call(call, NULL, "Resize");
	return sd_bus_reply_method_return(call, "");
}

LIB_TEST(resize_fails_when_gpuarbd_hangs_after_it, answer, &(bool){ false })
{
	char *words[] = { "--cus=15" };
	struct command command;

	command_init(&command);
	command.gpuarb = gpuarb;
	command.id = 1;
	CHECK(options_parse(&command, OPTIONS_WANT, false, 1, words) == 0);
	/* Longer than resize waits for the holder. */
	gpuarb_set_timeout(gpuarb, 700000);
	CHECK(run_resize(&command) == EXIT_WAITED);
	gpuarb_view_free(command.view);
}
