// The page's logic: drawing, steps and their times. No cryptography: keyholder.mjs asks a worker for that.
import { KeyHolder } from "./keyholder.mjs";
import { Service } from "./service.mjs";
import { bytesPicture, grid, inkOf, pixels } from "./picture.mjs";
import { classesOf, csvOf, samplesOf } from "./table.mjs";

const $ = (id) => document.getElementById(id);
const steps = [];
let holder, service, program, spec, key = null;
let made = null; // keys that were made and are not all sent: stopped, sending goes on where it was
let stopping = null; // of the work that runs

const human = (bytes) => {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let power = 0;
  for (; bytes >= 1024 && power < 3; power++) bytes /= 1024;
  return `${power ? bytes.toFixed(1) : bytes} ${units[power]}`;
};
const seconds = (ms) => (ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(2)} s`);

function say(text) {
  $("state").textContent = text;
}
function record(name, where, milliseconds, bytes = null) {
  steps.push({ name, where, milliseconds, bytes });
  const row = document.createElement("tr");
  for (const cell of [name, where, seconds(milliseconds), bytes === null ? "" : human(bytes)])
    row.insertCell().textContent = cell;
  row.dataset.step = name;
  $("steps").append(row);
}
/** Runs a step of this page and lists its time; bytes(result) are what it made or moved. */
async function step(name, where, work, bytes = () => null) {
  say(`${name} ...`);
  const start = performance.now();
  const result = await work();
  record(name, where, performance.now() - start, bytes(result));
  return result;
}

async function connect() {
  const base = new URL("/", location.href);
  service = await Service.asGuest(base);
  const wanted = new URLSearchParams(location.search).get("program");
  const all = (await service.programs()).filter((p) => p.kind === "nn");
  program = all.find((p) => p.name === wanted) ?? all.find((p) => grid(p.input_shape) !== null) ?? all[0];
  if (program === undefined) throw new Error("the service has no program that takes numbers");
  const file = await service.clientFile(program);
  if (program.insecure) {
    $("warning").textContent = "The service runs parameters of less than 128 bits of security: for a demonstration only.";
    $("warning").hidden = false;
  }
  try {
    return await holder.program(file, { allowInsecure: program.insecure });
  } catch (error) {
    if (error.fields?.bootstraps !== undefined)
      error.message = `${program.name} bootstraps: the server needs keys of about ${human(program.key_bytes)}, and this page makes none ` +
        "for bootstraps. crenel.client, in Python, does.";
    throw error;
  }
}

async function makeKeys(signal) {
  if (made === null) {
    await step("Make a secret key", "your browser", () => holder.keygen());
    $("progress").value = 0;
    made = await step(
      "Make keys for the server", "your browser",
      () => holder.evaluationKeys(({ done, count }) => ($("progress").value = done / count), { signal }),
      ({ file }) => file.size,
    );
  }
  $("progress").value = 0;
  key = await step(
    "Send and check these keys", "network, server",
    () => service.sendKeys(program.program, made, { onProgress: ({ sent, bytes }) => ($("progress").value = sent / bytes), signal }),
    () => made.file.size,
  );
  made = null;
}

function showScores(scores) {
  const best = scores.indexOf(Math.max(...scores)), low = Math.min(...scores), range = Math.max(...scores) - low || 1;
  $("scores").replaceChildren(...Array.from(scores, (score, digit) => {
    const column = document.createElement("div"), bar = document.createElement("span");
    bar.style.setProperty("height", `${4 + 80 * ((score - low) / range)}%`);
    column.append(bar, String(digit));
    column.classList.toggle("best", digit === best);
    return column;
  }));
  $("answer").textContent = `The answer, decrypted here: ${best}`;
  $("answer").dataset.digit = String(best);
}

function showSeen(sent, result, what) {
  bytesPicture($("sent"), sent);
  bytesPicture($("returned"), result);
  $("sent-caption").textContent = `what was sent, ${human(sent.length)}`;
  $("returned-caption").textContent = `its answer, ${human(result.length)}`;
  $("seen").textContent = `${what}. They look like this whatever your numbers are.`;
  const middle = sent.subarray(sent.length >> 1, (sent.length >> 1) + 160);
  $("bytes").textContent = Array.from(middle, (b) => b.toString(16).padStart(2, "0")).join(" ");
}

/** Work that needs keys, given the stop button's signal, with the other buttons off: errors are shown. */
async function guarded(work) {
  for (const button of ["classify", "classify-table"]) $(button).disabled = true;
  delete $("state").dataset.error;
  stopping = new AbortController();
  $("stop").disabled = false;
  const { signal } = stopping;
  try {
    await work(signal);
  } catch (error) {
    const asked = signal.aborted && error.code === "Cancelled";
    stopping.abort(); // what of this work still waits for the service
    if (error.code === "KeysNeededError") key = null; // the service let them go: new ones are made and sent
    if (!asked && error.code !== "UnavailableError") made = null;
    say(asked ? "Stopped: nothing of it runs on." : `${error.code ?? "Error"}: ${error.message}`);
    $("state").dataset.error = error.code ?? error.name;
  } finally {
    stopping = null;
    $("stop").disabled = true;
    $("classify").disabled = grid(program.input_shape) === null;
    $("classify-table").disabled = false;
  }
}

function showTable(results, labels) {
  const { classes, right } = classesOf(results, labels);
  const several = classes[0] !== null, cells = (kind, texts) => texts.map((text) => {
    const cell = document.createElement(kind);
    cell.textContent = text;
    return cell;
  });
  const row = (kind, texts) => {
    const made = document.createElement("tr");
    made.append(...cells(kind, texts));
    return made;
  };
  const head = ["Row", several ? "Class" : "Result", ...(labels ? ["Label"] : [])];
  $("results").tHead.replaceChildren(row("th", head));
  $("results").tBodies[0].replaceChildren(...results.map((scores, k) => {
    const made = row("td", [k + 1, several ? classes[k] : scores[0].toPrecision(6), ...(labels ? [labels[k]] : [])]);
    if (labels && several) made.classList.toggle("wrong", String(classes[k]) !== String(Number(labels[k])));
    return made;
  }));
  $("results").hidden = false;
  if ($("save").href) URL.revokeObjectURL($("save").href);
  $("save").href = URL.createObjectURL(new Blob([csvOf(results)], { type: "text/csv" }));
  $("save").hidden = false;
  const compared = right === null || !several ? "" : `, ${right} as their label says`;
  $("table-answer").textContent = `${results.length} rows, decrypted here${compared}.`;
  $("table-answer").dataset.classes = several ? classes.join(" ") : "";
}

/** As many rows a ciphertext as the program takes; the next are encrypted while the server computes. */
async function computeRows(samples, signal) {
  const results = [], groups = [];
  for (let k = 0; k < samples.length; k += spec.batch) groups.push(samples.slice(k, k + spec.batch));
  let sent = null, answer = null;
  $("progress").value = 0;
  for (const [number, group] of groups.entries()) {
    sent ??= await holder.encrypt(group);
    const asked = service.run(program.program, key, sent, { signal }), now = sent;
    asked.catch(() => {}); // it is awaited below
    sent = number + 1 < groups.length ? await holder.encrypt(groups[number + 1]) : null;
    answer = await asked;
    results.push(...(await holder.decrypt(answer.result)));
    $("progress").value = (number + 1) / groups.length;
    if (number + 1 === groups.length) showSeen(now, answer.result, `${groups.length} ciphertext files, of up to ${spec.batch} rows each`);
  }
  return results;
}

async function classifyTable() {
  const file = $("table").files[0];
  await guarded(async (signal) => {
    if (file === undefined) throw new Error("choose a CSV file first");
    const size = program.input_shape.reduce((a, b) => a * b, 1);
    const wanted = { size, bound: program.input_bound, divisor: Number($("divisor").value) };
    const { samples, labels } = samplesOf(await file.text(), wanted);
    if (key === null) await makeKeys(signal);
    const results = await step(`Compute ${samples.length} rows, encrypted`, "your browser, network, server", () => computeRows(samples, signal));
    showTable(results, labels);
    say("Done. The keys are there for another.");
  });
}

async function classify() {
  await guarded(async (signal) => {
    if (key === null) await makeKeys(signal);
    const sample = pixels(inkOf($("drawing")), grid(program.input_shape));
    const sent = await step("Encrypt the digit", "your browser", () => holder.encrypt([sample], { single: true }), (b) => b.length);
    const { result, job } = await step("Classify it, encrypted", "network, server",
      () => service.run(program.program, key, sent, { signal }), ({ result }) => result.length);
    if (job.seconds?.run != null) record("of this, computing", "server", 1000 * job.seconds.run);
    const [scores] = await step("Decrypt the answer", "your browser", () => holder.decrypt(result));
    showSeen(sent, result, "These bytes, and that they are one picture for this program");
    showScores(scores);
    say("Done. Draw another: the keys are there.");
  });
}

function drawing(canvas) {
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const clear = () => {
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    showSample();
  };
  const showSample = () => {
    const side = (program && grid(program.input_shape)) ?? 8;
    const shown = pixels(inkOf(canvas), side);
    $("sample").width = $("sample").height = side;
    const image = new ImageData(side, side);
    shown.forEach((value, k) => image.data.set([255 - 255 * value, 255 - 255 * value, 255 - 255 * value, 255], 4 * k));
    $("sample").getContext("2d").putImageData(image, 0, 0);
  };
  let from = null;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [((event.clientX - box.left) * canvas.width) / box.width, ((event.clientY - box.top) * canvas.height) / box.height];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    from = at(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const to = at(event);
    Object.assign(pen, { lineWidth: 30, lineCap: "round", strokeStyle: "#000" });
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(...to);
    pen.stroke();
    from = to;
    showSample();
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (from = null));
  $("clear").addEventListener("click", clear);
  clear();
  return showSample;
}

async function start() {
  const showSample = drawing($("drawing"));
  try {
    const threads = new URLSearchParams(location.search).get("threads"); // a number, or as many as are usual
    holder = await step("Load the module", "your browser",
      () => KeyHolder.start(undefined, { threads: threads === null ? undefined : Number(threads) }));
    spec = await step("Ask for the program", "network", connect);
    const about = await holder.about();
    globalThis.crenelThreads = about.threads;
    $("about").textContent = `${program.name}: ${spec.params.name}, ${Math.floor(spec.params.securityBits)} bits of security, ` +
      `${spec.rotations} rotations. Crenel ${about.library}, ${about.threads} ${about.threads === 1 ? "thread" : "threads"}. A browser locks no memory: ` +
      "what is secret lies in this tab's, until you close it.";
    showSample();
    const drawn = grid(program.input_shape) !== null;
    for (const part of ["draw", "classify", "clear", "scores"]) $(part).hidden = !drawn;
    $("classify").disabled = !drawn;
    $("classify-table").disabled = false;
    say(`Ready. Keys for the server, about ${human(program.key_bytes)}, are made and sent with the first ${drawn ? "digit" : "table"}.`);
  } catch (error) {
    say(`${error.code ?? "Error"}: ${error.message}`);
    $("state").dataset.error = error.code ?? error.name;
  }
  $("stop").addEventListener("click", () => {
    $("stop").disabled = true;
    say("Stopping ...");
    stopping?.abort();
  });
  $("classify").addEventListener("click", classify);
  $("classify-table").addEventListener("click", classifyTable);
}

/** For measurements and tests: the steps so far, beside `crenelThreads`. */
globalThis.crenelSteps = steps;
await start();
