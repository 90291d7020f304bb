// Writes a corpus of valid files: FOLDER/<target>/<name>, for every target.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "fuzz/targets.h"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: fuzz_seeds FOLDER\n", stderr);
    return 2;
  }
  for (const auto& target : crenel::test::fuzz_targets()) {
    const std::filesystem::path folder = std::filesystem::path(arguments[1]) / target.name;
    std::filesystem::create_directories(folder);
    for (const auto& [name, bytes] : target.seeds())
      std::ofstream(folder / name, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
  }
}
