/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** A card for each GPU: map, who has it, what is left of it, and what uses it without a lease. */

import { colourOf, drawMap, highlight, leasesOn, lends, nameOf } from "./map.js";
import { drawSlots } from "./slots.js";
import { h, show } from "./dom.js";
import { bytes, count, safe } from "./text.js";

/** @typedef {import("./arbiter.js").Values} Values */
/** @typedef {import("./page.js").Page} Page */

const LEGEND = 12; /* leases */

/** @param {string} name @param {number} free @param {number} all @param {(n: number) => string | number} [format] */
function meter(name, free, all, format = n => n) {
    const bar = h("span", { class: "bar" });
    const used = all - free;

    bar.style.width = `${all > 0 ? 100 * used / all : 0}%`;
    return h("div", { class: "meter", role: "meter", "aria-label": name, "aria-valuemin": 0, "aria-valuemax": all, "aria-valuenow": used,
        "aria-valuetext": `${format(used)} of ${format(all)} used` },
    h("span", { class: "meter-name" }, name),
    h("span", { class: "track" }, bar),
    h("span", { class: "meter-value" }, `${format(free)} of ${format(all)} free`));
}

/** @param {Values} gpu */
function badges(gpu) {
    const law = gpu.Law === "measured" ? null : `law ${gpu.Law}`;

    return [
        gpu.Draining && h("span", { class: "badge warning" }, "draining"),
        gpu.Oversubscribed && h("span", { class: "badge danger" }, "oversubscribed"),
        gpu.VramPressure && h("span", { class: "badge danger" }, "low on memory"),
        gpu.Graphics === "drawn" && h("span", { class: "badge" }, "draws a display"),
        gpu.KfdGpuId === 0 && h("span", { class: "badge" }, "simulated"),
        law && h("span", { class: "badge" }, law),
    ];
}

/** Marks the CUs of a lease, or of none, on the map of the same card. @param {string | null} id @returns {EventListener} */
function marks(id) {
    return event => {
        const map = /** @type {Element} */ (event.currentTarget).closest(".card")?.querySelector(".map");

        if (map)
            highlight(map, id);
    };
}

/** @param {{lease: Values, partition: Values}} held @param {Page} page */
function legendEntry({ lease, partition }, page) {
    const id = String(lease.Id), mark = marks(id), unmark = marks(null);

    return h("li", {}, h("button", { class: "legend", type: "button", "data-key": `legend ${partition.gpu} ${id}`, mouseenter: mark, focus: mark,
        mouseleave: unmark, blur: unmark, click: () => page.findLease(id) },
    h("span", { class: `swatch ${colourOf(page.arbiter.tenants, lease.Tenant)}${lends(lease) ? " lent" : ""}` }),
    h("span", {}, nameOf(lease)),
    h("span", { class: "quiet" }, `${count(partition.cus, "CU")}, tenant ${safe(lease.Tenant)}, ${page.users.name(lease.OwnerUid)}, ${partition.paused ? "paused" : lease.State}`)));
}

/** @param {Values} gpu */
function unmanaged(gpu) {
    if (gpu.Unmanaged.length === 0)
        return null;
    return h("div", { class: "note warning" },
        h("strong", {}, `${count(gpu.Unmanaged.length, "process")} without a lease`),
        h("ul", {}, ...gpu.Unmanaged.map((/** @type {Values} */ p) =>
            h("li", {}, `${safe(p.command)} (pid ${p.pid}): ${count(p.queues, "queue")}`))));
}

/** @param {Values} gpu */
function events(gpu) {
    const told = Object.entries(gpu.DriverEvents).filter(([kind]) => kind !== "migration");

    return told.length === 0 ? null : h("p", { class: "quiet" }, `The driver reported: ${told.map(([kind, n]) => `${kind} ${n}`).join(", ")}.`);
}

/** The queue slots are read when a person asks: the driver selects each of them for that.
 * @param {Values} gpu @param {Page} page */
function slots(gpu, page) {
    const place = h("div", { class: "slots-place", "aria-live": "polite" });
    const read = async () => {
        try {
            show(place, drawSlots(await page.arbiter.slots(gpu.Name), [...page.arbiter.leases.values()], page.arbiter.tenants));
        } catch (/** @type {any} */ error) {
            show(place, h("p", { class: "quiet" }, `The slots cannot be read: ${error.message}`));
        }
    };

    return h("details", { toggle: event => /** @type {HTMLDetailsElement} */ (event.target).open && read() },
        h("summary", { "data-key": `slots ${gpu.Name}` }, `Queue slots (${count(gpu.Pipes, "pipe")} of ${gpu.QueuesPerPipe})`), place);
}

/** What may change of a card. @param {Values} gpu @param {Page} page */
function content(gpu, page) {
    const held = leasesOn([...page.arbiter.leases.values()], gpu.Name);
    const more = held.length - LEGEND;

    return [
        drawMap(gpu, held, page.arbiter.tenants),
        h("ul", { class: "legends", "aria-label": `Leases on ${safe(gpu.Device)}` }, ...held.slice(0, LEGEND).map(one => legendEntry(one, page))),
        more > 0 && h("p", { class: "quiet" }, `and ${more} more, in the table of leases`),
        held.length === 0 && h("p", { class: "quiet" }, "No lease has a part of this GPU."),
        h("div", { class: "meters" },
            meter("CUs", gpu.CusFree, gpu.Cus),
            meter("Queue slots", gpu.QueueSlotsFree, gpu.QueueSlots),
            meter("Process slots", gpu.ProcessSlotsFree, gpu.ProcessSlots),
            meter("VRAM", gpu.VramFree, gpu.VramBytes, bytes)),
        gpu.FloorExcess && h("p", { class: "note warning" }, gpu.FloorExcess),
        unmanaged(gpu),
        events(gpu),
    ];
}

/** The cards, which live as long as their GPUs. */
export class Gpus {
    /** @param {HTMLElement} place @param {Page} page */
    constructor(place, page) {
        this.place = place;
        this.page = page;
        /** @type {Map<string, {card: HTMLElement, head: HTMLElement, body: HTMLElement}>} */
        this.cards = new Map();
    }

    /** @param {string} path @param {Values} gpu */
    make(path, gpu) {
        const head = h("div", { class: "card-head" });
        const body = h("div");
        const card = h("article", { class: "card", "data-gpu": gpu.Name, "aria-label": `GPU ${path.split("/").pop()}, ${safe(gpu.Device)}` }, head, body, slots(gpu, this.page));

        this.cards.set(path, { card, head, body });
        return { card, head, body };
    }

    /** @param {string} path @param {Values} gpu */
    update(path, gpu) {
        const { head, body } = this.cards.get(path) ?? this.make(path, gpu);

        show(head, h("div", {}, h("h3", {}, `GPU ${path.split("/").pop()}: ${safe(gpu.Device)}`),
            h("p", { class: "quiet" }, `${gpu.Name}, ${gpu.GfxTarget}, ${count(gpu.Cus, "CU")}${gpu.Xccs > 1 ? ` on ${gpu.Xccs} XCCs` : ""}`)),
        h("div", { class: "badges" }, ...badges(gpu)),
        h("button", { class: "secondary", type: "button", "data-key": `drain ${gpu.Name}`, click: () => this.page.actions.drain(gpu) },
            gpu.Draining ? "End draining" : "Drain"));
        show(body, ...content(gpu, this.page));
    }

    render() {
        const gpus = this.page.arbiter.gpus;
        const paths = [...gpus.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));

        for (const path of paths)
            this.update(path, gpus.get(path) ?? {});
        for (const [path, { card }] of this.cards)
            if (!gpus.has(path)) {
                card.remove();
                this.cards.delete(path);
            }
        for (const path of paths) {
            const card = this.cards.get(path)?.card;
            if (card && !card.isConnected)
                this.place.append(card);
        }
    }
}
