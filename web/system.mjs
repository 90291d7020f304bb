// What the WebAssembly modules import: a clock, randomness, memory that grows; and no files, no network. Of an
// instance in a page, in a worker, or of one that helps another (helper.mjs).
import { UnsupportedError } from "./errors.mjs";

const PAGE = 1 << 16; // bytes, of WebAssembly
// Of a memory that is made here, because threads share it; as web/CMakeLists.txt says of the module.
const FIRST_PAGES = (32 << 20) / PAGE, MOST_PAGES = 2 ** 31 / PAGE;

/** Whether a compiled module is one for threads: it takes its memory from outside. */
export const shares = (module) => WebAssembly.Module.imports(module).some(({ kind }) => kind === "memory");

/** Memory that a module for threads shares with its helpers; 2 GiB of addresses, taken as they are used. */
export const sharedMemory = () => new WebAssembly.Memory({ initial: FIRST_PAGES, maximum: MOST_PAGES, shared: true });

const EAGAIN = 6, EBADF = 8, ENOENT = 44; // of WASI, and of emscripten's C library
const now = () => performance.timeOrigin + performance.now();

/** An instance: its exports, its memory, and what its calls of the system need. */
export class Instance {
  exports = null;
  /** Gives a thread, asked for by pthread_create, to a worker; false where there is none. */
  onThread = () => false;
  #memory;
  #view = new Uint8Array(0);

  /** @param {WebAssembly.Module} module @param {WebAssembly.Memory|null} memory of a module that shares it */
  static async of(module, memory = null) {
    const made = new Instance();
    made.#memory = memory;
    const { exports } = await WebAssembly.instantiate(module, made.#importsOf(module));
    made.exports = exports;
    made.#memory ??= exports.memory;
    return made;
  }

  /** All of the memory, at least up to `end`: a view, renewed where the memory has grown. */
  #all(end) {
    if (this.#view.buffer !== this.#memory.buffer) this.#view = new Uint8Array(this.#memory.buffer);
    if (end > this.#view.length) {
      this.#memory.grow(0); // another thread has made it grow: this tells
      this.#view = new Uint8Array(this.#memory.buffer);
    }
    return this.#view;
  }
  /** A view of bytes. */
  bytes(at, count) {
    return this.#all(at + count).subarray(at, at + count);
  }
  /** The same as a DataView. */
  fields(at, count) {
    return new DataView(this.#all(at + count).buffer, at, count);
  }
  /** What lies from `at` up to a zero. */
  textAt(at) {
    const all = this.#all(at + 1);
    return new TextDecoder().decode(all.slice(at, all.indexOf(0, at)));
  }

  #random(to, count) {
    const source = globalThis.crypto;
    if (typeof source?.getRandomValues !== "function") return 0;
    const made = new Uint8Array(count); // the browser fills no memory that is shared
    try {
      source.getRandomValues(made);
      this.bytes(to, count).set(made);
      return 1;
    } catch {
      return 0;
    } finally {
      made.fill(0);
    }
  }

  #resize(bytes) {
    try {
      this.#memory.grow(Math.max(0, Math.ceil((bytes - this.#memory.buffer.byteLength) / PAGE)));
      return 1;
    } catch {
      return 0;
    }
  }

  #importsOf(module) {
    const system = {
      crenel: { crenel_random: (to, count) => this.#random(to >>> 0, count >>> 0) },
      // Of the C library, without files or a process: reading finds nothing, writing is not heard.
      wasi_snapshot_preview1: {
        fd_close: () => EBADF, fd_pread: () => EBADF, fd_read: () => EBADF, fd_seek: () => EBADF, fd_write: () => EBADF,
        environ_sizes_get: (count, size) => {
          this.fields(count >>> 0, 4).setUint32(0, 0, true);
          this.fields(size >>> 0, 4).setUint32(0, 0, true);
          return 0;
        },
        environ_get: () => 0,
        clock_time_get: (id, precision, to) => {
          this.fields(to >>> 0, 8).setBigUint64(0, BigInt(Math.round(now() * 1e6)), true);
          return 0;
        },
        proc_exit: (code) => {
          throw new Error(`the module ended itself with ${code}`);
        },
      },
      env: {
        emscripten_notify_memory_growth: () => {},
        // Of a module for threads, in place of emscripten's own JavaScript.
        memory: this.#memory,
        emscripten_get_now: now,
        emscripten_resize_heap: (bytes) => this.#resize(bytes >>> 0),
        emscripten_memcpy_big: (to, from, count) => {
          const [a, b, n] = [to >>> 0, from >>> 0, count >>> 0];
          this.#all(Math.max(a, b) + n).copyWithin(a, b, b + n);
        },
        emscripten_check_blocking_allowed: () => {},
        __syscall_open: () => -ENOENT,
        __emscripten_init_main_thread_js: (thread) => {
          this.beThread(thread, { main: true });
        },
        __pthread_create_js: (thread, attributes, start, argument) => (this.onThread({ thread, start, argument }) ? 0 : EAGAIN),
        abort: () => {
          throw new Error("the module ended itself");
        },
      },
    };
    const found = {};
    for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
      // What no client's work calls; when it does, that is an error and not nothing.
      found[from] ??= {};
      found[from][name] = system[from]?.[name] ?? (() => {
        throw new UnsupportedError(`${from}.${name} (${kind}) is not there in a browser`, { import: name });
      });
    }
    return found;
  }

  /** Makes this instance a thread of the C library, which asked for it; it may wait. @protected */
  beThread(thread, { main = false } = {}) {
    this.exports._emscripten_thread_init(thread, Number(main), Number(main), 1, 0);
    this.exports.emscripten_tls_init();
  }
  /** Begins the work of a module that was not begun before. */
  initialize() {
    (this.exports._initialize ?? this.exports.__wasm_call_ctors)();
  }
}
