#include "crenel/fhecore/unit.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "crenel/core/error.h"
#include "crenel/core/fork_mutex.h"
#include "device/backend.h"
#include "device/fhecore/kernels.h"
#include "fhecore/model/fhe_sync.h"
#include "math/primes.h"

namespace crenel::fhecore {
namespace {

using device::Buffer;
using device::FhecoreConversion;
using device::FhecoreTransform;
using device::Prepared;
using ring::Domain;
using ring::LimbSet;
using ring::PolyView;
using Moduli = std::vector<u64>;

/// Tables of so many rings are kept; they are megabytes each.
constexpr std::size_t kKept = 16;

/// Polynomials of one call: CUDA counts them in a dimension of a grid, which ends at 65,535.
constexpr u32 kPolysACall = u32(1) << 15;

// f(first, count) over parts of the rows.
template <class F>
void in_parts(u32 rows, const F& f) {
  for (u32 first = 0; first < rows; first += kPolysACall)
    f(first, std::min(kPolysACall, rows - first));
}

void expect_size(const char* name, std::size_t got, std::size_t expected) {
  if (got != expected)
    throw ParameterError(cat(name, " has ", got, " words, expected ", expected), {{name, got}});
}

void check_primes(const char* name, const Moduli& primes) {
  if (primes.empty() || primes.size() > rns::kMaxLimbs)
    throw ParameterError(cat(primes.size(), " ", name, ", expected 1..", rns::kMaxLimbs),
                         {{name, primes.size()}});
  std::set<u64> seen;
  for (const u64 q : primes)
    if (q < 3 || q >= u64(1) << 31 || !math::is_prime(q) || !seen.insert(q).second)
      throw ParameterError(cat(name, ": ", q, ", expected distinct odd primes below 2^31"),
                           {{name, q}});
}

// [rows][limbs][N], every value below its limb's prime; returns the rows.
u32 check_residues(std::span<const u32> x, u32 log_n, const Moduli& primes) {
  const u64 n = u64(1) << log_n, row = n * primes.size();
  if (x.empty() || x.size() % row != 0)
    throw ParameterError(cat("x has ", x.size(), " words, expected a positive multiple of ",
                             primes.size(), " limbs of ", n),
                         {{"x", x.size()}});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const u64 limb = i / n % primes.size();
    if (x[i] >= primes[limb])
      throw ParameterError(cat("x[", i / row, ", ", limb, ", ", i % n, "] = ", x[i],
                               ", expected a residue below ", primes[limb]),
                           {{"value", x[i]}, {"modulus", primes[limb]}});
  }
  return static_cast<u32>(x.size() / row);
}

// Operand words that the shift of their column would push out of the register.
void check_operand(const char* name, std::span<const u32> x, const ColumnConstants* columns,
                   std::size_t sets) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const u32 shift = columns[(sets == 1 ? 0 : i / 256) * 16 + i % 16].shift;
    if (fits_shift<32>(x[i], shift)) continue;
    throw ParameterError(cat(name, "[", i / 256, ", ", i / 16 % 16, ", ", i % 16, "] = ", x[i],
                             ", expected below 2^", 32 - shift, " in a column shifted by ", shift),
                         {{"value", x[i]}, {"shift", shift}});
  }
}

}  // namespace

struct Unit::State {
  std::shared_ptr<device::Device> device;
  std::shared_ptr<device::Stream> stream;
  std::unique_ptr<device::FhecoreKernels> kernels;
  ForkMutex mutex;
  std::map<std::pair<Moduli, u32>, Prepared<FhecoreTransform>> transforms;
  std::map<std::pair<Moduli, Moduli>, Prepared<FhecoreConversion>> conversions;

  template <class T>
  Buffer upload(std::span<const T> values) {
    Buffer buffer = stream->allocate(values.size_bytes());
    stream->copy_in(buffer.data(), values.data(), values.size_bytes());
    return buffer;
  }
  void download(std::span<u32> values, const Buffer& buffer) {
    stream->copy_out(values.data(), buffer.data(), values.size_bytes());
  }

  const Prepared<FhecoreTransform>& transform(u32 log_n, const Moduli& primes,
                                              Decomposition decomposition) {
    const std::pair<Moduli, u32> key(primes, log_n * 2 + static_cast<u32>(decomposition));
    if (const auto found = transforms.find(key); found != transforms.end()) return found->second;
    static_cast<void>(device::fhecore_passes(log_n, decomposition));  // refuses sizes early
    auto ring = std::make_shared<const ring::Ring>(log_n, primes);
    auto prepared =
        kernels->prepare(device::make_fhecore_transform(std::move(ring), decomposition));
    if (transforms.size() >= kKept) transforms.clear();
    return transforms.emplace(key, std::move(prepared)).first->second;
  }

  const Prepared<FhecoreConversion>& conversion(const Moduli& from, const Moduli& to) {
    const auto key = std::pair(from, to);
    if (const auto found = conversions.find(key); found != conversions.end()) return found->second;
    rns::Moduli moduli;
    for (const auto* list : {&from, &to})
      for (const u64 q : *list) moduli.emplace_back(static_cast<u32>(q));
    const u32 sources = static_cast<u32>(from.size());
    auto table =
        rns::make_base_conversion(moduli, LimbSet::range(0, sources),
                                  LimbSet::range(sources, sources + static_cast<u32>(to.size())));
    auto prepared = kernels->prepare(device::make_fhecore_conversion(moduli, std::move(table)));
    if (conversions.size() >= kKept) conversions.clear();
    return conversions.emplace(key, std::move(prepared)).first->second;
  }

  // Runs body and returns what it executed.
  template <class Body>
  Counts counted(const Body& body) {
    kernels->reset_counts(*stream);
    body();
    return kernels->counts(*stream);
  }

  Counts transformed(std::span<u32> out, std::span<const u32> in, u32 log_n, const Moduli& primes,
                     Decomposition decomposition, bool inverse) {
    static_cast<void>(device::fhecore_passes(log_n, decomposition));
    check_primes("primes", primes);
    const u32 rows = check_residues(in, log_n, primes);
    expect_size("out", out.size(), in.size());
    const std::lock_guard lock(mutex);
    const auto& table = transform(log_n, primes, decomposition);
    const Buffer data = upload(in);
    const auto limbs = LimbSet::range(0, static_cast<u32>(primes.size()));
    const auto view = [&](Domain domain) {
      return PolyView<u32>(data.as<u32>(), {log_n, 1, rows}, limbs, domain);
    };
    const Counts counts = counted([&] {
      in_parts(rows, [&](u32 first, u32 count) {
        const auto coeff = view(Domain::coeff).rows(first, count);
        const auto eval = view(Domain::eval).rows(first, count);
        if (inverse)
          kernels->intt(*stream, coeff, eval, table);
        else
          kernels->ntt(*stream, eval, coeff, table);
      });
    });
    download(out, data);
    return counts;
  }
};

Unit::Unit(const std::string& device) : state_(std::make_shared<State>()) {
  state_->device = device::open(device);
  state_->stream = state_->device->make_stream();
  state_->kernels = device::backend_of(*state_->device).make_fhecore_kernels();
}

const device::DeviceInfo& Unit::device() const { return state_->device->info(); }

Counts Unit::fhe_sync(std::span<u32> d, std::span<const u32> a, std::span<const u32> b,
                      std::span<const u32> c, std::span<const u64> moduli, u32 tiles) const {
  if (tiles == 0) throw ParameterError("0 tiles, expected at least 1", {{"tiles", 0}});
  const std::size_t words = std::size_t(tiles) * 256;
  expect_size("d", d.size(), words);
  expect_size("a", a.size(), words);
  expect_size("b", b.size(), words);
  if (!c.empty()) expect_size("c", c.size(), words);
  if (moduli.size() != 1 && moduli.size() != 16 && moduli.size() != std::size_t(tiles) * 16)
    throw ParameterError(cat(moduli.size(), " moduli, expected 1, 16 or ", u64(tiles) * 16),
                         {{"moduli", moduli.size()}});
  const std::size_t sets = moduli.size() <= 16 ? 1 : tiles;
  std::vector<ColumnConstants> columns(sets * 16);
  for (std::size_t i = 0; i < columns.size(); ++i)
    columns[i] = column_constants<32>(moduli[moduli.size() == 1 ? 0 : i]);
  check_operand("b", b, columns.data(), sets);
  check_operand("c", c, columns.data(), sets);
  std::vector<FragmentConstants> constants;
  for (std::size_t i = 0; i < columns.size(); i += kCols)
    constants.push_back(to_fragment(columns.data() + i));

  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  const Buffer left = s.upload(a), right = s.upload(b), addend = s.upload(c);
  const Buffer sets_buffer = s.upload(std::span<const FragmentConstants>(constants));
  const Buffer result = s.stream->allocate(words * sizeof(u32));
  device::FhecoreTiles t;
  t.d = result.as<u32>();
  t.a = left.as<u32>();
  t.b = right.as<u32>();
  t.c = c.empty() ? nullptr : addend.as<u32>();
  t.constants = sets_buffer.as<u32>();
  t.sets = static_cast<u32>(sets);
  t.count = tiles;
  const Counts counts = s.counted([&] { s.kernels->fhe_sync(*s.stream, t); });
  s.download(d, result);
  return counts;
}

Counts Unit::ntt(std::span<u32> out, std::span<const u32> in, u32 log_n, const Moduli& primes,
                 Decomposition decomposition) const {
  return state_->transformed(out, in, log_n, primes, decomposition, false);
}

Counts Unit::intt(std::span<u32> out, std::span<const u32> in, u32 log_n, const Moduli& primes,
                  Decomposition decomposition) const {
  return state_->transformed(out, in, log_n, primes, decomposition, true);
}

Counts Unit::base_convert(std::span<u32> out, std::span<const u32> in, u32 log_n,
                          const Moduli& sources, const Moduli& destinations) const {
  if (log_n < 4 || log_n > 17)
    throw ParameterError(cat("log_n = ", log_n, ", expected 4..17"), {{"log_n", log_n}});
  check_primes("sources", sources);
  check_primes("destinations", destinations);
  Moduli all = sources;
  all.insert(all.end(), destinations.begin(), destinations.end());
  check_primes("sources and destinations", all);
  const u32 rows = check_residues(in, log_n, sources);
  expect_size("out", out.size(), (std::size_t(rows) * destinations.size()) << log_n);
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  const auto& table = s.conversion(sources, destinations);
  const Buffer from = s.upload(in), to = s.stream->allocate(out.size_bytes());
  const ring::PolyShape shape{log_n, 1, rows};
  const PolyView<u32> input(from.as<u32>(), shape, table->table.source, Domain::coeff);
  const PolyView<u32> output(to.as<u32>(), shape, table->table.destination, Domain::coeff);
  const Counts counts = s.counted([&] {
    in_parts(rows, [&](u32 first, u32 count) {
      s.kernels->base_convert(*s.stream, output.rows(first, count), input.rows(first, count),
                              table);
    });
  });
  s.download(out, to);
  return counts;
}

}  // namespace crenel::fhecore
