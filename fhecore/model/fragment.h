// Which lane and register of a warp holds which element of a tile: the map of PTX mma.m16n8k16 for
// 16-bit elements, with one 32-bit register an element (doc/isa.md has the tables).
#pragma once

#include "fhecore/model/column_constants.h"

namespace crenel::fhecore {

inline constexpr u32 kLanes = 32;
inline constexpr u32 kRows = kPaper.rows, kCols = kPaper.cols, kDepth = kPaper.depth;
static_assert(kRows == 16 && kCols == 8 && kDepth == 16, "the map below is that of m16n8k16");

/// Position of an element in its matrix: A (row, k), B (k, column), C and D (row, column).
struct Element {
  u32 row, col;
  friend constexpr bool operator==(const Element&, const Element&) = default;
};
/// Where it lies in the warp.
struct Place {
  u32 lane, reg;
  friend constexpr bool operator==(const Place&, const Place&) = default;
};

struct MapA {
  static constexpr u32 registers = 8, rows = kRows, cols = kDepth;
  static CRENEL_HD constexpr Element element(Place p) {
    return {(p.lane >> 2) + 8 * (p.reg >> 1 & 1),
            2 * (p.lane & 3) + (p.reg & 1) + 8 * (p.reg >> 2)};
  }
  static CRENEL_HD constexpr Place place(Element e) {
    return {(e.row & 7) * 4 + ((e.col & 7) >> 1),
            (e.col & 1) + 2 * (e.row >> 3) + 4 * (e.col >> 3)};
  }
};
struct MapB {
  static constexpr u32 registers = 4, rows = kDepth, cols = kCols;
  static CRENEL_HD constexpr Element element(Place p) {
    return {2 * (p.lane & 3) + (p.reg & 1) + 8 * (p.reg >> 1), p.lane >> 2};
  }
  static CRENEL_HD constexpr Place place(Element e) {
    return {e.col * 4 + ((e.row & 7) >> 1), (e.row & 1) + 2 * (e.row >> 3)};
  }
};
struct MapC {
  static constexpr u32 registers = 4, rows = kRows, cols = kCols;
  static CRENEL_HD constexpr Element element(Place p) {
    return {(p.lane >> 2) + 8 * (p.reg >> 1), 2 * (p.lane & 3) + (p.reg & 1)};
  }
  static CRENEL_HD constexpr Place place(Element e) {
    return {(e.row & 7) * 4 + (e.col >> 1), (e.col & 1) + 2 * (e.row >> 3)};
  }
};

/// All lanes' registers of one operand: at[register][lane], one row a register-file beat.
template <class Map>
struct Fragment {
  u32 at[Map::registers][kLanes] = {};
};
using FragmentA = Fragment<MapA>;
using FragmentB = Fragment<MapB>;
using FragmentC = Fragment<MapC>;

/// The constants of 8 columns in one register: lane l holds word l / 8 of column l % 8.
struct FragmentConstants {
  u32 at[kLanes] = {};
};

template <class Map>
inline Fragment<Map> to_fragment(const u32* dense) {
  Fragment<Map> f;
  for (u32 reg = 0; reg < Map::registers; ++reg)
    for (u32 lane = 0; lane < kLanes; ++lane) {
      const Element e = Map::element({lane, reg});
      f.at[reg][lane] = dense[e.row * Map::cols + e.col];
    }
  return f;
}

template <class Map>
inline void to_dense(u32* dense, const Fragment<Map>& f) {
  for (u32 reg = 0; reg < Map::registers; ++reg)
    for (u32 lane = 0; lane < kLanes; ++lane) {
      const Element e = Map::element({lane, reg});
      dense[e.row * Map::cols + e.col] = f.at[reg][lane];
    }
}

/// The fragment of 8 columns' constants, not checked.
inline FragmentConstants to_fragment(const ColumnConstants* columns) {
  FragmentConstants f;
  for (u32 col = 0; col < kCols; ++col) {
    const ConstantWords words = encode(columns[col]);
    for (u32 word = 0; word < 4; ++word) f.at[word * kCols + col] = words[word];
  }
  return f;
}

/// What FHEC.SETC makes of a register.
inline std::array<Column, kCols> decode(const FragmentConstants& f) {
  std::array<Column, kCols> columns;
  for (u32 col = 0; col < kCols; ++col)
    columns[col] = decode(f.at[col], f.at[8 + col], f.at[16 + col], f.at[24 + col]);
  return columns;
}

}  // namespace crenel::fhecore
