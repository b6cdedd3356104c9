from report_example import FILE, as_text, check_document, example


def test_the_example_is_a_document_with_every_field_described() -> None:
    check_document(as_text(example()))
    assert FILE.read_text(encoding="utf-8") == as_text(example())
