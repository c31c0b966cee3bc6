/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sys/config/config.h"

/* Reads the configuration with the rights and rules of trust of the user that gpuarbd runs as. */

/* Trust of gpuarbd's user; of this user if gpuarbd is not installed. */
struct trust service_trust(void);

/* config_load(), as that user if this is root: root may read files that gpuarbd may not. */
int service_load_config(const struct config_files *files, struct settings **ret,
			struct diagnostics *diagnostics);

/* What systemd, or the file of the unit, tells of gpuarbd.service. */
struct service_unit {
	char load[32], active[32]; /* "": no service manager */
	char sub[32];
	unsigned restarts, status; /* of its last program */
	char user[64];             /* "": root */
	uint64_t store, files;     /* UINT64_MAX: no limit */
	bool has_store, has_files, has_user;
};

/* Takes lines KEY=VALUE of the unit file or of systemctl show. */
void service_read_unit(FILE *file, struct service_unit *unit);

/* False: systemctl failed. load is "" where it does not reach systemd. */
bool service_ask_systemd(struct service_unit *ret);

/*
 * Whether gpuarbd has failed to start, with the reason as several lines: the first error in the
 * configuration, or else the last lines of the journal. ended: the bus has reported that it ended;
 * otherwise the state of its unit tells.
 */
bool service_failed(bool ended, char *why, size_t size);
