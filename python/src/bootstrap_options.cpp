// Options of a bootstrap by name, and what a bootstrap says about itself.
#include "circuits.h"

namespace crenel::python {
namespace {

using circuits::BootstrapLevels;
using circuits::BootstrapMessage;
using circuits::BootstrapOptions;
using circuits::BootstrapOrder;
using circuits::BootstrapReport;
using circuits::BootstrapValues;

constexpr Names<BootstrapMessage, 3> kMessages{{{"complex", BootstrapMessage::complex},
                                                {"real", BootstrapMessage::real},
                                                {"pair", BootstrapMessage::pair}}};
constexpr Names<BootstrapValues, 4> kValues{{{"unknown", BootstrapValues::unknown},
                                             {"centred", BootstrapValues::centred},
                                             {"non_negative", BootstrapValues::non_negative},
                                             {"constant", BootstrapValues::constant}}};
constexpr Names<BootstrapOrder, 2> kOrders{
    {{"coeff_to_slot_first", BootstrapOrder::coeff_to_slot_first},
     {"slot_to_coeff_first", BootstrapOrder::slot_to_coeff_first}}};

std::string list_text(const std::vector<u32>& values) {
  std::string text;
  for (u32 v : values) text += cat(text.empty() ? "" : ", ", v);
  return cat("[", text, "]");
}

std::vector<u32> as_stages(const std::vector<i64>& stages, const char* name) {
  std::vector<u32> result;
  for (i64 s : stages) result.push_back(as_unsigned<u32>(s, name));
  return result;
}

void construct(BootstrapOptions* self, std::optional<i64> slots, i64 pack,
               std::optional<i64> message_ratio, const std::string& values,
               const std::string& message, const std::string& order, i64 arcsine_degree,
               std::optional<i64> target_level, i64 iterations, std::optional<std::string> keys,
               const std::vector<i64>& coeff_to_slot_stages,
               const std::vector<i64>& slot_to_coeff_stages, std::optional<bool> over_mod_raise,
               bool folded_sums, bool short_raise, bool real_symmetry, bool aligned_keys,
               bool graph) {
  BootstrapOptions o;
  o.slots = as_slots(slots);
  o.pack = as_unsigned<u32>(pack, "pack");
  if (message_ratio) o.message_ratio = as_unsigned<u32>(*message_ratio, "message_ratio");
  o.values = from_name(kValues, values, "values");
  o.message = from_name(kMessages, message, "message");
  o.order = from_name(kOrders, order, "order");
  o.arcsine_degree = as_unsigned<u32>(arcsine_degree, "arcsine_degree");
  if (target_level) o.target_level = as_unsigned<u32>(*target_level, "target_level");
  o.iterations = as_unsigned<u32>(iterations, "iterations");
  if (keys) o.keys = from_name(kKeyModes, *keys, "keys");
  o.coeff_to_slot_stages = as_stages(coeff_to_slot_stages, "coeff_to_slot_stages");
  o.slot_to_coeff_stages = as_stages(slot_to_coeff_stages, "slot_to_coeff_stages");
  o.savings.over_mod_raise = over_mod_raise;
  o.savings.folded_sums = folded_sums;
  o.savings.short_raise = short_raise;
  o.savings.real_symmetry = real_symmetry;
  o.savings.aligned_keys = aligned_keys;
  o.graph = graph;
  new (self) BootstrapOptions(std::move(o));
}

std::string text_of(const BootstrapOptions& v) {
  return cat("slots=", v.slots ? cat(v.slots) : "None", v.pack == 1 ? "" : cat(", pack=", v.pack),
             ", message_ratio=", v.message_ratio ? cat(*v.message_ratio) : "None", ", values='",
             name_of(kValues, v.values), "', message='", name_of(kMessages, v.message),
             "', order='", name_of(kOrders, v.order), "', arcsine_degree=", v.arcsine_degree,
             ", target_level=", v.target_level ? cat(*v.target_level) : "None",
             ", iterations=", v.iterations,
             ", keys=", !v.keys ? "None" : cat("'", name_of(kKeyModes, *v.keys), "'"),
             ", coeff_to_slot_stages=", list_text(v.coeff_to_slot_stages),
             ", slot_to_coeff_stages=", list_text(v.slot_to_coeff_stages), ", over_mod_raise=",
             !v.savings.over_mod_raise   ? "None"
             : *v.savings.over_mod_raise ? "True"
                                         : "False",
             v.savings.folded_sums ? "" : ", folded_sums=False",
             v.savings.short_raise ? "" : ", short_raise=False",
             v.savings.real_symmetry ? "" : ", real_symmetry=False",
             v.savings.aligned_keys ? "" : ", aligned_keys=False",
             ", graph=", v.graph ? "True" : "False");
}

constexpr const char* kOptionsDoc =
    "Parameters\n----------\n"
    "slots : of a ciphertext: a power of two, default all N/2 (N/2 over pack), or as many as the\n"
    "    keys at hand were made for; fewer slots are cheaper\n"
    "pack : how many ciphertexts share one bootstrap, of pack * slots slots: a power of two; call\n"
    "    the bootstrapper with a list. With message='pair' they are twice as many real vectors\n"
    "message_ratio : log2 of q0 / (scale * largest coefficient that is resolved), 1 to\n"
    "    log2(q0 / scale); default: with which the expected largest error for `values` is least;\n"
    "    see the page 'Precision of bootstrapping'\n"
    "values : what the slots are like, all within 1: 'unknown' (anything), 'centred' (around "
    "zero,\n"
    "    without a pattern that repeats), 'non_negative' (spread over [0, 1]), 'constant' (nearly\n"
    "    the same number everywhere)\n"
    "message : what the slots hold: 'complex' (anything), 'real' (real numbers; so is the "
    "result),\n"
    "    'pair' (u + i v of two real vectors, see Bootstrapper.pair)\n"
    "order : 'coeff_to_slot_first' takes a ciphertext of level 0; 'slot_to_coeff_first' takes one\n"
    "    of a higher level (levels.input), and the message ratio holds for slots\n"
    "arcsine_degree : 0 or 3; 3 corrects the sine, and costs levels\n"
    "target_level : level of the result, default the highest; the lower, the fewer primes all "
    "steps\n"
    "    compute with, and the smaller the keys (levels.short_base)\n"
    "iterations : 2 bootstraps the error of the first one too; the scale of the result is then\n"
    "    larger by 2^correction_bits\n"
    "keys : 'hoisted' (a key a baby step and a giant step) or 'minimal' (two keys a transform, "
    "slower);\n"
    "    default what the keys serve, 'hoisted' first\n"
    "coeff_to_slot_stages, slot_to_coeff_stages : butterfly stages of each factor, at most 4 and "
    "3\n"
    "    factors (5 and 3 with OverModRaise); log2(slots) in sum\n"
    "over_mod_raise : raise the modulus beyond that of the level, so that the first factor of\n"
    "    CoeffToSlot takes no level and smaller keys; default wherever it is possible: with\n"
    "    hoisted keys, and parameters with enough special primes\n"
    "folded_sums : make EvalMod's sums in place and read limbs where they lie: the same bits, "
    "moving\n"
    "    less; False is for ablations\n"
    "short_raise : raise the modulus only as far as target_level needs; False is for ablations\n"
    "real_symmetry : with message='real', all slots and CoeffToSlot first, half of the "
    "coefficients\n"
    "    go through EvalMod: a real vector's polynomial is symmetric; False is for ablations, and\n"
    "    for half a bit of precision\n"
    "aligned_keys : of key requests: what happens at aligned levels (Params.highest_aligned) has "
    "keys "
    "of\n"
    "    its own, which save a digit; False is for ablations, and for less memory\n"
    "graph : replay a recorded graph where the device has them; the same bits as eager";

void bind_options(nb::module_& m) {
  const BootstrapOptions d;
  nb::class_<BootstrapOptions> c(
      m, "BootstrapOptions",
      "How a ciphertext is bootstrapped: docs/guide/bootstrapping.md, and\n"
      "docs/theory/bootstrapping.md. Immutable.");
  c.def("__init__", &construct, nb::kw_only(), "slots"_a = nb::none(), "pack"_a = d.pack,
        "message_ratio"_a = nb::none(), "values"_a = name_of(kValues, d.values),
        "message"_a = name_of(kMessages, d.message), "order"_a = name_of(kOrders, d.order),
        "arcsine_degree"_a = d.arcsine_degree, "target_level"_a = nb::none(),
        "iterations"_a = d.iterations, "keys"_a = nb::none(),
        "coeff_to_slot_stages"_a = std::vector<i64>(),
        "slot_to_coeff_stages"_a = std::vector<i64>(), "over_mod_raise"_a = nb::none(),
        "folded_sums"_a = d.savings.folded_sums, "short_raise"_a = d.savings.short_raise,
        "real_symmetry"_a = d.savings.real_symmetry, "aligned_keys"_a = d.savings.aligned_keys,
        "graph"_a = d.graph,
        nb::sig("def __init__(self, *, " CRENEL_BOOTSTRAP_KEYWORDS ") -> None"), kOptionsDoc)
      .def_prop_ro(
          "slots",
          [](const BootstrapOptions& o) { return o.slots ? std::optional(o.slots) : std::nullopt; },
          "Slots of a ciphertext; None: all, over pack.")
      .def_prop_ro(
          "pack", [](const BootstrapOptions& o) { return o.pack; },
          "Ciphertexts that share one bootstrap.")
      .def_prop_ro(
          "message_ratio", [](const BootstrapOptions& o) { return o.message_ratio; },
          "log2 of q0 / (scale * largest coefficient); None: as `values` want it.")
      .def_prop_ro(
          "values", [](const BootstrapOptions& o) { return name_of(kValues, o.values); },
          "What the slots' values are like.")
      .def_prop_ro(
          "message", [](const BootstrapOptions& o) { return name_of(kMessages, o.message); },
          "What the slots hold.")
      .def_prop_ro(
          "order", [](const BootstrapOptions& o) { return name_of(kOrders, o.order); },
          "Which transform comes first.")
      .def_prop_ro(
          "arcsine_degree", [](const BootstrapOptions& o) { return o.arcsine_degree; },
          "Degree of the correction of the sine; 0: none.")
      .def_prop_ro(
          "target_level", [](const BootstrapOptions& o) { return o.target_level; },
          "Level of the result; None: the highest.")
      .def_prop_ro(
          "iterations", [](const BootstrapOptions& o) { return o.iterations; }, "1 or 2.")
      .def_prop_ro(
          "keys",
          [](const BootstrapOptions& o) {
            return o.keys ? std::optional(name_of(kKeyModes, *o.keys)) : std::nullopt;
          },
          "'hoisted' or 'minimal'; None: what the keys serve.")
      .def_prop_ro(
          "coeff_to_slot_stages", [](const BootstrapOptions& o) { return o.coeff_to_slot_stages; },
          "Butterfly stages of each factor of CoeffToSlot; empty: 4 or 5 of about equal size.")
      .def_prop_ro(
          "slot_to_coeff_stages", [](const BootstrapOptions& o) { return o.slot_to_coeff_stages; },
          "Butterfly stages of each factor of SlotToCoeff; empty: 3 of about equal size.")
      .def_prop_ro(
          "over_mod_raise", [](const BootstrapOptions& o) { return o.savings.over_mod_raise; },
          "Does the first factor of CoeffToSlot take no level? None: where that is possible.")
      .def_prop_ro(
          "folded_sums", [](const BootstrapOptions& o) { return o.savings.folded_sums; },
          "Are EvalMod's sums made in place?")
      .def_prop_ro(
          "short_raise", [](const BootstrapOptions& o) { return o.savings.short_raise; },
          "Is the modulus raised to fewer primes where target_level allows it?")
      .def_prop_ro(
          "real_symmetry", [](const BootstrapOptions& o) { return o.savings.real_symmetry; },
          "Does half of a real vector's coefficients go through EvalMod where that is all?")
      .def_prop_ro(
          "aligned_keys", [](const BootstrapOptions& o) { return o.savings.aligned_keys; },
          "Do key requests have keys of their own for aligned levels?")
      .def_prop_ro(
          "graph", [](const BootstrapOptions& o) { return o.graph; }, "Replay a recorded graph?")
      .def(
          "rotations",
          [](const BootstrapOptions& o, const ckks::Params& params) {
            return circuits::bootstrap_key_request(params, o).rotations;
          },
          "params"_a, ReleaseGil(),
          "Rotations that a bootstrap with these options needs keys for; besides, it needs those "
          "for\n"
          "conjugation, relinearisation and encapsulation. Raises ParameterError for options that\n"
          "the parameters cannot serve.")
      .def("__repr__",
           [](const BootstrapOptions& o) { return cat("BootstrapOptions(", text_of(o), ")"); });
}

void bind_report(nb::module_& m) {
  nb::class_<BootstrapLevels>(
      m, "BootstrapLevels", "Levels of one bootstrap: docs/theory/bootstrapping.md, \"Pipeline\".")
      .def_ro("input", &BootstrapLevels::input, "Level that the input must have.")
      .def_ro("raised", &BootstrapLevels::raised, "After ModRaise.")
      .def_ro("eval_mod", &BootstrapLevels::eval_mod, "Start of EvalMod.")
      .def_ro("eval_mod_end", &BootstrapLevels::eval_mod_end, "End of EvalMod.")
      .def_ro("slot_to_coeff", &BootstrapLevels::slot_to_coeff, "Start of SlotToCoeff.")
      .def_ro("output", &BootstrapLevels::output, "Level of the result.")
      .def_ro(
          "short_base", &BootstrapLevels::short_base,
          "The normal level whose primes CoeffToSlot and EvalMod compute with besides their own, "
          "in\n"
          "place of all normal ones; None: all.")
      .def("__repr__", [](const BootstrapLevels& l) {
        return cat("<ckks.BootstrapLevels ", l.input, " -> ", l.output, ">");
      });
  nb::class_<BootstrapReport>(
      m, "BootstrapReport",
      "What a bootstrap needs and delivers, known before anything runs: its\n"
      "errors by docs/theory/precision.md, \"A bootstrap\".")
      .def_ro("levels", &BootstrapReport::levels, "Levels, from the input to the output.")
      .def_prop_ro(
          "keys", [](const BootstrapReport& r) { return name_of(kKeyModes, r.keys); },
          "'hoisted' or 'minimal'.")
      .def_ro("keys_decided", &BootstrapReport::keys_decided,
              "Was that, or the slots, decided by the keys at hand, which serve no other?")
      .def_ro("over_mod_raise", &BootstrapReport::over_mod_raise,
              "Does the first factor of CoeffToSlot take no level?")
      .def_ro("real_symmetry", &BootstrapReport::real_symmetry,
              "Does EvalMod run on half of the coefficients, those of a real vector?")
      .def_ro("raised_limbs", &BootstrapReport::raised_limbs,
              "Primes of a ciphertext after ModRaise.")
      .def_ro("eval_mod_limbs", &BootstrapReport::eval_mod_limbs,
              "Primes of a ciphertext where EvalMod starts.")
      .def_ro("full_raised_limbs", &BootstrapReport::full_raised_limbs,
              "The same of a bootstrap without short_raise.")
      .def_ro("full_eval_mod_limbs", &BootstrapReport::full_eval_mod_limbs,
              "The same of a bootstrap without short_raise.")
      .def_ro(
          "eval_mod_groups", &BootstrapReport::eval_mod_groups,
          "Groups of a device's parts of which each has one of EvalMod's two vectors by itself, of "
          "one ciphertext, by the keys at hand or by such as they would share; 1: parts have limbs "
          "of all there are.")
      .def_ro("slots", &BootstrapReport::slots, "Of the ciphertexts that it takes.")
      .def_ro("pack", &BootstrapReport::pack, "How many of them share one bootstrap.")
      .def_ro("notice", &BootstrapReport::notice,
              "That the keys at hand were made for another bootstrap, or nothing.")
      .def_ro("key_count", &BootstrapReport::key_count, "Evaluation keys of the server.")
      .def_ro("key_bytes", &BootstrapReport::key_bytes, "Their bytes on the device.")
      .def_ro("aligned_keys", &BootstrapReport::aligned_keys,
              "Are some of them for aligned levels? Others serve there, too, with a digit more.")
      .def_ro("plaintext_bytes", &BootstrapReport::plaintext_bytes,
              "Bytes of the transforms' plaintexts on the device.")
      .def_ro("workspace_bytes", &BootstrapReport::workspace_bytes,
              "Bytes of intermediate results of one ciphertext or pack, at most.")
      .def_ro("message_ratio", &BootstrapReport::message_ratio, "log2 of it.")
      .def_ro("ratio_chosen", &BootstrapReport::ratio_chosen,
              "Was it chosen for the values, because the options left it open?")
      .def_prop_ro(
          "message", [](const BootstrapReport& r) { return name_of(kMessages, r.message); },
          "What the slots hold, by the options: 'complex', 'real' or 'pair'.")
      .def_prop_ro(
          "values", [](const BootstrapReport& r) { return name_of(kValues, r.values); },
          "What the slots' values are like, by the options.")
      .def_ro("values_error", &BootstrapReport::values_error,
              "Expected largest error of a slot, for such values within 1.")
      .def_ro("expected_error", &BootstrapReport::expected_error,
              "Expected largest error of a slot, for values uniform in [-1, 1]^2, or in [-1, 1] "
              "where the message is real.")
      .def_ro("expected_rms", &BootstrapReport::expected_rms, "Its root mean square.")
      .def_ro("worst_error", &BootstrapReport::worst_error,
              "Largest error of a slot for any values bounded by 1.")
      .def_ro("log2_failure", &BootstrapReport::log2_failure,
              "log2 of the probability that one bootstrap fails.")
      .def("__str__", &BootstrapReport::text)
      .def("__repr__", [](const BootstrapReport& r) {
        return cat("<ckks.BootstrapReport ", r.key_count, " keys of ", r.key_bytes,
                   " bytes, error ", r.expected_error, ">");
      });
}

}  // namespace

ckks::KeyRequest with_bootstrap(ckks::KeyRequest request, const ckks::Params& params,
                                nb::handle bootstrap) {
  BootstrapOptions options;
  if (nb::isinstance<nb::tuple>(bootstrap) || nb::isinstance<nb::list>(bootstrap)) {
    for (nb::handle one : bootstrap) request = with_bootstrap(std::move(request), params, one);
    return request;
  }
  if (nb::isinstance<nb::bool_>(bootstrap)) {
    if (!nb::cast<bool>(bootstrap)) return request;
  } else if (nb::isinstance<nb::str>(bootstrap)) {
    options.keys = from_name(kKeyModes, nb::cast<std::string>(bootstrap), "bootstrap");
  } else if (nb::isinstance<BootstrapOptions>(bootstrap)) {
    options = nb::cast<BootstrapOptions>(bootstrap);
  } else {
    throw nb::type_error(
        "bootstrap must be a bool, 'hoisted', 'minimal', a BootstrapOptions or several of them");
  }
  return ckks::merge(request, circuits::bootstrap_key_request(params, options));
}

ckks::KeyRequest key_request(nb::handle rotations, bool conjugate, bool relinearisation,
                             bool encapsulation, std::optional<i64> max_level) {
  ckks::KeyRequest request{{}, conjugate, relinearisation, encapsulation};
  if (max_level) request.max_level = as_unsigned<u32>(*max_level, "max_level");
  if (PyMapping_Check(rotations.ptr()) && nb::hasattr(rotations, "items")) {
    std::map<i64, i64> levels;
    for (nb::handle item : rotations.attr("items")()) {
      std::pair<i64, i64> step;
      if (!nb::try_cast(item, step))
        throw nb::type_error("rotations: a mapping must lead from steps to levels, integers both");
      levels.insert(step);
    }
    for (const auto& [steps, level] : levels) {
      request.rotations.push_back(steps);
      request.rotation_levels.emplace(steps, as_unsigned<u32>(level, "level"));
    }
  } else if (!nb::try_cast(rotations, request.rotations)) {
    throw nb::type_error("rotations must be a sequence of integers, or a mapping to levels");
  }
  return request;
}

ckks::KeyRequest with_aligned(ckks::KeyRequest request, const ckks::Params& params, bool aligned) {
  if (!aligned) return request;
  const u32 usual = request.max_level.value_or(params.normal_top_level());
  std::optional<u32> highest;  // of the keys that are asked for, if any
  const auto up_to = [&](u32 level) {
    highest = std::max(highest.value_or(0), level);
    return params.highest_aligned(level);
  };
  for (i64 steps : request.rotations) {
    const auto own = request.rotation_levels.find(steps);
    if (const auto level = up_to(own == request.rotation_levels.end() ? usual : own->second))
      request.aligned_rotations.emplace(steps, *level);
  }
  if (request.conjugate) request.aligned_conjugation = up_to(usual);
  if (request.relinearisation) request.aligned_relinearisation = up_to(usual);
  if (highest && request.aligned_rotations.empty() && !request.aligned_conjugation &&
      !request.aligned_relinearisation)
    throw ParameterError(cat("aligned keys for levels up to ", *highest,
                             ", where no level is aligned (Params.highest_aligned)"),
                         {{"aligned", true}, {"max_level", *highest}});
  return request;
}

void bind_bootstrap_options(nb::module_& m) {
  bind_options(m);
  bind_report(m);
}

}  // namespace crenel::python
