#include "common/dataset/example.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"

#include "common/dataset/tfrecord.h"
#include "common/log.h"
#include "common/status.h"

namespace assay::dataset {
namespace {

static_assert(std::endian::native == std::endian::little, "the formats are read as they lie");

// Wire types of the protobuf encoding.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kDelimited = 2, kFixed32 = 5 };

// One field of a message: its number, and its value as the bytes it occupies.
struct Field {
  uint32_t number = 0;
  uint32_t type = kVarint;
  absl::string_view value;  // for kDelimited without the length
};

// Iterates over the fields of a message. Values point into the message.
class FieldReader {
 public:
  // `origin`: where the outermost message begins, for the offsets in errors.
  FieldReader(absl::string_view message, const char* origin) : rest_(message), origin_(origin) {}

  // The next field; none at the end.
  absl::StatusOr<std::optional<Field>> Next() {
    if (rest_.empty()) return std::nullopt;
    ASSIGN_OR_RETURN(const uint64_t tag, Varint());
    Field field{.number = static_cast<uint32_t>(tag >> 3), .type = static_cast<uint32_t>(tag & 7)};
    if (field.number == 0) return Malformed("field number 0");
    ASSIGN_OR_RETURN(const uint64_t size, ValueSize(field.type));
    if (size > rest_.size()) return Malformed("a value reaches past the end of its message");
    field.value = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return field;
  }

  absl::Status Malformed(absl::string_view problem) const {
    return ErrorAt(rest_.data() - origin_, absl::StrCat("not a tf.Example: ", problem));
  }

 private:
  absl::StatusOr<uint64_t> Varint() {
    constexpr size_t kMaxVarintBytes = 10;
    uint64_t value = 0;
    for (size_t i = 0; i < kMaxVarintBytes && i < rest_.size(); ++i) {
      const uint64_t byte = static_cast<unsigned char>(rest_[i]);
      value |= (byte & 0x7F) << (7 * i);
      if ((byte & 0x80) != 0) continue;
      rest_.remove_prefix(i + 1);
      return value;
    }
    return Malformed("a number does not end");
  }

  // How many bytes of rest_ the value takes; a length is consumed.
  absl::StatusOr<uint64_t> ValueSize(uint32_t type) {
    switch (type) {
      case kVarint: {
        const absl::string_view before = rest_;
        RETURN_IF_ERROR(Varint().status());
        const uint64_t size = before.size() - rest_.size();
        rest_ = before;
        return size;
      }
      case kFixed64:
        return 8;
      case kDelimited:
        return Varint();
      case kFixed32:
        return 4;
      default:
        return Malformed(absl::StrCat("unknown wire type ", type));
    }
  }

  absl::string_view rest_;
  const char* const origin_;
};

// The last value of delimited field `number` of `message`, which is what protobuf keeps; none if
// there is no such field.
absl::StatusOr<std::optional<absl::string_view>> Find(absl::string_view message, uint32_t number,
                                                      const char* origin) {
  std::optional<absl::string_view> found;
  FieldReader reader(message, origin);
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<Field> field, reader.Next());
    if (!field) return found;
    if (field->number == number && field->type == kDelimited) found = field->value;
  }
}

absl::Status AppendFloats(const Field& field, const FieldReader& reader, std::vector<float>* out) {
  if (field.type != kFixed32 && field.type != kDelimited)
    return reader.Malformed("floats of a wrong wire type");
  if (field.value.size() % sizeof(float) != 0)
    return reader.Malformed("packed floats that are not a multiple of 4 bytes");
  const size_t old_size = out->size();
  out->resize(old_size + field.value.size() / sizeof(float));
  std::memcpy(out->data() + old_size, field.value.data(), field.value.size());
  return absl::OkStatus();
}

// FloatList: field 1, packed or not.
absl::StatusOr<std::vector<float>> ParseFloats(absl::string_view list, const char* origin) {
  std::vector<float> values;
  FieldReader reader(list, origin);
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<Field> field, reader.Next());
    if (!field) return values;
    if (field->number == 1) RETURN_IF_ERROR(AppendFloats(*field, reader, &values));
  }
}

// Features.feature, one map entry: key (1) and Feature (2).
absl::Status ParseEntry(absl::string_view entry, const char* origin, ExampleView* example) {
  ASSIGN_OR_RETURN(const std::optional<absl::string_view> key, Find(entry, 1, origin));
  ASSIGN_OR_RETURN(const std::optional<absl::string_view> feature, Find(entry, 2, origin));
  if (!key || !feature) return absl::OkStatus();
  const int64_t offset = feature->data() - origin;
  if (*key == "x") {
    ASSIGN_OR_RETURN(const std::optional<absl::string_view> list, Find(*feature, 1, origin));
    if (!list) return ErrorAt(offset, "feature \"x\" is not a bytes_list");
    ASSIGN_OR_RETURN(const std::optional<absl::string_view> value, Find(*list, 1, origin));
    example->x = value.value_or(absl::string_view());
  } else if (*key == "y") {
    ASSIGN_OR_RETURN(const std::optional<absl::string_view> list, Find(*feature, 2, origin));
    if (!list) return ErrorAt(offset, "feature \"y\" is not a float_list");
    ASSIGN_OR_RETURN(example->y, ParseFloats(*list, origin));
  }
  return absl::OkStatus();
}

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7)
    out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

size_t VarintSize(uint64_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= 7)
    ++size;
  return size;
}

void AppendHeader(uint32_t number, uint64_t size, std::string* out) {
  AppendVarint((number << 3) | kDelimited, out);
  AppendVarint(size, out);
}

// Size of a delimited field with a value of `size` bytes; field numbers here are below 16.
size_t DelimitedSize(size_t size) {
  return 1 + VarintSize(size) + size;
}

// Sizes of the nested messages around the voxels, from the inside out.
struct VoxelSizes {
  explicit VoxelSizes(size_t voxel_bytes)
      : bytes_list(DelimitedSize(voxel_bytes)),
        feature(DelimitedSize(bytes_list)),
        entry(kKeyBytes + DelimitedSize(feature)),
        features(DelimitedSize(entry) + kTargetEntryBytes) {}

  static constexpr size_t kKeyBytes = 3;           // key "x" or "y"
  static constexpr size_t kTargetEntryBytes = 27;  // the whole entry for "y"
  size_t bytes_list;
  size_t feature;
  size_t entry;
  size_t features;
};

}  // namespace

absl::StatusOr<ExampleView> ParseExample(absl::string_view message) {
  ExampleView example;
  const char* const origin = message.data();
  ASSIGN_OR_RETURN(const std::optional<absl::string_view> features, Find(message, 1, origin));
  FieldReader reader(features.value_or(absl::string_view()), origin);
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<Field> entry, reader.Next());
    if (!entry) return example;
    if (entry->number == 1 && entry->type == kDelimited)
      RETURN_IF_ERROR(ParseEntry(entry->value, origin, &example));
  }
}

absl::StatusOr<CosmoSampleView> ParseCosmoSample(absl::string_view message, int edge) {
  ASSIGN_OR_RETURN(const ExampleView example, ParseExample(message));
  const int64_t want = CosmoValues(edge) * int64_t{sizeof(int16_t)};
  if (static_cast<int64_t>(example.x.size()) != want)
    return absl::DataLossError(absl::StrCat("feature \"x\" has ", example.x.size(),
                                            " bytes; a cube of edge ", edge, " has ", want));
  if (example.y.size() != kCosmoTargets)
    return absl::DataLossError(
        absl::StrCat("feature \"y\" has ", example.y.size(), " values; expected ", kCosmoTargets));
  CosmoSampleView sample{.voxels = example.x};
  for (size_t i = 0; i < kCosmoTargets; ++i) {
    if (!std::isfinite(example.y[i]))
      return absl::DataLossError(absl::StrCat("target ", i, " is not finite"));
    sample.targets[i] = example.y[i];
  }
  return sample;
}

absl::Status CheckCounts(const CosmoSampleView& sample) {
  for (size_t i = 1; i < sample.voxels.size(); i += sizeof(int16_t)) {
    // The sign is in the second byte.
    if (static_cast<signed char>(sample.voxels[i]) >= 0) continue;
    return absl::DataLossError(absl::StrCat("the count of value ", i / 2, " is negative"));
  }
  return absl::OkStatus();
}

std::string EncodeCosmoSample(std::span<const int16_t> counts,
                              const std::array<float, kCosmoTargets>& targets) {
  const size_t voxel_bytes = counts.size_bytes();
  const VoxelSizes sizes(voxel_bytes);
  std::string out;
  out.reserve(DelimitedSize(sizes.features));
  AppendHeader(1, sizes.features, &out);
  AppendHeader(1, sizes.entry, &out);
  AppendHeader(1, 1, &out);
  out.push_back('x');
  AppendHeader(2, sizes.feature, &out);
  AppendHeader(1, sizes.bytes_list, &out);
  AppendHeader(1, voxel_bytes, &out);
  out.append(reinterpret_cast<const char*>(counts.data()), voxel_bytes);

  constexpr size_t kTargetBytes = kCosmoTargets * sizeof(float);
  AppendHeader(1, VoxelSizes::kTargetEntryBytes - 2, &out);
  AppendHeader(1, 1, &out);
  out.push_back('y');
  AppendHeader(2, kTargetBytes + 4, &out);
  AppendHeader(2, kTargetBytes + 2, &out);
  AppendHeader(1, kTargetBytes, &out);
  out.append(reinterpret_cast<const char*>(targets.data()), kTargetBytes);
  return out;
}

}  // namespace assay::dataset
