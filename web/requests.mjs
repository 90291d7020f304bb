// Requests to a service (docs/reference/service.md): a tenant's token, errors by their names, and which of them
// are tried again.
import { Cancelled, CrenelError, ServiceError, UnavailableError, errorOf } from "./errors.mjs";

const PROTOCOL = "1", RETRIES = 5;
const JSON_TYPE = /^application\/(problem\+)?json/;

export const base64 = (bytes) => btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(""));
export const digestOf = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

const cancelled = () => new Cancelled("cancelled by its signal");

/** @throws {Cancelled} where the signal says so already */
export function expectWanted(signal) {
  if (signal?.aborted) throw cancelled();
}

/** @throws {Cancelled} as soon as the signal says so */
export function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    expectWanted(signal);
    const stop = () => {
      clearTimeout(timer);
      reject(cancelled());
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, 1000 * seconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

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

/** May the same request succeed later? */
export const mayPass = (error) => error instanceof CrenelError && (error.retry === true || error instanceof UnavailableError);

/** Counts failures of one request in a row, and waits before it is made again. */
export class Patience {
  #failures = 0;
  /** Where the error may pass: a pause, as long as the service says. Else throws it. */
  async take(error, signal, again = mayPass(error)) {
    if (!again || ++this.#failures > RETRIES) throw error;
    await pause(error.fields?.retry_after ?? 0.2 * 2 ** this.#failures, signal);
  }
  /** One has succeeded. */
  renew() {
    this.#failures = 0;
  }
}

export class Requests {
  #base;
  #token;

  constructor(base, token) {
    this.#base = new URL(base);
    this.#token = token;
  }

  /** The URL of a path, or of a Location that the service named. */
  at(path) {
    return new URL(path, this.#base);
  }

  /** The response, where it is none of an error. */
  async send(method, path, { headers = {}, body, signal } = {}) {
    const all = { "Crenel-Protocol": PROTOCOL, ...headers };
    if (this.#token) all.Authorization = `Bearer ${this.#token}`;
    let response;
    try {
      response = await fetch(this.at(path), { method, headers: all, body, signal, cache: "no-store", credentials: "omit" });
    } catch (error) {
      expectWanted(signal);
      throw new UnavailableError(`the service cannot be reached: ${error.message}`);
    }
    if (!response.ok) throw await failureOf(response);
    return response;
  }

  /** Bytes of an answer. */
  async bytes(method, path, options = {}) {
    const response = await this.send(method, path, options);
    return this.#whole(response.arrayBuffer(), options.signal);
  }

  /** What its JSON says. */
  async json(method, path, options = {}) {
    const response = await this.send(method, path, options);
    return this.#whole(response.json(), options.signal);
  }

  async #whole(body, signal) {
    try {
      return await body;
    } catch (error) {
      expectWanted(signal);
      throw new UnavailableError(`the service's answer broke off: ${error.message}`);
    }
  }

  /** A request that may be repeated: again where it may succeed later. */
  async persistent(request, signal) {
    for (const patience = new Patience(); ; ) {
      try {
        return await request();
      } catch (error) {
        await patience.take(error, signal);
      }
    }
  }
}
