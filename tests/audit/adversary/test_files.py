"""Words that tell which of two tables a file is from."""

from dprepro.audit.side_channels import Telling, words


def file(noise, *more):
    return f'{{"values": [{noise}, 0.5], "origin": "{" ".join(more)}"}}'.encode()


def test_a_word_of_the_rows_tells_and_noise_does_not():
    present = [file(noise, "hash", "5c0ffee") for noise in (0.123, 0.456, 0.789)]
    absent = [file(noise, "hash", "deadbeef") for noise in (0.321, 0.654, 0.987)]
    telling = Telling.of(present, absent)
    assert telling.present == {"5c0ffee", "/origin: 'hash 5c0ffee'"}
    assert telling.absent == {"deadbeef", "/origin: 'hash deadbeef'"}
    assert telling.found(file(0.999, "hash", "5c0ffee")) == (2, 0)
    assert telling.found(file(0.999, "hash", "deadbeef")) == (0, 2)


def test_an_exact_number_tells_though_noise_makes_it_elsewhere_and_its_unit_changes():
    def written(noise, exact):
        return f'{{"values": [{noise}, {exact}]}}'.encode()

    present = [written(n, e) for n, e in ((12, 17), (34, 8.5), (56, 17), (78, 8.5))]
    absent = [written(noise, 16) for noise in (21, 17, 65, 87)]
    telling = Telling.of(present, absent)
    assert telling.present == {"8.5", "/values/1: 17", "/values/1: 8.5"}
    assert telling.absent == {"16", "/values/1: 16"}


def test_what_is_in_all_files_outweighs_what_is_in_many_by_chance():
    present = [file(noise, "5c0ffee") for noise in (0.12, 0.34, 0.34)]
    absent = [file(noise, "deadbeef") for noise in (0.21, 0.21, 0.65)]
    assert all("0.34" not in word for word in Telling.of(present, absent).present)


def test_files_that_differ_in_noise_alone_tell_nothing():
    telling = Telling.of(map(file, (0.1, 0.2, 0.7, 0.8)), map(file, (0.3, 0.4, 0.6, 0.9)))
    assert telling == Telling(frozenset(), frozenset())


def test_bytes_that_are_no_text_have_words_too():
    assert words(b"\xff\xfe count=42.0") == {"count", "42.0"}
