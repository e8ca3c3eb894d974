#pragma once

// Greatest numbers and sums of the windows of a plane: some rows of windows at a time, straight
// from the plane, with no room for its padding.

#include <cstdint>

#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/pool/pool_rows.h"

namespace tombolo {

/// Whether fold_planes() takes windows of this shape.
bool folds_planes(PoolFold fold, const ConvGeometry& s);
/// Floats that fold_planes() needs, all of them the fold of nothing at first; what it leaves there
/// is good for the next planes.
int64_t plane_room(const ConvGeometry& s);
/// Planes one after the other; sums are multiplied by one factor for each result of a plane. Gives
/// how many were done: all, or those before the first one in which there is a NaN whose place in
/// the order of kMax matters.
int64_t fold_planes(PoolFold fold, const ConvGeometry& s, int64_t planes, const float* x,
                    const float* factors, float* y, float* room);

}  // namespace tombolo
