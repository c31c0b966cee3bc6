/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** Where the bits of a CU mask are on a GPU. */

/**
 * A GPU as org.gpuarb.Arbiter1.Gpu describes it.
 * @typedef {{Xccs: number, ShaderEngines: number, WgpMode: boolean, CusPerShaderArray: number[][][]}} Geometry
 *
 * @typedef {{xcc: number, engine: number, array: number, cu: number}} Place
 */

/**
 * The bits of one XCC, in the order of the kernel: it deals CUs (or WGPs, two bits each) to the shader
 * engines in turn.
 * Source: mqd_symmetrically_map_cu_mask() in drivers/gpu/drm/amd/amdkfd/kfd_mqd_manager.c of Linux 6.12.
 * @param {Geometry} gpu @param {number} xcc @param {number} n bits of the GPU @param {Place[]} places
 */
function placeXcc(gpu, xcc, n, places) {
    const engines = gpu.CusPerShaderArray[xcc] ?? [];
    const step = gpu.WgpMode ? 2 : 1;
    const arrays = Math.max(...engines.map(e => e.length));
    const most = Math.max(...engines.flat());
    let bit = xcc;

    for (let cu = 0; cu < most; cu += step)
        for (let array = 0; array < arrays; array++)
            for (let engine = 0; engine < engines.length; engine++) {
                if ((engines[engine][array] ?? 0) <= cu)
                    continue;
                if (bit >= n)
                    return;
                for (let i = 0; i < step && bit + i < n; i++)
                    places[bit + i] = { xcc, engine, array, cu: cu + i };
                bit += step * gpu.Xccs;
            }
}

/**
 * @param {Geometry} gpu
 * @returns {Place[]} the place of each bit; a bit without a CU has none
 */
export function placesOf(gpu) {
    const n = gpu.CusPerShaderArray.flat(2).reduce((sum, cus) => sum + cus, 0);
    /** @type {Place[]} */
    const places = [];

    for (let xcc = 0; xcc < gpu.Xccs; xcc++)
        placeXcc(gpu, xcc, n, places);
    return places;
}

/** @param {number[]} words of 32 bits @returns {number[]} the bits that are set */
export function bitsOf(words) {
    const bits = [];

    words.forEach((word, i) => {
        for (let bit = 0; bit < 32; bit++)
            if (word >>> bit & 1)
                bits.push(32 * i + bit);
    });
    return bits;
}
