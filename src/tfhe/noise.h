// What is known of the noise of an array's messages: linear forms over independent sources, so that
// a sum of one ciphertext with itself, a copy of it or anything made from it counts what it is.
// docs/theory/tfhe.md, "Noise that ciphertexts carry".
#pragma once

#include <memory>
#include <vector>

#include "crenel/core/types.h"

namespace crenel::tfhe {

/// One encryption, or one batch of bootstraps: errors of this variance, independent from group to
/// group of messages and from every other source. Its address is its identity.
struct NoiseSource {
  double variance = 0;
  /// Errors [group j, group (j + 1)) may depend on each other in any way: results of one rotation.
  u32 group = 1;
};

/// The noise of `size` messages, in units of the integers of their modulus. Host metadata.
class Noise {
 public:
  /// Errors factor * e_(offset + i) of the i-th message, e those of the source.
  struct Part {
    std::shared_ptr<const NoiseSource> source;
    u64 offset = 0;
    double factor = 1;
  };
  /// More parts than this are summed up to a standard deviation that may depend on anything.
  static constexpr std::size_t kMaxParts = 64;

  Noise() = default;
  /// None at all: of known messages.
  explicit Noise(u64 size);
  /// Of a new source, in groups of so many messages.
  Noise(u64 size, double variance, u32 group = 1);

  u64 size() const;
  /// The largest of all messages.
  double variance() const;
  Noise slice(u64 first, u64 count) const;
  /// That of `other` behind this.
  void append(const Noise& other);
  /// Message by message; equal sizes.
  void add(const Noise& other, double factor);
  Noise scaled(double factor) const;

 private:
  struct Segment {
    u64 size = 0;
    std::vector<Part> parts;
    double dependent = 0;  ///< standard deviation of what may depend on any other noise

    double variance() const;
    std::vector<std::size_t> linked_parts(std::size_t i) const;
    Segment part(u64 first, u64 count) const;
    void add(const Segment& other, double factor);
    void limit();
  };
  /// Cuts so that segments end where those of `other` do.
  void cut_like(const Noise& other);

  std::vector<Segment> segments_;
};

}  // namespace crenel::tfhe
