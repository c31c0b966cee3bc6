/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** Elements. Texts of others get into the page only as text, never as markup. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, string | number | boolean | null | undefined | EventListener>} Attributes
 */

/** @template {Element} T @param {T} element @param {Attributes} attributes @param {Child[]} children */
function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (typeof value === "function")
            element.addEventListener(name, value);
        else if (value !== null && value !== undefined && value !== false)
            element.setAttribute(name, value === true ? "" : String(value));
    }
    for (const child of children)
        if (child !== null && child !== undefined && child !== false)
            element.append(child instanceof Node ? child : String(child));
    return element;
}

/** @param {string} tag @param {Attributes} [attributes] @param {...Child} children @returns {HTMLElement} */
export function h(tag, attributes = {}, ...children) {
    return fill(document.createElement(tag), attributes, children);
}

/** @param {string} tag @param {Attributes} [attributes] @param {...Child} children @returns {SVGElement} */
export function s(tag, attributes = {}, ...children) {
    return fill(/** @type {SVGElement} */ (document.createElementNS(SVG, tag)), attributes, children);
}

/* Set by hand on what is shown: they stay. */
const MARKS = ["highlighted", "highlighting", "found"];
const LISTENS = "button, form, input, select, details";

/** @param {Element} from @param {Element} to */
function copyAttributes(from, to) {
    const marks = MARKS.filter(mark => to.classList.contains(mark));

    for (const name of to.getAttributeNames())
        if (!from.hasAttribute(name))
            to.removeAttribute(name);
    for (const name of from.getAttributeNames())
        if (name === "style") /* a policy of Cockpit forbids the attribute */
            /** @type {HTMLElement} */ (to).style.cssText = /** @type {HTMLElement} */ (from).style.cssText;
        else if (from.getAttribute(name) !== to.getAttribute(name))
            to.setAttribute(name, from.getAttribute(name) ?? "");
    to.classList.add(...marks);
}

/** Makes a node like another one, and keeps what is equal. What listens is equal, or replaced.
 * @param {Node} node @param {Node} next */
function patch(node, next) {
    if (node.isEqualNode(next))
        return;
    if (!(node instanceof Element && next instanceof Element) || node.tagName !== next.tagName || next.matches(LISTENS)) {
        node.parentNode?.replaceChild(next, node);
        return;
    }
    copyAttributes(next, node);
    patchChildren(node, [...next.childNodes]);
}

/** @param {Element} element @param {Node[]} children */
function patchChildren(element, children) {
    const nodes = [...element.childNodes];

    nodes.slice(children.length).forEach(node => node.remove());
    children.forEach((child, i) => i < nodes.length ? patch(nodes[i], child) : element.append(child));
}

/**
 * Changes what an element contains. What stays equal is not touched: a person may be about to press or to
 * copy it. An element with the focus that is replaced passes it on, by its data-key.
 * @param {Element} element @param {...Child} children
 */
export function show(element, ...children) {
    const active = document.activeElement;
    const key = active && element.contains(active) ? active.getAttribute("data-key") : null;

    patchChildren(element, [...fill(document.createElement("div"), {}, children).childNodes]);
    if (key && document.activeElement !== active)
        /** @type {HTMLElement | null} */ (element.querySelector(`[data-key="${CSS.escape(key)}"]`))?.focus({ preventScroll: true });
}

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
    const element = document.getElementById(id);

    if (!element)
        throw new Error(`the page has no ${id}`);
    return element;
}
