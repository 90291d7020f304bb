// The worker of a helper thread: an instance of the module on the memory of the one that made it (team.mjs), to
// which alone it speaks. Once begun it never answers: it takes parts of loops until its maker ends.
import { Instance } from "./system.mjs";

function serve(port) {
  let instance = null;
  port.onmessage = async ({ data: { module, memory, begin } }) => {
    try {
      if (module !== undefined) {
        instance = await Instance.of(module, memory);
        port.postMessage({ ready: true });
        return;
      }
      instance.exports.stackRestore(begin.argument);
      instance.beThread(begin.thread);
      instance.exports.__indirect_function_table.get(begin.start)(begin.argument);
    } catch (error) {
      if (begin !== undefined) instance.exports.crenel_helper_lost();
      port.postMessage({ failed: String(error) });
    }
  };
}

if (typeof DedicatedWorkerGlobalScope === "function") serve(globalThis);
else import("node:worker_threads").then(({ parentPort }) => serve(parentPort));
