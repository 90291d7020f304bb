// The worker that holds the secret key. It answers keyholder.mjs; no answer has the key, and there is no
// request for it. Its memory is its own, and that of the helpers it starts: the page's scripts cannot read it.
import { Cancelled, Hash, StateError, about, described, hex, initAsync } from "./crenel.mjs";
import { ClientSpec } from "./program.mjs";

let spec = null;
let client = null;

function held(what, value) {
  if (value === null) throw new StateError(`no ${what} yet`);
  return value;
}

const AT_ONCE = 1 << 28; // bytes that the browser's own SHA-256, which takes no pieces, may hold

async function digestOf(file, hash) {
  if (globalThis.crypto?.subtle !== undefined && file.size <= AT_ONCE)
    return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer())));
  const piece = 1 << 22;
  for (let at = 0; at < file.size; at += piece) hash.update(await file.slice(at, at + piece).arrayBuffer());
  return hex(hash.finish());
}

const stopped = new Set(); // requests of which no more is wanted
const turns = new MessageChannel();
/** Lets messages in that came meanwhile. */
const turn = () => new Promise((resolve) => {
  turns.port1.onmessage = resolve;
  turns.port2.postMessage(null);
});

/** The file of evaluation keys as a Blob, which browsers keep out of memory where it is large. */
async function keyFile(progress, id) {
  const stream = held("secret key", client).evaluationKeys(held("program", spec).keyRequest);
  const parts = [], hash = new Hash();
  try {
    progress({ done: 0, count: stream.count, bytes: stream.bytes });
    for (let part = stream.next(); part !== null; part = stream.next()) {
      parts.push(new Blob([part]));
      progress({ done: parts.length, count: stream.count, bytes: stream.bytes });
      await turn();
      if (stopped.has(id)) throw new Cancelled("cancelled by its signal");
    }
    const file = new Blob([stream.head(), ...parts]);
    return { file, sha256: await digestOf(file, hash), count: stream.count };
  } finally {
    stream.free();
    hash.free();
  }
}

const answers = {
  async start({ module, threads }) {
    await initAsync(module, { threads });
    return about();
  },
  program({ file, allowInsecure, device }) {
    answers.forget();
    spec = ClientSpec.fromBytes(file, { allowInsecure, device });
    const { program, input, outputShape, inputBound, batch, rotations } = spec;
    return { program, inputShape: input.shape, outputShape, inputBound, batch, rotations: rotations.length, params: spec.context.params };
  },
  keygen() {
    client?.free();
    client = held("program", spec).context.keygen();
    return { secretKeyId: client.secretKeyId };
  },
  keys: (_, progress, id) => keyFile(progress, id),
  encrypt: ({ samples, single }) => held("program", spec).encrypt(held("secret key", client), samples,
    { single }),
  decrypt: ({ file }) => held("program", spec).decrypt(held("secret key", client), file),
  /** Wipes the secret key. */
  forget() {
    client?.free();
    spec?.context.free();
    client = spec = null;
  },
  about: () => about(),
};

let last = Promise.resolve(); // one after the other: an answer may take several turns
globalThis.addEventListener("message", ({ data: { id, request, argument } }) => {
  if (request === "stop") return void stopped.add(id); // at once: what is to stop runs
  last = last.then(async () => {
    const start = performance.now();
    try {
      if (stopped.has(id)) throw new Cancelled("cancelled by its signal");
      if (!Object.hasOwn(answers, request)) throw new StateError(`no request ${request}`);
      const result = await answers[request](argument ?? {}, (progress) => postMessage({ id, progress }), id);
      postMessage({ id, result, milliseconds: performance.now() - start });
    } catch (error) {
      postMessage({ id, error: described(error) });
    } finally {
      stopped.delete(id);
    }
  });
});
