/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** How values look. */

const SECOND = 1e6;
const UNLIMITED = 2 ** 63; /* 2^64-1 of D-Bus, which is no exact number here */

/** @param {number} usec @returns {string} such as "3 min" */
export function duration(usec) {
    /** @type {[number, string][]} */
    const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const seconds = Math.max(0, usec) / SECOND;
    const [size, unit] = units.find(([s]) => seconds >= s) ?? [1, "s"];

    return `${Math.floor(seconds / size)} ${unit}`;
}

/** @param {number} bytes @returns {string} such as "16 GiB" */
export function bytes(bytes) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;

    while (bytes >= 1024 && i < units.length - 1) {
        bytes /= 1024;
        i++;
    }
    return `${bytes >= 10 || Number.isInteger(bytes) ? Math.round(bytes) : bytes.toFixed(1)} ${units[i]}`;
}

/** @param {number} time @returns {boolean} whether a time of D-Bus stands for "no limit": some bridges send 2^64-1 as -1 */
export function isUnlimited(time) {
    return time < 0 || time >= UNLIMITED;
}

/** @param {number} n @param {string} noun @returns {string} such as "1 CU", "2 CUs" */
export function count(n, noun) {
    return `${n} ${noun}${n === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;
}

/**
 * A name of somebody else: control characters and directions of text cannot pretend to be another.
 * @param {string} name
 */
export function safe(name) {
    // eslint-disable-next-line no-control-regex
    return name.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}
