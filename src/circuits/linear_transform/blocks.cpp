#include "circuits/linear_transform/blocks.h"

#include <algorithm>
#include <set>

#include "circuits/linear_transform/keys.h"
#include "ckks/batch_request.h"
#include "ckks/evaluator_state.h"
#include "crenel/core/watch.h"
#include "crenel/device/optimisations.h"
#include "device/room.h"

namespace crenel::circuits {

using ckks::Ciphertext;
using ckks::ClearSlots;
using ckks::Evaluator;
using rlwe::ConstView;
using rlwe::Poly;
using rlwe::View;

namespace {

std::vector<const DiagonalMatrix*> column_of(const BlockPointers& blocks, std::size_t input) {
  std::vector<const DiagonalMatrix*> column;
  for (const auto& row : blocks) column.push_back(row[input]);
  return column;
}

// Those at some places.
template <class T>
std::vector<T> chosen(std::span<const T> from, const std::vector<u32>& places) {
  std::vector<T> found;
  for (u32 at : places) found.push_back(from[at]);
  return found;
}

std::vector<BlockRow> rows_of(const BlockPlan& plan, const BlockPlan::Column& column,
                              const BlockPlan::Part& part) {
  std::vector<BlockRow> rows;
  for (u32 at : part.rows) rows.push_back(plan.rows[column.rows[at]]);
  return rows;
}

const rlwe::LimbSet& plaintext_limbs(const rlwe::RingContext& ring, const BlockShape& shape) {
  // Hoisted, the products with plaintexts are in the extended basis.
  return shape.keys == KeyMode::hoisted ? ring.extended(shape.level) : ring.window(shape.level);
}

u64 bytes_of(const rlwe::RingContext& ring, const BlockPointers& blocks, const BlockShape& shape,
             std::size_t input) {
  u64 bytes = 0;
  for (const BlockPlan::Part& part : shape.plan.columns[input].parts)
    bytes += DiagonalPlaintexts::bytes_of(column_of(blocks, input), part.rows.size(),
                                          part.babies.size(), plaintext_limbs(ring, shape).size());
  return bytes;
}

// Most rows of an input that an earlier one has written: they are made apart and added.
u64 added_rows(const BlockPlan& plan) {
  std::set<u32> written;
  u64 most = 0;
  for (const auto& column : plan.columns) {
    u64 again = 0;
    for (u32 r : column.rows) again += written.insert(r).second ? 0 : 1;
    most = std::max(most, again);
  }
  return most;
}

}  // namespace

u64 plaintext_bytes_of(const rlwe::RingContext& ring, const BlockPointers& blocks,
                       const BlockShape& shape) {
  u64 bytes = 0;
  for (std::size_t i = 0; i < shape.plan.columns.size(); ++i)
    bytes += bytes_of(ring, blocks, shape, i);
  return bytes;
}

Blocks::Blocks(const ckks::Context& context, const BlockPointers& blocks, BlockShape shape)
    : context_(context), shape_(std::move(shape)) {
  const BlockPlan& plan = shape_.plan;
  const auto& ring = *context.state().ring;
  device::expect_room(ring.device(), {.device = plaintext_bytes_of(ring, blocks, shape_)}, [&] {
    return core::MemoryRequest{
        .what = cat("plaintexts of a linear transform with ", plan.diagonals, " diagonals"),
        .advice = "encode it at a lower level, or as a product of sparser matrices"};
  });
  watch::Task task(plan.diagonals, "diagonals");
  for (std::size_t i = 0; i < plan.columns.size(); ++i) {
    const BlockPlan::Column& column = plan.columns[i];
    auto& parts = plaintexts_.emplace_back();
    for (const BlockPlan::Part& part : column.parts)
      parts.emplace_back(context.state(), column_of(blocks, i), rows_of(plan, column, part),
                         chosen(std::span(column.babies), part.babies), shape_.slots(),
                         shape_.plain_scale, plaintext_limbs(ring, shape_));
  }
  task.finish();
}

u64 Blocks::bytes() const {
  u64 bytes = 0;
  for (const auto& parts : plaintexts_)
    for (const DiagonalPlaintexts& part : parts) bytes += part.bytes();
  return bytes;
}

// Of the sums of the giant steps, and of the digits that they are made of.
u64 Blocks::working_bytes(u32 batch) const {
  if (shape_.keys != KeyMode::hoisted) return 0;
  const auto& ring = *context_.state().ring;
  const u64 polys =
      2 * (shape_.plan.rows.size() + added_rows(shape_.plan)) + ring.digit_count(shape_.level);
  return polys * batch * ring.extended(shape_.level).size() * ring.ring_dim() * sizeof(rlwe::Word);
}

/// The sums of a call: of one row after the other, `batch` vectors each.
struct Blocks::Sums {
  device::Stream& stream;
  device::PolyKernels& kernels;
  const BlockPlan& plan;
  u32 batch;
  Poly poly;
  std::vector<bool> written;

  Sums(const Evaluator::State& s, const BlockPlan& blocks, u32 vectors, const rlwe::LimbSet& limbs)
      : stream(*s.stream),
        kernels(s.kernels()),
        plan(blocks),
        batch(vectors),
        poly(stream, {s.ring().log_n(), 2, static_cast<u32>(plan.rows.size()) * batch}, limbs,
             ring::Domain::eval),
        written(plan.rows.size(), false) {}

  View rows(u32 first, u32 count = 1) { return poly.view().rows(first * batch, count * batch); }

  /// multiply(out) makes what an input contributes to its rows; added where there is something.
  template <class Multiply>
  void add(const BlockPlan::Column& column, const Multiply& multiply) {
    u32 again = 0;
    for (u32 r : column.rows) again += written[r] ? 1 : 0;
    Poly apart;
    if (again > 0)
      apart =
          Poly(stream, {poly.shape().log_n, 2, again * batch}, poly.limbs(), ring::Domain::eval);
    std::vector<View> out;
    u32 next = 0;
    for (u32 r : column.rows)
      out.push_back(written[r] ? apart.view().rows(next++ * batch, batch) : rows(r));
    multiply(std::span<const View>(out));
    next = 0;
    for (std::size_t k = 0; k < column.rows.size();) {
      const u32 first = column.rows[k++];
      if (!written[first]) {
        written[first] = true;
        continue;
      }
      u32 count = 1;  // neighbours in one addition
      while (k < column.rows.size() && column.rows[k] == first + count && written[first + count])
        ++count, ++k;
      kernels.add(stream, rows(first, count), rows(first, count),
                  apart.view().rows(next * batch, count * batch));
      next += count;
    }
  }
};

namespace {

// The inner sums without hoisting: a key switch of its own for every baby step, by the keys of
// `kind` with the same bits, or each by a key of its own kind.
void apart_sums(const Evaluator::State& s, std::span<const View> out, ConstView v,
                const std::optional<Evaluator::State::KeyChoices>& kind,
                std::span<const u64> elements, const device::PlainGrid& plain, u32 level) {
  const auto& ring = s.ring();
  const rlwe::PolyShape shape{ring.log_n(), 2, v.shape.batch};
  std::vector<Poly> steps;
  std::vector<ConstView> views;
  for (std::size_t r = 0; r < elements.size(); ++r) {
    if (elements[r] == 1) {
      Poly step(*s.stream, shape, ring.extended(level), ring::Domain::eval);
      s.stream->fill_zero(step.data(), step.bytes());
      const View window = step.view().limb_window(0, ring.window(level).size());
      s.kernels().mul_scalar(*s.stream, window, v, ring.special_scalars(level));
      steps.push_back(std::move(step));
    } else {
      auto key = s.choice(elements[r], level);
      if (kind && key.level != kind->level) key = {elements[r], level};
      steps.push_back(s.switcher().rotate_extended(v, s.lease(key.id)[0], elements[r], key.level));
    }
    views.push_back(steps.back().view());
  }
  s.kernels().plain_multiply_sum(*s.stream, out, views, plain);
}

}  // namespace

// Double hoisting: baby steps stay in the extended basis (b times P), where they meet the
// plaintexts; a giant step divides its `a` by P and switches it again; all is summed in the
// extended basis, and divided once, together with the rescale.
void Blocks::hoisted_sums(const Evaluator& ev, std::span<const Ciphertext* const> in,
                          Sums& sums) const {
  const auto& s = ev.state();
  const auto& ring = s.ring();
  const u32 level = shape_.level;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const BlockPlan::Column& column = shape_.plan.columns[i];
    if (column.rows.empty()) continue;
    const ConstView v = in[i]->data().poly.view(), b = v.components(0, 1), a = v.components(1, 1);
    std::vector<u64> elements;
    for (u64 step : column.babies)
      elements.push_back(s.rotation_element(static_cast<i64>(step), shape_.slots(), shape_.level));
    sums.add(column, [&](std::span<const View> out) {
      // Keys of both kinds have no digits to share.
      const auto choices = s.choices(elements, level);
      const bool hoisting =
          choices && device::optimisations(s.stream->device()).has(device::Optimisation::hoisting);
      const auto keys = s.lease(hoisting ? choices->ids : std::vector<rlwe::KeyId>());
      const u32 at = choices ? choices->level : level;
      const Poly digits = hoisting ? s.switcher().mod_up(a, at) : Poly();
      for (std::size_t p = 0; p < column.parts.size(); ++p) {
        const BlockPlan::Part& part = column.parts[p];
        const auto to = chosen(out, part.rows);
        const auto turns = chosen(std::span<const u64>(elements), part.babies);
        const device::PlainGrid plain = plaintexts_[i][p].grid();
        if (!hoisting) {
          apart_sums(s, to, v, choices, turns, plain, level);
        } else {
          const auto own = chosen(std::span<const rlwe::KeyView>(keys.views()), part.babies);
          s.kernels().hoisted_plain_sums(*s.stream, to, digits.view(), b, a, own, turns, plain,
                                         ring.special_scalars(level), ring.first_digit(at));
        }
      }
    });
  }
}

// Adds every giant step to the accumulator of its output; outputs that are neighbours at once.
void Blocks::join_hoisted(const Evaluator& ev, Sums& sums) const {
  const auto& s = ev.state();
  const BlockPlan& plan = shape_.plan;
  const u32 batch = sums.batch, outputs = plan.outputs;
  const u32 rotated = static_cast<u32>(plan.rows.size()) - outputs;
  for (u32 o = 0; o < outputs; ++o)
    if (!sums.written[o]) {
      const View row = sums.rows(o);
      s.stream->fill_zero(row.data, sums.poly.bytes() / plan.rows.size());
    }
  if (rotated == 0) return;
  Poly divided(*s.stream, {s.ring().log_n(), 1, rotated * batch}, s.ring().window(shape_.level),
               ring::Domain::eval);
  const ConstView others = sums.rows(outputs, rotated);
  s.kernels().divide(*s.stream, divided.view(), others.components(1, 1),
                     s.ring().mod_down(shape_.level));
  for (u32 r = outputs, count = 1; r < plan.rows.size(); r += count) {
    count = 1;
    while (r + count < plan.rows.size() && plan.rows[r + count].giant == plan.rows[r].giant &&
           plan.rows[r + count].output == plan.rows[r].output + count)
      ++count;
    const u64 element =
        s.rotation_element(static_cast<i64>(plan.rows[r].giant), shape_.slots(), shape_.level);
    const auto key = s.choice(element, shape_.level);
    s.switcher().add_rotated(sums.rows(plan.rows[r].output, count),
                             divided.view().rows((r - outputs) * batch, count * batch),
                             s.lease(key.id)[0], element, key.level,
                             ConstView(sums.rows(r, count)).components(0, 1));
  }
}

Ciphertext Blocks::divided(const Evaluator& ev, Sums& sums, u32 output, ckks::Metadata meta) const {
  const auto& s = ev.state();
  const u32 level = shape_.level;
  meta.scale = s.rescaled(meta.scale * shape_.plain_scale, level);
  meta.level = level - 1;
  return s.wrap(s.switcher().mod_down_rescale(sums.rows(output), level), meta);
}

// Min-KS (ARK): baby step b + 1 is baby step b rotated by the stride; giant steps are summed from
// the last one down, rotating the sum by one giant step at a time.
void Blocks::minimal_sums(const Evaluator& ev, std::span<const Ciphertext* const> in,
                          Sums& sums) const {
  const auto& s = ev.state();
  const i64 stride = static_cast<i64>(shape_.plan.steps.stride);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const BlockPlan::Column& column = shape_.plan.columns[i];
    if (column.rows.empty()) continue;
    std::vector<Ciphertext> babies;
    babies.push_back(s.copy(*in[i]));
    while (babies.size() < column.babies.size()) babies.push_back(ev.rotate(babies.back(), stride));
    std::vector<ConstView> views;
    for (const auto& baby : babies) views.push_back(baby.data().poly.view());
    sums.add(column, [&](std::span<const View> out) {
      for (std::size_t p = 0; p < column.parts.size(); ++p)
        s.kernels().plain_multiply_sum(
            *s.stream, chosen(out, column.parts[p].rows),
            chosen(std::span<const ConstView>(views), column.parts[p].babies),
            plaintexts_[i][p].grid());
    });
  }
}

Ciphertext Blocks::join_minimal(const Evaluator& ev, Sums& sums, u32 output,
                                ckks::Metadata meta) const {
  const auto& s = ev.state();
  const BlockPlan& plan = shape_.plan;
  const i64 giant = static_cast<i64>(plan.steps.stride * plan.steps.baby_steps);
  meta.scale *= shape_.plain_scale;
  meta.bound = ckks::kUnknownBound;  // of parts of the sum, which was checked as a whole
  const auto row = [&](u32 r) {
    Poly p = s.poly(2, sums.batch, shape_.level);
    s.stream->copy(p.data(), sums.rows(r).data, p.bytes());
    return s.wrap(std::move(p), meta);
  };
  std::vector<u32> rows;
  for (u32 r = 0; r < plan.rows.size(); ++r)
    if (plan.rows[r].output == output) rows.push_back(r);
  Ciphertext sum = row(rows.back());
  for (std::size_t k = rows.size() - 1; k-- > 0;) sum = ev.add(ev.rotate(sum, giant), row(rows[k]));
  return ev.rescale(sum);
}

std::vector<Ciphertext> Blocks::apply(const Evaluator& ev,
                                      std::span<const Ciphertext* const> in) const {
  const auto& s = ev.state();
  require_rotations(s, shape_.plan.steps.rotations, shape_.slots(), shape_.level);
  const u32 batch = in[0]->batch();
  const bool hoisted = shape_.keys == KeyMode::hoisted;
  if (hoisted) {
    const u64 needed = working_bytes(batch);
    device::expect_room(*s.stream, {.device = needed},
                        [&] { return ckks::batch_request("a linear transform", batch, needed); });
  }
  Sums sums(s, shape_.plan, batch, plaintext_limbs(s.ring(), shape_));
  if (hoisted)
    hoisted_sums(ev, in, sums), join_hoisted(ev, sums);
  else
    minimal_sums(ev, in, sums);
  const bool real = std::ranges::all_of(in, [](const auto* v) { return v->metadata().real; });
  std::vector<Ciphertext> out;
  for (u32 o = 0; o < shape_.plan.outputs; ++o) {
    ckks::Metadata meta = in[0]->metadata();
    meta.real = real && shape_.real(o);
    out.push_back(hoisted ? divided(ev, sums, o, meta) : join_minimal(ev, sums, o, meta));
  }
  return out;
}

std::vector<ClearSlots> Blocks::clear(std::span<const ClearSlots> in) const {
  const BlockPlan& plan = shape_.plan;
  ClearSlots zero = in[0];
  std::ranges::fill(zero.values, 0.0);
  std::vector<ClearSlots> out(plan.outputs, zero);
  for (std::size_t c = 0; c < in.size(); ++c) {
    const BlockPlan::Column& column = plan.columns[c];
    const auto& v = in[c];
    for (std::size_t p = 0; p < column.parts.size(); ++p) {
      const auto& [rows, babies] = column.parts[p];
      for (u32 r = 0; r < rows.size(); ++r)
        for (u32 b = 0; b < babies.size(); ++b) {
          const auto diagonal =
              plaintexts_[c][p].values(context_.state(), shape_.plain_scale, r, b);
          if (diagonal.empty()) continue;
          const auto [output, giant] = plan.rows[column.rows[rows[r]]];
          auto& to = out[output].values;
          for (std::size_t i = 0; i < to.size(); ++i) {
            const u64 row = i / v.slots * v.slots, j = i - row;  // stored rotated back
            to[i] += diagonal[(j + giant) % diagonal.size()] *
                     v.values[row + (j + giant + column.babies[babies[b]]) % v.slots];
          }
        }
    }
  }
  return out;
}

}  // namespace crenel::circuits
