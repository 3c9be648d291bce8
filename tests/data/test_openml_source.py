from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import openml
import pandas as pd
import pytest
import requests

from dprepro.data import network
from dprepro.data.card import Card
from dprepro.data.dataset import UnavailableError, load, values_digest
from dprepro.data.network import SourceError, download_openml
from tests.data.conftest import Reply, Server

ARFF = b"""@RELATION toy
@ATTRIBUTE age REAL
@ATTRIBUTE colour {red, blue, 'dark green'}
@ATTRIBUTE y {no, yes}
@DATA
20,red,yes
31,blue,no
?,'dark green',no
"""
FRAME = pd.DataFrame(
    {
        "age": [20.0, 31.0, None],
        "colour": pd.Categorical(["red", "blue", "dark green"]),
        "y": pd.Categorical(["yes", "no", "no"]),
    }
)
DESCRIPTION = """<oml:data_set_description xmlns:oml="http://openml.org/openml">
  <oml:id>61</oml:id>
  <oml:name>toy</oml:name>
  <oml:version>1</oml:version>
  <oml:description>Three rows.</oml:description>
  <oml:format>ARFF</oml:format>
  <oml:upload_date>2014-04-06T23:23:39</oml:upload_date>
  <oml:licence>Public</oml:licence>
  <oml:url>{url}/data/v1/download/61/toy.arff</oml:url>
  <oml:parquet_url>{url}/datasets/0000/0061/dataset_61.pq</oml:parquet_url>
  <oml:file_id>61</oml:file_id>
  <oml:default_target_attribute>y</oml:default_target_attribute>
  <oml:visibility>public</oml:visibility>
  <oml:status>active</oml:status>
  <oml:md5_checksum>{md5}</oml:md5_checksum>
</oml:data_set_description>
"""
UNKNOWN = b"""<oml:error xmlns:oml="http://openml.org/openml">
  <oml:code>111</oml:code>
  <oml:message>Unknown dataset</oml:message>
</oml:error>
"""
ABOUT, OTHER_ABOUT = "/api/v1/xml/data/61", "/api2/v1/xml/data/61"
FILE, PARQUET = "/data/v1/download/61/toy.arff", "/datasets/0000/0061/dataset_61.pq"


def about(server: Server) -> Reply:
    """Return OpenML's description of the dataset, of which the file's name is not the usual one."""
    md5 = hashlib.md5(ARFF).hexdigest()
    return Reply(DESCRIPTION.format(url=server.url, md5=md5).encode())


@pytest.fixture
def openml_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, answering as the three of OpenML do for the dataset 61."""
    addresses = (f"{server.url}/api/v1/xml", f"{server.url}/api2/v1/xml")
    monkeypatch.setattr(network, "OPENML", addresses)
    path = network.OPENML_PARQUET.partition("org")[2]
    monkeypatch.setattr(network, "OPENML_PARQUET", f"{server.url}{path}")
    buffer = io.BytesIO()
    FRAME.to_parquet(buffer, index=False)
    server.replies |= {
        ABOUT: about(server),
        OTHER_ABOUT: about(server),
        FILE: Reply(ARFF),
        PARQUET: Reply(buffer.getvalue()),
    }
    return server


def test_the_file_is_fetched_as_arff(openml_server: Server, tmp_path: Path) -> None:
    assert download_openml(61, tmp_path, any_encoding=True).read_bytes() == ARFF
    assert openml_server.asked == [ABOUT, FILE]


@pytest.mark.usefixtures("hasty")
def test_the_second_server_describes_what_the_first_does_not(
    openml_server: Server, tmp_path: Path
) -> None:
    openml_server.replies[ABOUT] = Reply(b"down", 500)
    assert download_openml(61, tmp_path).read_bytes() == ARFF
    assert openml_server.asked == [ABOUT, OTHER_ABOUT, FILE]


FAULTS = [
    (FILE, Reply(b"gone", 404), "as ARFF: the server answers 404"),
    (FILE, Reply(b"<html><h1>500</h1>"), "as ARFF: .*a web page"),
    (FILE, Reply(ARFF.replace(b"20", b"21")), "checksum is not that of the file"),
    (FILE, Reply(ARFF, declared=50), "checksum is not that of the file"),
    (FILE, Reply(ARFF[:50], declared=len(ARFF)), "broke before the end"),
    (FILE, Reply(ARFF[:50], declared=len(ARFF), hang="after"), "no answer within 0.4 s"),
    (ABOUT, Reply(UNKNOWN, 412), "the server answers: .*Unknown dataset"),
    (ABOUT, Reply(b"<html>Bad gateway", 502), "description: the server answers: .*502"),
    (ABOUT, Reply(b"no XML"), "description: the server answers: .*malformed"),
    (ABOUT, Reply(b"<other/>"), "description: it is none"),
    (ABOUT, Reply(hang="before"), "description: no answer within 0.4 s"),
]


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(("path", "reply", "says"), FAULTS)
def test_every_failure_says_why(
    openml_server: Server, tmp_path: Path, path: str, reply: Reply, says: str
) -> None:
    openml_server.replies |= {path: reply, **({OTHER_ABOUT: reply} if path == ABOUT else {})}
    with pytest.raises(SourceError, match=f"(?s){says}") as caught:
        download_openml(61, tmp_path)
    assert "Parquet" not in str(caught.value)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(("path", "reply", "says"), FAULTS)
def test_whatever_fails_parquet_is_had_where_the_card_knows_the_values(
    openml_server: Server,
    write_card: Callable[..., Path],
    places: Path,
    path: str,
    reply: Reply,
    says: str,
) -> None:
    by_arff = load(write_card({"sources": [{"openml": 61}], "name": "arff"}))
    expect = {"values_sha256": values_digest(by_arff.X, by_arff.y)}
    openml_server.replies |= {path: reply, **({OTHER_ABOUT: reply} if path == ABOUT else {})}
    card = write_card({"sources": [{"openml": 61}], "expect": expect})
    dataset = load(card)
    assert dataset.verified == "values_sha256"
    assert openml_server.asked[-1] == PARQUET
    asked = len(openml_server.asked)
    assert load(card).X.equals(dataset.X)  # from the cache
    assert len(openml_server.asked) == asked


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    "parquet",
    [
        Reply(b"gone", 404),
        Reply(b"<html>"),
        Reply(b"PAR1 no PAR1"),
        Reply(ARFF.replace(b"31", b"3")),
    ],
)
def test_parquet_of_other_values_is_refused_and_not_kept(
    openml_server: Server, write_card: Callable[..., Path], places: Path, parquet: Reply
) -> None:
    openml_server.replies |= {FILE: Reply(b"gone", 404), PARQUET: parquet}
    card = write_card({"sources": [{"openml": 61}], "expect": {"values_sha256": "0" * 64}})
    with pytest.raises(UnavailableError, match="openml 61: "):
        load(card)
    assert [p for p in places.rglob("*") if p.is_file() and p.name != ".lock"] == []


@pytest.mark.usefixtures("hasty")
def test_the_clients_settings_are_put_back(openml_server: Server, tmp_path: Path) -> None:
    def settings() -> tuple[object, ...]:
        config = openml.config
        state = (config._root_cache_directory, config.retry_policy, config.connection_n_retries)
        return (*state, config.server, requests.Session.request)

    before = settings()
    download_openml(61, tmp_path)
    openml_server.replies |= {ABOUT: Reply(UNKNOWN, 412), OTHER_ABOUT: Reply(UNKNOWN, 412)}
    with pytest.raises(SourceError):
        download_openml(61, tmp_path / "again")
    assert settings() == before


def test_the_address_of_parquet_is_the_one_that_openml_has() -> None:
    usual = network.OPENML_PARQUET.format(id=42178, group=42178 // 10_000)
    assert usual == "https://data.openml.org/datasets/0004/42178/dataset_42178.pq"


def test_load_keeps_the_file_and_does_not_ask_again(
    openml_server: Server, write_card: Callable[..., Path], places: Path
) -> None:
    path = write_card({"sources": [{"openml": 61}]})
    first, second = load(path), load(path)
    assert openml_server.asked == [ABOUT, FILE]
    assert [p for p in places.rglob("*") if p.is_file() and p.name != ".lock"] == [
        places / "openml/toy/61.arff"
    ]
    assert first.source == "OpenML 61"
    assert first.sha256 == second.sha256 == hashlib.sha256(ARFF).hexdigest()
    assert first.X["colour"].astype(str).tolist() == ["red", "blue", "dark green"]
    assert first.y.tolist() == [1, 0, 0]


def test_other_values_than_the_cards_are_refused_and_not_kept(
    openml_server: Server, make_card: Callable[..., Card], tmp_path: Path, places: Path
) -> None:
    make_card({"sources": [{"openml": 61}], "expect": {"rows": 4}})
    with pytest.raises(UnavailableError, match=r"openml 61: .*rows: expected 4, found another"):
        load(tmp_path / "cards/toy.yaml")
    assert [p for p in places.rglob("*") if p.is_file() and p.name != ".lock"] == []
