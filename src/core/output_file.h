// A file that takes its name when it is complete: crenel/core/file.h says what that promises.
#pragma once

#include "crenel/core/file.h"

namespace crenel {

/// Not thread-safe. What is not committed is removed; a process that is killed leaves a file
/// `.crenel-<32 random digits>.partial`, of mode 0600 unless its bytes are for anyone, beside the
/// old one.
class OutputFile {
 public:
  /// Refuses a path that names anything but a regular file or nothing.
  OutputFile(const std::string& path, FileAccess access);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(u64 at, std::span<const u8> bytes);
  /// Brings the bytes to the disk, gives the file its name, and brings that to the disk too.
  void commit();

 private:
  void open_folder();
  /// The permissions of the file that will be replaced, -1 for none.
  int check_target() const;
  void create(FileAccess access, int replaced);
  void close_all();
  /// `code`: of the operating system, 0 for none.
  [[noreturn]] void fail(const std::string& found, const char* expected, int code = 0) const;
  /// With errno and its text.
  [[noreturn]] void fail() const;

  std::string path_, name_, partial_;
  int folder_ = -1, file_ = -1;
  bool created_ = false;
  u64 unsynced_ = 0;
};

}  // namespace crenel
