// Key files on their way to a service: tus 1.0.0, in chunks with checksums (docs/reference/service.md).
//
// Of a chunk whose connection breaks nothing is kept, and a service puts each on its disk before it answers: small
// ones get through where connections break, large ones cost less. So a chunk is what goes in some seconds, as the
// ones before say, and half of that after a failure.
import { KeysNeededError, NotFoundError, UnavailableError, errorOf } from "./errors.mjs";
import { Patience, base64, digestOf, expectWanted } from "./requests.mjs";

const TUS = { "Tus-Resumable": "1.0.0" }, FIRST = 1 << 23, LEAST = 1 << 20, CHUNK_S = 4;

export class Uploads {
  #requests;
  #places = new Map(); // of uploads that have not ended, by program and hash

  /** @param {import("./requests.mjs").Requests} requests */
  constructor(requests) {
    this.#requests = requests;
  }

  /** See `Service.sendKeys`. */
  async send(program, { file, sha256 }, { onProgress, signal } = {}) {
    expectWanted(signal);
    if ((await this.#state(sha256, { program, signal })) === null) {
      const { limits } = await this.#requests.json("GET", "/protocol", { signal });
      const name = `${program} ${sha256}`;
      const [place, at] = await this.#place(name, program, sha256, file.size, signal);
      await this.#chunks(place, at, file, limits.chunk_bytes, onProgress, signal);
      this.#places.delete(name);
    }
    onProgress?.({ sent: file.size, bytes: file.size });
    return this.#checked(program, sha256, signal);
  }

  /** Of keys, "received" or "ready"; null where the service has none for the program. */
  async #state(key, { program, wait = 0, signal }) {
    try {
      const found = await this.#requests.json("GET", `/keys/${key}${wait > 0 ? `?wait=${wait}` : ""}`, { signal });
      if (found.state === "refused") throw errorOf({ ...found.error, message: found.error.detail });
      return found.program === program ? found.state : null;
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
  }

  async #checked(program, key, signal) {
    for (;;) {
      const state = await this.#state(key, { program, wait: 20, signal });
      if (state === "ready") return key;
      if (state === null)
        throw new KeysNeededError("the service does not hold the keys that were sent", { key });
    }
  }

  /** Of an upload that was begun, and where it stands; else of a new one. */
  async #place(name, program, sha256, length, signal) {
    const known = this.#places.get(name);
    if (known !== undefined) {
      try {
        const answer = await this.#requests.send("HEAD", known, { headers: TUS, signal });
        return [known, Number(answer.headers.get("Upload-Offset"))];
      } catch (error) {
        // Its time was over, or its bytes had another hash. An answer to HEAD has no body that names the error.
        if (error.fields?.status !== 404) throw error;
        this.#places.delete(name);
      }
    }
    const metadata = Object.entries({ program, sha256 }).map(([key, value]) => `${key} ${btoa(value)}`).join(",");
    const made = await this.#requests.send("POST", "/keys/uploads", {
      headers: { ...TUS, "Upload-Length": String(length), "Upload-Metadata": metadata }, signal,
    });
    const place = this.#requests.at(made.headers.get("Location")).pathname;
    this.#places.set(name, place);
    return [place, 0];
  }

  async #chunks(place, start, file, most, onProgress, signal) {
    const patience = new Patience();
    let at = start, size = Math.min(FIRST, most);
    while (at < file.size) {
      onProgress?.({ sent: at, bytes: file.size });
      const began = performance.now(), body = await file.slice(at, at + size).arrayBuffer();
      const headers = {
        ...TUS, "Content-Type": "application/offset+octet-stream", "Upload-Offset": String(at),
        "Upload-Checksum": `sha256 ${base64(await digestOf(body))}`,
      };
      try {
        at = Number((await this.#requests.send("PATCH", place, { headers, body, signal })).headers.get("Upload-Offset"));
        patience.renew();
        size = sizeAfter(body.byteLength, (performance.now() - began) / 1000, most);
      } catch (error) {
        await patience.take(error, signal, error instanceof UnavailableError || error.retry || error.fields?.status === 409);
        at = await this.#offset(place, at, signal);
        size = Math.min(most, Math.max(LEAST, size >> 1));
      }
    }
  }

  async #offset(place, at, signal) {
    try {
      return Number((await this.#requests.send("HEAD", place, { headers: TUS, signal })).headers.get("Upload-Offset"));
    } catch (error) {
      if (error instanceof UnavailableError) return at; // the next chunk tries again
      throw error;
    }
  }
}

/** Bytes of a chunk after one of so many took so long: at most twice as many, and half as many at least. */
export function sizeAfter(bytes, seconds, most) {
  const fits = (bytes * CHUNK_S) / Math.max(seconds, 1e-3);
  const wanted = Math.min(2 * bytes, Math.max(bytes / 2, fits));
  return Math.floor(Math.min(most, Math.max(LEAST, wanted)));
}
