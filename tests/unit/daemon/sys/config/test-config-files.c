/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "check.h"
#include "config-rig.h"

#define OURS                      \
	(struct trust)            \
	{                         \
		{                 \
			geteuid() \
		}                 \
	}

TEST(duplicate_tenant_in_two_files_is_refused)
{
	_cleanup_(tree_done) struct tree tree = tree_new("[tenant a]\nmatch-user = root\n");

	scratch_write(&tree.scratch, "tenants.d/b.conf", "\n[tenant a]\nmatch-group = root\n");
	CHECK(tree_load(&tree) == -EINVAL && tree.diagnostics.n == 1);
	CHECK(config_says(&tree.diagnostics, "/tenants.d/b.conf:2: [tenant"));
	CHECK(config_says(&tree.diagnostics, "/gpuarbd.conf:1"));
}

TEST(tenants_are_in_the_order_of_files_and_sections)
{
	_cleanup_(tree_done) struct tree tree = tree_new("[tenant a]\nmatch-user = root\n");

	scratch_write(&tree.scratch, "tenants.d/20.conf", "[tenant d]\nmatch-user = 1\n");
	scratch_write(&tree.scratch, "tenants.d/10.conf",
		      "[tenant *]\n[tenant c]\nmatch-user = 1\n[tenant b]\nmatch-user = 1\n");
	scratch_write(&tree.scratch, "tenants.d/README", "[not read\n");
	scratch_write(&tree.scratch, "tenants.d/.hidden.conf", "[not read\n");
	CHECK(tree_load(&tree) == 0 && tree.settings->n_tenants == 5);
	CHECK(strcmp(tree.settings->tenants[0].name, "a") == 0);
	CHECK(strcmp(tree.settings->tenants[1].name, "c") == 0);
	CHECK(strcmp(tree.settings->tenants[2].name, "b") == 0);
	CHECK(strcmp(tree.settings->tenants[3].name, "d") == 0);
	CHECK(strcmp(tree.settings->tenants[4].name, "*") == 0);
}

TEST(other_sections_in_tenants_d_are_refused)
{
	_cleanup_(tree_done) struct tree tree = tree_new("");

	scratch_write(&tree.scratch, "tenants.d/a.conf", "[daemon]\nmargin = 1%\n");
	CHECK(tree_load(&tree) == -EINVAL && tree.diagnostics.n == 1);
	CHECK(config_says(&tree.diagnostics, "/a.conf:1: [daemon]"));
}

TEST(named_files_must_exist)
{
	_cleanup_(tree_done) struct tree tree = tree_new("");

	CHECK(unlink(scratch_at(&tree.scratch, "gpuarbd.conf")) == 0);
	CHECK(rmdir(scratch_at(&tree.scratch, "tenants.d")) == 0);
	CHECK(tree_load(&tree) == -EINVAL && tree.diagnostics.n == 2);
	CHECK(config_says(&tree.diagnostics, "/gpuarbd.conf"));
	CHECK(config_says(&tree.diagnostics, "/tenants.d"));
}

TEST(refused_configuration_leaves_the_settings_unchanged)
{
	_cleanup_(tree_done) struct tree tree = tree_new("[daemon]\nmax-leases = 7\n");

	CHECK(tree_load(&tree) == 0);
	scratch_write(&tree.scratch, "gpuarbd.conf", "[daemon]\nmax-leases = 0\n");
	CHECK(tree_load(&tree) == -EINVAL);
	CHECK(tree.settings && tree.settings->max_leases == 7);
}

TEST(file_and_directory_that_others_can_write_are_refused)
{
	_cleanup_(tree_done) struct tree tree = tree_new("");
	const char *file = scratch_write(&tree.scratch, "tenants.d/a.conf", "[tenant *]\n");

	CHECK(chmod(file, 0666) == 0 && tree_load(&tree) == -EINVAL);
	CHECK(config_says(&tree.diagnostics, "/a.conf"));
	CHECK(chmod(file, 0644) == 0);
	CHECK(chmod(scratch_at(&tree.scratch, "tenants.d"), 0777) == 0);
	CHECK(tree_load(&tree) == -EINVAL);
	CHECK(config_says(&tree.diagnostics, "/tenants.d"));
}

TEST(empty_directory_that_others_can_write_is_refused)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	const char *const directories[] = {
		scratch_mkdir(&scratch, "lib"),
		scratch_mkdir(&scratch, "etc"),
		NULL,
	};
	_cleanup_(config_list_done) struct config_list list = { 0 };
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };

	scratch_write(&scratch, "lib/gpuarbd.conf", "");
	scratch_write(&scratch, "lib/a.conf", "");
	CHECK(chmod(directories[1], 01777) == 0);
	CHECK(config_find(directories, "gpuarbd.conf", false, &OURS, &list, &diagnostics) ==
	      -EINVAL);
	CHECK(config_says(&diagnostics, "/etc"));
	CHECK(config_find(directories, NULL, false, &OURS, &list, &diagnostics) == -EINVAL);
	CHECK(diagnostics.n == 1); /* reported once */
}

TEST(config_find_reports_a_file_in_the_place_of_a_directory)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	const char *const directories[] = { scratch_write(&scratch, "etc", ""), NULL };
	struct config_list list = { 0 };
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	char long_name[300] = "";

	memset(long_name, 'x', sizeof(long_name) - 1);
	CHECK(config_find(directories, "gpuarbd.conf", false, &OURS, &list, &diagnostics) ==
	      -EINVAL);
	CHECK(list.n == 0 && config_says(&diagnostics, "/etc"));
	CHECK(config_find(directories, NULL, false, &OURS, &list, &diagnostics) == -EINVAL);
	CHECK(list.n == 0 && diagnostics.n == 1);
	CHECK(unlink(directories[0]) == 0 && mkdir(directories[0], 0755) == 0);
	CHECK(config_find(directories, long_name, false, &OURS, &list, &diagnostics) == -EINVAL);
	CHECK(list.n == 0 && config_says(&diagnostics, strerror(ENAMETOOLONG)));
}

static void read_values(const struct scratch *scratch)
{
	const char *const directories[] = { scratch_at(scratch, "etc"), NULL };
	struct config_list list = { 0 };
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };

	CHECK(config_find(directories, "gpuarbd.conf", false, &OURS, &list, &diagnostics) ==
	      -EINVAL);
	CHECK(diagnostics.n == 1 && config_says(&diagnostics, "uid 65534") && list.n == 0);
	CHECK(config_find(directories, NULL, false, &OURS, &list, &diagnostics) == -EINVAL);
	CHECK(diagnostics.n == 1);
}

/* An unreadable policy is an error, not an empty policy. */
TEST(unreadable_directory_is_refused)
{
	struct scratch scratch;

	if (geteuid() != 0)
		SKIP("it takes root to have files of another user");
	scratch = scratch_new();
	scratch_mkdir(&scratch, "etc");
	scratch_write(&scratch, "etc/gpuarbd.conf", "");
	CHECK(chmod(scratch.path, 0755) == 0 && chmod(scratch_at(&scratch, "etc"), 0700) == 0);
	CHECK(seteuid(65534) == 0);
	read_values(&scratch);
	CHECK(seteuid(0) == 0);
	scratch_done(&scratch);
}

TEST(single_file_is_checked_whoever_owns_it)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	const char *draft = scratch_write(&scratch, "draft", "[daemon]\nmargin = 1%\n");
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	_cleanup_(settings_freep) struct settings *settings = NULL;

	CHECK(chmod(draft, 0666) == 0);
	CHECK(config_load_file(draft, &settings, &diagnostics) == 0 && diagnostics.n == 0);
	CHECK(config_load_file(scratch_write(&scratch, "bad", "[x]\n[tenant y]\n"), &settings,
			       &diagnostics) == -EINVAL);
	CHECK(diagnostics.n == 2 && config_says(&diagnostics, "/bad:1"));
	CHECK(config_says(&diagnostics, "/bad:2: [tenant"));
	CHECK(config_load_file(scratch_at(&scratch, "none"), &settings, &diagnostics) == -EINVAL);
	CHECK(config_says(&diagnostics, "/none"));
}

TEST(later_directory_overrides_by_file_name)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	const char *const directories[] = {
		scratch_mkdir(&scratch, "lib"),
		scratch_at(&scratch, "run"),
		scratch_mkdir(&scratch, "etc"),
		NULL,
	};
	struct config_list list = { 0 };
	struct diagnostics diagnostics = { 0 };

	scratch_write(&scratch, "lib/b.conf", "");
	scratch_write(&scratch, "lib/a.conf", "");
	scratch_write(&scratch, "lib/gpuarbd.conf.old", "");
	scratch_write(&scratch, "etc/b.conf", "");
	CHECK(symlink("/dev/null", scratch_at(&scratch, "etc/a.conf")) == 0);
	CHECK(config_find(directories, NULL, false, &OURS, &list, &diagnostics) == 0 &&
	      list.n == 2);
	CHECK(diagnostics.n == 1 && !diagnostics.list[0].error &&
	      strstr(diagnostics.list[0].text, "/lib/gpuarbd.conf.old"));
	diagnostics_done(&diagnostics);
	CHECK(strcmp(list.paths[0], scratch_at(&scratch, "etc/a.conf")) == 0);
	CHECK(strcmp(list.paths[1], scratch_at(&scratch, "etc/b.conf")) == 0);

	config_list_done(&list);

	CHECK(config_find(directories, "gpuarbd.conf", false, &OURS, &list, &diagnostics) == 0);
	CHECK(list.n == 0);
	scratch_write(&scratch, "lib/gpuarbd.conf", "");
	CHECK(config_find(directories, "gpuarbd.conf", false, &OURS, &list, &diagnostics) == 0);
	CHECK(list.n == 1 && strcmp(list.paths[0], scratch_at(&scratch, "lib/gpuarbd.conf")) == 0);
	CHECK(symlink("nowhere", scratch_at(&scratch, "etc/gpuarbd.conf")) == 0);
	CHECK(config_find(directories, "gpuarbd.conf", false, &OURS, &list, &diagnostics) == 0);
	CHECK(list.n == 1 && strcmp(list.paths[0], scratch_at(&scratch, "etc/gpuarbd.conf")) == 0);
	config_list_done(&list);
}

TEST(link_to_dev_null_masks_a_file)
{
	_cleanup_(tree_done) struct tree tree = tree_new("");

	CHECK(symlink("/dev/null", scratch_at(&tree.scratch, "tenants.d/a.conf")) == 0);
	CHECK(tree_load(&tree) == 0 && tree.settings->n_tenants == 1);
}

/* ---- the sample, the manual and the table have the same keys ------------------------- */

static bool load_source(const char *name, char *ret, size_t size)
{
	const char *root = getenv("GPUARB_SOURCE_ROOT");
	char path[512];
	FILE *file;
	size_t n;

	if (!root)
		return false;
	snprintf(path, sizeof(path), "%s/%s", root, name);
	file = fopen(path, "re");
	CHECK(file);
	n = fread(ret, 1, size - 1, file);
	CHECK(n > 0 && n < size - 1 && fclose(file) == 0);
	ret[n] = '\0';
	return true;
}

/* Removes the # of lines that are not prose: "#key = value", "#[section]". */
static void uncomment(char *text)
{
	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (line[0] == '#' && line[1] != ' ' && line[1] != '\n' && line[1])
			line[0] = ' ';
	}
}

TEST(sample_configuration_is_the_defaults)
{
	_cleanup_(settings_freep) struct settings *defaults = NULL;
	static char text[16384];
	const struct settings *s;
	struct tree tree;

	if (!load_source("conf/gpuarbd.conf", text, sizeof(text)))
		SKIP("GPUARB_SOURCE_ROOT does not say where conf/gpuarbd.conf is");
	CHECK(settings_new(&defaults) == 0);
	uncomment(text);
	tree = tree_new(text);
	/* Its backend is not the one that simulate needs. */
	CHECK(tree_load(&tree) == 0 && tree.diagnostics.n == 1);
	CHECK(!tree.diagnostics.list[0].error);
	CHECK(strstr(tree.diagnostics.list[0].text, ": simulate: "));
	s = tree.settings;
	CHECK(s->backend == defaults->backend && s->unmanaged == defaults->unmanaged);
	CHECK(strcmp(s->simulate, defaults->simulate) == 0);
	CHECK(s->audit_interval_usec == defaults->audit_interval_usec);
	CHECK(s->oversubscribe_besteffort == defaults->oversubscribe_besteffort);
	CHECK(s->margin_percent == defaults->margin_percent);
	CHECK(s->gpu_order == defaults->gpu_order);
	CHECK(s->share_by_lease == defaults->share_by_lease);
	CHECK(s->revoke_on_reload == defaults->revoke_on_reload);
	CHECK(s->activate_grace_usec == defaults->activate_grace_usec);
	CHECK(s->activate_min_interval_usec == defaults->activate_min_interval_usec);
	CHECK(s->grow_delay_usec == defaults->grow_delay_usec);
	CHECK(s->enforce_delay_usec == defaults->enforce_delay_usec);
	CHECK(s->max_leases == defaults->max_leases);
	CHECK(s->max_leases_per_user == defaults->max_leases_per_user);
	CHECK(s->max_holders == defaults->max_holders);
	CHECK(s->max_calls_per_user == defaults->max_calls_per_user);
	CHECK(s->max_time_per_user == defaults->max_time_per_user);
	CHECK(s->max_pending_per_user == defaults->max_pending_per_user);
	CHECK(s->max_unread_per_user == defaults->max_unread_per_user);
	CHECK(s->n_gpus == 1 && s->gpus[0].reserve_queues == 0);
	tree_done(&tree);
}

TEST(sample_tenants_are_valid_except_for_their_users)
{
	static char text[16384];
	struct tree tree = tree_new("");

	if (!load_source("conf/tenants.d/50-example.conf", text, sizeof(text))) {
		tree_done(&tree);
		SKIP("GPUARB_SOURCE_ROOT does not say where conf/tenants.d is");
	}
	scratch_write(&tree.scratch, "tenants.d/50.conf", text);
	CHECK(tree_load(&tree) == 0 && tree.settings->n_tenants == 1); /* as shipped */
	uncomment(text);
	scratch_write(&tree.scratch, "tenants.d/50.conf", text);
	tree.settings = settings_free(tree.settings);
	CHECK(tree_load(&tree) == 0);
	for (size_t i = 0; i < tree.diagnostics.n; i++)
		CHECK(strstr(tree.diagnostics.list[i].text, " does not exist on this machine"));
	tree_done(&tree);
}

static size_t keys_of(const char *manual)
{
	size_t n = 0;

	for (const char *at = manual; (at = strstr(at, "\n*")); at++)
		n += strstr(at, "* = ") && strcspn(at + 2, "*") + at + 2 == strstr(at, "* = ");
	return n;
}

TEST(sample_and_manuals_have_every_key)
{
	static char sample[16384], daemon[65536], tenants[65536];
	char needle[64];
	const char *name, *section;
	size_t n = 0;

	if (!load_source("conf/gpuarbd.conf", sample, sizeof(sample)) ||
	    !load_source("docs/gpuarbd.conf.5.scd", daemon, sizeof(daemon)) ||
	    !load_source("docs/gpuarb-tenants.5.scd", tenants, sizeof(tenants)))
		SKIP("GPUARB_SOURCE_ROOT does not say where conf and docs are");
	for (; (name = config_key(n, &section)); n++) {
		bool tenant = strcmp(section, "tenant") == 0;

		snprintf(needle, sizeof(needle), "\n#%s = ", name);
		CHECK(tenant || strstr(sample, needle));
		snprintf(needle, sizeof(needle), "\n*%s* = ", name);
		CHECK(strstr(tenant ? tenants : daemon, needle));
	}
	CHECK(keys_of(daemon) + keys_of(tenants) == n);
}
