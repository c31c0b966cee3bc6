/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#define FAKE_VRAM (64ULL << 30)
