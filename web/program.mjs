// The client's side of a program of crenel.nn: its file, encrypted tensors, and which slot holds what
// (docs/reference/file-format.md, "Programs of crenel.nn"). What comes in is untrusted.
import {
  Context, ParameterError, SerializationError, StateError, UnsupportedError, fromHex, hex, sha256,
} from "./crenel.mjs";

const MAGIC = "CRENELNN", VERSION = 1, FIXED = 20, DIGEST = 32, MAX_HEADER = 1 << 26;
const MAX_SLOTS = 1 << 20, MAX_ELEMENTS = MAX_SLOTS * 64;

const same = (a, b) => a.length === b.length && a.every((value, k) => value === b[k]);

function joined(parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** JSON as Python writes it with sorted keys: containers are the same bytes in both. */
function written(value) {
  if (Array.isArray(value)) return `[${value.map(written).join(", ")}]`;
  if (value !== null && typeof value === "object")
    return `{${Object.keys(value).sort().map((key) => `${written(key)}: ${written(value[key])}`).join(", ")}}`;
  const text = JSON.stringify(value);
  return text.replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A container of parts, an array of [name, bytes]. */
export function packed(kind, document, parts) {
  const digest = hex(sha256(joined(parts.map(([, bytes]) => bytes))));
  const listed = parts.map(([name, bytes]) => [name, bytes.length]);
  const header = new TextEncoder().encode(written({ kind, document, parts: listed, digest }));
  const start = new Uint8Array(FIXED + header.length);
  start.set(new TextEncoder().encode(MAGIC));
  const view = new DataView(start.buffer);
  view.setUint32(8, VERSION, true);
  view.setBigUint64(12, BigInt(header.length), true);
  start.set(header, FIXED);
  return joined([start, sha256(start), ...parts.map(([, bytes]) => bytes)]);
}

function headerOf(data) {
  if (data.length < FIXED || new TextDecoder("latin1").decode(data.subarray(0, 8)) !== MAGIC)
    throw new SerializationError(`no file of crenel.nn: it does not begin with ${MAGIC}`,
      { bytes: data.length });
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const version = view.getUint32(8, true), length = Number(view.getBigUint64(12, true));
  if (version !== VERSION)
    throw new SerializationError(`version ${version} of the format, expected ${VERSION}`,
      { version, expected: VERSION });
  const end = FIXED + length;
  if (length > MAX_HEADER || end + DIGEST > data.length)
    throw new SerializationError(`a header of ${length} bytes in a file of ${data.length}`,
      { header: length });
  if (!same(sha256(data.subarray(0, end)), data.subarray(end, end + DIGEST)))
    throw new SerializationError("the header's checksum is wrong: the file is damaged");
  let header;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(data.subarray(FIXED, end)));
  } catch {
    throw new SerializationError("the header is not JSON");
  }
  const members = header !== null && typeof header === "object" ? Object.keys(header).sort() : [];
  if (!same(members, ["digest", "document", "kind", "parts"]))
    throw new SerializationError("the header has other members");
  return [header, end + DIGEST];
}

/** Document and parts, a Map of bytes by name. @throws {SerializationError|StateError} */
export function unpacked(data, kind) {
  const [header, start] = headerOf(data);
  if (header.kind !== kind)
    throw new StateError(`a file of a ${header.kind}, expected one of a ${kind}`,
      { found: String(header.kind), expected: kind });
  const listed = header.parts;
  const good = (p) => Array.isArray(p) && p.length === 2 && typeof p[0] === "string" && Number.isSafeInteger(p[1]) && p[1] >= 0;
  if (!Array.isArray(listed) || !listed.every(good))
    throw new SerializationError("parts must be pairs of a name and a length");
  const expected = listed.reduce((sum, [, length]) => sum + length, start);
  if (data.length !== expected)
    throw new SerializationError(`${data.length} bytes, expected ${expected}`,
      { bytes: data.length, expected });
  if (hex(sha256(data.subarray(start))) !== header.digest)
    throw new SerializationError("the checksum of the parts is wrong: the file is damaged");
  const parts = new Map();
  let at = start;
  for (const [name, length] of listed) {
    if (parts.has(name)) throw new SerializationError(`two parts of the name ${name}`, { part: name });
    parts.set(name, data.subarray(at, at + length));
    at += length;
  }
  return [header.document, parts];
}

function count(value, least = 1, most = 2 ** 40) {
  if (!Number.isSafeInteger(value) || value < least || value > most)
    throw new SerializationError(`${JSON.stringify(value)}, expected an integer from ${least} to ${most}`);
  return value;
}

function counts(value, length) {
  if (!Array.isArray(value) || value.length === 0 || (length && value.length !== length))
    throw new SerializationError(`${JSON.stringify(value)}, expected ${length ?? "some"} integers`);
  return value.map((entry) => count(entry));
}

function positive(value) {
  if (typeof value !== "number" || !Number.isFinite(value) || !(value > 0))
    throw new SerializationError(`${JSON.stringify(value)}, expected a positive number`);
  return value;
}

const product = (numbers) => numbers.reduce((a, b) => a * b, 1);
const above = (value, step) => Math.ceil(value / step);
const powerAbove = (value) => 2 ** Math.ceil(Math.log2(value));

/** Where the elements of a tensor lie; crenel.nn's `Layout`. */
export class Layout {
  constructor(form) {
    if (form === null || typeof form !== "object") throw new SerializationError("a layout that is no object");
    this.shape = counts(form.shape);
    this.size = counts(form.size, 3);
    this.gap = counts(form.gap, 2);
    this.plane = counts(form.plane, 2);
    this.capacity = count(form.capacity, 1, MAX_SLOTS);
    this.groups = count(form.groups);
    this.images = count(form.images, 1, this.capacity);
    this.sequence = form.sequence;
    const [channels, height, width] = this.size, [v, h] = this.gap, [rows, columns] = this.plane;
    const one = v === 1 && h === 1;
    const power = (value) => Number.isInteger(Math.log2(value));
    const ok =
      typeof this.sequence === "boolean" &&
      (!this.sequence || (one && width === 1)) &&
      (this.groups === 1 || (one && channels % this.groups === 0)) &&
      (this.images === 1 || (this.groups === 1 && !this.sequence)) &&
      power(this.capacity) && power(this.images) &&
      product(this.shape) === product(this.size) && height * v <= rows && width * h <= columns &&
      product(this.size) <= MAX_ELEMENTS && above(channels, v * h) * rows * columns <= MAX_ELEMENTS;
    if (!ok) throw new SerializationError("a layout that does not hold its tensor", { shape: this.shape });
    this.total = above(channels, v * h) * rows * columns;
    /** Of each ciphertext. */
    this.slots = Math.min(this.capacity, powerAbove(Math.floor(this.total / this.groups)) * this.images);
    this.ciphertexts = this.groups * above(Math.floor(this.total / this.groups) * this.images, this.slots);
  }
  /** Vectors for so many samples, of which `images` lie in neighbouring slots. */
  rows(samples) {
    return above(samples, this.images);
  }
  /** Of each element of the first sample, in the order of the flat tensor: ciphertext * slots + slot. */
  positions() {
    const [channels, height, width] = this.size, [v, h] = this.gap, [rows, columns] = this.plane;
    const part = Math.floor(this.total / this.groups), stride = (this.ciphertexts / this.groups) * this.slots;
    const found = new Float64Array(channels * height * width);
    let next = 0;
    const place = (c, y, x) => {
      const within = c % (v * h);
      const slot = Math.floor(c / (v * h)) * rows * columns + (y * v + Math.floor(within / h)) * columns + x * h + (within % h);
      found[next++] = (this.groups > 1 ? Math.floor(slot / part) * stride + (slot % part) : slot) * this.images;
    };
    const axes = this.sequence ? [height, width, channels] : [channels, height, width];
    for (let i = 0; i < axes[0]; i++)
      for (let j = 0; j < axes[1]; j++)
        for (let k = 0; k < axes[2]; k++) this.sequence ? place(k, i, j) : place(i, j, k);
    return found;
  }
}

/** What a client needs of a program; crenel.nn's `ClientSpec`. */
export class ClientSpec {
  /**
   * Of untrusted bytes. A program that bootstraps is refused: its keys are gigabytes.
   * @param {{allowInsecure?: boolean, device?: "cpu"|"ref"}} [options]
   * @throws {SerializationError|StateError|UnsupportedError}
   */
  static fromBytes(data, options = {}) {
    const [form] = unpacked(data, "client");
    if (form === null || typeof form !== "object")
      throw new SerializationError("a client's file without a document");
    const spec = new ClientSpec();
    if (!/^[0-9a-f]{64}$/.test(form.program))
      throw new SerializationError("program: expected 64 hexadecimal digits");
    spec.program = form.program;
    if (!Array.isArray(form.bootstraps)) throw new SerializationError("bootstraps is no list");
    if (form.bootstraps.length > 0)
      throw new UnsupportedError("a program with bootstraps: the module makes no keys for them, which have gigabytes; crenel.client does",
        { bootstraps: form.bootstraps });
    spec.input = new Layout(form.input);
    spec.output = new Layout(form.output);
    spec.inputBound = positive(form.input_bound);
    spec.outputBound = positive(form.output_bound);
    spec.outputShape = counts(form.output_shape);
    spec.batch = count(form.batch);
    spec.context = Context.open(fromHex(form.params), options);
    const { slots, maxLevel, normalTopLevel } = spec.context.params;
    try {
      spec.inputLevel = count(form.input_level, 0, normalTopLevel);
      spec.relinearisation = form.relinearisation === null ? null : count(form.relinearisation, 0, maxLevel);
      if (!Array.isArray(form.rotations)) throw new SerializationError("rotations is no list");
      spec.rotations = form.rotations.map((pair) => {
        if (!Array.isArray(pair) || pair.length !== 2)
          throw new SerializationError("rotations must be pairs of a step and a level");
        return [count(pair[0], 1 - slots, slots - 1), count(pair[1], 0, maxLevel)];
      });
      if (new Set(spec.rotations.map(([step]) => step)).size !== spec.rotations.length)
        throw new SerializationError("a rotation twice");
      if (product(spec.outputShape) !== product(spec.output.shape) ||
          Math.max(spec.input.capacity, spec.output.capacity) > slots)
        throw new SerializationError("layouts or levels that do not fit the parameters or the result");
    } catch (error) {
      spec.context.free();
      throw error;
    }
    return spec;
  }

  /** Which keys `Client.evaluationKeys` is to make. */
  get keyRequest() {
    return { rotations: this.rotations, relinearisation: this.relinearisation };
  }

  /**
   * The encrypted tensor of samples, as a file.
   * @param {Client} client
   * @param {ArrayLike<number>[]} samples flat, the last axis running fastest
   * @param {{single?: boolean}} [options] one sample without an axis in front
   * @throws {ParameterError} for other numbers of samples and elements, and for numbers beyond the program's
   *     range: it would compute nonsense on them. Numbers are not printed
   */
  encrypt(client, samples, { single = false } = {}) {
    const size = product(this.input.shape);
    if (samples.length < 1 || samples.length > (single ? 1 : this.batch) ||
        samples.some((s) => s.length !== size))
      throw new ParameterError(`${samples.length} samples, expected 1 to ${single ? 1 : this.batch} of ${size} numbers`,
        { batch: this.batch, expected: this.input.shape });
    samples.forEach((sample, row) => {
      for (let k = 0; k < size; k++)
        if (!(Math.abs(sample[k]) <= this.inputBound))
          throw new ParameterError(`number ${k} of sample ${row} is not within the program's range of ${this.inputBound}`,
            { index: [row, k], bound: this.inputBound });
    });
    const { slots, ciphertexts, images } = this.input, rows = this.input.rows(samples.length);
    const places = this.input.positions(), parts = [];
    for (let c = 0; c < ciphertexts; c++) {
      const values = new Float64Array(rows * slots);
      for (let n = 0; n < rows * images; n++) {
        const sample = samples[Math.min(n, samples.length - 1)]; // the last one fills a row
        const row = Math.floor(n / images) * slots + (n % images);
        places.forEach((place, k) => {
          if (Math.floor(place / slots) === c) values[row + (place % slots)] = sample[k] / this.inputBound;
        });
      }
      parts.push([`ciphertext${c}`, client.encrypt(values, { level: this.inputLevel, slots })]);
      values.fill(0);
    }
    return packed("tensor", { program: this.program, single, result: false, samples: samples.length }, parts);
  }

  /**
   * The results in an encrypted tensor that a server returned: an array of numbers a sample, flat.
   * @returns {Float64Array[]}
   * @throws {SerializationError|StateError} StateError for a result of another program or under another key
   */
  decrypt(client, data) {
    const [form, parts] = unpacked(data, "tensor");
    const { program, single, result } = form ?? {};
    if (typeof program !== "string" || typeof single !== "boolean" || typeof result !== "boolean" ||
        parts.size === 0)
      throw new SerializationError("an encrypted tensor without program, result, single and ciphertexts");
    const { slots, ciphertexts } = this.output;
    const files = [...parts.values()], about = files.map((file) => this.context.inspect(file));
    const { batch } = about[0];
    if (about.some((c) => c.batch !== batch) || (single && batch !== 1))
      throw new SerializationError("ciphertexts of different numbers of samples");
    const samples = count(form.samples, batch, batch * about[0].slots);
    if (single && samples !== 1) throw new SerializationError("a single sample that is several");
    if (program !== this.program)
      throw new StateError("an encrypted tensor of another program",
        { found: program, expected: this.program });
    const most = single ? 1 : this.batch;
    if (about.length !== ciphertexts || about.some((c) => c.slots !== slots) ||
        batch !== this.output.rows(samples) || samples > most)
      throw new StateError(`${about.length} ciphertexts, expected the program's result: ${ciphertexts} of ${slots} slots and at most ${most} samples`,
        { ciphertexts: about.length, expected: ciphertexts, slots });
    if (!result)
      throw new StateError("an input that a client encrypted, expected the program's result", { result });
    const found = files.map((file) => client.decrypt(file));
    const places = this.output.positions();
    return Array.from({ length: samples }, (_, n) => {
      const values = new Float64Array(places.length), image = n % this.output.images;
      const row = Math.floor(n / this.output.images) * slots;
      places.forEach((place, k) => (values[k] = found[Math.floor(place / slots)][row + (place % slots) + image] * this.outputBound));
      return values;
    });
  }
}
