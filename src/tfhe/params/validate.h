// Checks of a Spec.
#pragma once

#include <string>
#include <vector>

#include "crenel/tfhe/params.h"

namespace crenel::tfhe {

inline constexpr u32 kMaxSlots = 16;

std::vector<std::string> validate_spec(const Spec& spec);

}  // namespace crenel::tfhe
