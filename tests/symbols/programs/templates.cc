// SPDX-License-Identifier: Apache-2.0
// C++: templates, constructors, lambdas, anonymous namespaces, operators.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace shop {
namespace {
struct Hidden {
    explicit Hidden(int start);
    ~Hidden();
    int value;
};
__attribute__((noinline)) Hidden::Hidden(int start) : value(start)
{
    std::printf("made %d\n", value);
}
__attribute__((noinline)) Hidden::~Hidden()
{
    std::printf("gone %d\n", value);
}
} // namespace

template <typename Key, typename Value> class Store {
public:
    __attribute__((noinline)) void put(const Key &key, const Value &value)
    {
        items[key].push_back(value);
    }
    template <typename Function> __attribute__((noinline)) int each(Function &&function) const
    {
        int sum = 0;
        for (const auto &item : items)
            sum += static_cast<int>(
                std::count_if(item.second.begin(), item.second.end(), function));
        return sum;
    }
    __attribute__((noinline)) bool operator<(const Store &other) const
    {
        return items.size() < other.items.size();
    }

private:
    std::map<Key, std::vector<Value>> items;
};
} // namespace shop

int main()
{
    shop::Store<std::string, int> store, other;
    for (int i = 0; i < 100; i++)
        store.put(std::to_string(i % 7), i);
    shop::Hidden hidden(store.each([](int value) { return value % 3 == 0; }));
    std::printf("%d\n", other < store);
    return hidden.value == 0;
}
