#include "random/gaussian.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace crenel::random {

GaussianSource::GaussianSource(const Seed& seed, Nonce nonce, double std)
    : state_(chacha20_state(seed, nonce)), std_(std) {}

GaussianSource::~GaussianSource() {
  secure_zero(&state_, sizeof state_);
  secure_zero(&block_, sizeof block_);
}

u64 GaussianSource::word() {
  if (next_ == 16) {
    block_ = chacha20_block(state_, counter_++);
    next_ = 0;
  }
  const u64 bits = (static_cast<u64>(block_.word[next_]) << 32) | block_.word[next_ + 1];
  next_ += 2;
  return bits;
}

// The binary exponent is geometric: zeros of one word, and of a second one where the first is zero.
// Below 2^-128 the number is as good as that: it is reached with that probability.
double GaussianSource::uniform() {
  const u64 first = word(), second = word();
  const int zeros = first ? std::countl_zero(first) : 64 + std::countl_zero(second);
  const double mantissa = 1.0 + static_cast<double>(word() >> 12) * 0x1p-52;  // in [1, 2)
  return std::ldexp(mantissa, -1 - zeros);
}

i64 GaussianSource::operator()() {
  const double radius = std::sqrt(-2.0 * std::log(uniform()));
  const double turn = static_cast<double>(word() >> 11) * 0x1p-53;
  return std::llrint(std_ * radius * std::cos(2.0 * std::numbers::pi * turn));
}

}  // namespace crenel::random
