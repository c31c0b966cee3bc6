/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** The page: connects what gpuarbd says with the parts that show it. */

/* global cockpit */

import { Actions } from "./actions.js";
import { Arbiter } from "./arbiter.js";
import { Gpus } from "./gpus.js";
import { Leases } from "./leases.js";
import { Plan } from "./plan.js";
import { Users } from "./users.js";
import { byId } from "./dom.js";
import { safe } from "./text.js";

const RENDER = 200; /* ms between two renderings at least: signals come in bursts */
const REFRESH = 5000; /* ms */

export class Page {
    constructor() {
        this.due = false;
        this.lastRender = -Infinity;
        this.boot = 0; /* CLOCK_BOOTTIME of performance.now() = 0, in microseconds */
        this.users = new Users(() => this.changed());
        this.arbiter = new Arbiter(() => this.changed());
        this.actions = new Actions(this.arbiter);
        this.gpus = new Gpus(byId("gpus"), this);
        this.leases = new Leases(this);
        this.plan = new Plan(this);
        this.readClock();
        setInterval(() => {
            this.leases.refresh();
            this.changed();
        }, REFRESH);
    }

    /** /proc/uptime is CLOCK_BOOTTIME. */
    async readClock() {
        const text = await cockpit.file("/proc/uptime").read();

        this.boot = Number.parseFloat(text ?? "0") * 1e6 - performance.now() * 1e3;
        this.changed();
    }

    /** @returns {number} CLOCK_BOOTTIME in microseconds */
    now() {
        return this.boot + performance.now() * 1e3;
    }

    /** @param {string} name the PCI address @returns {string} such as "GPU 0" */
    gpuLabel(name) {
        const path = [...this.arbiter.gpus].find(([, gpu]) => gpu.Name === name)?.[0];

        return path ? `GPU ${path.split("/").pop()}` : safe(name);
    }

    /** Shows one lease in the table. @param {string} id */
    findLease(id) {
        this.leases.filter.value = "";
        const held = this.leases.select(false).findIndex(([, lease]) => String(lease.Id) === id);

        this.leases.first = Math.max(0, held - held % 50);
        this.leases.render();
        const row = document.querySelector(`tr[data-lease="${CSS.escape(id)}"]`);
        row?.classList.add("found");
        row?.scrollIntoView({ block: "center" });
    }

    /** Renders soon: once for all changes until then. */
    changed() {
        if (this.due)
            return;
        this.due = true;
        setTimeout(() => this.render(), Math.max(0, this.lastRender + RENDER - performance.now()));
    }

    render() {
        const problem = this.arbiter.problem;
        const away = byId("problem");

        this.due = false;
        away.hidden = problem === null;
        if (away.textContent !== (problem ?? ""))
            away.textContent = problem ?? "";
        byId("content").hidden = problem !== null;
        byId("version").textContent = this.arbiter.version ? `gpuarbd ${this.arbiter.version}` : "";
        if (problem === null) {
            byId("no-gpu").hidden = this.arbiter.gpus.size > 0;
            this.gpus.render();
            this.leases.render();
            this.plan.render();
        }
        this.lastRender = performance.now();
    }
}

new Page();
