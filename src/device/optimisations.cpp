#include "crenel/device/optimisations.h"

#include "crenel/core/error.h"
#include "device/backend.h"

namespace crenel::device {
namespace {

struct Entry {
  const char* name;
  const char* meaning;
};

// In the order of the enumeration.
constexpr Entry kEntries[kOptimisations] = {
    {"tensor", "the products of two ciphertexts in one launch"},
    {"tensor_square", "the products of a square in one launch, each input read once"},
    {"doubling", "2 x^2 + constant at the end of a square"},
    {"linear_combination", "sums of multiples in one launch, partial sums in registers"},
    {"plain_sums", "sums of products with plaintexts in one launch"},
    {"automorphism_add", "a rotation added to a sum as it is read"},
    {"mod_up", "ModUp scales in the inverse transform and copies own limbs in the last pass"},
    {"key_multiply", "products with a key and their sum in one launch"},
    {"key_switch", "products with the key in the last transform pass of ModUp"},
    {"lift", "P times another ciphertext added in that pass"},
    {"division", "ModDown and rescale end in the last transform pass"},
    {"division_addend", "what is added to a quotient is added in that pass"},
    {"hoisted_sums", "baby steps of a linear transform are never stored"},
    {"shared_keys", "a word of a key is read once for several ciphertexts of a batch"},
    {"rotated_rows", "a rotation where the key switch before it writes its result"},
    {"product_rows", "products that are relinearised are made by the passes that read them"},
    {"divided_rows",
     "what a division drops leaves the key switch before it as its inverse "
     "transform begins"},
    {"held_sources", "a block of a base conversion reads its sources once"},
    {"conversion_shape", "destinations a block of a base conversion by the size of the grid"},
    {"convert_columns", "a base conversion and the column pass of its results in one launch"},
    {"multi_polynomial", "all digits, and all components of a division, in the launches of one"},
    {"entries_apart", "real and imaginary parts go through EvalMod on different parts of a device"},
    {"graphs", "recordings are replayed as graphs"},
    {"launch_overlap", "a launch begins while the one before it ends"},
    {"hoisting", "baby steps of a linear transform share one ModUp"},
    {"merged_rescale", "ModDown and the rescale after it are one division"},
};

}  // namespace

const char* name_of(Optimisation optimisation) { return kEntries[u32(optimisation)].name; }
const char* meaning_of(Optimisation optimisation) { return kEntries[u32(optimisation)].meaning; }

Optimisation optimisation_of(const std::string& name) {
  std::string known;
  for (u32 i = 0; i < kOptimisations; ++i) {
    if (name == kEntries[i].name) return static_cast<Optimisation>(i);
    known += cat(i == 0 ? "" : ", ", kEntries[i].name);
  }
  throw ParameterError(cat("optimisation \"", name, "\", expected one of ", known),
                       {{"optimisation", name}, {"expected", known}});
}

// Devices that are no backends, as tests make them, have no kernels to choose between.
Optimisations optimisations(const Device& device) {
  const auto* backend = dynamic_cast<const Backend*>(&device);
  return backend != nullptr ? backend->optimisations() : Optimisations();
}

void set_optimisations(Device& device, Optimisations wanted) {
  backend_of(device).optimisations_.store(wanted.bits(), std::memory_order_relaxed);
  for (const auto& part : device.parts()) set_optimisations(*part, wanted);
}

std::shared_ptr<Device> open(const std::string& name, Optimisations wanted) {
  auto device = open(name);
  set_optimisations(*device, wanted);
  return device;
}

}  // namespace crenel::device
