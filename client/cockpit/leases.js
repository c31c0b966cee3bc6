/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** The tables of leases: those that have a part of a GPU, and those that wait. */

import { colourOf } from "./map.js";
import { byId, h, show } from "./dom.js";
import { count, duration, isUnlimited, safe } from "./text.js";

/** @typedef {import("./arbiter.js").Values} Values */
/** @typedef {import("./page.js").Page} Page */

const ROWS = 50;
const STATES = { granted: "good", waiting: "warning", revoking: "danger", ending: "danger", activating: "warning", inactive: "" };

/** @param {string} label @param {...import("./dom.js").Child} children */
function cell(label, ...children) {
    return h("td", { "data-label": label }, ...children);
}

/** @param {Values} lease @param {Page} page */
function state(lease, page) {
    const kind = STATES[/** @type {keyof STATES} */ (lease.State)] ?? "";

    return [h("span", { class: `badge ${kind}` }, lease.State),
        lease.State === "revoking" && !isUnlimited(lease.Deadline) && h("span", { class: "quiet" }, `${duration(lease.Deadline - page.now())} more`),
        lease.Drift.length > 0 && h("span", { class: "badge danger", title: "It uses more than was granted" }, "drift")];
}

/** @param {Values} lease @param {Page} page */
function parts(lease, page) {
    return lease.Partitions.map((/** @type {Values} */ p) => `${page.gpuLabel(p.gpu)}: ${count(p.cus, "CU")}, ${count(p.queues, "queue")}`).join("; ");
}

/** @param {string} path @param {Values} lease @param {Page} page */
function revokeButton(path, lease, page) {
    return h("button", { class: "secondary small", type: "button", "data-key": `revoke ${lease.Id}`, "aria-label": `Revoke lease ${lease.Id}`,
        click: () => page.actions.revoke(path, lease) }, "Revoke");
}

/** @param {string} path @param {Values} lease @param {Page} page */
function row(path, lease, page) {
    return h("tr", { "data-lease": lease.Id },
        cell("Lease", h("span", { class: `swatch ${colourOf(page.arbiter.tenants, lease.Tenant)}` }), ` ${lease.Id}`),
        cell("Name", safe(lease.Name)),
        cell("User", page.users.name(lease.OwnerUid)),
        cell("Tenant", safe(lease.Tenant)),
        cell("Class", lease.Class),
        cell("State", ...state(lease, page), lease.Reason && h("div", { class: "quiet" }, safe(lease.Reason))),
        cell("Has", parts(lease, page)),
        cell("For", lease.Since ? duration(page.now() - lease.Since) : ""),
        cell("", revokeButton(path, lease, page)));
}

/** @param {string} path @param {Values} lease @param {Page} page */
function waitingRow(path, lease, page) {
    const refusal = lease.WaitsFor[0];

    return h("tr", { "data-lease": lease.Id },
        cell("Place", lease.Position || ""),
        cell("Lease", `${lease.Id}`),
        cell("Name", safe(lease.Name)),
        cell("User", page.users.name(lease.OwnerUid)),
        cell("Tenant", safe(lease.Tenant)),
        cell("Class", lease.Class),
        cell("Waits for", refusal?.gpu && refusal.gpu !== "any" && `${page.gpuLabel(refusal.gpu)}: `, safe(refusal ? refusal.hint : lease.Reason)),
        cell("For", lease.Since ? duration(page.now() - lease.Since) : ""),
        cell("Until", isUnlimited(lease.Deadline) ? "no limit" : `${duration(lease.Deadline - page.now())} more`),
        cell("", revokeButton(path, lease, page)));
}

/** @param {string[]} names @param {HTMLElement[]} rows @param {string} caption */
function table(names, rows, caption) {
    return h("table", { class: "leases" }, h("caption", { class: "hidden" }, caption),
        h("thead", {}, h("tr", {}, ...names.map(name => h("th", { scope: "col" }, name || h("span", { class: "hidden" }, "Actions"))))),
        h("tbody", {}, ...rows));
}

/** @param {Values} lease @param {string} text @param {Page} page */
function matches(lease, text, page) {
    return [lease.Id, lease.Name, lease.Tenant, lease.Class, lease.State, page.users.name(lease.OwnerUid), ...lease.Partitions.map((/** @type {Values} */ p) => p.gpu)]
        .some(value => String(value).toLowerCase().includes(text));
}

export class Leases {
    /** @param {Page} page */
    constructor(page) {
        this.page = page;
        this.first = 0;
        this.filter = /** @type {HTMLInputElement} */ (byId("filter"));
        this.filter.addEventListener("input", () => {
            this.first = 0;
            this.render();
        });
    }

    /** @param {boolean} waiting @returns {[string, Values][]} by number */
    select(waiting) {
        const text = this.filter.value.trim().toLowerCase();

        return [...this.page.arbiter.leases]
            .filter(([, lease]) => (lease.State === "waiting") === waiting && (text === "" || matches(lease, text, this.page)))
            .sort(([, a], [, b]) => (waiting ? a.Position - b.Position : 0) || a.Id - b.Id);
    }

    /** Which rows are shown, and buttons to turn pages. @param {number} n */
    pages(n) {
        const turn = (/** @type {number} */ by) => () => {
            this.first += by;
            this.render();
        };

        if (n <= ROWS)
            return null;
        return h("nav", { class: "pages", "aria-label": "Pages of leases" },
            h("button", { class: "secondary small", type: "button", "data-key": "page back", disabled: this.first === 0, click: turn(-ROWS) }, "Back"),
            h("span", {}, `${this.first + 1} to ${Math.min(n, this.first + ROWS)} of ${n}`),
            h("button", { class: "secondary small", type: "button", "data-key": "page on", disabled: this.first + ROWS >= n, click: turn(ROWS) }, "Next"));
    }

    render() {
        const held = this.select(false), waiting = this.select(true);

        this.first = Math.min(this.first, Math.max(0, Math.ceil(held.length / ROWS) - 1) * ROWS);
        show(byId("leases"), held.length === 0
            ? h("p", { class: "quiet" }, this.filter.value ? "No lease matches." : "There are no leases.")
            : table(["Lease", "Name", "User", "Tenant", "Class", "State", "Has", "For", ""],
                held.slice(this.first, this.first + ROWS).map(([path, lease]) => row(path, lease, this.page)), "Leases"),
        this.pages(held.length));
        byId("waiting-section").hidden = waiting.length === 0;
        show(byId("waiting"), table(["Place", "Lease", "Name", "User", "Tenant", "Class", "Waits for", "For", "Until", ""],
            waiting.slice(0, ROWS).map(([path, lease]) => waitingRow(path, lease, this.page)), "Waiting leases"),
        waiting.length > ROWS && h("p", { class: "quiet" }, `and ${waiting.length - ROWS} more`));
    }

    /** What waiting leases wait for changes without a signal. */
    refresh() {
        for (const [path] of this.select(true).slice(0, ROWS))
            this.page.arbiter.refresh(path);
    }
}
