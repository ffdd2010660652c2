"""Messages drawn at random, with everything that a database may hold."""

from __future__ import annotations

from hypothesis import strategies as st

from qsctl.core.integration.message import MessageId
from qsctl.dumps._flags import BITS
from qsctl.dumps.model import ListedMessage
from qsctl.dumps.moments import SECOND_NS, Moment
from qsctl.dumps.states import STATES

COUNTS = st.integers(0, 2**63 - 1) | st.integers(0, 10_000)
NUMBERS = st.integers(0, 10**18 - 1) | st.integers(0, 300)
MIDS = st.builds(MessageId, NUMBERS, NUMBERS, NUMBERS)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = TEXTS | st.sampled_from(
    [
        "adt_in",
        "lab_out",
        "a b",
        "r\\x41",
        "x:",
        "x:y",
        "[0.0.1]",
        "Zürich",
        "hcidbdump",
        "total",
        "(no date)",
        "msgMid",
    ]
)
THREADS = NAMES.filter(lambda name: name not in {"-", "{}", "(none)"})
LAST_SECOND = 253_402_300_799
INSTANTS = st.integers(0, LAST_SECOND * SECOND_NS) | st.integers(0, LAST_SECOND).map(lambda second: second * SECOND_NS)
DATES = st.builds(Moment, INSTANTS, has_date=st.just(True), is_utc=st.booleans())
MOMENTS = DATES | st.builds(Moment, st.integers(0, 86_400 * SECOND_NS - 1), has_date=st.just(False))
HEADINGS = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,20}", fullmatch=True).filter(
    lambda name: not name.lower().startswith("m")
)

MESSAGES = st.builds(
    ListedMessage,
    mid=MIDS,
    state=st.sampled_from(sorted(STATES)) | st.integers(0, 99_999),
    created=st.none() | MOMENTS,
    message_class=st.sampled_from(["P", "E", "I", ""]),
    type=st.sampled_from(["D", "R", "U", ""]),
    forward=st.none() | st.booleans(),
    priority=st.none() | COUNTS,
    size_bytes=st.none() | COUNTS,
    source=THREADS,
    destination=THREADS,
    source_mid=st.none() | MIDS,
    original_source=NAMES,
    original_destination=NAMES,
    owner=NAMES,
    process=NAMES,
    queue=NAMES,
    transaction_id=NAMES,
    skips_translation=st.none() | st.booleans(),
    retries=st.none() | COUNTS,
    flags=st.none() | st.sets(st.sampled_from(list(BITS.values()))).map(sum) | st.integers(0, 2**32 - 1),
    entered=st.none() | MOMENTS,
    outbound=st.none() | MOMENTS,
    user_data=TEXTS,
    error_text=TEXTS,
    others=st.lists(st.tuples(HEADINGS, TEXTS), max_size=3).map(tuple),
    data=st.none() | st.binary(max_size=60) | st.just(b"MSH|^~\\&|\\x0d\\.br\\\r\xfc"),
)
