/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/subuid-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/fd.h"
#include "util/number.h"

#define BYTES_MAX (4U << 20)
#define LOOKUP_USEC 2000000U

struct lookup {
	struct names *names;
	char last[256]; /* the ranges of an owner often follow each other */
	uid_t uid;
	bool known;
	uint64_t until_usec;
};

/* A number is a uid, as for newuidmap(1). */
static bool find_owner(void *userdata, const char *name, uid_t *ret)
{
	struct lookup *lookup = userdata;
	uint64_t uid = 0;
	int r = number_parse(name, 0, UINT32_MAX - 1, &uid);

	*ret = (uid_t)uid;
	if (r != -EINVAL)
		return r >= 0;
	if (strlen(name) >= sizeof(lookup->last))
		return false;
	if (strcmp(name, lookup->last) != 0) {
		strcpy(lookup->last, name);
		lookup->known = clock_usec(CLOCK_MONOTONIC) < lookup->until_usec &&
				names_find(lookup->names, name, false, &lookup->uid);
	}
	*ret = lookup->uid;
	return lookup->known;
}

int subuid_load(struct subuids *ret, struct names *names, struct diagnostics *diagnostics)
{
	const char *path = getenv("GPUARB_SUBUID") ?: "/etc/subuid";
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_(freep) char *text = NULL;
	struct lookup lookup = { .names = names, .last = "" };
	size_t n;
	int r = fd < 0 ? -errno : read_whole(fd, BYTES_MAX, &text, &n);

	if (r == -ENOENT)
		return 0;
	if (r >= 0) {
		lookup.until_usec = clock_usec(CLOCK_MONOTONIC) + LOOKUP_USEC;
		r = subuids_parse(text, find_owner, &lookup, ret);
	}
	if (r < 0)
		diagnostics_add(diagnostics, false,
				"%s: cannot be read: %s: subordinate uids stand for themselves",
				path, strerror(-r));
	if (r > 0)
		diagnostics_add(
			diagnostics, false,
			"%s: %d line%s left out: malformed, of an unknown user, below uid %u, "
			"or overlapping the range or the uid of another user",
			path, r, r == 1 ? " is" : "s are", SUBUID_FIRST);
	return r < 0 ? r : 0;
}
