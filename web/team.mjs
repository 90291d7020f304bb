// Helper threads of a module for threads: workers that share its memory. Whoever has the memory can read all
// secrets in it: it goes to these workers, which were made here, and nowhere else.

/** The most threads that are taken where nobody says how many. */
export const USUAL_THREADS = 8;
/** The most that anybody may ask for. */
export const MOST_THREADS = 64;
const START_MS = 10_000;

const inNode = () => globalThis.process?.versions?.node !== undefined;

/**
 * Whether a thread here may share memory with others and wait for them: in workers of a page with cross-origin
 * isolation, and in node. A page's own thread may not wait.
 */
export function mayShare() {
  if (typeof SharedArrayBuffer !== "function") return false;
  if (inNode()) return true;
  return globalThis.crossOriginIsolated === true && typeof DedicatedWorkerGlobalScope === "function";
}

/** How many threads are taken unless somebody says it; one in node, where a program asks for more. */
export function usualThreads() {
  if (inNode() || !mayShare()) return 1;
  return Math.max(1, Math.min(USUAL_THREADS, globalThis.navigator?.hardwareConcurrency ?? 1));
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 1));

/** A worker's file, and what to do with its messages and its failure. */
async function worker(onMessage, onError) {
  const file = new URL("./helper.mjs", import.meta.url);
  if (!inNode()) {
    const made = new Worker(file, { type: "module", name: "crenel helper" });
    made.onmessage = ({ data }) => onMessage(data);
    made.onerror = onError;
    return made;
  }
  const threads = await import("node:worker_threads");
  const made = new threads.Worker(file);
  made.on("message", onMessage).on("error", onError).unref();
  return made;
}

/** A worker with an instance in it. Rejects where it cannot be started, or not in time. */
function helper(module, memory) {
  return new Promise((resolve, reject) => {
    const found = { worker: null, failed: false };
    const fail = (why) => {
      clearTimeout(late);
      found.failed = true;
      found.worker?.terminate();
      reject(new Error(why));
    };
    const late = setTimeout(fail, START_MS, "not in time");
    const answered = ({ ready, failed }) => {
      if (!ready) return fail(failed);
      clearTimeout(late);
      resolve(found);
    };
    worker(answered, () => fail("it could not be loaded")).then((made) => {
      found.worker = made;
      made.postMessage({ module, memory });
    }).catch((error) => fail(String(error)));
  });
}

/**
 * Starts helpers for an instance until it has `threads` threads, or as many as can be had; how many that is, its
 * `crenel_about` says.
 */
export async function startHelpers(instance, module, memory, threads) {
  const asked = await Promise.allSettled(Array.from({ length: threads - 1 }, () => helper(module, memory)));
  const idle = asked.filter(({ status }) => status === "fulfilled").map(({ value }) => value);
  const begun = [];
  instance.onThread = (begin) => {
    begun.push(idle.pop());
    begun.at(-1).worker.postMessage({ begin });
    return true;
  };
  while (idle.length > 0 && instance.exports.crenel_helper_add() === 0);
  instance.onThread = () => false;
  for (const { worker: unused } of idle) unused.terminate();
  const expected = () => 1 + begun.filter(({ failed }) => !failed).length;
  const late = performance.now() + START_MS;
  while (instance.exports.crenel_helpers_admit() < expected() && performance.now() < late) await pause();
}
