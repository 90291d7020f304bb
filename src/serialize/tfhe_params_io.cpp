// TFHE parameters to files and back: the numbers of the Spec, checked again when loaded.
#include "device/torus/plan.h"
#include "serialize/reject.h"
#include "serialize/tfhe_io.h"

namespace crenel::tfhe {
namespace {

using namespace serialize;

constexpr u64 kMaxU32 = ~u32{0};
/// Of the fields of a set and of what its id covers.
constexpr u64 kParamsVersion = 2;
/// ... with groups of secret bits, which have fields of their own.
constexpr u64 kGroupsVersion = 3;
constexpr const char* kVersionField = "params_version";
constexpr const char* kPaths[] = {"gadget", "raising"};
constexpr const char* kSecrets[] = {"ternary", "binary"};

/// The value whose name the metadata holds.
template <class T>
T choice(DocumentReader& file, const std::string& name, const char* const (&names)[2]) {
  const std::string& found = file.text(name);
  for (u8 i = 0; i < 2; ++i)
    if (found == names[i]) return static_cast<T>(i);
  file.refuse(name, cat("'", names[0], "' or '", names[1], "'"));
}

Arithmetic read_arithmetic(DocumentReader& file) {
  try {
    return arithmetic_from_string(file.text("arithmetic"));
  } catch (const ParameterError& error) {
    file.refuse("arithmetic", error.field("expected"));
  }
}

u32 word(DocumentReader& file, const std::string& name) {
  return static_cast<u32>(file.integer(name, 0, kMaxU32));
}

// Version 1 had no such field, and ids that left out what a set claims of itself.
u64 read_version(DocumentReader& file) {
  if (!file.file().metadata().contains(kVersionField))
    throw SerializationError(
        cat("cannot load params: a file of version 1, whose id does not cover what it claims, "
            "expected version ",
            kParamsVersion, "; write the set anew with to_bytes"),
        {{"where", kVersionField}, {"found", 1}, {"expected", kParamsVersion}});
  return file.integer(kVersionField, kParamsVersion, kGroupsVersion);
}

Spec read_spec(DocumentReader& file, u64 version) {
  Spec spec;
  if (version == kGroupsVersion) {
    spec.group = static_cast<u32>(file.integer("group", 1, device::kMaxGroup));
    spec.step = word(file, "step");
    if (file.file().metadata().contains("key_group"))
      spec.key_group = static_cast<u32>(file.integer("key_group", 1, device::kMaxGroup));
    if (file.file().metadata().contains("differences")) spec.differences = file.flag("differences");
    spec.switch_digits = word(file, "switch_digits");
  }
  spec.name = file.text("name");
  spec.description = file.text("description");
  spec.provenance = file.text("provenance");
  spec.lwe_dim = LweDim(word(file, "lwe_dim"));
  spec.glwe_dim = GlweDim(word(file, "glwe_dim"));
  spec.poly_size = PolySize(word(file, "poly_size"));
  spec.log_lwe_modulus = word(file, "log_lwe_modulus");
  spec.path = choice<NoisePath>(file, "path", kPaths);
  spec.secret = choice<LweSecret>(file, "secret", kSecrets);
  spec.log_modulus = word(file, "log_modulus");
  spec.log_raised_modulus = word(file, "log_raised_modulus");
  spec.base_log = DecompBaseLog(word(file, "base_log"));
  spec.log_switch_modulus = word(file, "log_switch_modulus");
  spec.switch_base_log = DecompBaseLog(word(file, "switch_base_log"));
  spec.plain_modulus = word(file, "plain_modulus");
  spec.padded = file.flag("padded");
  spec.max_norm2 = optional_real(file, "max_norm2");
  spec.arithmetic = read_arithmetic(file);
  spec.security_bits = optional_real(file, "security_bits");
  spec.paper = file.flag("paper");
  return spec;
}

[[noreturn]] void refuse_set(const Error& error) {
  std::vector<ErrorField> fields{
      {"where", "params"}, {"found", error.what()}, {"expected", "a valid parameter set"}};
  fields.insert(fields.end(), error.fields().begin(), error.fields().end());
  throw SerializationError(cat("cannot load params: ", error.what()), std::move(fields));
}

Params checked(Spec spec, u32 slots, bool allow_insecure) {
  try {
    return Params::from_spec(std::move(spec), allow_insecure).with_slots(SlotCount(slots));
  } catch (const ParameterError& error) {
    refuse_set(error);
  } catch (const UnsupportedError& error) {
    refuse_set(error);
  }
}

}  // namespace

std::vector<u8> to_bytes(const Params& params) {
  const Spec& spec = params.spec();
  DocumentWriter file(kind::kTfheParams, params.id());
  file.integer(kVersionField, spec.group != 0 ? kGroupsVersion : kParamsVersion);
  if (spec.group != 0) {
    file.integer("group", spec.group);
    file.integer("step", spec.step);
    if (spec.key_group != 0) file.integer("key_group", spec.key_group);
    if (spec.differences) file.flag("differences", true);
    file.integer("switch_digits", spec.switch_digits);
  }
  file.text("name", spec.name);
  file.text("description", spec.description);
  file.text("provenance", spec.provenance);
  file.integer("lwe_dim", spec.lwe_dim.value);
  file.integer("glwe_dim", spec.glwe_dim.value);
  file.integer("poly_size", spec.poly_size.value);
  file.integer("log_lwe_modulus", spec.log_lwe_modulus);
  file.text("path", kPaths[static_cast<u8>(spec.path)]);
  file.text("secret", kSecrets[static_cast<u8>(spec.secret)]);
  file.integer("log_modulus", spec.log_modulus);
  file.integer("log_raised_modulus", spec.log_raised_modulus);
  file.integer("base_log", spec.base_log.value);
  file.integer("log_switch_modulus", spec.log_switch_modulus);
  file.integer("switch_base_log", spec.switch_base_log.value);
  file.integer("plain_modulus", spec.plain_modulus);
  file.flag("padded", spec.padded);
  write_optional_real(file, "max_norm2", spec.max_norm2);
  file.text("arithmetic", to_string(params.arithmetic()));
  write_optional_real(file, "security_bits", spec.security_bits);
  file.flag("paper", spec.paper);
  file.integer("slots", params.slots().value);
  file.allocate();
  return file.finish();
}

Params params_from_bytes(std::span<const u8> bytes, bool allow_insecure, const LoadLimits& limits,
                         std::string* migration) {
  DocumentReader file(bytes, kind::kTfheParams, limits);
  Spec spec = read_spec(file, read_version(file));
  const std::string name = spec.name;
  const u32 slots = static_cast<u32>(file.integer("slots", 1, 16));
  file.text("params_id");  // compared when the parameters are known
  file.require_memory(0);
  file.finish();
  Params params = checked(std::move(spec), slots, allow_insecure);
  file.require_params(params.id());
  if (migration != nullptr) {
    *migration = {};
    if (name != params.name())
      *migration = cat("the set of this file, ", quote(name), ", is called ", quote(params.name()),
                       " now: tfhe.preset(", quote(params.name()), ") has it, while ", quote(name),
                       " names another set or is gone with a later version");
  }
  return params;
}

}  // namespace crenel::tfhe
