//! What a token says. A claim that is said twice is said by nobody: whoever reads the first and whoever reads the last would take the token for
//! different people's (RFC 7519, 4).

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};

/// The claims, each said once.
pub(super) struct Said(pub(super) Map<String, Value>);

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Once).map(Self)
    }
}

struct Once;

impl<'de> Visitor<'de> for Once {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("claims")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut said: A) -> Result<Self::Value, A::Error> {
        let mut claims = Map::new();
        while let Some((name, value)) = said.next_entry::<String, Value>()? {
            if claims.insert(name, value).is_some() {
                return Err(A::Error::custom("a claim is said twice"));
            }
        }
        Ok(claims)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn said(text: &str) -> Option<Map<String, Value>> {
        serde_json::from_str::<Said>(text).ok().map(|said| said.0)
    }

    #[test]
    fn claims_are_read_if_each_is_said_once() {
        let claims = said(r#"{"tenant": "acme", "sub": "ada", "x": {"a": 1}}"#).unwrap();
        assert_eq!(claims["tenant"], "acme");
        assert_eq!(claims.len(), 3);
        for refused in [
            r#"{"tenant": "acme", "tenant": "other"}"#,
            r#"{"tenant": "acme", "sub": "ada", "tenant": "acme"}"#,
            r#"{"tenant": null, "tenant": "acme"}"#,
            r#"{"tenant": "acme", "\u0074enant": "other"}"#,
            r#"["tenant"]"#,
            r#""tenant""#,
            "",
        ] {
            assert!(said(refused).is_none(), "{refused}");
        }
    }
}
