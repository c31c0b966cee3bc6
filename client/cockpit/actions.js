/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** What administrators can do. A question comes first; gpuarbd and polkit decide who may. */

import { nameOf } from "./map.js";
import { byId, h, show } from "./dom.js";
import { safe } from "./text.js";

/** @typedef {import("./arbiter.js").Values} Values */
/** @typedef {import("./arbiter.js").Arbiter} Arbiter */

const SECOND = 1e6;
const MOST_GRACE = 86400; /* seconds; gpuarbd refuses more */

export class Actions {
    /** @param {Arbiter} arbiter */
    constructor(arbiter) {
        this.arbiter = arbiter;
        this.dialog = /** @type {HTMLDialogElement} */ (byId("question"));
        byId("reload").addEventListener("click", () => this.act("The configuration was read again.", this.arbiter.reload()));
    }

    /** @param {string} text @param {string} [kind] "good" or "danger" */
    tell(text, kind = "good") {
        show(byId("told"), h("p", { class: `note ${kind}` }, text,
            h("button", { class: "plain", type: "button", "aria-label": "Close", click: () => show(byId("told")) }, "\u00d7")));
    }

    /** @param {string} done what to say then @param {Promise<any>} call */
    async act(done, call) {
        try {
            await call;
            this.tell(done);
        } catch (/** @type {any} */ error) {
            this.tell(error.message ?? String(error), "danger");
        }
    }

    /**
     * @param {string} title @param {string} verb @param {import("./dom.js").Child[]} fields
     * @param {(form: FormData) => void} act
     */
    ask(title, verb, fields, act) {
        const close = () => this.dialog.close();

        show(this.dialog, h("form", { method: "dialog", submit: event => act(new FormData(/** @type {HTMLFormElement} */ (event.target))) },
            h("h2", { id: "question-title" }, title), ...fields,
            h("div", { class: "buttons" }, h("button", { class: "danger", type: "submit" }, verb),
                h("button", { class: "secondary", type: "button", click: close }, "Cancel"))));
        this.dialog.showModal();
    }

    /** @param {Values} gpu */
    drain(gpu) {
        const on = !gpu.Draining, device = safe(gpu.Device);

        if (!on)
            this.act(`${device} is granted again.`, this.arbiter.drain(gpu.Name, false));
        else
            this.ask(`Drain ${device}?`, "Drain", [h("p", {}, "Nothing more is granted on this GPU, also after a restart, until draining ends. Its leases stay.")],
                () => this.act(`${device} is drained.`, this.arbiter.drain(gpu.Name, true)));
    }

    /** @param {string} path @param {Values} lease */
    revoke(path, lease) {
        this.ask(`Revoke lease ${nameOf(lease)}?`, "Revoke", [
            h("p", {}, "The program is told to stop. What happens to a program that goes on after the grace, the policy of its tenant says."),
            h("label", {}, "Reason, which the program sees", h("input", { name: "reason", required: true, maxlength: 200, autofocus: true })),
            h("label", {}, "Grace in seconds", h("input", { name: "grace", type: "number", min: 0, max: MOST_GRACE, value: 30, required: true })),
        ], form => this.act(`Lease ${lease.Id} is revoked.`,
            this.arbiter.revoke(path, Number(form.get("grace")) * SECOND, String(form.get("reason")))));
    }
}
