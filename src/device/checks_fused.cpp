#include "device/checks.h"

namespace crenel::device::checks {
namespace {

template <class W>
void eval_view(const char* op, const ring::Ring<W>& ring, const ConstView<W>& v, const char* name) {
  view<W>(op, ring, v, name);
  domain(op, v.domain, Domain::eval, name);
}

// A switching key with enough gadget digits.
template <class W>
void switching_key(const char* op, const ring::Ring<W>& ring, const ConstView<W>& key, u32 digits) {
  eval_view<W>(op, ring, key, "key");
  equal(op, "components of the key", key.shape.components, 2);
  limbs(op, key.limbs, LimbSet::range(0, ring.prime_count()), "key");
  if (key.shape.batch < digits) equal(op, "digits of the key", key.shape.batch, digits);
}

}  // namespace

template <class W>
void tensor(const ring::Ring<W>& ring, const ConstView<W>& out, const ConstView<W>& a,
            const ConstView<W>& b) {
  const char* op = "tensor";
  eval_view<W>(op, ring, out, "output");
  equal(op, "components of the output", out.shape.components, 3);
  for (const auto* v : {&a, &b}) {
    eval_view<W>(op, ring, *v, "input");
    equal(op, "components of an input", v->shape.components, 2);
    equal(op, "batch of an input", v->shape.batch, out.shape.batch);
    limbs(op, v->limbs, out.limbs, "input");
    overlap<W>(op, out, *v, false);
  }
}

template <class W>
void mod_up(const ring::Ring<W>& ring, const ConstView<W>& out, const ConstView<W>& in,
            const rns::ModUp<W>& table) {
  const char* op = "mod_up";
  eval_view<W>(op, ring, out, "output");
  eval_view<W>(op, ring, in, "input");
  equal(op, "components of the input", in.shape.components, 1);
  equal(op, "components of the output", out.shape.components, table.digits.size());
  equal(op, "batch of the input", in.shape.batch, out.shape.batch);
  limbs(op, in.limbs, table.input, "input");
  limbs(op, out.limbs, table.output, "output");
  overlap<W>(op, out, in, false);
}

template <class W>
void key_multiply(const ring::Ring<W>& ring, const ConstView<W>& out, const ConstView<W>& digits,
                  const ConstView<W>& key, u32 first_digit) {
  const char* op = "key_multiply";
  eval_view<W>(op, ring, out, "output");
  eval_view<W>(op, ring, digits, "digits");
  equal(op, "components of the output", out.shape.components, 2);
  equal(op, "batch of the digits", digits.shape.batch, out.shape.batch);
  limbs(op, digits.limbs, out.limbs, "digits");
  switching_key<W>(op, ring, key, first_digit + digits.shape.components);
  overlap<W>(op, out, digits, false);
  overlap<W>(op, out, key, false);
}

template <class W>
void key_switch(const ring::Ring<W>& ring, const ConstView<W>& out, const ConstView<W>& in,
                const rns::ModUp<W>& table, const ConstView<W>& key, u32 first_digit) {
  const char* op = "key_switch";
  eval_view<W>(op, ring, out, "output");
  eval_view<W>(op, ring, in, "input");
  equal(op, "components of the input", in.shape.components, 1);
  equal(op, "components of the output", out.shape.components, 2);
  equal(op, "batch of the input", in.shape.batch, out.shape.batch);
  limbs(op, in.limbs, table.input, "input");
  limbs(op, out.limbs, table.output, "output");
  switching_key<W>(op, ring, key, first_digit + static_cast<u32>(table.digits.size()));
  overlap<W>(op, out, in, false);
  overlap<W>(op, out, key, false);
}

template <class W>
void divide(const ring::Ring<W>& ring, const ConstView<W>& out, const ConstView<W>& in,
            const rns::Divide<W>& table, const ConstView<W>* addend) {
  const char* op = "divide";
  eval_view<W>(op, ring, out, "output");
  eval_view<W>(op, ring, in, "input");
  equal(op, "components of the input", in.shape.components, out.shape.components);
  equal(op, "batch of the input", in.shape.batch, out.shape.batch);
  limbs(op, in.limbs, table.input, "input");
  limbs(op, out.limbs, table.output, "output");
  overlap<W>(op, out, in, false);
  if (addend == nullptr) return;
  eval_view<W>(op, ring, *addend, "addend");
  equal(op, "batch of the addend", addend->shape.batch, out.shape.batch);
  limbs(op, addend->limbs, out.limbs, "addend");
  if (addend->shape.components > out.shape.components)
    equal(op, "components of the addend", addend->shape.components, out.shape.components);
  overlap<W>(op, out, *addend, false);
}

template <class W>
void hoisted_rotate_sum(const ring::Ring<W>& ring, const ConstView<W>& out,
                        const ConstView<W>& digits, const ConstView<W>& b, const ConstView<W>& a,
                        std::span<const ConstView<W>> keys, std::span<const u64> elements,
                        u32 first_digit) {
  const char* op = "hoisted_rotate_sum";
  eval_view<W>(op, ring, out, "output");
  eval_view<W>(op, ring, digits, "digits");
  equal(op, "components of the output", out.shape.components, 2);
  equal(op, "batch of the digits", digits.shape.batch, out.shape.batch);
  equal(op, "keys", keys.size(), elements.size());
  limbs(op, digits.limbs, out.limbs, "digits");
  overlap<W>(op, out, digits, false);
  const auto window = [&](const ConstView<W>& v, const char* name) {
    eval_view<W>(op, ring, v, name);
    equal(op, "components of a window input", v.shape.components, 1);
    equal(op, "batch of a window input", v.shape.batch, out.shape.batch);
    if (v.limbs.size() > out.limbs.size())
      equal(op, "limbs of a window input", v.limbs.size(), out.limbs.size());
    limbs(op, v.limbs, out.limb_window(0, v.limbs.size()).limbs, name);
    overlap<W>(op, out, v, false);
  };
  window(b, "b");
  for (std::size_t r = 0; r < elements.size(); ++r) {
    element(op, elements[r], ring.log_n());
    if (elements[r] == 1) {
      window(a, "a");
      limbs(op, a.limbs, b.limbs, "a");
      continue;
    }
    switching_key<W>(op, ring, keys[r], first_digit + digits.shape.components);
    overlap<W>(op, out, keys[r], false);
  }
}

#define CRENEL_INSTANTIATE(W)                                                                   \
  template void tensor<W>(const ring::Ring<W>&, const ConstView<W>&, const ConstView<W>&,       \
                          const ConstView<W>&);                                                 \
  template void mod_up<W>(const ring::Ring<W>&, const ConstView<W>&, const ConstView<W>&,       \
                          const rns::ModUp<W>&);                                                \
  template void key_multiply<W>(const ring::Ring<W>&, const ConstView<W>&, const ConstView<W>&, \
                                const ConstView<W>&, u32);                                      \
  template void key_switch<W>(const ring::Ring<W>&, const ConstView<W>&, const ConstView<W>&,   \
                              const rns::ModUp<W>&, const ConstView<W>&, u32);                  \
  template void divide<W>(const ring::Ring<W>&, const ConstView<W>&, const ConstView<W>&,       \
                          const rns::Divide<W>&, const ConstView<W>*);                          \
  template void hoisted_rotate_sum<W>(                                                          \
      const ring::Ring<W>&, const ConstView<W>&, const ConstView<W>&, const ConstView<W>&,      \
      const ConstView<W>&, std::span<const ConstView<W>>, std::span<const u64>, u32);
CRENEL_INSTANTIATE(u32)
CRENEL_INSTANTIATE(u64)
#undef CRENEL_INSTANTIATE

}  // namespace crenel::device::checks
