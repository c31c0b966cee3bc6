/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Some Radeon VIIs and four users: one realtime, one guaranteed, two of everybody else. */

#include "ledger-rig.h"
#include "refusal-check.h"
#include "request-text.h"

#define VR 1    /* a realtime user */
#define LAB 2   /* a guaranteed user */
#define ANY 3   /* everybody else */
#define OTHER 4 /* another one of them */

struct scene {
	struct arbiter *arbiter;
	struct result result;
};

struct scene scene_of(size_t n_gpus);

void scene_done(struct scene *scene);

struct lease *grant(struct scene *scene, uid_t uid, unsigned cus);

/* Reserves what the text of request-text.h asks for. */
struct lease *grant_as(struct scene *scene, uid_t uid, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
struct lease *grant_list(struct scene *scene, uid_t uid, const char *format, va_list args);

/* Resizes a lease as its owner: 0, or what planning it returns. */
int resize_as(struct scene *scene, const struct lease *lease, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* To be changed. */
struct tenant *tenant_of(const struct scene *scene, const char *name);

bool refused(const struct scene *scene, enum result_kind kind, enum reason reason);
