// Parameters: generated, named, read from bytes.
#include <cmath>

#include "arrays.h"

namespace crenel::python {
namespace {

using ckks::Params;

// Toy parameters are never used by accident: whoever makes them gets a warning at the calling line.
Params warned(Params params) {
  if (!params.insecure()) return params;
  const nb::object category = error_type("InsecureParametersWarning");
  const std::string label = params.name().empty() ? std::string("these parameters") : params.name();
  const std::string message =
      cat(label, ": about ", static_cast<int>(params.security_bits()),
          " bits of security, below 128; for tests only (log N = ", params.log_n(),
          ", log PQ = ", std::lround(params.log_pq()), ")");
  if (PyErr_WarnEx(category.ptr(), message.c_str(), 1) < 0) throw nb::python_error();
  return params;
}

u32 checked_level(const Params& params, i64 level, i64 lowest) {
  if (level < lowest || level > static_cast<i64>(params.max_level()))
    throw ParameterError(cat("level ", level, " is outside ", lowest, "..", params.max_level()),
                         {{"level", level}, {"max_level", params.max_level()}});
  return static_cast<u32>(level);
}

void construct(Params* self, i64 log_n, i64 scale_bits, i64 depth, bool allow_insecure, i64 alpha) {
  const u32 n = as_unsigned<u32>(log_n, "log_n"), s = as_unsigned<u32>(scale_bits, "scale_bits"),
            d = as_unsigned<u32>(depth, "depth"), a = as_unsigned<u32>(alpha, "alpha");
  Params params = released([&] { return Params::generate(n, s, d, allow_insecure, a); });
  new (self) Params(warned(std::move(params)));
}

Params preset(const std::string& name, bool allow_insecure) {
  return warned(released([&] { return Params::preset(name, allow_insecure); }));
}

Params from_bytes(nb::handle data, bool allow_insecure, std::optional<Bytes> max_bytes) {
  const BufferView view(data, max_bytes);
  const LoadLimits limits = limits_of(max_bytes);
  return warned(
      released([&] { return ckks::params_from_bytes(view.bytes(), allow_insecure, limits); }));
}

Params from_primes(u32 log_n, u32 log_scale, std::vector<u64> main, std::vector<u64> terminal,
                   std::vector<u64> auxiliary, const std::vector<std::pair<u32, u32>>& levels,
                   std::optional<u32> normal_top_level, u32 hamming_weight, std::string name,
                   std::string provenance, bool allow_insecure) {
  ckks::Spec spec;
  spec.name = std::move(name);
  spec.log_n = log_n;
  spec.log_scale = log_scale;
  spec.main = std::move(main);
  spec.terminal = std::move(terminal);
  spec.auxiliary = std::move(auxiliary);
  for (const auto& [m, t] : levels) spec.levels.push_back({m, t});
  const u32 top = levels.empty() ? 0 : static_cast<u32>(levels.size()) - 1;
  spec.normal_top_level = normal_top_level.value_or(top);
  spec.hamming_weight = hamming_weight;
  spec.provenance = std::move(provenance);
  return warned(released([&] { return Params::from_spec(std::move(spec), allow_insecure); }));
}

std::vector<std::pair<u32, u32>> levels(const Params& params) {
  std::vector<std::pair<u32, u32>> result;
  for (const ckks::LevelModulus& level : params.spec().levels)
    result.emplace_back(level.main, level.terminal);
  return result;
}

void bind_factories(nb::class_<Params>& c) {
  c.def("__init__", &construct, nb::kw_only(), "log_n"_a, "scale_bits"_a, "depth"_a,
        "allow_insecure"_a = false, "alpha"_a = 0,
        "Leveled parameters found by search: `depth` rescalings at scale 2^scale_bits.\n\n"
        "Parameters\n----------\n"
        "log_n : log2 of the ring degree, 10..17; there are 2^(log_n - 1) slots\n"
        "scale_bits : 28, 30, 35, 40, 45 or 50\n"
        "depth : levels that can be consumed (level `depth` is the top, level 0 the last)\n"
        "allow_insecure : accept less than 128 bits of security (warns)\n"
        "alpha : special primes; 0 chooses\n\n"
        "Raises ParameterError naming log PQ and its bound when no secure chain exists.");
  c.def_static("preset", &preset, "name"_a, nb::kw_only(), "allow_insecure"_a = false,
               "A named parameter set; see `preset_names`. Toy sets need allow_insecure and warn.");
  c.def_static(
      "from_bytes", &from_bytes, "data"_a, nb::kw_only(), "allow_insecure"_a = false,
      "max_bytes"_a = nb::none(),
      "Parameters from `to_bytes`, checked like any others.\n\n"
      "max_bytes : refuse parameters whose context takes tables of more bytes; default 256 "
      "MiB.\n"
      "Raises SerializationError saying what and where.",
      nb::sig("def from_bytes(data: bytes | bytearray | memoryview, *, "
              "allow_insecure: bool = False, max_bytes: int | None = None) -> Params"));
  c.def_static("from_primes", &from_primes, nb::kw_only(), "log_n"_a, "log_scale"_a, "main"_a,
               "terminal"_a, "auxiliary"_a, "levels"_a, "normal_top_level"_a = nb::none(),
               "hamming_weight"_a = 0, "name"_a = "", "provenance"_a = "",
               "allow_insecure"_a = false,
               "Parameters from given primes and (main, terminal) counts of each level.\n\n"
               "Raises ParameterError whose fields hold every problem found.");
}

void bind_numbers(nb::class_<Params>& c) {
  c.def_prop_ro("name", &Params::name, "Name of the set; empty for generated ones.")
      .def_prop_ro("log_n", &Params::log_n, "log2 of the ring degree N.")
      .def_prop_ro("ring_dim", &Params::ring_dim, "The ring degree N.")
      .def_prop_ro("slots", &Params::slots, "Slots of a full ciphertext, N/2.")
      .def_prop_ro("max_level", &Params::max_level, "Index of the top level; 0 is the last.")
      .def_prop_ro("normal_top_level", &Params::normal_top_level,
                   "Highest level with a canonical scale; bootstrapping levels lie above.")
      .def_prop_ro(
          "log_scale", [](const Params& p) { return p.spec().log_scale; },
          "log2 of the target scale.")
      .def_prop_ro("alpha", &Params::alpha, "Special primes = limbs of a key-switching digit.")
      .def_prop_ro("dnum", &Params::dnum, "Digits of a key-switching key.")
      .def_prop_ro("chain_limbs", &Params::chain_limbs,
                   "Primes of the chain, without special ones.")
      .def_prop_ro("primes", &Params::primes, "All primes: terminal, main, special.")
      .def_prop_ro(
          "main_primes", [](const Params& p) { return p.spec().main; },
          "Near 2^30, or 2^28 at that scale.")
      .def_prop_ro(
          "terminal_primes", [](const Params& p) { return p.spec().terminal; }, "Near 2^25.")
      .def_prop_ro(
          "special_primes", [](const Params& p) { return p.spec().auxiliary; },
          "The modulus P of key switching.")
      .def_prop_ro("levels", &levels, "(main, terminal) primes in use at each level, 0 first.")
      .def_prop_ro(
          "hamming_weight", [](const Params& p) { return p.spec().hamming_weight; },
          "Non-zero coefficients of the secret; 0: dense ternary.")
      .def_prop_ro(
          "provenance", [](const Params& p) { return p.spec().provenance; },
          "Where the numbers come from.")
      .def_prop_ro("log_p", &Params::log_p, "log2 of the special modulus P.")
      .def_prop_ro("log_pq", &Params::log_pq, "log2 of P times every chain prime.")
      .def_prop_ro("security_bits", &Params::security_bits,
                   "Estimated classical security in bits (SECURITY.md).")
      .def_prop_ro("insecure", &Params::insecure, "Below 128 bits: tests only.")
      .def_prop_ro("scale_deviation", &Params::scale_deviation,
                   "Largest |log2 scale(l) - log_scale| of the normal levels.")
      .def_prop_ro("id", &Params::id, "Content hash carried by every object and file.");
}

u64 key_bytes(const Params& params, nb::handle rotations, bool conjugate, bool relinearisation,
              bool encapsulation, nb::handle bootstrap, std::optional<i64> max_level,
              bool aligned) {
  const ckks::KeyRequest asked =
      key_request(rotations, conjugate, relinearisation, encapsulation, max_level);
  return ckks::key_sizes(params,
                         with_bootstrap(with_aligned(asked, params, aligned), params, bootstrap))
      .bytes;
}

void bind_methods(nb::class_<Params>& c) {
  bind_value_methods(c);
  c.def(
       "scale", [](const Params& p, i64 level) { return p.scale(checked_level(p, level, 0)); },
       "level"_a, "Canonical scale of a level.")
      .def(
          "rescale_ratio",
          [](const Params& p, i64 level) { return p.rescale_ratio(checked_level(p, level, 1)); },
          "level"_a, "Q_level / Q_(level-1): what rescaling divides by.")
      .def(
          "log_q", [](const Params& p, i64 level) { return p.log_q(checked_level(p, level, 0)); },
          "level"_a, "log2 of the modulus of a level.")
      .def(
          "max_value",
          [](const Params& p, i64 level, std::optional<double> scale) {
            return p.max_value(checked_level(p, level, 0), as_scale(scale));
          },
          "level"_a, "scale"_a = nb::none(),
          "Largest |slot| that surely decrypts at a level and scale (default: its canonical one):\n"
          "Q_level / (2 scale), less 2^-10 of it for errors. Larger results may decrypt to "
          "nonsense;\n"
          "client.encrypt(values, bound=...) lets operations refuse them.")
      .def(
          "key_bytes", &key_bytes, nb::kw_only(), "rotations"_a = nb::tuple(),
          "conjugate"_a = false, "relinearisation"_a = true, "encapsulation"_a = false,
          "bootstrap"_a = false, "max_level"_a = nb::none(), "aligned"_a = false,
          nb::sig("def key_bytes(self, *, " CRENEL_KEYS_SIG ") -> int"),
          "Bytes on the device of the keys that Client.evaluation_keys makes of these arguments,\n"
          "exactly (EvaluationKeys.nbytes), without a client, a device or a key. Raises what that\n"
          "raises for arguments that the parameters cannot serve.")
      .def(
          "highest_aligned",
          [](const Params& p, i64 level) { return p.highest_aligned(checked_level(p, level, 0)); },
          "level"_a, nb::sig("def highest_aligned(self, level: int) -> int | None"),
          "The highest level up to this one at which keys of their own save a digit of key\n"
          "switching (`aligned` of Client.evaluation_keys); None where there is none.\n"
          "docs/theory/ckks-primes.md, \"Aligned digits\".")
      .def("explain", &ckks::explain, "What these parameters are, in words and a table of levels.")
      .def("__repr__", [](const Params& p) {
        return cat("<ckks.Params ", p.name().empty() ? std::string("generated") : p.name(),
                   ": log N = ", p.log_n(), ", scale 2^", p.spec().log_scale, ", ",
                   p.normal_top_level(), " levels, log PQ = ", std::lround(p.log_pq()), ", ",
                   static_cast<int>(p.security_bits()), " bits>");
      });
}

}  // namespace

void bind_params(nb::module_& m) {
  nb::class_<Params> c(m, "Params",
                       "Immutable, checked CKKS parameters: docs/theory/ckks-primes.md.");
  bind_factories(c);
  bind_numbers(c);
  bind_methods(c);
  m.def("preset", &preset, "name"_a, nb::kw_only(), "allow_insecure"_a = false,
        "A named parameter set, e.g. 'boot40'. Sets named 'toy-*' need allow_insecure and warn.\n\n"
        "Raises ParameterError with the known names when there is no such set.");
  m.def("preset_names", &Params::preset_names, "Names that `preset` knows.");
  m.def("max_log_pq", &ckks::max_log_pq, "log_n"_a, "bits"_a = 128, "hamming_weight"_a = 0,
        "Largest log2(PQ) with this many bits of classical security, or None.");
  m.def("security_text", &ckks::security_text, "params"_a,
        "The security estimate, and the bound that the parameters are checked against.");
  m.def(
      "level_table",
      [](const Params& p) {
        std::vector<std::vector<std::string>> rows;
        for (const ckks::LevelText& row : ckks::level_table(p))
          rows.emplace_back(row.begin(), row.end());
        return rows;
      },
      "params"_a, "A header, then one row a level, the top first.");
}

}  // namespace crenel::python
