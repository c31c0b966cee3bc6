/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The daemon: holds the parts together and carries out what core decides, always in one
 * order: save, apply, tell.
 */

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "bus/bus.h"
#include "core/arbiter.h"
#include "hw/hw.h"
#include "sys/config.h"
#include "sys/holder.h"
#include "sys/state.h"

struct daemon_options {
	struct config_files files;
	const char *profiles;          /* directory */
	const char *simulate;          /* profiles, comma-separated; NULL: as configured */
	const char *sysfs;             /* what stands for /sys; NULL: /sys */
	const char *runtime_directory;
	const char *bus_address;       /* NULL: the system bus */
};

struct daemon {
	const struct daemon_options *options;
	sd_event *event;
	const struct hw_ops *ops;
	struct hw *hw;
	struct arbiter *arbiter;
	struct state *state;
	struct holders *holders;
	struct bus *bus;

	unsigned max_holders; /* as configured, or what RLIMIT_NOFILE allows */

	sd_event_source *audit; /* when to look at the hardware next */
	uint64_t looked_usec;   /* CLOCK_BOOTTIME of the last look */
	bool in_use;            /* somebody was seen on a GPU, or holds a lease */
	bool must_look;         /* a lease is ending: is its hardware free? */
	bool blind;             /* the last look failed, which was logged */
	struct hw_use *uses;    /* room for ops->use() */
	size_t uses_room;
	uint64_t warned;        /* GPUs whose oversubscription was logged, as bits */
};

/* Reads the configuration and the hardware, connects, takes the name. What is wrong is
 * logged. -EINVAL: the configuration. */
int daemon_new(const struct daemon_options *options, sd_event *event, struct daemon **ret);

/* Ends every lease, telling its holders why. Takes NULL. */
struct daemon *daemon_free(struct daemon *daemon);
DEFINE_CLEANUP(struct daemon *, daemon_free)

/* Reads the configuration anew; on failure what was in force stays, notes say why. */
int daemon_reload(struct daemon *daemon, struct notes *notes);

/* Lists GPUs of the backend that options and settings ask for: for --check too. */
int daemon_find_gpus(const struct daemon_options *options, const struct settings *settings,
		     const struct hw_ops **ret_ops, struct hw **ret_hw, struct gpu_info *gpus,
		     size_t max, struct notes *notes);

/* Looks at the hardware if the last look is older than this; carries out what follows. */
void daemon_look(struct daemon *daemon, uint64_t max_age_usec);

/* Sets the time of the next look. */
void daemon_plan_look(struct daemon *daemon);

/* Tells the world what has changed in core. The last step of everything. */
void daemon_carry_out(struct daemon *daemon);

/* What the bus may ask: host.c. */
extern const struct bus_host daemon_host;
