"""What stands in the place of a name, and what the rows of a table have from their header."""

from __future__ import annotations

from metrics.lexical.chinese_names import others_in_place, unknown_names
from metrics.lexical.reading import read


def test_only_a_name_between_the_same_neighbours_stands_in_its_place() -> None:
    said = "小说的作者是周明远。"
    names = unknown_names(said, {"小说", "作者"})
    assert [other for _, other in others_in_place(names, said, "该小说的作者是林晓雨，去年出版。")] == ["林晓雨"]
    assert list(others_in_place(names, said, "林晓雨读过该小说，作者不详。")) == []
    assert unknown_names(said, {"周明", "明远"}) == []


def test_the_rows_of_a_table_have_the_units_and_words_of_their_header() -> None:
    row = read("| Room | Price (EUR) | Size (m²) |\n|---|---|---|\n| Oak | 30 | 14 |\n| Elm | 45 | 20 |").sentences[-1]
    assert [(q.value, q.unit) for q in row.numbers] == [(45.0, "euro"), (20.0, "square_metre")]
    assert "pric" in row.vocabulary
    assert "pric" not in row.terms
    tabs = read("Item\tWeight (kg)\nAnvil\t50\nVice\t8\n").sentences
    assert [(q.value, q.unit) for s in tabs for q in s.numbers] == [(50_000.0, "gram"), (8_000.0, "gram")]
    assert read("a | b (kg)\nc | 5").sentences[-1].numbers[0].unit == ""
