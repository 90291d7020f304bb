// One run of some operations with an account attached: what dev/kernels/ncu_account.sh compares
// with the hardware counters.
//
//   account_bench [--device NAME] [--params NAME] --json FILE
//
// The file holds the records of the operations, and how many kernels the program launches before
// them, for the profiler to skip.
#include <cstdio>
#include <string>

#include "crenel/crenel.h"

namespace {

using namespace crenel;

u64 kernels_in(const std::vector<device::LaunchRecord>& records) {
  u64 count = 0;
  for (const auto& r : records) count += r.work != device::Work::copy;
  return count;
}

void write(std::FILE* file, const std::vector<device::LaunchRecord>& records) {
  const char* separator = "";
  for (const auto& r : records) {
    std::fprintf(file,
                 "%s\n  {\"kernel\": \"%s\", \"work\": \"%s\", \"stage\": \"%s\", \"limbs\": %u, "
                 "\"polys\": %u, \"read_bytes\": %llu, \"written_bytes\": %llu, "
                 "\"streamed_bytes\": %llu, \"multiply_adds\": %llu, \"butterflies\": %llu}",
                 separator, std::string(r.kernel).c_str(), device::name_of(r.work), r.stage.c_str(),
                 r.limbs, r.polys, static_cast<unsigned long long>(r.read_bytes),
                 static_cast<unsigned long long>(r.written_bytes),
                 static_cast<unsigned long long>(r.streamed_bytes),
                 static_cast<unsigned long long>(r.multiply_adds),
                 static_cast<unsigned long long>(r.butterflies));
    separator = ",";
  }
}

// One of everything that a bootstrapping queues often, at the top level.
void work(const ckks::Evaluator& ev, const ckks::Ciphertext& a, const ckks::Ciphertext& b,
          const ckks::Plaintext& weights) {
  device::Stream& stream = ev.stream();
  const auto in_stage = [&](const char* label, const auto& f) {
    const device::Stage stage(stream, label);
    f();
  };
  in_stage("hmult", [&] { ev.multiply(a, b); });
  in_stage("hrot", [&] { ev.rotate(a, 1); });
  in_stage("rescale", [&] { ev.rescale(a); });
  in_stage("hadd", [&] { ev.add(a, b); });
  in_stage("pmult", [&] { ev.multiply(a, weights); });
  in_stage("cmult", [&] { ev.multiply(a, std::complex<double>(0.5, 0.25)); });
  const std::vector<i64> steps{0, 1, 2};
  in_stage("rotate_sum", [&] { ev.rotate_sum(a, steps); });
}

void run(const std::string& device_name, const std::string& params_name, std::FILE* file) {
  const ckks::Params params = ckks::Params::preset(params_name, true);
  const ckks::Context context(params, device_name);
  device::Stream& stream = context.stream();
  device::Account account;
  stream.account(&account);
  ckks::Client client = context.keygen();
  const auto ev = context.evaluator(client.evaluation_keys({{1, 2}, false, true}));
  const std::vector<double> values{0.5, -0.25};
  const u32 top = params.max_level();
  const auto a = client.encrypt(values, top), b = client.encrypt(values, top);
  const auto weights = context.encode(values, top);
  const u64 before = kernels_in(account.records());
  account.clear();
  work(ev, a, b, weights);
  stream.account(nullptr);
  stream.synchronize();
  const auto records = account.records();
  std::fprintf(file, "{\"kind\": \"crenel-account\", \"format\": 1, \"version\": \"%s\", ",
               version());
  std::fprintf(file, "\"params\": \"%s\", \"level\": %u, \"device\": \"%s\",\n",
               params_name.c_str(), top, context.device().info().description.c_str());
  std::fprintf(file, " \"kernels_before\": %llu, \"kernels\": %llu, \"records\": [",
               static_cast<unsigned long long>(before),
               static_cast<unsigned long long>(kernels_in(records)));
  write(file, records);
  std::fprintf(file, "\n]}\n");
}

}  // namespace

int main(int argc, char** argv) {
  std::string device = "cuda", params = "boot40", json;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--device") device = argv[i + 1];
    if (flag == "--params") params = argv[i + 1];
    if (flag == "--json") json = argv[i + 1];
  }
  std::FILE* file = json.empty() ? nullptr : std::fopen(json.c_str(), "w");
  if (file == nullptr) {
    std::fprintf(stderr, "usage: %s [--device NAME] [--params NAME] --json FILE\n", argv[0]);
    return 2;
  }
  try {
    run(device, params, file);
  } catch (const Error& e) {
    std::fprintf(stderr, "%s: %s\n", e.code().c_str(), e.what());
    return 1;
  }
  return std::fclose(file) == 0 ? 0 : 1;
}
