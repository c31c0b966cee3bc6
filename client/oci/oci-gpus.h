/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The GPUs that a lease for a container may be on: those whose render nodes the container has. ROCr finds no others there.
 */

#include <systemd/sd-bus.h>

#include "client/oci/runtime-config.h"

/* Chooses the GPUs of the only want: of "any" or a list those that the container has, and of "all" a want for each. Negative
 * errno: why has the reason. Its strings live as long as command->visible, which the caller frees, and the configuration. */
int oci_gpus_choose(sd_bus *bus, struct json_object *config, struct command *command,
		    char why[static OCI_LEASE_PROBLEM]);
