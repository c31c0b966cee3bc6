/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Events with a journal entry of their own: name, level, MESSAGE_ID. An id never changes its
 * meaning after a release; `systemd-id128 new` makes one. Each event has a text in
 * systemd/gpuarb.catalog and a row in gpuarbd(8), which a test compares.
 *
 * Level info: ordinary requests of clients. Notice: changes that the client did not request.
 * Warning: an administrator should examine it.
 */
#define LOG_EVENT_VIOLATED "5d4a8f0f6f6a4b0e8f6a0f4f6b3d9c21" /* of gpuarbctl and libgpuarb-rt */

#define LOG_EVENTS(EVENT)                                                      \
	EVENT(GRANTED, LOG_INFO, "0f081a939f064962a08405ece957e56d")           \
	EVENT(WAITING, LOG_INFO, "3d82fd5b7c864bfb83f0797eb279a7ec")           \
	EVENT(RESIZED, LOG_INFO, "b97bc87f367e4345babb124bfbcd89b8")           \
	EVENT(REFUSED, LOG_INFO, "ad921a33757a42eb932471cd1aba2c42")           \
	EVENT(ENDED, LOG_INFO, "029fff1b9ae141989d24011da9e29d14")             \
	EVENT(REVOKED, LOG_NOTICE, "f810bf3518ee457caf3fd6bb20ae8780")         \
	EVENT(ADOPTED, LOG_INFO, "7edeed42ca4d41b283d96ebc3c95240c")           \
	EVENT(ACTIVATED, LOG_INFO, "151df0e0a626411ca8c452472d06eb96")         \
	EVENT(DEACTIVATED, LOG_INFO, "6a656ab45c944edcac3b1a630931412d")       \
	EVENT(REVOKING, LOG_NOTICE, "bf7ebc6312e14b2fa122d4a96b3fd741")        \
	EVENT(KEPT, LOG_NOTICE, "c6eef623254a4d77aa4279f6d90b35dd")            \
	EVENT(OVERDUE, LOG_WARNING, "a28710bce7b34059ac24d0914a7dca35")        \
	EVENT(UNTRUE, LOG_WARNING, "4d3192d6e20d4e9399152d583256cecc")         \
	EVENT(PAUSED, LOG_WARNING, "07870bd6a1294f24ad96d0ae1055644d")         \
	EVENT(LOST, LOG_WARNING, "f3c873e7e5a9455cb9a3d1cb14ebd626")           \
	EVENT(EXCEEDED, LOG_WARNING, "5bb00a9cfd9e43e59ffe8ea488c15354")       \
	EVENT(WITHIN, LOG_NOTICE, "d68d1bde19b54ab086bd4fd5548ff886")          \
	EVENT(OVERSUBSCRIBED, LOG_WARNING, "2f9030c0e93c4e71a5806842185dab13") \
	EVENT(RELIEVED, LOG_NOTICE, "a48a0c61bf5c45a68f051aa129bdc93f")        \
	EVENT(RESET, LOG_WARNING, "ac0dc508a1bf40a4ac85d81838036515")          \
	EVENT(COVERED, LOG_WARNING, "50a099bbef0a47c89d06b2c92ae042bb")        \
	EVENT(UNCOVERED, LOG_NOTICE, "12d2b4c65c5740cfbb652bb43b796c0d")       \
	EVENT(UNMANAGED, LOG_WARNING, "2b8d74b5574445bf87cbea944a9bfde4")      \
	EVENT(EXPELLED, LOG_WARNING, "b00a088633d443cbac6dcdee905f6060")       \
	EVENT(GRAPHICS, LOG_WARNING, "5f9db1c78871481482037c247c294b44")       \
	EVENT(VIOLATED, LOG_ERR, LOG_EVENT_VIOLATED)

enum log_event {
#define LOG_EVENT_NAME(name, level, id) EVENT_##name,
	LOG_EVENTS(LOG_EVENT_NAME)
#undef LOG_EVENT_NAME
		LOG_N_EVENTS,
};
