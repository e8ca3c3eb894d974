// Folders that torch.distributed.checkpoint writes: `.metadata` says of every tensor which chunks
// it has and where each lies; a chunk is a small file of torch.save inside a large one.

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/path_containment.h"
#include "formats/pytorch/checkpoint.h"

namespace tombolo::torch {

namespace {

using Kind = PickleValue::Kind;

struct Place {
  std::string file;
  uint64_t offset = 0, length = 0;
};
/// Tensor name and, where it has several chunks, the chunk's offsets.
using ChunkKey = std::pair<std::string, std::vector<int64_t>>;

Error malformed() { return parse_error("damaged .metadata of a distributed checkpoint"); }

Result<std::map<ChunkKey, Place>> read_places(const PickleValue& metadata) {
  std::map<ChunkKey, Place> places;
  const PickleValue* data = metadata.attribute("storage_data");
  if (data == nullptr || !data->is(Kind::kDict))
    return unsupported("a distributed checkpoint of another storage writer than the file system's");
  for (size_t i = 0; i + 1 < data->entries.size(); i += 2) {
    const PickleValue &index = *data->entries[i], &info = *data->entries[i + 1];
    const PickleValue* name = index.attribute("fqn");
    const PickleValue* offset = index.attribute("offset");
    const PickleValue* file = info.attribute("relative_path");
    const PickleValue *start = info.attribute("offset"), *length = info.attribute("length");
    if (!name || !name->is_text() || !file || !file->is_text() || !start || !length) {
      return malformed();
    }
    Place place;
    place.file = std::string(file->text);
    const int64_t from = start->as_int().value_or(-1), size = length->as_int().value_or(-1);
    if (from < 0 || size < 0) return malformed();
    place.offset = static_cast<uint64_t>(from);
    place.length = static_cast<uint64_t>(size);
    const auto offsets = offset ? offset->as_ints() : std::nullopt;
    places[{std::string(name->text), offsets.value_or(std::vector<int64_t>())}] = std::move(place);
  }
  return places;
}

/// Copies a chunk into its place inside the whole tensor.
Status insert(const Tensor& chunk, const std::vector<int64_t>& offsets, Tensor& whole) {
  const size_t rank = whole.rank(), width = bytes_of(whole.dtype());
  if (chunk.rank() != rank || offsets.size() != rank || chunk.dtype() != whole.dtype() ||
      width == 0)
    return malformed();
  for (size_t axis = 0; axis < rank; ++axis)
    if (offsets[axis] < 0 || chunk.dim(axis) > whole.dim(axis) ||
        offsets[axis] > whole.dim(axis) - chunk.dim(axis))
      return malformed();
  if (chunk.size() == 0) return ok();
  const int64_t inner = rank == 0 ? 1 : chunk.dim(rank - 1);
  std::vector<int64_t> index(rank, 0);
  const std::byte* from = chunk.bytes().data();
  for (int64_t done = 0; done < chunk.size(); done += inner) {
    int64_t at = 0;
    for (size_t axis = 0; axis < rank; ++axis)
      at = at * whole.dim(axis) + offsets[axis] + index[axis];
    std::memcpy(whole.mutable_bytes().data() + static_cast<size_t>(at) * width, from,
                static_cast<size_t>(inner) * width);
    from += static_cast<size_t>(inner) * width;
    for (size_t axis = rank == 0 ? 0 : rank - 1; axis-- > 0;) {
      if (++index[axis] < chunk.dim(axis)) break;
      index[axis] = 0;
    }
  }
  return ok();
}

class ChunkFiles {
 public:
  ChunkFiles(std::string folder, Storage& storage)
      : folder_(std::move(folder)), storage_(storage) {}

  /// The tensor that lies at `place`.
  Result<Tensor> read(const Place& place) {
    auto at = files_.find(place.file);
    if (at == files_.end()) {
      CHECK_OK(check_location(place.file));
      TRY(MappedFile file, MappedFile::open(folder_ + "/" + place.file));
      storage_.keep(file);
      at = files_.emplace(place.file, std::move(file)).first;
    }
    const MappedFile& file = at->second;
    if (place.offset > file.size() || place.length > file.size() - place.offset)
      return parse_error("a chunk ends beyond \"" + place.file + "\", which may be truncated");
    TRY(auto weights,
        read_checkpoint({file.bytes().subspan(place.offset, place.length), file.owner()}, true));
    if (weights.size() != 1) return parse_error("a chunk that is not one tensor");
    return weights[0].tensor;
  }

 private:
  std::string folder_;
  Storage& storage_;
  std::map<std::string, MappedFile> files_;
};

}  // namespace

bool is_distributed_checkpoint(const std::string& folder) {
  struct stat info;
  return stat((folder + "/.metadata").c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

Result<std::vector<Weight>> read_distributed_checkpoint(const std::string& folder, bool data,
                                                        Storage& storage) {
  TRY(MappedFile file, MappedFile::open(folder + "/.metadata"));
  storage.keep(file);
  TRY(Pickle pickle, Pickle::parse(file.bytes(), file.owner()));
  const PickleValue* tensors = pickle.root().attribute("state_dict_metadata");
  if (tensors == nullptr || !tensors->is(Kind::kDict)) return malformed();
  TRY(auto places, read_places(pickle.root()));
  ChunkFiles files(folder, storage);
  std::vector<Weight> weights;
  for (size_t i = 0; i + 1 < tensors->entries.size(); i += 2) {
    const PickleValue &key = *tensors->entries[i], &entry = *tensors->entries[i + 1];
    if (!key.is_text()) return malformed();
    const PickleValue* properties = entry.attribute("properties");
    if (properties == nullptr) continue;  // pickled bytes: no tensor
    const std::string name(key.text);
    const PickleValue* dtype = properties->attribute("dtype");
    // TensorProperties pickles itself as a tuple that begins with the type.
    if (dtype == nullptr && properties->state) dtype = properties->state->at(0);
    const ElementType* type =
        dtype && dtype->is(Kind::kGlobal) ? element_type_of_dtype(dtype->text) : nullptr;
    const PickleValue* size = entry.attribute("size");
    const PickleValue* chunks = entry.attribute("chunks");
    const auto dims = size ? size->as_ints() : std::nullopt;
    if (type == nullptr || !dims || element_count(*dims) < 0 || !chunks) return malformed();
    Weight weight;
    weight.name = name;
    weight.dtype = type->dtype;
    weight.dims = *dims;
    if (!data) {
      weights.push_back(std::move(weight));
      continue;
    }
    for (const PickleValue* chunk : chunks->items) {
      const PickleValue* offsets = chunk->attribute("offsets");
      const auto at = offsets ? offsets->as_ints() : std::nullopt;
      if (!at) return malformed();
      auto place = places.find({name, *at});
      if (place == places.end() && chunks->items.size() == 1) place = places.find({name, {}});
      if (place == places.end())
        return parse_error("a chunk of it is in no file").at("tensor \"" + name + "\"");
      auto part = files.read(place->second);
      if (!part.ok()) return std::move(part).error().at("tensor \"" + name + "\"");
      const auto part_dims = part->dims().span();
      if (chunks->items.size() == 1 &&
          std::equal(part_dims.begin(), part_dims.end(), dims->begin(), dims->end())) {
        weight.tensor = *part;
        break;
      }
      if (weight.tensor.dtype() == DType::kUndefined) {
        TRY(weight.tensor, Tensor::allocate(weight.dtype, *dims));
        std::memset(weight.tensor.mutable_bytes().data(), 0, weight.tensor.bytes().size());
      }
      auto done = insert(*part, *at, weight.tensor);
      if (!done.ok()) return std::move(done).error().at("tensor \"" + name + "\"");
    }
    weights.push_back(std::move(weight));
  }
  return weights;
}

}  // namespace tombolo::torch
