//! What callers write in more than one way.

use serde::{Deserialize, Deserializer};

/// For serde: JSON has one kind of number, so `3.0` is the whole number 3, and some clients write it so.
///
/// # Errors
/// When it is no whole number, or none of the field's range.
pub fn whole<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u32>,
{
    let given = Option::<f64>::deserialize(deserializer)?;
    given
        .map(|number| as_whole(number).ok_or_else(|| serde::de::Error::custom(EXPECTED)))
        .transpose()
}

/// For serde: a field that need not be given may be `null` too, as some clients write what they leave out.
///
/// # Errors
/// When it is something else that the field cannot be.
pub fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The field's error message.
pub const EXPECTED: &str = "expected a whole number in the field's range";

/// The whole number that this is.
pub fn as_whole<T: TryFrom<u32>>(number: f64) -> Option<T> {
    let fits = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    fits.then_some(number as u32)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Given {
        #[serde(default, deserialize_with = "whole")]
        importance: Option<u8>,
        #[serde(default, deserialize_with = "or_default")]
        labels: Vec<String>,
    }

    #[test]
    fn what_need_not_be_given_may_be_null() {
        for (text, labels) in [
            (r#"{"labels": ["a"]}"#, vec!["a".to_owned()]),
            (r#"{"labels": null}"#, vec![]),
            ("{}", vec![]),
        ] {
            let given: Given = serde_json::from_str(text).unwrap();
            assert_eq!(given.labels, labels, "{text}");
        }
        assert!(serde_json::from_str::<Given>(r#"{"labels": "a"}"#).is_err());
    }

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        let given = |text: &str| serde_json::from_str::<Given>(text).map(|given| given.importance);
        for (text, number) in [
            (r#"{"importance": 3}"#, Some(3)),
            (r#"{"importance": 3.0}"#, Some(3)),
            (r#"{"importance": 3e0}"#, Some(3)),
            (r#"{"importance": null}"#, None),
            ("{}", None),
        ] {
            assert_eq!(given(text).unwrap(), number, "{text}");
        }
        for text in [
            r#"{"importance": 3.5}"#,
            r#"{"importance": -1}"#,
            r#"{"importance": 256}"#,
            r#"{"importance": 1e300}"#,
            r#"{"importance": "3"}"#,
        ] {
            assert!(given(text).is_err(), "{text}");
        }
    }
}
