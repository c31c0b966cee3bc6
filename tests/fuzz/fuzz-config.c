/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gpuarbd.conf, tenants.d and GPU profiles. */

#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "ledger-check.h"
#include "ledger-rig.h"
#include "scratch.h"
#include "sys/config/config.h"
#include "sys/config/profile.h"
#include "util/text.h"

/* A refused file has an error, and every sentence can be printed. */
static void check_diagnostics(int r, struct diagnostics *diagnostics)
{
	CHECK(r == -ENOMEM || (r < 0) == diagnostics_have_errors(diagnostics));
	for (size_t i = 0; i < diagnostics->n; i++)
		CHECK(text_printable(diagnostics->list[i].text));
	diagnostics_done(diagnostics);
}

static int load(const uint8_t *data, size_t size, struct settings **ret)
{
	struct diagnostics diagnostics = { 0 };
	int r = config_load_file(fuzz_file(data, size), ret, &diagnostics);

	CHECK(r == 0 || r == -EINVAL);
	check_diagnostics(r, &diagnostics);
	return r;
}

FUZZ(config)
{
	struct settings *settings = NULL;

	CHECK(load(data, size, &settings) == 0 ? settings != NULL : settings == NULL);
	settings_free(settings);
}

/* ---- policy: what the settings decide ---------------------------------------------------- */

static void decide(struct arbiter *arbiter, uid_t uid, int class, unsigned cus)
{
	struct request request = request_for(cus);
	_cleanup_(result_done) struct result result = { 0 };
	struct caller caller = caller_of(uid);
	struct lease *lease = NULL;

	request.class = class;
	request.wait_usec = cus % 2;
	request.start_inactive = class == CLASS_REALTIME && cus % 2;
	if (preempt_plan(arbiter, &caller, &request, &lease, &result) == 0) {
		lease = arbiter_commit(arbiter, lease);
		arbiter_add_holder(arbiter, lease->id);
	} else {
		CHECK(result.sentence[0] && text_printable(result.sentence));
	}
}

FUZZ(policy)
{
	static const uid_t users[] = { 0, 1, 1000, 65534 };
	struct gpu_info gpus[] = { radeon_vii("0000:03:00.0"), radeon_vii("0000:04:00.0") };
	struct settings *settings;
	struct arbiter *arbiter;

	if (load(data, size, &settings) < 0)
		return;
	arbiter = arbiter_of(gpus, ARRAY_SIZE(gpus));
	arbiter_set_settings(arbiter, settings);
	for (unsigned round = 0; round < 2; round++)
		for (int class = -1; class <= CLASS_REALTIME; class ++)
			for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
				decide(arbiter, users[i], class, 1 + 7 * round + (unsigned)i);
				check_promises(arbiter);
			}
	arbiter_lend(arbiter, 1);
	arbiter_review(arbiter);
	check_promises(arbiter);
	arbiter_free(arbiter);
}

/* ---- profiles ------------------------------------------------------------------------------ */

FUZZ(profile)
{
	static struct scratch scratch;
	struct diagnostics diagnostics = { 0 };
	struct profile profile;
	char problem[160];
	int r;

	if (!scratch.path[0])
		scratch = scratch_new();
	scratch_put(&scratch, "input.conf", data, size);
	r = profile_load(scratch.path, "input", &profile, &diagnostics);
	unlink(scratch_at(&scratch, "input.conf"));
	CHECK(r == 0 || r == -EINVAL);
	if (r == 0)
		CHECK(geometry_check(&profile.info.geometry, problem, sizeof(problem)) == 0);
	check_diagnostics(r, &diagnostics);
}
