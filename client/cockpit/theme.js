/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** Light or dark, as a person has chosen in Cockpit: "light", "dark", or "auto" as the system. */

const KEY = "shell:style";
const system = matchMedia("(prefers-color-scheme: dark)");

/** @param {string | null} style */
function apply(style) {
    const dark = style === "dark" || (style !== "light" && system.matches);

    document.documentElement.dataset.theme = dark ? "dark" : "light";
}

const chosen = () => apply(localStorage.getItem(KEY));

addEventListener("storage", event => event.key === KEY && chosen());
addEventListener("cockpit-style", event => apply(/** @type {CustomEvent} */ (event).detail.style));
system.addEventListener("change", chosen);
chosen();
