"""Moments of schedules: each nominal local time once, whatever the clocks do."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest

from intentlog.agents.errors import DefinitionError
from intentlog.agents.schedules import Schedule, between, cron, every, latest_until, moments, next_after, shown
from intentlog.eventlog.clock import SECOND, from_datetime, from_timedelta, to_datetime

HOUR = 3600 * SECOND
#: Zone, and the days on which its clocks change in 2026: spring, autumn.
ZONES = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Australia/Lord_Howe": ("2026-10-04", "2026-04-05"),
    "America/Santiago": ("2026-09-06", "2026-04-05"),
}


def at(text: str) -> int:
    return from_datetime(datetime.fromisoformat(text))


def made(expression: str, zone: str = "Europe/Berlin", **options: str) -> Schedule:
    return cron(expression, zone=zone, key="k", input=1, **options)


def told(schedule: Schedule, after: str, count: int) -> list[str]:
    return [shown(schedule, moment) for moment in islice(moments(schedule, at(after)), count)]


def year_of(schedule: Schedule, zone: str) -> list[datetime]:
    begin = from_datetime(datetime(2026, 1, 1, tzinfo=ZoneInfo(zone))) - 1
    end = from_datetime(datetime(2027, 1, 1, tzinfo=ZoneInfo(zone))) - 1
    return [to_datetime(moment).astimezone(ZoneInfo(zone)) for moment in between(schedule, begin, end, 100_000)]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("local", ["00:00", "00:30", "01:30", "01:45", "02:00", "02:15", "02:30", "03:00", "09:00", "23:30"])
def test_a_daily_time_comes_once_on_every_day_of_a_year(zone, local):
    hour, minute = local.split(":")
    found = year_of(made(f"{minute} {hour} * * *", zone), zone)
    assert [date(2026, 1, 1) + timedelta(days=n) for n in range(365)] == [moment.date() for moment in found]
    off = [moment for moment in found if moment.strftime("%H:%M") != local]
    assert {moment.date().isoformat() for moment in off} <= {ZONES[zone][0]}  # only where the gap swallowed it


def test_a_time_in_the_gap_comes_at_the_first_moment_after_it():
    assert ["2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"] == told(made("30 2 * * *"), "2026-03-28T00:00+00:00", 3)


def test_a_gap_of_half_an_hour_and_one_of_a_whole_day_are_gaps_too():
    assert ["2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"] == told(made("15 2 * * *", "Australia/Lord_Howe"), "2026-10-03T14:00+00:00", 2)
    found = told(made("0 12 * * *", "Pacific/Apia"), "2011-12-29T00:00+00:00", 3)
    assert ["2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"] == found


def test_what_a_gap_pushes_together_comes_once():
    assert ["2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"] == told(made("*/10 2 * * *"), "2026-03-29T00:00+00:00", 2)
    assert ["2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"] == told(made("0 2,3 * * *"), "2026-03-29T00:00+00:00", 2)


def test_a_time_that_comes_twice_is_taken_the_first_time():
    assert ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"] == told(made("30 2 * * *"), "2026-10-24T12:00+00:00", 2)


@pytest.mark.parametrize("after", ["2026-10-25T00:30+00:00", "2026-10-25T00:59:59+00:00", "2026-10-25T01:00+00:00", "2026-10-25T01:29:59+00:00"])
def test_a_start_inside_the_overlap_does_not_bring_it_again(after):
    assert ["2026-10-26T02:30:00+01:00"] == told(made("30 2 * * *"), after, 1)


@pytest.mark.parametrize("expression", ["0 * * * *", "0 0-23 * * *", "*/20 * * * *", "0 */1 * * *"])
def test_a_rhythm_of_every_hour_has_no_hole_and_no_double_beat(expression):
    found = [from_datetime(moment) for moment in year_of(made(expression), "Europe/Berlin")]
    assert 1 == len({later - earlier for earlier, later in pairwise(found)})


def test_every_second_hour_means_local_hours():
    found = year_of(made("0 */2 * * *"), "Europe/Berlin")
    assert 365 * 12 == len(found)


def test_months_weekdays_and_the_last_day_are_understood():
    assert ["2028-02-29T00:00:00+00:00"] == told(made("0 0 29 2 *", "UTC"), "2026-01-01T00:00+00:00", 1)
    assert ["2026-02-28T18:00:00+00:00"] == told(made("0 18 L * *", "UTC"), "2026-02-01T00:00+00:00", 1)
    assert ["2026-03-02T09:00:00+01:00"] == told(made("0 9 * * 1-5"), "2026-02-27T09:00+01:00", 1)


def test_every_counts_from_the_epoch():
    schedule = every(timedelta(hours=6), key="k", input=1)
    assert [to_datetime(at("2026-11-29T12:00+00:00")), to_datetime(at("2026-11-29T18:00+00:00"))] == [
        to_datetime(moment) for moment in between(schedule, at("2026-11-29T06:00+00:00"), at("2026-11-29T18:00+00:00"), 9)
    ]


@pytest.mark.parametrize(
    "schedule", [made("0 9 * * *"), made("*/7 * * * *"), made("* * * * * *"), made("0 0 29 2 *"), every(timedelta(minutes=1), key="k", input=1)], ids=str
)
def test_the_latest_is_the_one_that_nothing_follows(schedule):
    upto = at("2026-11-29T18:25:07+00:00")
    for back in (from_timedelta(timedelta(days=days)) for days in (0.001, 1, 40, 900, 4000)):
        latest = latest_until(schedule, upto - back, upto)
        first = next_after(schedule, upto - back)
        assert first is not None
        assert (latest is None) == (first > upto)
        if latest is not None:
            following = next_after(schedule, latest)
            assert latest <= upto
            assert following is not None and following > upto


def test_a_day_that_no_month_has_is_refused():
    with pytest.raises(DefinitionError, match="day-of-month"):
        made("0 0 30 2 *")


@pytest.mark.parametrize(
    "expression, zone, said",
    [
        ("0 25 * * *", "UTC", "no cron expression: Bad hour"),
        ("0 9 * *", "UTC", "Wrong number of fields"),
        ("0 9 * * *", "Mars/Base", "no time zone 'Mars/Base'"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_written(expression, zone, said):
    with pytest.raises(DefinitionError, match=said):
        made(expression, zone)


def test_a_policy_a_name_and_a_period_are_looked_at():
    with pytest.raises(DefinitionError, match="catch_up must be one of last, all, none, not 'some'"):
        made("0 9 * * *", catch_up="some")
    with pytest.raises(DefinitionError, match="at least a second"):
        every(timedelta(milliseconds=5), key="k", input=1)
    with pytest.raises(DefinitionError, match="A key is 1 to 512"):
        cron("0 9 * * *", key="", input=1)
    assert UTC is to_datetime(0).tzinfo
