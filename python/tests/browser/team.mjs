// What tests ask of helper threads under node. Arguments: web/ or a copy, the module, threads, parameters; prints
// JSON.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [web, module, threads, parameters] = process.argv.slice(2);
// The module's memory, which its scripts give nobody: whether bytes lie in it.
const memories = [], { instantiate } = WebAssembly;
WebAssembly.instantiate = async (compiled, imports) => {
  const made = await instantiate(compiled, imports);
  memories.push(imports.env?.memory ?? made.exports.memory);
  return made;
};
const lies = (bytes) => Buffer.from(memories[0].buffer).includes(bytes);

const crenel = await import(new URL("crenel.mjs", pathToFileURL(`${web}/`)).href);

const start = performance.now();
let refused = null;
await crenel.initAsync(readFileSync(module), { threads: Number(threads) }).catch((error) => (refused = error.code));
const found = { refused, seconds: (performance.now() - start) / 1e3 };
if (refused === null) {
  found.threads = crenel.about().threads;
  const context = crenel.Context.open(readFileSync(parameters), { allowInsecure: true }), client = context.keygen();
  // Many loops of both kinds, one after the other.
  found.right = true;
  let secret = null;
  for (let turn = 0; turn < 20; turn++) {
    const rows = Float64Array.from({ length: 48 }, () => Math.random());
    secret = Buffer.from(rows.slice(16, 18).buffer);
    const back = client.decrypt(client.encrypt(rows, { level: turn % 3, slots: 8 }));
    found.right &&= back.length === rows.length && back.every((value, k) => Math.abs(value - rows[k]) < 1e-4);
  }
  const stream = client.evaluationKeys({ rotations: [[1, 2], [2, 2]], relinearisation: 2 });
  while (stream.next() !== null);
  stream.free();
  client.free();
  context.free();
  found.gone = !lies(secret) && lies(Buffer.from("the module's memory is full"));
  found.after = crenel.about().threads;
}
process.stdout.write(JSON.stringify(found));
