/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/list.h"

#include <pwd.h>
#include <string.h>

#include "client/output/fail.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"
#include "client/output/table.h"
#include "util/number.h"

bool gpu_is_listed(const struct command *command, const struct gpuarb_gpu *gpu)
{
	uint64_t index;

	if (!command->filter.gpu || strcmp(command->filter.gpu, gpu->name) == 0)
		return true;
	return number_parse(command->filter.gpu, 0, UINT64_MAX, &index) == 0 &&
	       index == (uint64_t)(gpu - command->gpus);
}

static bool has_listed_gpu(const struct command *command, const struct gpuarb_lease_info *lease)
{
	for (size_t i = 0; i < command->n_gpus; i++)
		if (gpu_is_listed(command, &command->gpus[i]) &&
		    partition_on_gpu(lease, command->gpus[i].name))
			return true;
	return false;
}

int list_check(const struct command *command, const char *const *heads)
{
	const char *user = command->filter.user, *gpu = command->filter.gpu;
	uint64_t uid;
	bool found = !gpu;

	if (user && number_parse(user, 0, UINT32_MAX, &uid) < 0 && !getpwnam(user))
		return fail(command, EXIT_USAGE, "--user=%.80s: there is no such user", user);
	for (size_t i = 0; i < command->n_gpus; i++)
		found |= gpu_is_listed(command, &command->gpus[i]);
	if (!found)
		return fail_gpu(command, gpu);
	return command->columns && heads ? table_check_columns(command, heads) : EXIT_OK;
}

bool user_is_listed(const struct command *command, uint32_t uid)
{
	const char *user = command->filter.user;
	char name[PRINT_USER];
	uint64_t number;

	if (!user)
		return true;
	print_user(uid, name);
	return strcmp(user, name) == 0 ||
	       (number_parse(user, 0, UINT32_MAX, &number) == 0 && number == uid);
}

bool lease_is_listed(const struct command *command, const struct gpuarb_lease_info *lease)
{
	if (!user_is_listed(command, lease->owner_uid))
		return false;
	if (command->filter.tenant && strcmp(command->filter.tenant, lease->tenant) != 0)
		return false;
	if (command->filter.state && strcmp(command->filter.state, lease_text_state(lease)) != 0 &&
	    strcmp(command->filter.state, lease->state) != 0)
		return false;
	return !command->filter.gpu || has_listed_gpu(command, lease);
}
