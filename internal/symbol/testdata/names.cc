// C++ functions of many kinds, to compare names with other tools.
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shop {
struct item {
	std::string name;
	virtual ~item() {}
	virtual int price(int n, const char *currency) const { return n; }
	bool operator<(const item &o) const { return name < o.name; }
};
template <typename T, int N> struct shelf : item {
	T slots[N];
	int price(int n, const char *) const override { return n * N; }
	template <typename F> void each(F f) { for (auto &s : slots) f(s); }
};
namespace {
int hidden(std::vector<std::unique_ptr<item>> &&all) { return all.size(); }
} // namespace
int total(const std::map<std::string, std::vector<int>> &m, int (*by)(const item &)) { return m.size(); }
extern "C" int plain_c(int x) { return x; }
} // namespace shop

int main()
{
	shop::shelf<std::string, 3> s;
	shop::shelf<long, 2> l;
	int n = 0;
	s.each([&n](std::string &x) { n += x.size(); });
	std::vector<std::unique_ptr<shop::item>> v;
	v.emplace_back(new shop::item);
	std::map<std::string, std::vector<int>> m;
	return shop::hidden(std::move(v)) + shop::total(m, nullptr) + l.price(1, "") + shop::plain_c(n) == 12345;
}
