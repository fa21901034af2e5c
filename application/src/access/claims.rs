//! From what a token says to who that is here.

use serde_json::{Map, Value};
use tidemark_domain::identity::Scopes;
use tidemark_domain::ids::{TenantName, UserName};

/// Which claims of a token are read, and what holds without them.
#[derive(Clone, Debug)]
pub struct ClaimNames {
    /// Names the tenant.
    pub tenant: String,
    /// The tenant of tokens that name none; with none, they are refused.
    pub tenant_otherwise: Option<TenantName>,
    /// Names the user.
    pub user: String,
    /// Names the scopes: words with a space between two, or a list of words.
    pub scopes: String,
}

/// Who somebody is, as a token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The tenant's name. Whether there is such a tenant is another matter.
    pub tenant: TenantName,
    /// The user.
    pub user: UserName,
    /// What they may do. Words that are no scopes are somebody else's.
    pub scopes: Scopes,
}

/// A token that is good, but means nobody here. Messages name claims and repeat nothing of what these say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Nobody {
    /// It names no tenant.
    #[error("the token names no tenant")]
    NoTenant {
        /// The claim that would.
        claim: String,
    },
    /// There is no tenant of the name.
    #[error("the token names a tenant that is not here")]
    UnknownTenant {
        /// The claim that names it.
        claim: String,
    },
    /// It names no user that can be one.
    #[error("the token names no user that can be one here")]
    NoUser {
        /// The claim that would.
        claim: String,
    },
}

impl ClaimNames {
    /// Who the claims name.
    ///
    /// # Errors
    /// [`Nobody`].
    pub fn read(&self, claims: &Map<String, Value>) -> Result<Named, Nobody> {
        let claim = self.tenant.clone();
        let tenant = match claims.get(&self.tenant) {
            None | Some(Value::Null) => self
                .tenant_otherwise
                .clone()
                .ok_or(Nobody::NoTenant { claim })?,
            Some(name) => name
                .as_str()
                .and_then(|name| name.parse().ok())
                .ok_or(Nobody::UnknownTenant { claim })?,
        };
        let user = claims.get(&self.user).and_then(Value::as_str);
        let user = user
            .and_then(|name| name.parse().ok())
            .ok_or_else(|| Nobody::NoUser {
                claim: self.user.clone(),
            })?;
        Ok(Named {
            tenant,
            user,
            scopes: scopes(claims.get(&self.scopes)),
        })
    }
}

fn scopes(said: Option<&Value>) -> Scopes {
    match said {
        Some(Value::String(words)) => Scopes::among(words.split(' ')),
        Some(Value::Array(words)) => Scopes::among(words.iter().filter_map(Value::as_str)),
        _ => Scopes::default(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;
    use serde_json::json;

    fn names(otherwise: Option<&str>) -> ClaimNames {
        ClaimNames {
            tenant: "tenant".to_owned(),
            tenant_otherwise: otherwise.map(|name| name.parse().unwrap()),
            user: "sub".to_owned(),
            scopes: "scope".to_owned(),
        }
    }

    fn read(otherwise: Option<&str>, claims: &Value) -> Result<Named, Nobody> {
        names(otherwise).read(claims.as_object().unwrap())
    }

    #[test]
    fn claims_name_a_tenant_a_user_and_scopes_in_either_form() {
        for scope in [
            json!("openid chat memory:read"),
            json!(["memory:read", 7, "chat", "root"]),
        ] {
            let claims = json!({"tenant": "acme", "sub": "ada@example.org", "scope": scope});
            let named = read(Some("other"), &claims).unwrap();
            assert_eq!(named.tenant.as_str(), "acme");
            assert_eq!(named.user.as_str(), "ada@example.org");
            assert_eq!(named.scopes.to_string(), "chat memory:read");
        }
    }

    #[test]
    fn a_token_without_a_tenant_is_of_the_one_that_is_set_or_of_none() {
        for claims in [json!({"sub": "ada"}), json!({"sub": "ada", "tenant": null})] {
            let named = read(Some("acme"), &claims).unwrap();
            assert_eq!(named.tenant.as_str(), "acme");
            let claim = "tenant".to_owned();
            assert_eq!(read(None, &claims), Err(Nobody::NoTenant { claim }));
        }
    }

    #[test]
    fn a_tenant_that_is_said_badly_is_not_taken_for_one_that_is_not_said() {
        for tenant in [json!(""), json!(7), json!(["acme"]), json!("a b")] {
            let claims = json!({"sub": "ada", "tenant": tenant});
            let claim = "tenant".to_owned();
            let read = read(Some("acme"), &claims);
            assert_eq!(read, Err(Nobody::UnknownTenant { claim }), "{tenant}");
        }
    }

    #[test]
    fn a_user_has_a_name_that_users_may_have() {
        let long = "a".repeat(129);
        for user in [
            json!(null),
            json!(""),
            json!(7),
            json!("auth0|7"),
            json!("ä"),
            json!(long),
        ] {
            let claims = json!({"tenant": "acme", "sub": user});
            let claim = "sub".to_owned();
            assert_eq!(read(None, &claims), Err(Nobody::NoUser { claim }), "{user}");
        }
    }

    #[test]
    fn what_is_no_word_gives_no_scope() {
        for scope in [
            json!(null),
            json!(true),
            json!({"chat": true}),
            json!("chat,admin"),
            json!(["chat admin"]),
        ] {
            let claims = json!({"tenant": "acme", "sub": "ada", "scope": scope});
            assert!(read(None, &claims).unwrap().scopes.is_empty(), "{scope}");
        }
    }
}
