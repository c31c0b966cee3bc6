/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** The hardware queue slots of a GPU, by pipe. */

import { colourOf } from "./map.js";
import { h } from "./dom.js";
import { count, safe } from "./text.js";

/** @typedef {import("./arbiter.js").Values} Values */

/** @param {Values} slot @param {Map<number, Values>} leases by number @param {string[]} tenants */
function cell(slot, leases, tenants) {
    const lease = leases.get(slot.lease);
    const who = !slot.active ? "free" : `${safe(slot.command ?? "unknown")}${slot.lease ? `, lease ${slot.lease}` : ", no lease"}`;
    const colour = !slot.active ? "free" : lease ? colourOf(tenants, lease.Tenant) : "shared";

    return h("td", { class: `slot ${colour}`, title: `queue ${slot.queue}: ${who}` }, h("span", { class: "hidden" }, who));
}

/** @param {{slots: Values[], facts: Values}} read @param {Values[]} leases @param {string[]} tenants */
export function drawSlots({ slots, facts }, leases, tenants) {
    const byId = new Map(leases.map(lease => [lease.Id, lease]));
    /** @type {Map<string, Values[]>} */
    const pipes = new Map();

    for (const slot of slots) {
        const name = `XCC ${slot.xcc}, pipe ${slot.pipe}`;
        pipes.set(name, [...pipes.get(name) ?? [], slot]);
    }
    return h("div", {},
        h("table", { class: "slots" }, h("tbody", {}, ...[...pipes].map(([name, row]) =>
            h("tr", {}, h("th", { scope: "row" }, name), ...row.map(slot => cell(slot, byId, tenants)))))),
        h("p", { class: "quiet" }, `${count(facts.queues, "compute queue")}, ${facts["without-slot"]} of them in no slot. Read at ${new Date().toLocaleTimeString()}; open this again for later ones.`));
}
