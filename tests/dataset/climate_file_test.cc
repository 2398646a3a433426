// HDF5 files that mean harm: small ones that claim to be huge, and ones whose numbers lie
// elsewhere.

#include "common/dataset/climate_file.h"

#include <hdf5.h>

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/dataset/climate_dataset.h"
#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::dataset {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::testing::HasSubstr;

// The bytes of an HDF5 file that `fill` writes into.
std::string MakeFile(const TempDir& dir, const std::function<void(hid_t file)>& fill) {
  const std::string path = dir.Path("made.h5");
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  fill(file);
  H5Fclose(file);
  return ReadFile(path).value();
}

void MakeGroup(hid_t file) {
  H5Gclose(H5Gcreate2(file, "climate", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}

// Creates climate/data, of which nothing is written.
void MakeData(hid_t file, const std::vector<hsize_t>& dimensions, hid_t options) {
  MakeGroup(file);
  const hid_t space =
      H5Screate_simple(static_cast<int>(dimensions.size()), dimensions.data(), nullptr);
  H5Dclose(
      H5Dcreate2(file, "climate/data", H5T_IEEE_F32LE, space, H5P_DEFAULT, options, H5P_DEFAULT));
  H5Sclose(space);
}

TEST(HostileClimateFileTest, AFileLargerThanAnySampleIsRefusedBeforeMemoryIsTaken) {
  const TempDir dir;
  const std::string huge = MakeFile(dir, [](hid_t file) {
    const hid_t options = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk[] = {1, 1, 16};
    H5Pset_chunk(options, 3, chunk);
    MakeData(file, {65536, 65536, 16}, options);
    H5Pclose(options);
  });
  ASSERT_LT(huge.size(), 10'000U);

  EXPECT_THAT(ClimateExtentsOf(huge), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("65536")));
  EXPECT_THAT(CheckClimateFile("train/data-1979-01-01-00-1.h5", huge),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(HostileClimateFileTest, NumbersInOtherFilesAreNotRead) {
  const TempDir dir;
  const std::string other = dir.Path("other.h5");
  const ClimateSample sample = {.extents = {1, 2},
                                .data = std::vector<float>(32, 0.5F),
                                .labels = {0, 1},
                                .relaxed_labels = {0, 1}};
  ASSERT_THAT(WriteFileAtomic(other, *EncodeClimateSample(sample)), IsOk());

  const std::string linked = MakeFile(dir, [&](hid_t file) {
    H5Lcreate_external(other.c_str(), "/climate", file, "climate", H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_THAT(ClimateExtentsOf(linked), StatusIs(absl::StatusCode::kDataLoss));

  const std::string stored = MakeFile(dir, [&](hid_t file) {
    const hid_t options = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(options, other.c_str(), 0, 32 * sizeof(float));
    MakeData(file, {1, 2, 16}, options);
    H5Pclose(options);
  });
  EXPECT_THAT(ClimateExtentsOf(stored),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("another file")));

  const std::string mapped = MakeFile(dir, [&](hid_t file) {
    const hid_t options = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t dimensions[] = {1, 2, 16};
    const hid_t space = H5Screate_simple(3, dimensions, nullptr);
    H5Pset_virtual(options, space, other.c_str(), "/climate/data", space);
    MakeData(file, {1, 2, 16}, options);
    H5Sclose(space);
    H5Pclose(options);
  });
  EXPECT_THAT(ClimateExtentsOf(mapped),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("another file")));
}

}  // namespace
}  // namespace assay::dataset
