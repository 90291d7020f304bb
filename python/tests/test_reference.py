"""The reference pages say what the code says, and the tools that make them find what is there to find."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
from conftest import toy

import crenel
from crenel import ckks, tfhe

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_headers  # noqa: E402
import cpp_headers  # noqa: E402
import docs_hooks  # noqa: E402
import docstrings  # noqa: E402
import gen_reference  # noqa: E402
import header_page  # noqa: E402
from check_signatures import PUBLIC, Package  # noqa: E402

import api_pages  # noqa: E402

STUB = Path(crenel.__file__).with_name("_crenel.pyi")
needs_stub = pytest.mark.skipif(not STUB.is_file(), reason="this build has no stub (sanitizers)")


@pytest.mark.parametrize("page", ["errors", "parameters"])
def test_tables_are_those_of_the_code(page):
    file = {"errors": gen_reference.ERRORS, "parameters": gen_reference.PARAMETERS}[page]
    stale = [path for path, _ in gen_reference.stale()]
    assert file not in stale, f"python tools/gen_reference.py writes {file.name} anew"


def test_every_error_has_its_section_and_every_set_its_row():
    errors = gen_reference.ERRORS.read_text(encoding="utf-8")
    for name in crenel.__all__:
        if name.endswith("Error"):
            assert f"\n### {name}\n" in errors
    assert "crenel.Error`" not in errors  # it is CrenelError there
    rows = gen_reference.PARAMETERS.read_text(encoding="utf-8")
    for name in (*ckks.preset_names(), *tfhe.preset_names()):
        assert f"\n| `{name}` |" in rows


def test_fields_are_found(tmp_path):
    kinds = {"StateError", "KeyMissingError"}
    source = """throw StateError(cat("a (", b, "): {\\"no\\", 1}"), {{"level_a", cat(1)}, {"level_b", c}});
    return KeyMissingError("x", {{"rotation", cat(f(k))}}); OtherError("x", {{"not", y}});"""
    (tmp_path / "src/ckks").mkdir(parents=True)
    (tmp_path / "src/ckks/a.cpp").write_text(source)
    (tmp_path / "python/crenel/tfhe").mkdir(parents=True)
    (tmp_path / "python/crenel/tfhe/b.py").write_text('raise StateError("x", {"found": "1", k: "2"})')
    found = gen_reference.fields(kinds, tmp_path)
    assert found["StateError"] == {"level_a": {"ckks"}, "level_b": {"ckks"}, "found": {"crenel.tfhe"}}
    assert found["KeyMissingError"] == {"rotation": {"ckks"}}


def test_a_stale_page_is_told(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "a\n<!-- computed by tools/gen_reference.py -->\nold\n<!-- end of what is computed -->\nb\n"
    )
    new = gen_reference.rendered(page, "new")
    assert "old" not in new and "new" in new and new.startswith("a\n") and new.endswith("\nb\n")
    page.write_text("no markers")
    with pytest.raises(ValueError, match="markers"):
        gen_reference.rendered(page, "new")


@pytest.mark.parametrize("name", ["toy-leveled-n13-s30", "toy-leveled-n15-s40", "toy-boot48dr"])
def test_bytes_of_keys(name):
    params = toy(name)
    keys = ckks.Context(params, "cpu").keygen().evaluation_keys(rotations=[1, 3])
    assert keys.nbytes == keys.count * gen_reference.ckks_key_bytes(params)


@pytest.mark.filterwarnings("ignore::crenel.InsecureParametersWarning")
@pytest.mark.parametrize(
    "name", ["toy-lut4", "toy-lut4g4", "toy-gadget", "toy-gadget2", "toy-raising", "toy-raising-binary"]
)
def test_bytes_of_tfhe_keys(name):
    params = tfhe.preset(name, allow_insecure=True)
    keys = tfhe.Context(params, "cpu").keygen().evaluation_keys()
    assert keys.wire_bytes == gen_reference.tfhe_key_bytes(params) + 64


def test_largest_values():
    """Where the parameters state it themselves, it is what the page has."""
    params = toy()
    for level in range(params.normal_top_level + 1):
        bits = gen_reference.max_value_bits(params, level)
        if hasattr(params, "max_value"):
            assert abs(params.max_value(level) / 2**bits - 1) < 2**-9
    assert gen_reference.max_value_bits(params, 0) < gen_reference.max_value_bits(params, 1)


def test_docstrings_become_markdown():
    text = docstrings.to_markdown(
        """What it does with <name>.

        Parameters
        ----------
        a, b : two numbers, and a line
            that goes on
        c : another

        See `Client`. Raises StateError.

        >>> f(1)
        2
        """,
        {"Client": "ckks.md#client"},
    )
    assert "- ``a``, ``b``: two numbers, and a line\n  that goes on\n- ``c``: another" in text
    assert "[`Client`](ckks.md#client)" in text and "[StateError](errors.md#stateerror)" in text
    assert "&lt;name>" in text and "```python\n>>> f(1)\n2\n```" in text
    assert "---" not in text


@needs_stub
def test_the_api_pages_have_every_public_name():
    pages = dict(api_pages.pages(STUB))
    package = Package(ROOT / "python", STUB)
    for name in PUBLIC:  # from the sources: the service's packages need not be here
        short, module = name.rpartition(".")[2], package.modules[name]
        page = pages[f"reference/api/{short}.md"]
        for export in package.exports(name):
            kinds = {type(place.node) for place in package.find(module, export)}
            if export.startswith("__") or export.endswith(("Error", "Warning")):
                continue
            if not kinds & {ast.ClassDef, ast.FunctionDef}:
                continue
            assert f"\n## {export}\n" in page or f"[`{export}`](" in page, f"{name}.{export}"
    # Overloaded functions, inherited members, and names as users write them.
    assert "{: #evaluator.multiply }" in pages["reference/api/ckks.md"]
    assert "{: #ciphertext.reshape }" in pages["reference/api/tfhe.md"]
    assert "TfheParams" not in pages["reference/api/tfhe.md"]


@needs_stub
def test_signatures_are_shown_as_users_write_them():
    reference = api_pages.Reference(Package(ROOT / "python", STUB))
    page = reference.page("ckks")
    assert "encrypt(\n    values: ArrayLike,\n" in page and "encrypt(plaintext: Plaintext)" in page
    assert "self" not in page.replace("itself", "").replace("yourself", "").split("```python", 1)[1][:200]


HEADER = """// What the header
// holds.
#pragma once
namespace crenel::ckks {
/// Not this: forward.
class Other;
/// A thing; and
/// more_of it:
///   * one
///     item
///
///     act(1, 2);  // as here
class Thing {
 public:
  struct State;
  Thing(Thing&&) noexcept;
  /// Inside.
  int f(std::vector<int> a = {}) const;
  int g() const { return f({1}); }  ///< and behind
                                    ///< that

  int lonely() const;
  // -- products: scale s ---
  Thing operator*(const Thing& o) const;
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  explicit Thing(T n) : n_(n), m_{n} {}
  const State& state() const;

 private:
  int hidden();
  int n_ = 0, m_ = 0;
};
enum class Kind : u8 {
  one,  ///< the first
  two,
};
/// Does it, e.g. so. More.
std::vector<int> act(int a,
                     int b);
int follows();

int silent();
namespace detail {
void inner();
}
}  // namespace crenel::ckks
"""


COMMENT = "A thing; and more_of it:\n\n* one item\n\n```cpp\n    act(1, 2);  // as here\n```"


def test_headers_are_read(tmp_path):
    file = tmp_path / "crenel/ckks/a.h"
    file.parent.mkdir(parents=True)
    file.write_text(HEADER)
    header = cpp_headers.read(file, tmp_path)
    assert header.about == "What the header holds." and header.namespaces == ["crenel::ckks"]
    thing, kind, *functions = header.declarations
    assert (thing.kind, thing.name, thing.comment) == ("type", "Thing", COMMENT)
    assert [f.name for f in functions] == ["act", "follows", "silent"]
    members = [m for m in thing.members if not m.housekeeping("Thing")]
    assert [m.name for m in members] == ["f", "g", "lonely", "operator*", "Thing"]
    assert members[1].signature == "int g() const" and members[1].behind == "and behind that"
    assert members[4].signature.endswith("explicit Thing(T n)")
    assert members[3].section == "products: scale s" and not members[2].section
    assert [(m.name, m.behind) for m in kind.members] == [("one", "the first"), ("two", "")]
    names = [each.name for _, each in cpp_headers.silent(header.declarations)]
    assert names == ["lonely", "Kind", "silent"]
    (index_name, index), (room_name, page) = header_page.pages(tmp_path)
    assert (index_name, room_name) == ("cpp", "cpp-ckks")
    assert "| `Thing` | A thing. |" in index and "| `act` | Does it, e.g. so. |" in index
    assert "A thing; and more&#95;of it:\n\n* one item\n" in page and "    act(1, 2);" in page
    assert "#### Thing::f, g" in page and "hidden" not in page and "State" not in page.split("```", 1)[1]
    assert "std::vector<int> act(int a, int b);\nint follows();" in page
    file.write_text(HEADER.replace("int silent();", "int silent(;"))
    with pytest.raises(cpp_headers.HeaderError, match="a.h:"):
        cpp_headers.read(file, tmp_path)


def test_public_headers_say_what_they_declare():
    assert check_headers.errors() == []


def test_every_header_and_member_has_its_place():
    pages = dict(header_page.pages())
    assert set(pages) == set(header_page.TITLES)
    everything = "".join(pages.values())
    for header in cpp_headers.headers():
        if header.path == "crenel/crenel.h":
            continue
        assert f"## {header.path} {{: #{header_page.slug(header)} }}" in everything
        assert all(each.name in everything for each in header.declarations)
    methods = pages["cpp-ckks"].partition("class Evaluator;")[2].partition("## crenel/")[0]
    for name in ("rescale", "rotate_many", "multiply_lazy", "checked", "polynomial"):
        assert re.search(rf"#### Evaluator::.*{name}", methods.replace("&#95;", "_")), name
    long = header_page.wrapped("std::map<int, u64> f(const std::map<int, u64>& a, int b = g(1, 2)) const;")
    assert [line.strip() for line in long[1:3]] == ["const std::map<int, u64>& a,", "int b = g(1, 2)"]


def test_the_navigation_has_every_page():
    def leaves(part):
        for item in part:
            yield from leaves(
                item.values() if isinstance(item, dict) else item if isinstance(item, list) else []
            )
            if isinstance(item, str):
                yield item
            elif isinstance(item, dict):
                yield from (v for v in item.values() if isinstance(v, str))

    docs = ROOT / "docs"
    found = list(leaves(docs_hooks.navigation(docs)))
    pages = {str(p.relative_to(docs)) for p in docs.rglob("*.md") if p.relative_to(docs).parts[0] != "notes"}
    assert pages <= set(found)
