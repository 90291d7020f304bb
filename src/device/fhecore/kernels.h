// FhecoreKernels: the instruction fhe_sync, and transforms and base conversions made of nothing
// else but it and counted element-wise multiplications. An emulation: it computes what a GPU with
// FHECore units would, and counts what that GPU would execute (fhecore/doc/isa.md, mapping.md).
//
// The rules of device/poly/kernels.h hold: stream order, no synchronisation but in counts(),
// workspace from the stream's pool, class `exact`. Results are those of PolyKernels::ntt, intt and
// base_convert, bit for bit. Not for use from several threads at once: the counters belong to the
// object.
#pragma once

#include "crenel/device/device.h"
#include "device/fhecore/plan.h"
#include "device/poly/kernels.h"

namespace crenel::device {

/// `count` tile products of 16 x 16 tiles, row-major and dense, device memory aligned to 32 bytes.
struct FhecoreTiles {
  u32* d = nullptr;  ///< [count][16][16]; may be c
  const u32* a = nullptr;
  const u32* b = nullptr;
  const u32* c = nullptr;          ///< null: zeros
  const u32* constants = nullptr;  ///< [sets][2][32] words: fragments of the left and right columns
  u32 sets = 1;                    ///< 1: for all tiles, or `count`
  u32* faults = nullptr;           ///< [count] fault bits of 16 columns; may be null
  u32 count = 0;
};

class FhecoreKernels {
 public:
  using View = PolyView<u32>;
  using ConstView = PolyView<const u32>;

  virtual ~FhecoreKernels() = default;

  Prepared<FhecoreTransform> prepare(FhecoreTransform table);
  Prepared<FhecoreConversion> prepare(FhecoreConversion table);

  /// The intrinsic on every tile: FHEC.SETC and FHEC.16816 for either half. Any words; faults as in
  /// the ISA, no error. ParameterError for null or misaligned pointers.
  void fhe_sync(Stream& stream, const FhecoreTiles& tiles);
  /// As PolyKernels::ntt and PolyKernels::intt, in place allowed.
  void ntt(Stream& stream, const View& out, const ConstView& in,
           const Prepared<FhecoreTransform>& table);
  void intt(Stream& stream, const View& out, const ConstView& in,
            const Prepared<FhecoreTransform>& table);
  /// As PolyKernels::base_convert; log_n at least 4. `out` must not overlap `in`.
  void base_convert(Stream& stream, const View& out, const ConstView& in,
                    const Prepared<FhecoreConversion>& table);

  /// What was executed since the last reset_counts. Waits for the stream.
  virtual FhecoreCounts counts(Stream& stream) = 0;
  virtual void reset_counts(Stream& stream) = 0;

 protected:
  virtual std::shared_ptr<const DeviceTable> do_prepare(const FhecoreTransform&) { return nullptr; }
  virtual std::shared_ptr<const DeviceTable> do_prepare(const FhecoreConversion&) {
    return nullptr;
  }
  virtual void do_fhe_sync(Stream& stream, const FhecoreTiles& tiles) = 0;
  /// The passes of one direction on every limb.
  virtual void do_transform(Stream& stream, View out, ConstView in,
                            const Prepared<FhecoreTransform>& table, bool inverse) = 0;
  virtual void do_base_convert(Stream& stream, View out, ConstView in,
                               const Prepared<FhecoreConversion>& table) = 0;
};

}  // namespace crenel::device
