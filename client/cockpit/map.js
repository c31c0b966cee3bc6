/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** The CUs of a GPU by shader engine, in the colours of the tenants that have them. */

import { h, s } from "./dom.js";
import { bitsOf, placesOf } from "./mask.js";
import { count, safe } from "./text.js";

/** @typedef {import("./arbiter.js").Values} Values */

const CELL = 14;
const GAP = 2;
const SHARED = "shared";

/** @param {string[]} tenants @param {string} tenant @returns {string} the class of its colour */
export function colourOf(tenants, tenant) {
    const place = tenants.indexOf(tenant);

    return place < 0 ? "tenant-none" : `tenant-${place % 8}`;
}

/** @param {Values} lease @returns {string} such as "7 training" */
export function nameOf(lease) {
    return lease.Name ? `${lease.Id} ${safe(lease.Name)}` : `${lease.Id}`;
}

/** @param {Values} lease @returns {boolean} whether others may borrow its CUs */
export function lends(lease) {
    return lease.Class === "realtime" && (lease.State === "inactive" || lease.State === "activating");
}

/** @param {Values[]} leases @param {string} gpu @returns {{lease: Values, partition: Values}[]} */
export function leasesOn(leases, gpu) {
    return leases.flatMap(lease => lease.Partitions
        .filter((/** @type {Values} */ p) => p.gpu === gpu)
        .map((/** @type {Values} */ partition) => ({ lease, partition })));
}

/** Which lease has each bit of the mask. A lent CU belongs to its borrower.
 * @param {{lease: Values, partition: Values}[]} held @returns {Map<number, Values | "shared">} */
export function holders(held) {
    /** @type {Map<number, Values | "shared">} */
    const of = new Map();

    for (const { lease, partition } of [...held].sort((a, b) => Number(lends(b.lease)) - Number(lends(a.lease))))
        for (const bit of bitsOf(partition["cu-mask"])) {
            const other = of.get(bit);
            of.set(bit, other && !(other !== SHARED && lends(other)) ? SHARED : lease);
        }
    return of;
}

/** @param {Values | "shared" | undefined} holder @param {string[]} tenants */
function cellClass(holder, tenants) {
    if (!holder)
        return "cu free";
    if (holder === SHARED)
        return "cu shared";
    return `cu ${colourOf(tenants, holder.Tenant)}${lends(holder) ? " lent" : ""}`;
}

/** @param {Values | "shared" | undefined} holder */
function cellText(holder) {
    if (!holder)
        return "free";
    return holder === SHARED ? "several leases" : `lease ${nameOf(holder)} of ${safe(holder.Tenant)}`;
}

/** One shader engine. @param {{place: any, holder: Values | "shared" | undefined}[]} cus @param {string} xcc its name, or "" @param {number} columns @param {string[]} tenants */
function engine(cus, xcc, columns, tenants) {
    const label = `SE ${cus[0].place.engine}`, full = xcc ? `${xcc} ${label}` : label;
    const size = CELL + GAP;
    const rows = Math.max(...cus.map(({ place }) => place.array)) + 1;
    /** @type {Map<string, number>} */
    const sums = new Map();
    const svg = s("svg", { class: "engine", role: "img", width: columns * size, height: rows * size });

    for (const { place, holder } of cus) {
        const text = cellText(holder);
        sums.set(text, (sums.get(text) ?? 0) + 1);
        svg.append(s("rect", {
            class: cellClass(holder, tenants),
            "data-lease": holder && holder !== SHARED ? holder.Id : null,
            x: place.cu * size, y: place.array * size, width: CELL, height: CELL, rx: 2,
        }, s("title", {}, `${full}, CU ${place.cu}${rows > 1 ? ` of array ${place.array}` : ""}: ${text}`)));
    }
    svg.setAttribute("aria-label", `${full}: ${[...sums].map(([text, n]) => `${count(n, "CU")} ${text}`).join(", ")}`);
    return h("div", { class: "engine-box", "data-engine": full }, h("span", { class: "engine-label", "aria-hidden": "true" }, label), svg);
}

/** Marks the CUs of one lease. @param {Element} map @param {string | null} id */
export function highlight(map, id) {
    map.classList.toggle("highlighting", id !== null);
    for (const cell of map.querySelectorAll(".cu"))
        cell.classList.toggle("highlighted", id !== null && cell.getAttribute("data-lease") === id);
}

/** @param {Values} gpu @param {{lease: Values, partition: Values}[]} held @param {string[]} tenants @returns {HTMLElement} */
export function drawMap(gpu, held, tenants) {
    const of = holders(held);
    /** @type {{place: any, holder: Values | "shared" | undefined}[][][]} by XCC and shader engine */
    const xccs = [];

    placesOf(/** @type {any} */ (gpu)).forEach((place, bit) => {
        const engines = xccs[place.xcc] ??= [];
        (engines[place.engine] ??= []).push({ place, holder: of.get(bit) });
    });
    const columns = Math.max(0, ...gpu.CusPerShaderArray.flat(2));
    return h("div", { class: "map" }, ...xccs.map((engines, i) => {
        const xcc = gpu.Xccs > 1 ? `XCC ${i}` : "";
        return h("div", { class: "xcc" }, xcc && h("span", { class: "xcc-label" }, xcc), ...engines.map(cus => engine(cus, xcc, columns, tenants)));
    }));
}
