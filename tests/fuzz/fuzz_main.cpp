// libFuzzer's entry of the target kFuzzTarget: any bytes either load or are refused.
#include <cstdio>
#include <cstdlib>
#include <random>

#include "fuzz/targets.h"

extern const char* const kFuzzTarget;  // target_name.cpp

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const crenel::test::FuzzTarget& target = [&]() -> const crenel::test::FuzzTarget& {
    for (const auto& t : crenel::test::fuzz_targets())
      if (t.name == kFuzzTarget) return t;
    throw std::logic_error(std::string("no fuzz target ") + kFuzzTarget);
  }();
  static const int at_exit = std::atexit([] {
    std::fprintf(stderr, "stat::accepted_loads: %llu\n",
                 static_cast<unsigned long long>(crenel::test::accepted_loads()));
  });
  static_cast<void>(at_exit);
  target.run({data, size});
  return 0;
}

/// A quarter of the mutations keeps to the payload and its length, a quarter to the header, whose
/// padding and length it corrects: blind ones hardly ever leave the payload where the offsets say
/// it is.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  crenel::u64 length = 0;
  if (size >= 8) std::memcpy(&length, data, 8);
  if (size > 8 && length < size - 8 && seed % 4 == 1) {
    const std::size_t payload = 8 + static_cast<std::size_t>(length);
    std::minstd_rand next(seed);
    for (unsigned change = next() % 4 + 1; change > 0; --change)
      data[payload + next() % (size - payload)] ^= static_cast<std::uint8_t>(1u << next() % 8);
    return size;
  }
  if (seed % 2 == 0 || length == 0 || length > size - 8)
    return LLVMFuzzerMutate(data, size, max_size);
  std::vector<std::uint8_t> header(data + 8, data + 8 + length);
  const std::vector<std::uint8_t> payload(data + 8 + length, data + size);
  while (!header.empty() && header.back() == ' ') header.pop_back();
  const std::size_t used = header.size();
  header.resize(used + 256);
  header.resize(LLVMFuzzerMutate(header.data(), used, header.size()));
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (8 + header.size() + payload.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  length = header.size();
  std::memcpy(data, &length, 8);
  std::copy(header.begin(), header.end(), data + 8);
  std::copy(payload.begin(), payload.end(), data + 8 + length);
  return 8 + header.size() + payload.size();
}
