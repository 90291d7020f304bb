#include "device/poly/checks.h"

namespace crenel::device::checks {
namespace {

template <class W>
void eval_view(const char* op, const ring::Ring<W>& ring, const ConstView<W>& v, const char* name) {
  view<W>(op, ring, v, name);
  domain(op, v.domain, Domain::eval, name);
}

// A switching key with enough gadget digits and the limbs of the digits; nothing is written on it.
template <class W>
void switching_key(const char* op, const ring::Ring<W>& ring, const KeyView<W>& key,
                   const ConstView<W>& out, u32 digits) {
  const ConstView<W>& pairs = key.pairs;
  eval_view<W>(op, ring, pairs, "key");
  equal(op, "components of the key", pairs.shape.components, 2);
  if (!pairs.limbs.contains_all(out.limbs))
    limbs(op, pairs.limbs.intersect(out.limbs), out.limbs, "key");
  if (pairs.shape.batch < digits) equal(op, "digits of the key", pairs.shape.batch, digits);
  if (key.slot == nullptr) overlap<W>(op, out, pairs, false);
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
                  const KeyView<W>& key, u32 first_digit) {
  const char* op = "key_multiply";
  eval_view<W>(op, ring, out, "output");
  eval_view<W>(op, ring, digits, "digits");
  equal(op, "components of the output", out.shape.components, 2);
  equal(op, "batch of the digits", digits.shape.batch, out.shape.batch);
  limbs(op, digits.limbs, out.limbs, "digits");
  switching_key<W>(op, ring, key, out, first_digit + digits.shape.components);
  overlap<W>(op, out, digits, false);
}

template <class W>
void key_switch(const ring::Ring<W>& ring, const ConstView<W>& out, const ConstView<W>& in,
                const rns::ModUp<W>& table, const KeyView<W>& key, u32 first_digit,
                const ConstView<W>* addend, const LimbScalars<W>* factor) {
  const char* op = "key_switch";
  eval_view<W>(op, ring, out, "output");
  eval_view<W>(op, ring, in, "input");
  equal(op, "components of the input", in.shape.components, 1);
  equal(op, "components of the output", out.shape.components, 2);
  equal(op, "batch of the input", in.shape.batch, out.shape.batch);
  limbs(op, in.limbs, table.input, "input");
  limbs(op, out.limbs, table.output, "output");
  switching_key<W>(op, ring, key, out, first_digit + static_cast<u32>(table.digits.size()));
  overlap<W>(op, out, in, false);
  if (addend == nullptr) return;
  if (factor == nullptr) throw StateError("key_switch: an addend without its factor");
  eval_view<W>(op, ring, *addend, "addend");
  limbs(op, addend->limbs, table.input, "addend");
  equal(op, "batch of the addend", addend->shape.batch, out.shape.batch);
  if (addend->shape.components > 2)
    equal(op, "components of the addend", addend->shape.components, 2);
  overlap<W>(op, out, *addend, false);
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

namespace {

// What hoisted operations read, and that `out` overlaps none of it.
template <class W>
void hoisted_inputs(const char* op, const ring::Ring<W>& ring, const ConstView<W>& out,
                    const ConstView<W>& digits, const ConstView<W>& b, const ConstView<W>& a,
                    std::span<const KeyView<W>> keys, std::span<const u64> elements,
                    u32 first_digit) {
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
  const KeyView<W>* first = nullptr;
  for (std::size_t r = 0; r < elements.size(); ++r) {
    element(op, elements[r], ring.log_n());
    if (elements[r] == 1) {
      window(a, "a");
      limbs(op, a.limbs, b.limbs, "a");
      continue;
    }
    switching_key<W>(op, ring, keys[r], out, first_digit + digits.shape.components);
    if (first == nullptr) first = &keys[r];
    limbs(op, keys[r].pairs.limbs, first->pairs.limbs, "key");
  }
}

// Shape of the grid, one output a giant step, and no output on the plaintexts or another output.
template <class W>
void plain_grid(const char* op, const ring::Ring<W>& ring, std::span<const PolyView<W>> out,
                std::size_t babies, const PlainGrid<W>& plain) {
  equal(op, "giant steps of the plaintexts", plain.giants, out.size());
  equal(op, "baby steps of the plaintexts", plain.babies, babies);
  if (plain.log_words > ring.log_n())
    throw StateError(
        cat(op, ": plaintexts of 2^", plain.log_words, " words, at most 2^", ring.log_n(), " fit"),
        {{"got", cat(plain.log_words)}, {"expected", cat(ring.log_n())}});
  const u64 entries = u64(plain.giants) * plain.babies;
  if (entries != 0 && (plain.present == nullptr || plain.data == nullptr))
    throw StateError(cat(op, ": the plaintexts are empty"));
  for (std::size_t g = 0; g < out.size(); ++g) {
    eval_view<W>(op, ring, out[g], "output");
    limbs(op, plain.limbs, out[g].limbs, "plaintexts");
    equal(op, "components of an output", out[g].shape.components, out[0].shape.components);
    equal(op, "batch of an output", out[g].shape.batch, out[0].shape.batch);
    for (std::size_t h = 0; h < g; ++h) overlap<W>(op, out[g], out[h], false);
    if (entries == 0) continue;
    const PolyShape grid{plain.log_words, plain.babies, plain.giants};
    overlap<W>(op, out[g], ConstView<W>(plain.data, grid, plain.limbs, Domain::eval), false);
  }
}

}  // namespace

template <class W>
void hoisted_rotate_sum(const ring::Ring<W>& ring, const ConstView<W>& out,
                        const ConstView<W>& digits, const ConstView<W>& b, const ConstView<W>& a,
                        std::span<const KeyView<W>> keys, std::span<const u64> elements,
                        u32 first_digit) {
  hoisted_inputs<W>("hoisted_rotate_sum", ring, out, digits, b, a, keys, elements, first_digit);
}

template <class W>
void plain_multiply_sum(const ring::Ring<W>& ring, std::span<const PolyView<W>> out,
                        std::span<const ConstView<W>> in, const PlainGrid<W>& plain) {
  const char* op = "plain_multiply_sum";
  plain_grid<W>(op, ring, out, in.size(), plain);
  for (const auto& v : in) {
    eval_view<W>(op, ring, v, "input");
    limbs(op, v.limbs, plain.limbs, "input");
    for (const auto& o : out) {
      equal(op, "components of an input", v.shape.components, o.shape.components);
      equal(op, "batch of an input", v.shape.batch, o.shape.batch);
      overlap<W>(op, o, v, false);
    }
  }
}

template <class W>
void hoisted_plain_sums(const ring::Ring<W>& ring, std::span<const PolyView<W>> out,
                        const ConstView<W>& digits, const ConstView<W>& b, const ConstView<W>& a,
                        std::span<const KeyView<W>> keys, std::span<const u64> elements,
                        const PlainGrid<W>& plain, u32 first_digit) {
  const char* op = "hoisted_plain_sums";
  plain_grid<W>(op, ring, out, elements.size(), plain);
  for (const auto& o : out)
    hoisted_inputs<W>(op, ring, o, digits, b, a, keys, elements, first_digit);
}

#define CRENEL_INSTANTIATE(W)                                                                    \
  template void tensor<W>(const ring::Ring<W>&, const ConstView<W>&, const ConstView<W>&,        \
                          const ConstView<W>&);                                                  \
  template void mod_up<W>(const ring::Ring<W>&, const ConstView<W>&, const ConstView<W>&,        \
                          const rns::ModUp<W>&);                                                 \
  template void key_multiply<W>(const ring::Ring<W>&, const ConstView<W>&, const ConstView<W>&,  \
                                const KeyView<W>&, u32);                                         \
  template void key_switch<W>(const ring::Ring<W>&, const ConstView<W>&, const ConstView<W>&,    \
                              const rns::ModUp<W>&, const KeyView<W>&, u32, const ConstView<W>*, \
                              const LimbScalars<W>*);                                            \
  template void divide<W>(const ring::Ring<W>&, const ConstView<W>&, const ConstView<W>&,        \
                          const rns::Divide<W>&, const ConstView<W>*);                           \
  template void hoisted_rotate_sum<W>(                                                           \
      const ring::Ring<W>&, const ConstView<W>&, const ConstView<W>&, const ConstView<W>&,       \
      const ConstView<W>&, std::span<const KeyView<W>>, std::span<const u64>, u32);              \
  template void plain_multiply_sum<W>(const ring::Ring<W>&, std::span<const PolyView<W>>,        \
                                      std::span<const ConstView<W>>, const PlainGrid<W>&);       \
  template void hoisted_plain_sums<W>(const ring::Ring<W>&, std::span<const PolyView<W>>,        \
                                      const ConstView<W>&, const ConstView<W>&,                  \
                                      const ConstView<W>&, std::span<const KeyView<W>>,          \
                                      std::span<const u64>, const PlainGrid<W>&, u32);
CRENEL_INSTANTIATE(u32)
CRENEL_INSTANTIATE(u64)
#undef CRENEL_INSTANTIATE

}  // namespace crenel::device::checks
