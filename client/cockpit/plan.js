/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** Asks gpuarbd what it would say to a request, and explains the answer. Nothing is granted. */

import { byId, h, show } from "./dom.js";
import { count, safe } from "./text.js";

/** @typedef {import("./arbiter.js").Values} Values */
/** @typedef {import("./page.js").Page} Page */

/** The want and the options of the form, with the types of D-Bus. @param {FormData} form */
export function requestOf(form) {
    /** @type {Values} */
    const want = { cus: { t: "u", v: Number(form.get("cus")) }, queues: { t: "u", v: Number(form.get("queues")) } };
    /** @type {Values} */
    const options = {};

    if (form.get("gpu") !== "any")
        want.gpu = { t: "s", v: form.get("gpu") };
    if (form.get("exact"))
        want.exact = { t: "b", v: true };
    if (form.get("class"))
        options.class = { t: "s", v: form.get("class") };
    if (form.get("adaptable"))
        options.adaptable = { t: "b", v: true };
    return { want, options };
}

/** The same request as a command. @param {FormData} form */
export function commandOf(form) {
    const flags = [
        form.get("gpu") !== "any" && `--gpu=${form.get("gpu")}`,
        form.get("class") && `--class=${form.get("class")}`,
        `--cus=${form.get("cus")}`, `--queues=${form.get("queues")}`,
        form.get("exact") && "--exact", form.get("adaptable") ? "--adaptable" : "--fixed",
    ];

    return `gpuarbctl run ${flags.filter(Boolean).join(" ")} -- COMMAND`;
}

/** @param {string} text @param {number[]} ids @param {Page} page */
function about(text, ids, page) {
    return h("p", {}, text, ...ids.flatMap((id, i) => [i > 0 ? ", " : " ",
        h("button", { class: "link", type: "button", click: () => page.findLease(String(id)) }, `lease ${id}`)]));
}

/** What a grant would take from others. @param {Values} first @param {Page} page */
function costs(first, page) {
    const shrinks = (first.shrinks ?? []).map((/** @type {Values} */ s) => s.lease);

    return [
        shrinks.length > 0 && about("Get smaller for it:", shrinks, page),
        first.moves?.length > 0 && about("Move to other CUs first:", first.moves, page),
        first.pauses?.length > 0 && about("Pause while it is active:", first.pauses, page),
        first.revokes?.length > 0 && about("Are revoked for it:", first.revokes, page),
    ];
}

/** @param {Values[]} partitions @param {FormData} form @param {Page} page */
function granted(partitions, form, page) {
    return h("div", { class: "note good" }, h("strong", {}, "This fits now."),
        ...partitions.map(p => h("p", {}, `${page.gpuLabel(p.gpu)}: ${count(p.cus, "CU")} (effective ${p["effective-cus"]}) on shader engine${p["shader-engines"].length === 1 ? "" : "s"} ${p["shader-engines"].join(", ")}, ${count(p.queues, "queue")}.`)),
        ...costs(partitions[0], page), h("code", { class: "command" }, commandOf(form)));
}

/** @param {Values} refusal @param {Page} page @param {(cus: number) => void} retry */
function refused(refusal, page, retry) {
    const fits = refusal["fits-resource"] === "cus" && refusal.retry ? refusal.fits : []; /* else on an empty GPU */
    const reason = refusal.reason === "cus" ? "CUs" : refusal.reason.replaceAll("-", " ");

    return h("li", {},
        h("strong", {}, refusal.gpu === "" || refusal.gpu === "any" ? reason : `${page.gpuLabel(refusal.gpu)}: ${reason}`),
        h("p", {}, safe(refusal.hint)),
        refusal.leases?.length > 0 && about("Held by", refusal.leases, page),
        refusal.end?.length > 0 && about("It would fit without", refusal.end, page),
        ...fits.filter((/** @type {number} */ n) => n > 0).map((/** @type {number} */ n) =>
            h("button", { class: "secondary small", type: "button", click: () => retry(n) }, `Try ${count(n, "CU")}`)));
}

export class Plan {
    /** @param {Page} page */
    constructor(page) {
        this.page = page;
        this.form = /** @type {HTMLFormElement} */ (byId("plan"));
        this.answer = byId("answer");
        this.form.addEventListener("submit", event => {
            event.preventDefault();
            this.ask();
        });
    }

    /** Offers the GPUs that there are. */
    render() {
        const select = /** @type {HTMLSelectElement} */ (byId("plan-gpu"));
        const gpus = [...this.page.arbiter.gpus.values()];
        const names = ["any", ...gpus.map(gpu => gpu.Name)];

        if ([...select.options].map(o => o.value).join() === names.join())
            return;
        show(select, ...names.map(name => h("option", { value: name }, name === "any" ? "any" : this.page.gpuLabel(name))));
    }

    /** @param {number} cus @param {string} gpu */
    retry(cus, gpu) {
        /** @type {HTMLInputElement} */ (byId("plan-cus")).value = String(cus);
        if (gpu)
            /** @type {HTMLSelectElement} */ (byId("plan-gpu")).value = gpu;
        this.ask();
    }

    async ask() {
        const form = new FormData(this.form);
        const { want, options } = requestOf(form);

        try {
            const { result, partitions, refusals } = await this.page.arbiter.plan(want, options);
            if (result === "granted")
                show(this.answer, granted(partitions, form, this.page));
            else
                show(this.answer, h("div", { class: "note warning" },
                    h("strong", {}, result === "waiting" ? "This would wait." : "This is refused now."), ...costs(refusals[0] ?? {}, this.page),
                    h("ul", {}, ...refusals.map(r => refused(r, this.page, cus => this.retry(cus, r.gpu))))));
        } catch (/** @type {any} */ error) {
            show(this.answer, h("p", { class: "note danger" }, error.message ?? String(error)));
        }
    }
}
