// A client of the service's protocol (docs/reference/service.md): programs, resumable uploads of keys, jobs.
// It sends what it is given, and knows no secret.
import { Cancelled, SerializationError, errorOf } from "./errors.mjs";
import { Requests, base64, digestOf, expectWanted } from "./requests.mjs";
import { Uploads } from "./uploads.mjs";

const GRACE_S = 5;
const waits = (job) => job.state === "queued" || job.state === "running";

export class Service {
  #requests;
  #uploads;

  /** @param {URL|string} base of the service @param {string} token of a tenant; kept in memory only */
  constructor(base, token) {
    this.#requests = new Requests(base, token);
    this.#uploads = new Uploads(this.#requests);
  }
  /** With a tenant of its own for some hours, where the service lets strangers in. */
  static async asGuest(base) {
    const { token } = await new Requests(base, "").json("POST", "/guests");
    return new Service(base, token);
  }

  /** Versions and limits. */
  protocol() {
    return this.#requests.json("GET", "/protocol");
  }
  /** What it computes. */
  async programs() {
    return (await this.#requests.json("GET", "/programs")).programs;
  }
  /** The client file of a program, for `KeyHolder.program`; compared with the hash that it is announced by. */
  async clientFile({ program, client_sha256: expected }) {
    const bytes = await this.#requests.bytes("GET", `/programs/${program}/client`);
    const found = Array.from(await digestOf(bytes), (b) => b.toString(16).padStart(2, "0")).join("");
    if (found !== expected)
      throw new SerializationError("a client file of another hash than announced", { found, expected });
    return new Uint8Array(bytes);
  }

  /**
   * Sends evaluation keys in chunks, goes on where a broken connection or an earlier call that was stopped left
   * off, and waits until the service has checked them.
   * @param {{file: Blob, sha256: string}} keys
   * @param {{onProgress?: function({sent: number, bytes: number}): void, signal?: AbortSignal}} [options]
   * @returns {Promise<string>} their name
   * @throws {Cancelled} once the signal says so
   */
  sendKeys(program, keys, options) {
    return this.#uploads.send(program, keys, options);
  }

  /**
   * Has an encrypted tensor computed on. Where the signal stops it, or what `onState` throws, the job is cancelled
   * before the error is thrown.
   * @param {{onState?: function(object): void, signal?: AbortSignal}} [options] onState: every state of the job
   * @returns {Promise<{result: Uint8Array, job: object}>}
   * @throws {Cancelled} once the signal says so
   */
  async run(program, key, tensor, { onState, signal } = {}) {
    expectWanted(signal);
    const digest = base64(await digestOf(tensor));
    let job = await this.#submitted({
      "Content-Type": "application/octet-stream", "Crenel-Program": program, "Crenel-Key": key,
      "Idempotency-Key": crypto.randomUUID(), "Content-Digest": `sha-256=:${digest}:`,
    }, tensor, signal);
    try {
      expectWanted(signal);
      onState?.(job);
      while (waits(job)) {
        job = await this.#requests.persistent(() => this.#requests.json("GET", `/jobs/${job.job}?wait=20`, { signal }), signal);
        onState?.(job);
      }
    } catch (error) {
      if (waits(job)) await this.#cancel(job, signal);
      throw error;
    }
    if (job.state === "failed") throw errorOf({ ...job.error, message: job.error.detail });
    if (job.state !== "done") throw new Cancelled(`the job was ${job.state}`);
    const answer = await this.#requests.persistent(() => this.#requests.bytes("GET", `/jobs/${job.job}/result`, { signal }), signal);
    return { result: new Uint8Array(answer), job };
  }

  /** The new job. A signal does not stop the request at once: only its answer says what there is to cancel. */
  async #submitted(headers, body, signal) {
    const given = new AbortController();
    let late = null;
    const stop = () => (late = setTimeout(() => given.abort(), 1000 * GRACE_S));
    signal?.addEventListener("abort", stop, { once: true });
    const post = () => this.#requests.json("POST", "/jobs", { headers, body, signal: given.signal });
    try {
      return await this.#requests.persistent(post, signal);
    } finally {
      clearTimeout(late);
      signal?.removeEventListener("abort", stop);
    }
  }

  /** Ends a job that nobody waits for: insistently where a signal asked for it, which is told of a failure. */
  async #cancel({ job }, signal) {
    const end = () => this.#requests.json("POST", `/jobs/${job}/cancel`);
    if (signal?.aborted) await this.#requests.persistent(end);
    else await end().catch(() => {}); // of two errors the first is thrown
  }
}
