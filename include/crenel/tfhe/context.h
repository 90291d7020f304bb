// Context and Client of TFHE: parameters on a device, and the holder of the secret keys.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "crenel/tfhe/ciphertext.h"
#include "crenel/tfhe/lut.h"
#include "crenel/tfhe/params.h"

namespace crenel::tfhe {

class Client;
class EvaluationKeys;
class Evaluator;

/// Batches of up to `rotations` take steps of `step` secret bits.
struct StepRule {
  u64 rotations = 0;
  u32 step = 0;
  bool operator==(const StepRule&) const = default;
};
/// Rules by ascending rotations; batches beyond the last one's go by it.
using StepTable = std::vector<StepRule>;

/// What an evaluator may do beyond the ordinary.
struct EvaluatorOptions {
  /// log2 of the largest failure probability that a bootstrap may have; an operation that would
  /// exceed it is refused. Unset: what the set promises (Params::p_fail_log2), or 2^-128 where it
  /// promises more. At most 0, which refuses nothing.
  std::optional<double> max_p_fail_log2;
  /// Steps that batches may be rotated by, beside the parameters' own: keys for each are made of
  /// the ones that were sent and kept with them (EvaluationKeys::bytes). Which one a batch takes is
  /// decided by its number of rotations alone, so that results have the same bits on every device
  /// that goes by the same table; they differ, within the noise, from those of another step. The
  /// noise of results is that of the step with the most.
  std::vector<u32> steps = {};
  /// Which batch takes which of them. Empty: as measured (measured_step_table), where there are
  /// several.
  StepTable step_table = {};
};

/// Parameters on a device. Cheap to copy: the state (kernels, and what was brought to the device by
/// content) is shared by all clients and evaluators, and safe to use from several threads; another
/// client's evaluation keys cost their own bytes and nothing else.
///
/// Contexts of one Device object queue on its one stream, and objects of contexts with equal
/// parameters work together. Objects of another Device object do so on `ref` and `cpu`; on CUDA
/// they are refused (StateError).
class Context {
 public:
  struct State;
  /// On a device opened for this context alone. Throws DeviceError; UnsupportedError where the
  /// device cannot hold these parameters.
  explicit Context(const Params& params, const std::string& device = "auto");
  /// On a device that other contexts of any scheme may share. ParameterError for none.
  Context(const Params& params, std::shared_ptr<device::Device> device);

  /// What it was made of: parameters, and the device that kernels and keys are on.
  const Params& params() const;
  device::Device& device() const;
  device::Stream& stream() const;  ///< the device's shared one
  /// Waits until everything queued so far is done. DeviceError when some of it failed.
  void synchronize() const;

  /// New secret keys with randomness of the operating system.
  Client keygen() const;
  /// ParameterError for options that are no bound on a probability, for steps that do not divide
  /// the keys' group and tables that are none; OutOfMemoryError, before any is made, where keys of
  /// further steps do not fit; KeyMissingError for steps without keys.
  Evaluator evaluator(EvaluationKeys keys, const EvaluatorOptions& options = {}) const;

  /// Tables for messages modulo p = plain_modulus (0: the set's), checked and on the device. With
  /// several tables (or an index) message i takes luts[index[i]]. Throws what Evaluator::lut does.
  PreparedLut prepare(std::span<const Lut> luts, std::span<const u32> index = {},
                      u32 plain_modulus = 0) const;

  const State& state() const { return *state_; }
  const std::shared_ptr<const State>& shared_state() const { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

/// What a server holds: bootstrapping and key-switching keys, no secret. Cheap to copy.
class EvaluationKeys {
 public:
  struct Data;
  explicit EvaluationKeys(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  u64 bytes() const;       ///< on the device, those of further steps that evaluators asked for too
  u64 wire_bytes() const;  ///< serialised (uniform halves are seeds)
  /// Whether the keys of KeyRequest's fields are there.
  bool has_packing() const;
  bool has_lists() const;
  /// Steps that keys are there for, ascending: the parameters' own, and those that evaluators asked
  /// for. Empty for sets without groups.
  std::vector<u32> steps() const;
  /// Of the client that made them.
  SecretKeyId secret_key_id() const;
  const Data* data() const { return data_.get(); }

 private:
  std::shared_ptr<const Data> data_;
};

/// Which evaluation keys to make beside those of the bootstrap.
struct KeyRequest {
  bool packing = false;  ///< for Evaluator::pack: from messages under slot 0's key to r a mask
  /// For Evaluator::compress in StoredForm::lists, of sets with groups and one polynomial.
  bool lists = false;
};

/// EvaluationKeys::bytes() of what a request makes on a context's device, exact.
u64 key_bytes(const Context& context, const KeyRequest& request = {});
/// EvaluationKeys::wire_bytes() of it.
u64 key_wire_bytes(const Context& context, const KeyRequest& request = {});

/// Holder of the secret. Any number of threads may encrypt and decrypt with one client.
class Client {
 public:
  struct State;
  explicit Client(std::shared_ptr<State> state);
  Client(Client&&) noexcept;
  ~Client();

  /// The context whose parameters and device it has.
  const Context& context() const;
  /// The public name of the secret keys, which keys and ciphertexts made with them carry.
  const SecretKeyId& secret_key_id() const;
  /// Messages modulo p = plain_modulus (0: the set's), each encoded as m q / p. Where p is larger
  /// than the set's and than 8, the gates' largest, the ciphertext stands modulo a larger power of
  /// two, which leaves a message the room that it has at the set's p (OpenFHE's 2 beta p): for
  /// floor, sign and decompose. ParameterError for no messages, a message >= p (>= p / 2 with
  /// padding), p odd, p no power of two above 2^15, or such that 2 beta p exceeds Q_KS (the set's
  /// security is stated for nothing larger) or 2^32.
  /// `bound`: what Ciphertext::bound() says of the result, 0 to say nothing; ParameterError for a
  /// message that is not below it.
  Ciphertext encrypt(std::span<const u64> messages, u32 plain_modulus = 0, u32 bound = 0);
  /// round(p phase / q) modulo p of each message. StateError for another context's or other secret
  /// keys' ciphertext.
  std::vector<u64> decrypt(const Ciphertext& ciphertext) const;
  /// log2 of the bound on the probability that decrypt gets a message wrong, by the noise that the
  /// ciphertext carries; that of a loaded one is what its file claims. No secret enters. -infinity
  /// without noise.
  double p_fail_log2(const Ciphertext& ciphertext) const;
  /// Signed distance of each phase from its message's place, in units of 1/q: for noise
  /// measurements. ParameterError for another number of messages or one >= p.
  std::vector<i64> phase_errors(const Ciphertext& ciphertext, std::span<const u64> messages) const;
  /// OutOfMemoryError, before any key is made, where they are more than the device has.
  EvaluationKeys evaluation_keys(const KeyRequest& request = {});

  /// The holder of one slot's secret keys alone: a context with slots = 1 on the same Device
  /// object, whose messages Evaluator::pack takes (slot 0, which has this client's
  /// secret_key_id()). ParameterError for a slot that does not exist.
  Client single(u32 slot = 0) const;

  /// The secret keys as an explicit export, a file like the others (docs/reference/file-format.md):
  /// guard these bytes, and wipe them.
  std::vector<u8> export_secret_key() const;
  /// The client with the same secret_key_id(). SerializationError for bytes that no export for
  /// these parameters gives: damaged ones, coefficients out of range, an LWE secret or a polynomial
  /// with numbers of 1 and -1 that no key generation gives, and the bare coefficients that were
  /// exported before files of version 2.
  static Client import_secret_key(const Context& context, std::span<const u8> bytes);

  const State& state() const { return *state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace crenel::tfhe
