// Evaluation keys that are made and written one at a time: the file of keys that are made at once.
#include <gtest/gtest.h>

#include "ckks/objects.h"
#include "crenel/ckks/serialize.h"
#include "fuzz/wire_files.h"
#include "support/random.h"

namespace crenel::test {
namespace {

using ckks::EvaluationKeyStream;
using ckks::KeyRequest;

/// A client whose randomness and name are given.
ckks::Client client_of(const ckks::Context& context, const random::Seed& seed) {
  rlwe::SecretKey secret(context.state().ring, random::SecretSource(seed),
                         context.params().spec().hamming_weight);
  const SecretKeyId id(SecretKeyId::Bytes{1, 2, 3});
  return ckks::Client(
      std::make_shared<ckks::Client::State>(ckks::Client::State{context, std::move(secret), id}));
}

Bytes streamed(EvaluationKeyStream& keys) {
  Bytes parts;
  u32 count = 0;
  for (Bytes part = keys.next(); !part.empty(); part = keys.next(), ++count)
    parts.insert(parts.end(), part.begin(), part.end());
  EXPECT_EQ(count, keys.count());
  Bytes file = keys.head();
  file.insert(file.end(), parts.begin(), parts.end());
  EXPECT_EQ(file.size(), keys.file_bytes());
  return file;
}

TEST(EvaluationKeyStream, GivesTheFileOfKeysMadeAtOnce) {
  const ckks::Context context(ckks::Params::preset("toy-boot40", true), "cpu");
  KeyRequest none, levels, all;
  none.relinearisation = false;
  levels.rotations = {3, -1, 0, 7};
  levels.rotation_levels = {{3, 2}, {7, 0}};
  levels.max_level = 5;
  levels.relinearisation_level = 1;
  all.rotations = {1};
  all.conjugate = all.encapsulation = true;
  all.encapsulation_rotations = {0, 3};
  const random::Seed seed = random::seed_from_os();
  for (const KeyRequest& request : {none, levels, all, KeyRequest{}}) {
    ckks::Client one = client_of(context, seed), other = client_of(context, seed);
    EvaluationKeyStream keys(one, request);
    const Bytes expected = ckks::to_bytes(context, other.evaluation_keys(request));
    EXPECT_TRUE(streamed(keys) == expected);
    EXPECT_TRUE(keys.next().empty());
    // What a client makes after them is the same, too.
    const std::vector<double> values{0.5, -0.25};
    EXPECT_TRUE(ckks::to_bytes(context, one.encrypt(values)) ==
                ckks::to_bytes(context, other.encrypt(values)));
  }
}

TEST(EvaluationKeyStream, RefusesWhatKeyGenerationRefuses) {
  const ckks::Context& context = wire_context();
  ckks::Client client = context.keygen();
  KeyRequest deep, sparse;
  deep.max_level = context.params().max_level() + 1;
  sparse.encapsulation = true;
  EXPECT_THROW(EvaluationKeyStream(client, deep), ParameterError);
  EXPECT_THROW(client.evaluation_keys(sparse), UnsupportedError);
  EXPECT_THROW(EvaluationKeyStream(client, sparse), UnsupportedError);
}

TEST(EvaluationKeyStream, HasItsHeadWhenAllKeysAreMade) {
  const ckks::Context& context = wire_context();
  KeyRequest request;
  request.rotations = {1, 2};
  const ckks::Client client = context.keygen();
  EvaluationKeyStream keys(client, request);
  for (u32 made = 0; made < keys.count(); ++made) {
    try {
      keys.head();
      ADD_FAILURE() << "a head after " << made << " keys";
    } catch (const StateError& e) {
      EXPECT_EQ(e.field("found"), cat(made));
      EXPECT_EQ(e.field("expected"), cat(keys.count()));
    }
    EXPECT_FALSE(keys.next().empty());
  }
  EXPECT_NO_THROW(keys.head());
}

}  // namespace
}  // namespace crenel::test
