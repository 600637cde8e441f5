"""Every statement has its source as BibTeX, and the software its own entry."""

import re
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError
from forgetting.theory.bibliography import SOFTWARE, SOURCES, software_entry, sources_in
from forgetting.theory.registry import all_statements

ROOT = Path(__file__).parents[2]
NEEDED = {
    "article": {"author", "title", "journal", "year"},
    "inproceedings": {"author", "title", "booktitle", "year"},
    "misc": {"author", "title", "year"},
}


def parsed(entry):
    """Kind, key and fields of one entry, read brace by brace."""
    kind, key, body = re.fullmatch(r"@(\w+)\{([\w]+),\n(.*)\n\}", entry, re.DOTALL).groups()
    fields, depth, start = {}, 0, 0
    for place, letter in enumerate(body + ","):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        assert depth >= 0, entry
        if letter == "," and depth == 0:
            name, _, value = body[start:place].partition("=")
            assert re.fullmatch(r"\{.*\}", value.strip(), re.DOTALL), (key, name)
            assert name.strip() not in fields
            fields[name.strip()] = " ".join(value.strip()[1:-1].split())
            start = place + 1
    assert depth == 0
    return kind, key, fields


def plain(words):
    """Words without accents and braces."""
    words = re.sub(r"\{\\'(\w)\}", r"\1", words).replace(r"{\l}", "l").replace("{", "").replace("}", "")
    return unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()


@pytest.mark.parametrize("source", [*SOURCES.values(), software_entry()], ids=lambda source: source.key)
def test_entries_parse_and_hold_what_their_kind_needs(source):
    kind, key, fields = parsed(source.bibtex)
    assert key == source.key
    assert NEEDED[kind] <= set(fields)
    assert re.fullmatch(r"\d{4}", fields["year"])
    for name in ("volume", "number"):
        assert re.fullmatch(r"\d+", fields.get(name, "1"))
    assert re.fullmatch(r"\d+--\d+", fields.get("pages", "1--2"))
    assert re.fullmatch(r"\d{4}\.\d{5}", fields.get("eprint", "1234.12345"))
    assert ("eprint" in fields) == ("archivePrefix" in fields)


@pytest.mark.parametrize("source", SOURCES.values(), ids=lambda source: source.key)
def test_a_source_is_named_after_its_authors_and_its_year(source):
    _, _, fields = parsed(source.bibtex)
    authors = [plain(author).partition(",")[0] for author in fields["author"].split(" and ")]
    who = authors[0] if len(authors) == 1 else " and ".join(authors) if len(authors) == 2 else f"{authors[0]} et al."
    assert source.name.rstrip("bc") == f"{who} {fields['year']}"  # letters tell those of one year apart


def test_every_statement_resolves_to_its_sources():
    for statement in all_statements():
        key = statement.label if statement.bound is None else statement.bound.key
        assert fg.bounds.cite(key).startswith("@")
    named = {source.key for statement in all_statements() for source in sources_in(statement.source)}
    assert named >= {"evron2026continual", "evron2022catastrophic", "swartworth2023nearly", "attia2025fast", SOFTWARE}
    assert set(SOURCES) - named == {  # cited by the docs
        "needell2014stochastic",
        "agaskar2014randomized",
        "karpel2026optimal",
        "li2025optimal",
    }


def test_where_it_is_stated_comes_before_who_quotes_it():
    keys = re.findall(r"@\w+\{(\w+)", fg.bounds.cite("sgd:lan-2012/averaged_objective"))
    assert keys == ["lan2012optimal", "evron2026continual"]
    assert re.findall(r"@\w+\{(\w+)", fg.bounds.cite("reshuffling")) == [
        "recht2012noncommutativeAGM",
        "desa2020reshuffling",
    ]
    assert fg.bounds.cite("trivial/loss") == fg.bounds.cite("forgetting")
    assert fg.bounds.cite("evron2022catastrophic") == fg.bounds.cite("evron2022:cyclic/forgetting")


def test_a_bound_of_ones_own_brings_its_entry():
    mine = replace(fg.bounds.get("trivial/loss"), key="mine/loss", source="Newer 2027, Theorem 1")
    entry = "@article{newer2027, author = {Newer, Ann}, year = {2027}}"
    try:
        fg.bounds.register(mine)
        with pytest.raises(InvalidInputError, match=r"mine/loss: its source, 'Newer 2027, .* has no BibTeX .*bibtex="):
            fg.bounds.cite("mine/loss")
        fg.bounds.register(replace(mine, bibtex=entry), replace=True)
        assert fg.bounds.cite("mine/loss") == entry
    finally:
        fg.bounds.unregister("mine/loss")
    for wrong in ("Newer 2027", "@article{newer2027, year = {2027}", "@article{, year = 2027}"):
        with pytest.raises(InvalidInputError, match=r"mine/loss: bibtex must be an entry such as @article"):
            replace(mine, bibtex=wrong)


def test_unknown_keys_are_answered_with_the_nearest():
    with pytest.raises(InvalidInputError, match="did you mean 'thm:cl_by_sgd_main/loss'"):
        fg.bounds.cite("thm:cl_by_sgd_man/loss")
    with pytest.raises(
        InvalidInputError,
        match="a row of bounds, or the key of a bound, a claim or a source, got 3",
    ):
        fg.bounds.cite(3)


def test_the_citation_file_has_the_version_and_the_paper():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^version: {re.escape(fg.__version__)}$", text, re.MULTILINE)
    _, _, paper = parsed(SOURCES["evron2026continual"].bibtex)
    assert f'title: "{plain(paper["title"])}"' in text
    families = re.findall(r"family-names: (\w+)", text)
    assert families == [author.partition(",")[0] for author in paper["author"].split(" and ")]
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(text)
    assert found["version"] == fg.__version__
    assert (found["type"], found["license"], found["cff-version"]) == ("software", "BSD-3-Clause", "1.2.0")
    assert found["authors"] == [{"name": "The forgetting developers"}]
    assert found["references"][0]["volume"] == int(paper["volume"])
