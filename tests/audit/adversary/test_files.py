"""Words that tell which of two tables a file is from."""

from dprepro.audit.adversary.files import Telling, words


def file(noise, *more):
    return f'{{"values": [{noise}, 0.5], "origin": "{" ".join(more)}"}}'.encode()


def test_a_word_of_the_rows_tells_and_noise_does_not():
    present = [file(noise, "hash", "5c0ffee") for noise in (0.123, 0.456, 0.789)]
    absent = [file(noise, "hash", "deadbeef") for noise in (0.321, 0.654, 0.987)]
    telling = Telling.of(present, absent)
    assert (telling.present, telling.absent) == ({"5c0ffee"}, {"deadbeef"})
    assert telling.found(file(0.999, "hash", "5c0ffee")) == (1, 0)
    assert telling.found(file(0.999, "hash", "deadbeef")) == (0, 1)


def test_an_exact_number_in_one_of_two_units_tells():
    present = [file(noise, unit) for noise, unit in ((0.12, "17.0"), (0.34, "8.5"), (0.56, "17.0"))]
    absent = [file(noise, "16.0") for noise in (0.21, 0.43, 0.65)]
    telling = Telling.of(present, absent)
    assert telling == Telling(frozenset({"17.0"}), frozenset({"16.0"}))


def test_files_that_differ_in_noise_alone_tell_nothing():
    telling = Telling.of(map(file, (0.1, 0.2, 0.5)), map(file, (0.3, 0.4, 0.6)))
    assert telling == Telling(frozenset(), frozenset())


def test_bytes_that_are_no_text_have_words_too():
    assert words(b"\xff\xfe count=42.0") == {"count", "42.0"}
