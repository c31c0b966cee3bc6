/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Two hooks of container engines, for containers with annotations org.gpuarb.*:
 *
 *	gpuarb-precreate         podman: configuration on standard input, changed configuration on standard output. Takes a
 *	                         lease and puts its variables into the configuration.
 *	gpuarb-createruntime     OCI: state on standard input. Binds the lease to the first process of the container. An
 *	                         argument is the lease of a share, from the file that gpuarbctl cdi writes.
 *
 * Between the two a process holds the lease. podman does not show the errors of precreate hooks, so a refusal is an
 * annotation that the second hook prints.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <unistd.h>

#include "client/oci/runtime-config.h"
#include "client/oci/oci-agent.h"
#include "client/oci/oci-lease.h"
#include "util/fd.h"
#include "util/number.h"
#include "util/text.h"

#define HOLD_MSEC 60000 /* for an engine that fails between the hooks */
#define LISTENING 1     /* the descriptor of the holder that is the socket of the agent */
#define NAME 16         /* what the kernel keeps of the name of a process */

static int complain(const char *why)
{
	fprintf(stderr, "gpuarb: %s\n", why);
	return EXIT_FAILURE;
}

/* The process that holds the lease. */
static void holder_name(uint64_t lease, char ret[static NAME])
{
	snprintf(ret, NAME, "gpuarb-%08" PRIu64, lease % 100000000);
}

/* ---- precreate ----------------------------------------------------------------------------- */

/* Has no descriptors but the holder and LISTENING: the engine waits until standard output is closed. Ended by
 * createRuntime, or by time. */
__attribute__((noreturn)) static void hold(int holder, int listening)
{
	struct pollfd fds = { .fd = STDIN_FILENO };
	bool agent = listening >= 0;

	setsid();
	if (dup2(holder, STDIN_FILENO) != STDIN_FILENO ||
	    (agent && dup2(listening, LISTENING) != LISTENING)) {
		if (agent)
			oci_agent_delete(listening);
		_exit(EXIT_FAILURE);
	}
	if (close_range(agent ? LISTENING + 1 : LISTENING, ~0U, 0) == 0)
		(void)poll(&fds, 1, HOLD_MSEC);
	if (agent)
		oci_agent_delete(LISTENING);
	_exit(EXIT_SUCCESS);
}

/* The hostname is the short id of the container, unless the user chose one. */
static void name_lease(struct json_object *config, struct command *command)
{
	struct json_object *hostname;

	if (!command->options.name && json_object_object_get_ex(config, "hostname", &hostname))
		command->options.name = json_object_get_string(hostname);
}

static int annotate_number(struct json_object *config, const char *name, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	return config_annotate(config, name, text);
}

/* gpuarb-agent needs the mask of the variable, to tell it from masks that the program sets. */
static int add_agent(struct json_object *config, const char *library, const struct oci_lease *lease,
		     int *ret)
{
	int r = config_annotate(config, "mask", config_variable(config, "HSA_CU_MASK") ?: "");

	*ret = r < 0 ? r : oci_agent_mount(config, library, lease->id);
	return *ret < 0 ? *ret : 0;
}

/* library: of the agent; "": the lease is fixed. */
static int write_lease(struct json_object *config, const struct oci_lease *lease,
		       const char *library)
{
	_cleanup_fd_ int listening = -1;
	char name[NAME];
	pid_t holder;
	int r = annotate_number(config, "lease", lease->id);

	for (const char *v = lease->variables; r >= 0 && *v; v += strlen(v) + 1)
		r = config_set_variable(config, v);
	if (r >= 0 && *library)
		r = add_agent(config, library, lease, &listening);
	if (r < 0)
		return r;
	holder_name(lease->id, name); /* before the next hook can read */
	prctl(PR_SET_NAME, name);
	holder = fork();
	if (holder == 0)
		hold(lease->holder, listening);
	if (holder < 0 && listening >= 0)
		oci_agent_delete(listening);
	return holder < 0 ? -errno : annotate_number(config, "holder", (uint64_t)holder);
}

/* Root outside of user namespaces: inside, a user has the number 0, too. */
static bool is_root(void)
{
	FILE *map = fopen("/proc/self/uid_map", "re");
	unsigned inside = 1, outside = 1;
	bool root = geteuid() == 0 && map && fscanf(map, "%u %u", &inside, &outside) == 2 &&
		    inside == 0 && outside == 0;

	if (map)
		fclose(map);
	return root;
}

/* An adaptable lease is fixed where no program could follow it. */
static void choose_agent(struct json_object *config, struct command *command,
			 char library[static PATH_MAX])
{
	char why[OCI_LEASE_PROBLEM] = "it is rootless", shown[81];

	library[0] = '\0';
	if (!command->options.adaptable ||
	    (is_root() && oci_agent_find(config, library, why, sizeof(why))))
		return;
	library[0] = '\0';
	command->options.adaptable = false;
	/* podman shows nothing of a hook that succeeds. */
	openlog("gpuarb", LOG_PERROR, LOG_DAEMON);
	text_clean(shown, sizeof(shown), command->options.name ?: "");
	syslog(LOG_NOTICE, "container %s: its lease is fixed: %s", shown, why);
}

/* Takes a lease into the configuration. */
static int take_lease(struct json_object *config, char why[static OCI_LEASE_PROBLEM])
{
	_cleanup_(freep) struct command *command = calloc(1, sizeof(*command));
	struct oci_lease lease = { .holder = -1 };
	char library[PATH_MAX];
	int r = command ? config_command(config, command) : -ENOMEM;

	if (r < 0) {
		snprintf(why, OCI_LEASE_PROBLEM, "%s",
			 command ? command->problem : "out of memory");
		return r;
	}
	if (command->wants[0].want.cus == 0 && command->wants[0].share.cus == 0) {
		snprintf(why, OCI_LEASE_PROBLEM,
			 ANNOTATION "cus: missing, a number of CUs, or a share as 25%%");
		return -EINVAL;
	}
	if (command->options.tenant && !is_root()) {
		snprintf(why, OCI_LEASE_PROBLEM,
			 ANNOTATION "tenant=%.80s: only root names a tenant; leave it out for that "
				    "which policy has for you",
			 command->options.tenant);
		return -EPERM;
	}
	name_lease(config, command);
	choose_agent(config, command, library);
	r = oci_lease_reserve(config, command, &lease, why);
	free(command->visible);
	if (r < 0)
		return r;
	r = write_lease(config, &lease, library);
	free(lease.variables);
	close(lease.holder);
	if (r < 0)
		snprintf(why, OCI_LEASE_PROBLEM,
			 *library ? "cannot change the configuration, or make a socket in /run: %s"
				  : "cannot change the configuration: %s",
			 strerror(-r));
	return r;
}

/* optional: without a lease the container starts without one. */
static int precreate(struct json_object *config, bool optional)
{
	char why[OCI_LEASE_PROBLEM] = "out of memory";
	struct json_object *changed = NULL;
	const char *text;
	bool shown;

	/* What was written before a failure is of a lease that has ended. */
	if (json_object_deep_copy(config, &changed, NULL) < 0 || take_lease(changed, why) < 0) {
		(void)complain(why);
		json_object_put(changed);
		changed = json_object_get(config);
		if (!optional && config_annotate(changed, "refusal", why) < 0) {
			json_object_put(changed);
			return EXIT_FAILURE;
		}
	}
	text = json_object_to_json_string_ext(changed, JSON_C_TO_STRING_PLAIN |
							       JSON_C_TO_STRING_NOSLASHESCAPE);
	shown = text && puts(text) >= 0 && fflush(stdout) == 0;
	json_object_put(changed);
	return shown ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- createRuntime ------------------------------------------------------------------------- */

static uint64_t annotated_number(struct json_object *state, const char *name)
{
	const char *text = config_annotation(state, name);
	uint64_t number = 0;

	return text && number_parse(text, 1, UINT64_MAX, &number) >= 0 ? number : 0;
}

/* Rootless, it can be in another user namespace, where its program cannot be seen; such a user has only leases of its
 * own. */
static bool is_own_program(const char *path)
{
	struct stat x, y;

	if (stat(path, &x) < 0)
		return errno == EACCES;
	return stat("/proc/self/exe", &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A pidfd of the process that holds the lease for this container. -1: there is none: it has ended, or gpuarb-precreate did
 * not write the annotations, and who did may want the lease of another container. */
static int find_holder(uint64_t lease, uint64_t pid)
{
	_cleanup_fd_ int process = -1;
	char path[64], name[NAME], found[NAME + 1] = "";
	FILE *file;
	int ret;

	if (pid == 0 || pid > INT_MAX)
		return -1;
	process = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0U);
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = process >= 0 ? fopen(path, "re") : NULL;
	if (!file)
		return -1;
	(void)!fgets(found, sizeof(found), file);
	fclose(file);
	found[strcspn(found, "\n")] = '\0';
	holder_name(lease, name);
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (strcmp(found, name) != 0 || !is_own_program(path))
		return -1;
	ret = process;
	process = -1;
	return ret;
}

static void let_go(int holder)
{
	if (holder >= 0)
		(void)syscall(SYS_pidfd_send_signal, holder, SIGTERM, NULL, 0U);
}

/* With an agent, gpuarb-precreate has annotated the mask. Started by this hook, because the monitor of the container, below
 * which the hook runs, has a control group that outlives podman's. */
static int start_agent(struct json_object *state, uint64_t lease, pid_t pid, int listening,
		       char why[static OCI_LEASE_PROBLEM])
{
	int r = listening < 0 ? listening : 0;

	if (r >= 0)
		r = setenv("HSA_CU_MASK", config_annotation(state, "mask"), 1) < 0
			    ? -errno
			    : oci_agent_start(lease, pid, listening);
	if (r < 0)
		snprintf(why, OCI_LEASE_PROBLEM, "cannot start gpuarb-agent: %s", strerror(-r));
	return r;
}

/* The lease whose variables the program of the container has: each share, and the annotations, replace those of the one
 * before. 0: that is not known. */
static uint64_t find_lease(struct json_object *state)
{
	_cleanup_(config_freep) struct json_object *config = NULL;
	struct json_object *bundle;
	char path[PATH_MAX];
	const char *text;
	uint64_t lease;

	if (!json_object_object_get_ex(state, "bundle", &bundle))
		return 0;
	snprintf(path, sizeof(path), "%s/config.json", json_object_get_string(bundle) ?: "");
	config = json_object_from_file(path);
	text = config ? config_variable(config, "GPUARB_LEASE") : NULL;
	return text && number_parse(text, 1, UINT64_MAX, &lease) >= 0 ? lease : 0;
}

static int check_share(struct json_object *state, uint64_t lease)
{
	uint64_t found = find_lease(state);
	char why[OCI_LEASE_PROBLEM];

	if (found == 0 || found == lease)
		return 0;
	snprintf(why, sizeof(why),
		 "the container has leases %" PRIu64 " and %" PRIu64
		 ": give it one share, or annotations, which can ask for several GPUs",
		 lease, found);
	(void)complain(why);
	return -EEXIST;
}

/* share: "" for the lease of the annotations. */
static int create_runtime(struct json_object *state, const char *share)
{
	const char *refusal = *share ? NULL : config_annotation(state, "refusal");
	uint64_t lease = *share ? 0 : annotated_number(state, "lease");
	_cleanup_fd_ int holder = -1, listening = -1;
	struct json_object *pid;
	char why[OCI_LEASE_PROBLEM];
	int r;

	if (refusal)
		return complain(refusal);
	if (*share && number_parse(share, 1, UINT64_MAX, &lease) < 0) {
		snprintf(why, sizeof(why), "'%.80s' is not the number of a lease", share);
		return complain(why);
	}
	if (!lease)
		return EXIT_SUCCESS;
	if (*share && check_share(state, lease) < 0) {
		/* The hook of the annotations does not come. */
		holder = find_holder(annotated_number(state, "lease"),
				     annotated_number(state, "holder"));
		let_go(holder);
		return EXIT_FAILURE;
	}
	if (!json_object_object_get_ex(state, "pid", &pid))
		return complain("the state of the container has no pid");
	if (!*share)
		holder = find_holder(lease, annotated_number(state, "holder"));
	if (!*share && holder < 0) {
		snprintf(why, sizeof(why),
			 "lease %" PRIu64 " is not held for this container: more than %d s have "
			 "passed since gpuarb-precreate, or that did not run",
			 lease, HOLD_MSEC / 1000);
		return complain(why);
	}
	if (!*share && config_annotation(state, "mask")) {
		listening = (int)syscall(SYS_pidfd_getfd, holder, LISTENING, 0U);
		listening = listening < 0 ? -errno : listening;
	}
	r = oci_lease_bind(lease, json_object_get_int(pid), why);
	if (r >= 0 && !*share && config_annotation(state, "mask"))
		r = start_agent(state, lease, json_object_get_int(pid), listening, why);
	if (r < 0 && listening >= 0)
		oci_agent_delete(listening);
	let_go(holder);
	return r < 0 ? complain(why) : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	_cleanup_(config_freep) struct json_object *input = config_read(STDIN_FILENO);
	const char *stage = basename(argv[0]);

	if (!input)
		return complain("standard input has no configuration or state of a container");
	if (strcmp(stage, "gpuarb-precreate") == 0)
		return precreate(input, argc > 1 && strcmp(argv[1], "optional") == 0);
	if (strcmp(stage, "gpuarb-createruntime") == 0)
		return create_runtime(input, argc > 1 ? argv[1] : "");
	return complain("to be called as gpuarb-precreate or gpuarb-createruntime");
}
