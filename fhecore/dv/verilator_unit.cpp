// Bench of the wrapper on Verilator: directed timing, then random tiles against two golden models.
// usage: bench TILES SEED REQUIRE_COVERAGE(0|1) RESULT.json; exit code 0 when all holds. Run by
// unit.py.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "fhecore/dv/unit_timing.h"

namespace dv = crenel::fhecore::dv;

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s TILES SEED REQUIRE_COVERAGE RESULT.json\n", argv[0]);
    return 2;
  }
  const std::uint64_t tiles = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  const bool require = std::atoi(argv[3]) != 0;
  std::printf("seed %llu, %ux%ux%u\n", static_cast<unsigned long long>(seed), dv::R, dv::C, dv::K);
  try {
    Verilated::randReset(2);  // registers that reset does not clear start with noise
    Verilated::randSeed(static_cast<int>(seed % 0x7fffffff) + 1);
    dv::Coverage coverage;
    dv::Bench bench(seed, coverage);
    dv::Stream stream(seed + 1, coverage, bench);
    const dv::Figures figures = dv::Timing(seed + 2, stream, bench).run();
    for (const auto& [name, value] : figures)
      std::printf("  %-40s %llu\n", name.c_str(), static_cast<unsigned long long>(value));
    bench.reset(2);
    stream.forget();
    const std::uint64_t directed = bench.tiles, from = bench.now;
    stream.run(tiles);
    const auto empty = coverage.empty();
    std::printf("tiles: %llu directed, %llu random in %llu cycles; coverage %zu of %zu bins\n",
                static_cast<unsigned long long>(directed),
                static_cast<unsigned long long>(bench.tiles - directed),
                static_cast<unsigned long long>(bench.now - from), coverage.size() - empty.size(),
                coverage.size());
    for (const auto& name : empty) std::printf("  empty bin %s\n", name.c_str());
    std::ofstream out(argv[4]);
    out << "{\"seed\": " << seed << ", \"tiles_directed\": " << directed
        << ", \"tiles_random\": " << bench.tiles - directed
        << ", \"cycles_random\": " << bench.now - from << ", \"figures\": {";
    for (std::size_t n = 0; n < figures.size(); ++n)
      out << (n != 0 ? ", \"" : "\"") << figures[n].first << "\": " << figures[n].second;
    out << "}, \"coverage\": " << coverage.json() << "}\n";
    if (!out.flush()) throw std::runtime_error(std::string("cannot write ") + argv[4]);
    return require && !empty.empty() ? 1 : 0;
  } catch (const std::exception& error) {
    std::printf("FAIL (seed %llu): %s\n", static_cast<unsigned long long>(seed), error.what());
    return 1;
  }
}
