// A client of the service's protocol (docs/reference/service.md): programs, resumable uploads of keys, jobs.
// It sends what it is given, and knows no secret.
import { Cancelled, CrenelError, KeysNeededError, SerializationError, ServiceError, UnavailableError, errorOf } from "./errors.mjs";

const PROTOCOL = "1", TUS = "1.0.0", RETRIES = 5, CHUNK = 1 << 23;
const JSON_TYPE = /^application\/(problem\+)?json/;

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
const base64 = (bytes) => btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(""));
const digestOf = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

async function failureOf(response) {
  const about = { status: response.status };
  const wait = Number(response.headers.get("Retry-After"));
  if (wait > 0) about.retry_after = wait;
  const text = JSON_TYPE.test(response.headers.get("Content-Type") ?? "") ? await response.text() : "";
  if (text === "") { // HEAD has no body; a proxy answers otherwise
    const kind = [502, 503, 504].includes(response.status) ? UnavailableError : ServiceError;
    return new kind(`the service answered ${response.status} ${response.statusText}`, about);
  }
  const { code, detail, title, fields, retry } = JSON.parse(text);
  const error = errorOf({ code, message: detail ?? title ?? `status ${response.status}`, fields: { ...fields, ...about } });
  error.retry = retry === true;
  return error;
}

export class Service {
  #base;
  #token;

  /** @param {URL|string} base of the service @param {string} token of a tenant; kept in memory only */
  constructor(base, token) {
    this.#base = new URL(base);
    this.#token = token;
  }
  /** With a tenant of its own for some hours, where the service lets strangers in. */
  static async asGuest(base) {
    const { token } = await new Service(base, "").#json("POST", "/guests");
    return new Service(base, token);
  }

  async #send(method, path, { headers = {}, body, signal } = {}) {
    const all = { "Crenel-Protocol": PROTOCOL, ...headers };
    if (this.#token) all.Authorization = `Bearer ${this.#token}`;
    let response;
    try {
      response = await fetch(new URL(path, this.#base),
        { method, headers: all, body, signal, cache: "no-store", credentials: "omit" });
    } catch (error) {
      if (signal?.aborted) throw new Cancelled("cancelled by its signal");
      throw new UnavailableError(`the service cannot be reached: ${error.message}`);
    }
    if (!response.ok) throw await failureOf(response);
    return response;
  }
  async #json(method, path, options) {
    return (await this.#send(method, path, options)).json();
  }

  /** Versions and limits. */
  protocol() {
    return this.#json("GET", "/protocol");
  }
  /** What it computes. */
  async programs() {
    return (await this.#json("GET", "/programs")).programs;
  }
  /** The client file of a program, for `KeyHolder.program`; compared with the hash that it is announced by. */
  async clientFile({ program, client_sha256: expected }) {
    const bytes = await (await this.#send("GET", `/programs/${program}/client`)).arrayBuffer();
    const found = Array.from(await digestOf(bytes), (b) => b.toString(16).padStart(2, "0")).join("");
    if (found !== expected)
      throw new SerializationError("a client file of another hash than announced", { found, expected });
    return new Uint8Array(bytes);
  }

  /**
   * Sends evaluation keys in chunks, goes on where a broken connection left off, and waits until the service
   * has checked them.
   * @param {{file: Blob, sha256: string}} keys
   * @param {{onProgress?: function({sent: number, bytes: number}): void, signal?: AbortSignal}} [options]
   * @returns {Promise<string>} their name
   */
  async sendKeys(program, { file, sha256 }, { onProgress, signal } = {}) {
    if ((await this.#keyState(sha256)) !== "ready") {
      const { limits } = await this.protocol();
      const metadata = Object.entries({ program, sha256 }).map(([name, value]) => `${name} ${btoa(value)}`).join(",");
      const made = await this.#send("POST", "/keys/uploads", {
        headers: { "Tus-Resumable": TUS, "Upload-Length": String(file.size), "Upload-Metadata": metadata }, signal,
      });
      const upload = new URL(made.headers.get("Location"), this.#base).pathname;
      await this.#sendChunks(upload, file, Math.min(limits.chunk_bytes, CHUNK), onProgress, signal);
    }
    onProgress?.({ sent: file.size, bytes: file.size });
    return this.#checked(sha256);
  }

  async #keyState(key, wait = 0) {
    try {
      const found = await this.#json("GET", `/keys/${key}${wait > 0 ? `?wait=${wait}` : ""}`);
      if (found.state === "refused") throw errorOf({ ...found.error, message: found.error.detail });
      return found.state;
    } catch (error) {
      if (error.code === "NotFoundError") return null;
      throw error;
    }
  }
  async #checked(key) {
    for (;;) {
      const state = await this.#keyState(key, 20);
      if (state === "ready") return key;
      if (state === null)
        throw new KeysNeededError("the service does not hold the keys that were sent", { key });
    }
  }

  async #sendChunks(upload, file, chunk, onProgress, signal) {
    const tus = { "Tus-Resumable": TUS };
    let at = 0, failures = 0;
    while (at < file.size) {
      onProgress?.({ sent: at, bytes: file.size });
      const body = await file.slice(at, at + chunk).arrayBuffer();
      const headers = { ...tus, "Content-Type": "application/offset+octet-stream", "Upload-Offset": String(at),
        "Upload-Checksum": `sha256 ${base64(await digestOf(body))}` };
      try {
        const answer = await this.#send("PATCH", upload, { headers, body, signal });
        at = Number(answer.headers.get("Upload-Offset"));
        failures = 0;
      } catch (error) {
        const again = error instanceof UnavailableError || error.retry || error.fields?.status === 409;
        if (!again || ++failures > RETRIES) throw error;
        await pause(error.fields?.retry_after ?? 0.2 * 2 ** failures);
        at = await this.#offset(upload, tus, at, signal);
      }
    }
  }
  async #offset(upload, headers, at, signal) {
    try {
      return Number((await this.#send("HEAD", upload, { headers, signal })).headers.get("Upload-Offset"));
    } catch (error) {
      if (error instanceof UnavailableError) return at; // the next chunk tries again
      throw error;
    }
  }

  /**
   * Has an encrypted tensor computed on.
   * @param {{onState?: function(object): void, signal?: AbortSignal}} [options] onState: every state of the job
   * @returns {Promise<{result: Uint8Array, job: object}>}
   */
  async run(program, key, tensor, { onState, signal } = {}) {
    const headers = { "Content-Type": "application/octet-stream", "Crenel-Program": program, "Crenel-Key": key,
      "Idempotency-Key": crypto.randomUUID(), "Content-Digest": `sha-256=:${base64(await digestOf(tensor))}:` };
    let job = await this.#persistent(() => this.#json("POST", "/jobs", { headers, body: tensor, signal }));
    onState?.(job);
    while (job.state === "queued" || job.state === "running") {
      job = await this.#persistent(() => this.#json("GET", `/jobs/${job.job}?wait=20`, { signal }));
      onState?.(job);
    }
    if (job.state === "failed") throw errorOf({ ...job.error, message: job.error.detail });
    if (job.state !== "done") throw new Cancelled(`the job was ${job.state}`);
    const answer = await this.#persistent(() => this.#send("GET", `/jobs/${job.job}/result`, { signal }));
    return { result: new Uint8Array(await answer.arrayBuffer()), job };
  }
  /** The same request again where the service says that it may succeed later: it is idempotent. */
  async #persistent(request) {
    for (let failures = 0; ; ) {
      try {
        return await request();
      } catch (error) {
        const again = error instanceof CrenelError && (error.retry || error instanceof UnavailableError);
        if (!again || ++failures > RETRIES) throw error;
        await pause(error.fields.retry_after ?? 0.2 * 2 ** failures);
      }
    }
  }
}
