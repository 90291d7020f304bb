// Times of CKKS operations through the public interface, each beside the error of its result.
//
//   crenel_bench_ckks --device cuda --params boot40 --limbs 48,36,24,12 --json out.json
//
// Calls are queued many at a time between two synchronisations: the figure is throughput of one
// stream, which is the latency of a call when the next one depends on it. On a GPU also each call
// by itself, between two events, on the same inputs and on inputs that take turns. A result that is
// wrong fails the run.
#include <cstdio>
#include <set>

#include "harness/suites.h"
#include "scheme/bench_world.h"

namespace {

int run_ckks(const crenel::bench::Words& words) {
  using namespace crenel::bench;
  const auto parsed = parse_options(words);
  if (!parsed) return 0;
  const Options& options = *parsed;
  Recorder recorder("ckks", words);
  std::shared_ptr<crenel::device::Device> device;
  for (const auto& name : options.params) {
    BenchWorld world(name, options);
    device = world.context.device().shared_from_this();
    std::printf("-- %s on %s (%s): log PQ %.2f, alpha %u\n", name.c_str(),
                device->info().name.c_str(), device->info().description.c_str(),
                world.params().log_pq(), world.params().alpha());
    std::set<crenel::u32, std::greater<>> levels;
    for (crenel::u32 limbs : options.limbs) levels.insert(world.level_for(limbs));
    // Elsewhere a graph is the callable itself: no row of its own.
    const bool graphs = device->has_graphs();
    for (bool graph : graphs ? options.graph : std::vector<bool>{false})
      for (crenel::u32 batch : options.batches)
        for (crenel::u32 level : levels) bench_operations(world, recorder, level, batch, graph);
    bench_client(world, recorder);
  }
  return recorder.finish(options.json, *device);
}

}  // namespace

int main(int argc, char** argv) { return crenel::bench::run_program(argc, argv, run_ckks); }
