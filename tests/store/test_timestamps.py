"""Times as text."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.store.timestamps import from_text, optional_from_text, optional_to_text, to_text

MOMENTS = st.datetimes(
    min_value=datetime(2, 1, 1),  # noqa: DTZ001  hypothesis adds the zone
    max_value=datetime(9998, 12, 31),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, ZoneInfo("Asia/Tokyo"), timezone(timedelta(hours=-11, minutes=-30))]),
)


@given(MOMENTS)
def test_a_moment_comes_back_as_the_same_moment(moment):
    assert from_text(to_text(moment)) == moment.astimezone(UTC)


@given(MOMENTS, MOMENTS)
def test_the_order_of_the_texts_is_the_order_of_the_times(one, other):
    one, other = one.astimezone(UTC), other.astimezone(UTC)
    assert (to_text(one) < to_text(other)) == (one < other)


def test_all_texts_have_one_length_and_the_offset():
    assert to_text(datetime(2025, 10, 30, 12, tzinfo=ZoneInfo("Asia/Tokyo"))) == "2025-10-30T03:00:00.000000+00:00"
    assert to_text(datetime(2025, 10, 30, 3, 0, 0, 7, tzinfo=UTC)) == "2025-10-30T03:00:00.000007+00:00"


def test_no_time_stays_no_time():
    assert optional_to_text(None) is optional_from_text(None) is None
    moment = datetime(2025, 10, 30, tzinfo=UTC)
    assert optional_from_text(optional_to_text(moment)) == moment
