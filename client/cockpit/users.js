/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** The names of users. */

/* global cockpit */

import { safe } from "./text.js";

const NOBODY_KNOWN = 0xffffffff;

export class Users {
    /** @param {() => void} changed called when more names are known */
    constructor(changed) {
        this.changed = changed;
        /** @type {Map<number, string>} */
        this.names = new Map();
        /** @type {Set<number>} */
        this.wanted = new Set();
    }

    /** @param {number} uid @returns {string} the number until the name is known */
    name(uid) {
        if (!this.names.has(uid) && uid !== NOBODY_KNOWN) {
            this.names.set(uid, String(uid));
            if (this.wanted.size === 0)
                queueMicrotask(() => this.look());
            this.wanted.add(uid);
        }
        return this.names.get(uid) ?? "unknown";
    }

    async look() {
        const uids = [...this.wanted].map(String);

        this.wanted.clear();
        /* Where one user is unknown, getent fails and tells the others. */
        await cockpit.spawn(["getent", "passwd", ...uids])
            .then((/** @type {string} */ passwd) => this.learn(passwd))
            .catch((/** @type {any} */ _, /** @type {string} */ passwd) => this.learn(passwd ?? ""));
    }

    /** @param {string} passwd lines of passwd(5) */
    learn(passwd) {
        for (const line of passwd.split("\n")) {
            const [name, , uid] = line.split(":");
            if (uid)
                this.names.set(Number(uid), safe(name));
        }
        this.changed();
    }
}
