/** Reads NumPy's .npy files (versions 1 and 2, little-endian, C order). Knows nothing of what the numbers mean. */

const TYPES = { '|u1': Uint8Array, '<u2': Uint16Array, '<f4': Float32Array, '<f8': Float64Array, '<i4': Int32Array };

/** {shape, data} of an .npy file; data is a typed array over a copy of its bytes. Throws on anything else. */
export function parseNpy(buffer) {
  const bytes = new Uint8Array(buffer);
  if (bytes.length < 12 || bytes[0] !== 0x93 || String.fromCharCode(...bytes.subarray(1, 6)) !== 'NUMPY') {
    throw new TypeError('not an .npy file');
  }
  const view = new DataView(buffer);
  const wide = bytes[6] > 1;
  const start = wide ? 12 : 10;
  const length = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  const header = new TextDecoder('latin1').decode(bytes.subarray(start, start + length));
  const descr = /'descr':\s*'([^']+)'/.exec(header)?.[1];
  const shape = /'shape':\s*\(([^)]*)\)/.exec(header)?.[1];
  const Type = TYPES[descr];
  if (!Type || shape === undefined || !/'fortran_order':\s*False/.test(header)) {
    throw new TypeError(`an .npy file that this page does not read: ${header}`);
  }
  const sizes = shape.split(',').map((size) => size.trim()).filter(Boolean).map(Number);
  const count = sizes.reduce((product, size) => product * size, 1);
  const from = start + length;
  return { shape: sizes, data: new Type(buffer.slice(from, from + count * Type.BYTES_PER_ELEMENT)) };
}
