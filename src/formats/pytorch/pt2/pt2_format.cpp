#include "formats/pytorch/pt2/pt2_format.h"

#include "formats/pytorch/pt2/archive.h"
#include "formats/pytorch/pt2/importer.h"

namespace tombolo {

int probe_pt2(const Source& source) {
  return !source.is_folder && pytorch::Pt2Archive::probe(source.file.bytes()) ? 3 : 0;
}

Result<std::unique_ptr<Model>> load_pt2_format(const Source& source, const LoadOptions& options) {
  return pytorch::import_pt2({source.file.bytes(), source.file.owner()}, options);
}

}  // namespace tombolo
