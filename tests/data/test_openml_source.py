from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import openml
import pytest
import requests

from dprepro.data.card import Card
from dprepro.data.dataset import UnavailableError, load
from dprepro.data.sources import SourceError, download_arff
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
DESCRIPTION = """<oml:data_set_description xmlns:oml="http://openml.org/openml">
  <oml:id>61</oml:id>
  <oml:name>toy</oml:name>
  <oml:version>1</oml:version>
  <oml:description>Three rows.</oml:description>
  <oml:format>ARFF</oml:format>
  <oml:upload_date>2014-04-06T23:23:39</oml:upload_date>
  <oml:licence>Public</oml:licence>
  <oml:url>{url}/data/v1/download/61/toy.arff</oml:url>
  <oml:parquet_url>{url}/dataset61/dataset_61.pq</oml:parquet_url>
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
ABOUT, FILE = "/api/v1/xml/data/61", "/data/v1/download/61/toy.arff"


@pytest.fixture
def openml_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, answering as OpenML does for the dataset 61."""
    monkeypatch.setattr(openml.config, "server", f"{server.url}/api/v1/xml")
    monkeypatch.setattr(openml.config, "apikey", "")
    md5 = hashlib.md5(ARFF).hexdigest()
    server.replies[ABOUT] = Reply(DESCRIPTION.format(url=server.url, md5=md5).encode())
    server.replies[FILE] = Reply(ARFF)
    return server


def test_the_real_client_fetches_the_file(openml_server: Server, tmp_path: Path) -> None:
    assert download_arff(61, tmp_path) == ARFF
    assert openml_server.asked == [ABOUT, FILE]


def test_the_clients_settings_are_put_back(openml_server: Server, tmp_path: Path) -> None:
    def settings() -> tuple[object, ...]:
        config = openml.config
        state = (config._root_cache_directory, config.retry_policy, config.connection_n_retries)
        return (*state, os.environ.get("OPENML_SKIP_PARQUET"), requests.Session.request)

    before = settings()
    download_arff(61, tmp_path)
    openml_server.replies[ABOUT] = Reply(UNKNOWN, 412)
    with pytest.raises(SourceError):
        download_arff(61, tmp_path / "again")
    assert settings() == before


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("path", "reply", "says"),
    [
        (ABOUT, Reply(UNKNOWN, 412), "OpenML answers: .*Unknown dataset"),
        (ABOUT, Reply(b"<html>Bad gateway", 502), "OpenML answers: .*502"),
        (ABOUT, Reply(b"<other/>"), "cannot be read"),
        (ABOUT, Reply(hang="before"), "no answer within 0.4 s"),
        (FILE, Reply(ARFF.replace(b"20", b"21")), "checksum is not that of the file"),
        (FILE, Reply(ARFF[:50], declared=len(ARFF)), "broke before the end"),
        (FILE, Reply(ARFF[:50], declared=len(ARFF), hang="after"), "no answer within 0.4 s"),
    ],
)
def test_every_failure_says_why(
    openml_server: Server, tmp_path: Path, path: str, reply: Reply, says: str
) -> None:
    openml_server.replies[path] = reply
    with pytest.raises(SourceError, match=f"(?s){says}"):
        download_arff(61, tmp_path)


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
