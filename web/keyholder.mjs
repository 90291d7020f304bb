// The page's side of worker.mjs: asks for keys, ciphertexts and results. It never sees the secret key.
import { UnavailableError, errorOf } from "./errors.mjs";

export class KeyHolder {
  #worker;
  #waiting = new Map();
  #next = 1;
  /** Milliseconds that the last request took in the worker. */
  milliseconds = 0;

  constructor(worker) {
    this.#worker = worker;
    worker.addEventListener("message", ({ data }) => this.#answer(data));
    worker.addEventListener("error", (event) => {
      const error = new UnavailableError(`the worker ended: ${event.message ?? "it could not be loaded"}`);
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    });
  }

  /**
   * A worker with the module in it: as `initAsync` of crenel.mjs takes them.
   * @param {URL|string} [module] default: one with threads where they may be had, one without else
   * @param {{threads?: number}} [options] 1..64; `about().threads` says how many there are
   */
  static async start(module, { threads } = {}) {
    const holder = new KeyHolder(new Worker(new URL("./worker.mjs", import.meta.url), { type: "module" }));
    await holder.#ask("start", { module: module === undefined ? undefined : String(module), threads });
    return holder;
  }

  #answer({ id, result, error, progress, milliseconds }) {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    if (progress !== undefined) return waiting.onProgress?.(progress);
    this.#waiting.delete(id);
    if (error !== undefined) return waiting.reject(errorOf(error));
    this.milliseconds = milliseconds;
    waiting.resolve(result);
  }

  #ask(request, argument, { onProgress, signal } = {}) {
    const id = this.#next++;
    const stop = () => this.#worker.postMessage({ id, request: "stop" });
    const answered = new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, onProgress });
      this.#worker.postMessage({ id, request, argument });
    });
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
    return answered.finally(() => signal?.removeEventListener("abort", stop));
  }

  /** Versions, and what a browser lacks: `about` of crenel.mjs. */
  about() {
    return this.#ask("about");
  }
  /** Opens a client's file: {program, inputShape, outputShape, inputBound, batch, rotations, params}. */
  program(file, { allowInsecure = false, device = "cpu" } = {}) {
    return this.#ask("program", { file, allowInsecure, device });
  }
  /** A new secret key, in the worker; {secretKeyId}. */
  keygen() {
    return this.#ask("keygen");
  }
  /**
   * {file: Blob, sha256, count} of the program's evaluation keys; onProgress({done, count, bytes}).
   * @throws {Cancelled} after the key that is being made when the signal says so
   */
  evaluationKeys(onProgress, { signal } = {}) {
    return this.#ask("keys", {}, { onProgress, signal });
  }
  /** The encrypted tensor of flat samples, as bytes. */
  encrypt(samples, { single = false } = {}) {
    return this.#ask("encrypt", { samples, single });
  }
  /** The numbers of each sample in a result's bytes. */
  decrypt(file) {
    return this.#ask("decrypt", { file });
  }
  /** Wipes the secret key in the worker and ends it. */
  async close() {
    await this.#ask("forget");
    this.#worker.terminate();
  }
}
