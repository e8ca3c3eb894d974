#include "formats/pytorch/script/value.h"

#include <utility>

namespace tombolo::script {

Item::Item(const Item& other) = default;
Item::Item(Item&& other) noexcept = default;
Item& Item::operator=(const Item& other) = default;
Item& Item::operator=(Item&& other) noexcept = default;
Item::~Item() = default;

Box::Box() = default;
Box::Box(const Box& other) = default;
Box::Box(Box&& other) noexcept = default;
Box& Box::operator=(const Box& other) = default;
Box& Box::operator=(Box&& other) noexcept = default;
Box::~Box() = default;

namespace {

BoxRef box_of(std::vector<Item> items) {
  auto box = std::make_shared<Box>();
  box->items = std::move(items);
  return box;
}

}  // namespace

Item Item::list(std::vector<Item> items) { return of(Kind::kList, box_of(std::move(items))); }
Item Item::tuple(std::vector<Item> items) { return of(Kind::kTuple, box_of(std::move(items))); }

}  // namespace tombolo::script
