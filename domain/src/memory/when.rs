//! Times that a text names, in English and Chinese: what a question asks about, and whether a text tells of a time at all.
//!
//! "on 2 May 2023", "May 2nd", "in May", "2023-05-02", "5月2日", "三月", "2023年"; "today", "yesterday", "last week", "3 days ago", "上周", "昨天".
//! Days are those of UTC. A day or a month without a year is the last one that had begun.

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveTime, Utc};

use super::analysis::{fold, is_ideographic};
use super::words::MONTHS;
use crate::ids::Timestamp;

/// The days in which closeness to a named time falls to 1/e. Ours: a story is told within some weeks of what it is about. Values from 7 to
/// 30 rank about equally well.
pub const CLOSENESS_DAYS: f64 = 14.0;

/// A stretch of time, from its first moment to before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first moment.
    pub from: Timestamp,
    /// The first moment behind it.
    pub to: Timestamp,
}

impl Span {
    /// How near a time lies: `exp(−days/14)` of the distance, 1 within the span.
    pub fn closeness(&self, at: Timestamp) -> f64 {
        let away = (self.from - at).max(at - self.to).num_seconds().max(0);
        (-(away as f64) / 86_400.0 / CLOSENESS_DAYS).exp()
    }
}

/// How near a time lies to the nearest of these; 0 when there are none.
pub fn closeness(spans: &[Span], at: Timestamp) -> f64 {
    spans.iter().map(|s| s.closeness(at)).fold(0.0, f64::max)
}

/// The times that a text names. Words such as "yesterday" count from `now`; a day or a month without a year is the last one that had begun by
/// `latest` (which may lie before now: where nothing new was said for a year, "in May" is about the last May that was spoken in).
pub fn spans(text: &str, now: Timestamp, latest: Timestamp) -> Vec<Span> {
    let folded = fold(text);
    let words = words(&folded);
    let (now, latest) = (now.date_naive(), latest.min(now).date_naive());
    let mut out = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let rest = &words[at..];
        let before = at.checked_sub(1).map_or("", |b| words[b]);
        let found = date(rest, latest)
            .or_else(|| month(before, rest, latest))
            .or_else(|| relative(rest, now))
            .or_else(|| year(before, rest));
        if let Some((taken, from, to)) = found {
            out.push(Span {
                from: midnight(from),
                to: midnight(to),
            });
            at += taken;
        } else {
            at += 1;
        }
    }
    out
}

fn midnight(day: NaiveDate) -> Timestamp {
    DateTime::<Utc>::from_naive_utc_and_offset(day.and_time(NaiveTime::MIN), Utc)
}

/// Words of a folded text: runs of digits, of letters, and single ideographs.
fn words(folded: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        _ if is_ideographic(c) => 3,
        _ if c.is_ascii_digit() => 2,
        _ if c.is_alphabetic() => 1,
        '-' | '/' => 4,
        _ => 0,
    };
    let mut out = Vec::new();
    let mut start = 0;
    let mut last = 0;
    for (at, c) in folded.char_indices() {
        let now = kind(c);
        if now != last || now >= 3 {
            if last > 0 {
                out.push(&folded[start..at]);
            }
            start = at;
            last = now;
        }
    }
    if last > 0 {
        out.push(&folded[start..]);
    }
    out
}

type Found = (usize, NaiveDate, NaiveDate);

fn number(word: &str, digits: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let fits = digits.contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| word.parse().ok()).flatten()
}

fn month_number(word: &str) -> Option<u32> {
    let at = MONTHS.iter().position(|forms| forms.contains(&word))?;
    Some(at as u32 + 1)
}

fn a_year(word: &str) -> Option<i32> {
    let year = number(word, 4..=4).filter(|y| (1900..2200).contains(y))?;
    Some(year as i32)
}

/// A day with its month: in English with either first, as an ISO date, or in Chinese.
fn date(rest: &[&str], latest: NaiveDate) -> Option<Found> {
    let word = |at: usize| rest.get(at).copied().unwrap_or("");
    let ordinal = |at: usize| usize::from(matches!(word(at), "st" | "nd" | "rd" | "th"));
    let (mut taken, year, month, day);
    if let Some(number_of) = number(word(0), 1..=2)
        && let past = 1 + ordinal(1)
        && let past = past + usize::from(word(past) == "of")
        && let Some(named) = month_number(word(past))
    {
        (taken, month, day) = (past + 1, named, number_of);
        year = a_year(word(taken));
        taken += usize::from(year.is_some());
    } else if let Some(named) = month_number(word(0))
        && let past = 1 + usize::from(word(1) == "the")
        && let Some(number_of) = number(word(past), 1..=2)
    {
        (month, day) = (named, number_of);
        taken = past + 1 + ordinal(past + 1);
        year = a_year(word(taken));
        taken += usize::from(year.is_some());
    } else if let Some(of) = a_year(word(0))
        && matches!(word(1), "-" | "/")
        && word(3) == word(1)
    {
        (month, day) = (number(word(2), 1..=2)?, number(word(4), 1..=2)?);
        (taken, year) = (5, Some(of));
    } else {
        let (of, past) = chinese_year(rest);
        let (named, used) = chinese_month(&rest[past..])?;
        let (number_of, end) = chinese_number(&rest[past + used..])?;
        let named_day = matches!(rest.get(past + used + end), Some(&("日" | "号")));
        (month, day, year) = (named, number_of, of);
        taken = past + used + end + usize::from(named_day);
    }
    let on = |year| NaiveDate::from_ymd_opt(year, month, day);
    let day = match year {
        Some(year) => on(year)?,
        // February has a 29th once in four years, but for most turns of a century.
        None => (latest.year() - 8..=latest.year())
            .rev()
            .filter_map(on)
            .find(|day| *day <= latest)?,
    };
    Some((taken, day, day.checked_add_days(Days::new(1))?))
}

/// A month. "may" and "mar" are names of months only behind a word that asks for one, or before a year.
fn month(before: &str, rest: &[&str], latest: NaiveDate) -> Option<Found> {
    let word = |at: usize| rest.get(at).copied().unwrap_or("");
    let (year, month, taken) = if let Some(month) = month_number(word(0)) {
        let year = a_year(word(1));
        let asked = matches!(
            before,
            "in" | "of" | "during" | "since" | "early" | "late" | "mid" | "last" | "this" | "until"
        );
        if matches!(word(0), "may" | "mar") && !asked && year.is_none() {
            return None;
        }
        (year, month, 1 + usize::from(year.is_some()))
    } else {
        let (year, past) = chinese_year(rest);
        let (month, used) = chinese_month(&rest[past..])?;
        (year, month, past + used)
    };
    let first = |year| NaiveDate::from_ymd_opt(year, month, 1);
    let from = match year {
        Some(year) => first(year)?,
        None => first(latest.year())
            .filter(|day| *day <= latest)
            .or_else(|| first(latest.year() - 1))?,
    };
    Some((taken, from, from.checked_add_months(Months::new(1))?))
}

/// A year: in English behind a word that asks for one.
fn year(before: &str, rest: &[&str]) -> Option<Found> {
    let (year, taken) = match chinese_year(rest) {
        (Some(year), taken) => (year, taken),
        _ if matches!(before, "in" | "of" | "during" | "since") => (a_year(rest.first()?)?, 1),
        _ => return None,
    };
    let first = |year| NaiveDate::from_ymd_opt(year, 1, 1);
    Some((taken, first(year)?, first(year + 1)?))
}

/// `2023年`, with how many words it takes.
fn chinese_year(rest: &[&str]) -> (Option<i32>, usize) {
    match rest {
        [year, "年", ..] => a_year(year).map_or((None, 0), |year| (Some(year), 2)),
        _ => (None, 0),
    }
}

/// `5月`, `五月`; `三个月` is none.
fn chinese_month(rest: &[&str]) -> Option<(u32, usize)> {
    let (month, taken) = chinese_number(rest)?;
    let named = rest.get(taken) == Some(&"月") && (1..=12).contains(&month);
    named.then_some((month, taken + 1))
}

/// A number below 100 in digits or in Chinese, with how many words it takes.
fn chinese_number(rest: &[&str]) -> Option<(u32, usize)> {
    if let Some(number) = rest.first().and_then(|word| number(word, 1..=2)) {
        return Some((number, 1));
    }
    let digit = |at: usize| {
        let place = ["一", "二", "三", "四", "五", "六", "七", "八", "九"];
        let word = *rest.get(at)?;
        let word = if word == "两" { "二" } else { word };
        Some(place.iter().position(|d| *d == word)? as u32 + 1)
    };
    let ten = |at: usize| rest.get(at) == Some(&"十");
    match (digit(0), ten(0)) {
        (Some(tens), _) if ten(1) => Some(match digit(2) {
            Some(ones) => (tens * 10 + ones, 3),
            None => (tens * 10, 2),
        }),
        (Some(ones), _) => Some((ones, 1)),
        (None, true) => Some(digit(1).map_or((10, 1), |ones| (10 + ones, 2))),
        (None, false) => None,
    }
}

/// A stretch that lies some days, weeks, months or years before now.
fn relative(rest: &[&str], now: NaiveDate) -> Option<Found> {
    let word = |at: usize| rest.get(at).copied().unwrap_or("");
    let (taken, unit, ago) = match (word(0), word(1)) {
        ("today" | "tonight", _) => (1, Unit::Day, 0),
        ("yesterday", _) => (1, Unit::Day, 1),
        ("今", "天" | "晚" | "早") => (2, Unit::Day, 0),
        ("昨", "天" | "晚" | "日") | ("last" | "past", "night") => (2, Unit::Day, 1),
        ("前", "天") => (2, Unit::Day, 2),
        ("上", "周") => (2, Unit::Week, 1),
        ("本" | "这", "周") => (2, Unit::Week, 0),
        ("上", "月") => (2, Unit::Month, 1),
        ("本" | "这", "月") => (2, Unit::Month, 0),
        ("去", "年") => (2, Unit::Year, 1),
        ("今", "年") => (2, Unit::Year, 0),
        ("上", "个") if word(2) == "月" => (3, Unit::Month, 1),
        ("上", "个") if word(2) == "星" && word(3) == "期" => (4, Unit::Week, 1),
        ("last", unit) => (2, Unit::parse(unit)?, 1),
        ("this", unit) => (2, Unit::parse(unit)?, 0),
        _ => ago(rest)?,
    };
    let (from, to) = unit.before(now, ago)?;
    Some((taken, from, to))
}

/// "3 days ago", "a week ago", "三天前".
fn ago(rest: &[&str]) -> Option<(usize, Unit, u32)> {
    let word = |at: usize| rest.get(at).copied().unwrap_or("");
    let counted = match word(0) {
        "a" | "an" | "one" => Some(1),
        "two" => Some(2),
        "three" => Some(3),
        "four" => Some(4),
        other => number(other, 1..=3),
    };
    if let Some(count) = counted
        && let Some(unit) = Unit::parse(word(1))
        && word(2) == "ago"
    {
        return Some((3, unit, count));
    }
    let (count, mut at) = chinese_number(rest)?;
    at += usize::from(word(at) == "个");
    let (unit, past) = match (word(at), word(at + 1)) {
        ("天", _) => (Unit::Day, at + 1),
        ("周", _) => (Unit::Week, at + 1),
        ("星", "期") => (Unit::Week, at + 2),
        ("月", _) => (Unit::Month, at + 1),
        ("年", _) => (Unit::Year, at + 1),
        _ => return None,
    };
    let past = past + usize::from(word(past) == "以" || word(past) == "之");
    (word(past) == "前").then_some((past + 1, unit, count))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Day,
    Week,
    Weekend,
    Month,
    Year,
}

impl Unit {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "day" | "days" => Some(Self::Day),
            "week" | "weeks" => Some(Self::Week),
            "weekend" | "weekends" => Some(Self::Weekend),
            "month" | "months" => Some(Self::Month),
            "year" | "years" => Some(Self::Year),
            _ => None,
        }
    }

    /// The whole one that lies so many before the one of `now`; weeks begin on Mondays.
    fn before(self, now: NaiveDate, ago: u32) -> Option<(NaiveDate, NaiveDate)> {
        let days = |n: u64| Days::new(n);
        let monday = now.checked_sub_days(days(u64::from(now.weekday().num_days_from_monday())))?;
        match self {
            Self::Day => {
                let day = now.checked_sub_days(days(u64::from(ago)))?;
                Some((day, day.checked_add_days(days(1))?))
            }
            Self::Week => {
                let from = monday.checked_sub_days(days(7 * u64::from(ago)))?;
                Some((from, from.checked_add_days(days(7))?))
            }
            Self::Weekend => {
                let monday = monday.checked_sub_days(days(7 * u64::from(ago)))?;
                Some((
                    monday.checked_add_days(days(5))?,
                    monday.checked_add_days(days(7))?,
                ))
            }
            Self::Month => {
                let from = now.with_day(1)?.checked_sub_months(Months::new(ago))?;
                Some((from, from.checked_add_months(Months::new(1))?))
            }
            Self::Year => {
                let from = NaiveDate::from_ymd_opt(now.year() - ago as i32, 1, 1)?;
                Some((from, from.checked_add_months(Months::new(12))?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn at(day: &str) -> Timestamp {
        format!("{day}T00:00:00Z").parse().unwrap()
    }

    /// On a Wednesday.
    fn named(text: &str) -> Vec<(String, String)> {
        let now = "2024-06-19T15:00:00Z".parse().unwrap();
        let show = |t: Timestamp| t.format("%Y-%m-%d").to_string();
        spans(text, now, now)
            .into_iter()
            .map(|s| (show(s.from), show(s.to)))
            .collect()
    }

    #[test]
    fn a_day_is_known_in_each_of_its_forms() {
        for text in [
            "What did I say on 2 May 2023?",
            "the 2nd of May, 2023",
            "May 2nd, 2023",
            "May 2 2023",
            "2023-05-02",
            "on 2023/5/2 we met",
            "2023年5月2日我说了什么？",
            "2023年五月二号",
        ] {
            let expected = ("2023-05-02".to_owned(), "2023-05-03".to_owned());
            assert_eq!(named(text), [expected], "{text}");
        }
    }

    #[test]
    fn what_names_no_year_is_the_last_that_had_begun() {
        for (text, from, to) in [
            ("on May 2nd", "2024-05-02", "2024-05-03"),
            ("on 24 December", "2023-12-24", "2023-12-25"),
            ("5月2日", "2024-05-02", "2024-05-03"),
            ("on 29 February", "2024-02-29", "2024-03-01"),
            ("in May", "2024-05-01", "2024-06-01"),
            ("in July", "2023-07-01", "2023-08-01"),
            ("三月", "2024-03-01", "2024-04-01"),
            ("十二月", "2023-12-01", "2024-01-01"),
            ("June 2022", "2022-06-01", "2022-07-01"),
            ("in 2022", "2022-01-01", "2023-01-01"),
            ("2022年", "2022-01-01", "2023-01-01"),
        ] {
            assert_eq!(named(text), [(from.to_owned(), to.to_owned())], "{text}");
        }
    }

    #[test]
    fn words_for_times_count_from_now() {
        for (text, from, to) in [
            ("today", "2024-06-19", "2024-06-20"),
            ("yesterday", "2024-06-18", "2024-06-19"),
            ("昨天", "2024-06-18", "2024-06-19"),
            ("前天", "2024-06-17", "2024-06-18"),
            ("last week", "2024-06-10", "2024-06-17"),
            ("上周", "2024-06-10", "2024-06-17"),
            ("上个星期", "2024-06-10", "2024-06-17"),
            ("this week", "2024-06-17", "2024-06-24"),
            ("last weekend", "2024-06-15", "2024-06-17"),
            ("last month", "2024-05-01", "2024-06-01"),
            ("上个月", "2024-05-01", "2024-06-01"),
            ("last year", "2023-01-01", "2024-01-01"),
            ("去年", "2023-01-01", "2024-01-01"),
            ("3 days ago", "2024-06-16", "2024-06-17"),
            ("a week ago", "2024-06-10", "2024-06-17"),
            ("三天前", "2024-06-16", "2024-06-17"),
            ("两个月前", "2024-04-01", "2024-05-01"),
        ] {
            assert_eq!(named(text), [(from.to_owned(), to.to_owned())], "{text}");
        }
    }

    #[test]
    fn words_that_name_no_time_are_none() {
        for text in [
            "May I ask you something?",
            "the marked part",
            "300 people",
            "31 blue",
            "三个月",
            "last but not least",
            "",
        ] {
            assert!(named(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn closeness_is_the_formula_to_the_last_digit() {
        let span = Span {
            from: at("2024-05-02"),
            to: at("2024-05-03"),
        };
        assert!((span.closeness(at("2024-05-02")) - 1.0).abs() < 1e-12);
        assert!((span.closeness(at("2024-05-17")) - (-1.0_f64).exp()).abs() < 1e-12);
        assert!((span.closeness(at("2024-04-18")) - (-1.0_f64).exp()).abs() < 1e-12);
        assert!(closeness(&[], at("2024-05-02")).abs() < f64::EPSILON);
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange_and_each_span_has_a_length(text in "\\PC{0,40}|([0-9]{1,4}[ 年月日号/-]?(may|ago|days|last)?){0,6}") {
            let now = at("2024-06-19");
            for span in spans(&text, now, now) {
                prop_assert!(span.from < span.to);
            }
        }
    }
}
