// What a bootstrapping launches for several numbers of factors of its linear transforms (the
// paper's FFT iterations), stated by the account on the device that executes nothing: no GPU
// needed.
//
//   fft_sweep FILE [PARAMS]
//
// JSON: for each number of factors the level that is left, and by kernel the launches and limbs
// times polynomials.
#include <cstdio>
#include <map>

#include "crenel/crenel.h"

namespace {

using namespace crenel;

// 2^log_slots points in `factors` nearly equal parts.
std::vector<u32> parts(u32 log_slots, u32 factors) {
  std::vector<u32> out;
  for (u32 k = 0; k < factors; ++k)
    out.push_back(log_slots * (k + 1) / factors - log_slots * k / factors);
  return out;
}

struct Sum {
  u64 launches = 0, limb_polys = 0, multiply_adds = 0;
};

void write(std::FILE* file, u32 in, u32 out, const circuits::Bootstrapper& boot,
           const device::Account& account) {
  std::map<std::string, Sum> sums;
  for (const auto& r : account.records()) {
    if (r.work == device::Work::copy) continue;
    Sum& sum = sums[std::string(r.kernel)];
    ++sum.launches, sum.limb_polys += u64(r.limbs) * r.polys, sum.multiply_adds += r.multiply_adds;
  }
  std::fprintf(file,
               "{\"coeff_to_slot\": %u, \"slot_to_coeff\": %u, \"levels_left\": %u, \"kernels\": {",
               in, out, boot.levels().output);
  const char* separator = "";
  for (const auto& [kernel, sum] : sums) {
    std::fprintf(file, "%s\n   \"%s\": [%llu, %llu, %llu]", separator, kernel.c_str(),
                 static_cast<unsigned long long>(sum.launches),
                 static_cast<unsigned long long>(sum.limb_polys),
                 static_cast<unsigned long long>(sum.multiply_adds));
    separator = ",";
  }
  std::fprintf(file, "}}");
}

}  // namespace

int main(int argc, char** argv) {
  std::FILE* file = argc > 1 ? std::fopen(argv[1], "w") : nullptr;
  if (file == nullptr) {
    std::fprintf(stderr, "usage: %s FILE [PARAMS]\n", argv[0]);
    return 2;
  }
  try {
    const ckks::Params params = ckks::Params::preset(argc > 2 ? argv[2] : "boot40", true);
    const ckks::Context context(params, "cuda:dry");
    ckks::Client client = context.keygen();
    u32 log_slots = 0;
    while ((u64(2) << log_slots) <= params.slots()) ++log_slots;
    std::fprintf(file, "{\"kind\": \"fhecore-fft-sweep\", \"params\": \"%s\", \"sweep\": [",
                 argc > 2 ? argv[2] : "boot40");
    const char* separator = "\n ";
    // As many as the library allows: 4 into the slots, 3 out of them.
    const std::pair<u32, u32> choices[] = {{2, 2}, {3, 2}, {3, 3}, {4, 3}};
    for (const auto& [in, out] : choices) {
      circuits::BootstrapOptions options;
      options.coeff_to_slot_stages = parts(log_slots, in);
      options.slot_to_coeff_stages = parts(log_slots, out);
      options.graph = false;
      const auto keys = client.evaluation_keys(circuits::bootstrap_key_request(params, options));
      circuits::Bootstrapper boot(context, keys, options);
      const std::vector<double> values{0.5, -0.25};
      const auto input = client.encrypt(values, boot.levels().input);
      const auto account = std::make_shared<device::Account>();
      context.stream().account(account);
      boot.eager(input);
      context.stream().account(nullptr);
      std::fputs(separator, file);
      write(file, in, out, boot, *account);
      separator = ",\n ";
    }
    std::fprintf(file, "\n]}\n");
  } catch (const Error& e) {
    std::fprintf(stderr, "%s: %s\n", e.code().c_str(), e.what());
    return 1;
  }
  return std::fclose(file) != 0;
}
