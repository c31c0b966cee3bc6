/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "core/policy/refusal.h"

/* The first fact that this refusal has to carry and does not, as the name of its key; NULL: all
 * are there. A reason that the table does not know lacks "a row". */
const char *refusal_lacks(const struct refusal *refusal);
