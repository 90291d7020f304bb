// Files are complete or not there, whatever happens to their writer.
#include "core/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "crenel/core/error.h"

namespace crenel::test {
namespace {

namespace fs = std::filesystem;

using Bytes = std::vector<u8>;

class OutputFiles : public testing::Test {
 protected:
  OutputFiles() {
    std::string pattern = (fs::temp_directory_path() / "crenel-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder " + pattern);
    folder = pattern;
    path = (folder / "file").string();
  }
  ~OutputFiles() override { fs::remove_all(folder); }

  void put(const std::string& text) const { std::ofstream(path) << text; }
  std::string get() const {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  long files() const { return std::distance(fs::directory_iterator(folder), {}); }
  static unsigned mode(const fs::path& file) {
    struct stat about{};
    EXPECT_EQ(::stat(file.c_str(), &about), 0) << file;
    return about.st_mode & 0777;
  }
  std::string refusal() const {
    try {
      write_file(path, Bytes{1});
    } catch (const SerializationError& error) {
      EXPECT_FALSE(error.field("where").empty());
      EXPECT_FALSE(error.field("expected").empty());
      return error.field("found");
    }
    return "";
  }

  fs::path folder;
  std::string path;
};

const Bytes kNew{'n', 'e', 'w'};

TEST_F(OutputFiles, TakeTheirNameOnCommit) {
  {
    OutputFile file(path, FileAccess::usual);
    file.write(1, Bytes{'e', 'w'});
    file.write(0, Bytes{'n'});
    EXPECT_FALSE(fs::exists(path));
    file.commit();
  }
  EXPECT_EQ(get(), "new");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFiles, WithoutCommitLeaveNothing) {
  put("old");
  {
    OutputFile file(path, FileAccess::usual);
    file.write(0, kNew);
    EXPECT_EQ(files(), 2);
  }
  EXPECT_EQ(get(), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFiles, AWriterKilledInTheMiddleLeavesTheOldFile) {
  put("old");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    OutputFile file(path, FileAccess::owner);
    file.write(0, kNew);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(get(), "old");
  EXPECT_EQ(files(), 2);
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path() != path) {
      EXPECT_EQ(mode(entry.path()), 0600u) << entry.path();
    }
  write_file(path, kNew);  // what the killed one left is in nobody's way
  EXPECT_EQ(get(), "new");
}

TEST_F(OutputFiles, NamesOfUnfinishedFilesDiffer) {
  OutputFile a(path, FileAccess::usual), b(path, FileAccess::usual);
  EXPECT_EQ(files(), 2);
  a.write(0, Bytes{'a'});
  b.write(0, Bytes{'b'});
  b.commit();
  a.commit();
  EXPECT_EQ(get(), "a");
}

TEST_F(OutputFiles, OnlyRegularFilesAreReplaced) {
  const fs::path victim = folder / "victim";
  std::ofstream(victim) << "precious";
  fs::create_symlink(victim, path);
  EXPECT_EQ(refusal(), "a symbolic link");
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(refusal(), "a pipe");
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_EQ(refusal(), "a directory");
  path = "/dev/null";
  EXPECT_EQ(refusal(), "a device");
  EXPECT_TRUE(fs::is_character_file(path));
  path = "";
  EXPECT_EQ(refusal(), "no name");
  path = (folder / "").string();
  EXPECT_EQ(refusal(), "the name of a directory");
  path = (folder / "file").string() + std::string(1, '\0') + "x";
  EXPECT_EQ(refusal(), "a NUL in the name");
}

TEST_F(OutputFiles, WhatTakesTheNameMeanwhileIsNotReplaced) {
  const fs::path victim = folder / "victim";
  std::ofstream(victim) << "precious";
  OutputFile file(path, FileAccess::usual);
  file.write(0, kNew);
  fs::create_symlink(victim, path);
  EXPECT_THROW(file.commit(), SerializationError);
  EXPECT_TRUE(fs::is_symlink(path));
}

TEST_F(OutputFiles, Permissions) {
  const mode_t before = ::umask(0);
  write_file(path, kNew, FileAccess::owner);
  EXPECT_EQ(mode(path), 0600u);
  write_file(path, kNew);  // stays closed
  EXPECT_EQ(mode(path), 0600u);
  fs::permissions(path, fs::perms(0644));
  write_file(path, kNew);
  EXPECT_EQ(mode(path), 0644u);
  write_file(path, kNew, FileAccess::owner);  // is closed
  EXPECT_EQ(mode(path), 0600u);
  ::umask(077);
  fs::remove(path);
  write_file(path, kNew);
  EXPECT_EQ(mode(path), 0600u);
  ::umask(before);
}

// In a folder of everybody's, somebody waits under the name with a file that all may write to.
TEST_F(OutputFiles, AnotherUsersFileDoesNotOpenOurs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  for (const auto& [theirs, ours] : {std::pair{0666u, 0644u}, {0600u, 0600u}}) {
    put("theirs");
    fs::permissions(path, fs::perms(theirs));
    ASSERT_EQ(::chown(path.c_str(), 1, 1), 0);
    write_file(path, kNew);
    EXPECT_EQ(mode(path), ours);
    fs::remove(path);
  }
}

}  // namespace
}  // namespace crenel::test
