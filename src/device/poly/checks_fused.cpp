#include "device/poly/checks.h"

namespace crenel::device::checks {
// A switching key with the gadget digits [first, first + digits) and the limbs of the digits;
// nothing is written on it.
void switching_key(const char* op, const ring::Ring& ring, const KeyView& key, const ConstView& out,
                   u32 first, u32 digits) {
  ConstView pairs = key.pairs;
  // Behind a slot stands the address when the operation runs: here any other than null will do.
  if (key.slot != nullptr) pairs.data = reinterpret_cast<const u32*>(key.slot);
  eval_view(op, ring, pairs, "key");
  equal(op, "components of the key", pairs.shape.components, 2);
  if (!pairs.limbs.contains_all(out.limbs))
    limbs(op, pairs.limbs.intersect(out.limbs), out.limbs, "key");
  if (key.first_digit > first) equal(op, "first digit of the key", key.first_digit, first);
  const u64 needed = u64(key.entry(first)) + digits;
  if (pairs.shape.batch < needed) equal(op, "digits of the key", pairs.shape.batch, needed);
  if (key.slot == nullptr) overlap(op, out, pairs, false);
}

void tensor(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& a,
            const ConstView& b) {
  eval_view(op, ring, out, "output");
  equal(op, "components of the output", out.shape.components, 3);
  for (const auto* v : {&a, &b}) {
    eval_view(op, ring, *v, "input");
    equal(op, "components of an input", v->shape.components, 2);
    equal(op, "batch of an input", v->shape.batch, out.shape.batch);
    limbs(op, v->limbs, out.limbs, "input");
    overlap(op, out, *v, false);
  }
}

void mod_up(const ring::Ring& ring, const ConstView& out, const ConstView& in,
            const Prepared<rns::ModUp>& prepared) {
  const char* op = "mod_up";
  const rns::ModUp& table = table_of(op, prepared);
  eval_view(op, ring, out, "output");
  eval_view(op, ring, in, "input");
  equal(op, "components of the input", in.shape.components, 1);
  equal(op, "components of the output", out.shape.components, table.digits.size());
  equal(op, "batch of the input", in.shape.batch, out.shape.batch);
  limbs(op, in.limbs, table.input, "input");
  limbs(op, out.limbs, table.output, "output");
  overlap(op, out, in, false);
}

void key_multiply(const ring::Ring& ring, const ConstView& out, const ConstView& digits,
                  const KeyView& key, u32 first_digit) {
  const char* op = "key_multiply";
  eval_view(op, ring, out, "output");
  eval_view(op, ring, digits, "digits");
  equal(op, "components of the output", out.shape.components, 2);
  equal(op, "batch of the digits", digits.shape.batch, out.shape.batch);
  limbs(op, digits.limbs, out.limbs, "digits");
  switching_key(op, ring, key, out, first_digit, digits.shape.components);
  overlap(op, out, digits, false);
}

namespace {

// A key switch in the extended basis, of an input with some number of components.
void switched(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& in,
              u32 components, const Prepared<rns::ModUp>& prepared, const KeyView& key,
              u32 first_digit) {
  const rns::ModUp& table = table_of(op, prepared);
  eval_view(op, ring, out, "output");
  eval_view(op, ring, in, "input");
  equal(op, "components of the input", in.shape.components, components);
  equal(op, "components of the output", out.shape.components, 2);
  equal(op, "batch of the input", in.shape.batch, out.shape.batch);
  limbs(op, in.limbs, table.input, "input");
  limbs(op, out.limbs, table.output, "output");
  switching_key(op, ring, key, out, first_digit, static_cast<u32>(table.digits.size()));
  overlap(op, out, in, false);
}

void added(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& addend,
           const LimbSet& wanted, u32 most_components) {
  eval_view(op, ring, addend, "addend");
  limbs(op, addend.limbs, wanted, "addend");
  equal(op, "batch of the addend", addend.shape.batch, out.shape.batch);
  if (addend.shape.components > most_components)
    equal(op, "components of the addend", addend.shape.components, most_components);
  overlap(op, out, addend, false);
}

}  // namespace

void addends(const char* op, const ring::Ring& ring, const ConstView& out, const LimbSet& wanted,
             const ProductSum& sum) {
  equal(op, "factors", sum.factors.size(), sum.addends.size());
  for (const ConstView& addend : sum.addends) {
    added(op, ring, out, addend, wanted, 3);
    if (addend.shape.components < 2)
      equal(op, "components of the addend", addend.shape.components, 2);
    equal(op, "components of an addend", addend.shape.components, sum.addends[0].shape.components);
  }
}

void key_switch_extended(const ring::Ring& ring, const ConstView& out, const ConstView& in,
                         const Prepared<rns::ModUp>& prepared, const KeyView& key, u32 first_digit,
                         const ConstView* addend, const LimbScalars* factor) {
  const char* op = "key_switch_extended";
  switched(op, ring, out, in, 1, prepared, key, first_digit);
  if (addend == nullptr) return;
  if (factor == nullptr) throw StateError("key_switch_extended: an addend without its factor");
  added(op, ring, out, *addend, prepared->input, 2);
}

void key_switch_rotated(const ring::Ring& ring, const ConstView& out, const ConstView& in,
                        const Prepared<rns::ModUp>& prepared, const KeyView& key, u32 first_digit,
                        u64 galois_element, const ConstView* addend) {
  const char* op = "key_switch_rotated";
  element(op, galois_element, ring.log_n());
  switched(op, ring, out, in, 1, prepared, key, first_digit);
  if (addend == nullptr) return;
  if (addend->limbs.size() > out.limbs.size())
    equal(op, "limbs of the addend", addend->limbs.size(), out.limbs.size());
  added(op, ring, out, *addend, out.limb_window(0, addend->limbs.size()).limbs, 2);
}

void key_switch_product(const ring::Ring& ring, const ConstView& out, const ConstView& a,
                        const ConstView& b, const Prepared<rns::ModUp>& prepared,
                        const KeyView& key, u32 first_digit, const ProductSum& sum) {
  const char* op = "key_switch_product";
  switched(op, ring, out, a, 2, prepared, key, first_digit);
  switched(op, ring, out, b, 2, prepared, key, first_digit);
  addends(op, ring, out, prepared->input, sum);
}

void product_sum(const ring::Ring& ring, const ConstView& out, const ConstView& a,
                 const ConstView& b, const ProductSum& sum) {
  tensor("product_sum", ring, out, a, b);
  addends("product_sum", ring, out, out.limbs, sum);
}

void divide(const ring::Ring& ring, const ConstView& out, const ConstView& in,
            const Prepared<rns::Divide>& prepared, const ConstView* addend) {
  const char* op = "divide";
  const rns::Divide& table = table_of(op, prepared);
  eval_view(op, ring, out, "output");
  eval_view(op, ring, in, "input");
  equal(op, "components of the input", in.shape.components, out.shape.components);
  equal(op, "batch of the input", in.shape.batch, out.shape.batch);
  limbs(op, in.limbs, table.input, "input");
  limbs(op, out.limbs, table.output, "output");
  overlap(op, out, in, false);
  if (addend == nullptr) return;
  eval_view(op, ring, *addend, "addend");
  equal(op, "batch of the addend", addend->shape.batch, out.shape.batch);
  limbs(op, addend->limbs, out.limbs, "addend");
  if (addend->shape.components > out.shape.components)
    equal(op, "components of the addend", addend->shape.components, out.shape.components);
  overlap(op, out, *addend, false);
}

void key_switch_divided(const ring::Ring& ring, const ConstView& out, const ConstView& sum,
                        const SwitchOf& of, const Prepared<rns::ModUp>& raised, const KeyView& key,
                        u32 first_digit, const Prepared<rns::Divide>& table,
                        const ConstView* addend) {
  if (of.product()) {
    if (of.factor == nullptr) throw StateError("key_switch_divided: a product without its lift");
    key_switch_product(ring, sum, of.in, of.other, raised, key, first_digit, of.sum);
  } else if (of.element != 1) {
    key_switch_rotated(ring, sum, of.in, raised, key, first_digit, of.element, of.addend);
  } else {
    key_switch_extended(ring, sum, of.in, raised, key, first_digit, of.addend, of.factor);
  }
  divide(ring, out, sum, table, addend);
  if (addend != nullptr) overlap("key_switch_divided", sum, *addend, false);
}

namespace {

// What hoisted operations read, and that `out` overlaps none of it. `all_keyed`: element 1, too.
void hoisted_inputs(const char* op, const ring::Ring& ring, const ConstView& out,
                    const ConstView& digits, const ConstView& b, const ConstView& a,
                    std::span<const KeyView> keys, std::span<const u64> elements, u32 first_digit,
                    bool all_keyed = false) {
  eval_view(op, ring, out, "output");
  eval_view(op, ring, digits, "digits");
  equal(op, "components of the output", out.shape.components, 2);
  equal(op, "batch of the digits", digits.shape.batch, out.shape.batch);
  equal(op, "keys", keys.size(), elements.size());
  limbs(op, digits.limbs, out.limbs, "digits");
  overlap(op, out, digits, false);
  const auto window = [&](const ConstView& v, const char* name) {
    eval_view(op, ring, v, name);
    equal(op, "components of a window input", v.shape.components, 1);
    equal(op, "batch of a window input", v.shape.batch, out.shape.batch);
    if (v.limbs.size() > out.limbs.size())
      equal(op, "limbs of a window input", v.limbs.size(), out.limbs.size());
    limbs(op, v.limbs, out.limb_window(0, v.limbs.size()).limbs, name);
    overlap(op, out, v, false);
  };
  window(b, "b");
  for (std::size_t r = 0; r < elements.size(); ++r) {
    element(op, elements[r], ring.log_n());
    if (elements[r] == 1 && !all_keyed) {
      window(a, "a");
      limbs(op, a.limbs, b.limbs, "a");
      continue;
    }
    switching_key(op, ring, keys[r], out, first_digit, digits.shape.components);
  }
}

// Shape of the grid, one output a giant step, and no output on the plaintexts or another output.
void plain_grid(const char* op, const ring::Ring& ring, std::span<const PolyView<u32>> out,
                std::size_t babies, const PlainGrid& plain) {
  equal(op, "giant steps of the plaintexts", plain.giants, out.size());
  equal(op, "baby steps of the plaintexts", plain.babies, babies);
  if (plain.log_words > ring.log_n())
    throw StateError(
        cat(op, ": plaintexts of 2^", plain.log_words, " words, at most 2^", ring.log_n(), " fit"),
        {{"got", plain.log_words}, {"expected", ring.log_n()}});
  const u64 entries = u64(plain.giants) * plain.babies;
  if (entries != 0 && (plain.present == nullptr || plain.data == nullptr))
    throw StateError(cat(op, ": the plaintexts are empty"));
  for (std::size_t g = 0; g < out.size(); ++g) {
    eval_view(op, ring, out[g], "output");
    limbs(op, plain.limbs, out[g].limbs, "plaintexts");
    equal(op, "components of an output", out[g].shape.components, out[0].shape.components);
    equal(op, "batch of an output", out[g].shape.batch, out[0].shape.batch);
    for (std::size_t h = 0; h < g; ++h) overlap(op, out[g], out[h], false);
    if (entries == 0) continue;
    const PolyShape grid{plain.log_words, plain.babies, plain.giants};
    overlap(op, out[g], ConstView(plain.data, grid, plain.limbs, Domain::eval), false);
  }
}

}  // namespace

void hoisted_rotate_sum(const ring::Ring& ring, const ConstView& out, const ConstView& digits,
                        const ConstView& b, const ConstView& a, std::span<const KeyView> keys,
                        std::span<const u64> elements, u32 first_digit) {
  hoisted_inputs("hoisted_rotate_sum", ring, out, digits, b, a, keys, elements, first_digit);
}

void plain_multiply_sum(const ring::Ring& ring, std::span<const PolyView<u32>> out,
                        std::span<const ConstView> in, const PlainGrid& plain) {
  const char* op = "plain_multiply_sum";
  plain_grid(op, ring, out, in.size(), plain);
  for (const auto& v : in) {
    eval_view(op, ring, v, "input");
    limbs(op, v.limbs, plain.limbs, "input");
    for (const auto& o : out) {
      equal(op, "components of an input", v.shape.components, o.shape.components);
      equal(op, "batch of an input", v.shape.batch, o.shape.batch);
      overlap(op, o, v, false);
    }
  }
}

void hoisted_plain_sums(const ring::Ring& ring, std::span<const PolyView<u32>> out,
                        const ConstView& digits, const ConstView& b, const ConstView& a,
                        std::span<const KeyView> keys, std::span<const u64> elements,
                        const PlainGrid& plain, u32 first_digit) {
  const char* op = "hoisted_plain_sums";
  plain_grid(op, ring, out, elements.size(), plain);
  for (const auto& o : out)
    hoisted_inputs(op, ring, o, digits, b, a, keys, elements, first_digit, a.data == nullptr);
}

}  // namespace crenel::device::checks
