/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A lease of gpuarbd for a container, over sd-bus: hooks of rootless containers run in a user namespace, and libdbus sends
 * the number that the user has there, which the bus refuses. sd-bus sends none.
 */

#include <stdint.h>
#include <sys/types.h>

#include "client/oci/runtime-config.h"
#include "client/oci/variables.h"
#include "client/options/options.h"

struct oci_lease {
	uint64_t id;
	int holder;      /* keeps the lease */
	char *variables; /* as of oci_variables(); the caller frees them */
};

/* Takes a lease on GPUs that the container has: the wants of the command become those. Negative errno: why has the reason,
 * and gpuarbctl's words for it. */
int oci_lease_reserve(struct json_object *config, struct command *command, struct oci_lease *ret,
		      char why[static OCI_LEASE_PROBLEM]);

/* Binds the lease to the process, so that it lives as long. */
int oci_lease_bind(uint64_t id, pid_t pid, char why[static OCI_LEASE_PROBLEM]);
