// The WebAssembly module of keys, encryption and decryption, with types: Crenel's own sources, the same bits.
//
//   await initAsync();                                    // once; before it, every call throws StateError
//   const context = Context.open(parameterFile);
//   const client = context.keygen();
//   const file = client.encrypt(numbers, { level: 3, slots: 1024 });
//
// Objects live in the module's memory until `free()`. There is no network in this file.
import { errorOf, OutOfMemoryError, ParameterError, SerializationError, StateError, UnsupportedError } from "./errors.mjs";
import { Instance, sharedMemory, shares } from "./system.mjs";
import { mayShare, MOST_THREADS, startHelpers, usualThreads } from "./team.mjs";

export * from "./errors.mjs";

const INTERFACE = 1; // of crenel_wasm.cpp
const ALONE = new URL("./crenel.wasm", import.meta.url), TOGETHER = new URL("./crenel-threads.wasm", import.meta.url);
let instance = null;
let wasm = null; // its exports
let starting = null;

async function compiled(source) {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
  const response = await fetch(source);
  if (!response.ok)
    throw new UnsupportedError(`no module at ${source}: status ${response.status}`,
      { status: response.status });
  return WebAssembly.compile(await response.arrayBuffer());
}

async function load(source, threads) {
  const module = await compiled(source), together = shares(module);
  if (together && !mayShare())
    throw new UnsupportedError("a module with threads, and this place shares no memory",
      { expected: "a worker of a page with cross-origin isolation, or node" });
  const memory = together ? sharedMemory() : null;
  const made = await Instance.of(module, memory);
  made.initialize();
  instance = made;
  wasm = made.exports;
  try {
    const found = about().interface;
    if (found !== INTERFACE)
      throw new UnsupportedError(`a module of interface ${found}, expected ${INTERFACE}`, { found, expected: INTERFACE });
    if (together) await startHelpers(made, module, memory, threads);
  } catch (error) {
    wasm = instance = null;
    throw error;
  }
}

/**
 * Loads the module; later calls wait for the same one.
 *
 * Where threads may share memory, that is crenel-threads.wasm beside this file, else crenel.wasm, which has one
 * thread; `about().threads` says how many there are.
 * @param {URL|string|BufferSource|WebAssembly.Module} [source] another module, of either kind
 * @param {{threads?: number}} [options] 1..64 threads, fewer where no more can be had; default: as many as the
 *     machine has, up to 8, and one under node
 * @throws {UnsupportedError} where it cannot be loaded, or is of another version than this file
 * @throws {ParameterError} for another number of threads
 */
export function initAsync(source, { threads = usualThreads() } = {}) {
  starting ??= (async () => {
    asInteger(threads, "threads", 1, MOST_THREADS);
    if (source !== undefined) return load(source, threads);
    if (threads > 1 && mayShare()) {
      try {
        return await load(TOGETHER, threads);
      } catch {
        // No such file, or no such memory: without.
      }
    }
    return load(ALONE, 1);
  })();
  starting.catch(() => (starting = null));
  return starting;
}

function exports() {
  if (wasm === null) throw new StateError("the module is not loaded: await initAsync() first");
  return wasm;
}

const bytesAt = (at, count) => instance.bytes(at >>> 0, count >>> 0);

/** Calls body(...pointers) with copies of the arrays in the module's memory, and wipes them after. */
function withCopies(arrays, body) {
  const { crenel_allocate, crenel_free } = exports();
  const made = [];
  try {
    for (const array of arrays) {
      const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      const at = crenel_allocate(bytes.length) >>> 0;
      if (at === 0)
        throw new OutOfMemoryError(`no room for ${bytes.length} bytes in the module`,
          { needed: bytes.length });
      made.push([at, bytes.length]);
      bytesAt(at, bytes.length).set(bytes);
    }
    return body(...made.map(([at]) => at));
  } finally {
    for (const [at, count] of made) crenel_free(at, count);
  }
}

/** Calls a function of the module, and gives a copy of its output. What it refuses is thrown. */
function call(name, ...args) {
  const code = exports()[name](...args);
  if (code !== 0) throw errorOf(JSON.parse(instance.textAt(wasm.crenel_error() >>> 0)));
  return bytesAt(wasm.crenel_output(), wasm.crenel_output_bytes()).slice();
}

/** The same of one that makes an object: [handle, output]. */
function make(name, ...args) {
  return withCopies([new Uint32Array(1)], (at) => {
    const output = call(name, ...args, at);
    return [instance.fields(at >>> 0, 4).getUint32(0, true), output];
  });
}

const text = (bytes) => new TextDecoder().decode(bytes);
const json = (bytes) => JSON.parse(text(bytes));

function asBytes(data, what) {
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw new ParameterError(`${what} of type ${typeof data}, expected bytes`, { type: typeof data });
}

function asInteger(value, what, least, most) {
  if (!Number.isInteger(value) || value < least || value > most)
    throw new ParameterError(`${what} ${value}, expected an integer from ${least} to ${most}`, { expected: `${least}..${most}` });
  return value;
}

/**
 * Versions, threads, and what this platform has of the protections of SECURITY.md: `secretMemory.lockedBytes`
 * is 0 in a browser, and `unlockedBytes` is all that there is.
 */
export function about() {
  return json(call("crenel_about"));
}

class Held {
  #handle;
  constructor(handle) {
    this.#handle = handle;
  }
  /** Its number in the module. @protected */
  get handle() {
    if (this.#handle === 0) throw new StateError(`a ${this.constructor.name} that was freed`);
    return this.#handle;
  }
  /** Gives its memory back; secrets are wiped. */
  free() {
    if (this.#handle !== 0) exports().crenel_release(this.#handle);
    this.#handle = 0;
  }
}

/** Parameters with their tables. */
export class Context extends Held {
  /** {id, name, logN, slots, maxLevel, normalTopLevel, securityBits, insecure} */
  params;

  /**
   * Of untrusted bytes.
   * @param {BufferSource} parameterFile
   * @param {{allowInsecure?: boolean, device?: "cpu"|"ref"}} [options] parameters below 128 bits of security are
   *     refused unless allowInsecure
   * @throws {SerializationError}
   */
  static open(parameterFile, { allowInsecure = false, device = "cpu" } = {}) {
    if (device !== "cpu" && device !== "ref")
      throw new ParameterError(`device ${device}, expected "cpu" or "ref"`);
    const bytes = asBytes(parameterFile, "parameters");
    const [handle, found] = withCopies([bytes], (at) =>
      make("crenel_open", at, bytes.length, Number(allowInsecure), Number(device === "ref")));
    const context = new Context(handle);
    context.params = Object.freeze(json(found));
    return context;
  }
  /** A client with a new secret key. @throws {StateError} without crypto.getRandomValues */
  keygen() {
    return new Client(this, ...make("crenel_keygen", this.handle));
  }
  /** The client of `Client.exportSecretKey`'s bytes. @throws {SerializationError} */
  importSecretKey(file) {
    const bytes = asBytes(file, "a secret key");
    return new Client(this, ...withCopies([bytes], (at) => make("crenel_import", this.handle, at, bytes.length)));
  }
  /** {level, slots, batch, scale, secretKeyId} of an untrusted ciphertext file. @throws {SerializationError} */
  inspect(file) {
    const bytes = asBytes(file, "a ciphertext");
    return json(withCopies([bytes], (at) => call("crenel_inspect", this.handle, at, bytes.length)));
  }
  /** A ciphertext or key file read with all checks and written again. @throws {SerializationError} */
  rewrite(file, { keys = false } = {}) {
    const bytes = asBytes(file, "a file");
    return withCopies([bytes], (at) => call("crenel_rewrite", this.handle, at, bytes.length, Number(keys)));
  }
}

/** Holder of a secret key. */
export class Client extends Held {
  /** @private */
  constructor(context, handle, id) {
    super(handle);
    this.context = context;
    /** The public name of the secret key. */
    this.secretKeyId = text(id);
  }
  /**
   * The ciphertext file of one or more vectors.
   * @param {Float64Array} values rows of `slots` numbers, one after the other
   * @param {{level: number, slots: number}} where slots: a power of two
   * @throws {ParameterError} for numbers that are not finite or do not fit
   */
  encrypt(values, { level, slots }) {
    if (!(values instanceof Float64Array))
      throw new ParameterError("values of another type, expected a Float64Array");
    const { params } = this.context;
    asInteger(slots, "slots", 1, params.slots);
    asInteger(level, "level", 0, params.maxLevel);
    const rows = asInteger(values.length / slots, "rows", 1, 1 << 20);
    return withCopies([values], (at) => call("crenel_encrypt", this.handle, at, rows, slots, level));
  }
  /**
   * The slots of an untrusted ciphertext file, row after row, their real parts: for the key holder's eyes alone.
   * @returns {Float64Array}
   * @throws {SerializationError|StateError} StateError for a ciphertext of another key
   */
  decrypt(file) {
    const bytes = asBytes(file, "a ciphertext");
    const found = withCopies([bytes], (at) => call("crenel_decrypt", this.handle, at, bytes.length));
    wasm.crenel_clear();
    const pairs = new Float64Array(found.buffer);
    return pairs.filter((_, k) => k % 2 === 0);
  }
  /**
   * The file of evaluation keys, made one at a time.
   * @param {{rotations: [number, number][], relinearisation: number|null}} request steps and the highest level of
   *     each; the highest level of products
   */
  evaluationKeys({ rotations, relinearisation }) {
    const { slots, maxLevel } = this.context.params;
    const steps = new Int32Array(rotations.map(([k]) => asInteger(k, "rotation", 1 - slots, slots - 1)));
    const levels = new Uint32Array(rotations.map(([, level]) => asInteger(level, "level", 0, maxLevel)));
    const products = relinearisation === null ? -1 : asInteger(relinearisation, "level", 0, maxLevel);
    return new KeyStream(...withCopies([steps, levels], (a, b) => make("crenel_keys", this.handle, a, b, steps.length, products)));
  }
  /** The secret key as a file. Keep it as a secret, and wipe it: `bytes.fill(0)`. */
  exportSecretKey() {
    const bytes = call("crenel_export", this.handle);
    wasm.crenel_clear();
    return bytes;
  }
}

/** Evaluation keys on their way into a file. */
export class KeyStream extends Held {
  /** @private */
  constructor(handle, found) {
    super(handle);
    const { count, bytes } = json(found);
    /** Keys to be made. */
    this.count = count;
    /** Of the whole file. */
    this.bytes = bytes;
  }
  /** The next part of the file, behind its head; null after the last. */
  next() {
    const part = call("crenel_keys_next", this.handle);
    return part.length === 0 ? null : part;
  }
  /** What the file begins with. @throws {StateError} before the last key is made */
  head() {
    return call("crenel_keys_head", this.handle);
  }
}

/** SHA-256 of bytes that come in pieces. */
export class Hash extends Held {
  constructor() {
    super(make("crenel_hash")[0]);
  }
  update(data) {
    const bytes = asBytes(data, "bytes");
    withCopies([bytes], (at) => call("crenel_hash_update", this.handle, at, bytes.length));
    return this;
  }
  /** 32 bytes; the hash is freed. */
  finish() {
    const digest = call("crenel_hash_finish", this.handle);
    this.free();
    return digest;
  }
}

export const sha256 = (data) => new Hash().update(data).finish();
export const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

/** Bytes of an even number of hexadecimal digits. @throws {SerializationError} */
export function fromHex(digits) {
  if (typeof digits !== "string" || !/^([0-9a-f]{2})*$/.test(digits))
    throw new SerializationError("text that is not hexadecimal");
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}
