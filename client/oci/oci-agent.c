/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/oci/oci-agent.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/launch/agent-start.h"
#include "util/fd.h"

/* In the container: below /dev, which is a file system of its own, so that nothing is left in the image. */
#define SOCKET "/dev/gpuarb/agent"
#define LIBRARY "/dev/gpuarb/libgpuarb-agent.so"
#define GLIBC_MINOR 31U       /* of the oldest glibc that can load the library: 2.31 */
#define LIBC_MAX (16LL << 20) /* bytes; glibc 2.36 has 2 MB */

static void write_program(char ret[static PATH_MAX])
{
	snprintf(ret, PATH_MAX, "%s/gpuarb-agent", agent_dir(GPUARB_AGENT_PROGRAM_DIR));
}

/* ---- the image ----------------------------------------------------------------------------- */

/* Opens a regular file of the image, and follows no link out of it. A device is not opened. */
static int open_in(int root, const char *path, off_t *ret_size)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	_cleanup_fd_ int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	char self[32];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	*ret_size = st.st_size;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return open(self, O_RDONLY | O_CLOEXEC);
}

static bool has_file(int root, const char *path)
{
	off_t size;
	_cleanup_fd_ int fd = open_in(root, path, &size);

	return fd >= 0;
}

/* Y of glibc 2.Y; 0: unknown. Every libc.so.6 contains its version. */
static unsigned read_glibc(int root)
{
	static const char *const paths[] = { "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
					     "/usr/lib/libc.so.6" };
	static const char words[] = "release version 2.";
	_cleanup_(freep) char *text = NULL;
	_cleanup_fd_ int fd = -1;
	const char *found;
	off_t size = 0;
	ssize_t n;

	for (size_t i = 0; fd < 0 && i < ARRAY_SIZE(paths); i++)
		fd = open_in(root, paths[i], &size);
	if (fd < 0 || size > LIBC_MAX)
		return 0;
	text = malloc((size_t)size + 1);
	n = text ? pread(fd, text, (size_t)size, 0) : -1;
	if (n < 0)
		return 0;
	text[n] = '\0';
	found = memmem(text, (size_t)n, words, strlen(words));
	return found ? (unsigned)strtoul(found + strlen(words), NULL, 10) : 0;
}

/* The suffix of the library for the C library of the image; NULL: why. */
static const char *choose_library(const char *path, char *why, size_t size)
{
	_cleanup_fd_ int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool glibc = root >= 0 && has_file(root, "/lib64/ld-linux-x86-64.so.2");
	bool musl = root >= 0 && has_file(root, "/lib/ld-musl-x86_64.so.1");
	unsigned minor;

	if (glibc == musl) {
		snprintf(why, size, "its image has %s", glibc ? "glibc and musl" : "no C library");
		return NULL;
	}
	minor = musl ? GLIBC_MINOR : read_glibc(root);
	if (minor < GLIBC_MINOR) {
		snprintf(why, size, "its image has no glibc 2.%u or later", GLIBC_MINOR);
		return NULL;
	}
	return musl ? "-musl" : "";
}

/* ---- the configuration --------------------------------------------------------------------- */

/* Whether an array of objects has one in which key has this value, beside type if that is not NULL. */
static bool has_entry(struct json_object *array, const char *key, const char *value,
		      const char *type)
{
	for (size_t i = 0; i < config_length(array); i++) {
		struct json_object *entry = json_object_array_get_idx(array, i), *found, *kind;

		if (json_object_object_get_ex(entry, key, &found) &&
		    strcmp(json_object_get_string(found) ?: "", value) == 0 &&
		    (!type || (json_object_object_get_ex(entry, "type", &kind) &&
			       strcmp(json_object_get_string(kind) ?: "", type) == 0)))
			return true;
	}
	return false;
}

/* gpuarb-agent accepts processes of its own user only. */
static const char *check_container(struct json_object *config)
{
	struct json_object *user = config_member(config, "process", "user"), *uid;
	struct json_object *mounts = NULL;

	if (has_entry(config_member(config, "linux", "namespaces"), "type", "user", NULL))
		return "it has a user namespace";
	if (!json_object_object_get_ex(user, "uid", &uid) || json_object_get_int64(uid) != 0)
		return "its program does not run as root";
	if (!json_object_object_get_ex(config, "mounts", &mounts) ||
	    !has_entry(mounts, "destination", "/dev", "tmpfs"))
		return "its /dev is not its own";
	return NULL;
}

bool oci_agent_find(struct json_object *config, char library[static PATH_MAX], char *why,
		    size_t size)
{
	const char *bad = check_container(config), *suffix;
	struct json_object *root = config_member(config, "root", "path");
	char program[PATH_MAX];

	if (bad) {
		snprintf(why, size, "%s", bad);
		return false;
	}
	suffix = choose_library(json_object_get_string(root) ?: "", why, size);
	if (!suffix)
		return false;
	write_program(program);
	snprintf(library, PATH_MAX, "%s/libgpuarb-agent%s.so", agent_dir(GPUARB_AGENT_LIBRARY_DIR),
		 suffix);
	if (access(library, R_OK) < 0 || access(program, X_OK) < 0) {
		snprintf(why, size, "cannot use %.300s and %.300s: %s", library, program,
			 strerror(errno));
		return false;
	}
	return true;
}

static int add_mount(struct json_object *config, const char *source, const char *destination)
{
	struct json_object *mounts, *options = json_object_new_array();
	struct json_object *mount = json_object_new_object();

	if (!options || !mount || !json_object_object_get_ex(config, "mounts", &mounts)) {
		json_object_put(options);
		json_object_put(mount);
		return -ENOMEM;
	}
	json_object_array_add(options, json_object_new_string("bind"));
	json_object_array_add(options, json_object_new_string("ro"));
	json_object_object_add(mount, "destination", json_object_new_string(destination));
	json_object_object_add(mount, "type", json_object_new_string("bind"));
	json_object_object_add(mount, "source", json_object_new_string(source));
	json_object_object_add(mount, "options", options);
	return json_object_array_add(mounts, mount) < 0 ? -ENOMEM : 0;
}

int oci_agent_mount(struct json_object *config, const char *library, uint64_t lease)
{
	const char *before = config_variable(config, "LD_PRELOAD");
	_cleanup_(freep) char *preload = NULL;
	char name[AGENT_SOCKET];
	int r, listening;

	if (asprintf(&preload, "LD_PRELOAD=" LIBRARY "%s%s", before && *before ? ":" : "",
		     before ? before : "") < 0)
		return -ENOMEM;
	listening = agent_socket_make("/run", lease, name);
	if (listening < 0)
		return listening;
	r = add_mount(config, name, SOCKET);
	if (r >= 0)
		r = add_mount(config, library, LIBRARY);
	if (r >= 0)
		r = config_set_variable(config, preload);
	if (r >= 0)
		r = config_set_variable(config, AGENT_VARIABLE "=" SOCKET);
	if (r >= 0)
		return listening;
	oci_agent_delete(listening);
	close(listening);
	return r;
}

/* ---- the process --------------------------------------------------------------------------- */

void oci_agent_delete(int listening)
{
	struct sockaddr_un address = { .sun_path = "" };
	socklen_t size = sizeof(address) - 1;

	if (getsockname(listening, (struct sockaddr *)&address, &size) == 0 && *address.sun_path)
		(void)unlink(address.sun_path);
}

/* The second socket of gpuarb-agent is an abstract one for `gpuarbctl run`: here it is the first one again. */
int oci_agent_start(uint64_t lease, pid_t pid, int listening)
{
	_cleanup_fd_ int process = (int)syscall(SYS_pidfd_open, pid, 0U);
	char program[PATH_MAX];

	if (process < 0)
		return -errno;
	write_program(program);
	return agent_start(program, lease, pid, (const int[]){ listening, listening }, process,
			   true);
}
