// What tests ask of a module under node. Arguments: web/, its file, threads, the command and its own; prints JSON.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [web, module, threads, command, ...rest] = process.argv.slice(2);
const at = (name) => import(new URL(name, pathToFileURL(`${web}/`)).href);
const crenel = await at("crenel.mjs");
const { ClientSpec, Layout } = await at("program.mjs");
const read = (path) => new Uint8Array(readFileSync(path));
const insecure = { allowInsecure: true };

/** The stream of entropy.c. */
function chooseEntropy(seed) {
  let state = BigInt(seed);
  const word = (x) => BigInt.asUintN(64, x);
  const source = {
    getRandomValues(to) {
      for (let i = 0; i < to.length; i++) {
        let z = (state = word(state + 0x9e3779b97f4a7c15n));
        z = word((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
        z = word((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
        to[i] = Number(z >> 56n);
      }
      return to;
    },
  };
  Object.defineProperty(globalThis, "crypto", { value: source, configurable: true });
}

function told(work) {
  try {
    return { value: work() };
  } catch (error) {
    return { error: error.code ?? error.name, message: error.message, fields: error.fields };
  }
}

function keyFile(client, spec) {
  const stream = client.evaluationKeys(spec.keyRequest), parts = [];
  for (let part = stream.next(); part !== null; part = stream.next()) parts.push(part);
  const all = Buffer.concat([stream.head(), ...parts]);
  return { all, stated: stream.bytes, count: stream.count, parts: parts.length };
}

const commands = {
  /** Keys and ciphertexts with chosen randomness, into the folder of native.py. */
  make([device, folder, seed]) {
    chooseEntropy(seed);
    const spec = ClientSpec.fromBytes(read(`${folder}/client`), { ...insecure, device });
    const flat = new Float64Array(read(`${folder}/samples`).buffer), size = spec.input.shape.reduce((a, b) => a * b, 1);
    const samples = Array.from({ length: flat.length / size }, (_, k) => flat.subarray(k * size, (k + 1) * size));
    const client = spec.context.keygen();
    const keys = keyFile(client, spec);
    writeFileSync(`${folder}/browser-keys`, keys.all);
    writeFileSync(`${folder}/browser-tensor`, spec.encrypt(client, samples));
    writeFileSync(`${folder}/browser-single`, spec.encrypt(client, samples.slice(0, 1), { single: true }));
    writeFileSync(`${folder}/browser-secret`, client.exportSecretKey());
    return { ...keys, all: crenel.hex(crenel.sha256(keys.all)), id: client.secretKeyId, memory: crenel.about() };
  },
  /** A result, decrypted by the secret key of a file: doubles in hexadecimal. */
  decrypt([folder, secret, result]) {
    const spec = ClientSpec.fromBytes(read(`${folder}/client`), insecure);
    const client = spec.context.importSecretKey(read(secret));
    const found = spec.decrypt(client, read(result));
    return found.map((row) => crenel.hex(new Uint8Array(row.buffer, row.byteOffset, row.byteLength)));
  },
  /** Wire files, read and written again. */
  rewrite([params, secret, out, ...files]) {
    const context = crenel.Context.open(read(params), insecure);
    const client = context.importSecretKey(read(secret));
    writeFileSync(`${out}/secret_key`, client.exportSecretKey());
    return files.map((file, k) => {
      const keys = file.includes("evaluation_keys");
      writeFileSync(`${out}/${k}`, context.rewrite(read(file), { keys }));
      return keys ? null : crenel.hex(new Uint8Array(client.decrypt(read(file)).buffer));
    });
  },
  /** What loaders say of hostile bytes. */
  refuse([folder, secret, count]) {
    const spec = ClientSpec.fromBytes(read(`${folder}/client`), insecure);
    const client = spec.context.importSecretKey(read(secret));
    return Array.from({ length: Number(count) }, (_, k) => {
      const kind = ["client", "tensor", "ciphertext", "params"][k % 4], data = read(`${folder}/hostile${k}`);
      return told(() => {
        if (kind === "client") ClientSpec.fromBytes(data, insecure).context.free();
        else if (kind === "tensor") spec.decrypt(client, data);
        else if (kind === "params") crenel.Context.open(data, insecure).free();
        else client.decrypt(data);
        return kind;
      });
    });
  },
  /** The scale of a fresh ciphertext at every normal level of parameters. */
  scales(files) {
    return files.map((file) => {
      const context = crenel.Context.open(read(file), insecure), client = context.keygen();
      const found = Array.from({ length: context.params.normalTopLevel + 1 }, (_, level) =>
        context.inspect(client.encrypt(Float64Array.of(0, 0), { level, slots: 2 })).scale);
      client.free();
      context.free();
      return found;
    });
  },
  positions([folder, count]) {
    return Array.from({ length: Number(count) }, (_, k) => {
      const layout = new Layout(JSON.parse(readFileSync(`${folder}/layout${k}`, "utf8")));
      return [layout.slots, layout.ciphertexts, crenel.hex(crenel.sha256(layout.positions()))];
    });
  },
  /** Without randomness there is no key, and what is out of range is not encrypted. */
  guards([folder]) {
    const spec = ClientSpec.fromBytes(read(`${folder}/client`), insecure), found = {};
    const size = spec.input.shape.reduce((a, b) => a * b, 1), sample = (value) => new Float64Array(size).fill(value);
    const client = spec.context.keygen();
    found.range = told(() => spec.encrypt(client, [sample(spec.inputBound * 1.01)]));
    found.nan = told(() => spec.encrypt(client, [sample(0), sample(NaN)]));
    found.many = told(() => spec.encrypt(client, Array.from({ length: spec.batch + 1 }, () => sample(0))));
    found.short = told(() => spec.encrypt(client, [new Float64Array(size - 1)]));
    // Refused within the loop over rows.
    const rows = Float64Array.from({ length: 16 }, (_, k) => (k === 9 ? 1e300 : k));
    found.large = told(() => client.encrypt(rows, { level: 0, slots: 4 }));
    found.after = told(() => spec.context.inspect(client.encrypt(rows.fill(1), { level: 0, slots: 4 })).batch);
    found.insecure = told(() => ClientSpec.fromBytes(read(`${folder}/client`)));
    const other = spec.context.keygen();
    const file = client.encrypt(new Float64Array(4), { level: 0, slots: 4 });
    found.other = told(() => other.decrypt(file));
    found.early = told(() => client.evaluationKeys(spec.keyRequest).head());
    other.free();
    found.freed = told(() => other.decrypt(file));
    found.input = told(() => spec.decrypt(client, spec.encrypt(client, [sample(0)])));
    for (const broken of [undefined, {}, { getRandomValues() { throw new Error("no"); } }]) {
      Object.defineProperty(globalThis, "crypto", { value: broken, configurable: true });
      (found.entropy ??= []).push(told(() => spec.context.keygen().secretKeyId));
    }
    return found;
  },
  async names() {
    const { errorOf, described } = await at("errors.mjs");
    return (await at("errors.mjs")).names().map((name) => {
      const error = errorOf({ code: name, message: "m", fields: { a: 1 } });
      const parent = Object.getPrototypeOf(error.constructor).name;
      return { ...described(error), parent };
    });
  },
};

const early = told(() => crenel.about());
await crenel.initAsync(read(module), { threads: Number(threads) });
const imports = WebAssembly.Module.imports(new WebAssembly.Module(read(module))).map((i) => `${i.module}.${i.name}`);
const exported = WebAssembly.Module.exports(new WebAssembly.Module(read(module))).map((e) => e.name);
const answer = await commands[command](rest);
process.stdout.write(JSON.stringify({ early, imports, exported, answer }));
