/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** What gpuarbd says on the system bus: its GPUs and leases, kept up to date by signals. */

/* global cockpit */

const NAME = "org.gpuarb.Arbiter1";
const ROOT = "/org/gpuarb/Arbiter1";
const GPU = `${NAME}.Gpu`;
const LEASE = `${NAME}.Lease`;
const MANAGER = "org.freedesktop.DBus.ObjectManager";
const PROPERTIES = "org.freedesktop.DBus.Properties";
const RETRY = 2000; /* ms */

/** @typedef {Record<string, any>} Values */

/** The values of variants, without their types. @param {any} value @returns {any} */
export function plain(value) {
    if (Array.isArray(value))
        return value.map(plain);
    if (value === null || typeof value !== "object")
        return value;
    if ("t" in value && "v" in value && Object.keys(value).length === 2)
        return plain(value.v);
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v)]));
}

/** A GPU with all that the page reads: an older gpuarbd has not all properties. @param {any} properties @returns {Values} */
export function gpuOf(properties) {
    return { CusPerShaderArray: [], Unmanaged: [], DriverEvents: {}, FloorExcess: "", Draining: false, ...plain(properties) };
}

/** The same of a lease. @param {any} properties @returns {Values} */
export function leaseOf(properties) {
    return { Partitions: [], Drift: [], WaitsFor: [], Reason: "", Since: 0, Deadline: Number.MAX_VALUE, Position: 0, ...plain(properties) };
}

export class Arbiter {
    /** @param {() => void} changed called after each change of the fields */
    constructor(changed) {
        this.changed = changed;
        /** @type {Map<string, Values>} by object path */
        this.gpus = new Map();
        /** @type {Map<string, Values>} by object path */
        this.leases = new Map();
        /** @type {string[]} */
        this.tenants = [];
        this.version = "";
        /** Why the fields are not up to date; null: they are. @type {string | null} */
        this.problem = "Connecting to gpuarbd";
        this.reading = 0; /* which GetManagedObjects is the latest */
        this.bus = cockpit.dbus(NAME, { bus: "system" });
        this.admin = cockpit.dbus(NAME, { bus: "system", superuser: "try" });
        this.bus.subscribe({ path_namespace: ROOT }, this.onSignal.bind(this));
        this.bus.addEventListener("owner", (/** @type {any} */ _, /** @type {string | null} */ owner) => this.onOwner(owner));
        this.bus.addEventListener("close", (/** @type {any} */ _, /** @type {any} */ why) => this.fail(
            `The connection to the system bus is closed (${why.problem ?? "no reason given"}). Reload the page.`));
        this.read();
    }

    /** @param {string} problem */
    fail(problem) {
        this.problem = problem;
        this.gpus.clear();
        this.leases.clear();
        this.changed();
    }

    /** @param {string | null} owner */
    onOwner(owner) {
        if (owner)
            this.read();
        else
            this.fail("gpuarbd is not running. This page continues when it is.");
    }

    /** Reads everything. Signals that come meanwhile are newer than the answer, or in it. */
    async read() {
        const turn = ++this.reading;

        try {
            const [objects] = await this.bus.call(ROOT, MANAGER, "GetManagedObjects", []);
            const [own] = await this.bus.call(ROOT, PROPERTIES, "GetAll", [NAME]);

            if (turn !== this.reading)
                return;
            this.gpus.clear();
            this.leases.clear();
            for (const [path, interfaces] of Object.entries(objects))
                this.add(path, interfaces);
            this.tenants = plain(own).Tenants ?? [];
            this.version = plain(own).Version ?? "";
            this.problem = null;
            this.changed();
        } catch (error) {
            if (turn === this.reading)
                this.retry(error);
        }
    }

    /** @param {any} error */
    retry(error) {
        this.fail(`gpuarbd does not answer: ${error.message ?? error}. This page tries again.`);
        setTimeout(() => this.problem !== null && this.read(), RETRY);
    }

    /** @param {string} path @param {any} interfaces */
    add(path, interfaces) {
        if (interfaces[GPU])
            this.gpus.set(path, gpuOf(interfaces[GPU]));
        if (interfaces[LEASE])
            this.leases.set(path, leaseOf(interfaces[LEASE]));
    }

    /** @param {string} path @param {string} iface @param {string} signal @param {any[]} args */
    onSignal(path, iface, signal, args) {
        if (iface === MANAGER && signal === "InterfacesAdded")
            this.add(args[0], args[1]);
        else if (iface === MANAGER && signal === "InterfacesRemoved") {
            this.gpus.delete(args[0]);
            this.leases.delete(args[0]);
        } else if (iface === PROPERTIES && signal === "PropertiesChanged")
            this.update(path, args);
        else
            return;
        this.changed();
    }

    /** @param {string} path @param {any[]} args of PropertiesChanged */
    update(path, [iface, values, invalidated]) {
        const known = iface === GPU ? this.gpus.get(path) : this.leases.get(path);

        if (known)
            Object.assign(known, plain(values));
        else if (iface === NAME)
            this.tenants = plain(values).Tenants ?? this.tenants;
        if (known && invalidated.length > 0)
            this.refresh(path);
    }

    /** Reads the properties of an object again, also those that change without a signal. @param {string} path */
    async refresh(path) {
        const iface = this.gpus.has(path) ? GPU : LEASE;

        try {
            const [values] = await this.bus.call(path, PROPERTIES, "GetAll", [iface]);
            Object.assign(this.gpus.get(path) ?? this.leases.get(path) ?? {}, plain(values));
            this.changed();
        } catch { /* The object has gone: InterfacesRemoved says so. */ }
    }

    /** @param {Values} want @param {Values} options with types @returns {Promise<{result: string, partitions: Values[], refusals: Values[]}>} */
    async plan(want, options) {
        const [result, partitions, refusals] = await this.bus.call(ROOT, NAME, "Plan", [[want], options]);

        return { result, partitions: plain(partitions), refusals: plain(refusals) };
    }

    /** The queue slots of a GPU. @param {string} gpu @returns {Promise<{slots: Values[], facts: Values}>} */
    async slots(gpu) {
        const [slots, facts] = await this.bus.call(ROOT, NAME, "ReadSlots", [gpu]);

        return { slots: plain(slots), facts: plain(facts) };
    }

    /** As root where Cockpit has administrative access; otherwise polkit may ask the person.
     * @param {string} path @param {string} iface @param {string} method @param {any[]} args */
    administer(path, iface, method, args) {
        return this.admin.call(path, iface, method, args, { flags: "i" });
    }

    /** @param {string} gpu @param {boolean} on */
    drain(gpu, on) {
        return this.administer(ROOT, NAME, on ? "Drain" : "Undrain", [gpu]);
    }

    reload() {
        return this.administer(ROOT, NAME, "Reload", []);
    }

    /** @param {string} path of the lease @param {number} grace in microseconds @param {string} reason */
    revoke(path, grace, reason) {
        return this.administer(path, LEASE, "Revoke", [grace, reason]);
    }
}
