#include "backends/split/moves.h"

#include <algorithm>

#include "crenel/core/error.h"

namespace crenel::backend::split {
namespace {

// Appends a move, to the one before where it goes on from there.
void append(std::vector<Move>& moves, const Move& m) {
  if (!moves.empty() && m.rows == 1) {
    Move& last = moves.back();
    if (last.rows == 1 && m.to == last.to + last.row_bytes &&
        m.from == last.from + last.row_bytes) {
      last.row_bytes += m.row_bytes;
      return;
    }
  }
  moves.push_back(m);
}

// Single rows at equal distances become one move.
std::vector<Move> joined(const std::vector<Move>& moves) {
  std::vector<Move> out;
  for (const Move& m : moves) {
    if (!out.empty() && m.rows == 1 && m.row_bytes == out.back().row_bytes) {
      Move& last = out.back();
      if (last.rows == 1 && m.to > last.to && m.from > last.from) {
        last.to_pitch = static_cast<u64>(m.to - last.to);
        last.from_pitch = static_cast<u64>(m.from - last.from);
        if (std::min(last.to_pitch, last.from_pitch) >= m.row_bytes) {
          last.rows = 2;
          continue;
        }
      } else if (last.rows > 1 && m.to == last.to + last.rows * last.to_pitch &&
                 m.from == last.from + last.rows * last.from_pitch) {
        ++last.rows;
        continue;
      }
    }
    out.push_back(m);
  }
  return out;
}

Place advanced(const Blocks& blocks, const void* base, u64 offset) {
  return blocks.find(static_cast<const u8*>(base) + offset);
}

// Rows from one that begins at `rest` of a limb on that lie in the same limb.
u64 rows_in_limb(u64 limb_bytes, u64 rest, u64 row_bytes, u64 pitch) {
  if (rest + row_bytes > limb_bytes) return 0;
  return pitch == 0 ? ~u64(0) : (limb_bytes - rest - row_bytes) / pitch + 1;
}

}  // namespace

std::vector<std::vector<Move>> moves_of(const Blocks& blocks, void* to, u64 to_pitch,
                                        const void* from, u64 from_pitch, u64 row_bytes, u64 rows) {
  std::vector<std::vector<Move>> moves(blocks.parts());
  if (row_bytes == 0 || rows == 0) return moves;
  const Place to_first = blocks.find(to), from_first = blocks.find(from);
  if (to_first.block->flat() != from_first.block->flat())
    throw StateError("a copy between limbs of polynomials and memory that all parts have");
  if (to_first.block->shared_by() > 1)
    throw StateError("a copy to limbs that several groups of parts have");
  if (to_first.block->flat()) {
    for (u32 p = 0; p < blocks.parts(); ++p)
      moves[p].push_back({to_first.block->flat(p, to_first.offset),
                          from_first.block->flat(p, from_first.offset), to_pitch, from_pitch,
                          row_bytes, rows});
    return moves;
  }
  for (u64 r = 0; r < rows;) {
    u64 together = 1;
    for (u64 done = 0; done < row_bytes;) {
      const Place a = advanced(blocks, to, r * to_pitch + done);
      const Place b = advanced(blocks, from, r * from_pitch + done);
      const u32 prime = a.block->limbs()[a.position];
      if (prime != b.block->limbs()[b.position])
        throw StateError("a copy between limbs of different primes", {{"to", prime}});
      const u32 part = a.block->part(a.row, a.position);
      if (part != b.block->part(b.row, b.position))
        throw StateError("a copy between limbs of different parts", {{"to", prime}});
      Move m = {a.block->limb(part, a.row, a.position) + a.rest,
                b.block->limb(part, b.row, b.position) + b.rest,
                to_pitch,
                from_pitch,
                std::min({row_bytes - done, a.block->limb_bytes() - a.rest,
                          b.block->limb_bytes() - b.rest}),
                1};
      if (m.row_bytes == row_bytes)
        m.rows = together =
            std::min({rows - r, rows_in_limb(a.block->limb_bytes(), a.rest, row_bytes, to_pitch),
                      rows_in_limb(b.block->limb_bytes(), b.rest, row_bytes, from_pitch)});
      append(moves[part], m);
      done += m.row_bytes;
    }
    r += together;
  }
  for (auto& of_part : moves) of_part = joined(of_part);
  return moves;
}

}  // namespace crenel::backend::split
