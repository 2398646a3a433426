// Images of others' programs: what is unpacked and kept, and programs inside under a real step.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "common/exit_code.h"
#include "common/file.h"
#include "common/program_contract.h"
#include "common/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/step_fixture.h"
#include "worker/agent/image_root.h"
#include "worker/agent/image_store.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

bool Never() {
  return false;
}

// What a shell does; fails the test if it fails.
void Do(const std::string& line) {
  ASSERT_EQ(std::system(absl::StrCat("set -e; ", line).c_str()), 0) << line;
}

// Makes the folder of a small system: busybox under the names that programs here use.
void MakeSystem(const std::string& root) {
  Do(absl::StrCat(
      "mkdir -p ", root, "/bin ", root, "/etc ", root, "/var/lib/own ", root, "/dev; ",
      "cp /bin/busybox ", root, "/bin/; cd ", root,
      "/bin; for name in sh cat ls id touch sleep chmod; do ln -sf busybox $name; done; ",
      "echo image > ../etc/where; echo image > ../etc/hosts; chmod -R go+rX .."));
}

void WriteSquashfs(const std::string& root, const std::string& path) {
  Do(absl::StrCat("mksquashfs ", root, " ", path, " -quiet -noappend -no-progress > /dev/null"));
}

v1::ImageFile ImageOf(const std::string& path) {
  v1::ImageFile image;
  image.set_path(path);
  image.set_sha256(*Sha256HexOfFile(path));
  return image;
}

class ImageStoreTest : public ::testing::Test {
 protected:
  ImageStoreTest() { MakeSystem(Root()); }
  std::string Root() const { return dir_.Path("root"); }
  // An image that differs from others in the content of one file.
  v1::ImageFile Make(const std::string& content) {
    CHECK_OK(WriteFileAtomic(absl::StrCat(Root(), "/etc/where"), content));
    const std::string path = dir_.Path(absl::StrCat(content, ".sqsh"));
    WriteSquashfs(Root(), path);
    return ImageOf(path);
  }
  std::string Where(const UnpackedImage& image) const {
    return ReadFile(absl::StrCat(image.root, "/etc/where")).value_or("");
  }
  std::vector<std::string> Kept() const {
    std::vector<std::string> names;
    const std::vector<std::string> all = *ListDirectory(dir_.Path("images"));
    for (const std::string& name : all)
      if (std::filesystem::is_directory(dir_.Path("images/" + name))) names.push_back(name);
    return names;
  }

  testing::TempDir dir_;
  ImageStore store_{dir_.Path("images"), std::nullopt};
};

TEST_F(ImageStoreTest, SquashfsAndTarGiveTheSameAndNobodysRights) {
  Do(absl::StrCat("chmod 4755 ", Root(), "/bin/busybox; chmod 2755 ", Root(), "/etc"));
  const v1::ImageFile squashfs = Make("same");
  Do(absl::StrCat("tar -C ", Root(), " -czf ", dir_.Path("same.tar.gz"), " ."));
  for (const v1::ImageFile& image : {squashfs, ImageOf(dir_.Path("same.tar.gz"))}) {
    const absl::StatusOr<UnpackedImage> unpacked = store_.Open(image, Never);
    ASSERT_THAT(unpacked, IsOk()) << image.path();
    EXPECT_EQ(Where(*unpacked), "same");
    struct stat info {};
    ASSERT_EQ(stat(absl::StrCat(unpacked->root, "/bin/busybox").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0755U) << image.path();
    EXPECT_EQ(info.st_uid, geteuid());
    ASSERT_EQ(stat(absl::StrCat(unpacked->root, "/etc").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0755U) << image.path();
  }
}

TEST_F(ImageStoreTest, IsUnpackedOnceAndReadAgainOnlyIfTheFileIsAnother) {
  const v1::ImageFile image = Make("once");
  const std::string root = store_.Open(image, Never)->root;
  // A mark that a second unpacking would remove.
  CHECK_OK(WriteFileAtomic(absl::StrCat(root, "/etc/mark"), ""));
  int look_count = 0;
  const auto count = [&look_count] {
    ++look_count;
    return false;
  };
  EXPECT_THAT(store_.Open(image, count), IsOk());
  EXPECT_EQ(look_count, 0) << "read again";
  Do(absl::StrCat("touch ", image.path()));
  EXPECT_THAT(store_.Open(image, count), IsOk());
  EXPECT_GT(look_count, 0) << "not read again";
  EXPECT_TRUE(FileExists(absl::StrCat(root, "/etc/mark")));
}

TEST_F(ImageStoreTest, AFileThatHasChangedIsRefusedAlsoWhereTheFormerOneIsKept) {
  const v1::ImageFile image = Make("former");
  CHECK_OK(store_.Open(image, Never).status());
  CHECK_OK(RenameSynced(Make("other").path(), image.path()));
  const absl::Status status = store_.Open(image, Never).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(image.path()), HasSubstr("has changed"), HasSubstr("submit again")));
}

TEST_F(ImageStoreTest, ThoseUsedLongestAgoMakeRoomButForTheOneAtWork) {
  const v1::ImageFile first = Make("first");
  const absl::StatusOr<UnpackedImage> at_work = store_.Open(first, Never);
  ASSERT_THAT(at_work, IsOk());
  std::vector<std::string> digests = {first.sha256()};
  for (const char* name : {"second", "third", "fourth", "fifth", "sixth"}) {
    const v1::ImageFile image = Make(name);
    CHECK_OK(store_.Open(image, Never).status());
    digests.push_back(image.sha256());
  }
  EXPECT_THAT(Kept(), Contains(first.sha256()));
  EXPECT_THAT(Kept(), Not(Contains(digests[1])));
  EXPECT_THAT(Kept(), Contains(digests.back()));
  EXPECT_EQ(Where(*at_work), "first");
}

TEST_F(ImageStoreTest, WhatIsNoImageIsToldWithItsRemedy) {
  const std::string path = dir_.Path("file");
  const auto told = [&] {
    return std::string(store_.Open(ImageOf(path), Never).status().message());
  };
  CHECK_OK(WriteFileAtomic(path, "text"));
  EXPECT_THAT(told(), HasSubstr("neither a squashfs nor a tar file"));
  CHECK_OK(WriteFileAtomic(path, std::string(32, ' ') + "SIF_MAGIC" + std::string(90, ' ')));
  EXPECT_THAT(told(), HasSubstr("apptainer build --sandbox"));
  Do(absl::StrCat("cd ", dir_.Path("."),
                  "; mkdir layers; echo {} > layers/index.json; tar -C layers", " -cf file ."));
  EXPECT_THAT(told(), HasSubstr("podman export"));
  Do(absl::StrCat("head -c 4000 ", Make("cut").path(), " > ", path));
  EXPECT_THAT(told(), HasSubstr("cannot be unpacked: "));
  EXPECT_THAT(Kept(), SizeIs(0));
}

TEST_F(ImageStoreTest, WhatTheNodeLacksIsTheNodesFault) {
  const v1::ImageFile image = Make("node");
  const std::string path = std::getenv("PATH");
  setenv("PATH", dir_.Path("nowhere").c_str(), 1);
  const absl::Status status = store_.Open(image, Never).status();
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(image.path()), HasSubstr("unsquashfs"),
                                                   HasSubstr("install the packages")));

  std::filesystem::remove(image.path());
  EXPECT_THAT(std::string(store_.Open(image, Never).status().message()),
              AllOf(HasSubstr(image.path()), HasSubstr("on every node")));
}

TEST_F(ImageStoreTest, MayBeStopped) {
  EXPECT_EQ(store_.Open(Make("long"), [] { return true; }).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_THAT(Kept(), SizeIs(0));
}

TEST_F(ImageStoreTest, TheAgentsRightsOpenNothingForItsPrograms) {
  if (geteuid() != 0) GTEST_SKIP() << "only root has rights that its programs have not";
  const v1::ImageFile image = Make("secret");
  Do(absl::StrCat("chmod 0755 ", dir_.Path("."), "; chmod 0600 ", image.path()));
  ImageStore store(dir_.Path("images"), Account{.name = "nobody", .uid = 65534, .gid = 65534});
  EXPECT_EQ(store.Open(image, Never).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(ReadFile(image.path()).ok()) << "the rights did not come back";
}

TEST_F(ImageStoreTest, FoldersAreMadeOnTheWayToWhatIsMounted) {
  Do(absl::StrCat("ln -s bin ", Root(), "/sbin; mkdir ", Root(), "/var/cache"));
  const std::string root = Root();
  EXPECT_THAT(ImageArguments(root, {"/dev", "/etc/hosts", "/var/lib/own/data", "/elsewhere/run"}),
              ElementsAre("--ro-bind", root + "/bin", "/bin",                               //
                          "--dir", "/etc",                                                  //
                          "--ro-bind", root + "/etc/where", "/etc/where",                   //
                          "--symlink", "bin", "/sbin",                                      //
                          "--dir", "/var", "--ro-bind", root + "/var/cache", "/var/cache",  //
                          "--dir", "/var/lib", "--dir", "/var/lib/own"));
}

TEST_F(ImageStoreTest, TheDriversLibrariesComeFromTheNode) {
  Do(absl::StrCat("mkdir ", dir_.Path("a"), " ", dir_.Path("b"), "; touch ",
                  dir_.Path("a/libcuda.so.1"), " ", dir_.Path("b/libcuda.so.1"), " ",
                  dir_.Path("b/libnvidia-ml.so.1"), " ", dir_.Path("b/libc.so.6")));
  EXPECT_THAT(DriverLibraries({dir_.Path("a"), dir_.Path("b")}),
              ElementsAre(Pair("/usr/local/nvidia/lib64/libcuda.so.1", dir_.Path("a/libcuda.so.1")),
                          Pair("/usr/local/nvidia/lib64/libnvidia-ml.so.1",
                               dir_.Path("b/libnvidia-ml.so.1"))));
}

class ImageTest : public StepFixture {
 protected:
  ImageTest() {
    MakeSystem(run_.dir.Path("root"));
    WriteSquashfs(run_.dir.Path("root"), ImagePath());
    *run_.spec.mutable_command()->mutable_image() = ImageOf(ImagePath());
    run_.spec.mutable_command()->set_launcher(kPerRank);
    run_.spec.mutable_command()->set_stop_grace_s(1);
    run_.spec.add_hosts("127.0.0.1");
  }
  std::string ImagePath() const { return run_.dir.Path("system.sqsh"); }
  void Script(const std::string& text) {
    for (const char* word : {"/bin/sh", "-c"})
      run_.spec.mutable_command()->add_command(word);
    run_.spec.mutable_command()->add_command(text);
  }
  std::string Read(const std::string& path) const { return ReadFile(path).value_or(""); }
  std::string Output() const { return Read(directory_.Path("program_0.out")); }
};

constexpr char kLook[] =
    "cat /etc/where; ls /usr 2> /dev/null; cat $ASSAY_DATASET/train/a.bin; echo; "
    "echo written > made && cat made; echo x 2> /dev/null > /bin/new || echo read-only; "
    "cat /etc/hosts | while read line; do [ \"$line\" != image ] || echo \"hosts of the image\"; "
    "done; echo line >> $ASSAY_LOG && echo logged";
constexpr char kSeen[] = "image\ntrain\nwritten\nread-only\nlogged\n";

TEST_F(ImageTest, AProgramSeesItsImageItsDataAndNothingElseOfTheNode) {
  Script(kLook);
  EXPECT_EQ(Run(), (StepExit{0, "finished"})) << Output();
  EXPECT_EQ(Output(), kSeen) << Read(directory_.Path("sandbox.log"));
  const auto bill = nlohmann::json::parse(Read(directory_.MaterialsPath()));
  EXPECT_EQ(bill["isolation"], "namespaces");
  EXPECT_EQ(bill["image"]["sha256"], run_.spec.command().image().sha256());
  EXPECT_TRUE(FileExists(directory_.TouchPath()) || FileExists(directory_.ObservedTouchPath()));
}

TEST_F(ImageTest, OfAnAccountOfItsOwnAlike) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can choose accounts";
  UseAccounts();
  ASSERT_EQ(chmod(ImagePath().c_str(), 0644), 0);
  Script(kLook);
  EXPECT_EQ(Run(), (StepExit{0, "finished"})) << Output();
  EXPECT_EQ(Output(), kSeen) << Read(directory_.Path("sandbox.log"));
  // What an agent does when it starts leaves the way to images open.
  ASSERT_THAT(CloseDataDirectory(run_.worker, *FindRunUser(run_.worker)), IsOk());
  struct stat info {};
  const std::string root =
      run_.dir.Path(absl::StrCat("data/images/", run_.spec.command().image().sha256(), "/root"));
  ASSERT_EQ(stat(root.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755U);
}

TEST_F(ImageTest, OneThatHasChangedFailsTheRunBeforeItStarts) {
  Do(absl::StrCat("echo more >> ", ImagePath()));
  Script("echo started");
  const StepExit exit = Run();
  EXPECT_EQ(exit.code, static_cast<int>(ExitCode::kBadData));
  EXPECT_THAT(exit.reason, HasSubstr("system.sqsh has changed"));
  EXPECT_EQ(Output(), "");
}

TEST_F(ImageTest, AProgramThatTheImageLacksIsTold) {
  run_.spec.mutable_command()->add_command("/usr/bin/python3");
  const StepExit exit = Run();
  EXPECT_NE(exit.code, 0);
  EXPECT_THAT(Output(), HasSubstr("/usr/bin/python3")) << exit.reason << "\n"
                                                       << Read(directory_.Path("sandbox.log"));
}

}  // namespace
}  // namespace assay::agent
