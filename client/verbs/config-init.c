/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* config init: installs one of the shipped policies, after showing it. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/output/fail.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"
#include "sys/config/config.h"
#include "util/fd.h"

#define INTO "/etc/gpuarb/tenants.d"
#define PATH_BYTES 4096U
#define POLICY_BYTES (64U * 1024U)

static const char *const names[] = { "ci", "desktop", "lab", "server", NULL };

struct policy {
	char from[PATH_BYTES], to[PATH_BYTES];
	char *text;
};

static bool is_name(const char *name)
{
	for (size_t i = 0; names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static int read_policy(const struct command *command, struct policy *ret)
{
	int r;

	ret->text = have(calloc(1, POLICY_BYTES));
	r = read_text_at(AT_FDCWD, ret->from, ret->text, POLICY_BYTES);
	if (r >= 0)
		return EXIT_OK;
	return fail(command, EXIT_FAILED,
		    "%s: %s; install gpuarb, or in its sources use --templates=conf/init",
		    ret->from, strerror(-r));
}

static bool has_unresolved(const struct settings *settings)
{
	for (size_t i = 0; i < settings->n_tenants; i++)
		if (settings->tenants[i].users.unresolved || settings->tenants[i].groups.unresolved)
			return true;
	return false;
}

/* A tenant of a group that this machine does not have would be without effect. */
static int check_policy(const struct command *command, const struct policy *policy)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	_cleanup_(settings_freep) struct settings *settings = NULL;

	if (config_load_file(policy->from, &settings, &diagnostics) >= 0 &&
	    !has_unresolved(settings))
		return EXIT_OK;
	return fail(command, EXIT_CONFIGURATION, "%s; copy the file to " INTO " and adapt it",
		    diagnostics.n > 0 ? diagnostics.list[0].text : policy->from);
}

static bool confirmed(const struct command *command)
{
	char answer[8] = "";

	if (command->yes)
		return true;
	if (!isatty(STDIN_FILENO))
		return false;
	printf("Write it? [y/N] ");
	fflush(stdout);
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* Never replaces a file: an administrator may have changed it. */
static int write_policy(const struct command *command, const struct policy *policy)
{
	int fd = open(policy->to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	size_t size = strlen(policy->text);
	bool written;

	if (fd < 0 && errno == EEXIST)
		return fail(command, EXIT_FAILED,
			    "%s exists: edit it, or remove it and run this again", policy->to);
	if (fd < 0)
		return fail(command, errno == EACCES ? EXIT_FORBIDDEN : EXIT_FAILED, "%s: %s%s",
			    policy->to, strerror(errno), errno == EACCES ? "; run it as root" : "");
	written = write(fd, policy->text, size) == (ssize_t)size && fchmod(fd, 0644) == 0;
	if (close(fd) < 0 || !written) {
		unlink(policy->to);
		return fail(command, EXIT_FAILED, "%s: cannot be written", policy->to);
	}
	print_line(stdout, "%s was written; gpuarbctl reload puts it into force", policy->to);
	return EXIT_OK;
}

static int install(const struct command *command, struct policy *policy)
{
	int r = read_policy(command, policy);

	if (r == EXIT_OK)
		r = check_policy(command, policy);
	if (r != EXIT_OK)
		return r;
	printf("# %s\n%s", policy->to, policy->text);
	if (confirmed(command))
		return write_policy(command, policy);
	print_line(stderr, "nothing was written; --yes writes it without a question");
	return EXIT_OK;
}

int config_init(struct command *command)
{
	const char *from = command->templates ? command->templates : GPUARB_TEMPLATE_DIR;
	const char *into = command->into ? command->into : INTO;
	struct policy policy = { .text = NULL };
	const char *name = command->n_rest == 2 ? command->rest[1] : "";
	int r;

	if (!is_name(name))
		return fail(command, EXIT_USAGE,
			    "%s%.80s%s: use config init ci, desktop, lab or server",
			    *name ? "unknown policy '" : "no policy named", name, *name ? "'" : "");
	snprintf(policy.from, sizeof(policy.from), "%s/%s.conf", from, name);
	snprintf(policy.to, sizeof(policy.to), "%s/50-%s.conf", into, name);
	r = install(command, &policy);
	free(policy.text);
	return r;
}
