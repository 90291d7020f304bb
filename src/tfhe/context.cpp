#include "crenel/tfhe/context.h"

#include "crenel/core/error.h"
#include "tfhe/integer/circuit_cache.h"
#include "tfhe/objects.h"
#include "tfhe/params/plan.h"

namespace crenel::tfhe {

Context::State::State(Params params_, std::shared_ptr<device::Device> device_)
    : params(std::move(params_)),
      plan(plan_of(params)),
      device(std::move(device_)),
      circuits(std::make_shared<radix::CircuitCache>()) {
  if (!device) throw ParameterError("context without a device, expected one", {{"device", "none"}});
  stream = device->shared_stream();
  auto& backend = device::backend_of(*device);
  torus = backend.make_torus_kernels(plan);
  poly = backend.make_poly_kernels(std::make_shared<const ring::Ring>(plan.log_n, plan.primes));
}

device::TorusKernels& Context::State::variant(u32 log_modulus, u32 slots) const {
  if (log_modulus == plan.log_lwe_modulus && slots == plan.slots) return *torus;
  const std::lock_guard lock(mutex_);
  auto& entry = variants_[{log_modulus, slots}];
  if (!entry) {
    device::TorusPlan other = plan;
    other.log_lwe_modulus = log_modulus;
    other.slots = slots;
    entry = device::backend_of(*device).make_torus_kernels(other);
  }
  return *entry;
}

device::TorusKernels& Context::State::stepped(u32 step) const {
  if (step == plan.group) return *torus;
  const std::lock_guard lock(mutex_);
  auto& entry = stepped_[step];
  if (!entry) {
    device::TorusPlan other = plan;
    other.group = step;
    entry = device::backend_of(*device).make_torus_kernels(other);
  }
  return *entry;
}

void expect_device(const device::Buffer& payload, const device::Device& device, const char* what) {
  const device::Device& home = payload.stream()->device();
  const auto &here = device.info().name, &there = home.info().name;
  if (here != there)
    throw StateError(cat(what, " on device ", there, ", context on ", here),
                     {{"found", there}, {"expected", here}});
  if (device.info().kind == device::Kind::cuda && &home != &device)
    throw StateError(cat(what, " of another Device object of ", here,
                         "; make the contexts share one Device, or pass it as bytes"),
                     {{"found", "another Device object"}, {"expected", "the context's"}});
}

void expect_home(const std::string& params_id, const device::Buffer& payload,
                 const Context::State& context, const char* what) {
  if (params_id != context.params.id())
    throw StateError(cat(what, " of parameters ", params_id, ", context has ", context.params.id()),
                     {{"found", params_id}, {"expected", context.params.id()}});
  expect_device(payload, *context.device, what);
}

Context::Context(const Params& params, const std::string& device)
    : Context(params, device::open(device)) {}
Context::Context(const Params& params, std::shared_ptr<device::Device> device)
    : state_(std::make_shared<State>(params, std::move(device))) {}

const Params& Context::params() const { return state_->params; }
device::Device& Context::device() const { return *state_->device; }
device::Stream& Context::stream() const { return *state_->stream; }
void Context::synchronize() const { stream().synchronize(); }

Client Context::keygen() const {
  return Client(std::make_shared<Client::State>(Client::State{
      *this,
      SecretKeys(state_->plan, *state_->stream, *state_->poly, random::SecretSource::from_os())}));
}

}  // namespace crenel::tfhe
