// Stream of a split device: a stream on each part, which wait for one another where limbs meet.
#pragma once

#include <functional>

#include "backends/split/rooms.h"

namespace crenel::backend::split {

class SplitStream final : public device::DividedStream {
 public:
  SplitStream(std::shared_ptr<device::Device> device, std::shared_ptr<Blocks> blocks,
              std::vector<std::shared_ptr<device::Stream>> parts);
  ~SplitStream() override;

  const Blocks& blocks() const { return *blocks_; }
  u32 count() const { return static_cast<u32>(parts_.size()); }
  device::Stream& part(u32 p) const { return *parts_[p]; }
  /// Work queued on any part from now on starts after what was queued on all of them.
  void meet();
  /// How exchanges are to be made, of the ways that the parts can.
  device::ExchangeBy exchanges_by() const;
  /// Those of the recording that the calling thread is in, or the stream's own.
  Rooms& rooms();

  void synchronize() override;
  void copy_in(void* to, const void* from, std::size_t bytes) override;
  void copy_in_secret(void* to, const void* from, std::size_t bytes) override;
  void upload(void* to, const void* from, std::size_t bytes) override;
  void upload_addresses(void* to, const void* const* from, std::size_t count) override;
  void copy_out(void* to, const void* from, std::size_t bytes) override;
  void copy_out_secret(void* to, const void* from, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                 std::size_t row_bytes, std::size_t rows) override;
  void fill_zero(void* data, std::size_t bytes) override;
  void wait_for(device::Stream& other) override;
  std::shared_ptr<device::Event> mark() override;
  void wait_for(const std::shared_ptr<device::Event>& event) override;

  device::Buffer allocate(std::size_t bytes, bool secret = false) override;
  device::Buffer allocate_exact(std::size_t bytes) override;
  device::Buffer allocate_limbs(const LimbSet& limbs, const LimbRows& of) override;
  void trim() override;
  void account(std::shared_ptr<device::Account> account) override;
  bool replace_account(const device::Account* expected,
                       std::shared_ptr<device::Account> account) override;
  using Stream::account;

  std::vector<std::shared_ptr<device::Stream>> parts() const override { return parts_; }
  void for_pieces(const void* address, std::size_t bytes, bool all, const Piece& f) override;
  std::size_t room_bytes(std::span<const device::LimbShape> shapes) const override;
  device::Buffer allocate_room(std::span<const device::LimbShape> shapes) override;
  void reshape(const device::Buffer& room, const device::LimbShape& shape) override;
  u32 groups() const override;
  device::Buffer share(const void* limbs) override;
  void regroup(const ring::PolyView<u32>& to, const ring::PolyView<const u32>& from) override;

 protected:
  std::unique_ptr<device::GraphExec> record(const std::function<void()>& work) override;
  std::vector<Stream*> recorded_streams() override;
  void capture_ended() noexcept override { recorded_rooms_.reset(); }

 private:
  device::Buffer flat(std::size_t bytes, bool secret, bool exact);
  /// Of a part, for its limbs of any of the shapes.
  std::size_t room_bytes(u32 part, std::span<const device::LimbShape> shapes) const;
  void recycle(void* data, std::size_t bytes, std::size_t capacity, bool secret) noexcept override;

  std::shared_ptr<Blocks> blocks_;
  std::vector<std::shared_ptr<device::Stream>> parts_;
  bool can_meet_;  ///< the parts, inside kernels
  Rooms rooms_{*this};
  std::unique_ptr<Rooms> recorded_rooms_;  ///< of the recording under way; its thread's
};

SplitStream& split_stream(device::Stream& stream);

}  // namespace crenel::backend::split
